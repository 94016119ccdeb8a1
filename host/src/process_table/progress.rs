//! What changes while a process runs: its waits, its counts, and how its runner exited.

use assistant_protocol::ids::ProcessId;
use assistant_protocol::types::Usage;
use rusqlite::{Connection, named_params};

use super::{Status, advance, get};
use crate::store::{StoreError, Tx};

/// A blocking wait of the process begins: it holds no slot meanwhile.
///
/// # Errors
/// The store's.
pub fn wait_begins(tx: &mut Tx<'_>, process: ProcessId) -> Result<(), StoreError> {
    let row = get(tx.db, process)?;
    if row.status.is_end() {
        return Ok(());
    }
    set_waits(tx, process, "waits + 1")?;
    if row.status == Status::Running { advance(tx, &row, Status::Waiting) } else { Ok(()) }
}

/// A blocking wait of the process is over; with no other one in flight it runs again, and never queues for it.
///
/// # Errors
/// The store's.
pub fn wait_ends(tx: &mut Tx<'_>, process: ProcessId) -> Result<(), StoreError> {
    let row = get(tx.db, process)?;
    let waits: i64 = tx
        .db
        .prepare_cached("SELECT waits FROM assistant_processes WHERE process_id = ?1")?
        .query_row([process.to_string()], |row| row.get(0))?;
    if waits == 0 {
        return Ok(());
    }
    set_waits(tx, process, "waits - 1")?;
    if waits == 1 && row.status == Status::Waiting { advance(tx, &row, Status::Running) } else { Ok(()) }
}

pub(super) fn set_waits(tx: &Tx<'_>, process: ProcessId, to: &str) -> Result<(), StoreError> {
    let sql = format!("UPDATE assistant_processes SET waits = {to} WHERE process_id = ?1");
    tx.db.prepare_cached(&sql)?.execute([process.to_string()])?;
    Ok(())
}

/// Counts a model call that begins, and tells how many there are now.
///
/// # Errors
/// The store's.
pub fn count_turn(tx: &Tx<'_>, process: ProcessId) -> Result<u32, StoreError> {
    count(tx, process, "UPDATE assistant_processes SET turns = turns + 1 WHERE process_id = ?1 RETURNING turns")
}

/// Counts a tool call that begins, and tells how many there are now.
///
/// # Errors
/// The store's.
pub fn count_tool_call(tx: &Tx<'_>, process: ProcessId) -> Result<u32, StoreError> {
    count(
        tx,
        process,
        "UPDATE assistant_processes SET tool_calls = tool_calls + 1 WHERE process_id = ?1 RETURNING tool_calls",
    )
}

fn count(tx: &Tx<'_>, process: ProcessId, sql: &str) -> Result<u32, StoreError> {
    Ok(tx.db.prepare_cached(sql)?.query_row([process.to_string()], |row| row.get(0))?)
}

/// Adds the tokens of a model call.
///
/// # Errors
/// The store's.
pub fn add_usage(tx: &Tx<'_>, process: ProcessId, usage: &Usage) -> Result<(), StoreError> {
    tx.db
        .prepare_cached(
            "UPDATE assistant_processes SET input_tokens = input_tokens + :input, output_tokens = output_tokens + :output,
               cache_read_tokens = cache_read_tokens + :read, cache_write_tokens = cache_write_tokens + :write,
               reasoning_tokens = reasoning_tokens + :reasoning, usage_unknown = usage_unknown + :unknown
             WHERE process_id = :process",
        )?
        .execute(named_params! {
            ":input": usage.input_tokens.unwrap_or(0),
            ":output": usage.output_tokens.unwrap_or(0),
            ":read": usage.cache_read_tokens.unwrap_or(0),
            ":write": usage.cache_write_tokens.unwrap_or(0),
            ":reasoning": usage.reasoning_tokens.unwrap_or(0),
            ":unknown": i64::from(usage.input_tokens.is_none() || usage.output_tokens.is_none()),
            ":process": process.to_string(),
        })?;
    Ok(())
}

/// Keeps what a process says of itself, JSON.
///
/// # Errors
/// The store's.
pub fn report(tx: &mut Tx<'_>, process: ProcessId, told: &str) -> Result<(), StoreError> {
    tx.db
        .prepare_cached("UPDATE assistant_processes SET reported = ?2 WHERE process_id = ?1")?
        .execute((process.to_string(), told))?;
    tx.wake(process);
    Ok(())
}

/// What a process has said of itself last, JSON.
///
/// # Errors
/// The store's.
pub fn reported(db: &Connection, process: ProcessId) -> Result<Option<String>, StoreError> {
    let mut look = db.prepare_cached("SELECT reported FROM assistant_processes WHERE process_id = ?1")?;
    Ok(look.query_row([process.to_string()], |row| row.get(0))?)
}

/// Records how the runner exited: the one field that may change after the end.
///
/// # Errors
/// The store's.
pub fn exited(tx: &mut Tx<'_>, process: ProcessId, code: i32) -> Result<(), StoreError> {
    tx.db
        .prepare_cached("UPDATE assistant_processes SET exit_code = ?2 WHERE process_id = ?1")?
        .execute((process.to_string(), code))?;
    tx.wake(process);
    Ok(())
}
