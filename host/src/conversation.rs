//! The record of a conversation: what the host knows that a runner holds, each message once.

use std::collections::HashSet;

use assistant_protocol::ids::{MessageId, ProcessId};
use assistant_protocol::types::{Message, Part, Role, ToolCallResult};
use rusqlite::Connection;

use crate::process_table::optional_id;
use crate::registry::sha256_hex;
use crate::store::{StoreError, Tx};

mod agents;

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
        let json = serde_json::to_string(message).map_err(StoreError::damaged)?;
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

/// Puts another message in the place of one.
///
/// # Errors
/// The store's.
pub fn replace(tx: &Tx<'_>, process: ProcessId, old: &Message, new: &Message) -> Result<(), StoreError> {
    let json = serde_json::to_string(new).map_err(StoreError::damaged)?;
    tx.db
        .prepare_cached("UPDATE conversations SET message = ?3, hash = ?4 WHERE process_id = ?1 AND hash = ?2")?
        .execute((process.to_string(), hash(old), &json, hash_json(&json)))?;
    Ok(())
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
    let parse = |json: String| serde_json::from_str(&json).map_err(StoreError::damaged);
    rows.map(|row| parse(row?)).collect()
}

/// A message as it was recorded.
pub(crate) struct Recorded {
    /// Its place among all that was recorded.
    pub(crate) seq: i64,
    /// Its place in the conversation, from 0.
    pub(crate) position: u32,
    /// The message.
    pub(crate) message: Message,
}

/// Up to `limit` messages that were recorded after `after`, oldest first; one that was rewritten comes again.
///
/// # Errors
/// The store's.
pub(crate) fn since(db: &Connection, process: ProcessId, after: i64, limit: u32) -> Result<Vec<Recorded>, StoreError> {
    let mut look = db.prepare_cached(
        "SELECT seq, position, message FROM conversations WHERE process_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
    )?;
    let rows = look.query_map((process.to_string(), after, limit), |row| {
        Ok((row.get("seq")?, row.get("position")?, row.get::<_, String>("message")?))
    })?;
    let parse = |json: String| serde_json::from_str(&json).map_err(StoreError::damaged);
    rows.map(|row| row.map(|(seq, position, json)| Ok(Recorded { seq, position, message: parse(json)? }))?).collect()
}

/// What a resumption goes on with: the conversation as recorded, in which each call without a result gets one that says
/// that it was interrupted. It is not made again.
///
/// # Errors
/// The store's.
pub fn history(db: &Connection, process: ProcessId) -> Result<Vec<Message>, StoreError> {
    let (mut parts, mut next, mut of_agents) = (Vec::new(), Some(process), false);
    while let Some(process) = next {
        let (turns, agent, before): (u32, bool, Option<ProcessId>) = db
            .prepare_cached("SELECT turns, agent, resumed_from FROM assistant_processes WHERE process_id = ?1")?
            .query_row([process.to_string()], |row| {
                Ok((row.get("turns")?, row.get("agent")?, optional_id(row, "resumed_from")?))
            })?;
        parts.push(read(db, process)?);
        of_agents |= agent;
        // One that never asked its model holds nothing of what it was to go on with, and no agent does.
        next = before.filter(|_| turns == 0 || agent);
    }
    let messages: Vec<Message> = parts.into_iter().rev().flatten().collect();
    let mut messages = if of_agents { agents::in_order(messages) } else { messages };
    let (mut answered, mut called) = (HashSet::new(), Vec::new());
    for message in &messages {
        for part in message.content.parts().iter() {
            match part {
                Part::ToolResult { call_id, .. } => _ = answered.insert(call_id.clone()),
                Part::ToolCall { call_id, .. } => called.push(call_id.clone()),
                _ => {}
            }
        }
    }
    let open = called.into_iter().filter(|call_id| !answered.contains(call_id));
    messages.extend(open.map(interrupted));
    Ok(messages)
}

/// The result of a call that has none.
fn interrupted(call_id: String) -> Message {
    let result = ToolCallResult {
        content: vec![Part::text("interrupted: the run ended before this call had a result; it may have been done")],
        structured_content: None,
        is_error: true,
        end_run: None,
    };
    Message::tool_result(call_id, &result)
}

/// Whether anything is said by the assistant of a process, or called.
///
/// # Errors
/// The store's.
pub(crate) fn has_said(db: &Connection, process: ProcessId) -> Result<bool, StoreError> {
    Ok(read(db, process)?.iter().any(|message| message.role == Role::Assistant))
}

/// Whose word is the last of a conversation; a call without a result has one that says so.
///
/// # Errors
/// The store's.
pub(crate) fn last_role(db: &Connection, process: ProcessId) -> Result<Option<Role>, StoreError> {
    Ok(history(db, process)?.last().map(|message| message.role))
}

/// The place of what was recorded last of all conversations; 0 where nothing is.
///
/// # Errors
/// The store's.
pub(crate) fn newest(db: &Connection) -> Result<i64, StoreError> {
    let mut look = db.prepare_cached("SELECT coalesce(max(seq), 0) FROM conversations")?;
    Ok(look.query_row([], |row| row.get(0))?)
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
