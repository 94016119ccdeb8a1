//! The service context: what is at work for a caller and what waits for it, in words for a model and as data.
//!
//! A runner asks for it with `on_aggregate_service_context`, an app with [`Host::service_context`]. Of itself it stands
//! at the end of each model call of an assistant for which something is at work or waits: as the host's word behind the
//! conversation, which it is no part of, so that neither the record nor a provider's cache of what was said is touched.

use assistant_protocol::types::{Message, Role, ServiceContext};
use rusqlite::Connection;
use serde_json::json;

use crate::caller::Caller;
use crate::host::Host;
use crate::message_box::questions::{self, Question};
use crate::message_box::{self, escape};
use crate::process_table::{self, Process};
use crate::store::StoreError;
use crate::text::{cut, one_line};

/// Processes, and questions, that one context names.
const NAMED_MAX: usize = 20;
/// Characters of a label or a question in it.
const TEXT_CHARS_MAX: usize = 200;

impl Host {
    /// What is at work for a caller and what waits for it, as document 004 has it: `context_prompt` begins with the heading
    /// "Assistant Orchestration" and the lines "Running" and "Pending Messages"; `structured_state` is
    /// `{running: [{process_id, thread_id, assistant_id, name, status}], running_total, pending_msgs,
    /// pending_questions: [{message_id, process_id, assistant_id, question}]}`.
    ///
    /// Running is what the caller spawned itself and has not ended; for a session it is that of all sessions of its
    /// principal. Pending are messages that the caller was not given yet, ends among them, and questions that wait for
    /// its answer. Each list has at most 20 entries. A caller that the host does not know has nothing.
    ///
    /// # Errors
    /// The store's.
    pub async fn service_context(&self, caller: Caller) -> Result<ServiceContext, StoreError> {
        let now = self.now();
        self.store().read(move |db| Ok(State::look(db, caller, now)?.told())).await
    }
}

/// What is at work and what waits.
pub(crate) struct State {
    /// As many as are named.
    running: Vec<Process>,
    running_total: usize,
    /// Messages, without questions.
    messages: u32,
    questions: Vec<Question>,
}

impl State {
    /// That of `caller`, now.
    pub(crate) fn look(db: &Connection, caller: Caller, now: i64) -> Result<Self, StoreError> {
        let spawned = process_table::living_spawned_by(db, caller)?;
        let named = spawned.iter().take(NAMED_MAX).map(|process| process_table::get(db, *process));
        Ok(Self {
            running: named.collect::<Result<_, _>>()?,
            running_total: spawned.len(),
            messages: message_box::waiting(db, caller)?,
            questions: questions::pending(db, caller, None, now)?,
        })
    }

    /// Messages and questions that wait.
    fn pending(&self) -> usize {
        self.messages as usize + self.questions.len()
    }

    /// As the host's word at the end of a model call, and in short for the log; none where there is nothing to tell.
    pub(crate) fn for_model(&self) -> Option<(Message, serde_json::Value)> {
        if self.running_total == 0 && self.pending() == 0 {
            return None;
        }
        let short = json!({ "running": self.running_total, "pending_msgs": self.pending() });
        Some((Message::text(Role::System, self.prompt()), short))
    }

    fn told(&self) -> ServiceContext {
        let running = self.running.iter().map(|row| {
            json!({
                "process_id": row.id, "thread_id": row.thread, "assistant_id": row.assistant_id,
                "name": row.label.as_deref().map(shown), "status": row.status,
            })
        });
        let questions = self.questions.iter().take(NAMED_MAX).map(|asked| {
            json!({
                "message_id": asked.id, "process_id": asked.process, "assistant_id": asked.assistant_id,
                "question": shown(&asked.question),
            })
        });
        let structured_state = json!({
            "running": running.collect::<Vec<_>>(),
            "running_total": self.running_total,
            "pending_msgs": self.pending(),
            "pending_questions": questions.collect::<Vec<_>>(),
        });
        ServiceContext { context_prompt: self.prompt(), structured_state }
    }

    fn prompt(&self) -> String {
        let mut lines = vec![
            "# Assistant Orchestration".to_owned(),
            format!("- Running: {}", self.running_total),
            format!("- Pending Messages: {}", self.pending()),
        ];
        for row in &self.running {
            let label = row.label.as_deref().map(|label| format!(" ({})", shown(label))).unwrap_or_default();
            lines.push(format!("- {}{label} is {}: {}", row.assistant_id, row.status, row.id));
        }
        lines.extend(left_out(self.running_total, "at work"));
        for asked in self.questions.iter().take(NAMED_MAX) {
            // The question itself comes as every message does, once.
            lines.push(format!("- {} waits for your answer: {}", asked.assistant_id, asked.process));
        }
        lines.extend(left_out(self.questions.len(), "waiting for your answer"));
        lines.join("\n")
    }
}

fn left_out(all: usize, what: &str) -> Option<String> {
    all.checked_sub(NAMED_MAX).filter(|more| *more > 0).map(|more| format!("- {more} more are {what}"))
}

/// Text of others on one line, so that it can stand for no line and no mark of ours.
fn shown(text: &str) -> String {
    escape(&one_line(&cut(text, TEXT_CHARS_MAX)))
}
