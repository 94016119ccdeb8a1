//! Steps between the jobs of a host's store.
//!
//! Whatever a host changes is a job of its one writer, and the writer asks the clock before each job. A [`Gate`] is that
//! clock: it can hold the writer before a job, so that a test puts another job right behind it, and it can look at the
//! files of the store at each place where a `kill -9` could leave them.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use assistant_host::store::{self, Clock};

use crate::bed::SOON;
use crate::oracle;

/// The name of the thread that a store writes in.
const WRITER: &str = "store";

/// What is done before a job.
type Before = Box<dyn FnMut() + Send>;

/// The clock of a host, and what it does before each job.
#[derive(Clone, Default)]
pub struct Gate(Arc<Mutex<Option<Before>>>);

impl Gate {
    /// The clock to open a host with.
    pub fn clock(&self) -> Clock {
        let gate = self.clone();
        Arc::new(move || {
            if std::thread::current().name() == Some(WRITER)
                && let Some(before) = &mut *gate.lock()
            {
                before();
            }
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Before>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds the writer before a job, after letting `first` others pass.
    pub fn hold(&self, first: usize) -> Held {
        let (here, held) = sync_channel(1);
        let (let_go, going) = sync_channel::<()>(1);
        let mut left = first;
        let mut done = false;
        *self.lock() = Some(Box::new(move || {
            if done {
                return;
            }
            if left > 0 {
                left -= 1;
                return;
            }
            done = true;
            if here.send(()).is_ok() {
                // An error is: the test has dropped its end, and nothing is held any more.
                let _ = going.recv_timeout(SOON);
            }
        }));
        Held { held, let_go }
    }

    /// Waits until the store has nothing to do: until `ms` milliseconds pass without a job.
    pub async fn quiet(&self, ms: u64) {
        loop {
            let mut held = self.hold(0);
            let busy = held.within(ms).await;
            held.release();
            self.open();
            if !busy {
                return;
            }
        }
    }

    /// Looks at the store in `state` before each job, as it would be found after a `kill -9`. What is wrong is told by
    /// [`Photos::wrong`].
    pub fn photograph(&self, state: &Path) -> Photos {
        let photos = Photos::default();
        let (told, state) = (photos.clone(), state.to_owned());
        *self.lock() = Some(Box::new(move || told.take(&state)));
        photos
    }

    /// Lets all jobs pass again.
    pub fn open(&self) {
        *self.lock() = None;
    }
}

/// A writer that is held, or will be.
pub struct Held {
    held: Receiver<()>,
    let_go: SyncSender<()>,
}

impl Held {
    /// Waits until the writer is held before its job; false where no job comes within `ms` milliseconds.
    pub async fn within(&mut self, ms: u64) -> bool {
        let within = std::time::Duration::from_millis(ms);
        tokio::task::block_in_place(|| self.held.recv_timeout(within)).is_ok()
    }

    /// Waits until the writer is held before its job.
    ///
    /// # Panics
    /// Where no job comes.
    pub async fn reached(&mut self) {
        let within = u64::try_from(SOON.as_millis()).unwrap_or(u64::MAX);
        assert!(self.within(within).await, "no job came that could be held");
    }

    /// Lets the job go, and what was queued behind it.
    pub fn release(self) {
        // Nobody waits where it was not held.
        let _ = self.let_go.try_send(());
    }
}

/// What was seen of a store between its jobs.
#[derive(Clone, Default)]
pub struct Photos(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    count: usize,
    wrong: Vec<String>,
}

impl Photos {
    fn take(&self, state: &Path) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.count += 1;
        let number = seen.count;
        let wrong = match copied(state) {
            Ok(copy) => oracle::check(&copy.path().join(store::FILE)),
            Err(error) => vec![format!("the store cannot be copied: {error}")],
        };
        seen.wrong.extend(wrong.into_iter().map(|wrong| format!("killed before job {number}: {wrong}")));
    }

    /// How often was looked.
    pub fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// What was wrong, with the place.
    pub fn wrong(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).wrong.clone()
    }
}

/// A copy of a state directory's store, as a `kill -9` would leave it now.
///
/// # Errors
/// The system's.
pub fn copied(state: &Path) -> std::io::Result<tempfile::TempDir> {
    let copy = tempfile::tempdir()?;
    copy_store(state, copy.path())?;
    Ok(copy)
}

/// Copies the store of one state directory into another one.
///
/// # Errors
/// The system's.
pub fn copy_store(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    // The log last: what is copied out of it into the file stays in it while the writer is held.
    for name in [PathBuf::from(store::FILE), PathBuf::from(format!("{}-wal", store::FILE))] {
        if from.join(&name).exists() {
            std::fs::copy(from.join(&name), to.join(&name))?;
        }
    }
    Ok(())
}
