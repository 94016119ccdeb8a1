//! Hooks: commands that are run when a process ends, or asks the session something.
//!
//! A hook gets the event as one JSON document on its stdin. What it prints is nothing to anybody; what goes wrong is in
//! the log. The log of the host is the queue: nothing is dropped, and each event is told once as long as the host lives.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::events::{self, News};
use crate::host::Host;
use crate::launcher;
use crate::message_box::{self, questions};
use crate::process_table::{self, Process};
use crate::store::{CHANGES, StoreError};
use crate::text::cut;

/// Hooks that run at once; further events wait.
const RUNNING_MAX: usize = 4;
/// Events that are read at once.
const EVENTS: u32 = 50;
/// Characters of a task or a result that a hook gets.
const TEXT_CHARS_MAX: usize = 40_000;
/// How soon the tables are looked at again where that failed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The commands, each a program and its arguments; an empty one is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hooks {
    /// Run when a process ends.
    pub on_end: Vec<String>,
    /// Run when a process asks the session something.
    pub on_question: Vec<String>,
}

/// Runs the hooks of what happens after the event `after`, until the host closes.
pub(crate) async fn run(host: Host, mut after: i64) {
    if *host.hooks() == Hooks::default() {
        return;
    }
    let running = Arc::new(Semaphore::new(RUNNING_MAX));
    let mut waiter = host.store().waiter(CHANGES);
    let closing = host.closing().clone();
    while !closing.is_cancelled() {
        let mut again = Duration::MAX;
        match due(&host, after).await {
            Ok(due) => {
                let more = !due.is_empty();
                for (seq, told) in due {
                    after = seq;
                    if let Some((command, told)) = told {
                        let permit = tokio::select! {
                            biased;
                            () = closing.cancelled() => return,
                            permit = running.clone().acquire_owned() => permit,
                        };
                        let Ok(permit) = permit else { return };
                        start(&host, command, told, permit);
                    }
                }
                if more {
                    continue;
                }
            }
            Err(error) => {
                tracing::error!(%error, "the hooks could not look at the log");
                again = LOOK_AGAIN;
            }
        }
        tokio::select! {
            () = waiter.news() => {}
            () = tokio::time::sleep(again) => {}
            () = closing.cancelled() => {}
        }
    }
}

fn start(host: &Host, command: Vec<String>, told: Value, permit: tokio::sync::OwnedSemaphorePermit) {
    let (dir, within) = (host.state_dir().to_owned(), Duration::from_millis(host.limits().hook_ms));
    let closing = host.closing().clone();
    // The host closes when it is gone.
    host.spawn_runner(async move {
        let input = told.to_string();
        if let Err(error) = launcher::run_hook(&command, &dir, input.as_bytes(), within, &closing).await {
            tracing::warn!(hook = command.first(), event = %told["event"], %error, "a hook failed");
        }
        drop(permit);
    });
}

type Due = Vec<(i64, Option<(Vec<String>, Value)>)>;

/// What happened since, each with the hook that is to be run and what it is told.
async fn due(host: &Host, after: i64) -> Result<Due, StoreError> {
    let hooks = host.hooks().clone();
    let look = host.store().read(move |db| {
        let mut due = Vec::new();
        for News { seq, process, message } in events::news_of_all(db, after, EVENTS)? {
            let row = process_table::get(db, process)?;
            let told = match message {
                None => Some((hooks.on_end.clone(), end(&row))),
                Some(message) => match (message_box::find(db, message)?, questions::find(db, message)?) {
                    (Some(mail), Some(asked)) if asked.to.is_none() => {
                        Some((hooks.on_question.clone(), question(&row, &mail.mail.content, &asked)))
                    }
                    _ => None,
                },
            };
            due.push((seq, told.filter(|(command, _)| !command.is_empty())));
        }
        Ok::<_, StoreError>(due)
    });
    look.await
}

fn of_process(row: &Process) -> Value {
    json!({
        "process_id": row.id, "thread_id": row.thread, "parent_process_id": row.parent, "session_id": row.session,
        "assistant_id": row.assistant_id, "name": row.label, "query": cut(&row.query, TEXT_CHARS_MAX),
        "model": row.model, "status": row.status, "created_at": row.created_at,
    })
}

fn end(row: &Process) -> Value {
    let mut told = of_process(row);
    let more = json!({
        "event": "end", "reason": row.reason, "cause": row.cause, "error": row.error,
        "result": row.result.as_deref().map(|text| cut(text, TEXT_CHARS_MAX)), "finished_at": row.finished_at,
        "usage": row.usage, "model_calls": row.turns, "tool_calls": row.tool_calls,
    });
    merge(&mut told, more);
    told
}

fn question(row: &Process, text: &str, asked: &questions::Question) -> Value {
    let mut told = of_process(row);
    let more = json!({
        "event": "question", "question": cut(text, TEXT_CHARS_MAX), "message_id": asked.id, "asked_at": asked.asked_at,
        "answer_by_at": asked.answer_by_at,
    });
    merge(&mut told, more);
    told
}

fn merge(told: &mut Value, more: Value) {
    if let (Value::Object(told), Value::Object(more)) = (told, more) {
        told.extend(more);
    }
}
