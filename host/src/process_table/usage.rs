//! What processes used.

use assistant_protocol::ids::ProcessId;
use assistant_protocol::types::Usage;
use rusqlite::Connection;

use crate::store::StoreError;

/// What the processes of a tree that ask one model used together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Used {
    /// The model.
    pub model: String,
    /// How many processes.
    pub processes: u32,
    /// Model calls begun.
    pub model_calls: u32,
    /// Tool calls begun.
    pub tool_calls: u32,
    /// Tokens, as far as providers told.
    pub usage: Usage,
    /// Model calls whose usage no provider told.
    pub unknown_calls: u32,
    /// They are processes of agents, which told what their model calls cost themselves.
    pub told: Option<ToldCost>,
}

/// What agents told of their costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToldCost {
    /// Millionths of a dollar.
    pub micros: u64,
    /// How often they told that it is not known.
    pub untold: u64,
}

impl ToldCost {
    fn of(agent: bool, micros: u64, untold: u64) -> Option<Self> {
        agent.then_some(Self { micros, untold })
    }
}

/// What the agent of a process told of its costs; none where it is no agent's.
///
/// # Errors
/// The store's.
pub fn told_cost(db: &Connection, process: ProcessId) -> Result<Option<ToldCost>, StoreError> {
    let mut look = db.prepare_cached(
        "SELECT agent, told_microdollars, untold_costs FROM assistant_processes WHERE process_id = ?1",
    )?;
    Ok(look.query_row([process.to_string()], |row| Ok(ToldCost::of(row.get(0)?, row.get(1)?, row.get(2)?)))?)
}

/// What a process and all below it used, by model.
///
/// # Errors
/// The store's.
pub fn used(db: &Connection, process: ProcessId) -> Result<Vec<Used>, StoreError> {
    let mut look = db.prepare_cached(
        "WITH RECURSIVE below(process_id) AS (
           SELECT ?1
           UNION ALL
           SELECT c.process_id FROM below b JOIN assistant_processes c ON c.parent_process_id = b.process_id
         )
         SELECT p.model, count(*), sum(p.turns), sum(p.tool_calls), sum(p.input_tokens), sum(p.output_tokens),
           sum(p.cache_read_tokens), sum(p.cache_write_tokens), sum(p.reasoning_tokens), sum(p.usage_unknown),
           p.agent, sum(p.told_microdollars), sum(p.untold_costs)
         FROM below b CROSS JOIN assistant_processes p ON p.process_id = b.process_id GROUP BY p.model, p.agent",
    )?;
    let rows = look.query_map([process.to_string()], |row| {
        Ok(Used {
            model: row.get(0)?,
            processes: row.get(1)?,
            model_calls: row.get(2)?,
            tool_calls: row.get(3)?,
            usage: Usage {
                input_tokens: Some(row.get(4)?),
                output_tokens: Some(row.get(5)?),
                cache_read_tokens: Some(row.get(6)?),
                cache_write_tokens: Some(row.get(7)?),
                reasoning_tokens: Some(row.get(8)?),
            },
            unknown_calls: row.get(9)?,
            told: ToldCost::of(row.get(10)?, row.get(11)?, row.get(12)?),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
