//! The writer thread: group commit with a savepoint a job.
//!
//! SQLite undoes a whole transaction by itself where the disk is full or fails, or memory is out. So after each job and
//! each COMMIT the writer looks whether the transaction still stands; where it does not, every job of the batch has
//! failed. A job that fails by itself is undone alone.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::wakes::Wakes;
use super::{Clock, StoreError, Tx};

/// Jobs that share one COMMIT.
const BATCH_JOBS_MAX: usize = 512;
/// How long jobs that nobody waits for wait for one that somebody does, to share its COMMIT. What a runner does next
/// comes within it, and a COMMIT takes a tenth of it.
const LATER_MS: u64 = 2;
/// Size of the write-ahead log from which on it is copied into the file.
const CHECKPOINT_BYTES: u64 = 4 * 1024 * 1024;
/// Jobs nobody waits for that are kept until the store can be written again; more are lost, and that is logged.
const AGAIN_JOBS_MAX: usize = 4_096;

/// What the writer does.
pub(super) enum Job {
    /// Somebody waits for it.
    Now(Box<Run>),
    /// Nobody waits for it. It is done again where the store could not be written.
    Later(Box<Later>),
    /// Between two transactions.
    Alone(Box<Alone>),
}

/// Given an error instead of a transaction a job is not run, only answered.
type Run = dyn FnOnce(Result<&mut Tx<'_>, StoreError>) -> Ran + Send;
type Later = dyn Fn(&mut Tx<'_>) -> Result<(), StoreError> + Send;
type Alone = dyn FnOnce(Result<&Connection, StoreError>) + Send;

/// Whether the changes of a job stand, and who is told.
pub(super) struct Ran {
    stands: bool,
    tell: Box<dyn FnOnce(Result<(), StoreError>) + Send>,
}

/// What came of a job, until the COMMIT.
enum Done {
    Now { tell: Box<dyn FnOnce(Result<(), StoreError>) + Send>, own: Result<bool, StoreError> },
    Later { job: Box<Later>, own: Result<(), StoreError> },
}

impl Job {
    pub(super) fn new<T, E, F, A>(job: F, answer: A) -> Self
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: FnOnce(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
        A: FnOnce(Result<T, E>) + Send + 'static,
    {
        Self::Now(Box::new(move |tx| {
            let run = |tx| catch_unwind(AssertUnwindSafe(|| job(tx)));
            let panicked = |_| Err(StoreError::Panicked.into());
            let outcome = tx.map_err(E::from).and_then(|tx| run(tx).unwrap_or_else(panicked));
            let stands = outcome.is_ok();
            let tell = move |committed: Result<(), StoreError>| {
                answer(match committed {
                    Ok(()) => outcome,
                    Err(error) => Err(error.into()),
                });
            };
            Ran { stands, tell: Box::new(tell) }
        }))
    }
}

/// Starts the thread. It ends when the last sender is gone, after all jobs.
pub(super) fn start(
    db: Connection,
    log: Log,
    busy_ms: u32,
    mut queue: mpsc::Receiver<Job>,
    clock: Clock,
    wakes: Arc<Wakes>,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    let path = log.path.clone();
    let wal = wal_of(&path);
    // Only for the thread to wait in, with a bound.
    let waiting = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let (checkpoint, due) = sync_channel::<()>(1);
    let checkpoints = std::thread::Builder::new().name("checkpoints".into()).spawn(move || {
        while due.recv().is_ok() {
            if let Err(error) = log.copy() {
                tracing::warn!(%error, "the write-ahead log was not copied back; it will be tried again");
            }
        }
    })?;
    std::thread::Builder::new().name("store".into()).spawn(move || {
        let again = VecDeque::new();
        let mut writer = Writer { db, path, busy_ms, clock, wakes, now: 0, wal, checkpoint, again };
        loop {
            let mut jobs = waiting.block_on(gather(&mut queue));
            let alone = match jobs.pop_front() {
                None => break,
                Some(Job::Alone(work)) => Some(work),
                Some(job) => {
                    jobs.push_front(job);
                    writer.batch(jobs, &mut queue)
                }
            };
            if let Some(work) = alone {
                work(Ok(&writer.db));
            }
        }
        writer.end(&mut queue);
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

/// Waits for jobs: one that somebody waits for, with all before it; or as many others as come in a while. None is the end.
async fn gather(queue: &mut mpsc::Receiver<Job>) -> VecDeque<Job> {
    let mut jobs: VecDeque<Job> = queue.recv().await.into_iter().collect();
    let until = Instant::now() + Duration::from_millis(LATER_MS);
    while matches!(jobs.back(), Some(Job::Later(_))) && jobs.len() < BATCH_JOBS_MAX {
        let Ok(Some(next)) = timeout_at(until, queue.recv()).await else { break };
        jobs.push_back(next);
    }
    jobs
}

/// The write-ahead log of a database.
pub(super) fn wal_of(path: &Path) -> PathBuf {
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    wal.into()
}

/// The write-ahead log of a database, to be copied back into it beside the writer.
pub(super) struct Log {
    /// The database.
    pub(super) path: PathBuf,
    /// Held meanwhile.
    pub(super) copying: Arc<Mutex<()>>,
}

impl Log {
    fn copy(&self) -> Result<(), StoreError> {
        let failed = |error| StoreError::of(error, &self.path);
        let _copying = super::lock(&self.copying);
        let db = Connection::open_with_flags(&self.path, super::flags(true)).map_err(failed)?;
        db.pragma_update(None, "busy_timeout", 0).map_err(failed)?;
        db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).map_err(failed)
    }
}

struct Writer {
    db: Connection,
    path: PathBuf,
    busy_ms: u32,
    clock: Clock,
    wakes: Arc<Wakes>,
    now: i64,
    wal: PathBuf,
    checkpoint: SyncSender<()>,
    /// What could not be written and nobody waits for, oldest first.
    again: VecDeque<Box<Later>>,
}

impl Writer {
    /// Does `jobs` and what is queued behind them in one transaction, after what could not be written before. Returns what
    /// has to be done outside of one.
    fn batch(&mut self, mut jobs: VecDeque<Job>, queue: &mut mpsc::Receiver<Job>) -> Option<Box<Alone>> {
        let waiting = queue.len();
        if let Err(error) = self.db.execute_batch("BEGIN IMMEDIATE") {
            let error = StoreError::of(error, &self.path);
            tracing::error!(%error, busy_ms = self.busy_ms, jobs = jobs.len() + waiting, "no change can be made; its callers are told");
            // Those that wait have waited as long as the first.
            let behind = std::iter::from_fn(|| queue.try_recv().ok()).take(waiting);
            jobs.into_iter().chain(behind).for_each(|job| self.refuse(job, &error));
            return None;
        }
        let (mut done, mut woken, mut alone) = (Vec::new(), Vec::new(), None);
        let mut outcome = Ok(());
        let mut again = std::mem::take(&mut self.again);
        loop {
            let job = match again.pop_front() {
                Some(job) => Job::Later(job),
                None => match jobs.pop_front() {
                    Some(Job::Alone(work)) => {
                        alone = Some(work);
                        break;
                    }
                    Some(job) => job,
                    None => break,
                },
            };
            outcome = self.job(job, &mut done, &mut woken);
            if outcome.is_err() {
                break;
            }
            if jobs.is_empty() && again.is_empty() && done.len() < BATCH_JOBS_MAX {
                jobs.extend(queue.try_recv().ok());
            }
        }
        let outcome = outcome.and_then(|()| {
            let committed = self.db.execute_batch("COMMIT");
            committed.map_err(|error| StoreError::of(error, &self.path))
        });
        if !self.db.is_autocommit()
            && let Err(error) = self.db.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "the store did not roll back");
        }
        match &outcome {
            Ok(()) => tracing::trace!(committed = done.len()),
            Err(error) => {
                tracing::error!(%error, jobs = done.len(), "a batch of changes was lost; its callers are told");
            }
        }
        for one in done {
            self.tell(one, &outcome);
        }
        // Those that were not reached keep their place behind those that were.
        again.into_iter().for_each(|job| self.keep(job));
        if let Err(error) = &outcome {
            jobs.into_iter().for_each(|job| self.refuse(job, error));
        }
        if outcome.is_ok() {
            self.wakes.wake(woken.into_iter().chain([super::CHANGES]));
        }
        if std::fs::metadata(&self.wal).is_ok_and(|file| file.len() > CHECKPOINT_BYTES) {
            // Full means that one is due already.
            let _ = self.checkpoint.try_send(());
        }
        alone
    }

    /// Runs one job in a savepoint. An error means that the whole transaction is gone.
    fn job(&mut self, job: Job, done: &mut Vec<Done>, woken: &mut Vec<Uuid>) -> Result<(), StoreError> {
        self.now = self.now.max((self.clock)());
        if let Err(error) = self.db.execute_batch("SAVEPOINT job") {
            let error = StoreError::of(error, &self.path);
            match job {
                Job::Now(run) => done.push(Done::Now { tell: run(Err(error.clone())).tell, own: Ok(false) }),
                Job::Later(job) => done.push(Done::Later { job, own: Ok(()) }),
                Job::Alone(work) => work(Err(error.clone())),
            }
            return Err(error);
        }
        let mut tx = Tx { db: &self.db, now: self.now, wakes: RefCell::default() };
        let mut one = match job {
            Job::Now(run) => {
                let Ran { stands, tell } = run(Ok(&mut tx));
                Done::Now { tell, own: Ok(stands) }
            }
            Job::Later(job) => {
                let ran = catch_unwind(AssertUnwindSafe(|| job(&mut tx)));
                Done::Later { own: ran.unwrap_or(Err(StoreError::Panicked)), job }
            }
            // It never comes here: a batch ends before it.
            Job::Alone(work) => {
                work(Err(StoreError::Closed));
                return Ok(());
            }
        };
        let wakes = tx.wakes.take();
        if self.db.is_autocommit() {
            done.push(one);
            return Err(StoreError::RolledBack { file: self.path.clone() });
        }
        let failed = |error| StoreError::of(error, &self.path);
        let mut stands = one.stands();
        if stands && self.defers().map_err(failed)? {
            // Such a job could make the COMMIT fail, and with it its neighbours.
            one.refuse(StoreError::Deferred);
            stands = false;
        }
        done.push(one);
        if stands {
            woken.extend(wakes);
            self.db.execute_batch("RELEASE job").map_err(failed)
        } else {
            let undone = self.db.execute_batch("ROLLBACK TO job; RELEASE job; PRAGMA defer_foreign_keys = OFF");
            undone.map_err(failed)
        }
    }

    /// Whether foreign keys are left to the COMMIT: no table of ours asks for that.
    fn defers(&self) -> rusqlite::Result<bool> {
        self.db.prepare_cached("PRAGMA defer_foreign_keys")?.query_row([], |row| row.get(0))
    }

    /// Tells what came of a job and of the COMMIT that it shared.
    fn tell(&mut self, done: Done, committed: &Result<(), StoreError>) {
        match done {
            Done::Now { tell, own: Ok(true) } => tell(committed.clone()),
            Done::Now { tell, own: Ok(false) } => tell(Ok(())),
            Done::Now { tell, own: Err(error) } => tell(Err(error)),
            Done::Later { job, own: Ok(()) } if committed.is_err() => self.keep(job),
            Done::Later { job, own: Err(error) } if error.passes() => self.keep(job),
            Done::Later { own: Err(error), .. } => tracing::error!(%error, "an event was not recorded"),
            Done::Later { own: Ok(()), .. } => {}
        }
    }

    /// Answers a job that is not run.
    fn refuse(&mut self, job: Job, error: &StoreError) {
        match job {
            Job::Now(run) => (run(Err(error.clone())).tell)(Ok(())),
            Job::Later(job) => self.keep(job),
            Job::Alone(work) => work(Err(error.clone())),
        }
    }

    fn keep(&mut self, job: Box<Later>) {
        if self.again.len() < AGAIN_JOBS_MAX {
            self.again.push_back(job);
        } else {
            tracing::error!(kept = AGAIN_JOBS_MAX, "an event is lost: the store cannot be written for too long");
        }
    }

    /// Writes what is left to be written.
    fn end(&mut self, queue: &mut mpsc::Receiver<Job>) {
        if !self.again.is_empty() {
            self.batch(VecDeque::new(), queue);
        }
        if !self.again.is_empty() {
            tracing::error!(events = self.again.len(), "events are lost: the store could not be written");
        }
    }
}

impl Done {
    fn stands(&self) -> bool {
        match self {
            Self::Now { own, .. } => matches!(own, Ok(true)),
            Self::Later { own, .. } => own.is_ok(),
        }
    }

    fn refuse(&mut self, error: StoreError) {
        match self {
            Self::Now { own, .. } => *own = Err(error),
            Self::Later { own, .. } => *own = Err(error),
        }
    }
}
