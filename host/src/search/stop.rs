//! An index that can be told to be written no more, in the middle of a file too: nobody has to wait for a merge, and tantivy
//! knows no other way to end one.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, Directory, DirectoryLock, FileHandle, Lock, TerminatingWrite, WatchCallback, WatchHandle, WritePtr,
};

/// Whether whoever writes is to stop.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

/// Files that are written until that is stopped.
#[derive(Debug, Clone)]
pub(super) struct Stoppable {
    files: Box<dyn Directory>,
    stop: Stop,
}

/// A file that is being written.
struct Writing {
    file: WritePtr,
    stop: Stop,
}

impl Stop {
    /// What is being written fails with its next bytes, and nothing new is begun.
    pub(super) fn tell(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(super) fn is_told(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn check(&self) -> io::Result<()> {
        if self.is_told() { Err(io::Error::other("the search index is written no more")) } else { Ok(()) }
    }
}

impl Stoppable {
    pub(super) fn new(files: impl Into<Box<dyn Directory>>, stop: Stop) -> Self {
        Self { files: files.into(), stop }
    }
}

impl Directory for Stoppable {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.files.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.files.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.files.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        self.stop.check().map_err(|error| OpenWriteError::wrap_io_error(error, path.to_owned()))?;
        let file = self.files.open_write(path)?;
        Ok(BufWriter::new(Box::new(Writing { file, stop: self.stop.clone() })))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.files.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.files.atomic_write(path, data)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.files.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.files.acquire_lock(lock)
    }

    fn watch(&self, watch_callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.files.watch(watch_callback)
    }
}

impl Write for Writing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stop.check()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl TerminatingWrite for Writing {
    fn terminate_ref(&mut self, token: AntiCallToken) -> io::Result<()> {
        self.stop.check()?;
        self.file.terminate_ref(token)
    }
}
