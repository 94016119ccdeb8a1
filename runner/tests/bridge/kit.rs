//! A host with tools that behave as they are called, an adapter's bridge in this process, and clients through the program.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::ids::ThreadId;
use assistant_protocol::methods::{OnPermissionRequest, OnToolCall};
use assistant_protocol::peer::{Peer, PeerLimits, connect};
use assistant_protocol::service::{CallCx, Service};
use assistant_protocol::types::{Part, PermissionParams, PermissionResult, ToolCallParams, ToolCallResult, ToolSpec};
use assistant_runner::adapter::bridge::{Bridge, McpServer, Running, Turn};
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RoleClient, RunningService, ServiceError};
use rmcp::{ClientHandler, ServiceExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::time::timeout;

/// How long anything may take, with room for a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(90);

/// What the host has seen.
#[derive(Default)]
pub(crate) struct Host {
    /// Calls that have come, by their tool, with their ids.
    calls: Mutex<Vec<(String, String)>>,
    cancelled: Mutex<Vec<String>>,
    permissions: Mutex<Vec<Value>>,
    /// Something was added to one of these.
    news: Notify,
    /// Answers the calls of `wait` that have come.
    pub(crate) go: Notify,
}

impl Host {
    fn saw(&self, what: impl FnOnce(&Self)) {
        what(self);
        self.news.notify_waiters();
    }

    pub(crate) fn call_ids(&self) -> Vec<String> {
        self.calls.lock().expect("whole").iter().map(|(_, id)| id.clone()).collect()
    }

    pub(crate) fn permissions(&self) -> Vec<Value> {
        self.permissions.lock().expect("whole").clone()
    }

    async fn until(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let waiting = async {
            loop {
                let news = self.news.notified();
                if done(self) {
                    return;
                }
                news.await;
            }
        };
        timeout(SOON, waiting).await.unwrap_or_else(|_| panic!("not soon: {what}"));
    }

    /// Waits until so many calls of a tool have come.
    pub(crate) async fn called(&self, tool: &str, times: usize) {
        let count = |host: &Self| host.calls.lock().expect("whole").iter().filter(|(name, _)| name == tool).count();
        self.until(tool, |host| count(host) >= times).await;
    }

    /// Waits until so many calls of tools were cancelled.
    pub(crate) async fn cancelled(&self, times: usize) {
        self.until("cancelled", |host| host.cancelled.lock().expect("whole").len() >= times).await;
    }
}

async fn on_tool_call(host: Arc<Host>, params: ToolCallParams, call: CallCx) -> Result<ToolCallResult, RpcError> {
    let ToolCallParams { tool_name, call_id, arguments, .. } = params;
    host.saw(|host| host.calls.lock().expect("whole").push((tool_name.clone(), call_id)));
    let text = |text: String| ToolCallResult {
        content: vec![Part::text(text)],
        structured_content: None,
        is_error: false,
        end_run: None,
    };
    let failed = |kind: Kind| Err(RpcError::new(kind, format!("{} it is", kind.name())));
    match tool_name.as_str() {
        "echo" => Ok(text(arguments.to_string())),
        "huge" => Ok(text("x".repeat(8 * 1024 * 1024))),
        "picture" => {
            let image = Part::Image { mime_type: "image/png".into(), data: Some("AA==".into()), blob: None };
            Ok(ToolCallResult { content: vec![image], ..text(String::new()) })
        }
        "data" => {
            Ok(ToolCallResult { content: vec![], structured_content: Some(json!({ "a": 1 })), ..text(String::new()) })
        }
        "wrong" => Ok(ToolCallResult { is_error: true, ..text("no such thread".into()) }),
        "ask_parent" => {
            tokio::select! {
                () = host.go.notified() => Ok(text("the second one".into())),
                () = call.cancelled.cancelled() => {
                    host.saw(|host| host.cancelled.lock().expect("whole").push(tool_name.clone()));
                    failed(Kind::Cancelled)
                }
            }
        }
        "final_answer" => Ok(ToolCallResult { end_run: Some(true), ..text("taken".into()) }),
        kind => match Kind::ALL.iter().find(|known| known.name() == kind) {
            Some(kind) => failed(*kind),
            None => failed(Kind::UnknownTool),
        },
    }
}

async fn on_permission(host: Arc<Host>, params: PermissionParams, _: CallCx) -> Result<PermissionResult, RpcError> {
    let asked = json!([params.call_id, params.tool_name, params.arguments]);
    host.saw(|host| host.permissions.lock().expect("whole").push(asked));
    match params.arguments["command"].as_str() {
        Some("rm") => Ok(PermissionResult { allowed: false, reason: Some("a rule forbids it".to_owned()) }),
        Some("mv") => Ok(PermissionResult { allowed: false, reason: None }),
        Some("over") => Err(RpcError::new(Kind::Cancelled, "the run is over")),
        _ => Ok(PermissionResult { allowed: true, reason: None }),
    }
}

/// An adapter's end, with a host behind it.
pub(crate) struct Adapter {
    pub(crate) host: Arc<Host>,
    pub(crate) bridge: Bridge,
    peer: Peer,
    _folder: TempDir,
    _links: tokio::task::JoinSet<()>,
}

/// The program, as it is started to act as the runner.
pub(crate) fn program() -> std::path::PathBuf {
    env!("CARGO_BIN_EXE_assistant-runner").into()
}

impl Adapter {
    pub(crate) fn start() -> Self {
        let host = Arc::new(Host::default());
        let service = Service::new(host.clone()).on(OnToolCall, on_tool_call).on(OnPermissionRequest, on_permission);
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (read, write) = tokio::io::split(ours);
        let (_, host_link) = connect(read, write, service, PeerLimits::default());
        let (read, write) = tokio::io::split(theirs);
        let (peer, link) = connect(read, write, Service::new(Arc::new(())), PeerLimits::default());
        let mut links = tokio::task::JoinSet::new();
        links.spawn(async { drop(host_link.await) });
        links.spawn(async { drop(link.await) });
        let folder = tempfile::tempdir().expect("a folder");
        let bridge = Bridge::open(folder.path(), (program(), Vec::new())).expect("opens");
        Self { host, bridge, peer, _folder: folder, _links: links }
    }

    /// Begins a run with tools of these names.
    pub(crate) fn run(&self, tools: &[&str], asks_permission: bool) -> Running {
        let tools = tools.iter().map(|name| spec(name)).collect();
        let turn = Turn { peer: self.peer.clone(), thread_id: ThreadId::mint(), tools, asks_permission };
        self.bridge.begin(turn)
    }
}

fn spec(name: &str) -> ToolSpec {
    let input_schema = json!({ "type": "object", "properties": { "question": { "type": "string" } } });
    ToolSpec { name: name.to_owned(), description: format!("Does {name}."), input_schema }
}

/// A bridge that a client can be started on.
pub(crate) fn bridge(server: &McpServer) -> Command {
    let mut command = Command::new(&server.command);
    command.args(&server.args).env_clear().envs(server.env.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Counts what it is told of changed tools.
#[derive(Clone, Default)]
pub(crate) struct Ears {
    pub(crate) changed: Arc<Notify>,
}

impl ClientHandler for Ears {
    async fn on_tool_list_changed(&self, _: rmcp::service::NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// A client through the program.
pub(crate) struct Client {
    pub(crate) service: RunningService<RoleClient, Ears>,
    pub(crate) child: Child,
    pub(crate) ears: Ears,
}

impl Client {
    pub(crate) async fn start(server: &McpServer) -> Self {
        let mut child = bridge(server).spawn().expect("starts");
        let pipes = (child.stdout.take().expect("piped"), child.stdin.take().expect("piped"));
        let ears = Ears::default();
        let service = timeout(SOON, ears.clone().serve(pipes)).await.expect("soon").expect("initializes");
        Self { service, child, ears }
    }

    pub(crate) async fn tools(&self) -> Vec<String> {
        let tools = self.service.list_all_tools().await.expect("lists");
        tools.into_iter().map(|tool| tool.name.to_string()).collect()
    }

    pub(crate) async fn try_call(&self, tool: &str, arguments: Value) -> Result<CallToolResult, ServiceError> {
        let arguments = arguments.as_object().expect("an object").clone();
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        timeout(SOON, self.service.call_tool(params)).await.unwrap_or_else(|_| panic!("not soon: {tool}"))
    }

    /// Calls a tool: what it says, and whether that is an error.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> (String, bool) {
        said(&self.try_call(tool, arguments).await.expect("answers"))
    }
}

pub(crate) fn said(result: &CallToolResult) -> (String, bool) {
    let texts: Vec<&str> =
        result.content.iter().filter_map(|block| block.as_text().map(|text| text.text.as_str())).collect();
    (texts.join("|"), result.is_error == Some(true))
}
