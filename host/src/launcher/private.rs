//! A folder for the files of launchers that only this user may enter: sockets of connections.

use std::path::{Path, PathBuf};

use super::passed_on;
use crate::host::make_private;

/// The folder in the state directory.
const FOLDER: &str = "launch";
/// The longest path of a folder in which a connection's socket has room, bytes: its name has 49, and 17 more while it is
/// made; the whole has at most 104.
const PATH_BYTES_MAX: usize = 36;

/// The folder, made where it is not there; a short path where that of the state directory is too long.
pub(super) fn folder(state: &Path) -> Option<PathBuf> {
    let near = state.join(FOLDER);
    let folder = if near.as_os_str().len() <= PATH_BYTES_MAX {
        near
    } else {
        let run = passed_on(&["XDG_RUNTIME_DIR"]).next().map(|(_, path)| PathBuf::from(path));
        run.filter(|path| path.is_absolute()).unwrap_or_else(std::env::temp_dir).join(short())
    };
    make_private(&folder).ok()?;
    is_private(&folder).then_some(folder)
}

#[cfg(unix)]
fn short() -> String {
    format!("assistant-launch-{}", rustix::process::geteuid().as_raw())
}

#[cfg(not(unix))]
fn short() -> String {
    "assistant-launch".to_owned()
}

/// Whether nobody else may enter it, and nobody else has made it.
#[cfg(unix)]
fn is_private(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let ours = |meta: &std::fs::Metadata| {
        meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o077 == 0
    };
    folder.symlink_metadata().is_ok_and(|meta| ours(&meta))
}

#[cfg(not(unix))]
fn is_private(_: &Path) -> bool {
    true
}
