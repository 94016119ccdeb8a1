//! Chat completions: the conversation as OpenAI's format has it, and the chunks of an answer.

use assistant_protocol::types::{Content, FinishReason, Message, Part, Role, Usage};
use serde_json::{Map, Value, json};

use super::failure::Failure;
use super::told::{self, Fold, PARTS_MAX, Told};
use super::{Wire, is_ours, opaque};
use crate::model::{Ask, ToolChoice};

/// Models that refuse `max_tokens`, by how their names begin.
const NEW_TOKEN_FIELD: [&str; 6] = ["gpt-5", "gpt-6", "o1", "o3", "o4", "chatgpt-"];

/// The end of a stream.
const DONE: &str = "[DONE]";

/// What stands before the result of a tool that failed; the format has no field for it.
const ERROR_PREFIX: &str = "Error: ";

/// The settings, which configuration may replace, and the conversation, which it may not. `own` is OpenAI itself.
pub(super) fn body(ask: &Ask, model: &str, tokens: u32, own: bool) -> (Map<String, Value>, Map<String, Value>) {
    let field = if NEW_TOKEN_FIELD.iter().any(|start| model.starts_with(start)) {
        "max_completion_tokens"
    } else {
        "max_tokens"
    };
    let mut settings = Map::from_iter([(field.to_owned(), json!(tokens))]);
    let mut messages = Vec::new();
    if let Some(system) = ask.system.as_ref().filter(|system| !system.is_empty()) {
        messages.push(json!({ "role": "system", "content": system }));
    }
    let mut pictures = Vec::new();
    for message in &ask.messages {
        if message.role != Role::Tool {
            // Nothing may stand between the results of one turn, so their pictures follow the last of them.
            messages.extend(pictures_message(&mut pictures));
        }
        match message.role {
            Role::System => messages.push(json!({ "role": "system", "content": message.content.as_text() })),
            Role::User => messages.push(json!({ "role": "user", "content": user_content(&message.content) })),
            Role::Assistant => messages.push(assistant(message, model, own)),
            Role::Tool => results(message, &mut messages, &mut pictures),
        }
    }
    messages.extend(pictures_message(&mut pictures));
    let mut conversation = Map::from_iter([("messages".to_owned(), Value::Array(messages))]);
    if !ask.tools.is_empty() {
        let tools = ask.tools.iter().map(|tool| {
            let function =
                json!({ "name": tool.name, "description": tool.description, "parameters": tool.input_schema });
            json!({ "type": "function", "function": function })
        });
        conversation.insert("tools".to_owned(), tools.collect());
        match ask.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::None => drop(settings.insert("tool_choice".to_owned(), json!("none"))),
            ToolChoice::Required => drop(settings.insert("tool_choice".to_owned(), json!("required"))),
        }
    }
    (settings, conversation)
}

fn user_content(content: &Content) -> Value {
    let parts = content.parts();
    if let [Part::Text { text }] = parts.as_ref() {
        return json!(text);
    }
    parts.iter().filter_map(user_part).collect()
}

fn user_part(part: &Part) -> Option<Value> {
    match part {
        Part::Text { text } => Some(json!({ "type": "text", "text": text })),
        Part::Image { mime_type, data: Some(data), .. } => {
            let url = format!("data:{mime_type};base64,{data}");
            Some(json!({ "type": "image_url", "image_url": { "url": url } }))
        }
        Part::Image { data: None, .. } => Some(json!({ "type": "text", "text": "[a picture that is not kept]" })),
        Part::Reasoning { .. }
        | Part::ToolCall { .. }
        | Part::ToolResult { .. }
        | Part::Opaque { .. }
        | Part::Unknown(_) => None,
    }
}

fn assistant(message: &Message, model: &str, own: bool) -> Value {
    let mut text = String::new();
    let mut reasoning = String::new();
    let mut details = Vec::new();
    let mut calls = Vec::new();
    for part in message.content.parts().iter() {
        match part {
            Part::Text { text: more } => text.push_str(more),
            Part::Reasoning { text: more } => reasoning.push_str(more.as_deref().unwrap_or("")),
            Part::ToolCall { call_id, tool_name, arguments } => {
                let arguments = told::arguments_back(arguments).to_string();
                let function = json!({ "name": tool_name, "arguments": arguments });
                calls.push(json!({ "id": call_id, "type": "function", "function": function }));
            }
            Part::Opaque { provider, model: of, data } if is_ours(provider, of, Wire::OpenAi, model) => {
                details.push(data.clone());
            }
            Part::Opaque { .. } | Part::Image { .. } | Part::ToolResult { .. } | Part::Unknown(_) => {}
        }
    }
    let mut message = json!({ "role": "assistant", "content": text });
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    // Servers whose models think want it back while tools are called; OpenAI itself knows no such field.
    if !reasoning.is_empty() && !own {
        message["reasoning_content"] = reasoning.into();
    }
    if !details.is_empty() {
        message["reasoning_details"] = details.into();
    }
    message
}

fn results(message: &Message, messages: &mut Vec<Value>, pictures: &mut Vec<Value>) {
    for part in message.content.parts().iter() {
        let Part::ToolResult { call_id, content, is_error } = part else { continue };
        let mut text = Content::Parts(content.clone()).as_text().into_owned();
        if *is_error {
            text.insert_str(0, ERROR_PREFIX);
        }
        let images = content.iter().filter(|part| matches!(part, Part::Image { .. }));
        let images: Vec<_> = images.filter_map(user_part).collect();
        if !images.is_empty() {
            pictures.push(json!({ "type": "text", "text": format!("Pictures of the result of {call_id}:") }));
            pictures.extend(images);
        }
        messages.push(json!({ "role": "tool", "tool_call_id": call_id, "content": text }));
    }
}

fn pictures_message(pictures: &mut Vec<Value>) -> Option<Value> {
    (!pictures.is_empty()).then(|| json!({ "role": "user", "content": std::mem::take(pictures) }))
}

/// Adds up chunks.
#[derive(Debug)]
pub(super) struct Chunks {
    configured_model: String,
    parts: Vec<Piece>,
    finish: Option<String>,
    refused: bool,
    usage: Usage,
    model: Option<String>,
    done: bool,
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Reasoning(String),
    /// A signed thought, as gateways pass them through.
    Detail(Value),
    Call {
        index: Option<u64>,
        id: String,
        name: String,
        arguments: String,
    },
}

impl Chunks {
    pub(super) fn new(configured_model: &str) -> Self {
        Self {
            configured_model: configured_model.to_owned(),
            parts: Vec::new(),
            finish: None,
            refused: false,
            usage: Usage::default(),
            model: None,
            done: false,
        }
    }

    fn push(&mut self, piece: Piece) -> Result<(), Failure> {
        if self.parts.len() >= PARTS_MAX {
            return Err(told::too_many_parts());
        }
        self.parts.push(piece);
        Ok(())
    }

    fn text(&mut self, more: &str) -> Result<(), Failure> {
        match self.parts.last_mut() {
            _ if more.is_empty() => Ok(()),
            Some(Piece::Text(text)) => {
                text.push_str(more);
                Ok(())
            }
            _ => self.push(Piece::Text(more.to_owned())),
        }
    }

    fn reasoning(&mut self, more: &str) -> Result<(), Failure> {
        match self.parts.last_mut() {
            _ if more.is_empty() => Ok(()),
            Some(Piece::Reasoning(text)) => {
                text.push_str(more);
                Ok(())
            }
            _ => self.push(Piece::Reasoning(more.to_owned())),
        }
    }

    /// A list of texts and thoughts, where a server sends that in the place of a text.
    fn list(&mut self, items: &[Value]) -> Result<(), Failure> {
        for item in items {
            let text = item.get("text").and_then(Value::as_str);
            match (item.get("type").and_then(Value::as_str), item.get("thinking")) {
                (Some("text"), _) => self.text(text.unwrap_or(""))?,
                (Some("thinking"), Some(Value::String(thought))) => self.reasoning(thought)?,
                (Some("thinking"), Some(Value::Array(thoughts))) => {
                    for thought in thoughts.iter().filter_map(|thought| thought.get("text").and_then(Value::as_str)) {
                        self.reasoning(thought)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A piece of a signed thought: what has the same index belongs together, texts are joined, the rest replaced.
    fn detail(&mut self, more: &Value) -> Result<(), Failure> {
        let Some(fields) = more.as_object() else { return Ok(()) };
        let same = |piece: &&mut Piece| matches!(piece, Piece::Detail(d) if d.get("index").is_some() && d.get("index") == more.get("index"));
        let Some(Piece::Detail(detail)) = self.parts.iter_mut().rev().find(same) else {
            return self.push(Piece::Detail(more.clone()));
        };
        for (key, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            match (key.as_str(), detail.get(key).and_then(Value::as_str), value.as_str()) {
                ("text" | "summary" | "data", Some(text), Some(more)) => detail[key] = json!(format!("{text}{more}")),
                _ => detail[key] = value.clone(),
            }
        }
        Ok(())
    }

    /// A piece of a call. It belongs to the call of its index; without an index, a new id begins a new call. The index
    /// is only compared, never a length.
    fn call(&mut self, more: &Value) -> Result<(), Failure> {
        let text = |pointer: &str| more.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        let (id, name) = (text("/id"), text("/function/name"));
        let index = more.get("index").and_then(Value::as_u64);
        let arguments = match more.pointer("/function/arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(value) => value.to_string(),
        };
        let belongs = |piece: &&mut Piece| match piece {
            Piece::Call { index: of, id: of_id, .. } => match (index, *of) {
                (Some(index), Some(of)) => index == of,
                _ => id.is_empty() && name.is_empty() || !id.is_empty() && id == of_id,
            },
            Piece::Text(_) | Piece::Reasoning(_) | Piece::Detail(_) => false,
        };
        let Some(Piece::Call { id: of_id, name: of_name, arguments: of_arguments, .. }) =
            self.parts.iter_mut().rev().find(belongs)
        else {
            return self.push(Piece::Call { index, id: id.to_owned(), name: name.to_owned(), arguments });
        };
        if of_id.is_empty() {
            of_id.push_str(id);
        }
        if of_name.is_empty() {
            of_name.push_str(name);
        }
        of_arguments.push_str(&arguments);
        Ok(())
    }

    fn delta(&mut self, delta: &Value) -> Result<(), Failure> {
        let text = |key: &str| delta.get(key).and_then(Value::as_str);
        if let Some(thought) = text("reasoning_content").or_else(|| text("reasoning")) {
            self.reasoning(thought)?;
        }
        let list = |key: &str| delta.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for detail in list("reasoning_details") {
            self.detail(detail)?;
        }
        match delta.get("content") {
            Some(Value::String(text)) => self.text(text)?,
            Some(Value::Array(items)) => self.list(items)?,
            _ => {}
        }
        if let Some(refusal) = text("refusal").filter(|refusal| !refusal.is_empty()) {
            self.refused = true;
            self.text(refusal)?;
        }
        for call in list("tool_calls") {
            self.call(call)?;
        }
        Ok(())
    }
}

impl Fold for Chunks {
    fn event(&mut self, data: &str) -> Result<(), Failure> {
        if data == DONE {
            self.done = true;
            return Ok(());
        }
        let chunk = told::json(data)?;
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Failure::of_provider(None, &chunk));
        }
        if let Some(model) = chunk.get("model").and_then(Value::as_str).filter(|model| !model.is_empty()) {
            self.model = Some(model.to_owned());
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = usage_of(usage);
        }
        if let Some(choice) = chunk.pointer("/choices/0") {
            if let Some(delta) = choice.get("delta") {
                self.delta(delta)?;
            }
            if let Some(finish) = choice.get("finish_reason").and_then(Value::as_str) {
                self.finish = Some(finish.to_owned());
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Told, Failure> {
        let finish = self.finish.ok_or_else(|| told::cut("no reason of stopping has come"))?;
        if !self.done {
            return Err(told::cut("its end has not come"));
        }
        let part = |piece| match piece {
            Piece::Text(text) => Part::Text { text },
            Piece::Reasoning(text) => Part::Reasoning { text: Some(text) },
            Piece::Detail(data) => opaque(Wire::OpenAi, &self.configured_model, data),
            Piece::Call { id, name, arguments, .. } => {
                Part::ToolCall { call_id: id, tool_name: name, arguments: told::arguments(arguments) }
            }
        };
        let parts: Vec<_> = self.parts.into_iter().map(part).collect();
        let calls = parts.iter().any(|part| matches!(part, Part::ToolCall { .. }));
        let finish = match finish.as_str() {
            "stop" if self.refused => FinishReason::Refused,
            "stop" if calls => FinishReason::ToolCalls,
            "stop" => FinishReason::Stop,
            "tool_calls" | "function_call" => FinishReason::ToolCalls,
            "length" => FinishReason::Length,
            "content_filter" => FinishReason::Refused,
            other => FinishReason::Other(other.to_owned()),
        };
        Ok(Told { parts, finish, usage: self.usage, model: self.model })
    }
}

fn usage_of(usage: &Value) -> Usage {
    let tokens = |pointer| told::tokens(usage, pointer);
    Usage {
        input_tokens: tokens("/prompt_tokens"),
        output_tokens: tokens("/completion_tokens"),
        cache_read_tokens: tokens("/prompt_tokens_details/cached_tokens"),
        cache_write_tokens: tokens("/prompt_tokens_details/cache_write_tokens"),
        reasoning_tokens: tokens("/completion_tokens_details/reasoning_tokens"),
    }
}
