//! Ends: one for each process, told once, with everything that hangs on it in the same job.

use assistant_protocol::ids::{ProcessId, SessionId};
use rusqlite::{Connection, named_params};
use serde_json::{Value, json};

use super::session::{end_if_queued, wake_session};
use super::{Cause, LIVING, Process, Reason, Status, advance, agent, children, get, id, progress::set_waits, worktree};
use crate::events;
use crate::message_box::{self, Kind};
use crate::store::{StoreError, Tx};

/// How a process ends.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// With a result.
    Finished {
        /// The text.
        result: String,
        /// The same as data.
        structured: Option<Value>,
    },
    /// With a result that does not fit its schema: it is sent back, or that is the end.
    Unfit {
        /// In which ways.
        words: String,
        /// What was handed in.
        given: String,
        /// How often a result of the process may be sent back.
        repairs: u32,
    },
    /// With a reason.
    Failed {
        /// Which.
        reason: Reason,
        /// In words.
        error: String,
        /// What it had.
        partial: Option<String>,
    },
    /// With a cause.
    Cancelled {
        /// Which; a cause recorded earlier stands.
        cause: Cause,
        /// What it had.
        partial: Option<String>,
    },
}

/// The end of a process for which a cancel is recorded.
#[must_use]
pub fn cancel_marked() -> End {
    End::Cancelled { cause: Cause::Requested, partial: None }
}

/// What becomes of a process whose `run` was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Mail is queued: `run` is called again, without a query.
    Again,
    /// It has unfinished children: any message wakes it.
    Unsettled,
    /// Its result does not fit: `run` is called again, with that as the query.
    Repair,
    /// It has ended.
    Ended,
}

/// Ends a process: status, result, final message, slot, and everything living below it that is not detached.
/// Returns whether it did; a process that has ended stays as it is.
///
/// # Errors
/// The store's.
pub fn end(tx: &mut Tx<'_>, process: ProcessId, how: End) -> Result<bool, StoreError> {
    let row = get(tx.db, process)?;
    if row.status.is_end() {
        return Ok(false);
    }
    let how = first_cause(tx.db, &row, how)?;
    let (status, reason, cause, error, result, structured) = match how {
        End::Finished { result, structured } => (Status::Finished, None, None, None, Some(result), structured),
        End::Failed { reason, error, partial } => {
            (Status::Failed, Some(reason), None, Some(error + advice(reason)), partial, None)
        }
        End::Unfit { words, given, .. } => {
            let error = format!("the result does not fit the output schema:\n{words}");
            (Status::Failed, Some(Reason::OutputInvalid), None, Some(error), Some(given), None)
        }
        End::Cancelled { cause, partial } => (Status::Cancelled, None, Some(cause), None, partial, None),
    };
    if !row.status.may_become(status) {
        let broken = super::IllegalMove { from: row.status, to: status };
        return Err(StoreError::Damaged(broken.to_string()));
    }
    // What an agent used last nobody can tell any more.
    let lost = matches!(reason, Some(Reason::RunnerExited | Reason::HostLost));
    tx.db
        .prepare_cached(
            "UPDATE assistant_processes SET status = :status, reason = :reason, cause = :cause, error = :error,
               result = coalesce(:result, result), structured = :structured, waits = 0, finished_at = :now,
               untold_costs = untold_costs + (agent AND :lost)
             WHERE process_id = :process",
        )?
        .execute(named_params! {
            ":status": status, ":reason": reason, ":cause": cause, ":error": error, ":result": result,
            ":structured": structured.map(|value| value.to_string()), ":now": tx.now, ":process": process.to_string(),
            ":lost": lost,
        })?;
    super::budget::settle_given_up(tx, process)?;
    let told = json!({ "status": status, "reason": reason, "cause": cause, "error": error });
    events::record(tx, process, events::Kind::Status, &told)?;
    let ended = get(tx.db, process)?;
    let words = told_words(tx.db, &ended)?;
    message_box::post(tx, &ended, Kind::Final, Some(ended.id), ended.parent, &words)?;
    expire_questions(tx, process)?;
    for child in children(tx.db, process, true)? {
        if child.detached && !(child.marked && row.marked) {
            pass_on(tx, &child, row.session)?;
        } else {
            end(tx, child.id, End::Cancelled { cause: Cause::ParentEnded, partial: None })?;
        }
    }
    tx.wake(process);
    tx.wake(stop_key(process));
    tx.wake(crate::store::SUPERVISOR);
    if row.worktree.is_some() {
        tx.wake(crate::store::WORKTREES);
    }
    wake_session(tx, row.session)?;
    Ok(true)
}

/// A recorded cancel decides, whatever ends the process; a result without a word is none.
fn first_cause(db: &Connection, row: &Process, how: End) -> Result<End, StoreError> {
    if row.marked {
        let partial = match how {
            End::Finished { result, .. } | End::Unfit { given: result, .. } => Some(result),
            End::Failed { partial, .. } | End::Cancelled { partial, .. } => partial,
        };
        return Ok(End::Cancelled { cause: row.cause.unwrap_or(Cause::Requested), partial });
    }
    Ok(match how {
        End::Finished { result, structured: None } if result.trim().is_empty() => {
            End::Failed { reason: Reason::EmptyResult, error: agent::silence(db, row)?, partial: None }
        }
        other => other,
    })
}

/// What can be done about a budget that ended a process, behind the words that name it.
fn advice(reason: Reason) -> &'static str {
    match reason {
        Reason::BudgetExceeded => ". Resumed, it goes on where it ended, with limits of its own",
        _ => "",
    }
}

/// What stands between the words of an end and what the process had until then.
pub const UNTIL_THEN: &str = "\n\nUntil then it had:\n";

/// What the parent reads of an end.
#[must_use]
pub fn final_words(row: &Process) -> String {
    let had = row.result.as_deref().unwrap_or_default();
    let partial = if had.trim().is_empty() { String::new() } else { format!("{UNTIL_THEN}{had}") };
    match row.status {
        Status::Failed => {
            let reason = row.reason.map_or("failed", Reason::name);
            format!("Failed ({reason}): {}{partial}", row.error.as_deref().unwrap_or("no more is known"))
        }
        Status::Cancelled => {
            format!("Cancelled ({}).{partial}", row.cause.map_or("requested", Cause::name))
        }
        Status::Finished | Status::Queued | Status::Starting | Status::Running | Status::Waiting => had.to_owned(),
    }
}

/// The same, with where it has left what it changed.
///
/// # Errors
/// The store's.
pub fn told_words(db: &Connection, row: &Process) -> Result<String, StoreError> {
    Ok(final_words(row) + &worktree::told(db, row)?)
}

fn expire_questions(tx: &Tx<'_>, process: ProcessId) -> Result<(), StoreError> {
    tx.db
        .prepare_cached("UPDATE questions SET state = 'EXPIRED' WHERE process_id = ?1 AND state = 'PENDING'")?
        .execute([process.to_string()])?;
    Ok(())
}

/// A detached child of an ended process belongs to the session, and so does what it asks.
fn pass_on(tx: &mut Tx<'_>, child: &Process, session: SessionId) -> Result<(), StoreError> {
    let child_id = child.id.to_string();
    tx.db
        .prepare_cached(
            "UPDATE assistant_processes SET parent_process_id = NULL,
               parent_assistant_id = (SELECT caller_name FROM sessions WHERE session_id = ?2)
             WHERE process_id = ?1",
        )?
        .execute((&child_id, session.to_string()))?;
    tx.db
        .prepare_cached(
            "UPDATE assistant_messages SET to_process_id = NULL, delivered_at = NULL, read_at = NULL, handed_by = NULL,
               to_assistant_id = (SELECT caller_name FROM sessions WHERE session_id = ?2)
             WHERE id IN (SELECT message_id FROM questions WHERE process_id = ?1 AND state = 'PENDING')",
        )?
        .execute((&child_id, session.to_string()))?;
    tx.db
        .prepare_cached("UPDATE questions SET to_process_id = NULL WHERE process_id = ?1 AND state = 'PENDING'")?
        .execute([&child_id])?;
    let moved: Vec<(String, String, usize)> = {
        let mut look = tx.db.prepare_cached(
            "SELECT m.id, m.to_assistant_id, length(CAST(m.content AS BLOB)) FROM questions q
             JOIN assistant_messages m ON m.id = q.message_id
             WHERE q.process_id = ?1 AND q.state = 'PENDING' ORDER BY m.seq",
        )?;
        let rows = look.query_map([&child_id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        rows.collect::<Result<_, _>>()?
    };
    for (message, to, bytes) in moved {
        let told = json!({
            "message_id": message, "kind": Kind::Question, "from": child.assistant_id, "to": to, "bytes": bytes,
        });
        events::record(tx, child.id, events::Kind::Message, &told)?;
    }
    wake_session(tx, session)
}

/// What waits for a process to be stopped waits under this id: all other news of the process is none to it.
pub(crate) fn stop_key(process: ProcessId) -> uuid::Uuid {
    uuid::Uuid::from_u128(!process.uuid().as_u128())
}

/// How a process gets its messages, and whether it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Took {
    /// Its model calls take them in: whether one did since `run` was called again for their sake.
    ByModel(bool),
    /// Its runner is given them.
    Given {
        /// One was given that the answer to `run` does not know.
        late: bool,
    },
}

/// Looks and decides what becomes of a process whose `run` was answered with `result`.
///
/// # Errors
/// The store's.
pub fn settle(tx: &mut Tx<'_>, process: ProcessId, result: &End, took: Took) -> Result<Settled, StoreError> {
    let mut row = get(tx.db, process)?;
    if row.status.is_end() {
        return Ok(Settled::Ended);
    }
    set_waits(tx, process, "0")?;
    if row.status == Status::Waiting {
        advance(tx, &row, Status::Running)?;
        row.status = Status::Running;
    }
    let said = match result {
        End::Finished { result, .. } | End::Unfit { given: result, .. } => Some(result),
        End::Failed { .. } | End::Cancelled { .. } => None,
    };
    let succeeded = said.is_some() && !row.marked;
    if succeeded && (took == Took::Given { late: true } || message_box::queued_for(tx.db, process)? > 0) {
        if took != Took::ByModel(false) {
            return Ok(Settled::Again);
        }
        let error = "the runner answered `run` without asking the model about its queued messages".to_owned();
        end(tx, process, End::Failed { reason: Reason::ProtocolError, error, partial: None })?;
        return Ok(Settled::Ended);
    }
    if succeeded && children(tx.db, process, true)?.iter().any(|child| !child.detached) {
        if let Some(said) = said {
            keep(tx, process, said)?;
        }
        advance(tx, &row, Status::Waiting)?;
        return Ok(Settled::Unsettled);
    }
    if let End::Unfit { repairs, .. } = result
        && succeeded
        && super::repair(tx, process, *repairs)?
    {
        return Ok(Settled::Repair);
    }
    end(tx, process, result.clone())?;
    Ok(Settled::Ended)
}

/// Keeps what a process has said so far, to be told if it ends otherwise.
///
/// # Errors
/// The store's.
pub fn keep(tx: &Tx<'_>, process: ProcessId, partial: &str) -> Result<(), StoreError> {
    tx.db
        .prepare_cached("UPDATE assistant_processes SET result = ?2 WHERE process_id = ?1 AND finished_at IS NULL")?
        .execute((process.to_string(), partial))?;
    Ok(())
}

/// An unsettled process for which a message is queued goes on. Returns whether it does.
///
/// # Errors
/// The store's.
pub fn resume_unsettled(tx: &mut Tx<'_>, process: ProcessId) -> Result<bool, StoreError> {
    let row = get(tx.db, process)?;
    if row.status != Status::Waiting || row.marked || message_box::queued_for(tx.db, process)? == 0 {
        return Ok(false);
    }
    advance(tx, &row, Status::Running)?;
    Ok(true)
}

/// Marks a process and all below it, detached ones too; what only queues ends at once, the others are ended by the
/// supervisor. Returns those that were marked by this call.
///
/// # Errors
/// The store's.
pub fn cancel(tx: &mut Tx<'_>, process: ProcessId, cause: Cause) -> Result<Vec<ProcessId>, StoreError> {
    mark(tx, process, cause, false)
}

pub(super) fn mark(
    tx: &mut Tx<'_>,
    process: ProcessId,
    cause: Cause,
    spare_detached: bool,
) -> Result<Vec<ProcessId>, StoreError> {
    let mut marked = Vec::new();
    let mut todo = vec![process];
    while let Some(next) = todo.pop() {
        let row = get(tx.db, next)?;
        if !row.status.is_end() && !row.marked {
            tx.db
                .prepare_cached(
                    "UPDATE assistant_processes SET cancel_requested_at = ?2, cause = ?3 WHERE process_id = ?1",
                )?
                .execute((next.to_string(), tx.now, cause))?;
            events::record(tx, next, events::Kind::Status, &json!({ "cancel_requested": cause }))?;
            tx.wake(next);
            tx.wake(stop_key(next));
            marked.push(next);
        }
        let below = children(tx.db, next, false)?;
        todo.extend(below.iter().filter(|child| !(spare_detached && child.detached)).map(|child| child.id));
    }
    for one in &marked {
        end_if_queued(tx, *one)?;
    }
    Ok(marked)
}

/// Ends every process that has not ended, the deepest first; marked ones end `cancelled` as always. Returns which
/// there were.
///
/// # Errors
/// The store's.
pub fn end_the_living(tx: &mut Tx<'_>, how: &End) -> Result<Vec<ProcessId>, StoreError> {
    let left: Vec<ProcessId> = {
        let mut look = tx.db.prepare_cached(&format!(
            "SELECT process_id FROM assistant_processes WHERE {LIVING} ORDER BY depth DESC, seq"
        ))?;
        let rows = look.query_map([], |row| id(row, "process_id"))?;
        rows.collect::<Result<_, _>>()?
    };
    for process in &left {
        end(tx, *process, how.clone())?;
    }
    Ok(left)
}

/// Ends what a host that died has left: marked processes `cancelled`, all others `failed(host_lost)`. Ends the sessions
/// of that host. Returns which processes there were.
///
/// # Errors
/// The store's.
pub fn recover(tx: &mut Tx<'_>) -> Result<Vec<Process>, StoreError> {
    let error = "the host that ran it ended without a word; its messages and its log are kept".to_owned();
    let left = end_the_living(tx, &End::Failed { reason: Reason::HostLost, error, partial: None })?;
    tx.db
        .prepare_cached(
            "UPDATE sessions SET ended_at = ?1, end_cause = 'host_lost' WHERE ended_at IS NULL OR end_cause = 'left'",
        )?
        .execute([tx.now])?;
    left.into_iter().map(|process| super::get(tx.db, process)).collect()
}
