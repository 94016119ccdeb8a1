//! Git worktrees in the tables: which there are, who has one, and what becomes of it. Git itself is asked elsewhere.

use std::path::Path;

use assistant_protocol::ids::ProcessId;
use rusqlite::{Connection, OptionalExtension, Row, named_params};
use serde::Serialize;
use serde_json::{Value, json};

use super::{LIVING, Process, find, id};
use crate::events::{self, Kind};
use crate::names::named;
use crate::store::{StoreError, Tx};

/// Events of a status among which the one is that tells of a worktree.
const FIRST_EVENTS_MAX: u32 = 20;

named! {
    /// What a worktree is.
    pub enum State {
        /// Git makes it; nobody has worked in it.
        Making = "making",
        /// A process works in it, or has until just now.
        Used = "used",
        /// All have ended that worked in it, and what they left is kept.
        Kept = "kept",
    }
}

/// A worktree that a process was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Worktree {
    /// The process that it was made for.
    pub id: ProcessId,
    /// The process that has it, or had it last.
    pub process: ProcessId,
    /// Its assistant.
    pub assistant_id: String,
    /// The git directory of its repository.
    pub repository: String,
    /// The folder of the repository's files beside which it stands.
    pub source: String,
    /// Its own git directory, once it is made.
    pub git_dir: Option<String>,
    /// Where its files are.
    pub path: String,
    /// Its branch.
    pub branch: String,
    /// The commit that it begins at.
    pub base: String,
    /// The folder in it that its process works in, with `/`; empty is the whole.
    pub folder: String,
    /// What it is.
    pub state: State,
    /// What it holds that its first commit does not, in words: empty is nothing, none is not looked.
    pub holds: Option<String>,
    /// When it was begun, Unix milliseconds.
    pub created_at: i64,
}

const COLUMNS: &str = "worktree_id, w.process_id, w.assistant_id, repository, source, git_dir, path, branch, base, folder, \
    state, holds, w.created_at";

fn from_row(row: &Row<'_>) -> rusqlite::Result<Worktree> {
    Ok(Worktree {
        id: id(row, "worktree_id")?,
        process: id(row, "process_id")?,
        assistant_id: row.get("assistant_id")?,
        repository: row.get("repository")?,
        source: row.get("source")?,
        git_dir: row.get("git_dir")?,
        path: row.get("path")?,
        branch: row.get("branch")?,
        base: row.get("base")?,
        folder: row.get("folder")?,
        state: row.get("state")?,
        holds: row.get("holds")?,
        created_at: row.get("created_at")?,
    })
}

/// One, if it is there.
pub(crate) fn get(db: &Connection, worktree: ProcessId) -> Result<Option<Worktree>, StoreError> {
    let mut look = db.prepare_cached(&format!("SELECT {COLUMNS} FROM worktrees w WHERE worktree_id = ?1"))?;
    Ok(look.query_row([worktree.to_string()], from_row).optional()?)
}

/// All, oldest first.
pub(crate) fn all(db: &Connection) -> rusqlite::Result<Vec<Worktree>> {
    let mut look = db.prepare(&format!("SELECT {COLUMNS} FROM worktrees w ORDER BY w.created_at, worktree_id"))?;
    let rows = look.query_map([], from_row)?;
    rows.collect()
}

/// Those that were in use and in which nothing lives.
fn is_left() -> String {
    format!(
        "state <> 'kept' AND NOT EXISTS
           (SELECT 1 FROM assistant_processes p WHERE p.worktree = w.worktree_id AND {LIVING})
           AND NOT EXISTS (SELECT 1 FROM assistant_processes p WHERE p.process_id = w.process_id AND {LIVING})"
    )
}

/// In which of them nothing lives any more, and that are still to be looked into.
#[cfg(feature = "cli")]
pub(crate) fn ending(db: &Connection) -> rusqlite::Result<Vec<ProcessId>> {
    let mut look = db.prepare(&format!("SELECT worktree_id FROM worktrees w WHERE {}", is_left()))?;
    let rows = look.query_map([], |row| id(row, "worktree_id"))?;
    rows.collect()
}

/// Those that were in use and in which nothing lives, each with the processes that have worked in it.
pub(crate) fn left(db: &Connection) -> Result<Vec<(Worktree, Vec<ProcessId>)>, StoreError> {
    let mut look =
        db.prepare_cached(&format!("SELECT {COLUMNS} FROM worktrees w WHERE {} ORDER BY w.created_at", is_left()))?;
    let found: Vec<Worktree> = look.query_map([], from_row)?.collect::<Result<_, _>>()?;
    let mut who = db.prepare_cached("SELECT process_id FROM assistant_processes WHERE worktree = ?1")?;
    let with_users = |worktree: Worktree| {
        let rows = who.query_map([worktree.id.to_string()], |row| id(row, "process_id"))?;
        let mut users: Vec<ProcessId> = rows.collect::<Result<_, rusqlite::Error>>()?;
        users.push(worktree.process);
        Ok((worktree, users))
    };
    found.into_iter().map(with_users).collect()
}

/// A worktree whose files are gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gone {
    /// Where they were.
    pub(crate) path: String,
    /// Its branch, which may be there still.
    pub(crate) branch: String,
    /// The commit that it began at.
    pub(crate) base: String,
}

/// The worktree in which a process worked, where that is gone: by the tables, else by its log. None where it is there, or
/// there was none.
pub(crate) fn gone(db: &Connection, process: ProcessId) -> Result<Option<Gone>, StoreError> {
    let Some(row) = find(db, process)? else { return Ok(None) };
    let Some(worktree) = row.worktree else { return Ok(None) };
    if let Some(found) = get(db, worktree)? {
        let gone = Gone { path: found.path, branch: found.branch, base: found.base };
        return Ok((!Path::new(&gone.path).is_dir()).then_some(gone));
    }
    // What it was given is told once, early.
    let told = events::select(db, process, 0, FIRST_EVENTS_MAX, &[Kind::Status], false)?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let given = |one: &Value| {
        let (path, branch) = (text(&one["worktree"])?, text(&one["branch"])?);
        Some(Gone { path, branch, base: text(&one["base"])? })
    };
    Ok(told.iter().find_map(|one| given(&one.data)))
}

/// Notes that git is about to make one, so that nothing of it can be forgotten.
pub(crate) fn begin(tx: &Tx<'_>, new: &Worktree) -> Result<(), StoreError> {
    tx.db
        .prepare_cached(
            "INSERT INTO worktrees (worktree_id, process_id, assistant_id, repository, source, path, branch, base,
               folder, state, created_at)
             VALUES (:id, :id, :assistant, :repository, :source, :path, :branch, :base, :folder, 'making', :now)",
        )?
        .execute(named_params! {
            ":id": new.id.to_string(), ":assistant": new.assistant_id, ":repository": new.repository,
            ":source": new.source, ":path": new.path, ":branch": new.branch, ":base": new.base, ":folder": new.folder,
            ":now": tx.now,
        })?;
    Ok(())
}

/// Gives a worktree to a process, which works in `folder` of it from now on. `told` is what its log says.
pub(crate) fn give(
    tx: &Tx<'_>,
    worktree: ProcessId,
    git_dir: &str,
    process: ProcessId,
    working_dir: &str,
    told: &Value,
) -> Result<(), StoreError> {
    tx.db
        .prepare_cached(
            "UPDATE worktrees SET process_id = ?2, git_dir = ?3, state = 'used', holds = NULL WHERE worktree_id = ?1",
        )?
        .execute((worktree.to_string(), process.to_string(), git_dir))?;
    tx.db
        .prepare_cached("UPDATE assistant_processes SET worktree = ?2, working_dir = ?3 WHERE process_id = ?1")?
        .execute((process.to_string(), worktree.to_string(), working_dir))?;
    events::record(tx, process, Kind::Status, told)
}

/// Notes what is in one that is still in use.
pub(crate) fn looked(tx: &Tx<'_>, worktree: ProcessId, holds: &str) -> Result<(), StoreError> {
    tx.db
        .prepare_cached("UPDATE worktrees SET holds = ?2 WHERE worktree_id = ?1 AND state = 'used'")?
        .execute((worktree.to_string(), holds))?;
    Ok(())
}

/// It is kept, with what it holds. Its process is told so in its log.
pub(crate) fn keep(tx: &Tx<'_>, worktree: &Worktree, holds: &str) -> Result<(), StoreError> {
    tx.db
        .prepare_cached("UPDATE worktrees SET state = 'kept', holds = ?2 WHERE worktree_id = ?1")?
        .execute((worktree.id.to_string(), holds))?;
    let told = json!({ "worktree": worktree.path, "branch": worktree.branch, "kept": holds });
    note(tx, worktree.process, &told)
}

/// It is there no more. `why` is for the log of its process.
pub(crate) fn forget(tx: &Tx<'_>, worktree: &Worktree, why: &str) -> Result<(), StoreError> {
    tx.db.prepare_cached("DELETE FROM worktrees WHERE worktree_id = ?1")?.execute([worktree.id.to_string()])?;
    let told = json!({ "worktree": worktree.path, "branch": worktree.branch, "gone": why });
    note(tx, worktree.process, &told)
}

/// A line of the log of a process, if that is still kept.
fn note(tx: &Tx<'_>, process: ProcessId, told: &Value) -> Result<(), StoreError> {
    if find(tx.db, process)?.is_some() { events::record(tx, process, Kind::Status, told) } else { Ok(()) }
}

/// What whoever gave a task is told of the worktree in which it was done, behind the words of its end.
pub(super) fn told(db: &Connection, row: &Process) -> Result<String, StoreError> {
    let Some(worktree) = row.worktree else { return Ok(String::new()) };
    // Whoever works in that of another tells nothing of it.
    let Some(mine) = get(db, worktree)?.filter(|one| one.process == row.id && one.state != State::Making) else {
        return Ok(String::new());
    };
    let place = format!("the git worktree {}, on the branch {}", mine.path, mine.branch);
    Ok(match mine.holds.as_deref() {
        Some("") => String::new(),
        Some(holds) => format!("\n\n[What it changed is in {place}: {holds}.]"),
        None => format!("\n\n[Where it changed something, that is in {place}.]"),
    })
}
