//! Params and results of the methods, and the messages of a conversation.
//!
//! Unknown fields are ignored and null means absent for every optional field. Times are Unix milliseconds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::{ProcessId, ThreadId};

mod agent;
mod content;
mod mail;

pub use agent::{AgentBrief, AgentEvent, AgentEventParams, AgentRule, PermissionParams, PermissionResult, RuleAction};
pub use content::{Content, Part};
pub use mail::{
    DeliverMessageParams, Mail, MailState, RecvMessageParams, RecvMessageResult, RecvSummary, SendMessageParams,
    SendMessageResult,
};

/// The version of the protocol that this crate speaks.
pub const PROTOCOL_VERSION: u32 = 1;
/// The longest line that we take, in bytes without the newline.
pub const MAX_FRAME_BYTES: u64 = 64 * 1024 * 1024;

/// No params, or nothing to tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Empty {}

/// A program at one end of the link.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its version.
    #[serde(default, deserialize_with = "null_is_default")]
    pub version: String,
}

/// What the host can do beyond version 1. Empty today.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostCapabilities {}

/// What the runner can do beyond the required.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunnerCapabilities {
    /// It takes messages by `deliver_message`, because it makes no model calls.
    #[serde(default, deserialize_with = "null_is_default")]
    pub messages: bool,
    /// It runs an agent of its own, with that one's model and tools: it is given `agent` in `run`, and tells by
    /// `on_agent_event` what that agent does.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "std::ops::Not::not")]
    pub agent: bool,
}

/// The limits of a run that a runner can heed; the host enforces them all the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunLimits {
    /// Model calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// Tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u32>,
    /// Milliseconds from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
}

/// Params of `initialize`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct InitializeParams {
    /// The version that the host speaks.
    pub protocol_version: u32,
    /// The process that this runner is.
    pub process_id: ProcessId,
    /// Its thread, to be named in every request.
    pub thread_id: ThreadId,
    /// The host program.
    pub host: Program,
    /// The longest line that the host takes, in bytes.
    pub max_frame_bytes: u64,
    /// What the host can do.
    #[serde(default, deserialize_with = "null_is_default")]
    pub capabilities: HostCapabilities,
    /// What the run may use.
    #[serde(default, deserialize_with = "null_is_default")]
    pub limits: RunLimits,
}

/// Result of `initialize`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct InitializeResult {
    /// The version that the runner speaks.
    pub protocol_version: u32,
    /// The runner program.
    pub runner: Program,
    /// The longest line that the runner takes, in bytes.
    pub max_frame_bytes: u64,
    /// What the runner can do.
    #[serde(default, deserialize_with = "null_is_default")]
    pub capabilities: RunnerCapabilities,
}

/// The assistant that a runner is to be.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AssistantBrief {
    /// Its id.
    pub id: String,
    /// Its display name.
    pub name: String,
    /// Its prompt.
    pub system_prompt: String,
}

/// A file that belongs to the task.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Input {
    /// Where it lies, as the caller named it.
    pub path: String,
    /// What is in it; of a picture, a line that tells of it.
    pub content: String,
    /// The picture that it is, by its handle: to be shown to the model behind that line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<Part>,
}

/// A tool that a model can call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it is for, for the model.
    pub description: String,
    /// The JSON schema of its arguments.
    pub input_schema: Value,
}

/// Params of `run`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RunParams {
    /// Who the runner is to be.
    pub assistant: AssistantBrief,
    /// The task; absent it means: ask the model again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Background to the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Files of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Vec<Input>>,
    /// The tools that the assistant has.
    #[serde(default, deserialize_with = "null_is_default")]
    pub tools: Vec<ToolSpec>,
    /// The schema that a result has to fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// A conversation to go on with, system message excluded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<Message>>,
    /// What an agent has to know that has its own model and tools; only for runners whose capabilities say `agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentBrief>,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model had no more to do.
    Finished,
    /// A `final_answer` was accepted.
    FinalAnswer,
    /// The host asked for it.
    Cancelled,
    /// The model's answer reached its maximum length.
    Length,
    /// The model refused.
    Refused,
}

/// Result of `run`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// Why it ended.
    pub stop_reason: StopReason,
    /// The last answer of the model.
    pub content: Content,
    /// The result that fits the output schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
}

/// Params of `cancel`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CancelParams {
    /// Why, for people.
    #[serde(default, deserialize_with = "null_is_default")]
    pub reason: String,
    /// Milliseconds until the runner is killed.
    #[serde(default, deserialize_with = "null_is_default")]
    pub grace_ms: u64,
}

/// Params of `cancel_call`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CancelCallParams {
    /// The id of the request that need not be worked on: an integer or a string.
    pub id: Value,
}

/// Who speaks in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The assistant's definition.
    System,
    /// Whoever gave the task.
    User,
    /// The model.
    Assistant,
    /// A tool's result.
    Tool,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said: a string, or parts in order.
    pub content: Content,
}

impl Message {
    /// A message of one text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, content: Content::Text(text.into()) }
    }

    /// The results of a tool call, as a runner adds them to its conversation.
    #[must_use]
    pub fn tool_result(call_id: String, result: &ToolCallResult) -> Self {
        let part = Part::ToolResult { call_id, content: result.content.clone(), is_error: result.is_error };
        Self { role: Role::Tool, content: Content::Parts(vec![part]) }
    }
}

/// Params of `on_llm_request`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LlmRequestParams {
    /// The runner's own thread.
    pub thread_id: ThreadId,
    /// The whole conversation, system message first.
    pub messages: Vec<Message>,
    /// The tools that the model may call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ToolSpec>>,
    /// Settings for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Map<String, Value>>,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It had no more to say.
    Stop,
    /// It wants tools to be called.
    ToolCalls,
    /// It reached the maximum length.
    Length,
    /// It refused.
    Refused,
    /// Anything else that the provider told.
    #[serde(untagged)]
    Other(String),
}

/// Tokens of model calls; null where the provider does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens read, cached ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens written, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Of the input, read from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Of the input, written to the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// Of the output, reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

/// Result of `on_llm_request`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LlmRequestResult {
    /// The model's answer, to be appended.
    pub message: Message,
    /// Why the model stopped.
    pub finish_reason: FinishReason,
    /// What it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The model that answered.
    pub model: String,
    /// Messages that came in meanwhile, to be appended before `message`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inserted: Option<Vec<Message>>,
}

/// Params of `on_tool_call`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallParams {
    /// The runner's own thread.
    pub thread_id: ThreadId,
    /// The id that the model's answer gave the call.
    pub call_id: String,
    /// The tool.
    pub tool_name: String,
    /// Its arguments, an object.
    #[serde(default)]
    pub arguments: Value,
}

/// Result of `on_tool_call`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallResult {
    /// What the model is shown.
    #[serde(default, deserialize_with = "null_is_default")]
    pub content: Vec<Part>,
    /// The same as data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// The call failed in a way that the model can mend.
    #[serde(default, deserialize_with = "null_is_default")]
    pub is_error: bool,
    /// A `final_answer` was accepted: the run is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_run: Option<bool>,
}

/// Params of `on_aggregate_service_context`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ContextParams {
    /// The runner's own thread.
    pub thread_id: ThreadId,
}

/// Result of `on_aggregate_service_context`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServiceContext {
    /// What is going on, for a prompt.
    pub context_prompt: String,
    /// The same as data.
    pub structured_state: Value,
}

/// Params of `on_progress`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ProgressParams {
    /// The runner's own thread.
    pub thread_id: ThreadId,
    /// What is being done.
    pub text: String,
    /// How much is done, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
}

/// Reads null as the default, as a field that is not there.
fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
