//! A right answer as each format streams it.

use serde_json::{Value, json};

mod newer;

/// How many characters go into one event.
const PIECE_CHARS: usize = 7;

/// An answer.
#[derive(Debug, Clone)]
pub struct Say {
    /// Its parts in order.
    pub parts: Vec<Said>,
    /// Why it stops, as the format says it; chosen by the parts if left out.
    pub stop: Option<String>,
    /// The tokens, as the format tells them; some if left out.
    pub usage: Option<Value>,
    /// The model that says it answers.
    pub model: String,
}

/// A part of an answer.
#[derive(Debug, Clone)]
pub enum Said {
    /// Text.
    Text(String),
    /// A thought, with a signature where the format has one.
    Thought {
        /// The thought.
        text: String,
        /// The signature; none is an unsigned thought.
        signature: Option<String>,
    },
    /// A thought that is not shown (Anthropic), or nothing but a signature.
    Redacted(String),
    /// A picture that the model made, where the format has one.
    Picture {
        /// Its type.
        mime_type: String,
        /// Its bytes in base64.
        data: String,
    },
    /// A call of a tool, arguments as the text that is sent.
    Call {
        /// Empty where the server sends none.
        id: String,
        /// The tool.
        name: String,
        /// Any text, JSON or not.
        arguments: String,
    },
}

impl Said {
    /// A text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Said::Text(text.to_owned())
    }

    /// A signed thought.
    #[must_use]
    pub fn thought(text: &str, signature: &str) -> Self {
        Said::Thought { text: text.to_owned(), signature: Some(signature.to_owned()) }
    }

    /// A picture.
    #[must_use]
    pub fn picture(mime_type: &str, data: &str) -> Self {
        Said::Picture { mime_type: mime_type.to_owned(), data: data.to_owned() }
    }

    /// A call.
    #[must_use]
    pub fn call(id: &str, name: &str, arguments: &str) -> Self {
        Said::Call { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
    }
}

impl Say {
    /// An answer with everything else by itself.
    #[must_use]
    pub fn new(parts: Vec<Said>) -> Self {
        Self { parts, stop: None, usage: None, model: "fake-model-1".to_owned() }
    }

    /// Why it stops.
    #[must_use]
    pub fn stopping(mut self, stop: &str) -> Self {
        self.stop = Some(stop.to_owned());
        self
    }

    /// The tokens.
    #[must_use]
    pub fn using(mut self, usage: Value) -> Self {
        self.usage = Some(usage);
        self
    }

    /// The whole event stream, in the format that `path` belongs to.
    #[must_use]
    pub fn events(&self, path: &str) -> String {
        match path {
            path if path.contains("/messages") => self.anthropic(),
            path if path.contains("/responses") => self.responses(),
            path if path.contains(":streamGenerateContent") => self.gemini(),
            path if path.contains("/api/chat") => self.ollama(),
            _ => self.openai(),
        }
    }

    fn stop(&self, calls: &str, else_: &str) -> String {
        let has_calls = self.parts.iter().any(|part| matches!(part, Said::Call { .. }));
        self.stop.clone().unwrap_or_else(|| if has_calls { calls } else { else_ }.to_owned())
    }

    fn openai(&self) -> String {
        let mut events = String::new();
        let mut put = |delta: Value, finish: Option<&str>| {
            let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
            let chunk =
                json!({ "id": "c1", "object": "chat.completion.chunk", "model": self.model, "choices": [choice] });
            events.push_str(&format!("data: {chunk}\n\n"));
        };
        put(json!({ "role": "assistant", "content": "" }), None);
        let mut index = 0;
        for part in &self.parts {
            match part {
                Said::Text(text) => pieces(text).for_each(|piece| put(json!({ "content": piece }), None)),
                Said::Thought { text, signature: None } => {
                    pieces(text).for_each(|piece| put(json!({ "reasoning_content": piece }), None));
                }
                Said::Thought { text, signature: Some(signature) } => {
                    let detail = |field: &str, value: &str| json!({ "reasoning_details": [{ "type": "reasoning.text", "index": 0, field: value }] });
                    pieces(text).for_each(|piece| put(detail("text", &piece), None));
                    put(detail("signature", signature), None);
                }
                Said::Redacted(data) => {
                    let detail = json!({ "type": "reasoning.encrypted", "data": data });
                    put(json!({ "reasoning_details": [detail] }), None);
                }
                Said::Picture { mime_type, data } => {
                    let url = format!("data:{mime_type};base64,{data}");
                    put(json!({ "images": [{ "type": "image_url", "image_url": { "url": url } }] }), None);
                }
                Said::Call { id, name, arguments } => {
                    let function = json!({ "name": name, "arguments": "" });
                    let mut call = json!({ "index": index, "type": "function", "function": function });
                    if !id.is_empty() {
                        call["id"] = json!(id);
                    }
                    put(json!({ "tool_calls": [call] }), None);
                    for piece in pieces(arguments) {
                        let call = json!({ "index": index, "function": { "arguments": piece } });
                        put(json!({ "tool_calls": [call] }), None);
                    }
                    index += 1;
                }
            }
        }
        put(json!({}), Some(&self.stop("tool_calls", "stop")));
        let usage = json!({ "prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16 });
        let usage = self.usage.clone().unwrap_or(usage);
        let last = json!({ "id": "c1", "model": self.model, "choices": [], "usage": usage });
        format!("{events}data: {last}\n\ndata: [DONE]\n\n")
    }

    fn anthropic(&self) -> String {
        let mut events = String::new();
        let mut put = |event: Value| {
            let kind = event["type"].as_str().unwrap_or("").to_owned();
            events.push_str(&format!("event: {kind}\ndata: {event}\n\n"));
        };
        let usage = self.usage.clone().unwrap_or_else(|| json!({ "input_tokens": 11, "output_tokens": 5 }));
        let begun = json!({ "input_tokens": usage["input_tokens"], "output_tokens": 1,
            "cache_read_input_tokens": usage["cache_read_input_tokens"],
            "cache_creation_input_tokens": usage["cache_creation_input_tokens"] });
        let message = json!({ "id": "m1", "type": "message", "role": "assistant", "model": self.model, "content": [],
            "stop_reason": null, "usage": begun });
        put(json!({ "type": "message_start", "message": message }));
        put(json!({ "type": "ping" }));
        for (index, part) in self.parts.iter().enumerate() {
            let (block, deltas) = part.block();
            put(json!({ "type": "content_block_start", "index": index, "content_block": block }));
            for delta in deltas {
                put(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
            }
            put(json!({ "type": "content_block_stop", "index": index }));
        }
        let delta = json!({ "stop_reason": self.stop("tool_use", "end_turn"), "stop_sequence": null });
        let mut totals = usage;
        if let Some(totals) = totals.as_object_mut() {
            totals.remove("input_tokens");
        }
        put(json!({ "type": "message_delta", "delta": delta, "usage": totals }));
        put(json!({ "type": "message_stop" }));
        events
    }
}

impl Said {
    /// The block as it begins, and the pieces that follow.
    fn block(&self) -> (Value, Vec<Value>) {
        match self {
            Said::Text(text) => {
                let deltas = pieces(text).map(|piece| json!({ "type": "text_delta", "text": piece }));
                (json!({ "type": "text", "text": "" }), deltas.collect())
            }
            Said::Thought { text, signature } => {
                let thoughts = pieces(text).map(|piece| json!({ "type": "thinking_delta", "thinking": piece }));
                let signatures = pieces(signature.as_deref().unwrap_or(""))
                    .map(|piece| json!({ "type": "signature_delta", "signature": piece }));
                (json!({ "type": "thinking", "thinking": "", "signature": "" }), thoughts.chain(signatures).collect())
            }
            Said::Redacted(data) => (json!({ "type": "redacted_thinking", "data": data }), Vec::new()),
            // A block that this format does not have.
            Said::Picture { mime_type, data } => {
                (json!({ "type": "picture", "media_type": mime_type, "data": data }), Vec::new())
            }
            Said::Call { id, name, arguments } => {
                let deltas =
                    pieces(arguments).map(|piece| json!({ "type": "input_json_delta", "partial_json": piece }));
                (json!({ "type": "tool_use", "id": id, "name": name, "input": {} }), deltas.collect())
            }
        }
    }
}

fn pieces(text: &str) -> impl Iterator<Item = String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(PIECE_CHARS).map(|piece| piece.iter().collect()).collect::<Vec<String>>().into_iter()
}
