//! The writer thread: group commit with a savepoint a job.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use rusqlite::Connection;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::wakes::Wakes;
use super::{Clock, StoreError, Tx};

/// Jobs that share one COMMIT.
const BATCH_JOBS_MAX: usize = 512;
/// Size of the write-ahead log from which on it is copied into the file.
const CHECKPOINT_BYTES: u64 = 4 * 1024 * 1024;

/// A job; given an error instead of a transaction it is not run, only answered.
pub(super) struct Job(Box<Run>);

type Run = dyn FnOnce(Result<&mut Tx<'_>, StoreError>) -> Done + Send;

/// What a job did: whether its changes stand, and who is told.
struct Done {
    stands: bool,
    tell: Box<dyn FnOnce(Result<(), StoreError>) + Send>,
}

impl Job {
    pub(super) fn new<T, E, F, A>(job: F, answer: A) -> Self
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: FnOnce(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
        A: FnOnce(Result<T, E>) + Send + 'static,
    {
        Self(Box::new(move |tx| {
            let run = |tx| catch_unwind(AssertUnwindSafe(|| job(tx)));
            let panicked = |_| Err(StoreError::RolledBack("the job panicked".to_owned()).into());
            let outcome = tx.map_err(E::from).and_then(|tx| run(tx).unwrap_or_else(panicked));
            let stands = outcome.is_ok();
            let tell = move |committed: Result<(), StoreError>| {
                answer(match committed {
                    Ok(()) => outcome,
                    Err(error) => Err(error.into()),
                });
            };
            Done { stands, tell: Box::new(tell) }
        }))
    }
}

/// Starts the thread. It ends when the last sender is gone, after all jobs.
pub(super) fn start(
    db: Connection,
    path: PathBuf,
    mut queue: mpsc::Receiver<Job>,
    clock: Clock,
    wakes: Arc<Wakes>,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    let wal = wal_of(&path);
    let (checkpoint, due) = sync_channel::<()>(1);
    let checkpoints = std::thread::Builder::new().name("checkpoints".into()).spawn(move || {
        while due.recv().is_ok() {
            if let Err(error) = copy_log(&path) {
                tracing::warn!(%error, "the write-ahead log was not copied back; it will be tried again");
            }
        }
    })?;
    std::thread::Builder::new().name("store".into()).spawn(move || {
        let mut writer = Writer { db, clock, wakes, now: 0, wal, checkpoint };
        while let Some(first) = queue.blocking_recv() {
            writer.batch(first, &mut queue);
        }
        let Writer { db, checkpoint, .. } = writer;
        drop(checkpoint);
        if checkpoints.join().is_err() {
            tracing::error!("the checkpoint thread of the store panicked");
        }
        if let Err((_, error)) = db.close() {
            tracing::error!(%error, "the store did not close");
        }
    })
}

fn wal_of(path: &Path) -> PathBuf {
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    wal.into()
}

fn copy_log(path: &Path) -> Result<(), StoreError> {
    let db = Connection::open_with_flags(path, super::flags(true))?;
    db.pragma_update(None, "busy_timeout", 0)?;
    db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
    Ok(())
}

struct Writer {
    db: Connection,
    clock: Clock,
    wakes: Arc<Wakes>,
    now: i64,
    wal: PathBuf,
    checkpoint: SyncSender<()>,
}

impl Writer {
    fn batch(&mut self, first: Job, queue: &mut mpsc::Receiver<Job>) {
        let mut done = Vec::new();
        let mut woken = Vec::new();
        let mut outcome = self.db.execute_batch("BEGIN IMMEDIATE").map_err(StoreError::from);
        let mut next = Some(first);
        while let Some(job) = next.take() {
            if let Err(error) = &outcome {
                done.push((job.0)(Err(error.clone())));
                break;
            }
            outcome = self.job(job, &mut done, &mut woken);
            if outcome.is_ok() && done.len() < BATCH_JOBS_MAX {
                next = queue.try_recv().ok();
            }
        }
        let outcome = outcome.and_then(|()| Ok(self.db.execute_batch("COMMIT")?));
        if !self.db.is_autocommit()
            && let Err(error) = self.db.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "the store did not roll back");
        }
        if let Err(error) = &outcome {
            tracing::error!(%error, jobs = done.len(), "a batch of changes was lost; its callers are told");
        }
        for one in done {
            (one.tell)(if one.stands { outcome.clone() } else { Ok(()) });
        }
        if outcome.is_ok() {
            self.wakes.wake(woken.into_iter().chain([super::CHANGES]));
        }
        if std::fs::metadata(&self.wal).is_ok_and(|file| file.len() > CHECKPOINT_BYTES) {
            // Full means that one is due already.
            let _ = self.checkpoint.try_send(());
        }
    }

    /// Runs one job in a savepoint. An error means that the whole transaction is gone.
    fn job(&mut self, job: Job, done: &mut Vec<Done>, woken: &mut Vec<Uuid>) -> Result<(), StoreError> {
        self.now = self.now.max((self.clock)());
        if let Err(error) = self.db.execute_batch("SAVEPOINT job") {
            let error = StoreError::from(error);
            done.push((job.0)(Err(error.clone())));
            return Err(error);
        }
        let mut tx = Tx { db: &self.db, now: self.now, wakes: RefCell::default() };
        let one = (job.0)(Ok(&mut tx));
        let wakes = tx.wakes.take();
        let stands = one.stands;
        done.push(one);
        if self.db.is_autocommit() {
            return Err(StoreError::RolledBack(
                "SQLite ended the transaction (disk full, I/O error or no memory)".into(),
            ));
        }
        if stands {
            woken.extend(wakes);
            self.db.execute_batch("RELEASE job")?;
        } else {
            self.db.execute_batch("ROLLBACK TO job; RELEASE job")?;
        }
        Ok(())
    }
}
