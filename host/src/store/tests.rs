//! The store alone: what is committed together, what is undone alone, and what a damaged or newer file gives.

use std::sync::atomic::{AtomicI64, Ordering};

use super::*;

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
    assert!(matches!(panicked, Err(StoreError::RolledBack(_))), "{panicked:?}");
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
async fn a_full_disk_fails_the_jobs_that_shared_it_and_no_later_one() {
    let (_dir, store) = open();
    add(&store, "before", false).await.expect("added");
    let pages = |pages: &'static str| store.write(move |tx| Ok::<_, StoreError>(tx.db.execute_batch(pages)?));
    pages("PRAGMA max_page_count = 1").await.expect("as small as it is");
    let big = "x".repeat(2_000_000);
    let full = store
        .write(move |tx| {
            tx.db.execute("INSERT INTO snapshots (hash, definition) VALUES ('big', ?1)", [big])?;
            Ok::<(), StoreError>(())
        })
        .await;
    assert!(matches!(full, Err(StoreError::Sqlite(_) | StoreError::RolledBack(_))), "{full:?}");
    pages("PRAGMA max_page_count = 1000000").await.expect("room again");
    add(&store, "after", false).await.expect("added");
    assert_eq!(rows(&store).await, ["after", "before"]);
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
async fn closing_finishes_what_is_queued_and_a_newer_file_is_refused() {
    let (dir, store) = open();
    add(&store, "a", false).await.expect("added");
    store.close();
    assert!(matches!(add(&store, "b", false).await, Err(StoreError::Closed)));
    let file = dir.path().join("assistant-host.db");
    let db = Connection::open(&file).expect("opens");
    db.pragma_update(None, "user_version", 99).expect("written");
    drop(db);
    let before = std::fs::read(&file).expect("bytes");
    let refused = Store::open(dir.path(), Arc::new(|| 0)).err().expect("refused");
    assert!(matches!(refused, StoreError::Newer { found: 99, .. }), "{refused}");
    assert!(std::fs::read(&file).expect("bytes") == before, "the file is as it was");
    std::fs::write(&file, vec![b'x'; 8_192]).expect("written");
    let damaged = Store::open(dir.path(), Arc::new(|| 0)).err().expect("refused");
    assert!(matches!(damaged, StoreError::Open { .. }), "{damaged}");
}
