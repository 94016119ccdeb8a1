//! Budgets: what the model calls of a tree, of a part of it, and of a day may use.
//!
//! A call reserves the most that it may use before it is made and is settled by what it used. So a budget is passed by at
//! most what one call uses beyond its reservation. What was reserved for a call that nobody waits for any more counts as
//! used: its provider may have done the work.

use assistant_protocol::ids::ProcessId;
use rusqlite::{Connection, OptionalExtension, named_params};

use super::get;
use crate::limits::{Limits, Usd};
use crate::store::{StoreError, Tx};

/// Tokens of an answer that make a call worth while.
const OUTPUT_TOKENS_LEAST: u64 = 256;
/// The limit of a day.
const DAY: &str = "tokens_per_day";
/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// What a model call may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written at most.
    pub output_tokens: u64,
}

impl Need {
    fn tokens(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

/// What is reserved for a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserved {
    /// The most tokens that it may write.
    pub output_tokens: u64,
    /// What is left then is too little for another call like it.
    pub last: Option<Last>,
}

/// The limit that leaves no other call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Last {
    /// Its name.
    pub limit: &'static str,
    /// How much it is in all.
    pub of: u64,
    /// Of what.
    pub unit: &'static str,
}

/// What a budget has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// Tokens.
    pub tokens: u64,
    /// The limit that leaves no more tokens.
    by: &'static str,
    /// The most by that limit.
    of: u64,
    /// Tokens that calls in flight hold of it and may give back.
    held: u64,
    /// Millionths of a dollar; all of a [`Usd`] where there is no limit.
    pub micros: u64,
    micros_of: u64,
    micros_held: u64,
}

/// Why a model call is not made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OverBudget {
    /// The tokens do not suffice.
    #[error(
        "limit {name}: {left} of {limit} tokens are left, and the next model call needs about {needed} (what it reads and \
         the shortest answer){}", if *name == DAY { "; a day ends at 00:00 UTC" } else { "" }
    )]
    Tokens {
        /// The limit.
        name: &'static str,
        /// Tokens that are left.
        left: u64,
        /// Tokens in all.
        limit: u64,
        /// Tokens.
        needed: u64,
        /// Tokens that calls in flight hold and may give back.
        held: u64,
    },
    /// The money does not suffice.
    #[error(
        "limit cost_per_tree_usd: {left:.4} of {limit:.4} dollars are left, and the next model call may cost {needed:.4}"
    )]
    Cost {
        /// Dollars that are left.
        left: f64,
        /// Dollars in all.
        limit: f64,
        /// Dollars.
        needed: f64,
        /// Dollars that calls in flight hold and may give back.
        held: f64,
    },
    /// What the model costs is not known, so that the limit cannot be kept.
    #[error("limit cost_per_tree_usd: what the model `{0}` costs is not known, so that the limit cannot be kept")]
    UnknownPrice(String),
}

impl OverBudget {
    /// Whether it is enough when the calls in flight have ended.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Tokens { left, needed, held, .. } => *held > 0 && *needed <= left.saturating_add(*held),
            Self::Cost { left, needed, held, .. } => *held > 0.0 && *needed <= left + held,
            Self::UnknownPrice(_) => false,
        }
    }
}

/// A part of a tree that has budgets of its own: a process with all below it.
struct Part {
    process: String,
    is_root: bool,
    tokens: u64,
    micros: u64,
    spawns: u32,
}

/// What a part of a tree has used, what is reserved for it included.
struct Used {
    processes: u32,
    tokens: u64,
    tokens_held: u64,
    micros: u64,
    micros_held: u64,
}

/// The parts of a tree in which a process is, its own first, with their limits.
fn parts(db: &Connection, process: ProcessId) -> Result<Vec<Part>, StoreError> {
    let mut look = db.prepare_cached(
        "WITH RECURSIVE line (process_id, parent, root, limits) AS (
           SELECT process_id, parent_process_id, root_process_id, limits FROM assistant_processes WHERE process_id = ?1
           UNION ALL
           SELECT p.process_id, p.parent_process_id, p.root_process_id, p.limits
             FROM line JOIN assistant_processes p ON p.process_id = line.parent)
         SELECT process_id, root, limits FROM line
         UNION
         SELECT process_id, root_process_id, limits FROM assistant_processes
           WHERE process_id = (SELECT root_process_id FROM assistant_processes WHERE process_id = ?1)",
    )?;
    let rows = look.query_map([process.to_string()], |row| {
        let (process, root, limits): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok((process == root, process, limits))
    })?;
    let mut parts = Vec::new();
    for row in rows {
        let (is_root, process, limits) = row?;
        let limits: Limits = serde_json::from_str(&limits).map_err(StoreError::damaged)?;
        let (tokens, micros) = (limits.tokens_per_tree, limits.cost_per_tree_usd.micros());
        parts.push(Part { process, is_root, tokens, micros, spawns: limits.spawns_per_tree });
    }
    Ok(parts)
}

fn used(db: &Connection, part: &Part) -> Result<Used, StoreError> {
    let sums = "count(*), coalesce(sum(spent_tokens), 0), coalesce(sum(reserved_tokens), 0),
               coalesce(sum(spent_microdollars), 0), coalesce(sum(reserved_microdollars), 0)";
    let mut look = if part.is_root {
        db.prepare_cached(&format!("SELECT {sums} FROM assistant_processes WHERE root_process_id = ?1"))?
    } else {
        db.prepare_cached(&format!(
            "WITH RECURSIVE below (process_id) AS (
               SELECT ?1 UNION ALL
               SELECT c.process_id FROM below JOIN assistant_processes c ON c.parent_process_id = below.process_id)
             SELECT {sums} FROM below JOIN assistant_processes p ON p.process_id = below.process_id"
        ))?
    };
    Ok(look.query_row([&part.process], |row| {
        let (tokens_held, micros_held): (u64, u64) = (row.get(2)?, row.get(4)?);
        Ok(Used {
            processes: row.get(0)?,
            tokens: row.get::<_, u64>(1)?.saturating_add(tokens_held),
            tokens_held,
            micros: row.get::<_, u64>(3)?.saturating_add(micros_held),
            micros_held,
        })
    })?)
}

/// Tokens that all model calls of the day of `now` have used, and those that calls in flight hold.
fn used_today(db: &Connection, now: i64) -> Result<(u64, u64), StoreError> {
    let mut look = db.prepare_cached(
        "SELECT coalesce((SELECT tokens FROM spent_days WHERE day = ?1), 0),
           coalesce((SELECT sum(reserved_tokens) FROM assistant_processes WHERE reserved_tokens > 0), 0)",
    )?;
    Ok(look.query_row([now / DAY_MS], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

/// What the day has left.
fn of_the_day(db: &Connection, limits: &Limits, now: i64) -> Result<Left, StoreError> {
    let of = limits.tokens_per_day;
    let (spent, held) = used_today(db, now)?;
    let tokens = of.saturating_sub(spent.saturating_add(held));
    Ok(Left { tokens, by: DAY, of, held, micros: u64::MAX, micros_of: u64::MAX, micros_held: 0 })
}

/// What a process, and so all that it spawns, has left.
///
/// # Errors
/// The store's.
pub fn left(db: &Connection, process: ProcessId, limits: &Limits, now: i64) -> Result<Left, StoreError> {
    let mut left = of_the_day(db, limits, now)?;
    let parts = parts(db, process)?;
    let root = parts.iter().find(|part| part.is_root).map(|root| (root.tokens, root.micros));
    for part in &parts {
        // What is within the whole tree's limit anyway is within one that is no smaller.
        if !part.is_root && root.is_some_and(|(tokens, micros)| part.tokens >= tokens && part.micros >= micros) {
            continue;
        }
        let used = used(db, part)?;
        let of_part = part.tokens.saturating_sub(used.tokens);
        if of_part <= left.tokens {
            left = Left { tokens: of_part, by: "tokens_per_tree", of: part.tokens, held: used.tokens_held, ..left };
        }
        let money = part.micros.saturating_sub(used.micros);
        if part.micros != Usd::UNCAPPED.micros() && money < left.micros {
            left = Left { micros: money, micros_of: part.micros, micros_held: used.micros_held, ..left };
        }
    }
    Ok(left)
}

/// Why nothing more is begun below `parent` (none: by a session): what there is would not suffice for a single call.
///
/// # Errors
/// The store's.
pub(crate) fn used_up(
    db: &Connection,
    parent: Option<ProcessId>,
    limits: &Limits,
    now: i64,
) -> Result<Option<OverBudget>, StoreError> {
    let left = match parent {
        Some(parent) => left(db, parent, limits, now)?,
        None => of_the_day(db, limits, now)?,
    };
    let needed = OUTPUT_TOKENS_LEAST;
    if left.tokens.saturating_add(left.held) < needed {
        return Ok(Some(OverBudget::Tokens { name: left.by, left: left.tokens, limit: left.of, needed, held: 0 }));
    }
    Ok((left.micros == 0 && left.micros_held == 0).then(|| OverBudget::Cost {
        left: 0.0,
        limit: dollars(left.micros_of),
        needed: 0.0,
        held: 0.0,
    }))
}

fn dollars(micros: u64) -> f64 {
    micros as f64 / 1_000_000.0
}

/// Reserves what a model call of a process may use: its answer is cut to what is left. An earlier reservation is settled.
/// `cost` tells the most that so many tokens cost, in dollars, where that is known.
///
/// # Errors
/// The store's, and within it [`OverBudget`].
pub fn reserve(
    tx: &mut Tx<'_>,
    process: ProcessId,
    need: Need,
    limits: &Limits,
    cost: Option<&dyn Fn(Need) -> f64>,
) -> Result<Result<Reserved, OverBudget>, StoreError> {
    settle_given_up(tx, process)?;
    let left = left(tx.db, process, limits, tx.now)?;
    let least = Need { output_tokens: need.output_tokens.min(OUTPUT_TOKENS_LEAST), ..need };
    if least.tokens() > left.tokens {
        let (name, needed) = (left.by, least.tokens());
        return Ok(Err(OverBudget::Tokens { name, left: left.tokens, limit: left.of, needed, held: left.held }));
    }
    let mut fits = Need { output_tokens: need.output_tokens.min(left.tokens - need.input_tokens), ..need };
    let micros = |need: Need| cost.and_then(|cost| Usd::new(cost(need))).map(Usd::micros);
    if left.micros != Usd::UNCAPPED.micros() {
        let Some(needed) = micros(least) else {
            return Ok(Err(OverBudget::UnknownPrice(get(tx.db, process)?.model)));
        };
        if needed > left.micros {
            let over = OverBudget::Cost {
                left: dollars(left.micros),
                limit: dollars(left.micros_of),
                needed: dollars(needed),
                held: dollars(left.micros_held),
            };
            return Ok(Err(over));
        }
        // Half of the answer again and again is enough: it is cut to a power of two of what was wanted.
        while micros(fits).is_some_and(|needed| needed > left.micros) && fits.output_tokens > least.output_tokens {
            fits.output_tokens = (fits.output_tokens / 2).max(least.output_tokens);
        }
    }
    let reserved_micros = micros(fits).unwrap_or(0);
    tx.db
        .prepare_cached(
            "UPDATE assistant_processes SET reserved_tokens = :tokens, reserved_microdollars = :micros
             WHERE process_id = :process",
        )?
        .execute(named_params! {
            ":tokens": fits.tokens(), ":micros": reserved_micros, ":process": process.to_string(),
        })?;
    let tokens_after = (left.tokens - fits.tokens()).saturating_add(left.held);
    let micros_after = left.micros.saturating_sub(reserved_micros).saturating_add(left.micros_held);
    let last = if tokens_after < least.tokens() {
        Some(Last { limit: left.by, of: left.of, unit: "tokens" })
    } else if left.micros != Usd::UNCAPPED.micros() && micros(least).is_some_and(|needed| micros_after < needed) {
        Some(Last { limit: "cost_per_tree_usd", of: left.micros_of, unit: "millionths of a dollar" })
    } else {
        None
    };
    Ok(Ok(Reserved { output_tokens: fits.output_tokens, last }))
}

/// Settles the reservation of a process by what its call used.
///
/// # Errors
/// The store's.
pub fn settle_call(tx: &Tx<'_>, process: ProcessId, tokens: u64, micros: u64) -> Result<(), StoreError> {
    tx.db
        .prepare_cached(
            "UPDATE assistant_processes SET reserved_tokens = 0, reserved_microdollars = 0,
               spent_tokens = spent_tokens + :tokens, spent_microdollars = spent_microdollars + :micros
             WHERE process_id = :process",
        )?
        .execute(named_params! { ":tokens": tokens, ":micros": micros, ":process": process.to_string() })?;
    tx.wake(crate::store::BUDGETS);
    spend_today(tx, tokens)
}

/// Counts something as used beside the reservation of a process: an attempt that broke off.
///
/// # Errors
/// The store's.
pub fn spend(tx: &Tx<'_>, process: ProcessId, tokens: u64, micros: u64) -> Result<(), StoreError> {
    tx.db
        .prepare_cached(
            "UPDATE assistant_processes SET spent_tokens = spent_tokens + :tokens,
               spent_microdollars = spent_microdollars + :micros WHERE process_id = :process",
        )?
        .execute(named_params! { ":tokens": tokens, ":micros": micros, ":process": process.to_string() })?;
    spend_today(tx, tokens)
}

/// What is still reserved for a process counts as used: its call was given up.
///
/// # Errors
/// The store's.
pub fn settle_given_up(tx: &Tx<'_>, process: ProcessId) -> Result<(), StoreError> {
    let mut look = tx.db.prepare_cached(
        "SELECT reserved_tokens, reserved_microdollars FROM assistant_processes WHERE process_id = ?1 AND reserved_tokens > 0",
    )?;
    let reserved = look.query_row([process.to_string()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    match reserved {
        Some((tokens, micros)) => settle_call(tx, process, tokens, micros),
        None => Ok(()),
    }
}

fn spend_today(tx: &Tx<'_>, tokens: u64) -> Result<(), StoreError> {
    if tokens > 0 {
        tx.db
            .prepare_cached(
                "INSERT INTO spent_days (day, tokens) VALUES (:day, :tokens)
                 ON CONFLICT (day) DO UPDATE SET tokens = tokens + excluded.tokens",
            )?
            .execute(named_params! { ":day": tx.now / DAY_MS, ":tokens": tokens })?;
    }
    Ok(())
}

/// Where as many were spawned as may be, in the tree of `parent` or in a part of it that has a limit of its own: how many
/// that are, and the most.
///
/// # Errors
/// The store's.
pub(super) fn full_of_spawns(db: &Connection, parent: ProcessId) -> Result<Option<(u32, u32)>, StoreError> {
    let parts = parts(db, parent)?;
    let root = parts.iter().find(|part| part.is_root).map_or(u32::MAX, |root| root.spawns);
    for part in parts.iter().filter(|part| part.is_root || part.spawns < root) {
        let count = used(db, part)?.processes;
        if count >= part.spawns {
            return Ok(Some((count, part.spawns)));
        }
    }
    Ok(None)
}
