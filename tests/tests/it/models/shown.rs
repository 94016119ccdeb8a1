//! Nothing that goes wrong shows the key or the conversation.

use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span;

use super::*;

/// Keeps every text that is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.lock().expect("not poisoned").push(format!("{field}: {value:?}"));
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        span.record(&mut self.clone());
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn neither_key_nor_conversation_is_shown_anywhere() {
    const PROMPT: &str = "the secret recipe of grandmother's plum cake with cinnamon";
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    tracing::info!("the log works");
    let body = json!({ "error": { "message": format!("bad key {KEY} for '{PROMPT}'"), "echo": PROMPT } });
    let inside = format!("event: error\ndata: {}\n\n", json!({ "type": "error", "error": { "message": PROMPT } }));
    for wire in Wire::ALL {
        for reply in [
            Reply::error(400, &body),
            Reply::error(401, &body),
            Reply::error(500, &json!(PROMPT)),
            Reply::error(200, &body),
            Reply::events(inside.clone()),
            Reply::events(format!("data: {PROMPT} {KEY}\n\n")),
            Reply::Close,
        ] {
            let server = ModelServer::start().await.expect("starts");
            server.push(reply);
            let model = model(&server, wire);
            let ask = Ask { messages: vec![Message::text(Role::User, PROMPT)], ..Ask::default() };
            let error = call(&model, ask).await.expect_err("fails");
            let shown = format!("{error} {error:?} {model:?}");
            assert!(!shown.contains(KEY) && !shown.contains("grandmother"), "{shown}");
            assert!(error.message.chars().count() <= 500);
        }
    }
    let logged = log.0.lock().expect("not poisoned").join("\n");
    assert!(logged.contains("the log works"));
    assert!(!logged.contains(KEY) && !logged.contains("grandmother"), "{logged}");
}
