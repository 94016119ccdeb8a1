//! One connection of a client: calls of several workers at once over the stdio of a program, each with its own answer.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

/// Within this a call is answered, whatever happens: what clients bear, and a margin for a loaded machine.
const ANSWERED_WITHIN: Duration = Duration::from_secs(120);

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    /// The result.
    Done(Value),
    /// An error by its code, and all of it.
    Told(String, Value),
    /// The host or the program went first: whether it was done is unknown.
    Lost,
    /// Nothing came within any time.
    Never,
}

type Pending = Arc<Mutex<Option<HashMap<u64, Sender<Value>>>>>;

/// A program that serves MCP on its stdio, and the calls in flight.
pub(super) struct Line {
    child: Mutex<Child>,
    stdin: Mutex<Option<ChildStdin>>,
    pending: Pending,
    last_id: AtomicU64,
    deaf: Arc<AtomicBool>,
    reader: Mutex<Option<std::thread::JoinHandle<()>>>,
}

pub(super) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    /// Starts the program and shakes hands. None where it went before that was done.
    pub(super) fn open(mut command: Command) -> std::io::Result<Option<Arc<Self>>> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let pending: Pending = Arc::new(Mutex::new(Some(HashMap::new())));
        let deaf = Arc::new(AtomicBool::new(false));
        let reader = child.stdout.take().map(|stdout| {
            let (pending, deaf) = (pending.clone(), deaf.clone());
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    while deaf.load(Ordering::Relaxed) {
                        std::thread::park();
                    }
                    let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
                    let waiting = message["id"].as_u64().and_then(|id| held(&pending).as_mut()?.remove(&id));
                    if let Some(waiting) = waiting {
                        // Whoever asked has given up.
                        drop(waiting.send(message));
                    }
                }
                // Everyone who waits sees the end.
                held(&pending).take();
            })
        });
        let line = Arc::new(Self {
            stdin: Mutex::new(child.stdin.take()),
            child: Mutex::new(child),
            pending,
            last_id: AtomicU64::new(0),
            deaf,
            reader: Mutex::new(reader),
        });
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "chaos", "version": "1" },
        });
        let shaken = matches!(line.ask("initialize", &params), Ok(answer) if answer.get("result").is_some())
            && line.write("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
        Ok(shaken.then_some(line))
    }

    /// Whether the program still talks.
    pub(super) fn lives(&self) -> bool {
        held(&self.pending).is_some()
    }

    /// Writes bytes as they are; whether they could be written.
    pub(super) fn write(&self, text: &str) -> bool {
        let mut stdin = held(&self.stdin);
        stdin.as_mut().is_some_and(|stdin| stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush()).is_ok())
    }

    fn ask(&self, method: &str, params: &Value) -> Result<Value, Answer> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = channel();
        match held(&self.pending).as_mut() {
            Some(pending) => pending.insert(id, sender),
            None => return Err(Answer::Lost),
        };
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        if !self.write(&format!("{request}\n")) {
            return Err(Answer::Lost);
        }
        answer.recv_timeout(ANSWERED_WITHIN).map_err(|error| match error {
            RecvTimeoutError::Disconnected => Answer::Lost,
            RecvTimeoutError::Timeout => Answer::Never,
        })
    }

    /// Calls a tool.
    pub(super) fn call(&self, tool: &str, arguments: &Value) -> Answer {
        let answer = match self.ask("tools/call", &json!({ "name": tool, "arguments": arguments })) {
            Ok(answer) => answer,
            Err(lost) => return lost,
        };
        let result = &answer["result"];
        if answer.get("error").is_none() && result["isError"] != true {
            return Answer::Done(result["structuredContent"].clone());
        }
        let told = match result["content"][0]["text"].as_str() {
            Some(text) => serde_json::from_str(text).unwrap_or_else(|_| json!({ "message": text })),
            None => answer["error"].clone(),
        };
        // Killed while it was started.
        if told["message"].as_str().is_some_and(|text| text.starts_with("there is no host")) {
            return Answer::Lost;
        }
        match told["code"].as_str() {
            Some("host_lost") => Answer::Lost,
            Some(code) => Answer::Told(code.to_owned(), told),
            None => Answer::Told("none".to_owned(), told),
        }
    }

    /// Sends a call whose answer nobody waits for.
    pub(super) fn call_and_forget(&self, tool: &str, arguments: &Value) {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let params = json!({ "name": tool, "arguments": arguments });
        // It may be gone.
        let _ = self
            .write(&format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })));
    }

    /// Reads no more, or again.
    pub(super) fn be_deaf(&self, deaf: bool) {
        self.deaf.store(deaf, Ordering::Relaxed);
        if let Some(reader) = held(&self.reader).as_ref() {
            reader.thread().unpark();
        }
    }

    /// Kills the program with -9.
    pub(super) fn kill(&self) {
        // It may have ended already.
        drop(held(&self.child).kill());
        held(&self.pending).take();
        self.be_deaf(false);
    }

    /// Waits until the program has ended.
    pub(super) fn wait(&self) {
        // It is gone where it cannot be waited for.
        drop(held(&self.child).wait());
    }

    /// Closes its end, so that the program ends in order.
    pub(super) fn close(&self) {
        self.be_deaf(false);
        held(&self.stdin).take();
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.close();
        self.kill();
        // So that it is not left as a zombie.
        drop(held(&self.child).wait());
        if let Some(reader) = held(&self.reader).take() {
            drop(reader.join());
        }
    }
}
