//! Questions whose time is up, by the clock of whoever looks.

use assistant_protocol::ids::{MessageId, ProcessId};
use rusqlite::Connection;
use serde_json::json;

use crate::events;
use crate::process_table::id;
use crate::store::{StoreError, Tx};

/// Expires what nobody has answered in time, and wakes whoever asked.
///
/// # Errors
/// The store's.
pub fn expire(tx: &Tx<'_>) -> Result<(), StoreError> {
    let expired: Vec<(ProcessId, MessageId)> = {
        let mut expire = tx.db.prepare_cached(
            "UPDATE questions SET state = 'EXPIRED' WHERE state = 'PENDING' AND answer_by_at <= ?1
             RETURNING process_id, message_id",
        )?;
        let rows = expire.query_map([tx.now], |row| Ok((id(row, "process_id")?, id(row, "message_id")?)))?;
        rows.collect::<Result<_, _>>()?
    };
    for (process, question) in expired {
        events::record(tx, process, events::Kind::Status, &json!({ "question_expired": question }))?;
    }
    Ok(())
}

/// Gives what waits for an answer more time: the machine slept for `by_ms` milliseconds.
///
/// # Errors
/// The store's.
pub fn postpone(tx: &Tx<'_>, by_ms: u64) -> Result<(), StoreError> {
    let by = i64::try_from(by_ms).unwrap_or(i64::MAX);
    tx.db
        .prepare_cached("UPDATE questions SET answer_by_at = min(answer_by_at, ?2) + ?1 WHERE state = 'PENDING'")?
        .execute([by, i64::MAX - by])?;
    tx.wake(crate::store::QUESTIONS);
    Ok(())
}

/// When the next question expires, Unix milliseconds; none where none waits.
///
/// # Errors
/// The store's.
pub fn next(db: &Connection) -> Result<Option<i64>, StoreError> {
    let mut look = db.prepare_cached("SELECT min(answer_by_at) FROM questions WHERE state = 'PENDING'")?;
    Ok(look.query_row([], |row| row.get(0))?)
}
