//! The chunks of an answer.

use assistant_protocol::types::{FinishReason, Part, Usage};
use serde_json::{Value, json};

use crate::model::Progress;
use crate::model::network::failure::Failure;
use crate::model::network::pictures;
use crate::model::network::told::{self, Fold, PARTS_MAX, Told};
use crate::model::network::{Wire, opaque};

/// The end of a stream.
const DONE: &str = "[DONE]";

/// Adds up chunks.
#[derive(Debug)]
pub(in crate::model::network) struct Chunks {
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
    Image(Part),
    Call {
        index: Option<u64>,
        id: String,
        name: String,
        arguments: String,
    },
}

impl Chunks {
    pub(in crate::model::network) fn new(configured_model: &str) -> Self {
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

    fn text(&mut self, more: &str, seen: &mut Vec<Progress>) -> Result<(), Failure> {
        seen.extend((!more.is_empty()).then(|| Progress::Text(more.to_owned())));
        match self.parts.last_mut() {
            _ if more.is_empty() => Ok(()),
            Some(Piece::Text(text)) => {
                text.push_str(more);
                Ok(())
            }
            _ => self.push(Piece::Text(more.to_owned())),
        }
    }

    fn reasoning(&mut self, more: &str, seen: &mut Vec<Progress>) -> Result<(), Failure> {
        seen.extend((!more.is_empty()).then(|| Progress::Reasoning(more.to_owned())));
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
    fn list(&mut self, items: &[Value], seen: &mut Vec<Progress>) -> Result<(), Failure> {
        for item in items {
            let text = item.get("text").and_then(Value::as_str);
            match (item.get("type").and_then(Value::as_str), item.get("thinking")) {
                (Some("text"), _) => self.text(text.unwrap_or(""), seen)?,
                (Some("thinking"), Some(Value::String(thought))) => self.reasoning(thought, seen)?,
                (Some("thinking"), Some(Value::Array(thoughts))) => {
                    for thought in thoughts.iter().filter_map(|thought| thought.get("text").and_then(Value::as_str)) {
                        self.reasoning(thought, seen)?;
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
            Piece::Text(_) | Piece::Reasoning(_) | Piece::Detail(_) | Piece::Image(_) => false,
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

    fn delta(&mut self, delta: &Value, seen: &mut Vec<Progress>) -> Result<(), Failure> {
        let text = |key: &str| delta.get(key).and_then(Value::as_str);
        let thought = text("reasoning_content").or_else(|| text("reasoning"));
        self.reasoning(thought.unwrap_or(""), seen)?;
        let list = |key: &str| delta.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for detail in list("reasoning_details") {
            self.detail(detail)?;
            // Most tell the same thought in both fields.
            let told = detail.get("text").or_else(|| detail.get("summary")).and_then(Value::as_str);
            seen.extend(told.filter(|_| thought.is_none()).map(|told| Progress::Reasoning(told.to_owned())));
        }
        match delta.get("content") {
            Some(Value::String(text)) => self.text(text, seen)?,
            Some(Value::Array(items)) => self.list(items, seen)?,
            _ => {}
        }
        if let Some(refusal) = text("refusal").filter(|refusal| !refusal.is_empty()) {
            self.refused = true;
            self.text(refusal, seen)?;
        }
        // As gateways pass on the pictures that models make.
        for image in list("images").iter().filter_map(|image| image.pointer("/image_url/url")?.as_str()) {
            if let Some(image) = pictures::from_url(image) {
                self.push(Piece::Image(image))?;
            }
        }
        for call in list("tool_calls") {
            self.call(call)?;
        }
        Ok(())
    }
}

impl Fold for Chunks {
    fn is_done(&self) -> bool {
        self.done
    }

    fn event(&mut self, data: &str, seen: &mut Vec<Progress>) -> Result<(), Failure> {
        if data.trim() == DONE {
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
                self.delta(delta, seen)?;
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
            Piece::Image(image) => image,
            Piece::Detail(data) => opaque(Wire::OpenAi, &self.configured_model, data),
            Piece::Call { id, name, arguments, .. } => {
                Part::ToolCall { call_id: id, tool_name: name, arguments: told::arguments(arguments) }
            }
        };
        let parts: Vec<_> = self.parts.into_iter().map(part).collect();
        let calls = told::has_calls(&parts);
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
