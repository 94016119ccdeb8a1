//! What is tried, by the sections of the rules.

use assistant_protocol::error::RpcError;
use assistant_protocol::types::{Content, Message, Part, Role, StopReason};
use serde::Serialize;
use serde_json::{Value, json};

use super::scripted_host::{self, ScriptedHost, ToolCall, Turn};
use super::{Case, Fault, Played};
use crate::replay::told_apart;

mod bounds;
mod cancelling;
mod capabilities;
mod ending;
mod handshake;
mod lines;
mod runs;
mod tools;

/// All cases, in the order in which they are tried.
pub const CASES: &[&[Case]] = &[
    handshake::CASES,
    lines::CASES,
    runs::CASES,
    tools::CASES,
    cancelling::CASES,
    bounds::CASES,
    ending::CASES,
    capabilities::CASES,
];

/// The cases of one section: name, rule, function, and what is tried.
macro_rules! cases {
    ($($name:literal $rule:ident $play:ident $doc:literal;)*) => {
        pub(super) const CASES: &[super::Case] = &[$(super::Case {
            name: $name,
            rule: assistant_protocol::spec::rules::$rule,
            doc: $doc,
            play: |host| Box::pin($play(host)),
        },)*];
    };
}
use cases;

/// What came of a case.
type Outcome = Result<Played, Fault>;

const PROMPT: &str = "You are the assistant of a conformance test.";

/// The params of a `run`.
fn task(query: &str) -> Value {
    let assistant = json!({ "id": "kit", "name": "Kit", "system_prompt": PROMPT });
    json!({ "assistant": assistant, "query": query, "tools": [tool("look"), tool("add")] })
}

/// The params of a `run` that has the model asked again.
fn again() -> Value {
    let mut params = task("");
    params["query"] = Value::Null;
    params
}

fn tool(name: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    json!({ "name": name, "description": format!("The tool {name}."), "input_schema": schema })
}

/// An answer of the model that ends its run.
fn said(text: &str) -> Value {
    answer(json!(text), "stop")
}

/// An answer of the model.
fn answer(content: Value, finish_reason: &str) -> Value {
    json!({
        "message": { "role": "assistant", "content": content },
        "finish_reason": finish_reason,
        "usage": { "input_tokens": 10, "output_tokens": 5 },
        "model": "scripted",
    })
}

fn call(call_id: &str, name: &str, arguments: Value) -> Value {
    json!({ "type": "tool_call", "call_id": call_id, "tool_name": name, "arguments": arguments })
}

/// An answer of the model that calls tools.
fn calls(calls: Vec<Value>) -> Value {
    answer(Value::Array(calls), "tool_calls")
}

/// An error of a kind that this version does not know.
fn of_nobody() -> RpcError {
    let data = serde_json::Map::from_iter([("kind".to_owned(), json!("never_heard_of")), ("a".to_owned(), json!([1]))]);
    RpcError { code: 4_777, message: "nobody knows this kind".to_owned(), data }
}

/// The result of a tool.
fn gave(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "is_error": false })
}

impl ScriptedHost {
    /// Shakes hands, begins a run and waits for its first model call.
    async fn first_call(&mut self, params: &Value) -> Result<(assistant_protocol::wire::Id, Turn), Fault> {
        self.begin().await?;
        let run = self.ask("run", params).await?;
        let turn = self.model_call().await?;
        Ok((run, turn))
    }

    /// Lets the model say something that ends the run, and waits for its answer.
    async fn let_end(&mut self, run: &assistant_protocol::wire::Id, turn: &Turn, text: &str) -> Result<(), Fault> {
        self.give(&turn.request, &said(text)).await?;
        let result = self.ran(run, StopReason::Finished).await?;
        self.same("ends the run with the model's answer", &text, &&*result.content.as_text())
    }

    /// Waits for the answer to a `run`, which has to be this error, `data` and all.
    async fn fails_so(&mut self, run: &assistant_protocol::wire::Id, given: &RpcError) -> Result<(), Fault> {
        let expected = format!("answers `run` with the error {} {}", given.code, json!(given.data));
        match self.answer(run).await? {
            Ok(result) => Err(self.fault(expected, format!("the result {}", scripted_host::cut(&result)))),
            Err(error) if error.code == given.code && error.data == given.data => Ok(()),
            Err(error) => Err(self.fault(expected, format!("the error {} {}", error.code, json!(error.data)))),
        }
    }

    /// Two things that have to be the same.
    fn same<T: PartialEq + Serialize>(&self, what: &str, expected: &T, seen: &T) -> Result<(), Fault> {
        if expected == seen {
            return Ok(());
        }
        let (path, expected, seen) = told_apart(&json!(expected), &json!(seen));
        let place = if path.is_empty() { String::new() } else { format!(", at {path}") };
        Err(self.fault(format!("{what}{place}: {expected}"), seen))
    }

    /// A model call must go on with the conversation of an earlier one: the same messages, and then these.
    fn goes_on(&self, before: &Turn, now: &Turn, with: &[Value]) -> Result<(), Fault> {
        let with = with.iter().map(|message| serde_json::from_value::<Message>(message.clone()));
        let with: Vec<Message> =
            with.collect::<Result<_, _>>().map_err(|error| self.fault("a message", error.to_string()))?;
        let expected: Vec<Message> = before.messages().iter().chain(&with).flat_map(apart).collect();
        let seen: Vec<Message> = now.messages().iter().flat_map(apart).collect();
        if let Some((at, (one, other))) = expected.iter().zip(&seen).enumerate().find(|(_, (one, other))| one != other)
        {
            return self.same(&format!("asks with the conversation as it was (message {at})"), one, other);
        }
        self.same("asks with as many messages as were said", &expected.len(), &seen.len())
    }
}

/// Results of tools may stand in one message or in several.
fn apart(message: &Message) -> Vec<Message> {
    match (&message.role, &message.content) {
        (Role::Tool, Content::Parts(parts)) if parts.len() > 1 => {
            parts.iter().map(|part| Message { role: Role::Tool, content: Content::Parts(vec![part.clone()]) }).collect()
        }
        _ => vec![message.clone()],
    }
}

/// The message with the result of a call.
fn result_of(call_id: &str, content: Value, is_error: bool) -> Value {
    let part = json!({ "type": "tool_result", "call_id": call_id, "content": content, "is_error": is_error });
    json!({ "role": "tool", "content": [part] })
}

/// The results of a call in a conversation: whether each is an error.
fn results(turn: &Turn, of: &str) -> Vec<bool> {
    let parts = turn.messages().iter().flat_map(|message| message.content.parts().into_owned());
    let results = parts.filter_map(|part| match part {
        Part::ToolResult { call_id, is_error, .. } if call_id == of => Some(is_error),
        _ => None,
    });
    results.collect()
}

/// The ids of calls whose results are in a conversation, in order.
fn results_in_order(turn: &Turn) -> Vec<String> {
    let parts = turn.messages().iter().flat_map(|message| message.content.parts().into_owned());
    let results = parts.filter_map(|part| match part {
        Part::ToolResult { call_id, .. } => Some(call_id),
        _ => None,
    });
    results.collect()
}

fn is_call(seen: &ToolCall, call_id: &str, name: &str, arguments: &Value) -> bool {
    seen.params.call_id == call_id && seen.params.tool_name == name && seen.params.arguments == *arguments
}
