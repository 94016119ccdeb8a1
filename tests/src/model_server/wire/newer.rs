//! Responses of OpenAI, `streamGenerateContent` of Gemini, and chat of Ollama.

use serde_json::{Value, json};

use super::{Said, Say, pieces};

/// The arguments of a call as a value, where a format sends no text.
fn value(arguments: &str) -> Value {
    if arguments.is_empty() { json!({}) } else { serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments)) }
}

impl Say {
    pub(super) fn responses(&self) -> String {
        let (mut events, mut number) = (String::new(), 0);
        let mut put = |mut event: Value| {
            event["sequence_number"] = json!(number);
            number += 1;
            let kind = event["type"].as_str().unwrap_or("").to_owned();
            events.push_str(&format!("event: {kind}\ndata: {event}\n\n"));
        };
        let response = |status: &str, output: &[Value]| {
            json!({ "id": "resp_1", "object": "response", "status": status,
            "model": self.model, "output": output, "error": null, "incomplete_details": null })
        };
        put(json!({ "type": "response.created", "response": response("in_progress", &[]) }));
        put(json!({ "type": "response.in_progress", "response": response("in_progress", &[]) }));
        let mut output = Vec::new();
        for (index, part) in self.parts.iter().enumerate() {
            let (begun, deltas, done) = part.item(index);
            put(json!({ "type": "response.output_item.added", "output_index": index, "item": begun }));
            for (kind, delta) in deltas {
                put(json!({ "type": kind, "item_id": done["id"], "output_index": index, "delta": delta }));
            }
            put(json!({ "type": "response.output_item.done", "output_index": index, "item": done }));
            output.push(done);
        }
        let status = if self.stop.is_some() { "incomplete" } else { "completed" };
        let mut last = response(status, &output);
        last["incomplete_details"] = self.stop.as_ref().map_or(Value::Null, |reason| json!({ "reason": reason }));
        let usage = json!({ "input_tokens": 11, "output_tokens": 5, "total_tokens": 16 });
        last["usage"] = self.usage.clone().unwrap_or(usage);
        put(json!({ "type": format!("response.{status}"), "response": last }));
        events
    }

    pub(super) fn gemini(&self) -> String {
        let mut chunks: Vec<Value> = Vec::new();
        let mut signature: Option<&String> = None;
        for part in &self.parts {
            let mut put = |mut part: Value, signature: Option<&String>| {
                if let Some(signature) = signature {
                    part["thoughtSignature"] = json!(signature);
                }
                let content = json!({ "role": "model", "parts": [part] });
                chunks.push(json!({ "candidates": [{ "content": content, "index": 0 }], "modelVersion": self.model }));
            };
            match part {
                Said::Text(text) => {
                    // A signature is with the last piece.
                    let mut all: Vec<_> = pieces(text).collect();
                    let last = all.pop().unwrap_or_default();
                    all.into_iter().for_each(|piece| put(json!({ "text": piece }), None));
                    put(json!({ "text": last }), signature.take());
                }
                Said::Thought { text, signature: signed } => {
                    pieces(text).for_each(|piece| put(json!({ "text": piece, "thought": true }), None));
                    signature = signed.as_ref();
                }
                Said::Redacted(data) => put(json!({ "text": "" }), Some(data)),
                Said::Picture { mime_type, data } => {
                    put(json!({ "inlineData": { "mimeType": mime_type, "data": data } }), signature.take());
                }
                Said::Call { id, name, arguments } => {
                    let mut call = json!({ "name": name, "args": value(arguments) });
                    if !id.is_empty() {
                        call["id"] = json!(id);
                    }
                    put(json!({ "functionCall": call }), signature.take());
                }
            }
        }
        let usage = json!({ "promptTokenCount": 11, "candidatesTokenCount": 5, "totalTokenCount": 16 });
        let usage = self.usage.clone().unwrap_or(usage);
        let finish = self.stop.clone().unwrap_or_else(|| "STOP".to_owned());
        let last = json!({ "candidates": [{ "finishReason": finish, "index": 0 }], "usageMetadata": usage,
            "modelVersion": self.model, "responseId": "r1" });
        chunks.iter().chain([&last]).map(|chunk| format!("data: {chunk}\r\n\r\n")).collect()
    }

    pub(super) fn ollama(&self) -> String {
        let mut lines = String::new();
        let mut put = |message: Value| {
            let line =
                json!({ "model": self.model, "created_at": "2026-01-01T00:00:00Z", "message": message, "done": false });
            lines.push_str(&format!("{line}\n"));
        };
        for part in &self.parts {
            match part {
                Said::Text(text) => {
                    pieces(text).for_each(|piece| put(json!({ "role": "assistant", "content": piece })));
                }
                Said::Thought { text, .. } => {
                    pieces(text)
                        .for_each(|piece| put(json!({ "role": "assistant", "content": "", "thinking": piece })));
                }
                Said::Call { id, name, arguments } => {
                    let mut call = json!({ "function": { "name": name, "arguments": value(arguments) } });
                    if !id.is_empty() {
                        call["id"] = json!(id);
                    }
                    put(json!({ "role": "assistant", "content": "", "tool_calls": [call] }));
                }
                // What this format does not have.
                Said::Redacted(_) | Said::Picture { .. } => {}
            }
        }
        let mut last = json!({ "model": self.model, "created_at": "2026-01-01T00:00:01Z",
            "message": { "role": "assistant", "content": "" }, "done": true, "total_duration": 1_000,
            "done_reason": self.stop.clone().unwrap_or_else(|| "stop".to_owned()) });
        let usage = json!({ "prompt_eval_count": 11, "eval_count": 5 });
        let usage = self.usage.clone().unwrap_or(usage);
        for (key, value) in usage.as_object().into_iter().flatten() {
            last[key] = value.clone();
        }
        format!("{lines}{last}\n")
    }
}

impl Said {
    /// The item of a response as it begins, its pieces, and as it ends.
    fn item(&self, index: usize) -> (Value, Vec<(&'static str, String)>, Value) {
        let deltas = |kind, text: &str| pieces(text).map(|piece| (kind, piece)).collect();
        match self {
            Said::Text(text) => {
                let item = |content: Value| {
                    json!({ "type": "message", "id": format!("msg_{index}"), "role": "assistant",
                    "status": "completed", "content": content })
                };
                let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
                (item(json!([])), deltas("response.output_text.delta", text), item(content))
            }
            Said::Thought { text, signature } => {
                let item = |summary: Value| {
                    json!({ "type": "reasoning", "id": format!("rs_{index}"), "summary": summary,
                    "encrypted_content": signature, "status": null })
                };
                let summary = json!([{ "type": "summary_text", "text": text }]);
                (item(json!([])), deltas("response.reasoning_summary_text.delta", text), item(summary))
            }
            Said::Redacted(data) => {
                let item = json!({ "type": "reasoning", "id": format!("rs_{index}"), "summary": [], "encrypted_content": data });
                (item.clone(), Vec::new(), item)
            }
            Said::Picture { mime_type, data } => {
                let format = mime_type.trim_start_matches("image/");
                let item = |status: &str, data: Value| {
                    json!({ "type": "image_generation_call", "id": format!("ig_{index}"),
                    "status": status, "output_format": format, "result": data })
                };
                (item("in_progress", Value::Null), Vec::new(), item("completed", json!(data)))
            }
            Said::Call { id, name, arguments } => {
                let item = |arguments: &str| {
                    json!({ "type": "function_call", "id": format!("fc_{index}"), "call_id": id,
                    "name": name, "arguments": arguments, "status": "completed" })
                };
                (item(""), deltas("response.function_call_arguments.delta", arguments), item(arguments))
            }
        }
    }
}
