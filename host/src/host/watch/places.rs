//! What is worth watching: the sources, and on the way to each the folder where it would appear.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Component, Path, PathBuf};

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind};

use crate::registry::{Layout, SourceDir};

/// Most links on the way to a source; systems follow as many.
const LINKS_MAX: usize = 40;

/// What is to be watched for some sources, as it is at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) steps: Vec<Step>,
    pub(super) trees: Vec<Tree>,
}

/// A name on the way to a source that leads elsewhere when it changes: a link, the source itself, the first part that is
/// not there, or the folder which that is missing in. That one does not tell when it goes, as long as a program works in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// Where the name is; no link is on the way to it.
    pub(super) folder: PathBuf,
    name: OsString,
}

/// A source that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tree {
    /// The folder; no link is on the way to it.
    pub(super) root: PathBuf,
    pub(super) layout: Layout,
}

/// What an event has to do with the sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Concern {
    /// Nothing.
    None,
    /// A file of theirs may be another.
    Changed,
    /// A watched folder may be another too, or events were lost.
    Moved,
}

impl Places {
    pub(super) fn of(sources: &[SourceDir]) -> Self {
        let mut places = Self::default();
        for source in sources {
            let Some(root) = places.find(&source.path) else { continue };
            let tree = Tree { root, layout: source.layout };
            if !places.trees.contains(&tree) {
                places.trees.push(tree);
            }
        }
        places
    }

    /// Follows the way to `path`, and notes the steps by which it may come to lead elsewhere. None where it leads nowhere.
    fn find(&mut self, path: &Path) -> Option<PathBuf> {
        let path = std::path::absolute(path).ok()?;
        let mut at = PathBuf::new();
        let mut rest: VecDeque<OsString> = parts(&path).collect();
        let mut links = 0;
        while let Some(part) = rest.pop_front() {
            match Path::new(&part).components().next() {
                Some(Component::Normal(name)) => {
                    let next = at.join(name);
                    let meta = fs::symlink_metadata(&next);
                    let is_link = meta.as_ref().is_ok_and(|meta| meta.is_symlink());
                    if meta.is_err()
                        && let (Some(above), Some(of)) = (at.parent(), at.file_name())
                    {
                        self.step(above, of);
                    }
                    if is_link || meta.is_err() || rest.is_empty() {
                        self.step(&at, name);
                    }
                    if !is_link {
                        meta.ok()?;
                        at = next;
                        continue;
                    }
                    links += 1;
                    let target = fs::read_link(&next).ok().filter(|_| links <= LINKS_MAX)?;
                    parts(&target).collect::<Vec<_>>().into_iter().rev().for_each(|part| rest.push_front(part));
                }
                Some(Component::ParentDir) => _ = at.pop(),
                Some(Component::Prefix(_) | Component::RootDir) => at.push(&part),
                Some(Component::CurDir) | None => {}
            }
        }
        Some(at)
    }

    fn step(&mut self, folder: &Path, name: &OsStr) {
        let step = Step { folder: folder.to_owned(), name: name.to_owned() };
        if !self.steps.contains(&step) {
            self.steps.push(step);
        }
    }

    pub(super) fn concern(&self, event: &Event) -> Concern {
        if event.need_rescan() {
            return Concern::Moved;
        }
        let content = match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) | EventKind::Modify(ModifyKind::Data(_)) => true,
            // That is what reading the files does.
            EventKind::Access(_) => return Concern::None,
            _ => false,
        };
        // An event without a path could be of anything.
        if event.paths.is_empty() || (!content && event.paths.iter().any(|path| self.is_step(path))) {
            return Concern::Moved;
        }
        match event.paths.iter().any(|path| self.trees.iter().any(|tree| tree.has(path, content))) {
            true => Concern::Changed,
            false => Concern::None,
        }
    }

    /// Whether `path` is a name that may lead elsewhere now, or a folder that is watched itself.
    fn is_step(&self, path: &Path) -> bool {
        let watched = self.steps.iter().any(|step| step.folder == path || step.is(path));
        watched || self.trees.iter().any(|tree| tree.root == path)
    }
}

/// A path in pieces of one part each.
fn parts(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().map(|part| part.as_os_str().to_owned())
}

impl Step {
    /// In any case: a file system may know a name by another one.
    fn is(&self, path: &Path) -> bool {
        path.parent() == Some(&self.folder)
            && path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(&self.name))
    }
}

impl Tree {
    /// Whether a file or folder could be one of the source; where only its content changed, whether it is read.
    fn has(&self, path: &Path, content: bool) -> bool {
        let Ok(below) = path.strip_prefix(&self.root) else { return false };
        let names: Vec<_> = below.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        let Some((name, folders)) = names.split_last() else { return !content };
        let depth = folders.len();
        folders.iter().enumerate().all(|(depth, folder)| self.layout.enters(folder, depth))
            && (self.layout.takes(name, depth) || (!content && self.layout.enters(name, depth)))
    }
}

#[cfg(test)]
mod tests;
