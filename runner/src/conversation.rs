//! What was said so far, always in a shape that a model can be asked with: each tool call has one result.

use assistant_protocol::ids::ThreadId;
use assistant_protocol::types::{
    Content, Input, LlmRequestParams, LlmRequestResult, Message, Part, Role, RunParams, ToolCallResult,
};
use serde_json::Value;

/// What the model is told of a call whose run ended before it was answered.
const INTERRUPTED: &str = "The run was ended before this call was answered. It may have had its effect.";

/// A conversation, as the params of the next model call: nothing is copied to ask.
#[derive(Debug)]
pub(crate) struct Conversation {
    ask: LlmRequestParams,
    /// Calls of the model's last answer that have no result.
    open_calls: Vec<String>,
}

/// A tool call that the model wants.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) call_id: String,
    pub(crate) tool_name: String,
    /// What it is called with, or the text that was no JSON.
    pub(crate) arguments: Result<Value, String>,
}

impl Conversation {
    /// Nothing said yet.
    pub(crate) fn new(thread_id: ThreadId) -> Self {
        let ask = LlmRequestParams { thread_id, messages: Vec::new(), tools: None, options: None };
        Self { ask, open_calls: Vec::new() }
    }

    /// Takes in what a `run` brings: who the assistant is, its tools, what was said elsewhere, and the task.
    pub(crate) fn begin(&mut self, params: RunParams) {
        let RunParams { assistant, query, context, inputs, tools, output_schema: _, history, agent: _ } = params;
        self.ask.tools = (!tools.is_empty()).then_some(tools);
        let messages = &mut self.ask.messages;
        if let Some(history) = history {
            *messages = history;
        }
        if messages.first().is_some_and(|first| first.role == Role::System) {
            messages.remove(0);
        }
        if !assistant.system_prompt.trim().is_empty() {
            messages.insert(0, Message::text(Role::System, assistant.system_prompt));
        }
        messages.extend(task(query, context, inputs));
    }

    /// What to ask the model with.
    pub(crate) fn ask(&self) -> &LlmRequestParams {
        &self.ask
    }

    /// The thread that it belongs to.
    pub(crate) fn thread_id(&self) -> ThreadId {
        self.ask.thread_id
    }

    /// Adds what came while the model was asked, and its answer; gives the calls that it wants.
    pub(crate) fn answered(&mut self, answer: LlmRequestResult) -> Vec<Wanted> {
        self.ask.messages.extend(answer.inserted.into_iter().flatten());
        let wanted = wanted(&answer.message.content);
        self.open_calls = wanted.iter().map(|call| call.call_id.clone()).collect();
        self.ask.messages.push(answer.message);
        wanted
    }

    /// Adds the result of a call.
    pub(crate) fn called(&mut self, call_id: String, result: &ToolCallResult) {
        if let Some(at) = self.open_calls.iter().position(|open| *open == call_id) {
            self.open_calls.remove(at);
        }
        self.ask.messages.push(Message::tool_result(call_id, result));
    }

    /// Gives each call without a result one that says so.
    pub(crate) fn interrupt(&mut self) {
        for call_id in std::mem::take(&mut self.open_calls) {
            self.ask.messages.push(Message::tool_result(call_id, &error_result(INTERRUPTED)));
        }
    }
}

/// The result of a call that failed in a way that the model can mend.
pub(crate) fn error_result(text: impl Into<String>) -> ToolCallResult {
    ToolCallResult { content: vec![Part::text(text)], structured_content: None, is_error: true, end_run: None }
}

/// A file of a task, in its marker.
fn file(Input { path, content, picture: _ }: &Input) -> String {
    let path = in_quotes(path);
    match content.as_str() {
        "" => format!("<file path=\"{path}\" empty=\"true\"></file>"),
        content => format!("<file path=\"{path}\">\n{}\n</file>", inside(content)),
    }
}

/// What a `run` brings, as one message; none where it brings nothing.
pub(crate) fn task(query: Option<String>, context: Option<String>, inputs: Option<Vec<Input>>) -> Option<Message> {
    let context = context.map(|text| (format!("<context>\n{}\n</context>", inside(&text)), None));
    let inputs = inputs.into_iter().flatten().map(|input| (file(&input), input.picture));
    one_message(context.into_iter().chain(inputs).chain(query.map(|text| (text, None))))
}

/// Several pieces, with a blank line between them, as one message; none where there is no piece. A picture stands behind
/// the text that tells of it.
fn one_message(pieces: impl Iterator<Item = (String, Option<Part>)>) -> Option<Message> {
    let (mut parts, mut text, mut between) = (Vec::new(), String::new(), "");
    for (piece, picture) in pieces {
        text.push_str(std::mem::replace(&mut between, "\n\n"));
        text.push_str(&piece);
        if let Some(picture) = picture {
            parts.extend([Part::text(std::mem::take(&mut text)), picture]);
        }
    }
    let content = match (parts.is_empty(), between.is_empty()) {
        (true, true) => return None,
        (true, false) => Content::Text(text),
        (false, _) => {
            parts.extend((!text.is_empty()).then(|| Part::text(text)));
            Content::Parts(parts)
        }
    };
    Some(Message { role: Role::User, content })
}

fn wanted(content: &Content) -> Vec<Wanted> {
    let parts = match content {
        Content::Text(_) => &[],
        Content::Parts(parts) => parts.as_slice(),
    };
    let calls = parts.iter().filter_map(|part| match part {
        Part::ToolCall { call_id, tool_name, arguments } => {
            Some(Wanted { call_id: call_id.clone(), tool_name: tool_name.clone(), arguments: arguments.clone() })
        }
        _ => None,
    });
    calls.collect()
}

/// The markers that a conversation has: those of a task, those of the host's messages, and that of a record.
const MARKERS: [&str; 4] = ["context", "file", "message", "earlier"];

/// Text that cannot end the marker that it stands in, nor pass for another one.
pub(crate) fn inside(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let is_marker = |behind: &str| {
        let name = behind.strip_prefix('/').unwrap_or(behind);
        MARKERS.iter().any(|marker| name.starts_with(marker))
    };
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (at, _) in lower.match_indices('<').filter(|(at, _)| is_marker(&lower[at + 1..])) {
        out.push_str(&text[from..at]);
        out.push_str("&lt;");
        from = at + 1;
    }
    out.push_str(&text[from..]);
    out
}

/// A name as it can stand in quotes, on one line.
pub(crate) fn in_quotes(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}
