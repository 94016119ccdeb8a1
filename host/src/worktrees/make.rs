//! How a process comes into a worktree.

use std::path::{Path, PathBuf};

use assistant_protocol::ids::ProcessId;
use serde_json::json;

use super::repository::{self, Around};
use crate::host::{Host, make_private};
use crate::process_table::worktree::{self, Gone, State, Worktree};
use crate::process_table::{self, Process};
use crate::registry::Definition;
use crate::store::StoreError;

/// Characters of an assistant's id in the name of a branch.
const SLUG_CHARS_MAX: usize = 40;
/// Characters of the id of a process there: as many as lists of processes show, and from its end, where it is like no other.
const SHORT_CHARS: usize = 8;

/// Why a process did not come into a worktree.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotEntered {
    /// In words; the process cannot start.
    #[error("isolation: worktree: {0}")]
    Failed(String),
    /// The store's.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Lets a process work where it is to: in the worktree of the process that it goes on from, in a new one where its
/// definition wants that, else where it is. `row` tells so then.
///
/// # Errors
/// [`NotEntered`]; what git has made by then is removed when the process has ended.
pub(crate) async fn enter(host: &Host, row: &mut Process, definition: &Definition) -> Result<(), NotEntered> {
    if let Some(before) = row.resumed_from
        && go_on(host, row, before).await?
    {
        return Ok(());
    }
    if !definition.worktree {
        return Ok(());
    }
    let gone = row.resumed_from.map(|before| host.store().look(|db| worktree::gone(db, before))).transpose()?.flatten();
    make(host, row, gone).await
}

/// Goes on in the worktree of the process before, if that is there. Returns whether it does.
async fn go_on(host: &Host, row: &mut Process, before: ProcessId) -> Result<bool, StoreError> {
    let old = host.store().look(|db| process_table::find(db, before))?;
    let Some(id) = old.and_then(|old| old.worktree) else { return Ok(false) };
    // Until then it may be removed yet.
    host.worktrees().until_left(&before).await;
    let _alone = host.worktrees().alone(&id.to_string()).await;
    let Some(found) = host.store().look(|db| worktree::get(db, id))? else { return Ok(false) };
    let Some(git_dir) = found.git_dir.clone().filter(|_| found.state != State::Making) else { return Ok(false) };
    let path = PathBuf::from(&found.path);
    if !path.is_dir() {
        return Ok(false);
    }
    // Whatever was begun, somebody works in it again.
    repository::not_removing(&git_dir);
    let asked = row.working_dir.as_deref().and_then(|dir| Path::new(dir).strip_prefix(&found.source).ok());
    let asked = asked.map(|folder| path.join(folder)).filter(|folder| folder.is_dir());
    let dir = asked.unwrap_or_else(|| path.join(&found.folder));
    let dir = if dir.is_dir() { dir } else { path }.to_string_lossy().into_owned();
    let told = json!({ "worktree": found.path, "branch": found.branch, "base": found.base, "again": true });
    let (process, working_dir) = (row.id, dir.clone());
    host.store().write(move |tx| worktree::give(tx, id, &git_dir, process, &working_dir, &told)).await?;
    (row.worktree, row.working_dir) = (Some(id), Some(dir));
    Ok(true)
}

/// Makes a worktree for a process: in place of one that is gone on the branch of that, where it is there still.
async fn make(host: &Host, row: &mut Process, gone: Option<Gone>) -> Result<(), NotEntered> {
    let failed = NotEntered::Failed;
    let id = row.id;
    if let Ok(Some(launcher)) = host.launcher(row.launcher.as_deref())
        && launcher.is_elsewhere()
    {
        let message = format!("the launcher `{}` runs it where the files of this machine are not", launcher.name);
        return Err(failed(message));
    }
    let Some(dir) = row.working_dir.clone() else {
        return Err(failed("it has no working folder, because this host has no project folder (--project)".into()));
    };
    let around = repository::around(Path::new(&dir), id).await.map_err(failed)?;
    let mut new = planned(host.worktrees().folder(), row, &around).map_err(failed)?;
    let said = |error: crate::launcher::GitError| NotEntered::Failed(error.to_string());
    let instead = gone.as_ref().map(|gone| gone.path.clone());
    let mut kept = None;
    if let Some(gone) = gone
        && repository::has_branch(&new.repository, id, &gone.branch).await.map_err(said)?
    {
        // What is on it counts from where it began.
        new.base.clone_from(&gone.base);
        // It may be checked out elsewhere by now: then a new one begins where it is.
        if repository::forget_gone(&new.repository, id, &gone.branch, &gone.path).await.map_err(said)? {
            new.branch.clone_from(&gone.branch);
        }
        kept = Some(gone.branch);
    }
    let goes_on = kept.as_ref() == Some(&new.branch);
    if !goes_on && repository::has_branch(&new.repository, id, &new.branch).await.map_err(said)? {
        return Err(failed(format!("the branch {} is there already; remove or rename it", new.branch)));
    }
    if Path::new(&new.path).exists() {
        return Err(failed(format!("{} is there already; move it away", new.path)));
    }
    let begun = new.clone();
    host.store().write(move |tx| worktree::begin(tx, &begun)).await?;
    {
        // Git's own locks of a repository are not waited for by git, and its copies of files need none of them.
        let _alone = host.worktrees().alone(&new.repository).await;
        let begin =
            if goes_on { repository::Begin::On } else { repository::Begin::New(kept.as_ref().unwrap_or(&new.base)) };
        repository::add(&new.repository, id, &new.path, &new.branch, begin).await.map_err(said)?;
    }
    let path = PathBuf::from(&new.path);
    let git_dir = {
        let _permit = host.worktrees().checkouts.acquire().await.map_err(|_| StoreError::Closed)?;
        repository::fill(&path, id).await.map_err(failed)?
    };
    let dir = path.join(&new.folder);
    // A folder of which nothing is committed is not in it.
    std::fs::create_dir_all(&dir).map_err(|error| failed(format!("cannot make {}: {error}", dir.display())))?;
    let dir = dir.to_string_lossy().into_owned();
    let mut told = json!({ "worktree": new.path, "branch": new.branch, "base": new.base });
    if let Some(instead) = instead {
        told["instead_of"] = json!(instead);
    }
    if path.join(".gitmodules").exists() {
        told["submodules"] = json!("not checked out");
    }
    let working_dir = dir.clone();
    host.store().write(move |tx| worktree::give(tx, id, &git_dir, id, &working_dir, &told)).await?;
    (row.worktree, row.working_dir) = (Some(id), Some(dir));
    Ok(())
}

/// What is to be made for a process.
///
/// # Errors
/// In words: the folder for it cannot be had.
fn planned(folder: &Path, row: &Process, around: &Around) -> Result<Worktree, String> {
    let cannot = |why: &dyn std::fmt::Display| format!("the folder {} cannot be used: {why}", folder.display());
    make_private(folder).map_err(|error| cannot(&error))?;
    let folder = folder.canonicalize().map_err(|error| cannot(&error))?;
    let slug: String = row.assistant_id.chars().take(SLUG_CHARS_MAX).collect();
    let id = row.id.to_string();
    let name = format!("{}-{}", slug.trim_end_matches('-'), &id[id.len() - SHORT_CHARS..]);
    let path = folder.join(&name);
    let path = path.to_str().ok_or_else(|| cannot(&"its path is no text"))?;
    Ok(Worktree {
        id: row.id,
        process: row.id,
        assistant_id: row.assistant_id.clone(),
        repository: around.repository.clone(),
        source: around.top.clone(),
        git_dir: None,
        path: path.to_owned(),
        branch: format!("assistant/{name}"),
        base: around.head.clone(),
        folder: around.folder.clone(),
        state: State::Making,
        holds: None,
        created_at: row.created_at,
    })
}
