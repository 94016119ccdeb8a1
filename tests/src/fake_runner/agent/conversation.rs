//! What was said so far, as it came.

use serde_json::{Value, json};

use super::faults::Fault;

/// The types of parts that the protocol has.
const PARTS: [&str; 6] = ["text", "image", "reasoning", "tool_call", "tool_result", "opaque"];

/// A conversation.
pub(super) struct Conversation {
    fault: Option<Fault>,
    prompt: Value,
    /// Behind the system message.
    messages: Vec<Value>,
}

impl Conversation {
    pub(super) fn new(fault: Option<Fault>) -> Self {
        Self { fault, prompt: Value::Null, messages: Vec::new() }
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// Takes a task.
    pub(super) fn begin(&mut self, params: &Value) {
        if !(self.has(Fault::KeepsItsPrompt) && self.prompt.is_string()) {
            self.prompt = params["assistant"]["system_prompt"].clone();
        }
        if self.has(Fault::ForgetsRuns) {
            self.messages.clear();
        }
        if let Some(history) = list(params, "history")
            && !self.has(Fault::DropsHistory)
        {
            let kept = if self.has(Fault::AddsHistory) { std::mem::take(&mut self.messages) } else { Vec::new() };
            self.messages = kept.into_iter().chain(history.iter().cloned()).collect();
        }
        if self.has(Fault::ContextApart) && params["context"].is_string() {
            self.messages.push(json!({ "role": "user", "content": params["context"] }));
        }
        let parts = self.task(params);
        if parts.is_empty() {
            return;
        }
        let content = match parts.iter().all(|part| part["type"] == "text") {
            true => json!(parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n\n")),
            false => Value::Array(parts),
        };
        self.messages.push(json!({ "role": "user", "content": content }));
    }

    fn task(&self, params: &Value) -> Vec<Value> {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let mut parts = Vec::new();
        if let Some(context) = params["context"].as_str()
            && !self.has(Fault::DropsContext)
            && !self.has(Fault::ContextApart)
        {
            parts.push(text(context));
        }
        let inputs = list(params, "inputs").filter(|_| !self.has(Fault::DropsInputs));
        let inputs_max = if self.has(Fault::OneInput) { 1 } else { usize::MAX };
        for input in inputs.into_iter().flatten().take(inputs_max) {
            let [path, content] = ["path", "content"].map(|name| input[name].as_str().unwrap_or_default());
            parts.push(text(&format!("{path}:\n{content}")));
            let picture = input.get("picture").filter(|picture| picture.is_object());
            parts.extend(picture.filter(|_| !self.has(Fault::DropsPictures)).cloned());
        }
        match params["query"].as_str() {
            Some(query) if self.has(Fault::NoControls) => parts.push(text(&query.replace(char::is_control, ""))),
            Some(query) if self.has(Fault::Trims) => parts.push(text(query.trim_end())),
            Some(query) => parts.push(text(query)),
            None if self.has(Fault::EmptyQuery) => parts.push(text("")),
            None => {}
        }
        parts
    }

    /// All that the model is to be asked with.
    pub(super) fn all(&self) -> Vec<Value> {
        let role = if self.has(Fault::PromptIsUsers) { "user" } else { "system" };
        let prompt = json!({ "role": role, "content": self.prompt });
        let prompt = (!self.has(Fault::NoPrompt)).then_some(prompt);
        prompt.into_iter().chain(self.messages.iter().cloned()).collect()
    }

    /// Adds an answer of the model, and what came in before it.
    pub(super) fn answered(&mut self, inserted: Vec<Value>, message: &Value) {
        let kept = self.kept(message);
        let ends = calls(message).is_empty();
        let inserted = if self.has(Fault::DropsInserted) { Vec::new() } else { inserted };
        match self.fault {
            Some(Fault::InsertedBehind) => self.messages.extend(std::iter::once(kept).chain(inserted)),
            Some(Fault::ForgetsItsAnswer) if ends => self.messages.extend(inserted),
            _ => self.messages.extend(inserted.into_iter().chain([kept])),
        }
    }

    /// A message as one with a fault keeps it.
    fn kept(&self, message: &Value) -> Value {
        let mut kept = message.clone();
        let content = &mut kept["content"];
        let is = |part: &Value, kind: &str| part["type"] == kind;
        match (self.fault, content) {
            (Some(Fault::PartsForTexts), content) if content.is_string() => {
                *content = json!([{ "type": "text", "text": content.take() }]);
            }
            (Some(Fault::TextsForParts), content @ Value::Array(_))
                if content[0]["type"] == "text" && content[1].is_null() =>
            {
                *content = content[0]["text"].take();
            }
            (Some(Fault::DropsOpaque), Value::Array(parts)) => parts.retain(|part| !is(part, "opaque")),
            (Some(Fault::DropsUnknown), Value::Array(parts)) => {
                parts.retain(|part| PARTS.iter().any(|known| is(part, known)));
            }
            (Some(Fault::DropsEmptyTexts), Value::Array(parts)) => parts.retain(|part| part["text"] != ""),
            (Some(Fault::TextsFirst), Value::Array(parts)) => parts.sort_by_key(|part| !is(part, "text")),
            _ => {}
        }
        kept
    }

    /// Adds the result of a call.
    pub(super) fn result(&mut self, call_id: &str, result: &Value) {
        let mut content = result["content"].as_array().cloned().unwrap_or_default();
        if self.has(Fault::CutsResults) {
            content.retain(|part| part["type"] == "text");
        }
        let is_error = result["is_error"] == true && !self.has(Fault::ErrorsAreFine);
        let part = json!({ "type": "tool_result", "call_id": call_id, "content": content, "is_error": is_error });
        self.messages.push(json!({ "role": "tool", "content": [part] }));
    }

    /// Adds a result in words of ours, where a call has failed or was not made.
    pub(super) fn failed(&mut self, call_id: &str, words: &str) {
        self.result(call_id, &json!({ "content": [{ "type": "text", "text": words }], "is_error": true }));
    }

    /// Puts the results behind the last answer in the order of the calls, as one with a fault does.
    pub(super) fn sort_results(&mut self) {
        let Some(at) = self.messages.iter().rposition(|message| message["role"] == "assistant") else { return };
        let (before, results) = self.messages.split_at_mut(at + 1);
        let order = calls(&before[at]);
        results.sort_by_key(|result| order.iter().position(|call| call["call_id"] == result["content"][0]["call_id"]));
    }

    /// Forgets the last message, as one with a fault does.
    pub(super) fn pop(&mut self) {
        self.messages.pop();
    }
}

/// The tool calls of a message.
pub(super) fn calls(message: &Value) -> Vec<Value> {
    let parts = message["content"].as_array().into_iter().flatten();
    parts.filter(|part| part["type"] == "tool_call").cloned().collect()
}

fn list<'a>(params: &'a Value, name: &str) -> Option<&'a Vec<Value>> {
    params[name].as_array()
}
