//! Chat of Ollama: the conversation as its own format has it, and the lines of an answer.
//!
//! It is spoken instead of the chat completions that Ollama has, too, because those can neither be told how much context
//! to make room for (Ollama cuts a conversation silently) nor how long the model stays loaded.

use assistant_protocol::types::{Content, FinishReason, Message, Part, Role, Usage};
use serde_json::{Map, Value, json};

use super::Body;
use super::failure::Failure;
use super::openai::ERROR_PREFIX;
use super::pictures::{self, Picture, USUAL};
use super::told::{self, Fold, PARTS_MAX, Told};
use crate::model::{Ask, Progress, ToolChoice};

/// What is sent.
pub(super) fn body(ask: &Ask, tokens: u32, context_tokens: Option<u32>) -> Body {
    let mut options = json!({ "num_predict": tokens });
    if let Some(context_tokens) = context_tokens {
        options["num_ctx"] = json!(context_tokens);
    }
    let mut settings = Map::from_iter([("options".to_owned(), options)]);
    let mut messages = Vec::new();
    if let Some(system) = ask.system.as_ref().filter(|system| !system.is_empty()) {
        messages.push(json!({ "role": "system", "content": system }));
    }
    let mut waiting = Vec::new();
    for message in &ask.messages {
        if message.role != Role::Tool {
            // Nothing may stand between the results of one turn, so their pictures follow the last of them.
            messages.append(&mut waiting);
        }
        match message.role {
            Role::System => {}
            Role::User => messages.push(said(&message.content.parts())),
            Role::Assistant => {
                messages.push(assistant(message));
                waiting.extend(shown(pictures::made(&message.content)));
            }
            Role::Tool => results(message, ask, &mut messages, &mut waiting),
        }
    }
    messages.append(&mut waiting);
    if let Some(word) = told::word(ask) {
        told::say_last(&mut messages, word);
    }
    let mut conversation = Map::from_iter([("messages".to_owned(), Value::Array(messages))]);
    // There is no way to demand a call, and none to forbid one but to name no tool.
    if !ask.tools.is_empty() && ask.tool_choice != ToolChoice::None {
        let tools = ask.tools.iter().map(|tool| {
            let function =
                json!({ "name": tool.name, "description": tool.description, "parameters": tool.input_schema });
            json!({ "type": "function", "function": function })
        });
        conversation.insert("tools".to_owned(), tools.collect());
    } else if let Some(schema) = &ask.output_schema {
        // An answer that is held to a schema cannot call a tool.
        settings.insert("format".to_owned(), schema.clone());
    }
    Body { settings, conversation }
}

/// A user's message with its pictures.
fn said(parts: &[Part]) -> Value {
    let (mut text, mut images) = (String::new(), Vec::new());
    for part in parts {
        match (part, pictures::of(part, USUAL)) {
            (Part::Text { text: more }, _) => text.push_str(more),
            (_, Some(Picture::Words(words))) => text.push_str(&words),
            (_, Some(Picture::Data { data, .. })) => images.push(json!(data)),
            (_, None) => {}
        }
    }
    let mut message = json!({ "role": "user", "content": text });
    if !images.is_empty() {
        message["images"] = images.into();
    }
    message
}

fn shown(told: Option<(String, Vec<Part>)>) -> Option<Value> {
    let (words, parts) = told?;
    let parts: Vec<_> = std::iter::once(Part::text(words)).chain(parts).collect();
    Some(said(&parts))
}

fn assistant(message: &Message) -> Value {
    let (mut text, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
    for part in message.content.parts().iter() {
        match part {
            Part::Text { text: more } => text.push_str(more),
            Part::Reasoning { text: more } => thinking.push_str(more.as_deref().unwrap_or("")),
            Part::ToolCall { call_id, tool_name, arguments } => {
                let function = json!({ "name": tool_name, "arguments": told::arguments_back(arguments) });
                calls.push(json!({ "id": call_id, "function": function }));
            }
            Part::Image { .. } | Part::Opaque { .. } | Part::ToolResult { .. } | Part::Unknown(_) => {}
        }
    }
    let mut message = json!({ "role": "assistant", "content": text });
    if !thinking.is_empty() {
        message["thinking"] = thinking.into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    message
}

fn results(message: &Message, ask: &Ask, messages: &mut Vec<Value>, waiting: &mut Vec<Value>) {
    for part in message.content.parts().iter() {
        let Part::ToolResult { call_id, content, is_error } = part else { continue };
        let mut text = Content::Parts(content.clone()).as_text().into_owned();
        if *is_error {
            text.insert_str(0, ERROR_PREFIX);
        }
        let mut result = json!({ "role": "tool", "content": text, "tool_call_id": call_id });
        if let Some(name) = told::name_of_call(ask, call_id) {
            result["tool_name"] = json!(name);
        }
        messages.push(result);
        waiting.extend(shown(pictures::of_result(call_id, content)));
    }
}

/// A failure with what to do at a server of one's own.
pub(super) fn failure(failure: Failure) -> Failure {
    match failure.status() {
        Some(404) => failure.saying("`{model}` is not there at {host}; fetch it: `ollama pull {model}`"),
        _ => failure,
    }
}

/// Adds up lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    parts: Vec<Part>,
    model: Option<String>,
    usage: Usage,
    finish: Option<String>,
    done: bool,
}

impl Lines {
    fn push(&mut self, part: Part) -> Result<(), Failure> {
        if self.parts.len() >= PARTS_MAX {
            return Err(told::too_many_parts());
        }
        self.parts.push(part);
        Ok(())
    }

    fn text(&mut self, more: &str) -> Result<(), Failure> {
        match self.parts.last_mut() {
            _ if more.is_empty() => Ok(()),
            Some(Part::Text { text }) => {
                text.push_str(more);
                Ok(())
            }
            _ => self.push(Part::text(more)),
        }
    }

    fn thought(&mut self, more: &str) -> Result<(), Failure> {
        match self.parts.last_mut() {
            _ if more.is_empty() => Ok(()),
            Some(Part::Reasoning { text: Some(text) }) => {
                text.push_str(more);
                Ok(())
            }
            _ => self.push(Part::Reasoning { text: Some(more.to_owned()) }),
        }
    }

    /// A whole call; Ollama sends none in pieces.
    fn call(&mut self, call: &Value) -> Result<(), Failure> {
        let text = |pointer: &str| call.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned();
        let arguments = match call.pointer("/function/arguments") {
            Some(Value::String(text)) => told::arguments(text.clone()),
            Some(Value::Null) | None => Ok(json!({})),
            Some(value) if value.is_object() => Ok(value.clone()),
            Some(value) => Err(value.to_string()),
        };
        self.push(Part::ToolCall { call_id: text("/id"), tool_name: text("/function/name"), arguments })
    }
}

impl Fold for Lines {
    fn event(&mut self, data: &str, seen: &mut Vec<Progress>) -> Result<(), Failure> {
        let line = told::json(data)?;
        if line.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Failure::of_provider(None, &line));
        }
        let message = |key: &str| line.get("message").and_then(|message| message.get(key));
        let text = |key: &str| message(key).and_then(Value::as_str).unwrap_or("");
        let (thought, said) = (text("thinking"), text("content"));
        self.thought(thought)?;
        seen.extend((!thought.is_empty()).then(|| Progress::Reasoning(thought.to_owned())));
        self.text(said)?;
        seen.extend((!said.is_empty()).then(|| Progress::Text(said.to_owned())));
        for call in message("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.call(call)?;
        }
        if let Some(model) = line.get("model").and_then(Value::as_str) {
            self.model = Some(model.to_owned());
        }
        if line.get("done").and_then(Value::as_bool) == Some(true) {
            self.done = true;
            self.finish = line.get("done_reason").and_then(Value::as_str).map(str::to_owned);
            self.usage = Usage {
                input_tokens: told::tokens(&line, "/prompt_eval_count"),
                output_tokens: told::tokens(&line, "/eval_count"),
                cache_read_tokens: told::tokens(&line, "/prompt_eval_cached_count"),
                cache_write_tokens: None,
                reasoning_tokens: None,
            };
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn finish(self: Box<Self>) -> Result<Told, Failure> {
        if !self.done {
            return Err(told::cut("its end has not come"));
        }
        let finish = match self.finish.as_deref() {
            // Older servers tell no reason.
            Some("stop") | None if told::has_calls(&self.parts) => FinishReason::ToolCalls,
            Some("stop") | None => FinishReason::Stop,
            Some("length") => FinishReason::Length,
            Some(other) => FinishReason::Other(other.to_owned()),
        };
        Ok(Told { parts: self.parts, finish, usage: self.usage, model: self.model })
    }
}
