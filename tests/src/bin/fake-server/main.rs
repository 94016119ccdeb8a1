//! A tool server for tests: an honest one of both eras, or one that misbehaves.
//!
//! `fake-server` is honest: rmcp, with tools that echo, tell their environment and place, wait, show a picture, are long,
//! fail, die and grow. `fake-server shell` has a shell and a network instead. `fake-server MODE [ARGUMENT]` speaks the wire by hand, as `raw` says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ServerHandler, ServiceExt};
use serde_json::{Value, json};

mod raw;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let honest = |mode: &str| matches!(mode, "honest" | "shell");
    if let Some((mode, rest)) = arguments.split_first().filter(|(mode, _)| !honest(mode)) {
        return Ok(raw::serve(mode, rest.first().map_or("", String::as_str))?);
    }
    let shell = arguments.first().is_some_and(|mode| mode == "shell");
    let server = Honest { grown: Arc::new(AtomicBool::new(false)), shell };
    server.serve(rmcp::transport::io::stdio()).await?.waiting().await?;
    Ok(())
}

#[derive(Clone)]
struct Honest {
    grown: Arc<AtomicBool>,
    shell: bool,
}

const SHELL: &[&str] = &["connect", "run_command"];
const TOOLS: &[&str] = &["big", "die", "echo", "env", "fail", "grow", "picture", "place", "wait"];

fn tool(name: &str) -> Tool {
    let schema = json!({ "type": "object", "properties": { "text": { "type": ["string", "null"] }, "chars": { "type": "integer", "format": "uint32" } } });
    let schema: JsonObject = schema.as_object().cloned().unwrap_or_default();
    Tool::new(name.to_owned(), format!("It does {name}."), Arc::new(schema))
        .with_annotations(ToolAnnotations::new().read_only(name == "echo"))
}

impl ServerHandler for Honest {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("honest", "1");
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let grown = self.grown.load(Ordering::Acquire).then_some("grown");
        let tools = if self.shell { SHELL } else { TOOLS };
        Ok(ListToolsResult::with_all_items(tools.iter().copied().chain(grown).map(tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let text = arguments["text"].as_str().unwrap_or_default().to_owned();
        let said = |text: String| CallToolResult::success(vec![ContentBlock::text(text)]);
        let result = match request.name.as_ref() {
            "echo" => {
                let mut result = said(text.clone());
                result.structured_content = Some(json!({ "text": text }));
                result
            }
            "env" => said(json!(std::env::vars().collect::<BTreeMap<_, _>>()).to_string()),
            "place" => {
                let folder = std::env::current_dir().unwrap_or_default();
                said(format!("{} {}", std::process::id(), folder.display()))
            }
            "run_command" if self.shell => {
                let ran =
                    std::process::Command::new("sh").args(["-c", &text]).stdin(std::process::Stdio::null()).output();
                said(match ran {
                    Ok(ran) => {
                        format!("{}: {}", ran.status, String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()))
                    }
                    Err(error) => format!("no shell: {error}"),
                })
            }
            "connect" if self.shell => said(match std::net::TcpStream::connect(&text) {
                Ok(_) => "connected".to_owned(),
                Err(error) => format!("not connected: {error}"),
            }),
            "picture" => CallToolResult::success(vec![
                ContentBlock::text("look"),
                ContentBlock::image("iVBORw0KGgo=", "image/png"),
            ]),
            "big" => said("x".repeat(arguments["chars"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0))),
            "fail" => CallToolResult::error(vec![ContentBlock::text("it failed")]),
            "die" => {
                eprint("I die of this\n");
                std::process::exit(7);
            }
            "grow" => {
                self.grown.store(true, Ordering::Release);
                let told = context.peer.notify_tool_list_changed().await;
                said(format!("grown: {}", told.is_ok()))
            }
            "grown" => said("I am new".to_owned()),
            // Until nobody waits for it any more, which it notes in a file.
            "wait" => {
                if let Some(token) = context.meta.get_progress_token() {
                    let step = ProgressNotificationParam::new(token, 1.0).with_total(4.0).with_message("I wait");
                    drop(context.peer.notify_progress(step).await);
                }
                context.ct.cancelled().await;
                drop(std::fs::write(&text, "cancelled\n"));
                said("cancelled".to_owned())
            }
            other => return Err(ErrorData::invalid_params(format!("there is no tool {other}"), None)),
        };
        Ok(result.into())
    }
}

#[expect(clippy::print_stderr, reason = "what it says is what is tested")]
fn eprint(text: &str) {
    eprint!("{text}");
}
