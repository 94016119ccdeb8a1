//! What a spawn is answered with.

use assistant_protocol::ids::{ProcessId, ThreadId};
use assistant_protocol::types::Mail;
use schemars::JsonSchema;
use serde::Serialize;

use crate::process_table::{Capacity, Reason, Status};
use crate::tools::grants::Unavailable;
use crate::tools::usage::UsageSeen;

/// Result of `spawn_assistant`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Spawned {
    pub(super) process_id: ProcessId,
    pub(super) thread_id: ThreadId,
    pub(super) assistant_id: String,
    pub(super) status: Status,
    /// How well it fits the search, and what else would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) matched: Option<Matched>,
    pub(super) model: ModelTold,
    /// Tools that its definition asks for and that are not here.
    pub(super) unavailable_tools: Vec<Unavailable>,
    pub(super) capacity: Capacity,
    /// The process whose conversation it goes on with by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) continued_from: Option<ProcessId>,
    // Why it does not, though it should.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) started_afresh: Option<String>,
    /// Where what it goes on with worked in a git worktree that is gone.
    #[schemars(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) worktree_gone: Option<String>,
    /// Its end, if it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<Ended>,
    /// The wait was cut to this, the most of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) wait_clamped_to_ms: Option<u64>,
}

/// How an assistant was found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Matched {
    pub(super) score: f64,
    pub(super) runners_up: Vec<RunnerUp>,
}

/// What else fits a search.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct RunnerUp {
    pub(super) assistant_id: String,
    pub(super) score: f64,
}

/// Which model a process got.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct ModelTold {
    /// What was asked for; absent where nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) requested: Option<String>,
    pub(super) used: String,
    /// Why it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
}

/// How a process ended.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Ended {
    /// The result, or what there was of one.
    pub(super) content: Option<String>,
    /// The same as data, if it has a schema and is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minItems" = 0))]
    pub(super) structured: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// What it wrote before, oldest first, as recv_message gives it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    pub(super) messages: Vec<Mail>,
    /// It is more than fits here: recv_message with the thread_id gives all.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) more: bool,
    /// As poll_assistant tells it.
    #[schemars(skip)]
    pub(super) usage: UsageSeen,
    /// Absent where it spawned nothing.
    #[schemars(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage_tree: Option<UsageSeen>,
}
