//! Sessions: the connections of principals, and the roots of all trees.

use assistant_protocol::ids::SessionId;
use rusqlite::{Connection, OptionalExtension, named_params};

use super::{Cause, cancel_marked, end, find, get, id, roots};
use crate::caller::Caller;
use crate::store::{StoreError, Tx};

/// A row of the sessions.
#[derive(Debug, Clone)]
pub struct SessionRow {
    /// What it is known by.
    pub id: SessionId,
    /// On whose behalf it is.
    pub principal: String,
    /// How assistants see it.
    pub caller_name: String,
    /// It has ended.
    pub ended: bool,
}

/// Records a new connection of a principal.
///
/// # Errors
/// The store's.
pub fn open_session(tx: &Tx<'_>, session: SessionId, principal: &str, caller_name: &str) -> Result<(), StoreError> {
    tx.db
        .prepare_cached(
            "INSERT INTO sessions (session_id, principal, caller_name, created_at)
             VALUES (:session, :principal, :caller, :now)",
        )?
        .execute(named_params! {
            ":session": session.to_string(), ":principal": principal, ":caller": caller_name, ":now": tx.now,
        })?;
    Ok(())
}

/// The row of a session, if there is one.
///
/// # Errors
/// The store's.
pub fn session(db: &Connection, session: SessionId) -> Result<Option<SessionRow>, StoreError> {
    let mut look =
        db.prepare_cached("SELECT session_id, principal, caller_name, ended_at FROM sessions WHERE session_id = ?1")?;
    let row = look.query_row([session.to_string()], |row| {
        Ok(SessionRow {
            id: id(row, "session_id")?,
            principal: row.get("principal")?,
            caller_name: row.get("caller_name")?,
            ended: row.get::<_, Option<i64>>("ended_at")?.is_some(),
        })
    });
    Ok(row.optional()?)
}

/// The sessions that have not ended.
///
/// # Errors
/// The store's.
pub fn open_sessions(db: &Connection) -> Result<Vec<SessionId>, StoreError> {
    let mut look = db.prepare_cached("SELECT session_id FROM sessions WHERE ended_at IS NULL")?;
    let rows = look.query_map([], |row| id(row, "session_id"))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Whether a caller may still act: a process is neither terminal nor marked cancelled, a session has not ended.
///
/// # Errors
/// The store's.
pub fn may_act(db: &Connection, caller: Caller) -> Result<bool, StoreError> {
    Ok(match caller {
        Caller::Session(id) => session(db, id)?.is_some_and(|row| !row.ended),
        Caller::Process(id) => find(db, id)?.is_some_and(|row| !row.status.is_end() && !row.marked),
    })
}

/// Ends a session: its processes are marked and will end `cancelled`, but for detached ones and what is below them.
/// What only queues ends at once.
///
/// # Errors
/// The store's.
pub fn end_session(tx: &mut Tx<'_>, session: SessionId) -> Result<(), StoreError> {
    tx.db
        .prepare_cached(
            "UPDATE sessions SET ended_at = ?2, end_cause = 'ended' WHERE session_id = ?1 AND ended_at IS NULL",
        )?
        .execute((session.to_string(), tx.now))?;
    for root in roots(tx.db, session)? {
        if !root.detached {
            super::end::mark(tx, root.id, Cause::SessionEnded, true)?;
        }
    }
    tx.wake(session);
    Ok(())
}

/// Ends what is marked and has no runner that could be asked to end.
pub(super) fn end_if_queued(tx: &mut Tx<'_>, process: assistant_protocol::ids::ProcessId) -> Result<(), StoreError> {
    if get(tx.db, process)?.status == super::Status::Queued {
        end(tx, process, cancel_marked())?;
    }
    Ok(())
}
