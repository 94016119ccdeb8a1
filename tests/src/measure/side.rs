//! The other end of the pipe: a runner that does what is measured from its side. `measure --runner` is one.
//!
//! Its task is `wake N` (receives N messages, and answers each with the time at which it had it) or `ask N` (asks its
//! parent N questions one after the other; its result is how long each took).

use std::io::{Lines, StdinLock, Write};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// The argument that makes a program this runner.
pub const ARGUMENT: &str = "--runner";

/// The time now as whoever measures it here and there can compare: nanoseconds since 1970.
#[must_use]
pub fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

struct Side {
    lines: Lines<StdinLock<'static>>,
    last_id: u64,
    thread: Value,
}

/// Serves the host that started it until stdin ends.
///
/// # Errors
/// The pipes'.
pub fn serve() -> std::io::Result<()> {
    let mut side = Side { lines: std::io::stdin().lines(), last_id: 0, thread: Value::Null };
    while let Some(asked) = side.read()? {
        let result = match asked["method"].as_str() {
            Some("initialize") => {
                side.thread = asked["params"]["thread_id"].clone();
                let runner = json!({ "name": "measure", "version": "1" });
                json!({ "protocol_version": 1, "runner": runner, "max_frame_bytes": 1 << 20 })
            }
            Some("run") => json!({ "stop_reason": "finished", "content": side.run(&asked["params"])? }),
            _ => json!({}),
        };
        side.write(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }))?;
    }
    Ok(())
}

impl Side {
    fn run(&mut self, params: &Value) -> std::io::Result<String> {
        let task = params["query"].as_str().unwrap_or_default();
        let rounds: u32 = task.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or(0);
        let mut times = Vec::new();
        for round in 0..rounds {
            let thread = self.thread.clone();
            if task.starts_with("wake") {
                let wait = json!({ "thread_id": thread, "unread_only": true, "wait_ms": 60_000 });
                self.call("recv_message", &wait)?;
                self.call("send_message", &json!({ "thread_id": thread, "message": now_ns().to_string() }))?;
            } else {
                let start = Instant::now();
                let question = json!({ "question": format!("{round}?"), "wait_ms": 60_000 });
                let call = json!({ "thread_id": thread, "call_id": round.to_string(), "tool_name": "ask_parent",
                    "arguments": question });
                let result = self.call("on_tool_call", &call)?;
                if result["structured_content"]["answer"].is_null() {
                    return Ok(format!("no answer: {result}"));
                }
                times.push(start.elapsed().as_nanos().to_string());
            }
        }
        Ok(if times.is_empty() { "done".to_owned() } else { times.join(" ") })
    }

    /// Asks the host. What the host asks meanwhile is answered with nothing.
    fn call(&mut self, method: &str, params: &Value) -> std::io::Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        while let Some(line) = self.read()? {
            if !line["method"].is_null() {
                self.write(&json!({ "jsonrpc": "2.0", "id": line["id"], "result": {} }))?;
            } else if line["id"] == id {
                return Ok(if line["error"].is_null() { line["result"].clone() } else { line["error"].clone() });
            }
        }
        Err(std::io::ErrorKind::UnexpectedEof.into())
    }

    fn read(&mut self) -> std::io::Result<Option<Value>> {
        let line = self.lines.next().transpose()?;
        Ok(line.map(|line| serde_json::from_str(&line)).transpose()?)
    }

    fn write(&mut self, line: &Value) -> std::io::Result<()> {
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{line}")?;
        stdout.flush()
    }
}
