//! What a process was given when it was spawned, apart from its row: read where it begins, and where it is gone on with.

use assistant_protocol::ids::ProcessId;
use assistant_protocol::types::{AssistantBrief, Input, Message, RunParams, ToolSpec};
use rusqlite::{Connection, OptionalExtension};
use serde_json::{Value, json};

use super::{Process, Status, columns};
use crate::events;
use crate::limits::Limits;
use crate::registry::{Definition, sha256_hex};
use crate::store::{StoreError, Tx};

/// Files and the schema of the result.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// Files of the task, as they were then.
    pub inputs: Option<Vec<Input>>,
    /// The schema that the result has to fit.
    pub output_schema: Option<Value>,
}

impl Given {
    /// The first `run` of a process: where it begins, and where that is played again.
    pub(crate) fn first_run(
        self,
        row: &Process,
        (name, system_prompt): (String, String),
        tools: Vec<ToolSpec>,
        history: Option<Vec<Message>>,
    ) -> RunParams {
        RunParams {
            assistant: AssistantBrief { id: row.assistant_id.clone(), name, system_prompt },
            query: (!row.query.is_empty()).then(|| row.query.clone()),
            context: row.context.clone(),
            inputs: self.inputs,
            tools,
            output_schema: self.output_schema,
            history,
            agent: None,
        }
    }
}

/// What the log tells of a process that is moved on: by what it is started, when it is.
pub(super) fn told(process: &Process, next: Status) -> Value {
    let mut told = json!({ "status": next });
    for (key, name) in [("runner", &process.runner), ("launcher", &process.launcher)] {
        if let (Status::Starting, Some(name)) = (next, name) {
            told[key] = json!(name);
        }
    }
    told
}

/// What a process was given beside its task.
///
/// # Errors
/// The store's.
pub fn given(db: &Connection, process: ProcessId) -> Result<Given, StoreError> {
    let mut look = db.prepare_cached("SELECT inputs, output_schema FROM assistant_processes WHERE process_id = ?1")?;
    Ok(look.query_row([process.to_string()], |row| {
        Ok(Given { inputs: columns::json(row, 0)?, output_schema: columns::json(row, 1)? })
    })?)
}

/// Counts that a result is sent back, unless that was done `most` times before. Returns whether it is.
///
/// # Errors
/// The store's.
pub fn repair(tx: &Tx<'_>, process: ProcessId, most: u32) -> Result<bool, StoreError> {
    let counted = tx
        .db
        .prepare_cached(
            "UPDATE assistant_processes SET output_repairs = output_repairs + 1
             WHERE process_id = ?1 AND output_repairs < ?2 AND finished_at IS NULL",
        )?
        .execute((process.to_string(), most))?;
    if counted > 0 {
        events::record(tx, process, events::Kind::Status, &json!({ "output": "sent back" }))?;
    }
    Ok(counted > 0)
}

/// The limits that a process runs under.
///
/// # Errors
/// The store's.
pub fn limits(db: &Connection, process: ProcessId) -> Result<Limits, StoreError> {
    let mut look = db.prepare_cached("SELECT limits FROM assistant_processes WHERE process_id = ?1")?;
    let json: String = look.query_row([process.to_string()], |row| row.get(0))?;
    serde_json::from_str(&json).map_err(StoreError::damaged)
}

/// The definition that a process started with.
///
/// # Errors
/// The store's.
pub fn definition(db: &Connection, process: &Process) -> Result<Definition, StoreError> {
    let mut look = db.prepare_cached("SELECT definition FROM snapshots WHERE hash = ?1")?;
    let json: String = look.query_row([&process.snapshot], |row| row.get(0))?;
    serde_json::from_str(&json).map_err(StoreError::damaged)
}

/// Keeps the tools that a process is given, as JSON: once for all that are given the same.
///
/// # Errors
/// The store's.
pub fn keep_given_tools(tx: &Tx<'_>, process: ProcessId, tools: &str) -> Result<(), StoreError> {
    let hash = sha256_hex(tools.as_bytes());
    tx.db
        .prepare_cached("INSERT INTO snapshots (hash, definition) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute((&hash, tools))?;
    tx.db
        .prepare_cached("UPDATE assistant_processes SET given_tools = ?2 WHERE process_id = ?1")?
        .execute((process.to_string(), hash))?;
    Ok(())
}

/// The tools that a process was given; none where that is not recorded.
///
/// # Errors
/// The store's.
pub fn given_tools(db: &Connection, process: ProcessId) -> Result<Option<Vec<ToolSpec>>, StoreError> {
    let mut look = db.prepare_cached(
        "SELECT s.definition FROM assistant_processes p JOIN snapshots s ON s.hash = p.given_tools
         WHERE p.process_id = ?1",
    )?;
    let json: Option<String> = look.query_row([process.to_string()], |row| row.get(0)).optional()?;
    json.map(|json| serde_json::from_str(&json).map_err(StoreError::damaged)).transpose()
}
