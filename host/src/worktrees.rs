//! Git worktrees: a process whose definition says `isolation: worktree` works in one of its own, on a branch of its own.
//!
//! It is made when the process starts, in the repository that its working folder lies in and at the commit that is checked
//! out there; what is not committed there is not in it. Children work in the worktree of whoever spawned them. When all
//! that worked in it have ended, it is removed with its branch if nothing in it is new, and kept otherwise: then it is the
//! user's, is listed, and nothing removes it but `worktrees --remove` or git. What a host that died has left is looked at
//! by the next one. A resumed process goes on in what the one before has left.
//!
//! The row is written before git is asked, so that no worktree can be forgotten; `making` is one in which nobody has worked.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use assistant_protocol::ids::ProcessId;
use tokio::sync::{Notify, OwnedMutexGuard, Semaphore};

mod holds;
mod make;
mod repository;
mod settle;

pub(crate) use make::{NotEntered, enter};
#[cfg(feature = "cli")]
pub(crate) use settle::remove_kept;
pub(crate) use settle::{look, settle_all, tend};

/// How long git may take to copy the files of a repository.
const CHECKOUT_WITHIN: Duration = Duration::from_secs(300);
/// How long any other call of git may take.
const GIT_WITHIN: Duration = Duration::from_secs(60);
/// How often what another git holds locked is tried again.
const LOCKED_TRIES_MAX: u32 = 40;
/// How long is waited between two tries.
const LOCKED_WAIT: Duration = Duration::from_millis(50);
/// Checkouts at once; more make none faster.
const CHECKOUTS_MAX: usize = 4;
/// Worktrees that are looked into at once.
const SETTLED_AT_ONCE_MAX: usize = 4;

/// What a host knows of its worktrees beside the tables.
pub(crate) struct Worktrees {
    /// Where they are made.
    folder: std::path::PathBuf,
    /// Processes whose session has not ended, whatever the tables say: their runners may still work.
    at_work: Mutex<HashSet<ProcessId>>,
    /// Told when a session has ended.
    left: Notify,
    /// Held while something is done with a worktree or in a repository, by their names.
    locks: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
    checkouts: Semaphore,
}

/// A session that may use a worktree; dropped when it has ended.
pub(crate) struct AtWork<'a> {
    worktrees: &'a Worktrees,
    process: ProcessId,
}

impl Worktrees {
    /// `folder` is where they are made.
    pub(crate) fn new(folder: std::path::PathBuf) -> Self {
        Self {
            folder,
            at_work: Mutex::default(),
            left: Notify::new(),
            locks: Mutex::default(),
            checkouts: Semaphore::new(CHECKOUTS_MAX),
        }
    }

    /// Until what is returned is dropped, no worktree of this process is looked after.
    pub(crate) fn at_work(&self, process: ProcessId) -> AtWork<'_> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner).insert(process);
        AtWork { worktrees: self, process }
    }

    fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    fn is_at_work(&self, process: &ProcessId) -> bool {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner).contains(process)
    }

    /// Waits until the session of a process has ended.
    async fn until_left(&self, process: &ProcessId) {
        loop {
            let left = self.left.notified();
            tokio::pin!(left);
            left.as_mut().enable();
            if !self.is_at_work(process) {
                return;
            }
            left.await;
        }
    }

    /// One at a time for each `name`.
    async fn alone(&self, name: &str) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
            locks.retain(|_, lock| lock.strong_count() > 0);
            match locks.get(name).and_then(Weak::upgrade) {
                Some(lock) => lock,
                None => {
                    let lock = Arc::new(tokio::sync::Mutex::new(()));
                    locks.insert(name.to_owned(), Arc::downgrade(&lock));
                    lock
                }
            }
        };
        lock.lock_owned().await
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.worktrees.at_work.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.process);
        self.worktrees.left.notify_waiters();
    }
}
