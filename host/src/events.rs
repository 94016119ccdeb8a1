//! The log of a process: one row an event, in order.
//!
//! Events of a change of status, a message or a result are in the transaction of their change. Others are queued in
//! order, so after `kill -9` only the end of a log can be missing.

use assistant_protocol::ids::{MessageId, ProcessId};
use rusqlite::Connection;
use serde::Serialize;
use serde_json::Value;

use crate::names::named;
use crate::process_table::{id, optional_id};
use crate::store::{StoreError, Tx};

pub(crate) mod recorded;
mod words;

pub(crate) use words::in_words;

named! {
    /// What an event tells.
    pub enum Kind {
        /// A change of status.
        Status = "status",
        /// A model call begins: what is new in the conversation.
        ModelCall = "model_call",
        /// A model call is tried again.
        ModelRetry = "model_retry",
        /// A model call ends: the answer or the error, and the usage.
        ModelAnswer = "model_answer",
        /// A tool call begins.
        ToolCall = "tool_call",
        /// A tool call ends.
        ToolResult = "tool_result",
        /// A call was refused, and by which rule.
        Refused = "refused",
        /// What became of a tool server that the process uses.
        Server = "server",
        /// A message was sent by the process or to it.
        Message = "message",
        /// The runner tells how far it is.
        Progress = "progress",
        /// A line on the runner's stderr.
        Stderr = "stderr",
        /// What was odd about the link.
        Link = "link",
        /// The runner is asked to run, to stop or to take a message, or has answered that.
        Run = "run",
        /// A request of the runner that no other event tells of, or whose answer is an error.
        Asked = "asked",
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// Its place in the log of the host.
    pub seq: i64,
    /// When, Unix milliseconds.
    pub at: i64,
    /// What it tells.
    pub kind: Kind,
    /// The rest.
    pub data: Value,
}

/// Writes an event within the job that it belongs to, and wakes whoever waits for news of the process.
///
/// # Errors
/// The store's.
pub fn record(tx: &Tx<'_>, process: ProcessId, kind: Kind, data: &Value) -> Result<(), StoreError> {
    tx.db.prepare_cached("INSERT INTO events (process_id, at, kind, data) VALUES (?1, ?2, ?3, ?4)")?.execute((
        process.to_string(),
        tx.now,
        kind,
        data.to_string(),
    ))?;
    tx.wake(process);
    Ok(())
}

/// Up to `limit` events of a process after `after`, oldest first.
///
/// # Errors
/// The store's.
pub fn read(db: &Connection, process: ProcessId, after: i64, limit: u32) -> Result<Vec<Event>, StoreError> {
    select(db, process, after, limit, &[], false)
}

/// Up to `limit` events of a process after `after`, of some kinds (none is all), the oldest or the newest, oldest first.
///
/// # Errors
/// The store's.
pub fn select(
    db: &Connection,
    process: ProcessId,
    after: i64,
    limit: u32,
    kinds: &[Kind],
    newest: bool,
) -> Result<Vec<Event>, StoreError> {
    let names: Vec<String> = kinds.iter().map(|kind| format!("'{}'", kind.name())).collect();
    let only = if names.is_empty() { String::new() } else { format!(" AND kind IN ({})", names.join(", ")) };
    let order = if newest { "DESC" } else { "ASC" };
    let mut look = db.prepare_cached(&format!(
        "SELECT seq, at, kind, data FROM events WHERE process_id = ?1 AND seq > ?2{only} ORDER BY seq {order} LIMIT ?3"
    ))?;
    let rows = look.query_map((process.to_string(), after, limit), |row| {
        let data: String = row.get(3)?;
        Ok(Event {
            seq: row.get(0)?,
            at: row.get(1)?,
            kind: row.get(2)?,
            data: serde_json::from_str(&data).unwrap_or(Value::String(data)),
        })
    })?;
    let mut found: Vec<Event> = rows.collect::<Result<_, _>>()?;
    if newest {
        found.reverse();
    }
    Ok(found)
}

/// Something that whoever waits for processes wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct News {
    /// Its place in the log of the host.
    pub seq: i64,
    /// The process in whose log it is.
    pub process: ProcessId,
    /// The message that came; none is the end of the process.
    pub message: Option<MessageId>,
}

/// The processes to which something happened after `after`.
///
/// # Errors
/// The store's.
pub fn with_news(db: &Connection, after: i64) -> Result<Vec<ProcessId>, StoreError> {
    let mut look =
        db.prepare_cached("SELECT DISTINCT process_id FROM events WHERE seq > ?1 AND kind IN ('message', 'status')")?;
    let rows = look.query_map([after], |row| id(row, "process_id"))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// SQL: the events that are news.
const NEWS: &str = "(kind = 'message' AND json_extract(data, '$.kind') IN ('message', 'question')
     OR kind = 'status' AND json_extract(data, '$.status') IN ('finished', 'failed', 'cancelled'))";

/// Up to `limit` ends and messages of all processes after `after`, oldest first.
///
/// # Errors
/// The store's.
pub fn news_of_all(db: &Connection, after: i64, limit: u32) -> Result<Vec<News>, StoreError> {
    let mut look = db.prepare_cached(&format!(
        "SELECT seq, process_id, json_extract(data, '$.message_id') AS message_id FROM events
         WHERE seq > ?1 AND {NEWS} ORDER BY seq LIMIT ?2"
    ))?;
    let rows = look.query_map((after, limit), |row| {
        Ok(News { seq: row.get(0)?, process: id(row, "process_id")?, message: optional_id(row, "message_id")? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Up to `limit` ends and messages of some processes after `after`, oldest first.
///
/// # Errors
/// The store's.
pub fn news(db: &Connection, of: &[ProcessId], after: i64, limit: u32) -> Result<Vec<News>, StoreError> {
    let ids: Vec<String> = of.iter().map(ToString::to_string).collect();
    let ids = serde_json::to_string(&ids).map_err(StoreError::damaged)?;
    let mut look = db.prepare_cached(&format!(
        "SELECT seq, process_id, json_extract(data, '$.message_id') AS message_id FROM events
         WHERE process_id IN (SELECT value FROM json_each(?1)) AND seq > ?2 AND {NEWS} ORDER BY seq LIMIT ?3"
    ))?;
    let rows = look.query_map((ids, after, limit), |row| {
        Ok(News { seq: row.get(0)?, process: id(row, "process_id")?, message: optional_id(row, "message_id")? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The place of the newest event in the log of the host, also where it was removed since; 0 where there was none.
///
/// # Errors
/// The store's.
pub fn newest(db: &Connection) -> Result<i64, StoreError> {
    Ok(db
        .prepare_cached("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'events'")?
        .query_row([], |row| row.get(0))?)
}

/// Up to `limit` events of all processes after `after`, oldest first.
///
/// # Errors
/// The store's.
pub fn all(db: &Connection, after: i64, limit: u32) -> Result<Vec<(ProcessId, Event)>, StoreError> {
    let mut look =
        db.prepare_cached("SELECT seq, process_id, at, kind, data FROM events WHERE seq > ?1 ORDER BY seq LIMIT ?2")?;
    let rows = look.query_map((after, limit), |row| {
        let data: String = row.get("data")?;
        let event = Event {
            seq: row.get("seq")?,
            at: row.get("at")?,
            kind: row.get("kind")?,
            data: serde_json::from_str(&data).unwrap_or(Value::String(data)),
        };
        Ok((id(row, "process_id")?, event))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
