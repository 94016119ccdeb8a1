//! What is kept of a process whose runner runs an agent of its own: that it is one, the agent's session, and what the agent
//! told of its model calls.

use assistant_protocol::ids::ProcessId;
use assistant_protocol::types::Usage;
use rusqlite::{Connection, named_params};

use super::{Process, add_usage, budget, find};
use crate::events;
use crate::limits::Usd;
use crate::store::{StoreError, Tx};
use crate::text::cut;

/// Processes before one in a chain of resumptions among which the session of an agent's own is looked for.
const RESUMED_MAX: usize = 100;
/// Characters of a line of stderr that stand in an error.
const LINE_CHARS_MAX: usize = 500;

/// The process is one of an agent, which goes on with `session` of its own. That is kept at once: the agent may not come to
/// tell another one.
///
/// # Errors
/// The store's.
pub fn mark_agent(tx: &Tx<'_>, process: ProcessId, session: Option<&str>) -> Result<(), StoreError> {
    tx.db
        .prepare_cached(
            "UPDATE assistant_processes SET agent = 1, agent_session = coalesce(?2, agent_session) WHERE process_id = ?1",
        )?
        .execute((process.to_string(), session))?;
    Ok(())
}

/// Keeps the session of the agent's own.
///
/// # Errors
/// The store's.
pub fn keep_agent_session(tx: &Tx<'_>, process: ProcessId, session: &str) -> Result<(), StoreError> {
    tx.db
        .prepare_cached("UPDATE assistant_processes SET agent_session = ?2 WHERE process_id = ?1")?
        .execute((process.to_string(), session))?;
    Ok(())
}

/// A session of an agent's own, and the folder in which it works.
pub type SessionBefore = (String, Option<String>);

/// The session of an agent's own in which the process worked that `row` goes on from; where that never came to one, as when
/// it was not launched, that of the process before it. None where there is none, or another runner comes between.
///
/// # Errors
/// The store's.
pub fn session_before(db: &Connection, row: &Process) -> Result<Option<SessionBefore>, StoreError> {
    let mut look = db.prepare_cached("SELECT agent_session FROM assistant_processes WHERE process_id = ?1")?;
    let mut next = row.resumed_from;
    for _ in 0..RESUMED_MAX {
        // What is older may be gone.
        let Some(before) = next.map(|before| find(db, before)).transpose()?.flatten() else { return Ok(None) };
        if !before.agent || before.runner != row.runner {
            return Ok(None);
        }
        let session: Option<String> = look.query_row([before.id.to_string()], |row| row.get(0))?;
        if let Some(session) = session {
            return Ok(Some((session, before.working_dir)));
        }
        next = before.resumed_from;
    }
    Ok(None)
}

/// The model that was asked for when the process was spawned, as it was written.
///
/// # Errors
/// The store's.
pub fn model_wished(db: &Connection, process: ProcessId) -> Result<Option<String>, StoreError> {
    let mut look = db.prepare_cached("SELECT model_requested FROM assistant_processes WHERE process_id = ?1")?;
    Ok(look.query_row([process.to_string()], |row| row.get(0))?)
}

/// The words for one that has ended its work without any. Of an agent's, what its runner wrote last to stderr may tell why.
///
/// # Errors
/// The store's.
pub(super) fn silence(db: &Connection, row: &Process) -> Result<String, StoreError> {
    if !row.agent {
        return Ok("the model ended its work without a word".to_owned());
    }
    let last = events::select(db, row.id, 0, 1, &[events::Kind::Stderr], true)?.pop();
    let line = last.as_ref().and_then(|event| event.data["line"].as_str()).unwrap_or_default();
    Ok(match line.trim() {
        "" => "the agent ended its work without a word".to_owned(),
        line => format!("the agent ended its work without a word; it said last: {}", cut(line, LINE_CHARS_MAX)),
    })
}

/// What an agent told of model calls that it has made.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// Tokens.
    pub usage: Usage,
    /// Model calls.
    pub calls: u32,
    /// What they cost; none is unknown, and then what all of the process cost is not known.
    pub cost: Option<Usd>,
    /// The model.
    pub model: Option<String>,
}

/// Adds what an agent told: to the process, and to what its tree and the day have used. Returns how many model calls of it
/// are known now.
///
/// # Errors
/// The store's.
pub fn add_told(tx: &Tx<'_>, process: ProcessId, told: &Told) -> Result<u32, StoreError> {
    let (input, output) = (told.usage.input_tokens.unwrap_or(0), told.usage.output_tokens.unwrap_or(0));
    let tokens = input.saturating_add(output);
    // What only tells a cost is about calls that were told.
    if told.usage != Usage::default() || told.calls > 0 {
        add_usage(tx, process, &told.usage)?;
    }
    let micros = told.cost.map_or(0, Usd::micros);
    budget::spend(tx, process, tokens, micros)?;
    let mut add = tx.db.prepare_cached(
        "UPDATE assistant_processes SET turns = min(turns + :calls, :most), told_microdollars = told_microdollars + :micros,
           untold_costs = untold_costs + :untold, model = coalesce(:model, model)
         WHERE process_id = :process RETURNING turns",
    )?;
    let told = named_params! {
        ":calls": told.calls, ":most": u32::MAX, ":micros": micros,
        ":untold": told.cost.is_none(), ":model": told.model, ":process": process.to_string(),
    };
    Ok(add.query_row(told, |row| row.get(0))?)
}
