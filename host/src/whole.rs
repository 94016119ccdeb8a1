//! Files that are written whole or not at all: beside their place first, and then under their name.
//!
//! Whoever writes holds a lock on the file beside until it is done. So what a killed process left is known by the lock
//! that nobody holds, and [`tidy`] takes it away.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{Error, ErrorKind, Result, Write};
use std::path::{Path, PathBuf};

use uuid::Uuid;

/// Files that are begun beside one place before that is given up: each is lost only to a [`tidy`] in the same moment.
const BEGUN_MAX: u32 = 4;
/// Entries of a folder among which what was left is looked for.
const LOOKED_AT_MAX: usize = 100_000;
/// What the name of a file that is not in its place yet ends with.
const ENDING: &str = ".new";

/// Who may read and write a new file.
pub(crate) enum Mode {
    /// As the system makes files.
    Usual,
    /// Its owner only.
    Private,
    /// As another one.
    #[cfg_attr(not(feature = "cli"), expect(dead_code, reason = "only commands write over files of others"))]
    Like(Permissions),
}

/// Writes a file in place of whatever file is there, if `still` says so when all is written.
///
/// # Errors
/// The system's, and those of `still`: what was there is there then.
pub(crate) fn put(path: &Path, text: &str, mode: Mode, still: impl FnOnce() -> Result<()>) -> Result<()> {
    beside(path, text, mode, |beside| {
        still()?;
        fs::rename(beside, path)
    })
}

/// Writes a file where there is none.
///
/// # Errors
/// The system's; [`ErrorKind::AlreadyExists`] where something is there.
#[cfg_attr(not(feature = "cli"), expect(dead_code, reason = "only commands write files of people"))]
pub(crate) fn put_new(path: &Path, text: &str) -> Result<()> {
    if path.symlink_metadata().is_ok() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    beside(path, text, Mode::Usual, |beside| {
        // A link takes no place that is taken, where a renamed file would.
        fs::hard_link(beside, path).or_else(|error| match error.kind() {
            ErrorKind::AlreadyExists => Err(error),
            _ => fs::rename(beside, path),
        })
    })
}

/// Makes the names in `folder` last, where folders can be synced.
///
/// # Errors
/// The system's.
pub(crate) fn keep(folder: &Path) -> Result<()> {
    if cfg!(unix) {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Takes away what processes that are gone have left beside the files of `folder`. Gives how many it was.
///
/// # Errors
/// The system's. A folder that is not there has nothing in it.
pub(crate) fn tidy(folder: &Path) -> Result<usize> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut gone = 0;
    for entry in entries.take(LOOKED_AT_MAX) {
        let entry = entry?;
        let ours = entry.file_name().to_str().is_some_and(is_beside) && entry.file_type()?.is_file();
        if ours && is_left(&entry.path())? {
            gone += 1;
        }
    }
    Ok(gone)
}

/// Takes the file away if nobody writes it; false where somebody does.
fn is_left(path: &Path) -> Result<bool> {
    // Who may not touch it cannot know either.
    let not_ours = |error: &Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied);
    let gone = |error: Error| if not_ours(&error) { Ok(false) } else { Err(error) };
    let file = match File::options().write(true).open(path) {
        Ok(file) => file,
        Err(error) => return gone(error),
    };
    match file.try_lock() {
        Ok(()) => fs::remove_file(path).map(|()| true).or_else(gone),
        // Who cannot lock cannot know.
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => Ok(false),
    }
}

/// Whether this is the name of a file that is not in its place yet.
fn is_beside(name: &str) -> bool {
    let inner = name.strip_prefix('.').and_then(|name| name.strip_suffix(ENDING));
    inner.and_then(|inner| inner.rsplit_once('.')).is_some_and(|(_, id)| id.parse::<Uuid>().is_ok())
}

/// Writes a file beside `path`, and has `place` give it that name. Nothing is left beside it.
fn beside(path: &Path, text: &str, mode: Mode, place: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let (beside, mut file) = begin(path, matches!(mode, Mode::Private))?;
    let placed = (|| {
        if let Mode::Like(permissions) = mode {
            file.set_permissions(permissions)?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        place(&beside)
    })();
    // Renamed, it is there no more; else what failed is the error to tell, and the next `tidy` takes the rest.
    drop(fs::remove_file(&beside));
    placed
}

/// A new locked file beside `path`.
fn begin(path: &Path, private: bool) -> Result<(PathBuf, File)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for _ in 0..BEGUN_MAX {
        let beside = path.with_file_name(format!(".{name}.{}{ENDING}", Uuid::now_v7()));
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if private {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        #[cfg(not(unix))]
        let _ = private;
        let file = options.open(&beside)?;
        let lost = match file.try_lock() {
            // Locked by someone who tidies, or taken away before it was locked.
            Err(TryLockError::WouldBlock) => true,
            Ok(()) => !beside.try_exists()?,
            // Where nobody can lock nobody tidies.
            Err(TryLockError::Error(_)) => false,
        };
        if !lost {
            return Ok((beside, file));
        }
    }
    Err(Error::other("what was begun was taken away each time; try again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_written_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.md");
        let check = |put: Result<()>, want: std::result::Result<(), ErrorKind>, text: &str| {
            let there = fs::read_dir(folder.path()).expect("a folder").count();
            let found = (put.map_err(|error| error.kind()), fs::read_to_string(&path).expect("a file"), there);
            assert_eq!(found, (want, text.to_owned(), 1));
        };
        check(put_new(&path, "one"), Ok(()), "one");
        check(put_new(&path, "two"), Err(ErrorKind::AlreadyExists), "one");
        check(put(&path, "three", Mode::Usual, || Ok(())), Ok(()), "three");
        let no = || Err(ErrorKind::Interrupted.into());
        check(put(&path, "four", Mode::Private, no), Err(ErrorKind::Interrupted), "three");
        keep(folder.path()).expect("kept");
    }

    #[test]
    fn only_what_nobody_writes_is_taken_away() {
        let folder = tempfile::tempdir().expect("a folder");
        let id = Uuid::nil();
        let mine = [format!(".a.md.{id}.new"), "a.md".into(), ".a.md.1.new".into(), format!("a.md.{id}.new")];
        for name in &mine {
            fs::write(folder.path().join(name), "half").expect("a file");
        }
        let (writing, file) = begin(&folder.path().join("b.md"), true).expect("begun");
        let check = |want: usize, left: bool| {
            assert_eq!(tidy(folder.path()).expect("tidied"), want);
            assert_eq!(writing.exists(), left);
        };
        check(1, true);
        drop(file);
        check(1, false);
        check(0, false);
        for name in &mine[1..] {
            assert!(folder.path().join(name).exists(), "{name}");
        }
        assert_eq!(tidy(&folder.path().join("nowhere")).expect("nothing"), 0);
    }
}
