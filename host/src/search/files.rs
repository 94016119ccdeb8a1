//! The files of an index on disk: mapped into memory, and never forced onto the disk, because what is damaged is found
//! at the next start and built anew. Tantivy's own files end in a checksum; the small ones, which list them, begin with
//! one here.
//!
//! The system ends a program that reads what a mapped file has no more, so whether one has become shorter is looked at before
//! each search and each update. A file that becomes shorter between that look and the end of what it is for still ends the
//! program, as does one below a merge; the next start has all that was stored. Bytes that become others are found by the next
//! query that fails for them, or the next start.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::directory::error::{DeleteError, LockError, OpenDirectoryError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};

use crate::registry::sha256_hex;

/// The small files: what the last commit is made of, and all files that there are.
pub(super) const LISTS: &[&str] = &["meta.json", ".managed.json"];
/// Hex digits of a checksum.
const CHECKSUM_CHARS: usize = 64;
/// Hex digits of a segment's id.
const SEGMENT_CHARS: usize = 32;

/// A folder with an index.
#[derive(Debug, Clone)]
pub(super) struct Files {
    mapped: MmapDirectory,
    folder: PathBuf,
}

/// A file that is written once.
struct Unsynced(File);

impl Files {
    /// The files in `folder`, which is there.
    pub(super) fn open(folder: &Path) -> Result<Self, OpenDirectoryError> {
        Ok(Self { mapped: MmapDirectory::open(folder)?, folder: folder.to_owned() })
    }
}

/// Files, and how long they were when they were mapped.
#[derive(Debug, Default)]
pub(super) struct Lengths(BTreeMap<PathBuf, u64>);

impl Lengths {
    /// Of the files in `folder` of these segments. What is `known` of a file stays: it is written once, and may have become
    /// shorter since.
    pub(super) fn of(folder: &Path, segments: &HashSet<String>, known: &Self) -> io::Result<Self> {
        let mut lengths = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if segment_of(&entry.file_name()).is_some_and(|id| segments.contains(id)) {
                let path = entry.path();
                if let Some(length) = known.0.get(&path) {
                    lengths.insert(path, *length);
                    continue;
                }
                // Not of the entry: on Windows that may tell an earlier length.
                match fs::metadata(&path) {
                    Ok(meta) => _ = lengths.insert(path, meta.len()),
                    // It is of no use any more.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(Self(lengths))
    }

    /// A file that has another length now. What is gone is still mapped, and nobody can change it.
    pub(super) fn changed(&self) -> Option<&Path> {
        let other = |(path, bytes): &(&PathBuf, &u64)| fs::metadata(path).is_ok_and(|meta| meta.len() != **bytes);
        self.0.iter().find(other).map(|(path, _)| path.as_path())
    }
}

/// The segment of which a file with this name is.
pub(super) fn segment_of(name: &OsStr) -> Option<&str> {
    let id = name.to_str()?.split('.').next()?;
    (id.len() == SEGMENT_CHARS && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
}

/// Removes the files of an index, and nothing else, from `folder`.
pub(super) fn clear(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let segment = segment_of(&entry.file_name()).is_some();
        let name = entry.file_name().to_string_lossy().into_owned();
        let list = LISTS.contains(&name.strip_suffix(".new").unwrap_or(&name));
        if (segment || list) && entry.file_type()?.is_file() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

impl Directory for Files {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.mapped.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.mapped.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.mapped.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let opened = OpenOptions::new().write(true).create_new(true).open(self.folder.join(path));
        let file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => OpenWriteError::FileAlreadyExists(path.to_owned()),
            _ => OpenWriteError::wrap_io_error(error, path.to_owned()),
        })?;
        Ok(BufWriter::new(Box::new(Unsynced(file))))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let mut content = self.mapped.atomic_read(path)?;
        let text = content.split_off(content.len().min(CHECKSUM_CHARS));
        if content != sha256_hex(&text).as_bytes() {
            let wrong = io::Error::new(io::ErrorKind::InvalidData, "its checksum is wrong");
            return Err(OpenReadError::wrap_io_error(wrong, path.to_owned()));
        }
        Ok(text)
    }

    /// In its place by a rename: whoever reads, also after a kill, has the old one or the new one.
    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        let mut name = path.as_os_str().to_owned();
        name.push(".new");
        let new = self.folder.join(name);
        fs::write(&new, [sha256_hex(data).as_bytes(), data].concat())?;
        fs::rename(new, self.folder.join(path))
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.mapped.acquire_lock(lock)
    }

    fn watch(&self, watch_callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.mapped.watch(watch_callback)
    }
}

impl Write for Unsynced {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl TerminatingWrite for Unsynced {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        self.0.flush()
    }
}
