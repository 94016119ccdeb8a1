//! Assistants that go on with their last conversation: each new process of one goes on from the last one in its line, and
//! begins when that has ended.
//!
//! A line belongs to an assistant and to whom it works for: the sessions of one principal (or of clients within one
//! assistant), or, where an assistant spawns it, the assistants of that id that work for those.

use assistant_protocol::ids::{ProcessId, SessionId, ThreadId};
use rusqlite::{Connection, OptionalExtension, named_params};
use serde_json::json;

use super::{LIVING, Process, Reason, get, id, session};
use crate::store::{StoreError, Tx};
use crate::{blobs, events};

/// SQL: the process `q` does not wait for an older one of its line.
pub(super) const FREE: &str = "NOT EXISTS (SELECT 1 FROM assistant_processes older
    WHERE older.assistant_id = q.assistant_id AND older.line = q.line AND older.seq < q.seq
      AND older.status IN ('queued', 'starting', 'running', 'waiting'))";

/// What is said where a conversation is not gone on with.
pub const TOO_LONG: &str = "its last conversation had grown longer than its model takes";

/// Where a new process stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The line.
    pub(super) line: String,
    /// The process that it goes on from.
    pub(super) before: Option<ProcessId>,
    /// Why it goes on from none, where there was one.
    pub(super) afresh: Option<&'static str>,
    /// A process of the line that has not ended.
    pub(super) behind: Option<ProcessId>,
}

/// The place of a new process of an assistant. One that is resumed stays in its line.
pub(super) fn place(
    db: &Connection,
    assistant: &str,
    parent: Option<&Process>,
    session_id: SessionId,
    resumed: Option<ProcessId>,
) -> Result<Place, StoreError> {
    let of_resumed = resumed.map(|old| line_of(db, old)).transpose()?.flatten();
    let line = match (of_resumed, parent) {
        (Some(line), _) => line,
        (None, parent) => {
            let whose = session(db, session_id)?.map(|row| row.whose()).unwrap_or_default();
            let of = parent.map_or_else(|| "session".to_owned(), |parent| format!("assistant:{}", parent.assistant_id));
            format!("{of} {whose}")
        }
    };
    let last: Option<ProcessId> = db
        .prepare_cached(
            "SELECT process_id FROM assistant_processes WHERE assistant_id = ?1 AND line = ?2 ORDER BY seq DESC LIMIT 1",
        )?
        .query_row((assistant, &line), |row| id(row, "process_id"))
        .optional()?;
    let behind: Option<ProcessId> = db
        .prepare_cached(&format!(
            "SELECT process_id FROM assistant_processes
             WHERE assistant_id = ?1 AND line = ?2 AND {LIVING} ORDER BY seq DESC LIMIT 1"
        ))?
        .query_row((assistant, &line), |row| id(row, "process_id"))
        .optional()?;
    let (before, afresh) = match (resumed, last) {
        (Some(old), _) => (Some(old), None),
        (None, None) => (None, None),
        // What becomes of its conversation is seen when it has ended.
        (None, Some(last)) if behind.is_some() => (Some(last), None),
        (None, Some(last)) => match usable(db, last)? {
            Usable::Yes => (Some(last), None),
            Usable::Empty => (None, None),
            Usable::TooLong => (None, Some(TOO_LONG)),
        },
    };
    Ok(Place { line, before, afresh, behind })
}

fn line_of(db: &Connection, process: ProcessId) -> Result<Option<String>, StoreError> {
    let mut look = db.prepare_cached("SELECT line FROM assistant_processes WHERE process_id = ?1")?;
    Ok(look.query_row([process.to_string()], |row| row.get(0))?)
}

/// Whether a conversation can be gone on with.
enum Usable {
    Yes,
    /// Nothing was said in it.
    Empty,
    TooLong,
}

fn usable(db: &Connection, last: ProcessId) -> Result<Usable, StoreError> {
    let mut next = Some(last);
    while let Some(one) = next {
        let row = get(db, one)?;
        if row.reason == Some(Reason::ContextExceeded) {
            return Ok(Usable::TooLong);
        }
        if row.turns > 0 {
            return Ok(Usable::Yes);
        }
        // It never asked its model: it holds no more than the one before.
        next = row.resumed_from;
    }
    Ok(Usable::Empty)
}

/// Whether what `behind` waits for, or is waited for by, is the caller: then neither would ever go on.
pub(super) fn waits_for(db: &Connection, behind: ProcessId, caller: ProcessId) -> Result<bool, StoreError> {
    let mut look = db.prepare_cached(
        "WITH RECURSIVE above(process_id) AS (
           SELECT :caller
           UNION
           SELECT p.parent_process_id FROM above a JOIN assistant_processes p ON p.process_id = a.process_id
             WHERE p.parent_process_id IS NOT NULL
         ), line(process_id) AS (
           SELECT :behind
           UNION
           SELECT c.process_id FROM line w JOIN assistant_processes c ON c.parent_process_id = w.process_id
             WHERE c.finished_at IS NULL
           UNION
           SELECT o.process_id FROM line w JOIN assistant_processes q ON q.process_id = w.process_id
             JOIN assistant_processes o ON o.assistant_id = q.assistant_id AND o.line = q.line AND o.seq < q.seq
             WHERE q.status = 'queued' AND o.finished_at IS NULL
         )
         SELECT 1 FROM line JOIN above USING (process_id) LIMIT 1",
    )?;
    Ok(look.exists(named_params! { ":behind": behind.to_string(), ":caller": caller.to_string() })?)
}

/// A process that queued behind another one of its line begins: what that one has left is seen only now.
pub(super) fn begins(tx: &Tx<'_>, row: &Process) -> Result<(), StoreError> {
    let Some(before) = row.resumed_from.filter(|_| row.started_at.is_none()) else { return Ok(()) };
    if line_of(tx.db, row.id)?.is_none() {
        return Ok(());
    }
    match usable(tx.db, before)? {
        Usable::Yes => return move_mail(tx, before, row.id, row.thread),
        Usable::Empty => {}
        Usable::TooLong => told_afresh(tx, row.id)?,
    }
    tx.db
        .prepare_cached("UPDATE assistant_processes SET resumed_from = NULL WHERE process_id = ?1")?
        .execute([row.id.to_string()])?;
    move_mail(tx, before, row.id, row.thread)
}

/// Tells in the log that the last conversation is not gone on with.
pub(super) fn told_afresh(tx: &Tx<'_>, process: ProcessId) -> Result<(), StoreError> {
    events::record(tx, process, events::Kind::Status, &json!({ "afresh": TOO_LONG }))
}

/// What was queued for a process waits for the one that goes on from it, and so does what it should have taken over itself
/// and never did; answers that were never had come as messages. It has their blobs, which its conversation may name.
pub(super) fn move_mail(tx: &Tx<'_>, old: ProcessId, new: ProcessId, thread: ThreadId) -> Result<(), StoreError> {
    let mut next = Some(old);
    while let Some(one) = next {
        tx.db
            .prepare_cached(
                "UPDATE assistant_messages SET to_process_id = ?2, thread_id = ?3, handed_by = NULL,
                   kind = CASE kind WHEN 'answer' THEN 'message' ELSE kind END
                 WHERE to_process_id = ?1 AND delivered_at IS NULL",
            )?
            .execute((one.to_string(), new.to_string(), thread.to_string()))?;
        blobs::inherit(tx, one, new)?;
        let row = get(tx.db, one)?;
        next = row.resumed_from.filter(|_| row.started_at.is_none());
    }
    Ok(())
}
