//! The store alone: what is committed together, what is undone alone, and what a damaged or newer file gives.

use std::sync::atomic::{AtomicI64, Ordering};

use super::*;

mod files;
mod full;

/// A store in a folder of its own, with a clock that goes back.
fn open() -> (tempfile::TempDir, Arc<Store>) {
    let dir = tempfile::tempdir().expect("a folder");
    let time = AtomicI64::new(1_000);
    let clock: Clock = Arc::new(move || time.fetch_sub(1, Ordering::Relaxed));
    let store = Arc::new(Store::open(dir.path(), clock).expect("opens"));
    (dir, store)
}

/// Adds a row; fails afterwards where `fails`.
async fn add(store: &Store, hash: &'static str, fails: bool) -> Result<i64, StoreError> {
    store
        .write(move |tx| {
            tx.db.execute("INSERT INTO snapshots (hash, definition) VALUES (?1, '')", [hash])?;
            if fails { Err(StoreError::Damaged("on purpose".into())) } else { Ok(tx.now) }
        })
        .await
}

async fn add_one(store: &Store, hash: String) -> Result<(), StoreError> {
    let job = store.write(move |tx| {
        tx.db.execute("INSERT INTO snapshots (hash, definition) VALUES (?1, '')", [hash])?;
        Ok(())
    });
    job.await
}

/// A job that stands in the writer until it is let go: whatever is queued meanwhile shares its transaction.
struct Gate {
    go_on: std::sync::mpsc::Sender<()>,
    job: tokio::task::JoinHandle<Result<(), StoreError>>,
}

impl Gate {
    async fn shut(store: &Arc<Store>) -> Self {
        let (go_on, went_on) = std::sync::mpsc::channel::<()>();
        let (stands, standing) = tokio::sync::oneshot::channel();
        let store = store.clone();
        let job = tokio::spawn(async move {
            let job = store.write(move |tx| {
                tx.db.execute("INSERT INTO snapshots (hash, definition) VALUES ('gate', '')", [])?;
                stands.send(()).expect("the test waits");
                went_on.recv().expect("the test goes on");
                tx.db.execute("DELETE FROM snapshots WHERE hash = 'gate'", [])?;
                Ok(())
            });
            job.await
        });
        standing.await.expect("it stands in the writer");
        Self { go_on, job }
    }

    /// Waits until so many jobs are queued behind it.
    async fn queued(&self, store: &Store, jobs: usize) {
        let sender = lock(&store.jobs).clone().expect("it is open");
        while QUEUED_JOBS_MAX - sender.capacity() < jobs {
            tokio::task::yield_now().await;
        }
    }

    fn open(&self) {
        self.go_on.send(()).expect("the gate waits");
    }

    async fn through(self) -> Result<(), StoreError> {
        self.open();
        self.job.await.expect("a task")
    }
}

async fn rows(store: &Arc<Store>) -> Vec<String> {
    let read = store.read(|db| {
        let mut look = db.prepare("SELECT hash FROM snapshots ORDER BY hash")?;
        let rows = look.query_map([], |row| row.get(0))?;
        Ok::<_, StoreError>(rows.collect::<Result<Vec<String>, _>>()?)
    });
    read.await.expect("reads")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_fails_is_undone_alone() {
    let (_dir, store) = open();
    let (a, b, c) = tokio::join!(add(&store, "a", false), add(&store, "b", true), add(&store, "c", false));
    assert!(a.is_ok() && c.is_ok());
    assert!(matches!(b, Err(StoreError::Damaged(_))), "{b:?}");
    let twice = add(&store, "a", false).await;
    assert!(matches!(twice, Err(StoreError::Sqlite(_))), "{twice:?}");
    assert_eq!(rows(&store).await, ["a", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_panics_harms_no_other() {
    let (_dir, store) = open();
    let panicking = store.write(|tx| {
        tx.db.execute("INSERT INTO snapshots (hash, definition) VALUES ('p', '')", [])?;
        if tx.now > 0 { panic!("on purpose") } else { Ok::<(), StoreError>(()) }
    });
    let (panicked, added) = tokio::join!(panicking, add(&store, "a", false));
    assert!(matches!(panicked, Err(StoreError::Panicked)), "{panicked:?}");
    assert!(added.is_ok());
    assert_eq!(rows(&store).await, ["a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn time_never_goes_back() {
    let (_dir, store) = open();
    let first = add(&store, "a", false).await.expect("added");
    let second = add(&store, "b", false).await.expect("added");
    assert_eq!(first, second, "the clock went back, the store did not");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiters_are_woken_after_the_commit_only() {
    let (_dir, store) = open();
    let id = Uuid::from_u128(7);
    let mut waiter = store.waiter(id);
    let failing = store.write(move |tx| {
        tx.wake(id);
        Err::<(), _>(StoreError::Damaged("on purpose".into()))
    });
    assert!(failing.await.is_err());
    assert!(futures::FutureExt::now_or_never(waiter.news()).is_none(), "nothing was committed");
    store
        .write(move |tx| {
            tx.wake(id);
            Ok::<(), StoreError>(())
        })
        .await
        .expect("committed");
    waiter.news().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_finishes_what_is_queued() {
    let (dir, store) = open();
    let gate = Gate::shut(&store).await;
    let queued: Vec<_> = (0..100)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move { add_one(&store, format!("{number:03}")).await })
        })
        .collect();
    gate.queued(&store, 100).await;
    let closing = tokio::task::spawn_blocking({
        let store = store.clone();
        move || store.close()
    });
    // Nothing is taken in any more, and what was taken in is done.
    while lock(&store.jobs).is_some() {
        tokio::task::yield_now().await;
    }
    assert!(matches!(add(&store, "late", false).await, Err(StoreError::Closed)));
    gate.open();
    closing.await.expect("closed");
    for one in queued {
        one.await.expect("a task").expect("added");
    }
    let again = Arc::new(Store::open(dir.path(), Arc::new(|| 0)).expect("opens"));
    assert_eq!(rows(&again).await.len(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_panics_harms_no_other() {
    let (_dir, store) = open();
    add(&store, "a", false).await.expect("added");
    for _ in 0..2 * READERS_MAX {
        let panicked =
            store.read(|db| if db.is_autocommit() { panic!("on purpose") } else { Ok::<(), StoreError>(()) });
        assert!(matches!(panicked.await, Err(StoreError::Panicked)));
    }
    assert_eq!(rows(&store).await, ["a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_sees_one_state_and_holds_no_writer_up() {
    let (_dir, store) = open();
    add(&store, "a", false).await.expect("added");
    let (reads, reading) = tokio::sync::oneshot::channel();
    let (go_on, went_on) = std::sync::mpsc::channel::<()>();
    let reader = store.read(move |db| {
        let count = |db: &Connection| db.query_row("SELECT count(*) FROM snapshots", [], |row| row.get::<_, i64>(0));
        let state = db.unchecked_transaction()?;
        let before = count(&state)?;
        reads.send(()).expect("the test listens");
        went_on.recv().expect("the test goes on");
        let meanwhile = count(&state)?;
        drop(state);
        Ok::<_, StoreError>((before, meanwhile, count(db)?))
    });
    let writer = async {
        reading.await.expect("it reads");
        let added = add(&store, "b", false).await;
        go_on.send(()).expect("the reader waits");
        added
    };
    let (counts, added) = tokio::join!(reader, writer);
    added.expect("added beside the reader");
    assert_eq!(counts.expect("read"), (1, 1, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn vacuum_gives_space_back_and_keeps_all_rows() {
    let (dir, store) = open();
    add(&store, "kept", false).await.expect("added");
    let big = "x".repeat(4_000_000);
    let fill = store.write(move |tx| {
        tx.db.execute("INSERT INTO snapshots (hash, definition) VALUES ('big', ?1)", [big])?;
        Ok::<(), StoreError>(())
    });
    fill.await.expect("added");
    let remove = store.write(|tx| Ok::<_, StoreError>(tx.db.execute("DELETE FROM snapshots WHERE hash = 'big'", [])?));
    assert_eq!(remove.await.expect("removed"), 1);
    let (vacuumed, beside) = tokio::join!(store.vacuum(), add(&store, "beside", false));
    let Vacuumed { bytes_before, bytes_after } = vacuumed.expect("vacuumed");
    assert!(bytes_before > 4_000_000 && bytes_after < 1_000_000, "{bytes_before} to {bytes_after}");
    beside.expect("added");
    assert_eq!(rows(&store).await, ["beside", "kept"]);
    assert!(std::fs::metadata(dir.path().join(FILE)).expect("there").len() < 1_000_000, "the file itself is short");
}

#[tokio::test]
async fn a_look_that_goes_on_is_waited_for_when_the_store_closes() {
    let (dir, store) = open();
    add(&store, "a", false).await.expect("a row");
    let (looks, looking) = std::sync::mpsc::channel();
    let read = tokio::spawn({
        let (store, closing) = (store.clone(), store.clone());
        async move {
            let look = store.read(move |db| {
                looks.send(()).expect("heard");
                while !lock(&closing.readers).closed {
                    std::thread::yield_now();
                }
                Ok::<_, StoreError>(db.query_row("SELECT count(*) FROM snapshots", [], |row| row.get::<_, i64>(0))?)
            });
            look.await
        }
    });
    let closing = tokio::task::spawn_blocking({
        let store = store.clone();
        move || {
            looking.recv().expect("it looks");
            store.close();
        }
    });
    closing.await.expect("closed");
    assert_eq!(read.await.expect("it ends").expect("a count"), 1);
    assert!(!dir.path().join(format!("{FILE}-wal")).exists(), "the last one that closes removes the log");
    assert!(matches!(store.read(|_| Ok::<_, StoreError>(())).await, Err(StoreError::Closed)));
}
