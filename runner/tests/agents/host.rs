//! A host with one runner of an agent: the program itself, with its pipes.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::ids::{MessageId, ProcessId, ThreadId};
use assistant_protocol::methods::{
    Cancel, DeliverMessage, Initialize, OnAgentEvent, OnPermissionRequest, OnProgress, OnToolCall, Run, Shutdown,
};
use assistant_protocol::peer::{CallError, LinkReport, Peer, PeerLimits, connect};
use assistant_protocol::service::{CallCx, Service};
use assistant_protocol::types::{
    AgentEvent, AgentEventParams, CancelParams, Content, DeliverMessageParams, Empty, HostCapabilities,
    InitializeParams, InitializeResult, MAX_FRAME_BYTES, Mail, Part, PermissionParams, PermissionResult, Program,
    ProgressParams, RunLimits, RunResult, ToolCallParams, ToolCallResult,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long anything may take, with room for a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(120);

/// What the host has seen, and what it answers.
pub(crate) struct Seen {
    /// Events, tool calls and permission requests, a line each.
    lines: watch::Sender<Vec<String>>,
    /// What events are answered with from the one on that has this text in its line.
    refuses: Mutex<Option<(&'static str, Kind)>>,
    /// The agent's own session.
    session: Mutex<Option<String>>,
}

impl Seen {
    fn saw(&self, line: String) -> Option<RpcError> {
        let refuses = self.refuses.lock().expect("whole");
        let refused =
            refuses.filter(|(text, _)| line.contains(text)).map(|(_, kind)| RpcError::new(kind, "as the test says"));
        self.lines.send_modify(|lines| lines.push(line));
        refused
    }
}

async fn on_agent_event(seen: Arc<Seen>, params: AgentEventParams, _: CallCx) -> Result<Empty, RpcError> {
    if let AgentEvent::Session { session_id } = &params.event {
        *seen.session.lock().expect("whole") = Some(session_id.clone());
    }
    seen.saw(told(&params.event)).map_or(Ok(Empty {}), Err)
}

async fn on_progress(seen: Arc<Seen>, params: ProgressParams, _: CallCx) -> Result<Empty, RpcError> {
    seen.saw(format!("progress {}", params.text));
    Ok(Empty {})
}

async fn on_permission_request(
    seen: Arc<Seen>,
    params: PermissionParams,
    _: CallCx,
) -> Result<PermissionResult, RpcError> {
    seen.saw(format!("may {} {}", params.tool_name, params.arguments));
    let allowed = !params.arguments.to_string().contains("forbidden");
    Ok(PermissionResult { allowed, reason: (!allowed).then(|| "The test forbids it.".to_owned()) })
}

async fn on_tool_call(seen: Arc<Seen>, params: ToolCallParams, _: CallCx) -> Result<ToolCallResult, RpcError> {
    seen.saw(format!("calls {} {}", params.tool_name, params.arguments));
    let ends = params.tool_name == "final_answer";
    Ok(ToolCallResult {
        content: vec![Part::text("forty-two")],
        structured_content: ends.then(|| params.arguments.clone()),
        is_error: false,
        end_run: ends.then_some(true),
    })
}

/// An event in one line.
pub(crate) fn told(event: &AgentEvent) -> String {
    let shown = |count: Option<u64>| count.map_or("?".to_owned(), |count| count.to_string());
    match event {
        AgentEvent::Session { .. } => "session".to_owned(),
        AgentEvent::Text { text } => format!("text {text:?}"),
        AgentEvent::Reasoning { text } => format!("reasoning {text:?}"),
        AgentEvent::ToolCall { tool_name, arguments, .. } => format!("tool {tool_name} {arguments}"),
        AgentEvent::ToolResult { content, is_error, .. } => {
            let text = Content::Parts(content.clone()).as_text().into_owned();
            format!("{} {text:?}", if *is_error { "failed" } else { "result" })
        }
        AgentEvent::Usage { usage, calls, cost_usd, model } => {
            let (input, output, cached) = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens);
            let model = model.as_deref().unwrap_or("-");
            let cost = cost_usd.map_or("?".to_owned(), |cost| format!("{cost:.6}"));
            format!(
                "usage {calls} calls, {} in, {} out, {} cached, ${cost}, {model}",
                shown(input),
                shown(output),
                shown(cached)
            )
        }
        AgentEvent::Lacks { what, why } => format!("lacks {what}: {why}"),
        AgentEvent::Other => "other".to_owned(),
    }
}

/// What a `run` gave, in short.
pub(crate) fn brief(ended: &Result<RunResult, CallError>) -> String {
    match ended {
        Ok(result) => {
            let reason = serde_json::to_value(result.stop_reason).expect("JSON");
            let structured = result.structured.as_ref().map(|value| format!(" {value}")).unwrap_or_default();
            format!("{}: {}{structured}", reason.as_str().expect("a text"), result.content.as_text())
        }
        Err(error) => format!("{}: {error}", error.kind().map_or("no kind", Kind::name)),
    }
}

/// How a runner is started.
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    /// Variables of the runner that the agent gets, too.
    pub(crate) env: Vec<(&'static str, String)>,
    /// Further arguments of the agent.
    pub(crate) more: Vec<String>,
    pub(crate) home: PathBuf,
    /// The calls of its model that a run may make.
    pub(crate) turns: Option<u32>,
}

pub(crate) struct Host {
    pub(crate) peer: Peer,
    pub(crate) seen: Arc<Seen>,
    pub(crate) child: Child,
    pub(crate) initialized: InitializeResult,
    pub(crate) process: ProcessId,
    link: JoinHandle<LinkReport>,
    /// For temporary files.
    pub(crate) temporary: TempDir,
}

impl Host {
    pub(crate) async fn start(setup: &Setup) -> Self {
        let temporary = tempfile::Builder::new().prefix("a").tempdir().expect("a folder");
        let process = ProcessId::mint();
        let mut command = Command::new(env!("CARGO_BIN_EXE_assistant-runner"));
        command.args(["cli", setup.name, "--program"]).arg(&setup.program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", &setup.home).env("TMPDIR", temporary.path());
        command.env("ASSISTANT_PROCESS_ID", process.to_string()).env("CLAUDECODE", "1").env("SOME_KEY", "secret");
        for (name, value) in &setup.env {
            command.arg("--env").arg(name).env(name, value);
        }
        command.arg("--").args(&setup.more);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().expect("starts");
        let (stdin, stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let seen = Arc::new(Seen {
            lines: watch::Sender::new(Vec::new()),
            refuses: Mutex::default(),
            session: Mutex::default(),
        });
        let service = Service::new(seen.clone())
            .on(OnAgentEvent, on_agent_event)
            .on(OnPermissionRequest, on_permission_request)
            .on(OnProgress, on_progress)
            .on(OnToolCall, on_tool_call);
        let (peer, link) = connect(stdout, stdin, service, PeerLimits::default());
        let link = tokio::spawn(link);
        let params = InitializeParams {
            protocol_version: 1,
            process_id: process,
            thread_id: ThreadId::mint(),
            host: Program::default(),
            max_frame_bytes: MAX_FRAME_BYTES,
            capabilities: HostCapabilities {},
            limits: RunLimits { turns: setup.turns, ..RunLimits::default() },
        };
        let initialized = timeout(SOON, peer.call::<Initialize>(&params)).await.expect("soon").expect("is answered");
        Self { peer, seen, child, initialized, process, link, temporary }
    }

    /// Calls `run`; what is not named is as usual.
    pub(crate) async fn run(&self, params: Value) -> String {
        let peer = self.peer.clone();
        brief(&timeout(SOON, run(peer, params)).await.expect("a run ends soon"))
    }

    /// Begins a run beside the test.
    pub(crate) fn begin(&self, params: Value) -> JoinHandle<String> {
        let peer = self.peer.clone();
        tokio::spawn(async move { brief(&timeout(SOON, run(peer, params)).await.expect("a run ends soon")) })
    }

    pub(crate) async fn cancel(&self, grace_ms: u64) {
        let params = CancelParams { reason: String::new(), grace_ms };
        timeout(SOON, self.peer.call::<Cancel>(&params)).await.expect("soon").expect("is answered");
    }

    pub(crate) fn mail(content: &str) -> Mail {
        Mail {
            id: MessageId::mint(),
            from_assistant_id: "main".to_owned(),
            to_assistant_id: "a".to_owned(),
            from_process_id: None,
            to_process_id: None,
            content: content.to_owned(),
            created_at: 0,
            read_at: None,
        }
    }

    pub(crate) fn deliver(&self, message: impl Into<DeliverMessageParams>) -> JoinHandle<Result<Empty, CallError>> {
        let peer = self.peer.clone();
        let params = message.into();
        tokio::spawn(async move { timeout(SOON, peer.call::<DeliverMessage>(&params)).await.expect("soon") })
    }

    pub(crate) fn refuse(&self, text: &'static str, kind: Kind) {
        *self.seen.refuses.lock().expect("whole") = Some((text, kind));
    }

    /// Waits until a line of this beginning was seen.
    pub(crate) async fn sees(&self, beginning: &str) {
        let mut lines = self.seen.lines.subscribe();
        let seen = timeout(SOON, lines.wait_for(|lines| lines.iter().any(|line| line.starts_with(beginning)))).await;
        assert!(seen.is_ok_and(|seen| seen.is_ok()), "never: {beginning}");
    }

    /// The agent's own session, as it told.
    pub(crate) fn session(&self) -> String {
        self.seen.session.lock().expect("whole").clone().expect("was told")
    }

    /// Forgets what was seen so far.
    pub(crate) fn forget(&self) {
        self.seen.lines.send_modify(Vec::clear);
    }

    /// What was seen so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen.lines.borrow().clone()
    }

    /// Ends the link without a word.
    #[cfg(target_os = "linux")]
    pub(crate) async fn hang_up(self) -> (Child, TempDir) {
        self.link.abort();
        // Aborted, it holds no pipe any more.
        let _ = self.link.await;
        (self.child, self.temporary)
    }

    /// Ends the runner in order, and waits for it: its exit code.
    pub(crate) async fn end(mut self) -> Option<i32> {
        timeout(SOON, self.peer.call::<Shutdown>(&Empty {})).await.expect("soon").expect("is answered");
        let status = timeout(SOON, self.child.wait()).await.expect("soon").expect("ends");
        self.link.abort();
        let left = left_in(self.temporary.path());
        assert_eq!(left, Vec::<String>::new(), "no private folder is left");
        status.code()
    }
}

/// The private folders that are left below a folder for temporary files.
pub(crate) fn left_in(temporary: &Path) -> Vec<String> {
    let around = std::fs::read_dir(temporary)
        .expect("lists")
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("assistant-runner-"));
    let inside = around.flat_map(|around| std::fs::read_dir(around.path()).expect("lists").flatten());
    inside.filter(|entry| entry.path().is_dir()).map(|entry| entry.path().display().to_string()).collect()
}

async fn run(peer: Peer, params: Value) -> Result<RunResult, CallError> {
    let mut whole = json!({
        "assistant": { "id": "a", "name": "A", "system_prompt": "You are Ada." },
        "query": "Go.",
        "agent": {},
    });
    for (name, value) in params.as_object().expect("an object") {
        whole[name] = value.clone();
    }
    peer.call::<Run>(&serde_json::from_value(whole).expect("params of a run")).await
}

/// Processes with the mark of a runner, by what they are.
#[cfg(target_os = "linux")]
pub(crate) fn marked(process: ProcessId) -> Vec<(i32, String)> {
    let mark = format!("ASSISTANT_PROCESS_ID={process}");
    let all = std::fs::read_dir("/proc").expect("Linux").flatten();
    let found = all.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let environ = std::fs::read(entry.path().join("environ")).ok()?;
        let has = environ.split(|byte| *byte == 0).any(|one| one == mark.as_bytes());
        let command = std::fs::read(entry.path().join("cmdline")).ok()?;
        has.then(|| (pid, String::from_utf8_lossy(&command).replace('\0', " ")))
    });
    found.collect()
}
