//! A host that has one runner, the program `assistant-runner acp`, and remembers what that tells.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::ids::{ProcessId, ThreadId};
use assistant_protocol::methods::{
    Cancel, Initialize, OnAgentEvent, OnPermissionRequest, OnProgress, OnToolCall, Run, Shutdown,
};
use assistant_protocol::peer::{CallError, LinkReport, Peer, PeerLimits, connect};
use assistant_protocol::service::{CallCx, Service};
use assistant_protocol::types::{
    AgentEvent, AgentEventParams, CancelParams, Content, Empty, HostCapabilities, InitializeParams, MAX_FRAME_BYTES,
    Part, PermissionParams, PermissionResult, Program, ProgressParams, RunLimits, RunParams, RunResult, ToolCallParams,
    ToolCallResult, Usage,
};
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// What is told of a turn of an agent that tells nothing of what it uses.
pub(crate) const NO_USAGE: &str = "usage - - - calls 1 cost - model -";
/// How long a test waits for what must happen, with room for a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

/// A host with one runner.
pub(crate) struct Host {
    pub(crate) peer: Peer,
    pub(crate) child: Child,
    pub(crate) mark: String,
    seen: Arc<Seen>,
    link: JoinHandle<LinkReport>,
}

/// What happened, in order, in short words.
struct Seen {
    told: watch::Sender<Vec<String>>,
    judge: Judge,
    /// How many events are taken; the one behind them is answered with this error.
    refuses: Mutex<Option<(usize, Kind)>>,
}

/// Whether a call may be made; none is never answered.
pub(crate) type Judge = fn(&PermissionParams) -> Option<bool>;

impl Seen {
    fn tell(&self, what: String) {
        self.told.send_modify(|told| told.push(what));
    }
}

async fn on_event(seen: Arc<Seen>, params: AgentEventParams, _: CallCx) -> Result<Empty, RpcError> {
    seen.tell(in_short(&params.event));
    let mut refuses = seen.refuses.lock().unwrap_or_else(PoisonError::into_inner);
    match &mut *refuses {
        Some((0, kind)) => Err(RpcError::new(*kind, "the limit of the test is reached")),
        Some((left, _)) => {
            *left -= 1;
            Ok(Empty {})
        }
        None => Ok(Empty {}),
    }
}

async fn on_permission(seen: Arc<Seen>, params: PermissionParams, _: CallCx) -> Result<PermissionResult, RpcError> {
    let PermissionParams { call_id, tool_name, arguments, .. } = &params;
    seen.tell(format!("may {call_id} {tool_name} {arguments}"));
    match (seen.judge)(&params) {
        Some(allowed) => Ok(PermissionResult { allowed, reason: None }),
        None => std::future::pending().await,
    }
}

async fn on_progress(seen: Arc<Seen>, params: ProgressParams, _: CallCx) -> Result<Empty, RpcError> {
    seen.tell(format!("progress {} {:.2}", params.text, params.fraction.unwrap_or(-1.0)));
    Ok(Empty {})
}

async fn on_tool_call(seen: Arc<Seen>, params: ToolCallParams, _: CallCx) -> Result<ToolCallResult, RpcError> {
    seen.tell(format!("tool {} {}", params.tool_name, params.arguments));
    let content = vec![Part::text(format!("the answer of {}", params.tool_name))];
    Ok(ToolCallResult { content, structured_content: None, is_error: false, end_run: None })
}

/// An event in a line.
fn in_short(event: &AgentEvent) -> String {
    match event {
        AgentEvent::Session { session_id } => format!("session {session_id}"),
        AgentEvent::Text { text } if text.len() > 200 => format!("text of {} bytes", text.len()),
        AgentEvent::Text { text } => format!("text {text}"),
        AgentEvent::Reasoning { text } => format!("thought {text}"),
        AgentEvent::ToolCall { call_id, tool_name, arguments } => format!("call {call_id} {tool_name} {arguments}"),
        AgentEvent::ToolResult { call_id, content, is_error } => {
            let text = Content::Parts(content.clone()).as_text().into_owned();
            format!("{} {call_id} {text}", if *is_error { "failed" } else { "result" })
        }
        AgentEvent::Usage { usage, calls, cost_usd, model } => {
            let Usage { input_tokens, output_tokens, cache_read_tokens, .. } = usage;
            let number = |tokens: &Option<u64>| tokens.map_or("-".to_owned(), |tokens| tokens.to_string());
            let tokens = [input_tokens, output_tokens, cache_read_tokens].map(number).join(" ");
            let cost = cost_usd.map_or("-".to_owned(), |cost| cost.to_string());
            format!("usage {tokens} calls {calls} cost {cost} model {}", model.as_deref().unwrap_or("-"))
        }
        AgentEvent::Lacks { what, why } => format!("lacks {what}: {why}"),
        AgentEvent::Other => "other".to_owned(),
    }
}

/// Allows everything.
pub(crate) fn allow(_: &PermissionParams) -> Option<bool> {
    Some(true)
}

impl Host {
    /// Starts the runner with arguments behind `acp`, with `env` beside an empty environment.
    pub(crate) async fn start<A: AsRef<OsStr>>(args: &[A], env: &[(&str, &OsStr)], judge: Judge) -> Self {
        let mark = ProcessId::mint().to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_assistant-runner"));
        command.arg("acp").args(args).env_clear().envs(env.iter().copied());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("ASSISTANT_PROCESS_ID", &mark);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
        let mut child = command.spawn().expect("starts");
        let (stdin, stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let seen = Arc::new(Seen { told: watch::Sender::default(), judge, refuses: Mutex::default() });
        let service = Service::new(seen.clone())
            .on(OnAgentEvent, on_event)
            .on(OnPermissionRequest, on_permission)
            .on(OnProgress, on_progress)
            .on(OnToolCall, on_tool_call);
        let (peer, link) = connect(stdout, stdin, service, PeerLimits::for_frames(MAX_FRAME_BYTES));
        let host = Self { peer, child, mark, seen, link: tokio::spawn(link) };
        let params = InitializeParams {
            protocol_version: 1,
            process_id: ProcessId::mint(),
            thread_id: ThreadId::mint(),
            host: Program { name: "test".to_owned(), version: "1".to_owned() },
            max_frame_bytes: MAX_FRAME_BYTES,
            capabilities: HostCapabilities::default(),
            limits: RunLimits::default(),
        };
        let runner = host.peer.call::<Initialize>(&params).await.expect("initialized");
        assert!(runner.capabilities.agent && runner.capabilities.messages, "{runner:?}");
        host
    }

    /// Runs a task; `more` are further members of the params.
    pub(crate) async fn run(&self, query: &str, more: Value) -> Result<RunResult, CallError> {
        let params = params(query, more);
        timeout(PATIENCE, self.peer.call::<Run>(&params)).await.expect("the run ends in time")
    }

    /// Begins a task.
    pub(crate) fn begin(&self, query: &str, more: Value) -> JoinHandle<Result<RunResult, CallError>> {
        let (peer, params) = (self.peer.clone(), params(query, more));
        tokio::spawn(async move { peer.call::<Run>(&params).await })
    }

    /// Cancels what runs.
    pub(crate) async fn cancel(&self, grace_ms: u64) {
        self.peer.call::<Cancel>(&CancelParams { reason: "the test".to_owned(), grace_ms }).await.expect("answered");
    }

    /// Refuses the event behind `taken` further ones.
    pub(crate) fn refuse(&self, taken: usize, kind: Kind) {
        *self.seen.refuses.lock().unwrap_or_else(PoisonError::into_inner) = Some((taken, kind));
    }

    /// Waits until something was told that begins so.
    pub(crate) async fn happens(&self, beginning: &str) {
        let mut told = self.seen.told.subscribe();
        let seen = timeout(PATIENCE, told.wait_for(|told| told.iter().any(|line| line.starts_with(beginning)))).await;
        assert!(seen.is_ok_and(|seen| seen.is_ok()), "never: {beginning}; but {:#?}", self.told());
    }

    /// The most memory that the runner has had, in KiB, where the system tells.
    pub(crate) fn peak_kib(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()?)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.split_whitespace().next()?.parse().ok()
    }

    /// What was told so far, without words about usage of an agent that tells none.
    pub(crate) fn told(&self) -> Vec<String> {
        let mut told = self.all_told();
        told.retain(|line| line != NO_USAGE);
        told
    }

    /// All that was told.
    pub(crate) fn all_told(&self) -> Vec<String> {
        self.seen.told.borrow().clone()
    }

    /// Waits until all that the runner has started has exited, whether the runner knows it or not. Whether the system tells.
    pub(crate) async fn started_ones_exit(&self) -> bool {
        let runner = self.child.id().expect("lives");
        let begun = Instant::now();
        while let Some(states) = states_below(runner) {
            if states.iter().all(|state| state == "Z") {
                return true;
            }
            assert!(begun.elapsed() < PATIENCE, "they live: {states:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    /// Forgets what was told so far.
    pub(crate) fn forget(&self) {
        self.seen.told.send_modify(Vec::clear);
    }

    /// Ends the runner in order; nothing of it is left.
    pub(crate) async fn end(mut self) {
        self.peer.call::<Shutdown>(&Empty {}).await.expect("answered");
        self.peer.close();
        let _ = timeout(PATIENCE, &mut self.link).await.expect("the link ends");
        let status = timeout(PATIENCE, self.child.wait()).await.expect("the runner exits in time");
        assert_eq!(status.expect("waited for").code(), Some(0));
        nothing_is_left(&self.mark).await;
    }
}

fn params(query: &str, more: Value) -> RunParams {
    let mut params = json!({ "assistant": { "id": "a", "name": "A", "system_prompt": "" }, "query": query });
    params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    serde_json::from_value(params).expect("params of a run")
}

/// How a run ended, in a line.
pub(crate) fn ended(result: Result<RunResult, CallError>) -> String {
    match result {
        Ok(RunResult { stop_reason, content, .. }) => {
            let text = content.as_text().into_owned();
            let text = if text.len() > 200 { format!("{} bytes", text.len()) } else { text };
            format!("{} {text}", serde_json::to_value(stop_reason).expect("JSON").as_str().expect("a name"))
        }
        Err(CallError::Answered(error)) => format!("{}: {}", error.kind().map_or("?", Kind::name), error.message),
        Err(other) => format!("link: {other}"),
    }
}

/// Waits until no process has the mark in its environment, where the system tells.
pub(crate) async fn nothing_is_left(mark: &str) {
    let begun = Instant::now();
    loop {
        let left = marked(mark);
        if left.is_empty() {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "processes are left: {left:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The states of a process's children, where the system tells.
fn states_below(parent: u32) -> Option<Vec<String>> {
    let stats = std::fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name before may hold anything.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        Some((fields.next()?.to_owned(), fields.next()?.parse::<u32>().ok()?))
    });
    Some(stats.filter(|(_, of)| *of == parent).map(|(state, _)| state).collect())
}

/// Processes with the mark in their environment.
pub(crate) fn marked(mark: &str) -> Vec<String> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let has_mark = |path: &Path| {
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|one| one == format!("ASSISTANT_PROCESS_ID={mark}").as_bytes())
    };
    let found = all.flatten().map(|entry| entry.path()).filter(|path| has_mark(path));
    let told = |path: PathBuf| {
        let command = std::fs::read(path.join("cmdline")).unwrap_or_default();
        format!("{} {}", path.display(), String::from_utf8_lossy(&command).replace('\0', " "))
    };
    found.map(told).collect()
}

/// Says that a test is skipped, also where what tests print is kept back.
pub(crate) fn skip(why: &str) {
    writeln!(std::io::stderr(), "skipped: {why}").expect("is told");
}
