//! What always holds, whatever the case: looked at with each line of the runner.

use std::collections::HashMap;

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::methods::{
    Cancel, CancelCall, DeliverMessage, Initialize, Method, OnAgentEvent, OnAggregateServiceContext, OnLlmRequest,
    OnPermissionRequest, OnProgress, OnToolCall, Ping, RecvMessage, Run, SendMessage, Shutdown,
};
use assistant_protocol::peer::IN_FLIGHT_MAX;
use assistant_protocol::spec::rules::{self, Rule};
use assistant_protocol::types::{LlmRequestParams, Message, Part};
use assistant_protocol::wire::{self, Id, Incoming};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::scripted_host::{Ours, Request, ScriptedHost, cut};
use super::{Fault, halves};

/// Requests of the runner that no case asks for: they are answered, and are no part of what is tried.
const ASIDE: [&str; 8] = [
    "on_aggregate_service_context",
    "on_agent_event",
    "on_permission_request",
    "on_progress",
    "send_message",
    "recv_message",
    "ping",
    "cancel_call",
];

impl ScriptedHost {
    /// Takes a line of the runner. The first fault is kept.
    pub(super) fn take(&mut self, line: &[u8]) {
        self.talk.heard(line);
        if let Err(fault) = self.look(line) {
            self.fault.get_or_insert(fault);
        }
    }

    fn look(&mut self, line: &[u8]) -> Result<(), Fault> {
        if line.len() as u64 > self.max_frame_bytes {
            let expected = format!("writes no line of more than {} bytes", self.max_frame_bytes);
            return Err(fault(rules::THEIR_BOUND, expected, format!("a line of {} bytes", line.len())));
        }
        if !self.begun {
            return Err(fault(rules::SILENT_FIRST, "writes nothing before `initialize`", shown(line)));
        }
        match wire::classify(line) {
            Incoming::Request { id, method, params } => {
                let params = params.map_or(Value::Null, halves::read);
                self.asked(Request { id, method: method.into_owned(), params, bytes: line.len() })
            }
            Incoming::Response { id, outcome } => {
                let outcome = outcome.map(|raw| halves::read(raw.get()));
                self.told_answer(&id, outcome, line)
            }
            Incoming::NoId => Err(fault(rules::STDOUT_IS_PURE, "gives each message an id", shown(line))),
            Incoming::Unparsable => {
                Err(fault(rules::STDOUT_IS_PURE, "writes nothing to stdout but messages of JSON-RPC 2.0", shown(line)))
            }
        }
    }

    fn told_answer(&mut self, id: &Id, outcome: Result<Value, RpcError>, line: &[u8]) -> Result<(), Fault> {
        let once = |seen: &str| {
            fault(rules::ANSWER_ONCE, "answers what was asked, once, by its id", format!("{seen}: {}", shown(line)))
        };
        match self.ours.get_mut(id) {
            None => Err(once("an answer to nothing that was asked")),
            Some(Ours::Answered(_) | Ours::Taken) => Err(once("a second answer")),
            Some(ours @ Ours::Open(_)) => {
                let Ours::Open(method) = std::mem::replace(ours, Ours::Answered(outcome.clone())) else {
                    return Ok(());
                };
                if method == Run::NAME {
                    self.runs -= 1;
                    self.asks_model = false;
                    self.habits.ends_runs |= outcome.is_ok();
                }
                if let (Initialize::NAME, Ok(told)) = (method, &outcome) {
                    self.habits.says_messages = told["capabilities"]["messages"] == true;
                    self.habits.says_agent = told["capabilities"]["agent"] == true;
                }
                match outcome {
                    Ok(result) => result_fits(method, &result),
                    Err(_) => error_fits(method, line),
                }
            }
        }
    }

    fn asked(&mut self, request: Request) -> Result<(), Fault> {
        let Request { id, method, params, bytes: _ } = &request;
        if self.theirs.contains_key(id) {
            let seen = format!("a second request with the id {}", json!(id));
            return Err(fault(rules::REQUESTS_ONLY, "gives each request an id of its own", seen));
        }
        params_fit(method, params)?;
        let thread = params.get("thread_id").and_then(Value::as_str);
        if thread.is_some_and(|thread| thread != self.thread_id.to_string()) {
            return Err(fault(rules::OWN_THREAD, format!("names its thread {}", self.thread_id), cut(params)));
        }
        let control = [Ping::NAME, CancelCall::NAME].contains(&method.as_str());
        if self.runs == 0 && !control {
            return Err(fault(
                rules::ONLY_IN_A_RUN,
                "asks nothing while no run goes on",
                format!("it asks `{method}`"),
            ));
        }
        self.habits.asks_model |= method == OnLlmRequest::NAME;
        if method == OnLlmRequest::NAME
            && let Ok(params) = serde_json::from_value::<LlmRequestParams>(params.clone())
        {
            calls_are_answered(&params.messages)?;
        }
        if !control && self.theirs.len() >= IN_FLIGHT_MAX {
            let seen = format!("{} requests in flight", self.theirs.len() + 1);
            return Err(fault(rules::MANY_CALLS, format!("has at most {IN_FLIGHT_MAX} requests in flight"), seen));
        }
        // Where there are two runs, each may ask: what is wrong is then that there are.
        if method == OnLlmRequest::NAME && std::mem::replace(&mut self.asks_model, true) && self.runs == 1 {
            return Err(fault(
                rules::ONE_MODEL_CALL,
                "asks the model once at a time",
                "a second `on_llm_request` in flight",
            ));
        }
        if ASIDE.contains(&method.as_str()) {
            self.answer_aside(&request);
            return Ok(());
        }
        self.theirs.insert(id.clone(), method.clone());
        self.inbox.push_back(request);
        Ok(())
    }

    fn answer_aside(&mut self, request: &Request) {
        let result = match request.method.as_str() {
            "on_aggregate_service_context" => json!({ "context_prompt": "", "structured_state": {} }),
            "send_message" => json!({ "success": true, "message_id": self.thread_id, "state": "queued" }),
            "recv_message" => json!({
                "thread_id": self.thread_id, "messages": [], "summary": { "total_fetched": 0, "marked_as_read": 0 },
            }),
            "on_permission_request" => json!({ "allowed": true }),
            _ => json!({}),
        };
        if request.method == CancelCall::NAME {
            let id = request.params["id"].clone();
            if Id::read(&id.to_string())
                .and_then(|id| self.theirs.get(&id))
                .is_some_and(|method| method == OnLlmRequest::NAME)
            {
                self.asks_model = false;
            }
            self.given_up.push(id);
        }
        let line = self.result_line(request, &result);
        self.talk.sent(&line);
        self.outgoing.extend_from_slice(&line);
    }
}

fn fault(rule: Rule, expected: impl Into<String>, seen: impl Into<String>) -> Fault {
    Fault { rule, expected: expected.into(), seen: seen.into() }
}

fn shown(line: &[u8]) -> String {
    match line.is_empty() {
        true => "an empty line".to_owned(),
        false => wire::excerpt(line),
    }
}

fn fits<T: DeserializeOwned>(value: &Value) -> Result<(), String> {
    serde_json::from_value::<T>(value.clone()).map(|_| ()).map_err(|error| error.to_string())
}

/// Whether what a runner asks is of the protocol.
fn params_fit(method: &str, params: &Value) -> Result<(), Fault> {
    let fits = match method {
        OnLlmRequest::NAME => fits::<<OnLlmRequest as Method>::Params>(params),
        OnToolCall::NAME => fits::<<OnToolCall as Method>::Params>(params),
        OnAggregateServiceContext::NAME => fits::<<OnAggregateServiceContext as Method>::Params>(params),
        SendMessage::NAME => fits::<<SendMessage as Method>::Params>(params),
        RecvMessage::NAME => fits::<<RecvMessage as Method>::Params>(params),
        OnAgentEvent::NAME => fits::<<OnAgentEvent as Method>::Params>(params),
        OnPermissionRequest::NAME => fits::<<OnPermissionRequest as Method>::Params>(params),
        OnProgress::NAME => fits::<<OnProgress as Method>::Params>(params),
        CancelCall::NAME => fits::<<CancelCall as Method>::Params>(params),
        Ping::NAME => fits::<<Ping as Method>::Params>(params),
        _ => Err("no runner asks this method".to_owned()),
    };
    fits.map_err(|error| {
        let expected = format!("asks methods of the protocol, with params that fit (`{method}`)");
        fault(rules::KNOWN_METHODS, expected, format!("{error}: {}", cut(params)))
    })
}

/// Whether a result is what the method gives.
fn result_fits(method: &str, result: &Value) -> Result<(), Fault> {
    let (rule, fits) = match method {
        Initialize::NAME => (rules::INITIALIZE, fits::<<Initialize as Method>::Result>(result)),
        Run::NAME => (rules::RUN_ENDS, fits::<<Run as Method>::Result>(result)),
        Cancel::NAME => (rules::CANCEL, fits::<<Cancel as Method>::Result>(result)),
        CancelCall::NAME => (rules::CANCEL_CALL, fits::<<CancelCall as Method>::Result>(result)),
        Ping::NAME => (rules::PING_ANY_TIME, fits::<<Ping as Method>::Result>(result)),
        Shutdown::NAME => (rules::SHUTDOWN, fits::<<Shutdown as Method>::Result>(result)),
        DeliverMessage::NAME => (rules::MESSAGES, fits::<<DeliverMessage as Method>::Result>(result)),
        _ => return Ok(()),
    };
    fits.map_err(|error| {
        fault(rule, format!("answers `{method}` as its schema says"), format!("{error}: {}", cut(result)))
    })
}

/// An error answer is an object with a number and words; what its data says of its kind belongs to the number.
fn error_fits(method: &str, line: &[u8]) -> Result<(), Fault> {
    let error = halves::read(&String::from_utf8_lossy(line))["error"].take();
    let (code, told) = (error["code"].as_i64(), &error["data"]["kind"]);
    let of_name = Kind::ALL.iter().find(|kind| *told == kind.name());
    let of_code = Kind::ALL.iter().find(|kind| code == Some(i64::from(kind.code())));
    let standard = i64::from(Kind::ParseError.code())..=i64::from(Kind::InvalidRequest.code());
    let fits = match told {
        // Libraries of JSON-RPC write no data. A code of nobody is that of an error which is passed on.
        Value::Null => code.is_some_and(|code| standard.contains(&code)),
        Value::String(_) => of_name == of_code,
        _ => false,
    };
    if code.is_some() && error["message"].is_string() && fits {
        return Ok(());
    }
    let expected = format!(
        "answers `{method}` with an error object: `code`, an integer, `message`, a string, and the `data.kind` of the \
         code, which only codes of JSON-RPC may lack"
    );
    Err(fault(rules::ERRORS, expected, cut(&error)))
}

/// Each tool call of a conversation has one result, behind the message that calls.
fn calls_are_answered(messages: &[Message]) -> Result<(), Fault> {
    let mut open: HashMap<String, u32> = HashMap::new();
    let bad = |seen: String| {
        fault(rules::EVERY_CALL_A_RESULT, "has one `tool_result` in the conversation for each tool call", seen)
    };
    for message in messages {
        for part in message.content.parts().iter() {
            match part {
                Part::ToolCall { call_id, .. } => *open.entry(call_id.clone()).or_default() += 1,
                Part::ToolResult { call_id, .. } => match open.get_mut(call_id) {
                    Some(count @ 1..) => *count -= 1,
                    _ => return Err(bad(format!("a result of `{call_id}`, which was not called or has one"))),
                },
                _ => {}
            }
        }
        if !message.content.parts().iter().any(|part| matches!(part, Part::ToolCall { .. } | Part::ToolResult { .. }))
            && let Some((call_id, _)) = open.iter().find(|(_, count)| **count > 0)
        {
            return Err(bad(format!("no result of `{call_id}` before the next message")));
        }
    }
    match open.into_iter().find(|(_, count)| *count > 0) {
        Some((call_id, _)) => Err(bad(format!("the model is asked, and `{call_id}` has no result"))),
        None => Ok(()),
    }
}
