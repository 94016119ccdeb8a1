//! Files of an index that tell each step of whoever writes them.

use std::path::Path;
use std::sync::Arc;

use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{Directory, DirectoryLock, FileHandle, Lock, WatchCallback, WatchHandle, WritePtr};

use super::*;
use crate::search::files::Files;

/// A step of whoever writes.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Step {
    /// A file is there, with nothing in it.
    Opened,
    /// A file is about to be opened for reading.
    Read,
    /// A file is about to be removed.
    Deleted,
    /// Any other.
    Other,
}

/// Files of an index, and what is done at each step.
#[derive(Clone)]
pub(super) struct Watched {
    files: Files,
    step: Arc<dyn Fn(Step) + Send + Sync>,
}

impl Watched {
    pub(super) fn new(folder: &Path, step: impl Fn(Step) + Send + Sync + 'static) -> Self {
        Self { files: Files::open(folder).expect("files"), step: Arc::new(step) }
    }

    /// The index in the folder, which is of `registry`.
    pub(super) fn index(self, registry: &Registry) -> SearchIndex {
        let index = index::open_in(Box::new(self) as Box<dyn Directory>).expect("whole").expect("an index");
        SearchIndex::caught_up(index, registry).expect("an index")
    }
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.files.fmt(f)
    }
}

impl Directory for Watched {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        (self.step)(Step::Read);
        self.files.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        (self.step)(Step::Deleted);
        self.files.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.files.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        (self.step)(Step::Other);
        let opened = self.files.open_write(path);
        (self.step)(Step::Opened);
        opened
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.files.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> std::io::Result<()> {
        (self.step)(Step::Other);
        self.files.atomic_write(path, data)
    }

    fn sync_directory(&self) -> std::io::Result<()> {
        (self.step)(Step::Other);
        self.files.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.files.acquire_lock(lock)
    }

    fn watch(&self, watch_callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.files.watch(watch_callback)
    }
}
