//! What the events of an answer add up to.

use assistant_protocol::types::{Content, FinishReason, Part, Role, Usage};
use serde_json::{Map, Value, json};

use super::failure::Failure;
use crate::model::{Ask, ModelErrorKind, Progress};

/// The most parts of one answer.
pub(super) const PARTS_MAX: usize = 4_096;

/// A whole answer.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) parts: Vec<Part>,
    pub(super) finish: FinishReason,
    pub(super) usage: Usage,
    pub(super) model: Option<String>,
}

/// Adds up the events of one provider's format.
pub(super) trait Fold: Send {
    /// Takes the data of one event, and adds what it tells to `seen`.
    ///
    /// # Errors
    /// Where the event is an error of the provider, or is not what the format says.
    fn event(&mut self, data: &str, seen: &mut Vec<Progress>) -> Result<(), Failure>;

    /// Whether nothing more can come, although the connection stays open.
    fn is_done(&self) -> bool;

    /// The whole answer.
    ///
    /// # Errors
    /// [`ModelErrorKind::Cut`] where the end or the reason of stopping has not come.
    fn finish(self: Box<Self>) -> Result<Told, Failure>;
}

/// The JSON of an event. One that ends too early is what is left of an answer that broke off.
pub(super) fn json(data: &str) -> Result<Value, Failure> {
    match serde_json::from_str::<Value>(data) {
        Ok(value) if value.is_object() => Ok(value),
        Err(error) if error.is_eof() => Err(cut("an event is not whole")),
        Ok(_) | Err(_) => Err(unreadable("an event of the answer is no JSON object")),
    }
}

/// That an answer has too many parts.
pub(super) fn too_many_parts() -> Failure {
    unreadable(format!("the answer has more than {PARTS_MAX} parts"))
}

/// That an answer is not what the format says.
pub(super) fn unreadable(what: impl Into<String>) -> Failure {
    Failure::new(ModelErrorKind::Unreadable, what)
}

/// That an answer ended before its end.
pub(super) fn cut(what: &str) -> Failure {
    Failure::new(ModelErrorKind::Cut, format!("the answer broke off: {what}"))
}

/// The arguments of a call: nothing is no arguments, and what is no object is kept as it came.
pub(super) fn arguments(text: String) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    match serde_json::from_str::<Value>(&text) {
        Ok(value) if value.is_object() => Ok(value),
        _ => Err(text),
    }
}

/// Arguments as a provider takes them back: an object. Servers fail on a text that is no JSON, so it goes into one.
pub(super) fn arguments_back(arguments: &Result<Value, String>) -> Value {
    match arguments {
        Ok(value) if value.is_object() => value.clone(),
        Ok(value) => json!({ "invalid_arguments": value }),
        Err(text) => json!({ "invalid_arguments": text }),
    }
}

/// A number of tokens.
pub(super) fn tokens(usage: &Value, pointer: &str) -> Option<u64> {
    usage.pointer(pointer).and_then(Value::as_u64)
}

/// Adds settings to others, field by field where both are objects.
pub(super) fn merge(into: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (key, value) in more {
        match (into.get_mut(key), value) {
            (Some(Value::Object(into)), Value::Object(more)) => merge(into, more),
            _ => drop(into.insert(key.clone(), value.clone())),
        }
    }
}

/// The host's word of this call; none where it says nothing.
///
/// It goes to the end of the last turn, as text of a user's. In the prompt at the beginning it would make the whole call
/// new to the provider's cache, and templates of many models refuse a system message anywhere else.
pub(super) fn word(ask: &Ask) -> Option<String> {
    let words = ask.messages.iter().filter(|message| message.role == Role::System);
    let words: Vec<_> = words.map(|message| message.content.as_text()).filter(|text| !text.trim().is_empty()).collect();
    (!words.is_empty()).then(|| words.join("\n\n"))
}

/// Puts the host's word to the end of messages as formats of chats have them: into a last one that is a user's or a
/// result, because there are servers that refuse a user's message behind either.
pub(super) fn say_last(messages: &mut Vec<Value>, word: String) {
    match messages.last_mut().filter(|last| last["role"] == "user" || last["role"] == "tool") {
        None => messages.push(json!({ "role": "user", "content": word })),
        Some(last) => match &mut last["content"] {
            Value::Array(parts) => parts.push(json!({ "type": "text", "text": word })),
            Value::String(text) if !text.is_empty() => {
                text.push_str("\n\n");
                text.push_str(&word);
            }
            empty => *empty = json!(word),
        },
    }
}

/// Whether an answer calls a tool.
pub(super) fn has_calls(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::ToolCall { .. }))
}

/// The tool that a call of the conversation is of.
pub(super) fn name_of_call<'a>(ask: &'a Ask, call_id: &str) -> Option<&'a str> {
    let parts = ask.messages.iter().rev().flat_map(|message| match &message.content {
        Content::Parts(parts) => parts.as_slice(),
        Content::Text(_) => &[],
    });
    let name = |part: &'a Part| match part {
        Part::ToolCall { call_id: of, tool_name, .. } if of == call_id => Some(tool_name.as_str()),
        _ => None,
    };
    parts.filter_map(name).next()
}
