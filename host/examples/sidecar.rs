//! The same for an app that does not link this library, because something in it links another SQLite already (Cargo
//! allows one package with `links = "sqlite3"`): the host is a process of its own, behind its socket.
//!
//! `cargo run -p assistant-host --example sidecar -- target/debug/assistant-host --state DIR [--config FILE …]`. Nothing
//! of `assistant_host` is used here: an MCP client library is all that such an app needs.

use std::error::Error;
use std::io::Write;

use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use serde_json::{Value, json};
use tokio::process::Command;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let program = args.next().ok_or("usage: sidecar ASSISTANT_HOST [--state DIR …]")?;
    // A pipe to the one host of the state directory, which it starts behind the app and which outlives it.
    let mut pipe = Command::new(program);
    pipe.arg("mcp").args(args).kill_on_drop(true);
    let mut child = pipe.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn()?;
    let (stdin, stdout) = (child.stdin.take().ok_or("no stdin")?, child.stdout.take().ok_or("no stdout")?);
    let client = ().serve((stdout, stdin)).await?;
    let call = async |tool: &'static str, arguments: Value| {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let result = client.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await?;
        result.structured_content.ok_or_else(|| -> Box<dyn Error> { format!("{tool}: {:?}", result.content).into() })
    };
    let listed = call("list_assistant", json!({ "page_size": 1 })).await?;
    let assistant = &listed["items"][0]["assistant_id"];
    let spawned = call("spawn_assistant", json!({ "assistant_id": assistant, "query": "a short task" })).await?;
    let mut cursor = Value::Null;
    loop {
        let asked = json!({ "process_ids": [spawned["process_id"]], "cursor": cursor });
        let waited = call("wait_assistant", asked).await?;
        for event in waited["events"].as_array().into_iter().flatten() {
            writeln!(std::io::stdout(), "{}: {}", event["kind"], event["content"])?;
        }
        if waited["still_running"] == json!([]) {
            break;
        }
        cursor = waited["next_cursor"].clone();
    }
    client.cancel().await?;
    child.wait().await?;
    Ok(())
}
