//! Ends that their receivers have not been told yet.

use assistant_protocol::ids::{ProcessId, SessionId};
use rusqlite::Connection;

use crate::caller::Caller;
use crate::process_table::id;
use crate::store::{StoreError, Tx};

/// The processes whose end waits for this caller, oldest first, at most `limit`. A session's are those that it started
/// itself: what ended for another connection of its principal is told there.
///
/// # Errors
/// The store's.
pub fn untold(db: &Connection, caller: Caller, limit: u32) -> Result<Vec<ProcessId>, StoreError> {
    let (whose, caller) = match caller {
        Caller::Session(session) => ("to_process_id IS NULL AND session_id = ?1", session.to_string()),
        Caller::Process(process) => ("to_process_id = ?1", process.to_string()),
    };
    let mut look = db.prepare_cached(&format!(
        "SELECT from_process_id FROM assistant_messages
         WHERE {whose} AND delivered_at IS NULL AND kind = 'final' AND from_process_id IS NOT NULL ORDER BY seq LIMIT ?2"
    ))?;
    let rows = look.query_map((caller, limit), |row| id(row, "from_process_id"))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Whether the end of `child` waits for the process that spawned it.
///
/// # Errors
/// The store's.
pub fn waits(db: &Connection, parent: ProcessId, child: ProcessId) -> Result<bool, StoreError> {
    let mut look = db.prepare_cached(
        "SELECT 1 FROM assistant_messages
         WHERE to_process_id = ?1 AND from_process_id = ?2 AND delivered_at IS NULL AND kind = 'final'",
    )?;
    Ok(look.exists((parent.to_string(), child.to_string()))?)
}

/// Marks the ends of these processes as delivered to the session that started them.
///
/// # Errors
/// The store's.
pub fn told(tx: &Tx<'_>, session: SessionId, processes: impl IntoIterator<Item = ProcessId>) -> Result<(), StoreError> {
    let mut mark = tx.db.prepare_cached(
        "UPDATE assistant_messages SET delivered_at = ?3
         WHERE thread_id = (SELECT thread_id FROM assistant_processes WHERE process_id = ?1) AND session_id = ?2
           AND from_process_id = ?1 AND to_process_id IS NULL AND kind = 'final' AND delivered_at IS NULL",
    )?;
    for process in processes {
        mark.execute((process.to_string(), session.to_string(), tx.now))?;
    }
    Ok(())
}
