//! What is removed, and above all what is not: rows in a real store, and a clock that stands at day 100.

use rusqlite::Connection;

use super::*;

const DAY: i64 = 24 * 60 * 60 * 1_000;
const NOW: i64 = 100 * DAY;

/// A process: its name is that of its tree, a dash, and its own; a root has its tree's alone.
struct P(&'static str, Option<i64>);

fn store() -> (tempfile::TempDir, Arc<Store>) {
    let dir = tempfile::tempdir().expect("a folder");
    let store = Arc::new(Store::open(dir.path(), Arc::new(|| NOW)).expect("opens"));
    (dir, store)
}

async fn sql(store: &Store, sql: impl Into<String>) {
    let sql = sql.into();
    let done = store.write(move |tx| Ok::<_, StoreError>(tx.db.execute_batch(&sql)?));
    done.await.expect("SQL");
}

/// Adds processes that ended on some day, or live, each with a row in every table.
async fn add(store: &Store, processes: &[P]) {
    let mut all = String::from(
        "INSERT INTO sessions (session_id, principal, caller_name, created_at) VALUES ('s', 'local', 'main', 1)
           ON CONFLICT DO NOTHING;",
    );
    for P(id, ended) in processes {
        let root = id.split('-').next().expect("a name");
        let parent = if root == *id { "NULL".to_owned() } else { format!("'{root}'") };
        let status = if ended.is_some() { "finished" } else { "running" };
        let ended = ended.map_or("NULL".to_owned(), |day| (day * DAY).to_string());
        all.push_str(&format!(
            "INSERT INTO snapshots (hash, definition) VALUES ('of {id}', '{{}}');
             INSERT INTO assistant_processes (process_id, assistant_id, snapshot, parent_process_id, parent_assistant_id,
               root_process_id, session_id, thread_id, depth, status, query, tools, unavailable_tools, model, limits,
               created_at, finished_at) VALUES ('{id}', 'a', 'of {id}', {parent}, 'main', '{root}', 's', 'thread {id}', 1,
               '{status}', 'go', '[]', '[]', 'm', '{{}}', 1, {ended});
             INSERT INTO events (process_id, at, kind, data) VALUES ('{id}', 1, 'status', '{{}}');
             INSERT INTO tool_calls (process_id, call_id, tool, started_at) VALUES ('{id}', 'c', 'list_files', 1);
             INSERT INTO assistant_messages (id, thread_id, session_id, kind, from_assistant_id, to_assistant_id,
               from_process_id, content, created_at) VALUES ('question {id}', 'thread {id}', 's', 'question', 'a', 'main',
               '{id}', 'why', 1), ('answer {id}', 'thread {id}', 's', 'message', 'main', 'a', NULL, 'so', 1);
             INSERT INTO questions (message_id, process_id, state, asked_at, answer_by_at, answer_message_id)
               VALUES ('question {id}', '{id}', 'ANSWERED', 1, 1, 'answer {id}');
             INSERT INTO conversations (process_id, position, message, hash, message_id)
               VALUES ('{id}', 0, '{{}}', 'h', 'answer {id}');
             INSERT INTO idempotency_keys VALUES ('process:{id}', 'send_message', 'k', '{{}}', {NOW}),
               ('principal:local', 'spawn_assistant', 'k {id}', '{{\"answer\":{{\"process_id\":\"{id}\"}}}}', {NOW});
             INSERT INTO blobs VALUES ('of {id}', x'01', 1), ('of all', x'02', 1) ON CONFLICT DO NOTHING;
             INSERT INTO blob_uses VALUES ('{id}', 'of {id}', 'a/b', NULL), ('{id}', 'of all', 'a/b', NULL);"
        ));
    }
    sql(store, all).await;
}

/// Adds a message between two processes; none is the session.
async fn message(store: &Store, kind: &str, from: &str, to: Option<&str>, day: i64) {
    let to = to.map_or("NULL".to_owned(), |to| format!("'{to}'"));
    let at = day * DAY;
    sql(
        store,
        format!(
            "INSERT INTO assistant_messages (id, thread_id, session_id, kind, from_assistant_id, to_assistant_id,
               from_process_id, to_process_id, content, created_at) VALUES ('{kind} {from} {at}', 'thread {from}', 's',
               '{kind}', 'a', 'b', '{from}', {to}, 'hello', {at});"
        ),
    )
    .await;
}

fn limits(days: u32, bytes: u64) -> Limits {
    Limits { retention_days: days, retention_bytes: bytes, ..Limits::default() }
}

async fn count(store: &Arc<Store>, table: &'static str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    let read = store.read(move |db| Ok::<_, StoreError>(db.query_row(&sql, [], |row| row.get(0))?));
    read.await.expect("a count")
}

/// Removes what is to be removed, and compares what is left. No row refers to one that is gone.
async fn check(store: &Arc<Store>, limits: Limits, left: &[&str]) -> Removed {
    let removed = retain(store, &limits, NOW, &CancellationToken::new()).await.expect("removed");
    assert_eq!(store.read(retention::roots).await.expect("roots"), left);
    let broken = |db: &Connection| Ok::<_, StoreError>(db.prepare("PRAGMA foreign_key_check")?.exists([])?);
    assert!(!store.read(broken).await.expect("a look"));
    removed
}

#[tokio::test(flavor = "multi_thread")]
async fn trees_go_whole_with_all_that_hangs_on_them() {
    let (_dir, store) = store();
    add(&store, &[P("old", Some(60)), P("old-child", Some(69)), P("young", Some(75)), P("young-child", Some(40))])
        .await;
    sql(&store, format!("INSERT INTO spent_days VALUES (60, 1), (80, 1); {OLD_SESSIONS}")).await;
    let removed = check(&store, limits(30, 0), &["young"]).await;
    assert_eq!(removed, Removed { trees: 1, processes: 2 });
    for (table, left) in [
        ("assistant_processes", 2),
        ("snapshots", 2),
        ("events", 2),
        ("tool_calls", 2),
        ("assistant_messages", 4),
        ("questions", 2),
        ("conversations", 2),
        ("idempotency_keys", 4),
        ("blobs", 3),
        ("blob_uses", 4),
        ("spent_days", 1),
        ("sessions", 3),
    ] {
        assert_eq!(count(&store, table).await, left, "{table}");
    }
    let newest = store.read(crate::events::newest).await.expect("the newest");
    assert_eq!(newest, 4, "the revision never falls");
}

/// One that ended long ago, one that ended today, and one that was left and may be come back to.
const OLD_SESSIONS: &str = "INSERT INTO sessions (session_id, principal, caller_name, created_at, ended_at, end_cause)
    VALUES ('old', 'local', 'main', 1, 1, 'ended'), ('new', 'local', 'main', 1, 8640000000, 'ended'),
      ('left', 'local', 'main', 1, 1, 'left')";

#[tokio::test(flavor = "multi_thread")]
async fn the_living_are_never_touched() {
    let (_dir, store) = store();
    add(&store, &[P("a", Some(1)), P("a-detached", None), P("b", None), P("c", Some(2)), P("d", Some(3))]).await;
    // `b` lives, and has mail from one that has ended, and has written to another one.
    message(&store, "message", "c", Some("b"), 2).await;
    message(&store, "message", "b", Some("d"), 3).await;
    let all = ["a", "b", "c", "d"];
    check(&store, limits(1, 1), &all).await;
    sql(&store, "UPDATE assistant_processes SET finished_at = 4, status = 'failed'").await;
    check(&store, limits(1, 1), &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_kept_process_goes_on_from_is_kept() {
    let (_dir, store) = store();
    add(&store, &[P("first", Some(1)), P("second", Some(2)), P("third", Some(90)), P("other", Some(3))]).await;
    sql(
        &store,
        "UPDATE assistant_processes SET resumed_from = 'first' WHERE process_id = 'second';
         UPDATE assistant_processes SET resumed_from = 'second' WHERE process_id = 'third'",
    )
    .await;
    check(&store, limits(30, 0), &["first", "second", "third"]).await;
    // The last of the line goes first.
    check(&store, limits(5, 0), &[]).await;
}

/// A line of conversation may last for years: each process of it holds all that was said before.
#[tokio::test(flavor = "multi_thread")]
async fn the_beginning_of_a_line_goes_when_the_next_one_has_ended() {
    let (_dir, store) = store();
    add(&store, &[P("first", Some(1)), P("second", Some(2)), P("third", Some(3)), P("last", None)]).await;
    sql(
        &store,
        "UPDATE assistant_processes SET line = 'l', turns = 1;
         UPDATE assistant_processes SET resumed_from = 'first' WHERE process_id = 'second';
         UPDATE assistant_processes SET resumed_from = 'second', turns = 0 WHERE process_id = 'third';
         UPDATE assistant_processes SET resumed_from = 'third' WHERE process_id = 'last'",
    )
    .await;
    // The third one never asked its model: it holds nothing, and the last one needs both.
    check(&store, limits(30, 0), &["last", "second", "third"]).await;
    let left = store.read(|db| {
        let sql = "SELECT count(*) FROM assistant_processes WHERE resumed_from IS NOT NULL";
        Ok::<i64, StoreError>(db.query_row(sql, [], |row| row.get(0))?)
    });
    assert_eq!(left.await.expect("a count"), 2, "the second one goes on from none any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_go_until_the_database_is_small_enough() {
    let (_dir, store) = store();
    add(&store, &[P("a", Some(91)), P("b", Some(92)), P("c", Some(93)), P("d", Some(94)), P("e", None)]).await;
    let filler = "UPDATE assistant_processes SET context = hex(zeroblob(500000))";
    sql(&store, filler).await;
    message(&store, "final", "b", None, 92).await;
    // About 1 MB each: two have to go, and what the session has not read of `b` keeps that.
    check(&store, limits(30, 3_500_000), &["b", "d", "e"]).await;
    sql(&store, "UPDATE assistant_messages SET read_at = 1").await;
    check(&store, limits(30, 2_500_000), &["d", "e"]).await;
    check(&store, limits(30, 0), &["d", "e"]).await;
    check(&store, limits(0, 0), &["d", "e"]).await;
    check(&store, limits(0, 1), &["e"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_just_ended_is_kept_whatever_its_size() {
    let (_dir, store) = store();
    add(&store, &[P("a", Some(99))]).await;
    sql(&store, format!("UPDATE assistant_processes SET finished_at = {}", NOW - 60_000)).await;
    check(&store, limits(30, 1), &["a"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_logs_go_in_parts_and_a_host_that_closes_is_not_held_up() {
    let (_dir, store) = store();
    add(&store, &[P("a", Some(1)), P("b", Some(2))]).await;
    let fill = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
        INSERT INTO events (process_id, at, kind, data) SELECT 'a', 1, 'stderr', '{}' FROM n";
    sql(&store, fill).await;
    let one = store.write(|tx| retention::remove(tx, "a", &limits(30, 0))).await.expect("a part");
    assert_eq!((one, count(&store, "events").await), (Removal::More, 5_002 - 2_000));
    let closing = CancellationToken::new();
    closing.cancel();
    let removed = retain(&store, &limits(30, 0), NOW, &closing).await.expect("nothing");
    assert_eq!(removed, Removed::default());
    check(&store, limits(30, 0), &[]).await;
    assert_eq!(count(&store, "events").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_closed_is_made_small_in_its_place() {
    let (dir, store) = store();
    add(&store, &[P("a", Some(1)), P("b", Some(99))]).await;
    sql(&store, "UPDATE assistant_processes SET context = hex(zeroblob(1000000))").await;
    store.close();
    let clock: Clock = Arc::new(|| NOW);
    let done = vacuum(dir.path(), Limits::default(), clock.clone()).await.expect("done");
    assert_eq!(done.removed, Removed { trees: 1, processes: 1 });
    assert!(done.space.bytes_before > 4_000_000 && done.space.bytes_after < 2_500_000, "{done:?}");
    let _held = lock::hold(dir.path(), Duration::ZERO).expect("free again");
    let held = vacuum(dir.path(), Limits::default(), clock).await.expect_err("a host has it");
    assert!(matches!(held, OpenError::Held { .. }), "{held}");
}
