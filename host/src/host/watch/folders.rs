//! What the system is asked to watch.
//!
//! A system that watches whole trees is asked for each source; one that watches folders, for each folder of a source,
//! which is looked into only when it is watched, so that nothing that is made meanwhile goes unseen. On the way to the
//! sources lie the home and the project: they are watched without what is in their folders, where the system can.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use notify::{ErrorKind, RecommendedWatcher, RecursiveMode, Watcher, WatcherKind};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Bell;
use super::places::Places;
use crate::registry::{FOLDER_DEPTH_MAX, Layout, SourceDir};

/// Most folders that are watched; systems allow some ten thousand, and others want to watch some too.
const WATCHED_MAX: usize = 8_192;
/// How often the way to a source is looked up again where it changes meanwhile; then the bell tells of the change.
const LOOKS_MAX: usize = 4;
/// How long the system's thread may take to end.
const END_WITHIN: Duration = Duration::from_secs(5);

/// What the system watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watched {
    /// All that matters.
    All,
    /// The sources that are there. Others that appear have to be looked for.
    Sources,
}

/// Why not everything is watched.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unwatched {
    #[error("there are more than {most} folders")]
    TooMany { most: usize },
    #[error(transparent)]
    System(#[from] notify::Error),
}

/// The folders that are watched.
pub(super) struct Folders {
    bell: Arc<Bell>,
    watcher: Option<Watching>,
    held: HashSet<PathBuf>,
    most: usize,
}

struct Watching {
    system: RecommendedWatcher,
    /// Cancelled when the system's thread has let go of the bell.
    ended: CancellationToken,
}

impl Default for Folders {
    fn default() -> Self {
        Self { bell: Arc::default(), watcher: None, held: HashSet::new(), most: WATCHED_MAX }
    }
}

impl Folders {
    pub(super) fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// Watches what there is of `sources` and the way to them, and nothing else any more. Looks into folders, so it is
    /// not for the async threads.
    ///
    /// # Errors
    /// Why not all is watched; the rest is.
    pub(super) fn watch(&mut self, sources: &[SourceDir]) -> Result<Watched, Unwatched> {
        if self.bell.moved.swap(false, Ordering::AcqRel) {
            self.forget();
        }
        let mut places = Places::of(sources);
        for _ in 0..LOOKS_MAX {
            *self.bell.places.write().unwrap_or_else(PoisonError::into_inner) = places.clone();
            let watched = self.arrange(&places);
            let now = Places::of(sources);
            if now == places {
                return watched;
            }
            places = now;
        }
        self.bell.rung.notify_one();
        Ok(Watched::Sources)
    }

    /// Asks for all anew next time: what has a name may be another folder than before.
    fn forget(&mut self) {
        let Some(watching) = &mut self.watcher else { return };
        for path in self.held.drain() {
            drop(watching.system.unwatch(&path));
        }
    }

    fn arrange(&mut self, places: &Places) -> Result<Watched, Unwatched> {
        let watching = match &mut self.watcher {
            Some(watching) => watching,
            none => none.insert(Watching::start(self.bell.clone())?),
        };
        let mut asked = Asked { watching, held: &self.held, wanted: HashSet::new(), most: self.most };
        let arranged = asked.all(places);
        let wanted = asked.wanted;
        if arranged.is_err() {
            self.held.extend(wanted);
            return arranged;
        }
        for path in self.held.difference(&wanted) {
            // It is gone, mostly.
            drop(watching.system.unwatch(path));
        }
        self.held = wanted;
        arranged
    }

    /// Ends the watching, and waits until the system's thread has ended.
    pub(super) async fn end(self) {
        let Some(Watching { system, ended }) = self.watcher else { return };
        drop(system);
        if timeout(END_WITHIN, ended.cancelled()).await.is_err() {
            tracing::warn!("the system's thread that watches folders does not end");
        }
    }
}

impl Watching {
    fn start(bell: Arc<Bell>) -> Result<Self, notify::Error> {
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        // Dropped in the order in which they are named: the guard is the last that the thread lets go of.
        let heard = move |event| {
            bell.hear(event);
            let _held_by_the_thread = &guard;
        };
        Ok(Self { system: notify::recommended_watcher(heard)?, ended })
    }
}

/// One round of asking the system.
struct Asked<'a> {
    watching: &'a mut Watching,
    held: &'a HashSet<PathBuf>,
    wanted: HashSet<PathBuf>,
    most: usize,
}

impl Asked<'_> {
    fn all(&mut self, places: &Places) -> Result<Watched, Unwatched> {
        let (whole_trees, watched) = match RecommendedWatcher::kind() {
            // It watches nothing but whole trees.
            WatcherKind::Fsevent => (true, Watched::Sources),
            WatcherKind::ReadDirectoryChangesWatcher => (true, Watched::All),
            _ => (false, Watched::All),
        };
        if watched == Watched::All {
            for step in &places.steps {
                self.one(&step.folder, RecursiveMode::NonRecursive, !whole_trees)?;
            }
        }
        for tree in &places.trees {
            match whole_trees {
                true => self.one(&tree.root, RecursiveMode::Recursive, false)?,
                false => self.tree(&tree.root, tree.layout, 0)?,
            }
        }
        Ok(watched)
    }

    /// Watches a folder and those below it, each before it is looked into; the depth bounds the recursion.
    fn tree(&mut self, folder: &Path, layout: Layout, depth: usize) -> Result<(), Unwatched> {
        self.one(folder, RecursiveMode::NonRecursive, true)?;
        if depth >= FOLDER_DEPTH_MAX {
            return Ok(());
        }
        // What cannot be read is told by the walk that reads the files.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && layout.enters(&entry.file_name().to_string_lossy(), depth) {
                self.tree(&entry.path(), layout, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Watches one folder; `anew` asks the system again for one that is held already, which costs it nothing and mends
    /// a watch of a folder that was replaced.
    fn one(&mut self, folder: &Path, mode: RecursiveMode, anew: bool) -> Result<(), Unwatched> {
        if !self.wanted.insert(folder.to_owned()) || (!anew && self.held.contains(folder)) {
            return Ok(());
        }
        if self.wanted.len() > self.most {
            self.wanted.remove(folder);
            return Err(Unwatched::TooMany { most: self.most });
        }
        let Err(error) = self.watching.system.watch(folder, mode) else { return Ok(()) };
        self.wanted.remove(folder);
        match &error.kind {
            // It has just gone, which its parent tells; or nobody may read it, which the walk tells.
            ErrorKind::PathNotFound => Ok(()),
            ErrorKind::Io(io) if io.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
            _ if !folder.exists() => Ok(()),
            _ => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests;
