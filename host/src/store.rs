//! One SQLite file, one writer.
//!
//! A job runs in a savepoint of its own; many jobs share one COMMIT. Nothing is answered and nobody is woken before
//! that COMMIT: what [`Store::write`] returned is on disk. Readers see committed states only.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::{Semaphore, mpsc};
use uuid::Uuid;

mod open;
mod wakes;
mod writer;

pub(crate) use wakes::{CHANGES, QUESTIONS, SUPERVISOR, Waiter, Wakes};

/// The database, in the state directory.
pub const FILE: &str = "assistant-host.db";
/// Jobs that wait for the writer; whoever adds one more waits.
const QUEUED_JOBS_MAX: usize = 4_096;
/// Connections that read at once.
const READERS_MAX: usize = 4;

/// Tells the time as Unix milliseconds.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Why the store did not do a job. Nothing of the job is kept.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// SQLite refused.
    #[error("the store failed: {0}")]
    Sqlite(Arc<rusqlite::Error>),
    /// The transaction that the job shared was undone by SQLite (disk full, an I/O error, no memory).
    #[error("the store undid the change: {0}")]
    RolledBack(String),
    /// The file belongs to a newer program.
    #[error("{} was written by a newer version of this program (schema {found}, this one knows {known}); use that version, or another state directory", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest schema that this program knows.
        known: i64,
    },
    /// The file or its folder cannot be used.
    #[error("cannot open {}: {message}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system says.
        message: String,
    },
    /// What is stored is not what was written.
    #[error("the store holds something unreadable: {0}")]
    Damaged(String),
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(Arc::new(error))
    }
}

/// The whole schema: the first one, and each step since.
#[must_use]
pub fn schema() -> String {
    open::MIGRATIONS.join("\n")
}

/// The open store of a host.
pub struct Store {
    path: PathBuf,
    jobs: Mutex<Option<mpsc::Sender<writer::Job>>>,
    writer: Mutex<Option<std::thread::JoinHandle<()>>>,
    readers: Mutex<Vec<Connection>>,
    reading: Semaphore,
    wakes: Arc<Wakes>,
}

/// What a job works with: the database within its savepoint, the time, and whom to wake after COMMIT.
pub struct Tx<'a> {
    /// The database.
    pub db: &'a Connection,
    /// The time of the job, never before that of an earlier job.
    pub now: i64,
    wakes: RefCell<Vec<Uuid>>,
}

impl Tx<'_> {
    /// Wakes whoever waits for news of `id` (a process or a session), once this is committed.
    pub(crate) fn wake(&self, id: impl Into<Uuid>) {
        self.wakes.borrow_mut().push(id.into());
    }
}

impl Store {
    /// Opens or creates [`FILE`] in `dir` and starts the writer thread.
    ///
    /// # Errors
    /// [`StoreError::Newer`] and [`StoreError::Open`]; the file is not changed then.
    pub fn open(dir: &Path, clock: Clock) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        let db = open::open(&path, clock())?;
        let wakes = Arc::new(Wakes::default());
        let (jobs, queue) = mpsc::channel(QUEUED_JOBS_MAX);
        let writer = writer::start(db, path.clone(), queue, clock, wakes.clone())
            .map_err(|error| StoreError::Open { path: path.clone(), message: error.to_string() })?;
        Ok(Self {
            path,
            jobs: Mutex::new(Some(jobs)),
            writer: Mutex::new(Some(writer)),
            readers: Mutex::default(),
            reading: Semaphore::new(READERS_MAX),
            wakes,
        })
    }

    /// Does a job in the writer and returns what it returned once it is committed.
    ///
    /// # Errors
    /// The job's own error (its changes are undone, others are not), or a [`StoreError`] of the transaction it shared.
    pub async fn write<T, E, F>(&self, job: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: FnOnce(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    {
        let (answer, answered) = tokio::sync::oneshot::channel();
        let job = writer::Job::new(job, move |outcome| {
            // Nobody listens any more where the caller was dropped; the job stands all the same.
            let _ = answer.send(outcome);
        });
        self.send(job).await?;
        answered.await.unwrap_or(Err(StoreError::Closed.into()))
    }

    /// Queues a job behind all earlier ones and does not wait for it. A failure is logged.
    ///
    /// # Errors
    /// [`StoreError::Closed`].
    pub async fn write_later<F>(&self, job: F) -> Result<(), StoreError>
    where
        F: FnOnce(&mut Tx<'_>) -> Result<(), StoreError> + Send + 'static,
    {
        let job = writer::Job::new(job, |outcome: Result<(), StoreError>| {
            if let Err(error) = outcome {
                tracing::error!(%error, "an event was not recorded");
            }
        });
        self.send(job).await
    }

    async fn send(&self, job: writer::Job) -> Result<(), StoreError> {
        let jobs = lock(&self.jobs).clone().ok_or(StoreError::Closed)?;
        jobs.send(job).await.map_err(|_| StoreError::Closed)
    }

    /// Looks at the last committed state, on this thread.
    ///
    /// # Errors
    /// The look's own error, or a [`StoreError`].
    pub(crate) fn look<T, E: From<StoreError>>(&self, look: impl FnOnce(&Connection) -> Result<T, E>) -> Result<T, E> {
        let pooled = lock(&self.readers).pop();
        let db = match pooled {
            Some(db) => db,
            None => open::reader(&self.path)?,
        };
        let found = look(&db);
        lock(&self.readers).push(db);
        found
    }

    /// Looks at the last committed state, on a thread for blocking work.
    ///
    /// # Errors
    /// The look's own error, or a [`StoreError`].
    pub async fn read<T, E, F>(self: &Arc<Self>, look: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        let _permit = self.reading.acquire().await.map_err(|_| StoreError::Closed)?;
        let store = self.clone();
        let task = tokio::task::spawn_blocking(move || store.look(look));
        task.await.map_err(|error| StoreError::Damaged(format!("a read panicked: {error}")))?
    }

    /// Waits for news of `id` from now on.
    pub(crate) fn waiter(&self, id: impl Into<Uuid>) -> Waiter {
        self.wakes.waiter(id.into())
    }

    /// Finishes all queued jobs and closes the file. Later jobs fail.
    pub fn close(&self) {
        drop(lock(&self.jobs).take());
        lock(&self.readers).clear();
        if let Some(writer) = lock(&self.writer).take()
            && writer.join().is_err()
        {
            tracing::error!("the writer of the store panicked");
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn flags(write: bool) -> OpenFlags {
    let access = if write {
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
    } else {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    };
    access | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

#[cfg(test)]
mod tests;
