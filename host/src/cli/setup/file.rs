//! Reading and writing a client's file: whole or not at all.

use std::fs::{self, File};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::path::{Path, PathBuf};

/// The largest file that is read, bytes.
const FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The text of a file; none where there is no file.
pub(super) fn read(path: &Path) -> Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        // A link to nothing is no place to write to.
        Err(error) if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::InvalidData, "it is no UTF-8"))?;
    Ok(Some(text))
}

/// Writes a file anew in place of one whose text was `old`: beside it, to the disk, and then under its name. Its mode
/// stays, and a link to it does. What was there is kept in `FILE.bak`, once; where that is made now, it is told.
///
/// # Errors
/// The system's; a file that has changed since `old` was read.
pub(super) fn write(path: &Path, old: Option<&str>, text: &str) -> Result<Option<PathBuf>> {
    let Some(old) = old else {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        replace(path, None, text, || match fs::symlink_metadata(path) {
            Ok(_) => Err(changed()),
            Err(_) => Ok(()),
        })?;
        return Ok(None);
    };
    let path = fs::canonicalize(path)?;
    let same = || if read(&path)?.as_deref() == Some(old) { Ok(()) } else { Err(changed()) };
    let backup = with_suffix(&path, ".bak");
    let mode = fs::metadata(&path)?.permissions();
    let made = match fs::symlink_metadata(&backup) {
        Ok(_) => None,
        Err(_) => {
            replace(&backup, Some(mode.clone()), old, || Ok(()))?;
            Some(backup)
        }
    };
    replace(&path, Some(mode), text, same)?;
    Ok(made)
}

/// Writes a file beside `path` and gives it that name if `still` says so.
fn replace(path: &Path, mode: Option<fs::Permissions>, text: &str, still: impl FnOnce() -> Result<()>) -> Result<()> {
    let beside = with_suffix(path, &format!(".{}.new", std::process::id()));
    let written = (|| {
        let mut file = File::options().write(true).create_new(true).open(&beside)?;
        if let Some(mode) = mode {
            file.set_permissions(mode)?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        still()?;
        fs::rename(&beside, path)
    })();
    if written.is_err() {
        // What failed is told; a rest of it may be there or not.
        drop(fs::remove_file(&beside));
        return written;
    }
    sync_folder(path)
}

/// Makes the new name durable, where folders can be synced.
fn sync_folder(path: &Path) -> Result<()> {
    if cfg!(unix)
        && let Some(folder) = path.parent()
    {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn changed() -> Error {
    Error::other("another program has changed it in this moment; try again")
}
