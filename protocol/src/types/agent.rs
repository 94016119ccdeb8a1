//! Runners that run an agent of their own, with its model and its tools: what they are told, and what they tell.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Part, Usage, null_is_default};
use crate::ids::ThreadId;

/// What an agent has to know that has its own model and tools. Names of tools and models are as the author of the
/// assistant wrote them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentBrief {
    /// The folder in which it works; absent it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// The session of the agent's own to go on with, as a runner told it by `on_agent_event`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The model that is wished for; absent it is the agent's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tools that it wants, with patterns perhaps, as `Bash(git log:*)`; absent is no wish, an empty list is none at
    /// all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Tools that it must not have, whatever `tools` says.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub disallowed_tools: Vec<String>,
    /// Tools for whose calls somebody is to be asked first.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub ask_tools: Vec<String>,
    /// Rules for calls, whose order counts: of those that fit, the last.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<AgentRule>,
    /// It must change nothing.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "std::ops::Not::not")]
    pub readonly: bool,
}

/// What a rule does with a call that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleAction {
    /// It is made.
    Allow,
    /// Somebody is asked first.
    Ask,
    /// It is not made.
    Deny,
}

/// A rule for calls of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRule {
    /// What is done.
    pub action: RuleAction,
    /// The tool.
    pub tool: String,
    /// Which calls; absent is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// Params of `on_agent_event`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AgentEventParams {
    /// The runner's own thread.
    pub thread_id: ThreadId,
    /// What happened.
    pub event: AgentEvent,
}

/// What an agent does that has its own model and tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentEvent {
    /// It works in a session of its own, by which it can go on later.
    Session {
        /// What the agent calls it.
        session_id: String,
    },
    /// It says something.
    Text {
        /// What it says.
        text: String,
    },
    /// It thinks.
    Reasoning {
        /// What it tells of that.
        text: String,
    },
    /// It calls a tool of its own.
    ToolCall {
        /// By which its result is known.
        call_id: String,
        /// The tool, as the agent calls it.
        tool_name: String,
        /// What it is called with.
        #[serde(default)]
        arguments: Value,
    },
    /// A tool of its own has answered.
    ToolResult {
        /// The call.
        call_id: String,
        /// What it answered.
        #[serde(default, deserialize_with = "null_is_default")]
        content: Vec<Part>,
        /// The call failed.
        #[serde(default, deserialize_with = "null_is_default")]
        is_error: bool,
    },
    /// It used its model; what was told before is not in it.
    Usage {
        /// Tokens.
        #[serde(default, deserialize_with = "null_is_default")]
        usage: Usage,
        /// Model calls, as far as they are known.
        #[serde(default, deserialize_with = "null_is_default")]
        calls: u32,
        /// What they cost, US dollars; absent is unknown, which is not nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// The model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// Something of `agent` or of the assistant cannot be passed on to this agent.
    Lacks {
        /// What.
        what: String,
        /// Why, and what is done instead.
        why: String,
    },
    /// Something that this version does not know.
    #[serde(other)]
    Other,
}

/// Params of `on_permission_request`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PermissionParams {
    /// The runner's own thread.
    pub thread_id: ThreadId,
    /// The call that is to be made; the same one is asked for once.
    pub call_id: String,
    /// The tool, by the name that definitions use for such a one: `Bash`, `Read`, `Edit`, `Write`, `WebFetch`, …; else as the
    /// agent calls it.
    pub tool_name: String,
    /// What it is called with, by the names that such a tool has: `command`, `file_path`, `url`, …
    #[serde(default)]
    pub arguments: Value,
    /// The call in the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// Result of `on_permission_request`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionResult {
    /// Whether the call may be made.
    pub allowed: bool,
    /// Why not, for the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
