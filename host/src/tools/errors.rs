//! What a tool answers when it has no result: a code, a message that names the thing, and the next valid step.

use std::fmt::Display;

use serde::Serialize;

use crate::blobs::NotKept;
use crate::message_box;
use crate::message_box::questions::QuestionRefused;
use crate::process_table::{self, budget::OverBudget};
use crate::store::StoreError;

/// An error that the caller can mend, or wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// What went wrong, stable: `unknown_assistant`, `limit_depth`, …
    pub code: String,
    /// The same in words, with the name of the thing.
    pub message: String,
    /// What to do next.
    pub hint: String,
    /// The same call may succeed later.
    pub retryable: bool,
}

impl ToolError {
    /// An error that the same call will meet again.
    #[must_use]
    pub fn new(code: &str, message: impl Display, hint: &str) -> Self {
        Self { code: code.to_owned(), message: message.to_string(), hint: hint.to_owned(), retryable: false }
    }

    pub(crate) fn bad_argument(message: impl Display, hint: &str) -> Self {
        Self::new("bad_argument", message, hint)
    }

    /// A limit: it is told by its name in the configuration.
    pub(crate) fn limit(name: &str, message: impl Display, hint: &str) -> Self {
        Self { retryable: true, ..Self::new(&format!("limit_{name}"), message, hint) }
    }

    pub(crate) fn internal(error: &impl Display) -> Self {
        let hint = "This is a fault of the host, not of the call. Try once more; the host's log tells more.";
        Self { retryable: true, ..Self::new("internal", format!("the host failed: {error}"), hint) }
    }

    /// The store did not do it. Nothing was changed.
    pub(crate) fn store(error: &StoreError) -> Self {
        if !error.passes() {
            return Self::internal(error);
        }
        let hint = "Nothing was changed. Tell your user; the same call works again once that is mended.";
        Self { hint: hint.to_owned(), ..Self::internal(error) }
    }

    pub(crate) fn cancelled() -> Self {
        Self::new("cancelled", "the call was cancelled", "Nothing needs to be done.")
    }

    pub(crate) fn too_slow(within: std::time::Duration) -> Self {
        let message = format!("limit tool_call_ms: the tool did not answer within {} ms", within.as_millis());
        Self::limit("tool_call_ms", message, "Ask for less at once, or go on without it.")
    }

    pub(crate) fn caller_ended() -> Self {
        Self::new("process_ended", "the caller has ended and may do nothing more", "Stop working.")
    }

    pub(crate) fn unknown_process(id: impl Display) -> Self {
        let hint = "Use the process_id that spawn_assistant gave.";
        Self::new("unknown_process", format!("no process of yours has the id {id}"), hint)
    }
}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        Self::store(&error)
    }
}

impl From<rusqlite::Error> for ToolError {
    fn from(error: rusqlite::Error) -> Self {
        Self::store(&error.into())
    }
}

impl From<NotKept> for ToolError {
    fn from(not_kept: NotKept) -> Self {
        match &not_kept {
            NotKept::Full { .. } => Self {
                retryable: false,
                ..Self::limit("tree_blob_bytes", &not_kept, "Give fewer or smaller pictures.")
            },
            NotKept::Store(error) => Self::store(error),
        }
    }
}

impl From<process_table::Refused> for ToolError {
    fn from(refused: process_table::Refused) -> Self {
        use process_table::Refused;
        match &refused {
            Refused::CallerEnded => Self::caller_ended(),
            Refused::Depth { .. } => Self {
                retryable: false,
                ..Self::limit("depth", &refused, "Do this part yourself, or leave it to your caller and say so.")
            },
            Refused::SpawnsPerTree { .. } => Self {
                retryable: false,
                ..Self::limit("spawns_per_tree", &refused, "Go on with the results that you have.")
            },
            Refused::OverBudget(over) => over.clone().into(),
            Refused::Living { .. } => {
                Self::limit("living_per_session", &refused, "Wait until some have ended; cancel_assistant ends them.")
            }
            Refused::Queue { .. } => {
                Self::limit("queue_per_session", &refused, "Wait until some have ended, then spawn again.")
            }
            Refused::Lives(_) => Self::bad_argument(&refused, "Wait for its end; send_message writes to it."),
            Refused::Resumed(..) => Self::new("process_resumed", &refused, "Resume that one, if it has ended."),
            Refused::Busy(..) => {
                let hint = "Do this part yourself, or leave it to another assistant.";
                Self::new("conversation_busy", &refused, hint)
            }
            Refused::Store(error) => Self::store(error),
        }
    }
}

impl From<OverBudget> for ToolError {
    fn from(over: OverBudget) -> Self {
        match &over {
            OverBudget::Tokens { name: "tokens_per_day", .. } => {
                Self::limit("tokens_per_day", &over, "Wait for the next day (UTC), or have the limit raised.")
            }
            OverBudget::Tokens { name, .. } => {
                Self { retryable: false, ..Self::limit(name, &over, "Go on with the results that you have.") }
            }
            OverBudget::Cost { .. } => Self {
                retryable: false,
                ..Self::limit("cost_per_tree_usd", &over, "Go on with the results that you have.")
            },
            OverBudget::UnknownPrice(_) => Self {
                retryable: false,
                ..Self::limit(
                    "cost_per_tree_usd",
                    &over,
                    "Set its `price` in the configuration, or take another model.",
                )
            },
        }
    }
}

impl From<QuestionRefused> for ToolError {
    fn from(refused: QuestionRefused) -> Self {
        match &refused {
            QuestionRefused::CallerEnded => Self::caller_ended(),
            QuestionRefused::Empty(_) => Self::bad_argument(&refused, "Write what is to be read."),
            QuestionRefused::TooLong { .. } => {
                Self { retryable: false, ..Self::limit("message_bytes", &refused, "Write the essential part.") }
            }
            QuestionRefused::TooMany { .. } => {
                Self::limit("pending_questions", &refused, "Wait for an answer with check_answer.")
            }
            QuestionRefused::Full { .. } => {
                Self::limit("queued_messages", &refused, "Decide it yourself, or ask again later.")
            }
            QuestionRefused::Unknown(_) => {
                Self::new("unknown_message", &refused, "Use the message_id that the question came with.")
            }
            QuestionRefused::NonePending(..) => {
                Self::new("unknown_message", &refused, "get_pending_questions lists what waits for you.")
            }
            QuestionRefused::Several(..) => Self::bad_argument(&refused, "Name one of them as message_id."),
            QuestionRefused::Cancelled(_) => Self::new(
                "process_ended",
                &refused,
                "Leave it; resume_process_id of spawn_assistant goes on with it once it has ended.",
            ),
            QuestionRefused::NotPending { .. } => {
                Self::bad_argument(&refused, "send_message says more to a process that lives.")
            }
            QuestionRefused::Store(error) => Self::store(error),
        }
    }
}

impl From<message_box::Refused> for ToolError {
    fn from(refused: message_box::Refused) -> Self {
        use message_box::Refused;
        match &refused {
            Refused::CallerEnded => Self::caller_ended(),
            Refused::UnknownThread(_) => {
                Self::new("unknown_thread", &refused, "Use the thread_id that spawn_assistant gave.")
            }
            Refused::NotPermitted(_) => {
                Self::new("not_permitted", &refused, "Use the threads of your own processes, your parent and siblings.")
            }
            Refused::NoSuchParticipant { .. } => {
                Self::bad_argument(&refused, "Leave to_assistant_id out to write to the assistant of the thread.")
            }
            Refused::Ambiguous { .. } => Self::bad_argument(&refused, "Give to_process_id instead of to_assistant_id."),
            Refused::Ended(_) => Self::new(
                "process_ended",
                &refused,
                "recv_message reads what it wrote; spawn_assistant with resume_process_id goes on with it.",
            ),
            Refused::Empty => Self::bad_argument(&refused, "Write what the receiver is to read."),
            Refused::TooLong { .. } => Self {
                retryable: false,
                ..Self::limit("message_bytes", &refused, "Send the essential part, or several messages.")
            },
            Refused::Full { .. } => {
                Self::limit("queued_messages", &refused, "Wait until the receiver has read some of them.")
            }
            Refused::BadCursor(_) => Self::bad_argument(&refused, "Pass back the next_cursor of an earlier answer."),
            Refused::Store(error) => Self::store(error),
        }
    }
}
