//! One SQLite file, one writer.
//!
//! A job runs in a savepoint of its own; many jobs share one COMMIT. Nothing is answered and nobody is woken before
//! that COMMIT: what [`Store::write`] returned is on disk. Readers see committed states only.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tokio::sync::{Semaphore, mpsc};
use uuid::Uuid;

mod error;
mod open;
mod vacuum;
mod wakes;
mod writer;

pub use error::StoreError;
pub use vacuum::Vacuumed;
pub(crate) use wakes::{BUDGETS, CHANGES, QUESTIONS, SUPERVISOR, WORKTREES, Waiter, Wakes};

/// The database, in the state directory.
pub const FILE: &str = "assistant-host.db";
/// Jobs that wait for the writer; whoever adds one more waits.
const QUEUED_JOBS_MAX: usize = 4_096;
/// Connections that read at once.
const READERS_MAX: usize = 4;
/// How long a look may go on while the store closes.
const LOOKS_END_WITHIN: Duration = Duration::from_secs(5);
/// How long a lock of another program is waited for.
const BUSY_MS: u32 = 5_000;

/// What tests of a full disk and of a locked file set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    /// How long a lock of another program is waited for, milliseconds.
    pub(crate) busy_ms: u32,
    /// Pages that the file may have; none is as many as SQLite allows.
    pub(crate) pages_max: Option<u32>,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { busy_ms: BUSY_MS, pages_max: None }
    }
}

/// Tells the time as Unix milliseconds.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The whole schema: the first one, and each step since.
#[must_use]
pub fn schema() -> String {
    open::MIGRATIONS.join("\n")
}

/// What the database of a state directory takes, with the log of its changes, bytes; none where there is none.
#[cfg(feature = "cli")]
pub(crate) fn size(dir: &Path) -> Option<u64> {
    let file = dir.join(FILE);
    file.is_file().then(|| vacuum::bytes(&file))
}

/// A look at the last committed state of the database in `dir`, beside its host or without one; none where there is no
/// database yet.
///
/// # Errors
/// Those of the store.
pub(crate) fn peek<T>(
    dir: &Path,
    look: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> Result<Option<T>, StoreError> {
    open::peek(&dir.join(FILE), look)
}

/// The open store of a host.
pub struct Store {
    path: PathBuf,
    jobs: Mutex<Option<mpsc::Sender<writer::Job>>>,
    writer: Mutex<Option<std::thread::JoinHandle<()>>>,
    readers: Mutex<Readers>,
    /// Told when a look has ended.
    returned: Condvar,
    reading: Semaphore,
    wakes: Arc<Wakes>,
    /// Held by whoever copies the write-ahead log back: SQLite lets one do it, and sends others away.
    copying: Arc<Mutex<()>>,
}

/// The connections of looks.
#[derive(Default)]
struct Readers {
    idle: Vec<Connection>,
    /// How many looks are going on.
    looks: usize,
    closed: bool,
}

/// A connection that a look has; it goes back where it came from.
struct Lent<'a> {
    store: &'a Store,
    db: Option<Connection>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut readers = lock(&self.store.readers);
        readers.looks -= 1;
        if !readers.closed && readers.idle.len() < READERS_MAX {
            readers.idle.extend(self.db.take());
        }
        // The last connection that closes removes the write-ahead log, and only one that may write can.
        self.db = None;
        self.store.returned.notify_all();
    }
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
        Self::open_tuned(dir, clock, Tuning::default())
    }

    pub(crate) fn open_tuned(dir: &Path, clock: Clock, tuning: Tuning) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        let db = open::open(&path, tuning, open::MIGRATIONS)?;
        let wakes = Arc::new(Wakes::default());
        let (jobs, queue) = mpsc::channel(QUEUED_JOBS_MAX);
        let copying = Arc::<Mutex<()>>::default();
        let copied = writer::Log { path: path.clone(), copying: copying.clone() };
        let writer = writer::start(db, copied, tuning.busy_ms, queue, clock, wakes.clone())
            .map_err(|error| StoreError::Open { path: path.clone(), message: error.to_string() })?;
        Ok(Self {
            path,
            jobs: Mutex::new(Some(jobs)),
            writer: Mutex::new(Some(writer)),
            readers: Mutex::default(),
            returned: Condvar::new(),
            reading: Semaphore::new(READERS_MAX),
            wakes,
            copying,
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

    /// Queues a job behind all earlier ones and does not wait for it: it shares the COMMIT of the next job that somebody
    /// waits for, or has one of its own soon. Where the store cannot be written it is done
    /// before the next job that can, so that its place in the order stays; any other failure is logged.
    ///
    /// # Errors
    /// [`StoreError::Closed`].
    pub async fn write_later<F>(&self, job: F) -> Result<(), StoreError>
    where
        F: Fn(&mut Tx<'_>) -> Result<(), StoreError> + Send + 'static,
    {
        self.send(writer::Job::Later(Box::new(job))).await
    }

    /// Does something with the database between two transactions of the writer; all jobs behind it wait.
    ///
    /// # Errors
    /// Its own, and [`StoreError::Closed`].
    pub(crate) async fn alone<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let (answer, answered) = tokio::sync::oneshot::channel();
        let alone = move |db: Result<&Connection, StoreError>| {
            // Nobody listens any more where the caller was dropped.
            let _ = answer.send(db.and_then(work));
        };
        self.send(writer::Job::Alone(Box::new(alone))).await?;
        answered.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Gives the space of what was removed back to the system. All jobs wait meanwhile, readers do not; it needs room for
    /// a copy of what is left.
    ///
    /// # Errors
    /// The store's; the file is as it was then.
    pub async fn vacuum(&self) -> Result<Vacuumed, StoreError> {
        let (path, copying) = (self.path.clone(), self.copying.clone());
        self.alone(move |db| vacuum::vacuum(db, &path, &copying)).await
    }

    async fn send(&self, job: writer::Job) -> Result<(), StoreError> {
        let jobs = lock(&self.jobs).clone().ok_or(StoreError::Closed)?;
        jobs.send(job).await.map_err(|_| StoreError::Closed)
    }

    /// Looks at the last committed state, on this thread: for a few rows that an index finds, which takes less than the
    /// way to another thread and back.
    ///
    /// # Errors
    /// The look's own error, or a [`StoreError`].
    pub(crate) fn look<T, E: From<StoreError>>(&self, look: impl FnOnce(&Connection) -> Result<T, E>) -> Result<T, E> {
        let pooled = {
            let mut readers = lock(&self.readers);
            if readers.closed {
                return Err(StoreError::Closed.into());
            }
            readers.looks += 1;
            readers.idle.pop()
        };
        let mut lent = Lent { store: self, db: pooled };
        let db = match lent.db.take() {
            Some(db) => db,
            None => open::reader(&self.path)?,
        };
        look(lent.db.insert(db))
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
        task.await.map_err(|_| StoreError::Panicked)?
    }

    /// Waits for news of `id` from now on.
    pub(crate) fn waiter(&self, id: impl Into<Uuid>) -> Waiter {
        self.wakes.waiter(id.into())
    }

    /// Finishes all queued jobs and closes the file. Later jobs and looks fail; those that are going on are waited for, at
    /// most 5 s (`LOOKS_END_WITHIN`).
    pub fn close(&self) {
        let mut readers = lock(&self.readers);
        readers.closed = true;
        readers.idle.clear();
        let ended = self.returned.wait_timeout_while(readers, LOOKS_END_WITHIN, |readers| readers.looks > 0);
        if ended.is_ok_and(|(_, waited)| waited.timed_out()) {
            tracing::warn!("a look into the store has not ended; its write-ahead log is left to the next host");
        }
        // Only now: the connection that is the last one to close removes the log, and that has to be the writer's.
        drop(lock(&self.jobs).take());
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
