//! Paths that a caller names, below a folder: nothing outside of it is ever looked at.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use crate::launcher::WORKTREES;

#[cfg_attr(not(unix), path = "paths/nameless.rs")]
mod identity;

use identity::Identity;

/// A folder below which paths are named.
#[derive(Debug, Clone)]
pub(super) struct Root {
    /// Without links.
    pub(super) path: PathBuf,
    /// What in it is the host's own.
    pub(super) own: Below,
}

/// What is the host's own: nobody who works for it is shown that, by whatever name.
#[derive(Debug, Default, Clone)]
pub(crate) struct Own(Vec<(PathBuf, Option<Identity>)>);

impl Own {
    /// What lies at these paths now, and what will.
    pub(crate) fn noted(private: &[PathBuf]) -> Self {
        Self(private.iter().map(|path| (path.clone(), identity::of_target(path))).collect())
    }

    /// What of it may lie below `root`. A worktree in the state directory is its assistant's.
    fn seen_from(&self, root: &Path) -> Below {
        let mut found = Below::default();
        for (path, noted) in &self.0 {
            let real = path.canonicalize().ok();
            if real.as_ref().is_some_and(|real| root.starts_with(real.join(WORKTREES))) {
                continue;
            }
            found.identities.extend([*noted, real.as_deref().and_then(identity::of_target)].into_iter().flatten());
            found.paths.extend(real);
        }
        found
    }
}

/// What of the host's own may lie below a folder.
#[derive(Debug, Default, Clone)]
pub(super) struct Below {
    /// Where it is, behind all links.
    paths: Vec<PathBuf>,
    /// What it is: it may have been moved, or have another name.
    identities: Vec<Identity>,
}

impl Below {
    /// Whether a path without links is part of it.
    pub(super) fn has(&self, path: &Path) -> bool {
        path.ancestors().any(|path| self.is(path))
    }

    /// The same where none of the folders around it is.
    pub(super) fn is(&self, path: &Path) -> bool {
        let is_known = |own: &Identity| self.identities.contains(own);
        self.paths.iter().any(|own| path.starts_with(own)) || identity::of(path).as_ref().is_some_and(is_known)
    }
}

/// Why a path cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotBelow {
    /// It leads out of the folder, by itself or by a link.
    #[error("lies outside of the folder")]
    Outside,
    /// There is nothing.
    #[error("does not exist")]
    Missing,
    /// It cannot be looked at.
    #[error("cannot be read")]
    Unreadable,
    /// It is part of what nobody is shown, or would be.
    #[error("is the host's own")]
    Own,
}

impl Root {
    /// A folder, in which nothing of `own` is found.
    ///
    /// # Errors
    /// The folder is gone.
    pub(super) fn new(folder: &Path, own: &Own) -> std::io::Result<Self> {
        let path = folder.canonicalize()?;
        Ok(Self { own: own.seen_from(&path), path })
    }

    /// A path in it, with links resolved. `wanted` is relative to it, or absolute below it.
    ///
    /// # Errors
    /// [`NotBelow`]. Whether something exists outside, or among what is the host's own, is not told.
    pub(super) fn below(&self, wanted: &str) -> Result<PathBuf, NotBelow> {
        let found = below(&self.path, wanted);
        let there = |path: PathBuf| path.ancestors().find_map(|path| path.canonicalize().ok());
        let is_own = match &found {
            Ok(found) => self.own.has(found),
            Err(NotBelow::Missing) => there(self.path.join(wanted)).is_some_and(|path| self.own.has(&path)),
            Err(NotBelow::Outside | NotBelow::Unreadable | NotBelow::Own) => false,
        };
        if is_own { Err(NotBelow::Own) } else { found }
    }
}

fn below(root: &Path, wanted: &str) -> Result<PathBuf, NotBelow> {
    let wanted = Path::new(wanted);
    let wanted = wanted.strip_prefix(root).unwrap_or(wanted);
    let mut depth = 0_i32;
    for part in wanted.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::ParentDir => depth -= 1,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return Err(NotBelow::Outside),
        }
        if depth < 0 {
            return Err(NotBelow::Outside);
        }
    }
    let found = root.join(wanted).canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound => NotBelow::Missing,
        _ => NotBelow::Unreadable,
    })?;
    if found.starts_with(root) { Ok(found) } else { Err(NotBelow::Outside) }
}
