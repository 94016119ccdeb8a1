//! Reading and writing a client's file: whole or not at all.

use std::fs::{self, File};
use std::io::{Error, ErrorKind, Read, Result};
use std::path::{Path, PathBuf};

use crate::whole::{self, Mode};

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
        replace(path, Mode::Usual, text, || match fs::symlink_metadata(path) {
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
            replace(&backup, Mode::Like(mode.clone()), old, || Ok(()))?;
            Some(backup)
        }
    };
    replace(&path, Mode::Like(mode), text, same)?;
    Ok(made)
}

/// Writes a file and gives it the name `path` if `still` says so.
fn replace(path: &Path, mode: Mode, text: &str, still: impl FnOnce() -> Result<()>) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    whole::put(path, text, mode, still)?;
    whole::keep(folder)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn changed() -> Error {
    Error::other("another program has changed it in this moment; try again")
}
