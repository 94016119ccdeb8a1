//! Idempotency keys: what a call was answered with, for the same call made again.
//!
//! A key belongs to the tool and to the principal of a session (or to the assistant within which its client runs), so that
//! it survives a reconnect; where a process calls, to its line of resumptions. Its row is in the transaction of the call that
//! it is for.

use rusqlite::{Connection, OptionalExtension, named_params};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::session;
use crate::caller::Caller;
use crate::store::{StoreError, Tx};

/// A call that was made under a key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Keyed {
    /// The hash of what was asked.
    pub asked: String,
    /// What it was answered with.
    pub answer: Value,
}

/// What was made under a key of this caller before.
///
/// # Errors
/// The store's.
pub fn keyed(db: &Connection, caller: Caller, tool: &str, key: &str) -> Result<Option<Keyed>, StoreError> {
    let mut look = db.prepare_cached(
        "SELECT answer FROM idempotency_keys WHERE principal = ?1 AND tool = ?2 AND idempotency_key = ?3",
    )?;
    let found: Option<String> = look.query_row((owner(db, caller)?, tool, key), |row| row.get(0)).optional()?;
    let read = |json: String| serde_json::from_str(&json).map_err(StoreError::damaged);
    found.map(read).transpose()
}

/// Keeps what a call under a key of this caller is answered with.
///
/// # Errors
/// The store's.
pub fn keep_keyed(tx: &Tx<'_>, caller: Caller, tool: &str, key: &str, keyed: &Keyed) -> Result<(), StoreError> {
    let json = serde_json::to_string(keyed).map_err(StoreError::damaged)?;
    tx.db
        .prepare_cached(
            "INSERT INTO idempotency_keys (principal, tool, idempotency_key, answer, created_at)
             VALUES (:owner, :tool, :key, :answer, :now)",
        )?
        .execute(named_params! {
            ":owner": owner(tx.db, caller)?, ":tool": tool, ":key": key, ":answer": json, ":now": tx.now,
        })?;
    Ok(())
}

/// Whose keys a caller uses.
fn owner(db: &Connection, caller: Caller) -> Result<String, StoreError> {
    match caller {
        Caller::Session(id) => {
            let row = session(db, id)?.ok_or_else(|| StoreError::Damaged(format!("there is no session {id}")))?;
            Ok(row.whose())
        }
        Caller::Process(id) => {
            let mut look = db.prepare_cached(
                "WITH RECURSIVE line (process_id, old) AS (
                   SELECT process_id, resumed_from FROM assistant_processes WHERE process_id = ?1
                   UNION SELECT p.process_id, p.resumed_from FROM assistant_processes p JOIN line ON p.process_id = line.old)
                 SELECT process_id FROM line WHERE old IS NULL",
            )?;
            let first: String = look.query_row([id.to_string()], |row| row.get(0))?;
            Ok(format!("process:{first}"))
        }
    }
}
