//! What a file is, by whatever name: unix.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

/// The device and the number there, and since when: numbers are used again.
pub(super) type Identity = (u64, u64, Option<SystemTime>);

fn identity(meta: &Metadata) -> Identity {
    (meta.dev(), meta.ino(), meta.created().ok())
}

/// What is at a path; a link is itself.
pub(super) fn of(path: &Path) -> Option<Identity> {
    path.symlink_metadata().ok().as_ref().map(identity)
}

/// What a path leads to.
pub(super) fn of_target(path: &Path) -> Option<Identity> {
    path.metadata().ok().as_ref().map(identity)
}
