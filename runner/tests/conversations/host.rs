//! A host whose model answers from a script, and whose tools do what their names say.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::ids::{ProcessId, ThreadId};
use assistant_protocol::methods::{Cancel, Initialize, OnLlmRequest, OnToolCall, Ping, Run, Shutdown};
use assistant_protocol::peer::{CallError, LinkReport, Peer, PeerLimits, connect};
use assistant_protocol::service::{CallCx, Service};
use assistant_protocol::types::{
    CancelParams, Empty, HostCapabilities, InitializeParams, LlmRequestParams, LlmRequestResult, MAX_FRAME_BYTES, Part,
    Program, RunLimits, RunResult, ToolCallParams, ToolCallResult,
};
use serde_json::{Value, json};
use tokio::io::{duplex, split};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Duration, timeout};

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) struct Host {
    peer: Peer,
    script: Arc<Script>,
    runner: Mutex<Option<JoinHandle<LinkReport>>>,
    link: JoinHandle<LinkReport>,
}

struct Script {
    thread_id: ThreadId,
    answers: Mutex<VecDeque<Value>>,
    asked: Mutex<Value>,
    /// What happened, in order: `at X`, `cancelled X`, `did X`.
    events: watch::Sender<Vec<String>>,
}

impl Script {
    fn tell(&self, event: &str, name: &str) {
        self.events.send_modify(|events| events.push(format!("{event} {name}")));
    }

    async fn happens(&self, event: &str, name: &str) {
        let event = format!("{event} {name}");
        let mut events = self.events.subscribe();
        let seen = timeout(PATIENCE, events.wait_for(|events| events.contains(&event))).await;
        assert!(seen.is_ok_and(|seen| seen.is_ok()), "never: {event}");
    }

    async fn hang<T>(&self, name: &str, call: &CallCx) -> Result<T, RpcError> {
        self.tell("at", name);
        call.cancelled.cancelled().await;
        self.tell("cancelled", name);
        Err(scripted(Kind::Cancelled))
    }
}

fn scripted(kind: Kind) -> RpcError {
    RpcError::new(kind, "scripted")
}

fn kind_named(name: &Value) -> Kind {
    serde_json::from_value(name.clone()).expect("a kind of error")
}

async fn on_llm_request(
    script: Arc<Script>,
    params: LlmRequestParams,
    call: CallCx,
) -> Result<LlmRequestResult, RpcError> {
    assert_eq!(params.thread_id, script.thread_id);
    *script.asked.lock().expect("unpoisoned") = serde_json::to_value(&params).expect("JSON");
    let answer = script.answers.lock().expect("unpoisoned").pop_front().expect("the script has an answer");
    if answer["hang"] == true {
        return script.hang("model", &call).await;
    }
    if !answer["error"].is_null() {
        return Err(scripted(kind_named(&answer["error"])));
    }
    let result = json!({
        "message": { "role": "assistant", "content": answer["say"] },
        "finish_reason": answer["finish"].as_str().unwrap_or("stop"),
        "model": "script",
        "inserted": answer["inserted"],
    });
    Ok(serde_json::from_value(result).expect("a script of the right shape"))
}

async fn on_tool_call(script: Arc<Script>, params: ToolCallParams, call: CallCx) -> Result<ToolCallResult, RpcError> {
    assert_eq!(params.thread_id, script.thread_id);
    let name = params.tool_name.as_str();
    match name {
        "hang" => return script.hang(name, &call).await,
        "slow" => script.happens("did", "fast").await,
        _ => {}
    }
    script.tell("did", name);
    if let Some(kind) = name.strip_prefix("error:") {
        return Err(scripted(kind_named(&json!(kind))));
    }
    Ok(ToolCallResult {
        content: vec![Part::text(format!("{name} {}", params.arguments))],
        structured_content: None,
        is_error: name == "tool_error",
        end_run: (name == "final_answer").then_some(true),
    })
}

impl Host {
    /// A host with a runner that nothing was told yet.
    pub(crate) fn new(answers: Value) -> Self {
        let script = Arc::new(Script {
            thread_id: ThreadId::mint(),
            answers: Mutex::new(serde_json::from_value(answers).expect("a list")),
            asked: Mutex::new(Value::Null),
            events: watch::Sender::new(Vec::new()),
        });
        let (near, far) = duplex(4096);
        let (read, write) = split(far);
        let runner = tokio::spawn(assistant_runner::agent::serve(read, write));
        let service = Service::new(script.clone()).on(OnLlmRequest, on_llm_request).on(OnToolCall, on_tool_call);
        let (read, write) = split(near);
        let (peer, link) = connect(read, write, service, PeerLimits::default());
        Self { peer, script, runner: Mutex::new(Some(runner)), link: tokio::spawn(link) }
    }

    /// A host with a runner that is initialized.
    pub(crate) async fn ready(answers: Value) -> Self {
        let host = Self::new(answers);
        assert_eq!(host.initialize(1).await, Ok(()));
        host
    }

    pub(crate) async fn initialize(&self, protocol_version: u32) -> Result<(), String> {
        let params = InitializeParams {
            protocol_version,
            process_id: ProcessId::mint(),
            thread_id: self.script.thread_id,
            host: Program::default(),
            max_frame_bytes: MAX_FRAME_BYTES,
            capabilities: HostCapabilities {},
            limits: RunLimits::default(),
        };
        let told = self.peer.call::<Initialize>(&params).await.map_err(|error| shown(&error))?;
        assert_eq!((told.protocol_version, told.max_frame_bytes), (1, MAX_FRAME_BYTES));
        assert!(!told.capabilities.messages);
        Ok(())
    }

    /// Calls `run`, with an assistant if the params have none.
    pub(crate) async fn run(&self, mut params: Value) -> Result<RunResult, CallError> {
        if params["assistant"].is_null() {
            params["assistant"] = json!({ "id": "a", "name": "A", "system_prompt": "Be brief." });
        }
        let params = serde_json::from_value(params).expect("params of `run`");
        timeout(PATIENCE, self.peer.call::<Run>(&params)).await.expect("the run ends")
    }

    pub(crate) async fn cancel(&self) {
        let params = CancelParams { reason: String::new(), grace_ms: 1 };
        self.peer.call::<Cancel>(&params).await.expect("`cancel` is always answered");
    }

    pub(crate) async fn ping(&self) {
        self.peer.call::<Ping>(&Empty {}).await.expect("`ping` is always answered");
    }

    pub(crate) async fn shutdown(&self) {
        self.peer.call::<Shutdown>(&Empty {}).await.expect("`shutdown` is always answered");
    }

    /// Closes the runner's input.
    pub(crate) fn close(&self) {
        self.link.abort();
    }

    /// How the runner's link ended.
    pub(crate) async fn end(&self) -> String {
        let runner = self.runner.lock().expect("unpoisoned").take().expect("asked once");
        let report = timeout(PATIENCE, runner).await.expect("the runner ends").expect("the runner does not panic");
        format!("{:?}", report.end)
    }

    /// Waits until the model or a tool hangs.
    pub(crate) async fn is_at(&self, name: &str) {
        self.script.happens("at", name).await;
    }

    /// Waits until the call that hangs was cancelled.
    pub(crate) async fn was_cancelled(&self, name: &str) {
        self.script.happens("cancelled", name).await;
    }

    /// The tools that were called, in order.
    pub(crate) fn called(&self) -> Vec<String> {
        let events = self.script.events.borrow();
        events.iter().filter_map(|event| event.strip_prefix("did ").map(str::to_owned)).collect()
    }

    /// What the model was last asked with.
    pub(crate) fn asked_json(&self) -> Value {
        self.script.asked.lock().expect("unpoisoned").clone()
    }

    /// The same, a line a message.
    pub(crate) fn asked(&self) -> Vec<String> {
        let asked = self.asked_json();
        let messages = asked["messages"].as_array().expect("the model was asked");
        messages.iter().map(|message| format!("{}: {}", text(&message["role"]), said(&message["content"]))).collect()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// Content in short.
fn said(content: &Value) -> String {
    let Value::Array(parts) = content else { return text(content).to_owned() };
    let parts = parts.iter().map(|part| match text(&part["type"]) {
        "text" => text(&part["text"]).to_owned(),
        "tool_call" => {
            let arguments = part.get("arguments").unwrap_or(&part["arguments_text"]);
            format!("call({} {} {arguments})", text(&part["call_id"]), text(&part["tool_name"]))
        }
        "tool_result" => {
            let error = if part["is_error"] == true { ", an error" } else { "" };
            format!("result({} {}{error})", text(&part["call_id"]), said(&part["content"]))
        }
        _ => part.to_string(),
    });
    parts.collect::<Vec<_>>().join(" ")
}

fn shown(error: &CallError) -> String {
    let kind = error.kind().map_or("no kind", Kind::name);
    format!("{kind}: {error}")
}

/// What a `run` gave, in short.
pub(crate) fn brief(ended: &Result<RunResult, CallError>) -> String {
    match ended {
        Ok(result) => {
            let json = serde_json::to_value(result).expect("JSON");
            let structured = result.structured.as_ref().map(|value| format!(" {value}")).unwrap_or_default();
            format!("{}: {}{structured}", text(&json["stop_reason"]), said(&json["content"]))
        }
        Err(error) => shown(error),
    }
}
