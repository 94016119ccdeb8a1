//! A store that cannot be written for a while: who is told, what is kept in its place, and that it goes on afterwards.

use super::*;

/// A store whose file may have no more pages than it has, until [`room`].
fn full(busy_ms: u32) -> (tempfile::TempDir, Arc<Store>) {
    let dir = tempfile::tempdir().expect("a folder");
    Store::open(dir.path(), Arc::new(|| 0)).expect("opens").close();
    let tuning = Tuning { busy_ms, pages_max: Some(1) };
    let store = Arc::new(Store::open_tuned(dir.path(), Arc::new(|| 0), tuning).expect("opens"));
    (dir, store)
}

/// Makes room on the disk.
async fn room(store: &Store) {
    let room = store.alone(|db| Ok(db.execute_batch("PRAGMA max_page_count = 1000000")?));
    room.await.expect("room");
}

/// A change that does not fit.
async fn fill(store: &Store) -> Result<(), StoreError> {
    let big = "x".repeat(2_000_000);
    let fill = store.write(move |tx| {
        tx.db.execute("INSERT INTO snapshots (hash, definition) VALUES ('big', ?1)", [big])?;
        Ok(())
    });
    fill.await
}

/// Queues a row that nobody waits for, of so many bytes.
async fn later(store: &Store, hash: &'static str, bytes: usize) {
    let queued = store.write_later(move |tx| {
        let sql = "INSERT INTO snapshots (hash, definition) VALUES (?1, ?2)";
        tx.db.execute(sql, (hash, "x".repeat(bytes)))?;
        Ok(())
    });
    queued.await.expect("queued");
}

/// The hashes in the order in which they were written.
async fn order(store: &Arc<Store>) -> Vec<String> {
    let read = store.read(|db| {
        let mut look = db.prepare("SELECT hash FROM snapshots ORDER BY rowid")?;
        let rows = look.query_map([], |row| row.get(0))?;
        Ok::<_, StoreError>(rows.collect::<Result<Vec<String>, _>>()?)
    });
    read.await.expect("reads")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_fails_the_job_that_does_not_fit_and_tells_what_to_do() {
    let (_dir, store) = full(BUSY_MS);
    let gate = Gate::shut(&store).await;
    let (filling, adding) = (store.clone(), store.clone());
    let filled = tokio::spawn(async move { fill(&filling).await });
    gate.queued(&store, 1).await;
    let small = tokio::spawn(async move { add(&adding, "small", false).await });
    gate.queued(&store, 2).await;
    let shared = gate.through().await.expect_err("SQLite undid the transaction");
    assert!(matches!(shared, StoreError::RolledBack { .. }) && shared.passes(), "{shared:?}");
    let error = filled.await.expect("a task").expect_err("it does not fit");
    assert!(matches!(error, StoreError::Full { .. }) && error.passes(), "{error:?}");
    assert_eq!(error.to_string(), "the disk is full: assistant-host.db cannot grow; make room there, then try again");
    small.await.expect("a task").expect("what fits is done");
    room(&store).await;
    fill(&store).await.expect("there is room");
    assert_eq!(rows(&store).await, ["big", "small"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_waits_for_is_written_before_the_next_job_that_can_be() {
    let (_dir, store) = full(BUSY_MS);
    later(&store, "event 1", 2_000_000).await;
    later(&store, "event 2", 1_000_000).await;
    fill(&store).await.expect_err("it does not fit");
    assert_eq!(order(&store).await, [""; 0]);
    room(&store).await;
    add(&store, "end", false).await.expect("added");
    assert_eq!(order(&store).await, ["event 1", "event 2", "end"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_is_written_when_the_store_closes() {
    let (dir, store) = full(BUSY_MS);
    later(&store, "event", 2_000_000).await;
    // It is tried first; what is tried with it is refused with it.
    drop(store.alone(|_| Ok(())).await);
    room(&store).await;
    store.close();
    let again = Arc::new(Store::open(dir.path(), Arc::new(|| 0)).expect("opens"));
    assert_eq!(order(&again).await, ["event"]);
}

/// Queues `gate, a, bad, b` in one transaction, with an event before `bad`, and tells how each went.
async fn beside(store: &Arc<Store>, bad: &'static str) -> [Result<(), StoreError>; 4] {
    let gate = Gate::shut(store).await;
    let spawn = |hash: &'static str, sql: Option<&'static str>| {
        let store = store.clone();
        tokio::spawn(async move {
            let job = store.write(move |tx| {
                tx.wake(Uuid::from_u128(7));
                match sql {
                    // It does not even look whether that went well.
                    Some(sql) => drop(tx.db.execute_batch(sql)),
                    None => drop(tx.db.execute("INSERT INTO snapshots (hash, definition) VALUES (?1, '')", [hash])?),
                }
                Ok(())
            });
            job.await
        })
    };
    let a = spawn("a", None);
    gate.queued(store, 1).await;
    later(store, "event", 10).await;
    let bad = spawn("bad", Some(bad));
    gate.queued(store, 3).await;
    let b = spawn("b", None);
    gate.queued(store, 4).await;
    let gate = gate.through().await;
    let joined = tokio::join!(a, bad, b);
    [gate, joined.0.expect("a task"), joined.1.expect("a task"), joined.2.expect("a task")]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_sqlite_undoes_is_told_to_all_that_shared_it() {
    let (_dir, store) = open();
    let mut waiter = store.waiter(Uuid::from_u128(7));
    let undo = "INSERT OR ROLLBACK INTO snapshots (hash, definition) VALUES ('gate', 'there already'), ('gate', '')";
    let [gate, a, bad, b] = beside(&store, undo).await;
    for undone in [gate, a, bad] {
        let error = undone.expect_err("undone");
        assert!(matches!(error, StoreError::RolledBack { .. }) && error.passes(), "{error:?}");
        assert!(error.to_string().contains("assistant-host.db could not be written"), "{error}");
    }
    b.expect("it came into the next transaction");
    assert_eq!(order(&store).await, ["event", "b"], "the event keeps its place before later jobs");
    waiter.news().await;
    assert!(futures::FutureExt::now_or_never(waiter.news()).is_none(), "woken for `b` alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_fails_is_told_to_all_that_shared_it() {
    let (_dir, store) = open();
    let table = "CREATE TABLE bad (hash TEXT REFERENCES snapshots(hash) DEFERRABLE INITIALLY DEFERRED)";
    let made = store.write(move |tx| Ok::<_, StoreError>(tx.db.execute_batch(table)?));
    made.await.expect("a table");
    let mut waiter = store.waiter(Uuid::from_u128(7));
    for undone in beside(&store, "INSERT INTO bad VALUES ('nowhere')").await {
        let error = undone.expect_err("undone");
        assert!(error.to_string().contains("FOREIGN KEY"), "{error}");
    }
    assert!(futures::FutureExt::now_or_never(waiter.news()).is_none(), "nothing was committed");
    add(&store, "after", false).await.expect("added");
    assert_eq!(order(&store).await, ["event", "after"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_leaves_foreign_keys_to_the_commit_is_undone_alone() {
    let (_dir, store) = open();
    let defer =
        "PRAGMA defer_foreign_keys = ON; INSERT INTO events (process_id, at, kind, data) VALUES ('no', 0, '', '')";
    let [gate, a, bad, b] = beside(&store, defer).await;
    assert!(matches!(bad, Err(StoreError::Deferred)), "{bad:?}");
    assert!(gate.is_ok() && a.is_ok() && b.is_ok(), "{gate:?} {a:?} {b:?}");
    assert_eq!(order(&store).await, ["a", "event", "b"]);
    assert!(!schema().to_uppercase().contains("DEFERR"), "no table leaves its keys to the COMMIT");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_another_program_has_locked_is_told_and_written_later() {
    let dir = tempfile::tempdir().expect("a folder");
    let tuning = Tuning { busy_ms: 50, pages_max: None };
    let store = Arc::new(Store::open_tuned(dir.path(), Arc::new(|| 0), tuning).expect("opens"));
    let other = Connection::open(dir.path().join(FILE)).expect("opens");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    later(&store, "event", 10).await;
    let begun = std::time::Instant::now();
    let all = futures::future::join_all((0..200).map(|number| add_one(&store, format!("job {number}")))).await;
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "they wait together, not one after the other");
    for one in all {
        let error = one.expect_err("it is locked");
        assert!(matches!(error, StoreError::Locked { .. }) && error.passes(), "{error:?}");
        assert!(error.to_string().contains(&*dir.path().join(FILE).to_string_lossy()), "it names the file: {error}");
    }
    assert_eq!(rows(&store).await, [""; 0], "reading goes on");
    other.execute_batch("COMMIT").expect("unlocked");
    add(&store, "after", false).await.expect("added");
    assert_eq!(order(&store).await, ["event", "after"]);
}
