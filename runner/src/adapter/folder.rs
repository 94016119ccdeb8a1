//! A private folder for the files of an agent: its prompt, its settings. It goes with the adapter.
//!
//! All of them lie in one folder of the user. Each is held by a lock for as long as its adapter lives, so a later start
//! knows those of killed adapters by a lock that is free, whatever number their process had, and removes them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// The file whose lock holds a folder; that of the folder around them all has the same name.
const LOCK: &str = "lock";
/// Folders of killed adapters that one start removes.
const REMOVED_MAX: usize = 100;
/// Names that are tried for a folder.
const NAMES_MAX: u32 = 1_000;

/// A folder that only this user can look into, 0700; removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Open, and locked, for as long as the folder is used.
    _held: File,
}

impl Folder {
    /// Makes one below `temporary`, and removes what killed adapters have left there.
    ///
    /// # Errors
    /// The folder around it belongs to somebody else, or the system says no.
    pub(crate) fn make(temporary: &Path) -> io::Result<Self> {
        let uid = rustix::process::getuid().as_raw();
        let around = temporary.join(format!("assistant-runner-{uid}"));
        make_private(&around).or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Ok(()),
            _ => Err(error),
        })?;
        let found = fs::symlink_metadata(&around)?;
        if !found.is_dir() || found.uid() != uid || found.mode() & 0o077 != 0 {
            let text = format!("{} is not a folder that only this user can look into", around.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        remove_left(&around)?;
        // A folder that is being made is not locked yet: who removes waits for who makes.
        let making = open_lock(&around)?;
        flock(&making, FlockOperation::LockShared)?;
        for number in 0..NAMES_MAX {
            let path = around.join(format!("{:x}-{number:x}", std::process::id()));
            match make_private(&path) {
                Ok(()) => {
                    let held = open_lock(&path)?;
                    flock(&held, FlockOperation::NonBlockingLockExclusive)?;
                    return Ok(Self { path, _held: held });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} has no name left", around.display())))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file of it, 0600, whole; gives its path.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> io::Result<PathBuf> {
        let (path, new) = (self.path.join(name), self.path.join(format!("{name}.new")));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(content)?;
        fs::rename(&new, &path)?;
        Ok(path)
    }

    /// Makes a folder in it, where there is none of this name; gives its path.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn folder(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        match make_private(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            Ok(()) | Err(_) => Ok(path),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed now is removed by a later start.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

fn open_lock(folder: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(folder.join(LOCK))
}

/// Removes the folders that nobody holds. One that cannot be removed, or that its holder removes just now, is left to a
/// later start.
fn remove_left(around: &Path) -> io::Result<()> {
    let removing = open_lock(around)?;
    if flock(&removing, FlockOperation::NonBlockingLockExclusive).is_err() {
        // Another one starts: the next one removes.
        return Ok(());
    }
    let folders = fs::read_dir(around)?.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    let is_left = |path: &PathBuf| {
        open_lock(path).is_ok_and(|held| flock(&held, FlockOperation::NonBlockingLockExclusive).is_ok())
    };
    for left in folders.filter(is_left).take(REMOVED_MAX) {
        let _ = fs::remove_dir_all(left);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn folders_are_private_and_go_with_their_holders() {
        let temporary = std::env::temp_dir().join(format!("assistant-runner-folder-{}", std::process::id()));
        fs::create_dir_all(&temporary).expect("a folder");
        let one = Folder::make(&temporary).expect("makes");
        let file = one.write("a", b"1").and_then(|_| one.write("a", b"2")).expect("writes");
        assert_eq!(fs::read(&file).expect("reads"), b"2");
        let mode = |path: &Path| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
        assert_eq!((mode(one.path()), mode(&file)), (0o700, 0o600));
        // One that was killed has no lock any more.
        let left = one.path().parent().expect("a parent").join("dead-0");
        fs::create_dir(&left).expect("makes");
        fs::write(left.join("prompt"), "secret").expect("writes");
        let two = Folder::make(&temporary).expect("makes");
        assert!(!left.exists(), "removed");
        assert!(one.path().exists() && one.path() != two.path(), "kept");
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists(), "gone with its holder");
        fs::set_permissions(two.path().parent().expect("a parent"), fs::Permissions::from_mode(0o755)).expect("sets");
        let refused = Folder::make(&temporary).expect_err("refused").to_string();
        assert!(refused.ends_with("is not a folder that only this user can look into"), "{refused}");
        drop(two);
        fs::remove_dir_all(&temporary).expect("removes");
    }
}
