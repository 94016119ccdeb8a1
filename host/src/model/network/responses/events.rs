//! The events of an answer.

use std::collections::BTreeMap;

use assistant_protocol::types::{FinishReason, Part, Usage};
use serde_json::Value;

use crate::model::Progress;
use crate::model::network::failure::Failure;
use crate::model::network::told::{self, Fold, PARTS_MAX, Told};
use crate::model::network::{Wire, opaque};

/// The last event of each answer, by what came of it.
const ENDS: [&str; 4] = ["response.completed", "response.incomplete", "response.failed", "response.cancelled"];

/// Adds up events. The pieces are for whoever looks on; what counts are the whole items.
#[derive(Debug)]
pub(in crate::model::network) struct Events {
    configured_model: String,
    items: BTreeMap<u64, Value>,
    model: Option<String>,
    /// The answer with its last state.
    end: Option<Value>,
}

impl Events {
    pub(in crate::model::network) fn new(configured_model: &str) -> Self {
        Self { configured_model: configured_model.to_owned(), items: BTreeMap::new(), model: None, end: None }
    }
}

impl Fold for Events {
    fn event(&mut self, data: &str, seen: &mut Vec<Progress>) -> Result<(), Failure> {
        // Some servers end as chat completions do.
        if data.trim() == "[DONE]" {
            return Ok(());
        }
        let mut event = told::json(data)?;
        let kind = event.get("type").and_then(Value::as_str).unwrap_or("").to_owned();
        let delta = || event.get("delta").and_then(Value::as_str).filter(|delta| !delta.is_empty());
        match kind.as_str() {
            "response.output_text.delta" | "response.refusal.delta" => {
                seen.extend(delta().map(|delta| Progress::Text(delta.to_owned())));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                seen.extend(delta().map(|delta| Progress::Reasoning(delta.to_owned())));
            }
            "response.output_item.done" => {
                if self.items.len() >= PARTS_MAX {
                    return Err(told::too_many_parts());
                }
                let index = event.get("output_index").and_then(Value::as_u64).unwrap_or(self.items.len() as u64);
                self.items.insert(index, event["item"].take());
            }
            // Its fields are in the event itself, or below `error` as those of other answers.
            "error" => return Err(Failure::of_provider(None, &event)),
            kind if ENDS.contains(&kind) => {
                let response = event["response"].take();
                if kind == "response.failed" {
                    return Err(Failure::of_provider(None, &response));
                }
                self.end = Some(response);
            }
            // A step between, or an event that came with a later version of the format.
            _ => {
                let model = event.pointer("/response/model").and_then(Value::as_str);
                self.model = model.map(str::to_owned).or(self.model.take());
            }
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.end.is_some()
    }

    fn finish(self: Box<Self>) -> Result<Told, Failure> {
        let end = self.end.ok_or_else(|| told::cut("its end has not come"))?;
        let mut items: Vec<Value> = self.items.into_values().collect();
        if items.is_empty() {
            items = end.get("output").and_then(Value::as_array).cloned().unwrap_or_default();
        }
        let mut refused = false;
        let mut parts = Vec::new();
        for item in items {
            refused |= add(item, &self.configured_model, &mut parts);
        }
        if parts.len() > PARTS_MAX {
            return Err(told::too_many_parts());
        }
        let text = |pointer: &str| end.pointer(pointer).and_then(Value::as_str);
        let finish = match (text("/status").unwrap_or(""), text("/incomplete_details/reason")) {
            ("completed", _) if refused => FinishReason::Refused,
            ("completed", _) if told::has_calls(&parts) => FinishReason::ToolCalls,
            ("completed", _) => FinishReason::Stop,
            ("incomplete", Some("max_output_tokens")) => FinishReason::Length,
            ("incomplete", Some("content_filter")) => FinishReason::Refused,
            ("incomplete", Some(other)) => FinishReason::Other(other.to_owned()),
            (other, _) => return Err(told::cut(&format!("its state is `{}`", other.escape_debug()))),
        };
        let usage = end.get("usage").map_or_else(Usage::default, usage_of);
        let model = text("/model").map(str::to_owned).or(self.model);
        Ok(Told { parts, finish, usage, model })
    }
}

/// Adds the parts of an item; true where it refuses.
fn add(mut item: Value, model: &str, parts: &mut Vec<Part>) -> bool {
    let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
    match text("type").as_str() {
        "message" => {
            let content = item.get("content").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let said = |part: &Value, key: &str| part.get(key).and_then(Value::as_str).map(str::to_owned);
            let texts = content.iter().filter_map(|part| said(part, "text").or_else(|| said(part, "refusal")));
            parts.extend(texts.filter(|text| !text.is_empty()).map(Part::text));
            content.iter().any(|part| part["type"] == "refusal")
        }
        "function_call" => {
            let arguments = told::arguments(text("arguments"));
            parts.push(Part::ToolCall { call_id: text("call_id"), tool_name: text("name"), arguments });
            false
        }
        "image_generation_call" => {
            let format = Some(text("output_format")).filter(|format| !format.is_empty());
            let mime_type = format!("image/{}", format.as_deref().unwrap_or("png"));
            let data = Some(text("result")).filter(|data| !data.is_empty());
            parts.extend(data.map(|data| Part::Image { mime_type, data: Some(data), blob: None }));
            false
        }
        // What is not encrypted is at the provider, where nothing is kept: only its words are left.
        "reasoning" if text("encrypted_content").is_empty() => {
            let words = words_of(&item);
            parts.extend((!words.is_empty()).then_some(Part::Reasoning { text: Some(words) }));
            false
        }
        _ => {
            // A state is told and not taken back.
            if let Some(item) = item.as_object_mut() {
                item.retain(|key, value| key != "status" && !value.is_null());
            }
            parts.push(opaque(Wire::Responses, model, item));
            false
        }
    }
}

/// The words of a thought: of its summary, or of itself where a server shows that.
fn words_of(item: &Value) -> String {
    let list = |key: &str| item.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let words = [list("summary"), list("content")].concat();
    let words: Vec<_> = words.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect();
    words.join("\n\n")
}

fn usage_of(usage: &Value) -> Usage {
    let tokens = |pointer| told::tokens(usage, pointer);
    Usage {
        input_tokens: tokens("/input_tokens"),
        output_tokens: tokens("/output_tokens"),
        cache_read_tokens: tokens("/input_tokens_details/cached_tokens"),
        cache_write_tokens: None,
        reasoning_tokens: tokens("/output_tokens_details/reasoning_tokens"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_item_becomes_parts() {
        let check = |item: Value, want: Vec<Part>, refuses: bool| {
            let mut parts = Vec::new();
            assert_eq!((add(item.clone(), "m", &mut parts), parts), (refuses, want), "{item}");
        };
        let message = |content: Value| json!({ "type": "message", "role": "assistant", "content": content });
        let text = |text: &str| json!({ "type": "output_text", "text": text, "annotations": [] });
        check(message(json!([text("a"), text(""), text("b")])), vec![Part::text("a"), Part::text("b")], false);
        check(message(json!([{ "type": "refusal", "refusal": "no" }])), vec![Part::text("no")], true);
        check(message(json!(null)), vec![], false);
        let thought = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" });
        let mut told = thought.clone();
        told["status"] = json!("completed");
        told["content"] = Value::Null;
        check(told, vec![opaque(Wire::Responses, "m", thought)], false);
        let summary = json!([{ "type": "summary_text", "text": "one" }, { "type": "summary_text", "text": "two" }]);
        let words = Part::Reasoning { text: Some("one\n\ntwo".into()) };
        check(json!({ "type": "reasoning", "id": "rs_2", "summary": summary }), vec![words], false);
        check(json!({ "type": "reasoning", "id": "rs_3" }), vec![], false);
        let search = json!({ "type": "web_search_call", "id": "ws_1", "action": { "query": "q" } });
        check(search.clone(), vec![opaque(Wire::Responses, "m", search)], false);
        let image = Part::Image { mime_type: "image/webp".into(), data: Some("AA==".into()), blob: None };
        check(
            json!({ "type": "image_generation_call", "result": "AA==", "output_format": "webp" }),
            vec![image],
            false,
        );
        check(json!({ "type": "image_generation_call", "result": null }), vec![], false);
    }
}
