//! The files of the sources as they were read, so that the next reading opens only those that changed.

use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::definition::{Definition, Source};
use super::diagnostic::Diagnostic;
use super::hash::sha256_hex;
use super::places::SourceDir;
use super::{Registry, reader, walk};

/// A file that changed so recently may change again without another stamp: FAT counts in steps of two seconds.
const SETTLED_AFTER: Duration = Duration::from_secs(2);
/// Threads that read files at once; more find nothing more to do on the disks that there are.
const READERS_MAX: usize = 8;
/// Files from which on another thread is worth its start.
const FILES_PER_READER: usize = 64;

/// What was read of the sources, at one time.
#[derive(Debug, Clone, Default)]
pub struct Files {
    registry: Arc<Registry>,
    known: HashMap<PathBuf, Known>,
}

/// What a file was.
#[derive(Debug, Clone)]
struct Known {
    source: Source,
    /// None where the file has to be read again, whatever its stamp will be.
    stamp: Option<Stamp>,
    read: Result<Arc<Definition>, Diagnostic>,
}

/// By what a file that changed is known without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: SystemTime,
    /// On Unix device, inode and the time of the last change of any kind, which nobody can set back.
    #[cfg(unix)]
    changed: (u64, u64, i64, i64),
    /// Elsewhere the time when the file was made.
    #[cfg(not(unix))]
    changed: Option<SystemTime>,
}

impl Files {
    /// The assistants of the files.
    #[must_use]
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Reads the sources again: files that are as they were are not opened, and their definitions are the same ones
    /// (`Arc::ptr_eq`). The result is what [`Registry::read`] gives.
    ///
    /// `now` is the time of the machine: a file that was changed just before may change again unseen, so it is read
    /// next time too.
    #[must_use]
    pub fn again(&self, sources: &[SourceDir], now: SystemTime) -> Self {
        let mut skipped = Vec::new();
        let candidates = candidates(sources, &mut skipped);
        let mut found = Vec::new();
        let mut known = HashMap::with_capacity(candidates.len());
        for (path, read) in self.read(candidates, now) {
            match &read.read {
                Ok(definition) => found.push(definition.clone()),
                Err(reason) => skipped.push(reason.clone()),
            }
            known.insert(path, read);
        }
        skipped.sort_by(|a, b| a.file.cmp(&b.file).then(a.code.cmp(&b.code)));
        skipped.dedup();
        Self { registry: Arc::new(Registry::of(found, Vec::new(), skipped)), known }
    }

    /// Reads the candidates, in their order.
    fn read(&self, candidates: Vec<(PathBuf, Source)>, now: SystemTime) -> Vec<(PathBuf, Known)> {
        let one = |(path, source): (PathBuf, Source)| {
            let read = self.one(&path, source, now);
            (path, read)
        };
        let readers = std::thread::available_parallelism().map_or(1, usize::from).min(READERS_MAX);
        let readers = readers.min(candidates.len() / FILES_PER_READER);
        if readers < 2 {
            return candidates.into_iter().map(one).collect();
        }
        let share = candidates.len().div_ceil(readers);
        let mut candidates = candidates.into_iter();
        std::thread::scope(|scope| {
            let part = |_| candidates.by_ref().take(share).collect::<Vec<_>>();
            let parts: Vec<_> = (0..readers).map(part).collect();
            let start = |part: Vec<_>| scope.spawn(move || part.into_iter().map(one).collect::<Vec<_>>());
            let started: Vec<_> = parts.into_iter().map(start).collect();
            let ended = started.into_iter().map(|reader| reader.join());
            ended.flat_map(|read| read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        })
    }

    fn one(&self, path: &Path, source: Source, now: SystemTime) -> Known {
        // Before the bytes: what changes in between has another stamp then than the one that is kept.
        let stamp = fs::symlink_metadata(path).ok().and_then(|meta| Stamp::of(&meta));
        let known = self.known.get(path).filter(|known| known.source == source);
        if let Some(known) = known.filter(|known| known.stamp.is_some() && known.stamp == stamp) {
            return known.clone();
        }
        let read = walk::read(path).map_err(|why| reader::stray(why, path)).and_then(|bytes| {
            match known.map(|known| &known.read) {
                Some(Ok(same)) if same.content_hash == sha256_hex(&bytes) => Ok(same.clone()),
                _ => reader::read(&bytes, path, source).map(Arc::new),
            }
        });
        Known { source, stamp: stamp.filter(|stamp| stamp.is_settled(now)), read }
    }
}

/// The files to read, first in precedence first. Where links make two sources of one folder, the first has its files.
fn candidates(sources: &[SourceDir], skipped: &mut Vec<Diagnostic>) -> Vec<(PathBuf, Source)> {
    let mut candidates = Vec::new();
    let (mut roots, mut real) = (HashSet::new(), HashSet::new());
    for dir in sources {
        let Some(root) = walk::root(dir, skipped) else { continue };
        if !roots.insert((root.clone(), dir.layout)) {
            continue;
        }
        for path in walk::files(dir, &root, skipped) {
            let below = path.strip_prefix(&dir.path).unwrap_or(&path);
            if real.insert(root.join(below)) {
                candidates.push((path, dir.source));
            }
        }
    }
    candidates
}

impl Stamp {
    /// None on a system that tells no time of a change.
    fn of(meta: &Metadata) -> Option<Self> {
        #[cfg(unix)]
        let changed = {
            use std::os::unix::fs::MetadataExt;
            (meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec())
        };
        #[cfg(not(unix))]
        let changed = meta.created().ok();
        Some(Self { bytes: meta.len(), modified: meta.modified().ok()?, changed })
    }

    /// Whether the next change is sure to give another stamp.
    fn is_settled(&self, now: SystemTime) -> bool {
        #[cfg(unix)]
        let changed = {
            let (_, _, secs, nanos) = self.changed;
            let since = Duration::new(u64::try_from(secs).unwrap_or(0), u32::try_from(nanos).unwrap_or(0));
            SystemTime::UNIX_EPOCH + since
        };
        #[cfg(not(unix))]
        let changed = self.modified;
        // A time that is yet to come is of another clock.
        now.duration_since(self.modified.max(changed)).is_ok_and(|since| since > SETTLED_AFTER)
    }
}

#[cfg(test)]
mod tests;
