//! What becomes of a worktree when all have ended that worked in it.

use std::path::Path;
use std::time::Duration;

use assistant_protocol::ids::ProcessId;
use futures::StreamExt;

use super::SETTLED_AT_ONCE_MAX;
use super::holds;
use super::repository::{self, Removing};
use crate::host::Host;
use crate::launcher::GitError;
use crate::process_table::Process;
use crate::process_table::worktree::{self, State, Worktree};
use crate::store::{StoreError, WORKTREES};

/// How soon the tables are looked at again where that failed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long a host that closes looks after its worktrees.
const CLOSING_WITHIN: Duration = Duration::from_secs(10);

/// Looks after worktrees until the host closes. First of all after those that an earlier host has left.
pub(crate) async fn tend(host: Host) {
    let mut waiter = host.store().waiter(WORKTREES);
    let closing = host.closing().clone();
    if let Some(Err(error)) = closing.run_until_cancelled(begin(&host)).await {
        tracing::error!(%error, "what an earlier host has left in worktrees could not be looked at");
    }
    loop {
        let left = host.worktrees().left.notified();
        tokio::pin!(left);
        left.as_mut().enable();
        let mut again = Duration::MAX;
        match closing.run_until_cancelled(settle_left(&host)).await {
            None => return,
            Some(Ok(())) => {}
            Some(Err(error)) => {
                tracing::error!(%error, "worktrees could not be looked after");
                again = LOOK_AGAIN;
            }
        }
        tokio::select! {
            () = waiter.news() => {}
            () = left => {}
            () = tokio::time::sleep(again) => {}
            () = closing.cancelled() => return,
        }
    }
}

/// The same once, for a bounded time: what is not done then, the next host does.
pub(crate) async fn settle_all(host: &Host) {
    match tokio::time::timeout(CLOSING_WITHIN, settle_left(host)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "worktrees could not be looked after"),
        Err(_) => tracing::warn!("not all worktrees could be looked after in time; the next host does that"),
    }
}

async fn settle_left(host: &Host) -> Result<(), StoreError> {
    let left = host.store().look(worktree::left)?;
    let idle = |(_, users): &(Worktree, Vec<ProcessId>)| !users.iter().any(|user| host.worktrees().is_at_work(user));
    let due: Vec<ProcessId> = left.into_iter().filter(idle).map(|(worktree, _)| worktree.id).collect();
    let settled = futures::stream::iter(due).map(|id| settle(host, id)).buffer_unordered(SETTLED_AT_ONCE_MAX);
    settled.fold(Ok(()), |all, one| async { if all.is_err() { all } else { one } }).await
}

/// Ends what a host that died has left at work in its worktrees, git included, and forgets kept ones that somebody has
/// removed.
async fn begin(host: &Host) -> Result<(), StoreError> {
    let left = host.store().look(worktree::left)?;
    let users: Vec<ProcessId> = left.into_iter().flat_map(|(one, users)| users.into_iter().chain([one.id])).collect();
    host.strays().end_all(&users).await;
    let all = host.store().look(|db| Ok::<_, StoreError>(worktree::all(db)?))?;
    for gone in all.into_iter().filter(|one| one.state == State::Kept && is_removed(one)) {
        host.store().write(move |tx| worktree::forget(tx, &gone, "it was removed")).await?;
    }
    Ok(())
}

/// Whether somebody has removed a worktree; else it may be on a disk that is not there now.
pub(super) fn is_removed(found: &Worktree) -> bool {
    let path = Path::new(&found.path);
    let unknown = || found.git_dir.as_deref().is_some_and(|git_dir| !Path::new(git_dir).exists());
    !path.exists() && (unknown() || path.parent().is_some_and(Path::is_dir))
}

/// Looks into a worktree in which nobody works any more: one without changes goes, another one stays.
async fn settle(host: &Host, id: ProcessId) -> Result<(), StoreError> {
    let _alone = host.worktrees().alone(&id.to_string()).await;
    // It may have been gone on with meanwhile.
    let left = host.store().look(worktree::left)?;
    let Some((found, users)) = left.into_iter().find(|(one, _)| one.id == id) else { return Ok(()) };
    if users.iter().any(|user| host.worktrees().is_at_work(user)) {
        return Ok(());
    }
    let holds = match (&found.git_dir, found.state) {
        (Some(git_dir), State::Used | State::Kept) if Path::new(&found.path).exists() => {
            let looked = holds::holds(Path::new(&found.path), git_dir, id, &found.branch, &found.base).await;
            looked.unwrap_or_else(|error| format!("what is in it cannot be told, because {error}"))
        }
        (_, State::Used | State::Kept) if !is_removed(&found) => {
            tracing::debug!(path = found.path, "a worktree cannot be reached; a later host looks at it");
            return Ok(());
        }
        // Nobody has worked in it, or somebody has removed it.
        _ => String::new(),
    };
    let holds = if holds.is_empty() { remove(host, &found).await.err() } else { Some(holds) };
    match holds {
        None => host.store().write(move |tx| worktree::forget(tx, &found, "nothing was new in it")).await,
        Some(holds) => {
            tracing::info!(path = found.path, branch = found.branch, holds, "a worktree is kept");
            host.store().write(move |tx| worktree::keep(tx, &found, &holds)).await
        }
    }
}

/// Removes a worktree in which nothing is new, with its branch. Of one that was not made wholly, whatever there is.
///
/// # Errors
/// In words: why it is still there.
async fn remove(host: &Host, found: &Worktree) -> Result<(), String> {
    let (id, repository) = (found.id, found.repository.as_str());
    if !Path::new(repository).is_dir() {
        return Err(format!("nothing new, but its repository {repository} is gone"));
    }
    let cannot = |error: &dyn std::fmt::Display| format!("nothing new, but it cannot be removed: {error}");
    let _alone = host.worktrees().alone(repository).await;
    let git_dir = found.git_dir.as_deref();
    let by_git = match git_dir.filter(|_| Path::new(&found.path).exists()) {
        // Git knows nothing of it yet, or its files are gone.
        None => false,
        Some(git_dir) => {
            let again = repository::removing(git_dir).is_some();
            repository::begin_removing(git_dir, Removing::Nothing).map_err(|error| cannot(&error))?;
            let named = holds::names_submodules(Path::new(&found.path), git_dir, id).await;
            let force = again || named.map_err(|error| cannot(&error))?;
            match repository::remove(repository, id, &found.path, force).await {
                Ok(()) => true,
                // What is left may have no `.git` any more.
                Err(GitError::Refused(said)) if again => {
                    tracing::debug!(said, path = found.path, "git does not remove what is left of a worktree");
                    false
                }
                Err(error) => return Err(cannot(&error)),
            }
        }
    };
    if !by_git {
        repository::remove_by_hand(repository, &found.path, git_dir).await.map_err(|error| cannot(&error))?;
    }
    let branch = &found.branch;
    if repository::has_branch(repository, id, branch).await.map_err(|error| cannot(&error))? {
        // One that somebody has moved on is theirs now.
        let removed = repository::remove_branch(repository, id, branch, Some(found.base.as_str())).await;
        removed.map_err(|error| format!("nothing new, but its branch cannot be removed: {error}"))?;
    }
    Ok(())
}

/// Removes a kept worktree because its user says so; with `force` whatever is in it. Returns whether its branch stays,
/// because something is committed there.
///
/// # Errors
/// In words: why it is still there.
#[cfg(feature = "cli")]
pub(crate) async fn remove_kept(found: &Worktree, force: bool) -> Result<bool, String> {
    let (id, repository) = (found.id, found.repository.as_str());
    if found.state != State::Kept {
        return Err("a process works in it; cancel it first".to_owned());
    }
    if !Path::new(repository).is_dir() {
        return Err(format!("its repository {repository} is gone; remove the folder by hand"));
    }
    let words = |error: GitError| error.to_string();
    let path = Path::new(&found.path);
    let is_there = path.exists();
    if !is_there && !is_removed(found) {
        return Err("it cannot be reached now".to_owned());
    }
    // Who has begun it has looked, and been told.
    let begun = found.git_dir.as_deref().and_then(repository::removing);
    let force = force || begun == Some(Removing::Whatever);
    if let Some(git_dir) = found.git_dir.as_deref().filter(|_| !force) {
        if is_there && holds::has_submodules(path, git_dir, id).await.map_err(words)? {
            return Err(format!("{}; look at them, then give --force", holds::SUBMODULES));
        }
        let lost = holds::on_no_branch(repository, git_dir, id).await.map_err(words)?;
        let lost = lost.saturating_add(holds::left_behind(Path::new(repository), git_dir, id).await.map_err(words)?);
        if lost > 0 {
            return Err(format!(
                "{lost} commits in it are on no branch, and would be lost: give them one there (`git branch NAME`), or give \
                 --force"
            ));
        }
        if is_there && begun.is_some() && holds::files(path, git_dir, id).await.map_err(words)?.0 > 0 {
            return Err("files in it are not committed; look at them, then give --force".to_owned());
        }
    }
    if is_there {
        take_away(found, force, begun.is_some()).await?;
    } else {
        repository::remove_by_hand(repository, &found.path, found.git_dir.as_deref()).await?;
    }
    let branch = &found.branch;
    if !repository::has_branch(repository, id, branch).await.map_err(words)? {
        return Ok(false);
    }
    let removed = match force {
        true => repository::remove_branch(repository, id, branch, None).await,
        false => repository::remove_branch(repository, id, branch, Some(found.base.as_str())).await,
    };
    Ok(removed.is_err())
}

/// Removes the files of a kept worktree; `begun` is whether somebody has begun to.
#[cfg(feature = "cli")]
async fn take_away(found: &Worktree, force: bool, begun: bool) -> Result<(), String> {
    let (id, repository, git_dir) = (found.id, found.repository.as_str(), found.git_dir.as_deref());
    // A part of it, if this is broken off, is not taken for changes by the next one.
    let clean = match git_dir.filter(|_| !force && !begun) {
        Some(git_dir) => holds::files(Path::new(&found.path), git_dir, id).await.is_ok_and(|(files, _)| files == 0),
        None => force,
    };
    let how = if force { Removing::Whatever } else { Removing::Nothing };
    if let Some(git_dir) = git_dir.filter(|git_dir| clean && Path::new(git_dir).is_dir()) {
        repository::begin_removing(git_dir, how).map_err(|error| error.to_string())?;
    }
    match repository::remove(repository, id, &found.path, force || begun).await {
        // Its `.git` is gone or leads elsewhere, so that git takes it for none.
        Err(GitError::Refused(_)) if force || begun => {
            repository::remove_by_hand(repository, &found.path, git_dir).await
        }
        Err(error) => {
            git_dir.into_iter().for_each(repository::not_removing);
            Err(error.to_string())
        }
        Ok(()) => Ok(()),
    }
}

/// Notes what is in the worktree of a process that is about to end, for whoever is told of the end.
pub(crate) async fn look(host: &Host, row: &Process) {
    let Some(id) = row.worktree else { return };
    if let Err(error) = note(host, row, id).await {
        tracing::warn!(%error, process = %row.id, "what is in a worktree could not be noted");
    }
}

async fn note(host: &Host, row: &Process, id: ProcessId) -> Result<(), StoreError> {
    let found = host.store().look(|db| worktree::get(db, id))?;
    let Some(found) = found.filter(|found| found.process == row.id) else { return Ok(()) };
    let Some(git_dir) = &found.git_dir else { return Ok(()) };
    match holds::holds(Path::new(&found.path), git_dir, id, &found.branch, &found.base).await {
        Ok(holds) => host.store().write(move |tx| worktree::looked(tx, id, &holds)).await,
        // It is told without that, and looked at again when all have ended.
        Err(error) => {
            tracing::debug!(%error, path = found.path, "what is in a worktree cannot be told yet");
            Ok(())
        }
    }
}
