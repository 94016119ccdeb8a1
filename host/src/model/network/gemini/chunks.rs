//! The chunks of an answer.

use assistant_protocol::types::{FinishReason, Part, Usage};
use serde_json::{Value, json};

use super::SIGNATURE;
use crate::model::Progress;
use crate::model::network::failure::Failure;
use crate::model::network::told::{self, Fold, PARTS_MAX, Told};
use crate::model::network::{Wire, opaque};

/// Reasons of stopping that are refusals.
const REFUSALS: [&str; 9] = [
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
];

/// Adds up chunks.
#[derive(Debug)]
pub(in crate::model::network) struct Chunks {
    configured_model: String,
    parts: Vec<Part>,
    /// The last part is a text that is still open: one with a signature is whole.
    open: bool,
    usage: Usage,
    model: Option<String>,
    finish: Option<String>,
    blocked: bool,
}

impl Chunks {
    pub(in crate::model::network) fn new(configured_model: &str) -> Self {
        Self {
            configured_model: configured_model.to_owned(),
            parts: Vec::new(),
            open: false,
            usage: Usage::default(),
            model: None,
            finish: None,
            blocked: false,
        }
    }

    fn push(&mut self, part: Part) -> Result<(), Failure> {
        if self.parts.len() >= PARTS_MAX {
            return Err(told::too_many_parts());
        }
        self.parts.push(part);
        Ok(())
    }

    fn opaque(&mut self, data: Value) -> Result<(), Failure> {
        self.push(opaque(Wire::Gemini, &self.configured_model, data))
    }

    fn part(&mut self, part: &Value, seen: &mut Vec<Progress>) -> Result<(), Failure> {
        let signature = part.get(SIGNATURE).and_then(Value::as_str).filter(|signature| !signature.is_empty());
        let text = part.get("text").and_then(Value::as_str);
        let is_thought = part.get("thought").and_then(Value::as_bool) == Some(true);
        let was_open = std::mem::take(&mut self.open);
        match (text, signature) {
            (Some(text), _) if is_thought => {
                seen.extend((!text.is_empty()).then(|| Progress::Reasoning(text.to_owned())));
                match (signature, self.parts.last_mut()) {
                    (Some(_), _) => self.opaque(part.clone()),
                    (None, Some(Part::Reasoning { text: Some(before) })) => {
                        before.push_str(text);
                        Ok(())
                    }
                    (None, _) => self.push(Part::Reasoning { text: Some(text.to_owned()) }),
                }
            }
            // Thoughts in pictures are only steps to the picture.
            _ if is_thought && signature.is_none() => Ok(()),
            (Some(""), None) => {
                self.open = was_open;
                Ok(())
            }
            (Some(""), Some(_)) => self.opaque(part.clone()),
            (Some(text), None) => {
                seen.push(Progress::Text(text.to_owned()));
                self.open = true;
                match self.parts.last_mut() {
                    Some(Part::Text { text: before }) if was_open => {
                        before.push_str(text);
                        Ok(())
                    }
                    _ => self.push(Part::text(text)),
                }
            }
            (Some(text), Some(signature)) => {
                seen.push(Progress::Text(text.to_owned()));
                self.opaque(json!({ SIGNATURE: signature }))?;
                self.push(Part::text(text))
            }
            (None, signature) => {
                let known = known(part);
                match (known, signature) {
                    (Some(known), Some(signature)) => {
                        self.opaque(json!({ SIGNATURE: signature }))?;
                        self.push(known)
                    }
                    (Some(known), None) => self.push(known),
                    // Code that the provider ran, a file, or what a later version of the format adds.
                    (None, _) => self.opaque(part.clone()),
                }
            }
        }
    }
}

/// A call or a picture.
fn known(part: &Value) -> Option<Part> {
    if let Some(call) = part.get("functionCall") {
        let text = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
        let arguments = match call.get("args") {
            None | Some(Value::Null) => Ok(json!({})),
            Some(args) if args.is_object() => Ok(args.clone()),
            Some(args) => Err(args.to_string()),
        };
        return Some(Part::ToolCall { call_id: text("id"), tool_name: text("name"), arguments });
    }
    let data = part.get("inlineData")?;
    let text = |key: &str| data.get(key).and_then(Value::as_str);
    let mime_type = text("mimeType").filter(|mime_type| mime_type.starts_with("image/"))?.to_owned();
    Some(Part::Image { mime_type, data: Some(text("data")?.to_owned()), blob: None })
}

impl Fold for Chunks {
    fn event(&mut self, data: &str, seen: &mut Vec<Progress>) -> Result<(), Failure> {
        let chunk = told::json(data)?;
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Failure::of_provider(None, &chunk));
        }
        if let Some(model) = chunk.get("modelVersion").and_then(Value::as_str) {
            self.model = Some(model.to_owned());
        }
        if let Some(usage) = chunk.get("usageMetadata").filter(|usage| usage.is_object()) {
            self.usage = usage_of(usage);
        }
        self.blocked |= chunk.pointer("/promptFeedback/blockReason").is_some_and(|reason| !reason.is_null());
        let parts = chunk.pointer("/candidates/0/content/parts").and_then(Value::as_array);
        for part in parts.into_iter().flatten().filter(|part| part.is_object()) {
            self.part(part, seen)?;
        }
        if let Some(finish) = chunk.pointer("/candidates/0/finishReason").and_then(Value::as_str) {
            self.finish = Some(finish.to_owned());
        }
        Ok(())
    }

    /// There is no mark of the end: what tells the reason of stopping is the last chunk.
    fn is_done(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(self: Box<Self>) -> Result<Told, Failure> {
        let finish = match self.finish.as_deref() {
            // A question that is refused has no answer that could stop.
            None if self.blocked => FinishReason::Refused,
            None => return Err(told::cut("no reason of stopping has come")),
            Some("STOP") if told::has_calls(&self.parts) => FinishReason::ToolCalls,
            Some("STOP") => FinishReason::Stop,
            Some("MAX_TOKENS") => FinishReason::Length,
            Some(refusal) if REFUSALS.contains(&refusal) => FinishReason::Refused,
            Some(other) => FinishReason::Other(other.to_owned()),
        };
        Ok(Told { parts: self.parts, finish, usage: self.usage, model: self.model })
    }
}

/// Gemini counts thoughts beside the answer, and what its own tools read beside the question; we count both inside.
fn usage_of(usage: &Value) -> Usage {
    let tokens = |pointer| told::tokens(usage, pointer);
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    };
    let thoughts = tokens("/thoughtsTokenCount");
    Usage {
        input_tokens: sum(tokens("/promptTokenCount"), tokens("/toolUsePromptTokenCount")),
        output_tokens: sum(tokens("/candidatesTokenCount"), thoughts),
        cache_read_tokens: tokens("/cachedContentTokenCount"),
        cache_write_tokens: None,
        reasoning_tokens: thoughts,
    }
}
