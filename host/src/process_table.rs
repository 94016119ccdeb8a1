//! The life of every process. Only this file and those below it change a status.
//!
//! Each function is part of one writer job; what it says holds when that job is committed.

use assistant_protocol::ids::{ProcessId, SessionId, ThreadId};
use assistant_protocol::types::Usage;
use rusqlite::{Connection, Row, named_params};
use serde::Serialize;

use crate::names::named;
use crate::store::{StoreError, Tx};

mod agent;
pub mod budget;
mod columns;
mod end;
mod given;
mod keys;
mod line;
mod pictures;
mod progress;
pub(crate) mod retention;
mod session;
mod slots;
mod spawn;
mod trees;
mod usage;
pub mod worktree;

pub use agent::{SessionBefore, Told, add_told, keep_agent_session, mark_agent, model_wished, session_before};
use columns::unreadable;
pub(crate) use columns::{id, optional_id};
pub(crate) use end::stop_key;
pub use end::{
    End, Settled, Took, UNTIL_THEN, cancel, cancel_marked, end, end_the_living, final_words, keep, recover,
    resume_unsettled, settle, told_words,
};
pub use given::{Given, definition, given, given_tools, keep_given_tools, limits, repair};
pub use keys::{Keyed, keep_keyed, keyed};
pub use line::TOO_LONG as NOT_CONTINUED;
pub use pictures::{keep_pictures, pictures};
pub use progress::{add_usage, count_tool_call, count_turn, exited, report, reported, wait_begins, wait_ends};
pub(crate) use session::wake_session;
pub use session::{
    NotOpened, ProfileName, SessionRow, end_left_session, end_session, leave_session, may_act, open_session,
    open_session_as, open_sessions, principal_key, reaches, session, session_above,
};
pub use slots::{Capacity, capacity, living, start_ready, to_start};
pub use spawn::{LEVEL_UNKNOWN, NewProcess, Refused, Spawned, resumption_of, spawn};
pub(crate) use trees::GO_ON;
pub use trees::{Listed, Whose, living_of, living_spawned_by, newest, task, tree, trees};
pub use usage::{ToldCost, Used, told_cost, used};

named! {
    /// Where a process is in its life.
    pub enum Status {
        /// No free slot yet.
        Queued = "queued",
        /// Launched, `initialize` not answered.
        Starting = "starting",
        /// At work.
        Running = "running",
        /// A blocking wait of its own is in flight, or its children have not ended.
        Waiting = "waiting",
        /// It has a result.
        Finished = "finished",
        /// It has a reason.
        Failed = "failed",
        /// It has a cause.
        Cancelled = "cancelled",
    }
}

named! {
    /// Why a process failed.
    pub enum Reason {
        /// The runner did not start, or did not answer `initialize`.
        LaunchFailed = "launch_failed",
        /// The runner ended before its run did.
        RunnerExited = "runner_exited",
        /// The host died.
        HostLost = "host_lost",
        /// The runner broke the protocol.
        ProtocolError = "protocol_error",
        /// The runner wrote too many lines that are no messages.
        ProtocolNoise = "protocol_noise",
        /// The model's provider failed.
        ModelFailed = "model_failed",
        /// The conversation grew longer than the model takes.
        ContextExceeded = "context_exceeded",
        /// The wall time was up.
        TimedOut = "timed_out",
        /// No progress for too long.
        Stalled = "stalled",
        /// A limit was reached.
        BudgetExceeded = "budget_exceeded",
        /// The result did not fit its schema.
        OutputInvalid = "output_invalid",
        /// The run ended without a word.
        EmptyResult = "empty_result",
        /// A question was not answered in time.
        NoAnswer = "no_answer",
    }
}

named! {
    /// Why a process was cancelled.
    pub enum Cause {
        /// Its caller, or someone above, asked for it.
        Requested = "requested",
        /// Its parent ended.
        ParentEnded = "parent_ended",
        /// Its session ended.
        SessionEnded = "session_ended",
        /// Its host was closed; what a session's end spares is ended so.
        HostClosed = "host_closed",
    }
}

/// SQL: the process has not ended. Word for word the condition of the partial index `processes_living`.
pub(crate) const LIVING: &str = "status IN ('queued', 'starting', 'running', 'waiting')";

impl Status {
    /// Whether it is an end.
    #[must_use]
    pub fn is_end(self) -> bool {
        matches!(self, Status::Finished | Status::Failed | Status::Cancelled)
    }

    /// The one place that knows the legal moves.
    #[must_use]
    pub fn may_become(self, next: Status) -> bool {
        use Status::{Cancelled, Failed, Finished, Queued, Running, Starting, Waiting};
        match self {
            Queued => matches!(next, Starting | Failed | Cancelled),
            Starting => matches!(next, Running | Failed | Cancelled),
            Running => matches!(next, Waiting | Finished | Failed | Cancelled),
            Waiting => matches!(next, Running | Failed | Cancelled),
            Finished | Failed | Cancelled => false,
        }
    }
}

/// A row of the process table.
#[derive(Debug, Clone, Serialize)]
pub struct Process {
    /// What it is known by.
    pub id: ProcessId,
    /// Its assistant.
    pub assistant_id: String,
    /// The hash of the definition it started with.
    pub snapshot: String,
    /// Who spawned it; null is the session.
    pub parent: Option<ProcessId>,
    /// Who spawned it, by assistant; a session by its caller name.
    pub parent_assistant_id: String,
    /// The process at the top of its tree.
    pub root: ProcessId,
    /// The session at the top of its tree.
    pub session: SessionId,
    /// Its conversation and mailbox.
    pub thread: ThreadId,
    /// 1 below a session.
    pub depth: u32,
    /// It outlives its parent.
    pub detached: bool,
    /// The process that it goes on from.
    pub resumed_from: Option<ProcessId>,
    /// The caller's name for it.
    pub label: Option<String>,
    /// Where it is in its life.
    pub status: Status,
    /// Why it failed.
    pub reason: Option<Reason>,
    /// Why it was cancelled.
    pub cause: Option<Cause>,
    /// The same in words.
    pub error: Option<String>,
    /// A cancel is recorded: it will end cancelled.
    pub marked: bool,
    /// The task.
    pub query: String,
    /// Background to the task.
    pub context: Option<String>,
    /// Where its file tools work.
    pub working_dir: Option<String>,
    /// The git worktree in which it works; none is none.
    pub worktree: Option<ProcessId>,
    /// The tools it was granted.
    pub tools: Vec<String>,
    /// What its definition asks for and it does not have, as JSON.
    pub unavailable_tools: String,
    /// The model it asks.
    pub model: String,
    /// The name of its runner; none is the host's own.
    pub runner: Option<String>,
    /// Its runner runs an agent that has its own model and tools.
    pub agent: bool,
    /// The name of the launcher that starts its runner; none is the machine as it is.
    pub launcher: Option<String>,
    /// Model calls begun.
    pub turns: u32,
    /// Tool calls begun.
    pub tool_calls: u32,
    /// Tokens, as far as providers told.
    pub usage: Usage,
    /// Model calls whose usage no provider told.
    pub unknown_calls: u32,
    /// Its result, or what it had when it ended otherwise.
    pub result: Option<String>,
    /// The result as data, where it is that.
    pub structured: Option<serde_json::Value>,
    /// When it was spawned, Unix milliseconds.
    pub created_at: i64,
    /// When its runner was launched.
    pub started_at: Option<i64>,
    /// When it ended.
    pub finished_at: Option<i64>,
    /// How its runner exited; negative is a signal.
    pub exit_code: Option<i32>,
}

const COLUMNS: &str = "process_id, assistant_id, snapshot, parent_process_id, parent_assistant_id, root_process_id, \
    session_id, thread_id, depth, detached, resumed_from, label, status, reason, cause, error, cancel_requested_at, query, context, \
    working_dir, worktree, tools, unavailable_tools, model, runner, agent, launcher, turns, tool_calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, \
    reasoning_tokens, usage_unknown, result, structured, created_at, started_at, finished_at, exit_code";

/// The place of a column among [`COLUMNS`].
macro_rules! at {
    ($name:literal) => {
        const { columns::place(COLUMNS, $name) }
    };
}

/// A row that begins with [`COLUMNS`].
fn from_row(row: &Row<'_>) -> rusqlite::Result<Process> {
    let tools: String = row.get(at!("tools"))?;
    Ok(Process {
        id: id(row, at!("process_id"))?,
        assistant_id: row.get(at!("assistant_id"))?,
        snapshot: row.get(at!("snapshot"))?,
        parent: optional_id(row, at!("parent_process_id"))?,
        parent_assistant_id: row.get(at!("parent_assistant_id"))?,
        root: id(row, at!("root_process_id"))?,
        session: id(row, at!("session_id"))?,
        thread: id(row, at!("thread_id"))?,
        depth: row.get(at!("depth"))?,
        detached: row.get(at!("detached"))?,
        resumed_from: optional_id(row, at!("resumed_from"))?,
        label: row.get(at!("label"))?,
        status: row.get(at!("status"))?,
        reason: row.get(at!("reason"))?,
        cause: row.get(at!("cause"))?,
        error: row.get(at!("error"))?,
        marked: row.get::<_, Option<i64>>(at!("cancel_requested_at"))?.is_some(),
        query: row.get(at!("query"))?,
        context: row.get(at!("context"))?,
        working_dir: row.get(at!("working_dir"))?,
        worktree: optional_id(row, at!("worktree"))?,
        tools: serde_json::from_str(&tools).map_err(|error| unreadable(at!("tools"), error))?,
        unavailable_tools: row.get(at!("unavailable_tools"))?,
        model: row.get(at!("model"))?,
        runner: row.get(at!("runner"))?,
        agent: row.get(at!("agent"))?,
        launcher: row.get(at!("launcher"))?,
        turns: row.get(at!("turns"))?,
        tool_calls: row.get(at!("tool_calls"))?,
        usage: Usage {
            input_tokens: row.get(at!("input_tokens"))?,
            output_tokens: row.get(at!("output_tokens"))?,
            cache_read_tokens: row.get(at!("cache_read_tokens"))?,
            cache_write_tokens: row.get(at!("cache_write_tokens"))?,
            reasoning_tokens: row.get(at!("reasoning_tokens"))?,
        },
        unknown_calls: row.get(at!("usage_unknown"))?,
        result: row.get(at!("result"))?,
        structured: columns::json(row, at!("structured"))?,
        created_at: row.get(at!("created_at"))?,
        started_at: row.get(at!("started_at"))?,
        finished_at: row.get(at!("finished_at"))?,
        exit_code: row.get(at!("exit_code"))?,
    })
}

/// The rows that fit a condition on one id, oldest first.
fn select(db: &Connection, condition: &str, id: String) -> Result<Vec<Process>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM assistant_processes WHERE {condition} ORDER BY seq");
    let mut look = db.prepare_cached(&sql)?;
    let rows = look.query_map([id], from_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The row of a process, if there is one.
///
/// # Errors
/// The store's.
pub fn find(db: &Connection, process: ProcessId) -> Result<Option<Process>, StoreError> {
    Ok(select(db, "process_id = ?1", process.to_string())?.pop())
}

/// The process whose thread this is, if there is one.
///
/// # Errors
/// The store's.
pub fn find_thread(db: &Connection, thread: ThreadId) -> Result<Option<Process>, StoreError> {
    Ok(select(db, "thread_id = ?1", thread.to_string())?.pop())
}

/// The row of a process that is known to be there.
///
/// # Errors
/// [`StoreError::Damaged`] where it is not.
pub fn get(db: &Connection, process: ProcessId) -> Result<Process, StoreError> {
    find(db, process)?.ok_or_else(|| StoreError::Damaged(format!("process {process} has no row")))
}

/// The children of a process, oldest first: all, or those that have not ended.
///
/// # Errors
/// The store's.
pub fn children(db: &Connection, parent: ProcessId, living: bool) -> Result<Vec<Process>, StoreError> {
    let only = if living { format!(" AND {LIVING}") } else { String::new() };
    select(db, &format!("parent_process_id = ?1{only}"), parent.to_string())
}

/// The processes that a session spawned itself and that have not ended, oldest first.
///
/// # Errors
/// The store's.
pub fn roots(db: &Connection, session: SessionId) -> Result<Vec<Process>, StoreError> {
    select(db, &format!("session_id = ?1 AND {LIVING} AND parent_process_id IS NULL"), session.to_string())
}

/// All processes with this status, oldest first.
///
/// # Errors
/// The store's.
pub fn with_status(db: &Connection, status: Status) -> Result<Vec<ProcessId>, StoreError> {
    // By the index of the living, which are few: for the order's sake all rows would be read.
    let mut look = db.prepare_cached(&format!(
        "SELECT process_id FROM assistant_processes INDEXED BY processes_living
         WHERE {LIVING} AND status = ?1 ORDER BY seq"
    ))?;
    let rows = look.query_map([status], |row| id(row, "process_id"))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A process that moved where its life has no way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a process cannot go from {from} to {to}")]
pub struct IllegalMove {
    /// Where it is.
    pub from: Status,
    /// Where it was to go.
    pub to: Status,
}

/// Moves a process on. The one place that writes a status other than an end.
fn advance(tx: &mut Tx<'_>, process: &Process, next: Status) -> Result<(), StoreError> {
    if process.status == next {
        return Ok(());
    }
    if !process.status.may_become(next) {
        return Err(StoreError::Damaged(IllegalMove { from: process.status, to: next }.to_string()));
    }
    tx.db
        .prepare_cached(
            "UPDATE assistant_processes SET status = :status,
               started_at = CASE WHEN :status = 'starting' THEN :now ELSE started_at END
             WHERE process_id = :process",
        )?
        .execute(named_params! { ":status": next, ":now": tx.now, ":process": process.id.to_string() })?;
    crate::events::record(tx, process.id, crate::events::Kind::Status, &given::told(process, next))?;
    tx.wake(process.id);
    if next != Status::Running {
        // One that runs has its slot and its runner already.
        tx.wake(crate::store::SUPERVISOR);
    }
    Ok(())
}

/// The runner has answered `initialize`.
///
/// # Errors
/// The store's.
pub fn running(tx: &mut Tx<'_>, process: ProcessId) -> Result<(), StoreError> {
    let row = get(tx.db, process)?;
    match row.status {
        Status::Starting => advance(tx, &row, Status::Running),
        // It was ended meanwhile, or runs already.
        _ => Ok(()),
    }
}
