//! An app that holds the host inside itself, with a model of its own: `cargo run -p assistant-host --example embed`.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use assistant_host::host::{Host, Options};
use assistant_host::launcher::RunnerCommand;
use assistant_host::model::{Answer, Ask, Model, ModelError, Progress};
use assistant_host::registry;
use assistant_protocol::types::{FinishReason, Message, Role, Usage};
use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::model::CallToolRequestParams;
use serde_json::json;

/// A model that repeats what it is asked.
struct Echo;

impl Model for Echo {
    fn answer<'a>(&'a self, ask: Ask, _: &'a (dyn Fn(Progress) + Sync)) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let heard = ask.messages.last().map(|message| message.content.as_text().into_owned()).unwrap_or_default();
        let message = Message::text(Role::Assistant, format!("You said: {heard}"));
        let answer = Answer { message, finish: FinishReason::Stop, usage: Usage::default(), model: "echo".into() };
        std::future::ready(Ok(answer)).boxed()
    }

    fn provider(&self) -> &str {
        "echo"
    }
}

const POET: &str = "---\nname: Poet\ndescription: Writes a poem about anything.\ntools: []\n---\nYou are a poet.\n";

fn main() -> Result<(), Box<dyn Error>> {
    // An app would ship `assistant-runner`; this example is its own runner.
    if std::env::args().nth(1).as_deref() == Some("runner") {
        let code = assistant_runner::main_with([]);
        return if code == std::process::ExitCode::SUCCESS { Ok(()) } else { Err("the runner failed".into()) };
    }
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(app())
}

async fn app() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("assistant-host-embed-{}", std::process::id()));
    let assistants = folder.join("assistants");
    std::fs::create_dir_all(&assistants)?;
    std::fs::write(assistants.join("poet.md"), POET)?;

    let runner = RunnerCommand { program: std::env::current_exe()?, args: vec!["runner".into()] };
    let mut options = Options::new(folder.join("state"), runner);
    options.sources = registry::sources(None, None, None, &[assistants]);
    options.models.insert("echo", Arc::new(Echo));
    let host = Host::open(options).await?;

    let client = host.connect_in_process("the app's user").await?;
    let arguments = json!({ "search": { "text": "a poem" }, "query": "a poem about rain", "run_mode": "sync" });
    let call = CallToolRequestParams::new("spawn_assistant")
        .with_arguments(arguments.as_object().cloned().unwrap_or_default());
    let spawned = client.call_tool(call).await?;
    writeln!(std::io::stdout(), "{}", spawned.structured_content.unwrap_or_default()["result"]["content"])?;

    client.cancel().await?;
    host.close().await;
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
