//! The record of a process's tool call: its result goes into the conversation in the commit that hands over what is
//! in it, and a repeated call is answered from it.

use assistant_protocol::ids::ProcessId;
use assistant_protocol::types::{Message, Part, ToolCallResult};
use rusqlite::{Connection, OptionalExtension};
use serde_json::{Value, json};

use crate::conversation;
use crate::events::{self, Kind};
use crate::message_box;
use crate::store::{StoreError, Tx};

/// Where the result of one call of a process is recorded.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    /// The process that calls.
    pub(crate) process: ProcessId,
    /// What the call is known by in its conversation.
    pub(crate) call_id: String,
    /// The tool.
    pub(crate) tool: String,
}

/// What becomes of a call that begins.
pub(crate) enum Begun {
    /// It is new.
    New,
    /// It was made before, and this came out.
    Repeated(Box<ToolCallResult>),
    /// It was made before and goes on.
    InFlight,
}

/// The tool of a call that is recorded; none where there is no such call.
pub(crate) fn tool_of(db: &Connection, process: ProcessId, call_id: &str) -> Result<Option<String>, StoreError> {
    let mut look = db.prepare_cached("SELECT tool FROM tool_calls WHERE process_id = ?1 AND call_id = ?2")?;
    Ok(look.query_row((process.to_string(), call_id), |row| row.get(0)).optional()?)
}

impl Recorder {
    /// Records that the call begins, unless it did before.
    pub(crate) fn begin(&self, tx: &Tx<'_>, arguments: &Value) -> Result<Begun, StoreError> {
        let key = (self.process.to_string(), &self.call_id);
        let known: Vec<Option<String>> = {
            let mut look =
                tx.db.prepare_cached("SELECT result FROM tool_calls WHERE process_id = ?1 AND call_id = ?2")?;
            let rows = look.query_map((&key.0, key.1), |row| row.get(0))?;
            rows.collect::<Result<_, _>>()?
        };
        match known.into_iter().next() {
            Some(Some(json)) => {
                let result = serde_json::from_str(&json).map_err(StoreError::damaged)?;
                return Ok(Begun::Repeated(Box::new(result)));
            }
            Some(None) => return Ok(Begun::InFlight),
            None => {}
        }
        tx.db
            .prepare_cached("INSERT INTO tool_calls (process_id, call_id, tool, started_at) VALUES (?1, ?2, ?3, ?4)")?
            .execute((key.0, key.1, &self.tool, tx.now))?;
        let told = json!({ "call_id": self.call_id, "tool": self.tool, "arguments": arguments });
        events::record(tx, self.process, Kind::ToolCall, &told)?;
        Ok(Begun::New)
    }

    /// The result as it is recorded; none while there is none.
    pub(crate) fn result(&self, tx: &Tx<'_>) -> Result<Option<ToolCallResult>, StoreError> {
        let mut look = tx.db.prepare_cached("SELECT result FROM tool_calls WHERE process_id = ?1 AND call_id = ?2")?;
        let json: Option<String> = look.query_row((self.process.to_string(), &self.call_id), |row| row.get(0))?;
        json.map(|json| serde_json::from_str(&json).map_err(StoreError::damaged)).transpose()
    }

    /// Records how a call that was given up is answered. What it had handed over waits again: the runner does not get the
    /// result that it was in.
    pub(crate) fn give_up(&self, tx: &Tx<'_>, answer: &ToolCallResult) -> Result<(), StoreError> {
        let Some(before) = self.result(tx)? else { return self.finish(tx, answer) };
        if message_box::give_back(tx, self.process, &self.call_id)? == 0 {
            return Ok(());
        }
        let json = serde_json::to_string(answer).map_err(StoreError::damaged)?;
        tx.db.prepare_cached("UPDATE tool_calls SET result = ?3 WHERE process_id = ?1 AND call_id = ?2")?.execute((
            self.process.to_string(),
            &self.call_id,
            &json,
        ))?;
        let of = |result: &ToolCallResult| Message::tool_result(self.call_id.clone(), result);
        conversation::replace(tx, self.process, &of(&before), &of(answer))?;
        let told = json!({ "call_id": self.call_id, "tool": self.tool, "is_error": true, "bytes": json.len() });
        events::record(tx, self.process, Kind::ToolResult, &told)
    }

    /// Records the result: in the conversation, for a repeated call, and in the log. The first result stands.
    pub(crate) fn finish(&self, tx: &Tx<'_>, result: &ToolCallResult) -> Result<(), StoreError> {
        let json = serde_json::to_string(result).map_err(StoreError::damaged)?;
        let finished = tx
            .db
            .prepare_cached(
                "UPDATE tool_calls SET result = ?3, finished_at = ?4
                 WHERE process_id = ?1 AND call_id = ?2 AND result IS NULL",
            )?
            .execute((self.process.to_string(), &self.call_id, &json, tx.now))?;
        if finished == 0 {
            return Ok(());
        }
        let message = Message::tool_result(self.call_id.clone(), result);
        conversation::append(tx, self.process, [(&message, None)])?;
        let told =
            json!({ "call_id": self.call_id, "tool": self.tool, "is_error": result.is_error, "bytes": json.len() });
        events::record(tx, self.process, Kind::ToolResult, &told)
    }
}

/// A tool's value as a runner gets it.
pub(crate) fn as_result(value: Value, is_error: bool) -> ToolCallResult {
    let content = vec![Part::text(super::as_text(&value))];
    let structured_content = (!value.is_null()).then_some(value);
    ToolCallResult { content, structured_content, is_error, end_run: None }
}
