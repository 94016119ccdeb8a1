//! An app that holds the host inside itself: `cargo run -p assistant-host --example embed`.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use assistant_host::app::{AppTool, Approval, Approve, Decision};
use assistant_host::changes::Change;
use assistant_host::host::{Ending, Host, Options};
use assistant_host::launcher::RunnerCommand;
use assistant_host::model::{Model, ScriptedModel};
use assistant_host::registry::{Source, read_markdown};
use assistant_host::tools::Hints;
use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::model::CallToolRequestParams;
use serde_json::json;

const PAINTER: &str = "---\nname: Painter\ndescription: Paints walls.\ntools: [app__paint]\n---\nYou are a painter.\n";
const SCRIPT: &str = r#"{ "assistants": [{ "steps": [
    { "tool_calls": [{ "tool_name": "app__paint", "arguments": { "colour": "blue" } }] },
    { "text": "The wall is {{app__paint.colour}} now." }] }] }"#;

/// A window of the app would ask its user here.
struct Yes;

impl Approve for Yes {
    fn approve(&self, ask: Approval) -> BoxFuture<'_, Decision> {
        let allowed = ask.arguments["colour"] == "blue";
        let denied = Decision::Deny { reason: "only blue".into() };
        std::future::ready(if allowed { Decision::Allow } else { denied }).boxed()
    }
}

fn paint() -> AppTool {
    AppTool {
        name: "app__paint".into(),
        title: "Paint the wall".into(),
        description: "Paints the wall of the app's window.".into(),
        input_schema: json!({ "type": "object", "properties": { "colour": { "type": "string" } } }),
        hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: false },
        for_clients: false,
        needs_approval: true,
        run: Arc::new(|call| async move { Ok(json!({ "colour": call.arguments["colour"] }).into()) }.boxed()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // An app would ship `assistant-runner`; this example is its own runner.
    if std::env::args().nth(1).as_deref() == Some("runner") {
        let code = assistant_runner::main_with([]);
        return if code == std::process::ExitCode::SUCCESS { Ok(()) } else { Err("the runner failed".into()) };
    }
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(app())
}

async fn app() -> Result<(), Box<dyn Error>> {
    let state = std::env::temp_dir().join(format!("assistant-host-embed-{}", std::process::id()));
    let runner = RunnerCommand { program: std::env::current_exe()?, args: vec!["runner".into()] };
    let mut options = Options::new(state.clone(), runner);
    // Any `impl Model` of the app; this one answers from a script.
    let model: Arc<dyn Model> = Arc::new(ScriptedModel::from_value(serde_json::from_str(SCRIPT)?)?);
    options.models.insert("ours", model);
    options.app_tools.push(paint());
    options.approval = Some(Arc::new(Yes));
    let host = Host::open(options).await?;
    let mut changes = host.changes(&host.snapshot().await?);

    let painter =
        read_markdown(PAINTER.as_bytes(), "painter.md".as_ref(), Source::Database).map_err(|why| why.message)?;
    host.create_assistant(painter.clone()).await?;
    let session = host.open_session("the app's user", "main").await?;
    let client = host.connect_session(session).await?;
    let arguments = json!({ "search": { "text": "paint a wall" }, "query": "the wall, please", "run_mode": "sync" });
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let spawned = client.call_tool(CallToolRequestParams::new("spawn_assistant").with_arguments(arguments)).await?;
    writeln!(std::io::stdout(), "{}", spawned.structured_content.unwrap_or_default()["result"]["content"])?;
    host.remove_assistant(&painter.id).await?;
    client.cancel().await?;

    // Another window of the app: what the first one left running ends.
    host.end_session(session, Ending::Now).await?;
    host.open_session("the app's user", "main").await?;
    loop {
        match changes.next().await? {
            Change::Process { revision, process } => writeln!(std::io::stdout(), "{revision} {}", process.status)?,
            Change::Assistant(one) => writeln!(std::io::stdout(), "there is {}", one.id)?,
            Change::AssistantRemoved(id) => break writeln!(std::io::stdout(), "{id} is gone")?,
            Change::Event { .. } | Change::Delta(_) | Change::Missed(_) => {}
        }
    }
    host.close().await;
    Ok(std::fs::remove_dir_all(state)?)
}
