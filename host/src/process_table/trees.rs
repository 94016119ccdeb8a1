//! Trees of processes, as lists show them: a parent before its children, each oldest first, the newest tree first.

use assistant_protocol::ids::{ProcessId, SessionId};
use rusqlite::{Connection, named_params};

use super::{COLUMNS, LIVING, Process, Status, from_row, id};
use crate::caller::Caller;
use crate::store::StoreError;

/// What is said to a model that is asked again after its own last word.
pub(crate) const GO_ON: &str = "Go on.";

/// Whose processes are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Those of all sessions that a session reaches.
    Principal(SessionId),
    /// Those below a process, without it.
    Below(ProcessId),
    /// A process and those below it.
    Tree(ProcessId),
}

/// Which of them, and how many.
#[derive(Debug, Clone, Copy, Default)]
pub struct Listed {
    /// Only those with this status.
    pub status: Option<Status>,
    /// Only the roots of the trees.
    pub root_only: bool,
    /// Only trees that were begun, or whose root ended, at or after this time (Unix milliseconds), or that live.
    pub since: Option<i64>,
    /// How many are left out from the first on.
    pub offset: u32,
    /// How many at most.
    pub limit: u32,
}

/// Processes with their level below the root of their list, and how many there are in all.
///
/// # Errors
/// The store's.
pub fn trees(db: &Connection, whose: Whose, wanted: &Listed) -> Result<(Vec<(Process, u32)>, u32), StoreError> {
    let (roots, id) = match whose {
        Whose::Principal(session) => (
            "p.parent_process_id IS NULL AND p.session_id IN (SELECT reached FROM reach WHERE session_id = :id)",
            session.to_string(),
        ),
        Whose::Below(process) => ("p.parent_process_id = :id", process.to_string()),
        Whose::Tree(process) => ("p.process_id = :id", process.to_string()),
    };
    let sql = format!(
        "WITH RECURSIVE tree(process_id, root, path, level) AS (
           SELECT p.process_id, p.seq, printf('%016x', p.seq), 0 FROM assistant_processes p
             WHERE {roots} AND (:since IS NULL OR p.finished_at IS NULL OR p.finished_at >= :since)
           UNION ALL
           SELECT c.process_id, t.root, t.path || printf('%016x', c.seq), t.level + 1
             FROM tree t JOIN assistant_processes c ON c.parent_process_id = t.process_id WHERE NOT :root_only
         )
         SELECT a.*, t.level, count(*) OVER () AS total FROM tree t
           JOIN (SELECT {COLUMNS} FROM assistant_processes) a ON a.process_id = t.process_id
           WHERE :status IS NULL OR a.status = :status
           ORDER BY t.root DESC, t.path LIMIT :limit OFFSET :offset"
    );
    let mut look = db.prepare_cached(&sql)?;
    let mut total = 0;
    let rows = look.query_map(
        named_params! {
            ":id": id, ":since": wanted.since, ":root_only": wanted.root_only, ":status": wanted.status,
            ":limit": wanted.limit, ":offset": wanted.offset,
        },
        |row| {
            total = row.get("total")?;
            Ok((from_row(row)?, row.get("level")?))
        },
    )?;
    let found = rows.collect::<Result<_, _>>()?;
    Ok((found, total))
}

/// A process and all below it.
///
/// # Errors
/// The store's.
pub fn tree(db: &Connection, process: ProcessId) -> Result<Vec<Process>, StoreError> {
    let all = Listed { limit: u32::MAX, ..Listed::default() };
    Ok(trees(db, Whose::Tree(process), &all)?.0.into_iter().map(|(row, _)| row).collect())
}

/// The processes of a caller that have not ended, oldest first.
///
/// # Errors
/// The store's.
pub fn living_of(db: &Connection, caller: Caller) -> Result<Vec<ProcessId>, StoreError> {
    let (sql, caller) = match caller {
        Caller::Session(session) => (
            format!(
                "SELECT process_id FROM assistant_processes
                   WHERE {LIVING} AND session_id IN (SELECT reached FROM reach WHERE session_id = ?1) ORDER BY seq"
            ),
            session.to_string(),
        ),
        Caller::Process(process) => (
            format!(
                "WITH RECURSIVE below(process_id) AS (
                   SELECT process_id FROM assistant_processes WHERE parent_process_id = ?1
                   UNION ALL
                   SELECT c.process_id FROM below b JOIN assistant_processes c ON c.parent_process_id = b.process_id
                 )
                 SELECT p.process_id FROM below b CROSS JOIN assistant_processes p ON p.process_id = b.process_id
                   WHERE {LIVING} ORDER BY p.seq"
            ),
            process.to_string(),
        ),
    };
    let mut look = db.prepare_cached(&sql)?;
    let rows = look.query_map([caller], |row| id(row, "process_id"))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The processes that a caller spawned itself and that have not ended, oldest first; for a session those of all sessions
/// that it reaches.
///
/// # Errors
/// The store's.
pub fn living_spawned_by(db: &Connection, caller: Caller) -> Result<Vec<ProcessId>, StoreError> {
    let (whose, caller) = match caller {
        Caller::Session(session) => (
            "parent_process_id IS NULL AND session_id IN (SELECT reached FROM reach WHERE session_id = ?1)",
            session.to_string(),
        ),
        Caller::Process(process) => ("parent_process_id = ?1", process.to_string()),
    };
    let mut look = db.prepare_cached(&format!(
        "SELECT process_id FROM assistant_processes WHERE {LIVING} AND {whose} ORDER BY seq"
    ))?;
    let rows = look.query_map([caller], |row| id(row, "process_id"))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The newest processes, the newest first, at most `limit`.
///
/// # Errors
/// The store's.
pub fn newest(db: &Connection, limit: u32) -> Result<Vec<Process>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM assistant_processes ORDER BY seq DESC LIMIT ?1");
    let mut look = db.prepare_cached(&sql)?;
    let rows = look.query_map([limit], from_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The task of a process; where it was resumed without a word, that of the one it goes on from.
///
/// # Errors
/// The store's.
pub fn task(db: &Connection, process: &Process) -> Result<String, StoreError> {
    let (mut task, mut before) = (process.query.clone(), process.resumed_from);
    while let Some(id) = before
        && (task.is_empty() || task == GO_ON)
    {
        let row = super::get(db, id)?;
        (task, before) = (row.query, row.resumed_from);
    }
    Ok(task)
}
