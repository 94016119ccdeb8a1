//! Slots: derived from the rows each time, never counted along.

use assistant_protocol::ids::{ProcessId, SessionId};
use rusqlite::{Connection, OptionalExtension, named_params};
use schemars::JsonSchema;
use serde::Serialize;

use super::line::{self, FREE};
use super::{LIVING, Status, advance, budget, get, id};
use crate::limits::Limits;
use crate::store::{StoreError, Tx};

/// How much room there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Capacity {
    /// Processes of this session that hold a slot.
    pub running: u32,
    /// The most that may.
    pub limit: u32,
    /// Processes of this session that wait for a slot.
    pub queued: u32,
    /// The place of this one among them; 1 is the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// Tokens that it and all below it may still use.
    pub budget_left: u64,
}

/// Slots held: starting or running, and no unfinished child. Of a session, or of the host.
///
/// Counted as those that start or run, less those of them that have an unfinished child: the first is counted in an
/// index alone, the second looks at parents only. A look at each one's children took milliseconds with a thousand.
pub(super) fn used(db: &Connection, session: Option<SessionId>) -> Result<u32, StoreError> {
    let of = if session.is_some() { "session_id = :session" } else { ":session IS NULL" };
    let mut look = db.prepare_cached(&format!(
        "SELECT (SELECT count(*) FROM assistant_processes WHERE {of} AND {LIVING} AND status IN ('starting', 'running'))
           - (SELECT count(*) FROM
               (SELECT DISTINCT parent_process_id AS parent FROM assistant_processes
                WHERE {LIVING} AND parent_process_id IS NOT NULL)
              JOIN assistant_processes ON process_id = parent
              WHERE {of} AND status IN ('starting', 'running'))"
    ))?;
    Ok(look.query_row(named_params! { ":session": session.map(|id| id.to_string()) }, |row| row.get(0))?)
}

/// Whether one more may start in this session.
pub(super) fn room(db: &Connection, session: SessionId, limits: &Limits) -> Result<bool, StoreError> {
    Ok(used(db, Some(session))? < limits.running_per_session && used(db, None)? < limits.running_per_host)
}

/// The process of a session that has waited longest for a slot, and for nothing else.
pub(super) fn first_queued(db: &Connection, session: SessionId) -> Result<Option<ProcessId>, StoreError> {
    let mut look = db.prepare_cached(&format!(
        "SELECT process_id FROM assistant_processes q WHERE session_id = ?1 AND {LIVING} AND status = 'queued' AND {FREE}
         ORDER BY seq LIMIT 1"
    ))?;
    Ok(look.query_row([session.to_string()], |row| id(row, "process_id")).optional()?)
}

pub(super) fn count_status(db: &Connection, session: SessionId, status: Option<Status>) -> Result<u32, StoreError> {
    let mut look = db.prepare_cached(&format!(
        "SELECT count(*) FROM assistant_processes WHERE session_id = ?1 AND {LIVING} AND (?2 IS NULL OR status = ?2)"
    ))?;
    Ok(look.query_row((session.to_string(), status), |row| row.get(0))?)
}

/// Processes of the host that have not ended.
///
/// # Errors
/// The store's.
pub fn living(db: &Connection) -> Result<u32, StoreError> {
    let mut look = db.prepare_cached(&format!("SELECT count(*) FROM assistant_processes WHERE {LIVING}"))?;
    Ok(look.query_row([], |row| row.get(0))?)
}

/// The sessions of which a process waits for a slot: those that use the fewest first, of them the one that has waited
/// longest for its turn.
fn waiting_sessions(db: &Connection) -> Result<Vec<SessionId>, StoreError> {
    let mut look = db.prepare_cached(&format!(
        "SELECT q.session_id,
           (SELECT count(*) FROM assistant_processes p WHERE p.session_id = q.session_id AND {LIVING}
              AND p.status IN ('starting', 'running')) AS at_work,
           (SELECT max(started_at) FROM assistant_processes p WHERE p.session_id = q.session_id) AS last_turn
         FROM assistant_processes q WHERE {LIVING} AND q.status = 'queued' AND {FREE}
         GROUP BY q.session_id ORDER BY at_work, last_turn, min(q.seq)"
    ))?;
    let rows = look.query_map([], |row| id(row, "session_id"))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Whether a slot of the host is waited for by other sessions that could take it.
pub(super) fn others_come_first(db: &Connection, session: SessionId, limits: &Limits) -> Result<bool, StoreError> {
    for other in waiting_sessions(db)?.into_iter().filter(|other| *other != session) {
        if room(db, other, limits)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What the supervisor has to do: whether a process waits for a slot, and those that are to have a runner.
///
/// # Errors
/// The store's.
pub fn to_start(db: &Connection) -> Result<(bool, Vec<ProcessId>), StoreError> {
    let mut look = db.prepare_cached(&format!(
        "SELECT status = 'queued' AS queued, process_id FROM assistant_processes
         WHERE {LIVING} AND status IN ('queued', 'starting') ORDER BY +seq"
    ))?;
    let (mut queued, mut starting) = (false, Vec::new());
    let mut rows = look.query([])?;
    while let Some(row) = rows.next()? {
        match row.get("queued")? {
            true => queued = true,
            false => starting.push(id(row, "process_id")?),
        }
    }
    Ok((queued, starting))
}

/// Moves every queued process for which there is a slot to `starting`: one after the other, of the session whose turn it
/// is, there the oldest first.
///
/// # Errors
/// The store's.
pub fn start_ready(tx: &mut Tx<'_>, limits: &Limits) -> Result<(), StoreError> {
    loop {
        let mut started = false;
        for session in waiting_sessions(tx.db)? {
            if room(tx.db, session, limits)?
                && let Some(next) = first_queued(tx.db, session)?
            {
                let row = get(tx.db, next)?;
                line::begins(tx, &row)?;
                advance(tx, &row, Status::Starting)?;
                started = true;
                break;
            }
        }
        if !started {
            return Ok(());
        }
    }
}

/// How much room the session of a process has, as the process sees it.
///
/// # Errors
/// The store's.
pub fn capacity(db: &Connection, process: ProcessId, limits: &Limits, now: i64) -> Result<Capacity, StoreError> {
    let row = get(db, process)?;
    let position = if row.status == Status::Queued {
        let mut look = db.prepare_cached(&format!(
            "SELECT count(*) FROM assistant_processes WHERE session_id = ?1 AND {LIVING} AND status = 'queued'
             AND seq <= (SELECT seq FROM assistant_processes WHERE process_id = ?2)"
        ))?;
        Some(look.query_row((row.session.to_string(), process.to_string()), |row| row.get(0))?)
    } else {
        None
    };
    Ok(Capacity {
        running: used(db, Some(row.session))?,
        limit: limits.running_per_session,
        queued: count_status(db, row.session, Some(Status::Queued))?,
        position,
        budget_left: budget::left(db, process, limits, now)?.tokens,
    })
}
