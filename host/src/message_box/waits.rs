//! Whether a wait ends because the waiter is asked something.

use rusqlite::{Connection, named_params};
use uuid::Uuid;

use crate::caller::Caller;
use crate::store::StoreError;

/// Whether a wait of the caller ends now, whatever it is for: a process that waits is asked something that no model call
/// of its own has contained; a session waits for processes of which one asks it something that it has not been handed.
///
/// # Errors
/// The store's.
pub fn ends_waits(db: &Connection, caller: Caller, on: &[Uuid], now: i64) -> Result<bool, StoreError> {
    match caller {
        Caller::Process(process) => {
            let me = process.to_string();
            let queued = db
                .prepare_cached(
                    "SELECT 1 FROM assistant_messages
                     WHERE to_process_id = ?1 AND delivered_at IS NULL AND kind = 'question'",
                )?
                .exists([&me])?;
            Ok(queued || unseen(db, &me)?)
        }
        Caller::Session(_) => {
            let on: Vec<String> = on.iter().map(Uuid::to_string).collect();
            let on = serde_json::to_string(&on).map_err(StoreError::damaged)?;
            let mut look = db.prepare_cached(
                "SELECT 1 FROM json_each(:on) o
                   JOIN questions q ON q.process_id = o.value AND q.state = 'PENDING'
                   JOIN assistant_messages m ON m.id = q.message_id
                 WHERE q.to_process_id IS NULL AND q.answer_by_at > :now AND m.delivered_at IS NULL",
            )?;
            Ok(look.exists(named_params! { ":on": on, ":now": now })?)
        }
    }
}

/// Whether a call of a process has handed a question to it and no model call has contained that since: calls beside it
/// end too, or the model, which all of them keep waiting, could never answer. Who asks no model has seen what it got.
fn unseen(db: &Connection, me: &str) -> Result<bool, StoreError> {
    let found = db
        .prepare_cached(
            "SELECT 1 FROM assistant_messages m JOIN questions q ON q.message_id = m.id AND q.state = 'PENDING'
             WHERE m.to_process_id = ?1 AND m.handed_by IS NOT NULL
               AND (SELECT turns FROM assistant_processes WHERE process_id = ?1) > 0",
        )?
        .exists([me])?;
    Ok(found)
}
