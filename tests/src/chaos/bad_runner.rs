//! A runner that speaks the protocol, and between two steps does what no runner should.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use assistant_protocol::types::{Content, LlmRequestResult, Message, Part, Role, RunParams, ToolCallResult};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::dice::Dice;

/// Where a round tells its runners what they are, seen from the state directory.
const TOLD_IN: &str = "../chaos.json";
/// Where runners leave their process ids, seen from the state directory.
const PIDS_IN: &str = "../runners";
/// Runners of a round that are counted.
const RUNNERS_MAX: u64 = 10_000;
/// How often one that is stuck looks whether its host lives: nothing else ends a program that reads nothing.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The streams of runners begin here, behind those of the workers.
const STREAMS_FROM: u64 = 1_000;

/// The program.
pub fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("--build-id") {
        let written = writeln!(std::io::stdout(), "{}", assistant_protocol::BUILD_ID);
        return if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let told = std::fs::read_to_string(TOLD_IN).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let Some(told) = told else { return ExitCode::from(2) };
    let number = |key: &str| told[key].as_u64().unwrap_or(0);
    let mut dice = Dice::new(number("seed"), STREAMS_FROM + number_of_this_one());
    if !dice.percent(number("bad_percent")) {
        return assistant_runner::main_with([]);
    }
    let trouble_percent = dice.between(3, 30);
    let parent = rustix::process::getppid();
    let mut bad = Bad {
        dice,
        trouble_percent,
        parent,
        thread: String::new(),
        said: Vec::new(),
        tools: Value::Null,
        last_id: 0,
        last_answer: String::new(),
        requests: VecDeque::new(),
        answers: HashMap::new(),
        cancelled: false,
    };
    let Gone(code) = bad.live();
    ExitCode::from(code)
}

/// Each runner of a round has a number, and leaves its process id under it for whoever kills runners.
fn number_of_this_one() -> u64 {
    for number in 0..RUNNERS_MAX {
        if let Ok(mut file) = File::create_new(Path::new(PIDS_IN).join(number.to_string())) {
            // Without its id it is only never killed.
            drop(write!(file, "{}", std::process::id()));
            return number;
        }
    }
    RUNNERS_MAX
}

/// It ends with this code.
struct Gone(u8);

struct Bad {
    dice: Dice,
    trouble_percent: u64,
    parent: Option<rustix::process::Pid>,
    thread: String,
    said: Vec<Message>,
    tools: Value,
    last_id: u64,
    last_answer: String,
    requests: VecDeque<Value>,
    answers: HashMap<u64, Value>,
    cancelled: bool,
}

impl Bad {
    fn live(&mut self) -> Gone {
        match self.serve() {
            Ok(()) => Gone(0),
            Err(gone) => gone,
        }
    }

    fn serve(&mut self) -> Result<(), Gone> {
        loop {
            while self.requests.is_empty() {
                self.read()?;
            }
            let Some(request) = self.requests.pop_front() else { continue };
            self.trouble()?;
            let outcome = self.run(&request["params"])?;
            let (kind, value) = match outcome {
                Ok(result) => ("result", result),
                Err(error) => ("error", error),
            };
            let answer = json!({ "jsonrpc": "2.0", "id": request["id"], kind: value });
            self.answer(&answer)?;
        }
    }

    /// One `run`: its result, or the error that it ends with.
    fn run(&mut self, params: &Value) -> Result<Result<Value, Value>, Gone> {
        let Ok(run) = RunParams::deserialize(params) else { return Err(Gone(6)) };
        self.cancelled = false;
        if self.said.is_empty() {
            self.tools = params["tools"].clone();
            self.said.push(Message::text(Role::System, run.assistant.system_prompt));
            self.said.extend(run.history.into_iter().flatten());
        }
        match run.query {
            Some(query) => self.said.push(Message::text(Role::User, query)),
            None if self.dice.percent(10) => {
                return Ok(Ok(json!({ "stop_reason": "finished", "content": "asked nobody" })));
            }
            None => {}
        }
        loop {
            self.trouble()?;
            let params = json!({ "thread_id": self.thread, "messages": self.said, "tools": self.tools });
            let answer = match self.ask("on_llm_request", params)? {
                Ok(answer) => answer,
                Err(error) => return Ok(Err(error)),
            };
            let Ok(answer) = serde_json::from_value::<LlmRequestResult>(answer) else { return Err(Gone(7)) };
            self.said.extend(answer.inserted.into_iter().flatten());
            let content = answer.message.content.clone();
            self.said.push(answer.message);
            if self.cancelled {
                return Ok(Ok(json!({ "stop_reason": "cancelled", "content": content })));
            }
            let calls = calls(&content);
            if calls.is_empty() {
                return Ok(Ok(json!({ "stop_reason": "finished", "content": content })));
            }
            for (call_id, tool, arguments) in calls {
                self.trouble()?;
                let params =
                    json!({ "thread_id": self.thread, "call_id": call_id, "tool_name": tool, "arguments": arguments });
                let again = self.dice.percent(20).then(|| params.clone());
                let result = match self.ask("on_tool_call", params)? {
                    Ok(result) => serde_json::from_value::<ToolCallResult>(result).map_err(|_| Gone(8))?,
                    Err(error) => return Ok(Err(error)),
                };
                if let Some(params) = again {
                    // The same call once more: it is answered and not done again.
                    drop(self.ask("on_tool_call", params)?);
                }
                self.said.push(Message::tool_result(call_id, &result));
            }
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Result<Value, Value>, Gone> {
        let id = self.call(method, params)?;
        self.answered(id)
    }

    fn answered(&mut self, id: u64) -> Result<Result<Value, Value>, Gone> {
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return Ok(match answer.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(answer["result"].clone()),
                });
            }
            self.read()?;
        }
    }

    fn call(&mut self, method: &str, params: Value) -> Result<u64, Gone> {
        self.last_id += 1;
        let id = self.last_id;
        self.write(&format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })))?;
        Ok(id)
    }

    fn answer(&mut self, answer: &Value) -> Result<(), Gone> {
        self.last_answer = format!("{answer}\n");
        let line = self.last_answer.clone();
        self.write(&line)
    }

    fn write(&mut self, text: &str) -> Result<(), Gone> {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|_| Gone(5))
    }

    /// Reads one line, and answers what needs no thought.
    fn read(&mut self) -> Result<(), Gone> {
        let mut line = String::new();
        if !std::io::stdin().lock().read_line(&mut line).is_ok_and(|read| read > 0) {
            return Err(Gone(0));
        }
        let Ok(message) = serde_json::from_str::<Value>(&line) else { return Ok(()) };
        let Some(method) = message["method"].as_str() else {
            if let Some(id) = message["id"].as_u64() {
                self.answers.insert(id, message);
            }
            return Ok(());
        };
        let result = match method {
            "run" => {
                self.requests.push_back(message);
                return Ok(());
            }
            "initialize" => {
                self.thread = message["params"]["thread_id"].as_str().unwrap_or_default().to_owned();
                self.trouble()?;
                let runner = json!({ "name": "bad", "version": "1" });
                json!({
                    "protocol_version": 1, "runner": runner, "max_frame_bytes": 1 << 26,
                    "capabilities": { "messages": false },
                })
            }
            "cancel" => {
                self.cancelled = self.dice.percent(50);
                json!({})
            }
            _ => json!({}),
        };
        self.answer(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))?;
        if method == "shutdown" { Err(Gone(0)) } else { Ok(()) }
    }

    fn trouble(&mut self) -> Result<(), Gone> {
        if !self.dice.percent(self.trouble_percent) {
            return Ok(());
        }
        match self.dice.below(14) {
            0 => self.write("this is no message\n{}\n[1,2]\nnull\n"),
            1 => self.write(&"junk \u{0} { \"jsonrpc\": \n".repeat(150)),
            2 => {
                let line = "trouble ".repeat(60);
                let mut stderr = std::io::stderr().lock();
                // Nobody has to read it.
                (0..400).for_each(|number| drop(writeln!(stderr, "{number} {line}")));
                Ok(())
            }
            3 => {
                self.write("{\"jsonrpc\":\"2.0\",\"id\":99,\"method\":\"on_tool_ca")?;
                Err(Gone(3))
            }
            4 => Err(Gone(u8::try_from(self.dice.below(3)).unwrap_or(1))),
            5 => loop {
                std::thread::park_timeout(LOOK_EVERY);
                if rustix::process::getppid() != self.parent {
                    return Err(Gone(9));
                }
            },
            6 => {
                let foreign = "01900000-0000-7000-8000-000000000000";
                let arguments = json!({ "thread_id": foreign, "message": "from a foreign thread" });
                let params = json!({ "thread_id": foreign, "call_id": "f", "tool_name": "send_message", "arguments": arguments });
                match self.ask("on_tool_call", params)? {
                    Ok(_) => Err(Gone(66)),
                    Err(_) => Ok(()),
                }
            }
            7 | 8 => {
                let call_id = format!("given-up-{}", self.last_id);
                let arguments = json!({ "thread_id": self.thread, "unread_only": true, "wait_ms": 60_000 });
                let params = json!({ "thread_id": self.thread, "call_id": call_id, "tool_name": "recv_message", "arguments": arguments });
                let id = self.call("on_tool_call", params)?;
                drop(self.ask("cancel_call", json!({ "id": id }))?);
                // It may have been answered before: then what it handed over belongs to the conversation.
                if let Ok(result) = self.answered(id)? {
                    let result: ToolCallResult = serde_json::from_value(result).map_err(|_| Gone(8))?;
                    self.said.push(Message::tool_result(call_id, &result));
                }
                Ok(())
            }
            9 if !self.last_answer.is_empty() => {
                let line = self.last_answer.clone();
                self.write(&line)
            }
            10 => self.write("{\"jsonrpc\":\"2.0\",\"id\":424242,\"result\":{}}\n"),
            11 => {
                drop(self.ask("no_such_method", json!({}))?);
                self.write("{\"jsonrpc\":\"2.0\",\"method\":\"on_progress\",\"params\":{}}\n")
            }
            12 => self.write(&format!("\"{}\"\n", "x".repeat(1 << 20))),
            _ => {
                let params = json!({ "thread_id": self.thread, "text": "in trouble" });
                drop(self.ask("on_progress", params)?);
                Ok(())
            }
        }
    }
}

fn calls(content: &Content) -> Vec<(String, String, Value)> {
    let call = |part: &Part| match part {
        Part::ToolCall { call_id, tool_name, arguments } => {
            Some((call_id.clone(), tool_name.clone(), arguments.clone().unwrap_or_default()))
        }
        _ => None,
    };
    content.parts().iter().filter_map(call).collect()
}
