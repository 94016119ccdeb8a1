//! The events of an answer.

use std::collections::BTreeMap;

use assistant_protocol::types::{FinishReason, Part, Usage};
use serde_json::{Map, Value, json};

use crate::model::Progress;
use crate::model::network::failure::Failure;
use crate::model::network::told::{self, Fold, PARTS_MAX, Told};
use crate::model::network::{Wire, opaque};

/// Adds up events.
#[derive(Debug)]
pub(in crate::model::network) struct Events {
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
    pub(in crate::model::network) fn new(configured_model: &str) -> Self {
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

    fn delta(&mut self, index: u64, delta: &Value, seen: &mut Vec<Progress>) {
        let Some(block) = self.blocks.get_mut(&index) else { return };
        let text = |key: &str| delta.get(key).and_then(Value::as_str).unwrap_or("");
        match text("type") {
            "text_delta" => {
                block.append("text", text("text"));
                seen.push(Progress::Text(text("text").to_owned()));
            }
            "thinking_delta" => {
                block.append("thinking", text("thinking"));
                seen.push(Progress::Reasoning(text("thinking").to_owned()));
            }
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
    fn is_done(&self) -> bool {
        self.done
    }

    fn event(&mut self, data: &str, seen: &mut Vec<Progress>) -> Result<(), Failure> {
        let event = told::json(data)?;
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        match event.get("type").and_then(Value::as_str).unwrap_or("") {
            "message_start" => {
                self.model = event.pointer("/message/model").and_then(Value::as_str).map(str::to_owned);
                self.add_usage(event.pointer("/message/usage"));
            }
            "content_block_start" => match event.get("content_block").filter(|block| block.is_object()) {
                Some(block) => self.start(index, block)?,
                None => return Err(told::unreadable("a block of the answer is no object")),
            },
            "content_block_delta" => self.delta(index, &event["delta"], seen),
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
