//! What was said so far, always in a shape that a model can be asked with: each tool call has one result.

use assistant_protocol::ids::ThreadId;
pub(crate) use assistant_protocol::task::message as task;
#[cfg(all(feature = "adapters", unix))]
pub(crate) use assistant_protocol::task::{in_quotes, inside};
use assistant_protocol::types::{
    Content, LlmRequestParams, LlmRequestResult, Message, Part, Role, RunParams, ToolCallResult,
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
