//! Runners that a test plays by hand: the test writes what the runner says, and reads what the host says to it.
//!
//! A bed whose runner is `puppet-runner` with [`Puppets::args`] gives each process to the test as a [`Puppet`], at its
//! first `run`. What every runner does alike (`initialize`, `ping`, `cancel`, `shutdown`) it does by itself.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::net::UnixListener;
use tokio::sync::{mpsc, oneshot};

use crate::bed::SOON;

/// Requests of `run` that the test has not taken.
const RUNS_MAX: usize = 64;

/// Where puppets come in.
pub struct Puppets {
    listener: UnixListener,
    path: PathBuf,
    capabilities: Value,
}

/// A runner in the hand of the test.
pub struct Puppet {
    /// The thread of its process.
    pub thread: String,
    /// The params of its first `run`.
    pub run: Value,
    /// Its conversation, as it holds it.
    pub messages: Vec<Value>,
    run_id: Value,
    runs: mpsc::Receiver<Value>,
    strings: Strings,
    calls: u64,
}

/// Who waits for the answer to which request.
type Asked = HashMap<u64, oneshot::Sender<Result<Value, Value>>>;

#[derive(Clone)]
struct Strings {
    write: Arc<Mutex<UnixStream>>,
    answers: Arc<Mutex<Asked>>,
}

/// An answer of the host that is to come.
pub struct Reply(oneshot::Receiver<Result<Value, Value>>);

impl Reply {
    /// The result, or the error.
    ///
    /// # Errors
    /// The host's, as JSON.
    ///
    /// # Panics
    /// Where the host never answers.
    pub async fn outcome(self) -> Result<Value, Value> {
        let answered = tokio::time::timeout(SOON, self.0).await.expect("the host answers");
        answered.unwrap_or_else(|_| Err(json!("the link has ended")))
    }

    /// The result.
    ///
    /// # Panics
    /// Where it is an error.
    pub async fn result(self) -> Value {
        self.outcome().await.expect("a result")
    }
}

impl Puppets {
    /// Waits for puppets in a folder.
    ///
    /// # Panics
    /// Where that cannot be, or outside of a runtime.
    pub fn new(dir: &Path) -> Self {
        let path = dir.join("puppets");
        Self { listener: UnixListener::bind(&path).expect("a socket"), path, capabilities: json!({}) }
    }

    /// The same for puppets that run agents of their own.
    ///
    /// # Panics
    /// Where that cannot be, or outside of a runtime.
    pub fn of_agents(dir: &Path) -> Self {
        Self { capabilities: json!({ "messages": true, "agent": true }), ..Self::new(dir) }
    }

    /// The arguments of `puppet-runner`.
    pub fn args(&self) -> Vec<OsString> {
        vec![self.path.clone().into()]
    }

    /// The next process that is run.
    ///
    /// # Panics
    /// Where none comes.
    pub async fn next(&self) -> Puppet {
        let accepted = tokio::time::timeout(SOON, self.listener.accept()).await.expect("a runner").expect("a runner");
        let socket = accepted.0.into_std().expect("a socket");
        socket.set_nonblocking(false).expect("a socket");
        let strings =
            Strings { write: Arc::new(Mutex::new(socket.try_clone().expect("a socket"))), answers: Arc::default() };
        let (runs_in, mut runs) = mpsc::channel(RUNS_MAX);
        let (thread_in, thread) = oneshot::channel();
        let (reading, capabilities) = (strings.clone(), self.capabilities.clone());
        std::thread::spawn(move || reading.read(socket, &capabilities, thread_in, &runs_in));
        let thread = tokio::time::timeout(SOON, thread).await.expect("it is initialized").expect("it is initialized");
        let (run_id, run) = next_run(&mut runs).await;
        let history = run["history"].as_array().cloned().unwrap_or_default();
        let query = run["query"].as_str().map(|text| json!({ "role": "user", "content": text }));
        let messages = history.into_iter().chain(query).collect();
        Puppet { thread, run, messages, run_id, runs, strings, calls: 0 }
    }
}

async fn next_run(runs: &mut mpsc::Receiver<Value>) -> (Value, Value) {
    let request = tokio::time::timeout(SOON, runs.recv()).await.expect("it is run").expect("it is run");
    (request["id"].clone(), request["params"].clone())
}

impl Strings {
    fn write(&self, message: &Value) {
        let mut write = self.write.lock().unwrap_or_else(PoisonError::into_inner);
        // A runner that has been killed says nothing.
        let _ = write.write_all(format!("{message}\n").as_bytes());
    }

    fn read(
        &self,
        socket: UnixStream,
        capabilities: &Value,
        thread: oneshot::Sender<String>,
        runs: &mpsc::Sender<Value>,
    ) {
        let mut thread = Some(thread);
        for line in BufReader::new(socket).lines().map_while(Result::ok) {
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            let id = message["id"].clone();
            let answer = |result: Value| self.write(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
            match message["method"].as_str() {
                Some("initialize") => {
                    let told = message["params"]["thread_id"].as_str().unwrap_or_default().to_owned();
                    if let Some(thread) = thread.take() {
                        // Nobody wants it where the test is over.
                        let _ = thread.send(told);
                    }
                    let version = &message["params"]["protocol_version"];
                    answer(json!({
                        "protocol_version": version, "runner": { "name": "puppet", "version": "1" },
                        "max_frame_bytes": 67_108_864, "capabilities": capabilities,
                    }));
                }
                Some("run") => {
                    if runs.blocking_send(message).is_err() {
                        break;
                    }
                }
                Some("shutdown") => {
                    answer(json!({}));
                    break;
                }
                Some(_) => answer(json!({})),
                None => {
                    let key = id.as_u64().unwrap_or_default();
                    let waiting = self.answers.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
                    if let Some(waiting) = waiting {
                        let error = message.get("error").cloned();
                        // Nobody waits for it any more.
                        let _ = waiting.send(error.map_or_else(|| Ok(message["result"].clone()), Err));
                    }
                }
            }
        }
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let write = self.write.lock().unwrap_or_else(PoisonError::into_inner);
        // It is gone already where the host has killed the runner.
        let _ = write.shutdown(Shutdown::Both);
    }
}

impl Puppet {
    /// Asks the host.
    pub fn ask(&mut self, method: &str, params: Value) -> Reply {
        self.calls += 1;
        let (answer, answered) = oneshot::channel();
        self.strings.answers.lock().unwrap_or_else(PoisonError::into_inner).insert(self.calls, answer);
        self.strings.write(&json!({ "jsonrpc": "2.0", "id": self.calls, "method": method, "params": params }));
        Reply(answered)
    }

    /// Asks the model with the conversation that it holds; [`Puppet::takes`] takes the answer in.
    pub fn asks_model(&mut self) -> Reply {
        self.asks_as("You are a puppet.")
    }

    /// The same under a prompt of the test's own, by which a stepped model tells puppets apart.
    pub fn asks_as(&mut self, system: &str) -> Reply {
        let mut messages = vec![json!({ "role": "system", "content": system })];
        messages.extend(self.messages.clone());
        self.ask("on_llm_request", json!({ "thread_id": self.thread, "messages": messages }))
    }

    /// Appends what a model call was answered with.
    pub fn takes(&mut self, answer: &Value) {
        self.messages.extend(answer["inserted"].as_array().cloned().unwrap_or_default());
        self.messages.push(answer["message"].clone());
    }

    /// Calls a tool; the answer is not taken into the conversation.
    pub fn calls(&mut self, tool: &str, arguments: Value) -> Reply {
        let call = format!("c{}", self.calls);
        let params = json!({ "thread_id": self.thread, "call_id": call, "tool_name": tool, "arguments": arguments });
        self.ask("on_tool_call", params)
    }

    /// Calls a tool, takes the result into the conversation, and gives it: the value, or the tool's error.
    pub async fn uses(&mut self, tool: &str, arguments: Value) -> Value {
        let call = format!("c{}", self.calls);
        let result = self.calls(tool, arguments).result().await;
        let part = json!({
            "type": "tool_result", "call_id": call, "content": result["content"], "is_error": result["is_error"],
        });
        self.messages.push(json!({ "role": "tool", "content": [part] }));
        result["structured_content"].clone()
    }

    /// Tells what its agent does, and gives the host's answer.
    ///
    /// # Errors
    /// The host's, as JSON.
    pub async fn tells(&mut self, event: Value) -> Result<Value, Value> {
        self.ask("on_agent_event", json!({ "thread_id": self.thread, "event": event })).outcome().await
    }

    /// Asks whether its agent may call a tool of its own.
    pub fn may(&mut self, call: &str, tool: &str, arguments: Value) -> Reply {
        let params = json!({ "thread_id": self.thread, "call_id": call, "tool_name": tool, "arguments": arguments });
        self.ask("on_permission_request", params)
    }

    /// Answers the current `run` with this error of the host's.
    pub fn fails_with(&mut self, error: &Value) {
        self.strings.write(&json!({ "jsonrpc": "2.0", "id": self.run_id, "error": error }));
    }

    /// Answers the current `run`: it has finished with a text.
    pub fn ends(&mut self, text: &str) {
        let result = json!({ "stop_reason": "finished", "content": text });
        self.strings.write(&json!({ "jsonrpc": "2.0", "id": self.run_id, "result": result }));
    }

    /// Answers the current `run` with an error.
    pub fn fails_run(&mut self, why: &str) {
        let error = json!({ "code": -32603, "message": why });
        self.strings.write(&json!({ "jsonrpc": "2.0", "id": self.run_id, "error": error }));
    }

    /// Whether `run` is called again before the link ends.
    pub async fn is_run_again(&mut self) -> bool {
        let next = tokio::time::timeout(SOON, self.runs.recv()).await.expect("another run, or the end");
        match next {
            Some(request) => {
                self.run_id = request["id"].clone();
                true
            }
            None => false,
        }
    }

    /// Dies without a word.
    pub fn dies(self) {
        let write = self.strings.write.lock().unwrap_or_else(PoisonError::into_inner);
        // It is gone already where the host has killed the runner.
        let _ = write.shutdown(Shutdown::Both);
    }
}
