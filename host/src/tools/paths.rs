//! Paths that a caller names, below a folder: nothing outside of it is ever looked at.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use crate::launcher::WORKTREES;

/// What is the host's own, behind all links: nobody who works for it is shown that.
#[derive(Debug, Default, Clone)]
pub(super) struct Own(Vec<PathBuf>);

impl Own {
    /// What of `private` may lie below `root`. A worktree in the state directory is its assistant's.
    pub(super) fn of(private: &[PathBuf], root: &Path) -> Self {
        let real = private.iter().filter_map(|path| path.canonicalize().ok());
        Self(real.filter(|own| !root.starts_with(own.join(WORKTREES))).collect())
    }

    /// Whether a path without links is part of it.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.0.iter().any(|own| path.starts_with(own))
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
}

/// A path below `root`, which is canonical, with links resolved. `wanted` is relative to it, or absolute below it.
///
/// # Errors
/// [`NotBelow`]. Whether something outside exists is not told.
pub(super) fn below(root: &Path, wanted: &str) -> Result<PathBuf, NotBelow> {
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
