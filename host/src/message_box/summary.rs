//! Counts and times of a thread.

use assistant_protocol::ids::ThreadId;
use rusqlite::Connection;

use crate::caller::Caller;
use crate::process_table::Process;
use crate::store::StoreError;

/// Counts and times of a thread, as a caller sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[schemars(inline)]
pub struct Summary {
    /// Messages of the thread.
    pub total_messages: u32,
    /// Of them, addressed to you and not marked as read.
    pub unread_messages: u32,
    /// When the last one was stored (Unix milliseconds); null where there is none.
    pub last_message_at: Option<i64>,
}

/// Counts and times of a thread, as `caller` sees it.
///
/// # Errors
/// The store's.
pub fn summary(db: &Connection, caller: Caller, thread: ThreadId) -> Result<Summary, StoreError> {
    let mut look = db.prepare_cached(
        "SELECT count(*), coalesce(sum(read_at IS NULL AND to_process_id IS ?2
             AND NOT (kind = 'answer' AND delivered_at IS NULL AND ?2 IS NOT NULL)), 0), max(created_at)
         FROM assistant_messages WHERE thread_id = ?1",
    )?;
    let mine = caller.process().map(|id| id.to_string());
    Ok(look.query_row((thread.to_string(), mine), |row| {
        Ok(Summary { total_messages: row.get(0)?, unread_messages: row.get(1)?, last_message_at: row.get(2)? })
    })?)
}

/// The newest messages that a process has written to whoever spawned it, at most `limit`, oldest first: text and time.
///
/// # Errors
/// The store's.
pub fn notes(db: &Connection, process: &Process, limit: u32) -> Result<Vec<(String, i64)>, StoreError> {
    let mut look = db.prepare_cached(
        "SELECT content, created_at FROM assistant_messages
         WHERE thread_id = ?1 AND kind = 'message' AND from_process_id = ?2 AND to_process_id IS ?3
         ORDER BY created_at DESC LIMIT ?4",
    )?;
    let to = process.parent.map(|id| id.to_string());
    let rows = look.query_map((process.thread.to_string(), process.id.to_string(), to, limit), |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    let mut found: Vec<_> = rows.collect::<Result<_, _>>()?;
    found.reverse();
    Ok(found)
}
