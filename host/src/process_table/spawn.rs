//! Spawn: one job that looks at everything and writes the row, so that parallel spawns cannot pass a limit.

use assistant_protocol::ids::{ProcessId, ThreadId};
use rusqlite::{Connection, OptionalExtension, named_params};
use serde_json::json;

use super::{Status, advance, budget, get, id, line, session, slots};
use crate::caller::Caller;
use crate::launcher::DEPTH;
use crate::limits::Limits;
use crate::store::{StoreError, Tx};

/// What is to be spawned.
#[derive(Debug, Clone)]
pub struct NewProcess {
    /// Its id.
    pub id: ProcessId,
    /// Its thread.
    pub thread: ThreadId,
    /// Its assistant.
    pub assistant_id: String,
    /// The hash of its definition.
    pub snapshot: String,
    /// The definition as JSON.
    pub definition: String,
    /// The task.
    pub query: String,
    /// Background to the task.
    pub context: Option<String>,
    /// Where its file tools work.
    pub working_dir: Option<String>,
    /// The tools it is granted.
    pub tools: Vec<String>,
    /// What is asked for and not here, as JSON.
    pub unavailable_tools: String,
    /// The model that was asked for.
    pub model_requested: Option<String>,
    /// The model it gets.
    pub model: String,
    /// The name of its runner; none is the host's own.
    pub runner: Option<String>,
    /// That runner runs an agent which has its own model and tools.
    pub agent: bool,
    /// Where it goes on with a conversation by itself, it has the runner of that instead.
    pub keeps_runner: bool,
    /// The name of the launcher that starts its runner; none is the machine as it is.
    pub launcher: Option<String>,
    /// The caller's name for it.
    pub label: Option<String>,
    /// It outlives its parent and its session.
    pub detached: bool,
    /// The ended process whose conversation it goes on with.
    pub resumed_from: Option<ProcessId>,
    /// It goes on with the last conversation of its assistant.
    pub continues: bool,
    /// Files of the task, as JSON.
    pub inputs: Option<String>,
    /// The schema of the result, as JSON.
    pub output_schema: Option<String>,
    /// The limits it runs under.
    pub limits: Limits,
}

/// What a spawn is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spawned {
    /// `starting` or `queued`.
    pub status: Status,
    /// How much room there is now.
    pub capacity: slots::Capacity,
    /// The process whose conversation it goes on with by itself.
    pub continued_from: Option<ProcessId>,
    /// Why it does not, though it should.
    pub afresh: Option<&'static str>,
}

/// A level that nobody knows: what was told of it is no number. It counts as the deepest.
pub const LEVEL_UNKNOWN: u32 = u32::MAX;

fn at_level(level: u32) -> String {
    match level {
        LEVEL_UNKNOWN => format!("at no level that is known, because its variable {DEPTH} is no number"),
        level => format!("at level {level}"),
    }
}

/// Why nothing was spawned.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The caller has ended or is cancelled.
    #[error("the caller has ended")]
    CallerEnded,
    /// The caller is as deep as assistants may be.
    #[error("the caller is {}, the deepest that may be is {limit}", at_level(*count))]
    Depth {
        /// Levels below a session.
        count: u32,
        /// Levels below a session.
        limit: u32,
    },
    /// The tree has had as many processes as it may.
    #[error("{count} processes were spawned in this tree, the most that may be is {limit}")]
    SpawnsPerTree {
        /// Processes spawned so far.
        count: u32,
        /// Processes.
        limit: u32,
    },
    /// The tokens or the money of the tree or of the day are used up.
    #[error(transparent)]
    OverBudget(budget::OverBudget),
    /// The session has as many living processes as it may.
    #[error("{count} processes of this session have not ended, the most that may live is {limit}")]
    Living {
        /// Processes that have not ended.
        count: u32,
        /// Processes.
        limit: u32,
    },
    /// The session has as many queued processes as it may.
    #[error("{count} processes of this session wait for a slot, the most that may is {limit}")]
    Queue {
        /// Processes that wait.
        count: u32,
        /// Processes.
        limit: u32,
    },
    /// The process that is to be resumed lives.
    #[error("process {0} has not ended; send_message reaches it")]
    Lives(ProcessId),
    /// The process that is to be resumed was resumed before.
    #[error("process {0} was resumed already, as {1}")]
    Resumed(ProcessId, ProcessId),
    /// The conversation is being gone on with by a process that waits for the caller.
    #[error(
        "`{0}` goes on with one conversation, which process {1} has now; that waits for the caller, so neither would end"
    )]
    Busy(String, ProcessId),
    /// The store's.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Writes the row of a new process. It takes a free slot only if no older process waits that could take it.
///
/// # Errors
/// [`Refused`] tells which limit; nothing is written then.
pub fn spawn(tx: &mut Tx<'_>, caller: Caller, new: &NewProcess) -> Result<Spawned, Refused> {
    if !super::may_act(tx.db, caller)? {
        return Err(Refused::CallerEnded);
    }
    let limits = &new.limits;
    let parent = caller.process().map(|id| get(tx.db, id)).transpose()?;
    let (session_id, parent_assistant_id, level) = match (&parent, caller) {
        (Some(parent), _) => (parent.session, parent.assistant_id.clone(), parent.depth),
        (None, Caller::Session(id)) => {
            let row = session(tx.db, id)?.ok_or(Refused::CallerEnded)?;
            (id, row.caller_name, row.level)
        }
        (None, Caller::Process(_)) => return Err(Refused::CallerEnded),
    };
    if let Some(old) = new.resumed_from {
        if !get(tx.db, old)?.status.is_end() {
            return Err(Refused::Lives(old));
        }
        if let Some(next) = resumption_of(tx.db, old)? {
            return Err(Refused::Resumed(old, next));
        }
    }
    let depth = level.saturating_add(1);
    if depth > limits.depth {
        return Err(Refused::Depth { count: level, limit: limits.depth });
    }
    if let Some(parent) = &parent
        && let Some((count, limit)) = budget::full_of_spawns(tx.db, parent.id)?
    {
        return Err(Refused::SpawnsPerTree { count, limit });
    }
    if let Some(over) = budget::used_up(tx.db, parent.as_ref().map(|parent| parent.id), limits, tx.now)? {
        return Err(Refused::OverBudget(over));
    }
    let count = slots::count_status(tx.db, session_id, None)?;
    if count >= limits.living_per_session {
        return Err(Refused::Living { count, limit: limits.living_per_session });
    }
    let place = match new.continues {
        true => Some(line::place(tx.db, &new.assistant_id, parent.as_ref(), session_id, new.resumed_from)?),
        false => None,
    };
    let behind = place.as_ref().and_then(|place| place.behind);
    if let (Some(behind), Some(parent)) = (behind, &parent)
        && line::waits_for(tx.db, behind, parent.id)?
    {
        return Err(Refused::Busy(new.assistant_id.clone(), behind));
    }
    let resumed_from = place.as_ref().map_or(new.resumed_from, |place| place.before);
    let before = resumed_from.filter(|_| new.keeps_runner).map(|before| get(tx.db, before)).transpose()?;
    let (runner, agent, model) = match before {
        // What one has for a model is nothing to the other.
        Some(before) if before.agent != new.agent => (before.runner, before.agent, before.model),
        Some(before) => (before.runner, before.agent, new.model.clone()),
        None => (new.runner.clone(), new.agent, new.model.clone()),
    };
    let launcher = match resumed_from {
        Some(before) => get(tx.db, before)?.launcher,
        None => new.launcher.clone(),
    };
    let queued = slots::count_status(tx.db, session_id, Some(Status::Queued))?;
    let starts = behind.is_none()
        && slots::room(tx.db, session_id, limits)?
        && (queued == 0 || slots::first_queued(tx.db, session_id)?.is_none())
        && !slots::others_come_first(tx.db, session_id, limits)?;
    if !starts && queued >= limits.queue_per_session {
        return Err(Refused::Queue { count: queued, limit: limits.queue_per_session });
    }
    tx.db
        .prepare_cached("INSERT INTO snapshots (hash, definition) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute((&new.snapshot, &new.definition))?;
    let root = parent.as_ref().map_or(new.id, |parent| parent.root);
    tx.db
        .prepare_cached(
            "INSERT INTO assistant_processes (process_id, assistant_id, snapshot, parent_process_id, parent_assistant_id,
               root_process_id, session_id, thread_id, depth, detached, resumed_from, label, status, query, context,
               working_dir, worktree, tools, unavailable_tools, model_requested, model, limits, line, inputs, output_schema,
               runner, agent, launcher, created_at)
             VALUES (:id, :assistant, :snapshot, :parent, :parent_assistant, :root, :session, :thread, :depth, :detached,
               :resumed, :label, 'queued', :query, :context, :working_dir, :worktree, :tools, :unavailable, :requested, :model,
               :limits, :line, :inputs, :output_schema, :runner, :agent, :launcher, :now)",
        )?
        .execute(named_params! {
            ":id": new.id.to_string(),
            ":assistant": new.assistant_id,
            ":snapshot": new.snapshot,
            ":parent": parent.as_ref().map(|parent| parent.id.to_string()),
            ":parent_assistant": parent_assistant_id,
            ":root": root.to_string(),
            ":session": session_id.to_string(),
            ":thread": new.thread.to_string(),
            ":depth": depth,
            ":detached": new.detached,
            ":resumed": resumed_from.map(|old| old.to_string()),
            ":label": new.label,
            ":query": new.query,
            ":context": new.context,
            ":working_dir": new.working_dir,
            ":worktree": parent.as_ref().and_then(|parent| parent.worktree).map(|worktree| worktree.to_string()),
            ":tools": json!(new.tools).to_string(),
            ":unavailable": new.unavailable_tools,
            ":requested": new.model_requested,
            ":model": model,
            ":limits": json!(new.limits).to_string(),
            ":line": place.as_ref().map(|place| &place.line),
            ":inputs": new.inputs,
            ":output_schema": new.output_schema,
            ":runner": runner,
            ":agent": agent,
            ":launcher": launcher,
            ":now": tx.now,
        })?;
    if !starts {
        crate::events::record(tx, new.id, crate::events::Kind::Status, &json!({ "status": Status::Queued }))?;
    }
    if let (Some(old), None) = (resumed_from, behind) {
        line::move_mail(tx, old, new.id, new.thread)?;
    }
    let afresh = place.as_ref().and_then(|place| place.afresh);
    if afresh.is_some() {
        line::told_afresh(tx, new.id)?;
    }
    for text in [Some(&new.query), new.context.as_ref()].into_iter().flatten() {
        crate::blobs::pass_on(tx, caller, new.id, text)?;
    }
    if starts {
        let row = get(tx.db, new.id)?;
        advance(tx, &row, Status::Starting)?;
    }
    // The caller holds no slot while this child lives, so others may start.
    tx.wake(crate::store::SUPERVISOR);
    let status = if starts { Status::Starting } else { Status::Queued };
    let continued_from = resumed_from.filter(|_| new.resumed_from.is_none());
    Ok(Spawned { status, capacity: slots::capacity(tx.db, new.id, limits, tx.now)?, continued_from, afresh })
}

/// The process that goes on from this one, if there is one.
///
/// # Errors
/// The store's.
pub fn resumption_of(db: &Connection, process: ProcessId) -> Result<Option<ProcessId>, StoreError> {
    let mut look = db.prepare_cached("SELECT process_id FROM assistant_processes WHERE resumed_from = ?1")?;
    Ok(look.query_row([process.to_string()], |row| id(row, "process_id")).optional()?)
}
