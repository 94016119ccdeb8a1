//! Messages: the conversation as Anthropic's format has it, and the events of an answer.

use std::collections::BTreeMap;

use assistant_protocol::types::{FinishReason, Message, Part, Role, Usage};
use serde_json::{Map, Value, json};

use super::failure::Failure;
use super::told::{self, Fold, PARTS_MAX, Told};
use super::{Wire, is_ours, opaque};
use crate::model::{Ask, ToolChoice};

/// The settings, which configuration may replace, and the conversation, which it may not.
pub(super) fn body(ask: &Ask, model: &str, tokens: u32) -> (Map<String, Value>, Map<String, Value>) {
    let mut settings = Map::from_iter([("max_tokens".to_owned(), json!(tokens))]);
    let mut system: Vec<_> = ask.system.iter().cloned().collect();
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in &ask.messages {
        let (role, blocks) = match message.role {
            Role::System => {
                system.push(message.content.as_text().into_owned());
                continue;
            }
            Role::Assistant => ("assistant", blocks(message, model)),
            Role::User | Role::Tool => ("user", blocks(message, model)),
        };
        // All results of a turn belong into one message, and an empty one is refused.
        match messages.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, before)) if *last == role => before.extend(blocks),
            _ => messages.push((role, blocks)),
        }
    }
    let messages = messages.into_iter().map(|(role, mut blocks)| {
        // Results come first in their message; the rest keeps its order.
        blocks.sort_by_key(|block| block["type"] != "tool_result");
        json!({ "role": role, "content": blocks })
    });
    let mut conversation = Map::from_iter([("messages".to_owned(), messages.collect())]);
    let system = system.iter().filter(|text| !text.is_empty()).map(String::as_str).collect::<Vec<_>>().join("\n\n");
    if !system.is_empty() {
        conversation.insert("system".to_owned(), json!(system));
    }
    if !ask.tools.is_empty() {
        let tool = |tool: &assistant_protocol::types::ToolSpec| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.input_schema });
        conversation.insert("tools".to_owned(), ask.tools.iter().map(tool).collect());
        match ask.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::None => drop(settings.insert("tool_choice".to_owned(), json!({ "type": "none" }))),
            ToolChoice::Required => drop(settings.insert("tool_choice".to_owned(), json!({ "type": "any" }))),
        }
    }
    (settings, conversation)
}

fn blocks(message: &Message, model: &str) -> Vec<Value> {
    message.content.parts().iter().filter_map(|part| block(part, model)).collect()
}

fn block(part: &Part, model: &str) -> Option<Value> {
    match part {
        // An empty text is refused.
        Part::Text { text } if text.is_empty() => None,
        Part::Text { text } => Some(json!({ "type": "text", "text": text })),
        Part::Image { mime_type, data: Some(data), .. } => {
            let source = json!({ "type": "base64", "media_type": mime_type, "data": data });
            Some(json!({ "type": "image", "source": source }))
        }
        Part::Image { data: None, .. } => Some(json!({ "type": "text", "text": "[a picture that is not kept]" })),
        Part::ToolCall { call_id, tool_name, arguments } => {
            let input = told::arguments_back(arguments);
            Some(json!({ "type": "tool_use", "id": plain(call_id), "name": tool_name, "input": input }))
        }
        Part::ToolResult { call_id, content, is_error } => {
            let content: Vec<_> = content.iter().filter_map(|part| block(part, model)).collect();
            let mut result = json!({ "type": "tool_result", "tool_use_id": plain(call_id), "content": content });
            if *is_error {
                result["is_error"] = json!(true);
            }
            Some(result)
        }
        Part::Opaque { provider, model: of, data } if is_ours(provider, of, Wire::Anthropic, model) => {
            Some(data.clone())
        }
        // A thought without a signature is refused.
        Part::Opaque { .. } | Part::Reasoning { .. } | Part::Unknown(_) => None,
    }
}

/// An id of another provider's may have characters that are refused here.
fn plain(call_id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    call_id.chars().map(plain).collect()
}

/// Adds up events.
#[derive(Debug)]
pub(super) struct Events {
    configured_model: String,
    blocks: BTreeMap<u64, Block>,
    finish: Option<String>,
    usage: Map<String, Value>,
    model: Option<String>,
    done: bool,
}

/// A block as it began, and the arguments that came for it.
#[derive(Debug)]
struct Block {
    start: Value,
    input: String,
}

impl Events {
    pub(super) fn new(configured_model: &str) -> Self {
        Self {
            configured_model: configured_model.to_owned(),
            blocks: BTreeMap::new(),
            finish: None,
            usage: Map::new(),
            model: None,
            done: false,
        }
    }

    fn add_usage(&mut self, usage: Option<&Value>) {
        let fields = usage.and_then(Value::as_object).into_iter().flatten();
        // The later event tells totals; a null says nothing.
        self.usage
            .extend(fields.filter(|(_, value)| !value.is_null()).map(|(key, value)| (key.clone(), value.clone())));
    }

    fn start(&mut self, index: u64, block: &Value) -> Result<(), Failure> {
        if self.blocks.len() >= PARTS_MAX {
            return Err(told::too_many_parts());
        }
        self.blocks.insert(index, Block { start: block.clone(), input: String::new() });
        Ok(())
    }

    fn delta(&mut self, index: u64, delta: &Value) {
        let Some(block) = self.blocks.get_mut(&index) else { return };
        let text = |key: &str| delta.get(key).and_then(Value::as_str).unwrap_or("");
        match text("type") {
            "text_delta" => block.append("text", text("text")),
            "thinking_delta" => block.append("thinking", text("thinking")),
            "signature_delta" => block.append("signature", text("signature")),
            "input_json_delta" => block.input.push_str(text("partial_json")),
            "citations_delta" => block.cite(&delta["citation"]),
            // A kind of piece that came with a later version of the format.
            _ => {}
        }
    }
}

impl Block {
    fn append(&mut self, key: &str, more: &str) {
        match self.start.get_mut(key) {
            Some(Value::String(text)) => text.push_str(more),
            _ => self.start[key] = json!(more),
        }
    }

    fn cite(&mut self, citation: &Value) {
        match self.start.get_mut("citations") {
            Some(Value::Array(citations)) => citations.push(citation.clone()),
            _ => self.start["citations"] = json!([citation]),
        }
    }

    fn part(mut self, model: &str) -> Part {
        let text = |key: &str| self.start.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
        match text("type").as_str() {
            "text" => Part::Text { text: text("text") },
            "thinking" if text("signature").is_empty() => Part::Reasoning { text: Some(text("thinking")) },
            "tool_use" => {
                let begun = self.start.get("input").filter(|input| input.as_object().is_some_and(|o| !o.is_empty()));
                let arguments = match begun {
                    Some(input) if self.input.is_empty() => Ok(input.clone()),
                    _ => told::arguments(self.input.clone()),
                };
                Part::ToolCall { call_id: text("id"), tool_name: text("name"), arguments }
            }
            _ => {
                if let Ok(input) = serde_json::from_str::<Value>(&self.input) {
                    self.start["input"] = input;
                }
                opaque(Wire::Anthropic, model, self.start)
            }
        }
    }
}

impl Fold for Events {
    fn event(&mut self, data: &str) -> Result<(), Failure> {
        let event = told::json(data)?;
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        match event.get("type").and_then(Value::as_str).unwrap_or("") {
            "message_start" => {
                self.model = event.pointer("/message/model").and_then(Value::as_str).map(str::to_owned);
                self.add_usage(event.pointer("/message/usage"));
            }
            "content_block_start" => match event.get("content_block").filter(|block| block.is_object()) {
                Some(block) => self.start(index, block)?,
                None => {
                    return Err(Failure::new(
                        crate::model::ModelErrorKind::Unreadable,
                        "a block of the answer is no object",
                    ));
                }
            },
            "content_block_delta" => self.delta(index, &event["delta"]),
            "message_delta" => {
                if let Some(finish) = event.pointer("/delta/stop_reason").and_then(Value::as_str) {
                    self.finish = Some(finish.to_owned());
                }
                self.add_usage(event.get("usage"));
            }
            "message_stop" => self.done = true,
            "error" => return Err(Failure::of_provider(None, &event)),
            // A ping, the end of a block, or an event that came with a later version of the format.
            _ => {}
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Told, Failure> {
        let finish = self.finish.ok_or_else(|| told::cut("no reason of stopping has come"))?;
        if !self.done {
            return Err(told::cut("its end has not come"));
        }
        let parts = self.blocks.into_values().map(|block| block.part(&self.configured_model)).collect();
        let finish = match finish.as_str() {
            "end_turn" | "stop_sequence" => FinishReason::Stop,
            "tool_use" => FinishReason::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
            "refusal" => FinishReason::Refused,
            other => FinishReason::Other(other.to_owned()),
        };
        Ok(Told { parts, finish, usage: usage_of(&Value::Object(self.usage)), model: self.model })
    }
}

/// Anthropic's input does not hold what the cache read or took; ours does.
fn usage_of(usage: &Value) -> Usage {
    let tokens = |pointer| told::tokens(usage, pointer);
    let (read, written) = (tokens("/cache_read_input_tokens"), tokens("/cache_creation_input_tokens"));
    Usage {
        input_tokens: tokens("/input_tokens").map(|input| input + read.unwrap_or(0) + written.unwrap_or(0)),
        output_tokens: tokens("/output_tokens"),
        cache_read_tokens: read,
        cache_write_tokens: written,
        reasoning_tokens: tokens("/output_tokens_details/thinking_tokens"),
    }
}
