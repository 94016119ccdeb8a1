//! `poll_assistant` and `cancel_assistant`.

use assistant_protocol::ids::{ProcessId, ThreadId};
use rusqlite::Connection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::usage::{self, UsageSeen};
use super::{Audience, Call, Hints, Output, Tool, ToolError, row, wait};
use crate::caller::Caller;
use crate::host::Host;
use crate::message_box::{self, Summary, questions};
use crate::model::Models;
use crate::process_table::worktree::{self, State, Worktree};
use crate::process_table::{self, Cause, Process, Reason, Status};
use crate::store::StoreError;

/// When to look again at a process that has news seldom.
const NEXT_POLL_MS: u64 = 5_000;

pub(super) fn rows() -> Vec<Tool> {
    let look = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    let end = Hints { read_only: false, destructive: true, idempotent: true, open_world: false };
    vec![
        row::<_, Polled, _, _>("poll_assistant", "Look at a process", Audience::Everyone, look, poll_assistant),
        row::<_, Cancelled, _, _>("cancel_assistant", "End a process", Audience::Everyone, end, cancel_assistant),
    ]
}

/// Arguments of `poll_assistant`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Poll {
    /// The process, as spawn_assistant gave it.
    process_id: ProcessId,
    /// Count messages too. Default true.
    #[serde(default = "yes")]
    include_summary: bool,
    /// Wait up to this many milliseconds for a change. Default 0: answer at once.
    #[serde(default)]
    wait_ms: u64,
}

fn yes() -> bool {
    true
}

/// A process, as its caller sees it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Seen {
    process_id: ProcessId,
    assistant_id: String,
    thread_id: ThreadId,
    /// The label that spawn_assistant was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    parent_process_id: Option<ProcessId>,
    status: Status,
    /// It has ended.
    done: bool,
    /// Why a failed one failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    /// Why a cancelled one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<Cause>,
    /// The same in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The result as data, if it is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minItems" = 0))]
    structured: Option<serde_json::Value>,
    /// A cancel is under way.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cancel_requested: bool,
    model: String,
    /// Its runner, where that is not the host's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    runner: Option<String>,
    /// The launcher that starts it, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    launcher: Option<String>,
    /// The git worktree in which it works or has worked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    worktree: Option<WorktreeSeen>,
    /// When it was spawned (Unix milliseconds).
    created_at: i64,
    /// When its runner was launched, else when it was spawned.
    started_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<i64>,
    /// How its runner exited; negative is a signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// What it used itself.
    usage: UsageSeen,
    /// What it and all that it spawned used.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    usage_tree: UsageSeen,
}

/// A worktree, as callers see it.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct WorktreeSeen {
    path: String,
    branch: String,
    state: State,
    /// What it holds that its first commit does not, where that was looked at: empty is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    holds: Option<String>,
    /// It is that of another process.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    shared: bool,
}

impl WorktreeSeen {
    /// That of a process, while it is there.
    fn of(db: &Connection, row: &Process) -> Result<Option<Self>, StoreError> {
        let Some(id) = row.worktree else { return Ok(None) };
        // Of a kept one, whoever removes it with git tells nobody.
        let there = |one: &Worktree| one.state != State::Kept || std::path::Path::new(&one.path).exists();
        Ok(worktree::get(db, id)?.filter(there).map(|found| Self {
            shared: found.process != row.id,
            path: found.path,
            branch: found.branch,
            state: found.state,
            holds: found.holds,
        }))
    }
}

impl Seen {
    /// A result as data is told where its JSON has at most `chars` characters.
    pub(super) fn new(db: &Connection, row: &Process, models: &Models, chars: usize) -> Result<Self, StoreError> {
        let used = usage::of(db, row, models)?;
        Ok(Self {
            structured: structured(row, chars),
            process_id: row.id,
            assistant_id: row.assistant_id.clone(),
            thread_id: row.thread,
            name: row.label.clone(),
            parent_process_id: row.parent,
            status: row.status,
            done: row.status.is_end(),
            reason: row.reason,
            cause: if row.status.is_end() { row.cause } else { None },
            error: row.error.clone(),
            cancel_requested: row.marked && !row.status.is_end(),
            model: row.model.clone(),
            runner: row.runner.clone(),
            launcher: row.launcher.clone(),
            worktree: WorktreeSeen::of(db, row)?,
            created_at: row.created_at,
            started_at: row.started_at.unwrap_or(row.created_at),
            finished_at: row.finished_at,
            exit_code: row.exit_code,
            usage: used.own,
            usage_tree: used.tree.unwrap_or(used.own),
        })
    }
}

/// The result of a process as data, where it is that and has at most `chars` characters.
pub(super) fn structured(row: &Process, chars: usize) -> Option<serde_json::Value> {
    row.structured.as_ref().filter(|value| value.to_string().chars().count() <= chars).cloned()
}

/// Result of `poll_assistant`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct Polled {
    process: Seen,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_summary: Option<Summary>,
    /// Questions of it that wait for your answer; get_pending_questions has them.
    pending_questions: u32,
    /// When another look makes sense.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_poll_ms: Option<u64>,
    /// The wait was cut to this, the most of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_clamped_to_ms: Option<u64>,
}

async fn poll_assistant(call: Call, params: Poll) -> Result<Output, ToolError> {
    let (caller, process, summary) = (call.caller, params.process_id, params.include_summary);
    let bound = wait::bound(&call, params.wait_ms);
    let look = || async {
        let host = call.host.clone();
        let seen = call.host.store().read(move |db| see(&host, db, caller, process, summary)).await?;
        Ok::<_, ToolError>(Polled { wait_clamped_to_ms: bound.clamped_to_ms, ..seen })
    };
    let first = look().await?;
    if first.process.done || bound.wait.is_zero() {
        return Output::new(&first);
    }
    let on: [Uuid; 2] = [process.into(), caller.into()];
    let changed = || async {
        let now = look().await?;
        let same = now.process.status == first.process.status
            && now.message_summary == first.message_summary
            && now.pending_questions == first.pending_questions;
        Ok((!same).then_some(now))
    };
    match wait::until(&call, &on, bound.wait, changed).await? {
        Some(now) => Output::new(&now),
        None => Output::new(&look().await?),
    }
}

fn see(host: &Host, db: &Connection, caller: Caller, process: ProcessId, summary: bool) -> Result<Polled, ToolError> {
    let row = mine(db, caller, process)?;
    let message_summary = if summary { Some(message_box::summary(db, caller, row.thread)?) } else { None };
    let next_poll_ms = (!row.status.is_end()).then_some(NEXT_POLL_MS);
    let asked = questions::pending(db, caller, Some(process), host.now())?;
    let pending_questions = u32::try_from(asked.len()).unwrap_or(u32::MAX);
    Ok(Polled {
        pending_questions,
        process: Seen::new(db, &row, host.models(), host.limits().answer_chars as usize)?,
        message_summary,
        next_poll_ms,
        wait_clamped_to_ms: None,
    })
}

/// The row of a process that the caller may see and steer: its own descendants, and for a session all
/// that it reaches.
pub(super) fn mine(db: &Connection, caller: Caller, process: ProcessId) -> Result<Process, ToolError> {
    let row = process_table::find(db, process)?.ok_or_else(|| ToolError::unknown_process(process))?;
    let is_mine = match caller {
        Caller::Session(id) => process_table::reaches(db, id, row.session)?,
        Caller::Process(me) => {
            let mut above = row.parent;
            while let Some(parent) = above
                && parent != me
            {
                above = process_table::get(db, parent)?.parent;
            }
            above.is_some()
        }
    };
    if is_mine { Ok(row) } else { Err(ToolError::unknown_process(process)) }
}

/// Arguments of `cancel_assistant`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Cancel {
    /// The process, as spawn_assistant gave it.
    process_id: ProcessId,
    /// Why, for the log.
    reason: Option<String>,
}

/// Result of `cancel_assistant`.
#[derive(Debug, Serialize, JsonSchema)]
struct Cancelled {
    /// The processes that this call ends: the one that was named and all below it that had not ended.
    cancelled: Vec<ProcessId>,
}

async fn cancel_assistant(call: Call, params: Cancel) -> Result<Output, ToolError> {
    let caller = call.caller;
    let cancelled = call
        .host
        .store()
        .write(move |tx| {
            if !process_table::may_act(tx.db, caller)? {
                return Err(ToolError::caller_ended());
            }
            mine(tx.db, caller, params.process_id)?;
            let marked = process_table::cancel(tx, params.process_id, Cause::Requested)?;
            if let (Some(reason), false) = (&params.reason, marked.is_empty()) {
                let told = serde_json::json!({ "cancel_reason": reason.chars().take(1_000).collect::<String>() });
                crate::events::record(tx, params.process_id, crate::events::Kind::Status, &told)?;
            }
            Ok(marked)
        })
        .await?;
    Output::new(&Cancelled { cancelled })
}
