//! The record of a conversation: what the host knows that a runner holds, each message once.

use assistant_protocol::ids::{MessageId, ProcessId};
use assistant_protocol::types::Message;
use rusqlite::Connection;

use crate::registry::sha256_hex;
use crate::store::{StoreError, Tx};

/// Adds messages at the end. Each may be the insertion of a message of the box.
///
/// # Errors
/// The store's.
pub fn append<'a>(
    tx: &Tx<'_>,
    process: ProcessId,
    messages: impl IntoIterator<Item = (&'a Message, Option<MessageId>)>,
) -> Result<(), StoreError> {
    let mut position = length(tx.db, process)?;
    for (message, inserted) in messages {
        let json = serde_json::to_string(message).map_err(|error| StoreError::Damaged(error.to_string()))?;
        let hash = hash_json(&json);
        tx.db
            .prepare_cached(
                "INSERT INTO conversations (process_id, position, message, hash, message_id) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute((process.to_string(), position, json, hash, inserted.map(|id| id.to_string())))?;
        position += 1;
    }
    truncate(tx, process, position)
}

/// How many messages the record holds.
///
/// # Errors
/// The store's.
pub fn length(db: &Connection, process: ProcessId) -> Result<u32, StoreError> {
    let mut look = db.prepare_cached("SELECT conversation_length FROM assistant_processes WHERE process_id = ?1")?;
    Ok(look.query_row([process.to_string()], |row| row.get(0))?)
}

/// Forgets what lies at `length` and after, where a runner has rewritten its conversation from there on.
///
/// # Errors
/// The store's.
pub fn truncate(tx: &Tx<'_>, process: ProcessId, length: u32) -> Result<(), StoreError> {
    tx.db
        .prepare_cached("UPDATE assistant_processes SET conversation_length = ?2 WHERE process_id = ?1")?
        .execute((process.to_string(), length))?;
    Ok(())
}

/// SQL: the rows that count, in order.
const CURRENT: &str = "FROM conversations c WHERE process_id = ?1 AND position < ?2
    AND seq = (SELECT max(seq) FROM conversations WHERE process_id = ?1 AND position = c.position) ORDER BY position";

/// The conversation as recorded, oldest first.
///
/// # Errors
/// The store's.
pub fn read(db: &Connection, process: ProcessId) -> Result<Vec<Message>, StoreError> {
    let mut look = db.prepare_cached(&format!("SELECT message {CURRENT}"))?;
    let rows = look.query_map((process.to_string(), length(db, process)?), |row| row.get::<_, String>(0))?;
    let parse = |json: String| serde_json::from_str(&json).map_err(|error| StoreError::Damaged(error.to_string()));
    rows.map(|row| parse(row?)).collect()
}

/// The hash of each message as recorded, in order: what a runner holds is compared with it.
///
/// # Errors
/// The store's.
pub fn hashes(db: &Connection, process: ProcessId) -> Result<Vec<String>, StoreError> {
    let mut look = db.prepare_cached(&format!("SELECT hash {CURRENT}"))?;
    let rows = look.query_map((process.to_string(), length(db, process)?), |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// What a message is compared by: the first 16 hex digits of the SHA-256 of its JSON.
#[must_use]
pub fn hash(message: &Message) -> String {
    hash_json(&serde_json::to_string(message).unwrap_or_default())
}

fn hash_json(json: &str) -> String {
    let mut hash = sha256_hex(json.as_bytes());
    hash.truncate(16);
    hash
}
