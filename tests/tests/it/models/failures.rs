//! Everything that goes wrong, and that nothing of it shows the key or the conversation.

use std::sync::{Arc, Mutex};

use assistant_host::limits::Limits;
use assistant_host::model::{ModelErrorKind, answer_with_retries};
use conformance::model_server::Then;
use tokio::sync::Semaphore;
use tracing::field::{Field, Visit};
use tracing::span;

use super::*;
use ModelErrorKind::{
    BadKey, ContextExceeded, Cut, Overloaded, RateLimited, Rejected, TimedOut, Unreachable, Unreadable,
};

/// A whole text event of each format, and the end of each.
fn beginning(wire: Wire) -> String {
    let whole = Say::new(vec![Said::text("hi")]).events(path(wire));
    let end = whole.find(if wire == Wire::OpenAi { "\"finish_reason\":\"stop\"" } else { "event: message_delta" });
    let end = end.expect("there is an end");
    whole[..whole[..end].rfind("\n\n").expect("events end") + 2].to_owned()
}

fn path(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenAi => "/v1/chat/completions",
        Wire::Anthropic => "/v1/messages",
    }
}

async fn check(reply: &Reply, kind: ModelErrorKind, message: &str) {
    for wire in BOTH {
        let error = answer_to(wire, reply.clone()).await.expect_err("fails");
        assert_eq!((error.kind, error.provider.as_str()), (kind, wire.provider()), "{error}");
        assert!(error.message.contains(message), "`{}` does not say `{message}`", error.message);
    }
}

#[tokio::test]
async fn statuses_are_told_with_what_to_do() {
    let body = json!({ "type": "error", "error": { "type": "some_error", "message": "because of that" } });
    let reply = |status| Reply::error(status, &body);
    check(
        &reply(401),
        BadKey,
        "the key was refused; check the key variable or file of this model (status 401): because of that",
    )
    .await;
    check(&reply(403), BadKey, "(status 403)").await;
    check(&reply(404), Rejected, "`m-1` or the address is unknown at 127.0.0.1:").await;
    check(&reply(400), Rejected, "the provider refused the request (status 400): because of that").await;
    check(&reply(408), TimedOut, "(status 408)").await;
    check(&reply(429), RateLimited, "there were too many requests (status 429)").await;
    check(&reply(500), Overloaded, "(status 500)").await;
    check(&reply(503), Overloaded, "(status 503)").await;
    check(&reply(529), Overloaded, "(status 529)").await;
    let long = json!({ "error": { "code": "context_length_exceeded", "message": "too long" } });
    check(&Reply::error(400, &long), ContextExceeded, "the conversation is longer than `m-1` takes").await;
}

#[tokio::test]
async fn status_and_retry_after_are_there() {
    for wire in BOTH {
        let reply = Reply::error(429, &json!({})).with_header("retry-after", "7");
        let error = answer_to(wire, reply).await.expect_err("fails");
        assert_eq!((error.status, error.retry_after_ms), (Some(429), Some(7_000)));
        let reply = Reply::error(529, &json!({})).with_header("retry-after-ms", "150");
        let error = answer_to(wire, reply).await.expect_err("fails");
        assert_eq!((error.status, error.retry_after_ms), (Some(529), Some(150)));
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_key() {
    for wire in BOTH {
        let thief = ModelServer::start().await.expect("starts");
        let place = format!("{}{}", thief.base_url(), path(wire));
        let reply = Reply::error(307, &Value::Null).with_header("location", &place);
        let error = answer_to(wire, reply).await.expect_err("fails");
        assert_eq!((error.kind, error.status), (Rejected, Some(307)));
        assert!(error.message.contains("redirects, which is not followed"), "{error}");
        assert_eq!(thief.requests(), vec![]);
    }
}

#[tokio::test]
async fn what_breaks_off_is_cut() {
    check(&Reply::Close, Cut, "broke off").await;
    for wire in BOTH {
        let begun = beginning(wire);
        let whole = Say::new(vec![Said::text("hi")]).events(path(wire));
        let no_end = whole.trim_end().rfind("\n\n").map(|at| whole[..at + 2].to_owned()).expect("events");
        let only_end = match wire {
            Wire::OpenAi => format!("{begun}data: [DONE]\n\n"),
            Wire::Anthropic => format!("{begun}data: {{\"type\":\"message_stop\"}}\n\n"),
        };
        for reply in [
            Reply::events_then(begun.clone(), vec![Then::Break]),
            Reply::events(begun.clone()),
            Reply::events(no_end),
            Reply::events(only_end),
            Reply::events(format!("{begun}data: {{\"type\":\"me")),
            Reply::events(""),
        ] {
            let error = answer_to(wire, reply.clone()).await.expect_err("fails");
            assert_eq!(error.kind, Cut, "{error} for {reply:?}");
        }
    }
}

#[tokio::test]
async fn what_is_no_event_stream_is_unreadable() {
    let json = |body: Value| Reply::error(200, &body);
    check(&json(json!({ "choices": [{ "message": { "content": "hi" } }] })), Unreadable, "no event stream").await;
    check(&json(json!({})), Unreadable, "no event stream").await;
    check(&Reply::events("<html>\n\n<p>Welcome</p>\n\n</html>"), Unreadable, "no event stream").await;
    check(&Reply::events("data: {oops\n\n"), Unreadable, "no JSON object").await;
    check(&Reply::events("data: 7\n\n"), Unreadable, "no JSON object").await;
    check(&Reply::events(vec![b'd', 0xff, 0xfe, b'\n', b'\n']), Unreadable, "no text in UTF-8").await;
}

#[tokio::test]
async fn an_error_inside_the_answer_is_told() {
    let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    let reply = Reply::events_then(format!("event: error\ndata: {error}\n\n"), vec![Then::Hang]);
    check(&reply, Overloaded, "in the middle of its answer: Overloaded").await;
}

#[tokio::test]
async fn every_wait_has_an_end() {
    for wire in BOTH {
        let server = ModelServer::start().await.expect("starts");
        let check = async |reply: Reply, change: &dyn Fn(&mut Bounds), want: &str| {
            server.push(reply);
            let mut config = config(&server, wire, "m-1");
            change(&mut config.bounds);
            let error = call(&NetworkModel::new(config).expect("sets up"), hello()).await.expect_err("fails");
            assert_eq!(error.kind, TimedOut, "{error}");
            assert!(error.message.contains(want), "{error}");
        };
        check(Reply::Silence, &|bounds| bounds.header_ms = 60, "did not begin to answer in time").await;
        let stops = Reply::events_then(beginning(wire), vec![Then::Hang]);
        check(stops, &|bounds| bounds.read_ms = 60, "stopped in the middle").await;
        // Life signs without end.
        let steady = (0..100).flat_map(|_| [Then::Write(b": still here\n\n".to_vec()), Then::Wait(20)]).collect();
        check(Reply::events_then("", steady), &|bounds| bounds.call_ms = 150, "not whole after 150 ms").await;
        server.closed(2).await;
    }
}

#[tokio::test]
async fn a_slow_answer_is_waited_for() {
    for wire in BOTH {
        let whole = Say::new(vec![Said::text("slow")]).events(path(wire));
        let pieces =
            whole.as_bytes().chunks(300).flat_map(|piece| [Then::Write(piece.to_vec()), Then::Wait(5)]).collect();
        let answer = answer_to(wire, Reply::events_then("", pieces)).await.expect("answers");
        assert_eq!(answer.message.content.as_text(), "slow");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_answer_ends_at_its_bound() {
    for wire in BOTH {
        let server = ModelServer::start().await.expect("starts");
        let more = match wire {
            Wire::OpenAi => json!({ "choices": [{ "delta": { "content": "x".repeat(8_000) } }] }),
            Wire::Anthropic => json!({ "type": "ping", "pad": "x".repeat(8_000) }),
        };
        let more = Then::Repeat(format!("event: x\ndata: {more}\n\n").into_bytes(), 1_000_000);
        server.push(Reply::events_then(beginning(wire), vec![more]));
        let mut config = config(&server, wire, "m-1");
        config.bounds.answer_bytes = 1_000_000;
        let error = call(&NetworkModel::new(config).expect("sets up"), hello()).await.expect_err("fails");
        assert_eq!((error.kind, error.message.as_str()), (Unreadable, "the answer is longer than 1000000 bytes"));
        server.closed(1).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_without_events_is_not_gathered_for_long() {
    for status in [200, 500] {
        let server = ModelServer::start().await.expect("starts");
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let then = vec![Then::Repeat(vec![b' '; 4_000], 1_000_000)];
        server.push(Reply::Raw { status, headers, then });
        let error = call(&model(&server, Wire::OpenAi), hello()).await.expect_err("fails");
        assert_eq!(
            (error.kind, error.message.as_str()),
            (Unreadable, "256 pieces of the answer came without an event")
        );
        server.closed(1).await;
    }
}

#[tokio::test]
async fn dropping_the_call_ends_it_at_the_provider() {
    for wire in BOTH {
        let server = ModelServer::start().await.expect("starts");
        server.push(Reply::events_then(beginning(wire), vec![Then::Hang]));
        let model = model(&server, wire);
        let (seen, mut begun) = tokio::sync::mpsc::unbounded_channel();
        let see = move |_| seen.send(()).expect("is waited for");
        tokio::select! {
            outcome = model.answer(hello(), &see) => panic!("it ended by itself: {outcome:?}"),
            _ = begun.recv() => {}
        }
        server.closed(1).await;
    }
}

#[tokio::test]
async fn no_server_is_unreachable() {
    let gone = ModelServer::start().await.expect("starts");
    for wire in BOTH {
        let config = config(&gone, wire, "m-1");
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("binds").local_addr().expect("has an address");
        let config = NetworkConfig { base_url: Some(format!("http://{free}")), ..config };
        let error = call(&NetworkModel::new(config).expect("sets up"), hello()).await.expect_err("fails");
        assert_eq!(error.kind, Unreachable);
        let want = format!("cannot connect to {free} (");
        assert!(error.message.starts_with(&want) && error.message.contains("check `base_url`"), "{error}");
    }
}

#[tokio::test]
async fn a_call_that_was_refused_for_now_is_made_again() {
    for wire in BOTH {
        let server = ModelServer::start().await.expect("starts");
        server.push(Reply::error(429, &json!({})).with_header("retry-after-ms", "1"));
        server.push(Reply::error(529, &json!({})));
        server.push(Reply::text("at last"));
        let (permits, mut notices) = (Semaphore::new(1), Vec::new());
        let model = model(&server, wire);
        let told = |notice| notices.push(notice);
        let answer = answer_with_retries(&model, &hello(), &|_| {}, &Limits::default(), &permits, told).await;
        assert_eq!(answer.expect("answers").message.content.as_text(), "at last");
        let notices: Vec<_> = notices.iter().map(|notice| (notice.retry, notice.error.kind)).collect();
        assert_eq!(notices, [(1, RateLimited), (2, Overloaded)]);
        let bodies: Vec<_> = server.requests().into_iter().map(|request| request.body).collect();
        assert!(bodies.len() == 3 && bodies.iter().all(|body| *body == bodies[0]), "the same is asked again");
    }
}

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
    for wire in BOTH {
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
