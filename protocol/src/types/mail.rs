//! Params and results of the methods by which the participants of a thread write to each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::null_is_default;
use crate::ids::{MessageId, ProcessId, ThreadId};

/// How far a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum MailState {
    /// Stored.
    Queued,
    /// In the receiver's conversation, or returned to it.
    Delivered,
    /// Marked as read.
    Read,
}

/// Params of `send_message`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct SendMessageParams {
    /// The thread: the process whose conversation this concerns.
    pub thread_id: ThreadId,
    /// The text, at most 1 MiB.
    pub message: String,
    /// Which participant of the thread it is for. Left out: the assistant of the thread, or its parent if that assistant
    /// writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_assistant_id: Option<String>,
    /// The same by process, where several participants share an assistant id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_process_id: Option<ProcessId>,
    /// Your word for this call: repeated with it, nothing more is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Result of `send_message`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SendMessageResult {
    /// It is stored and will not be lost.
    pub success: bool,
    /// What it is known by.
    pub message_id: MessageId,
    /// How far it has come.
    pub state: MailState,
}

/// Params of `recv_message`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct RecvMessageParams {
    /// The thread, as spawn_assistant gave it.
    pub thread_id: ThreadId,
    /// Only what is addressed to you and not marked as read. Default false.
    #[serde(default, deserialize_with = "null_is_default")]
    pub unread_only: bool,
    /// At most this many, the newest (with unread_only: the oldest first, so that none is skipped). 1 to 200, default 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_n: Option<u32>,
    /// Only messages after this time (Unix milliseconds, exclusive).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    /// Also mark those addressed to you, in the same step. Default false: they stay unread.
    #[serde(default, deserialize_with = "null_is_default")]
    pub mark_as_read: bool,
    /// Wait up to this many milliseconds for something unread, and give that. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Where an earlier answer ended: its `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// A message of a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Mail {
    /// What it is known by.
    pub id: MessageId,
    /// Who wrote it, by assistant; a session is `main` unless configured.
    pub from_assistant_id: String,
    /// Who it is for, by assistant.
    pub to_assistant_id: String,
    /// Who wrote it, by process; null is the session.
    pub from_process_id: Option<ProcessId>,
    /// Who it is for, by process; null is the session.
    pub to_process_id: Option<ProcessId>,
    /// The text.
    pub content: String,
    /// When it was stored.
    pub created_at: i64,
    /// When it was marked as read; null while it is not.
    pub read_at: Option<i64>,
}

/// What a call of `recv_message` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct RecvSummary {
    /// Messages in this answer.
    pub total_fetched: u32,
    /// Of them, marked as read by this call.
    pub marked_as_read: u32,
}

/// Result of `recv_message`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecvMessageResult {
    /// The thread.
    pub thread_id: ThreadId,
    /// The messages, oldest first.
    pub messages: Vec<Mail>,
    /// What this call did.
    pub summary: RecvSummary,
    /// As data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minItems" = 0))]
    pub structured: Option<Value>,
    /// Where to go on, if there is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The wait was cut to this, the most of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_clamped_to_ms: Option<u64>,
}

/// Params of `deliver_message`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeliverMessageParams {
    /// The message.
    pub message: Mail,
    /// What it is: `message`, `question` (whoever asks waits for an answer), `final` (the result of an assistant that has
    /// ended); absent it is a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The thread that it lies in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<ThreadId>,
}

impl From<Mail> for DeliverMessageParams {
    fn from(message: Mail) -> Self {
        Self { message, kind: None, thread_id: None }
    }
}
