//! A small runner that keeps every rule of the protocol, or all but one: what the conformance kit is tried with.
//!
//! It is built on nothing of ours but the words of `protocol/README.md`, in one thread without a runtime: whatever it
//! waits for is a line. In reading order:
//!
//! * [`faults`]: what it can do wrong, a table;
//! * `message`: what a line says; `link`: the pipes;
//! * `conversation`: what was said so far; `calls`: what a run asks.

use std::collections::BTreeMap;
use std::io;
use std::process::ExitCode;

use serde_json::{Value, json};

mod calls;
mod conversation;
pub mod faults;
mod link;
mod message;

use calls::{Asked, Run, has_more};
use conversation::Conversation;
use faults::Fault;
use link::{Heard, LINE_BYTES_MAX, Link};
use message::{Message, depth, error, has_halves, read, run_fits};

/// Fields of the params of `initialize`.
const INITIALIZE: [&str; 7] =
    ["protocol_version", "process_id", "thread_id", "host", "max_frame_bytes", "capabilities", "limits"];

/// What ends the program before its stdin does.
enum Stop {
    /// It exits with this code.
    Exit(u8),
    /// A pipe broke.
    Pipe(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Pipe(error)
    }
}

type Done = Result<(), Stop>;

struct Agent {
    fault: Option<Fault>,
    link: Link,
    /// `initialize` was answered with a result.
    agreed: bool,
    /// A run has begun at some time.
    has_run: bool,
    thread: Value,
    /// The longest line that the host takes, in bytes.
    their_bound: usize,
    conversation: Conversation,
    tools: Vec<Value>,
    run: Option<Run>,
    /// A cancel came while nothing ran: it is meant for the next run.
    cancel_next: bool,
    /// Requests of ours that are not answered.
    asked: BTreeMap<u64, Asked>,
    last_id: u64,
    /// The `shutdown` that one with a fault answers behind its run.
    ending: Option<Value>,
    shut_down: bool,
}

/// Serves the host at the other end of stdin and stdout, with a fault or with none.
#[must_use]
pub fn main(fault: Option<Fault>) -> ExitCode {
    let mut agent = Agent {
        fault,
        link: Link::new(fault),
        agreed: false,
        has_run: false,
        thread: Value::Null,
        their_bound: usize::MAX,
        conversation: Conversation::new(fault),
        tools: Vec::new(),
        run: None,
        cancel_next: false,
        asked: BTreeMap::new(),
        last_id: 0,
        ending: None,
        shut_down: false,
    };
    match agent.serve() {
        Ok(()) if agent.has(Fault::EndsWithOne) => ExitCode::FAILURE,
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop::Exit(code)) => code.into(),
        Err(Stop::Pipe(error)) => super::told(1, &format!("the link to the host broke: {error}")),
    }
}

/// The faults, for people.
#[must_use]
pub fn help() -> String {
    let mut page = "fake-runner agent [FAULT]: a runner that keeps every rule of the protocol, or all but one.\n\n\
                    Faults, each with the case of `assistant-host conformance` that finds it:\n"
        .to_owned();
    for mutant in faults::MUTANTS {
        page.push_str(&format!("  {:<26}  {:<30}  it {}\n", mutant.name, mutant.case, mutant.does));
    }
    page
}

impl Agent {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// Takes lines until stdin ends.
    fn serve(&mut self) -> Done {
        match self.fault {
            Some(Fault::Greets) => self.link.write(b"hello\n".to_vec())?,
            Some(Fault::BlankFirst) => self.link.write(b"\n".to_vec())?,
            _ => {}
        }
        loop {
            match self.link.next()? {
                Heard::Line(line) => self.take(&line)?,
                Heard::End { in_a_line } if self.outlives(in_a_line) => loop {
                    std::thread::park();
                },
                Heard::End { .. } => return Ok(()),
            }
        }
    }

    /// Whether one with a fault goes on when stdin ends.
    fn outlives(&self, in_a_line: bool) -> bool {
        let waits = |is: fn(&Asked) -> bool| self.run.is_some() && self.asked.values().any(is);
        match self.fault {
            Some(Fault::OutlivesStart) => !self.agreed,
            Some(Fault::OutlivesHandshake) => self.agreed && self.run.is_none() && !self.shut_down,
            Some(Fault::OutlivesModelCall) => waits(|asked| matches!(asked, Asked::Model)),
            Some(Fault::OutlivesToolCall) => waits(|asked| matches!(asked, Asked::Tool(_))),
            Some(Fault::OutlivesHalfALine) => in_a_line,
            Some(Fault::OutlivesShutdown) => self.shut_down,
            _ => false,
        }
    }

    fn take(&mut self, line: &[u8]) -> Done {
        if [Some(Fault::DiesOfHalves), Some(Fault::SkipsHalves)].contains(&self.fault) && has_halves(line) {
            return if self.has(Fault::DiesOfHalves) { Err(Stop::Exit(101)) } else { Ok(()) };
        }
        match read(line) {
            Message::Answer { .. } if self.has(Fault::SkipsHalfAnswers) && has_halves(line) => Ok(()),
            Message::Answer { outcome: Ok(result), .. } if self.has(Fault::Shallow) && depth(&result) > 32 => Ok(()),
            Message::Answer { id, outcome } => self.answered(&id, outcome),
            Message::Request { id, method, params } => self.request(&id, &method, &params),
            Message::Notification if self.has(Fault::AnswersNotifications) => {
                self.answer(&Value::Null, Err(error("method_not_found", "there are no notifications")))
            }
            Message::Junk if self.has(Fault::DiesOfJunk) => Err(Stop::Exit(101)),
            Message::Junk if self.has(Fault::AnswersJunk) => {
                let parse = json!({ "code": -32700, "message": "no message" });
                self.answer(&Value::Null, Err(parse))
            }
            Message::Notification | Message::Junk => Ok(()),
        }
    }

    fn request(&mut self, id: &Value, method: &str, params: &Value) -> Done {
        if !params.is_object() {
            return match self.has(Fault::DiesOfLists) {
                true => Err(Stop::Exit(101)),
                false => self.refuse(id, "invalid_params", "params are an object"),
            };
        }
        match method {
            "initialize" => self.initialize(id, params),
            "run" => self.take_run(id, params),
            "cancel" => self.cancel(id),
            "cancel_call" => self.cancel_call(id, params),
            "ping" => self.ping(id),
            "shutdown" => self.shutdown(id),
            "deliver_message" if self.has(Fault::SwallowsMessages) => self.nothing(id),
            _ => match self.fault {
                Some(Fault::SilentAtUnknown) => Ok(()),
                Some(Fault::DiesOfUnknown) => Err(Stop::Exit(101)),
                Some(Fault::UnknownIsFine) => self.nothing(id),
                Some(Fault::UnknownIsInternal) => self.refuse(id, "internal_error", "it is not known"),
                _ => self.refuse(id, "method_not_found", &format!("there is no method `{method}`")),
            },
        }
    }

    fn initialize(&mut self, id: &Value, params: &Value) -> Done {
        if self.agreed && !self.has(Fault::AgreesTwice) {
            return self.refuse(id, "invalid_request", "`initialize` was answered before");
        }
        if params["capabilities"].is_null() && self.has(Fault::DiesOfNullCapabilities) {
            return Err(Stop::Exit(101));
        }
        if has_more(params, &INITIALIZE) && self.has(Fault::StrictParams) {
            return self.refuse(id, "invalid_params", "there is an unknown field");
        }
        let (Some(version), Some(bound)) = (params["protocol_version"].as_u64(), params["max_frame_bytes"].as_u64())
        else {
            return self.refuse(id, "invalid_params", "`protocol_version` and `max_frame_bytes` are numbers");
        };
        self.thread = params["thread_id"].clone();
        if version != 1 && !self.has(Fault::AnyVersion) {
            self.agreed = self.has(Fault::RunsUnagreed);
            return self.refuse(id, "unsupported_protocol", "this runner speaks version 1");
        }
        self.agreed = true;
        self.their_bound = usize::try_from(bound).unwrap_or(usize::MAX);
        let name = if self.has(Fault::NoName) { "" } else { "fake-runner agent" };
        let longest = match self.fault {
            Some(Fault::TinyLines) => 1024,
            Some(Fault::TellsLess) => 64 * 1024,
            _ => LINE_BYTES_MAX,
        };
        let mut result = json!({
            "protocol_version": 1,
            "runner": { "name": name, "version": env!("CARGO_PKG_VERSION") },
            "max_frame_bytes": longest,
            "capabilities": { "messages": self.has(Fault::SaysMessages) },
        });
        if self.has(Fault::NoLongest) {
            drop(result.as_object_mut().and_then(|map| map.remove("max_frame_bytes")));
        }
        self.answer(id, Ok(result))
    }

    fn take_run(&mut self, id: &Value, params: &Value) -> Done {
        if !self.agreed && self.has(Fault::RunsFirst) {
            return self.answer(id, Ok(json!({ "stop_reason": "finished", "content": "" })));
        }
        if !self.agreed {
            return self.refuse(id, "invalid_request", "`initialize` comes first");
        }
        if let Err(field) = run_fits(params)
            && !self.has(Fault::TakesBadParams)
            && !(self.has(Fault::TakesAnyTexts) && ["query", "context"].contains(&field))
            && !(self.has(Fault::TakesAnyLists) && ["tools", "inputs", "history"].contains(&field))
        {
            let kind = if self.has(Fault::BadIsInternal) { "internal_error" } else { "invalid_params" };
            return self.refuse(id, kind, &format!("`{field}` does not fit"));
        }
        if params["query"].is_null() && self.has(Fault::NeedsAQuery) {
            return self.refuse(id, "invalid_params", "there is no query");
        }
        match (&self.run, self.fault) {
            (Some(_), Some(Fault::SilentAtASecondRun)) => return Ok(()),
            (Some(_), Some(Fault::TakesASecondRun)) | (None, _) => {}
            (Some(_), _) => return self.refuse(id, "invalid_request", "a run is going on"),
        }
        self.has_run = true;
        self.begin_run(id, params)
    }

    fn cancel(&mut self, id: &Value) -> Done {
        if !self.has(Fault::SilentAtCancel) {
            self.nothing(id)?;
        }
        match (&self.run, self.fault) {
            (_, Some(Fault::IgnoresCancel)) => Ok(()),
            (Some(_), _) => self.cancel_run(false),
            (None, fault) => {
                let lost = match self.has_run {
                    true => Fault::LosesLateCancel,
                    false => Fault::LosesEarlyCancel,
                };
                self.cancel_next = fault != Some(lost);
                Ok(())
            }
        }
    }

    fn cancel_call(&mut self, id: &Value, params: &Value) -> Done {
        let is_run = self.run.as_ref().is_some_and(|run| match self.fault {
            Some(Fault::CancelsAnyCall) => true,
            Some(Fault::LooseIds) => run.id.to_string().trim_matches('"') == params["id"].to_string().trim_matches('"'),
            _ => run.id == params["id"],
        });
        match self.fault {
            Some(Fault::SilentAtCancelCall) => return Ok(()),
            Some(Fault::RefusesCancelCall) if !is_run => {
                return self.refuse(id, "invalid_params", "nothing of this id goes on");
            }
            _ => self.nothing(id)?,
        }
        match is_run && !self.has(Fault::IgnoresCancelCall) {
            true => self.cancel_run(true),
            false => Ok(()),
        }
    }

    fn ping(&mut self, id: &Value) -> Done {
        if self.has(Fault::DeafInARun) && self.run.is_some() {
            return Ok(());
        }
        if self.has(Fault::AnswersPingTwice) {
            self.nothing(id)?;
        }
        self.nothing(id)
    }

    fn shutdown(&mut self, id: &Value) -> Done {
        self.shut_down = true;
        match self.fault {
            Some(Fault::SilentAtShutdown) => Ok(()),
            Some(Fault::EndsItsRunFirst) if self.run.is_some() => {
                self.ending = Some(id.clone());
                Ok(())
            }
            _ => self.nothing(id),
        }
    }

    fn nothing(&mut self, id: &Value) -> Done {
        let nothing = if self.has(Fault::NullForNothing) { Value::Null } else { json!({}) };
        self.answer(id, Ok(nothing))
    }

    fn refuse(&mut self, id: &Value, kind: &str, words: &str) -> Done {
        self.answer(id, Err(error(kind, words)))
    }

    /// Answers a request of the host.
    fn answer(&mut self, id: &Value, outcome: Result<Value, Value>) -> Done {
        let mut id = id.clone();
        match (self.fault, &id) {
            (Some(Fault::IdsAreNumbers), Value::String(text)) => {
                id = text.parse::<u64>().map_or(id, |number| json!(number));
            }
            (Some(Fault::ShortNumbers), Value::Number(number)) => {
                id = json!(number.as_u64().unwrap_or(0) & u64::from(u32::MAX));
            }
            (Some(Fault::ShortIds), Value::String(text)) => id = json!(text.chars().take(255).collect::<String>()),
            _ => {}
        }
        let mut message = match outcome {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        };
        match self.fault {
            Some(Fault::ErrorsAreTexts) if !message["error"].is_null() => {
                message["error"] = message["error"]["message"].take();
            }
            Some(Fault::ForeignCodes) if !message["error"].is_null() => message["error"]["code"] = json!(1),
            Some(Fault::NoKinds) if !message["error"].is_null() => message["error"]["data"] = Value::Null,
            Some(Fault::NoVersion) => drop(message.as_object_mut().and_then(|map| map.remove("jsonrpc"))),
            _ => {}
        }
        let unbound = [Some(Fault::IgnoresTheirBound), Some(Fault::LongAnswers)].contains(&self.fault);
        if message.to_string().len() > self.their_bound && !unbound {
            let error = error("frame_too_large", "the answer is longer than the host takes");
            message = json!({ "jsonrpc": "2.0", "id": id, "error": error });
        }
        Ok(self.link.say(&message)?)
    }
}
