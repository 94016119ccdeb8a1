//! Files that are not what they should be: what is told, and that nothing is changed where one is refused.

use std::fs;

use super::*;

/// A closed database with rows, and its folder.
fn made() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    Store::open(dir.path(), Arc::new(|| 0)).expect("opens").close();
    let file = dir.path().join(FILE);
    let db = Connection::open(&file).expect("opens");
    for number in 0..200 {
        let hash = format!("{number:03}");
        db.execute("INSERT INTO snapshots (hash, definition) VALUES (?1, ?2)", (hash, "x".repeat(500))).expect("a row");
    }
    drop(db);
    (dir, file)
}

/// Every file of a folder with its bytes, but for the index of the log, which is made anew.
fn bytes(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path());
    let files = entries.filter(|path| path.is_file() && !path.to_string_lossy().ends_with("-shm"));
    let mut all: Vec<_> = files.map(|path| (path.clone(), fs::read(path).expect("bytes"))).collect();
    all.retain(|(path, bytes)| !bytes.is_empty() || path.ends_with(FILE));
    all.sort();
    all
}

/// Does something to a database, and compares what opening it says. The files stay as they are.
fn refused(harm: impl FnOnce(&Path), words: &[&str]) {
    let (dir, file) = made();
    harm(&file);
    let before = bytes(dir.path());
    let error = Store::open_tuned(dir.path(), Arc::new(|| 0), Tuning { busy_ms: 50, pages_max: None });
    let error = error.err().unwrap_or_else(|| panic!("{words:?}: it was opened")).to_string();
    for word in words.iter().chain(&[&*file.to_string_lossy()]) {
        assert!(error.contains(word), "`{word}` is missing: {error}");
    }
    assert!(bytes(dir.path()) == before, "{error}: the files are others than before");
}

fn overwrite(file: &Path, at: u64, with: &[u8]) {
    use std::io::{Seek, SeekFrom, Write};
    let mut open = fs::File::options().write(true).open(file).expect("opens");
    open.seek(SeekFrom::Start(at)).expect("a place");
    open.write_all(with).expect("written");
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let anew = "move the file and those named like it away to begin anew";
    refused(|file| fs::write(file, "Dear diary,\n").expect("written"), &["file is not a database", anew]);
    refused(|file| fs::write(file, vec![b'x'; 100_000]).expect("written"), &["file is not a database", anew]);
    refused(|file| overwrite(file, 0, &[0; 64]), &["file is not a database", anew]);
    refused(
        |file| {
            fs::remove_file(file).expect("removed");
            fs::create_dir(file).expect("a folder");
        },
        &["move the folder of that name away"],
    );
}

#[test]
fn a_damaged_file_is_refused() {
    let anew = "put a copy back, or move the file and those named like it away to begin anew";
    let length = |file: &Path| fs::metadata(file).expect("there").len();
    let cut = |file: &Path, to: u64| {
        fs::File::options().write(true).open(file).expect("opens").set_len(to).expect("cut");
    };
    refused(|file| cut(file, length(file) / 2), &["malformed", anew]);
    refused(|file| cut(file, 5_000), &["malformed", anew]);
    refused(
        |file| {
            let rest = vec![0xa5; usize::try_from(length(file) - 4_096).expect("small")];
            overwrite(file, 4_096, &rest);
        },
        &["malformed", anew],
    );
    refused(
        |file| {
            fs::write(super::super::writer::wal_of(file), vec![0xa5; 100_000]).expect("written");
            cut(file, 0);
        },
        &["it is empty, and the log of its changes is not", anew],
    );
}

#[test]
fn a_file_of_another_program_is_refused() {
    let version = |file: &Path, version: i64| {
        let db = Connection::open(file).expect("opens");
        db.pragma_update(None, "user_version", version).expect("written");
    };
    refused(|file| version(file, 99), &["written by a newer version", "schema 99", "another state directory"]);
    // One that was killed: its changes are in the log still.
    refused(
        |file| {
            let db = Connection::open(file).expect("opens");
            db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).expect("set");
            db.pragma_update(None, "user_version", 99).expect("written");
        },
        &["written by a newer version"],
    );
    refused(
        |file| {
            fs::remove_file(file).expect("removed");
            Connection::open(file).expect("opens").execute_batch("CREATE TABLE recipes (name)").expect("a table");
        },
        &["a database of another program"],
    );
    refused(
        |file| Connection::open(file).expect("opens").execute_batch("CREATE TABLE recipes (name)").expect("a table"),
        &["15 tables and should have 14"],
    );
}

#[test]
fn a_file_that_another_program_holds_is_refused() {
    let (dir, file) = made();
    let db = Connection::open(&file).expect("opens");
    db.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; DELETE FROM snapshots").expect("locked");
    let error = Store::open_tuned(dir.path(), Arc::new(|| 0), Tuning { busy_ms: 50, pages_max: None });
    let error = error.err().expect("refused").to_string();
    assert!(error.contains("locked; end the program that has it open"), "{error}");
    db.execute_batch("ROLLBACK").expect("unlocked");
    drop(db);
    Store::open(dir.path(), Arc::new(|| 0)).expect("opens");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_file_and_garbage_for_a_log_are_no_harm() {
    let (dir, file) = made();
    fs::write(super::super::writer::wal_of(&file), vec![0xa5; 100_000]).expect("written");
    let store = Arc::new(Store::open(dir.path(), Arc::new(|| 0)).expect("opens"));
    assert_eq!(rows(&store).await.len(), 200);
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join(FILE), "").expect("written");
    let store = Arc::new(Store::open(dir.path(), Arc::new(|| 0)).expect("begins anew"));
    add(&store, "a", false).await.expect("added");
    assert_eq!(rows(&store).await, ["a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_in_the_middle_is_told_and_the_rest_stays_readable() {
    let (dir, file) = made();
    let db = Connection::open(&file).expect("opens");
    db.execute("INSERT INTO spent_days (day, tokens) VALUES (1, 2)", []).expect("a row");
    let page: u64 = db
        .query_row("SELECT rootpage FROM sqlite_master WHERE name = 'snapshots'", [], |row| row.get(0))
        .expect("a page");
    let size: u64 = db.pragma_query_value(None, "page_size", |row| row.get(0)).expect("a size");
    drop(db);
    overwrite(&file, (page - 1) * size, &vec![0xa5; usize::try_from(size).expect("small")]);
    let store = Arc::new(Store::open(dir.path(), Arc::new(|| 0)).expect("opens"));
    let count = |table: &'static str| {
        let sql = format!("SELECT count(*) FROM {table} WHERE tokens > 0 OR true");
        let sql = if table == "snapshots" { "SELECT count(definition) FROM snapshots".to_owned() } else { sql };
        store.read(move |db| Ok::<i64, StoreError>(db.query_row(&sql, [], |row| row.get(0))?))
    };
    let (read, written) = (count("snapshots").await, add(&store, "a", false).await);
    for error in [read.map(drop), written.map(drop)] {
        let error = error.expect_err("it is damaged");
        assert!(matches!(error, StoreError::Corrupt { .. }) && !error.passes(), "{error:?}");
        assert!(error.to_string().contains("put a copy back"), "{error}");
    }
    assert_eq!(count("spent_days").await.expect("read"), 1);
    let day = store.write(|tx| Ok::<_, StoreError>(tx.db.execute("INSERT INTO spent_days VALUES (2, 3)", [])?));
    assert_eq!(day.await.expect("written"), 1, "the rest goes on");
    assert!(matches!(store.vacuum().await, Err(StoreError::Corrupt { .. })), "and is not made smaller");
    assert_eq!(count("spent_days").await.expect("read"), 2);
}

/// A database of the first schema with a row in each of some tables, closed.
fn older() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join(FILE);
    let db = Connection::open(&file).expect("opens");
    db.execute_batch(open::MIGRATIONS[0]).expect("the first schema");
    db.execute_batch(
        "PRAGMA user_version = 1;
         INSERT INTO snapshots (hash, definition) VALUES ('h', '{}');
         INSERT INTO sessions (session_id, principal, caller_name, created_at) VALUES ('s', 'local', 'main', 1);
         INSERT INTO assistant_processes (process_id, assistant_id, snapshot, parent_assistant_id, root_process_id,
           session_id, thread_id, depth, status, query, tools, unavailable_tools, model, limits, created_at, turns)
           VALUES ('p', 'a', 'h', 'main', 'p', 's', 't', 1, 'finished', 'go', '[]', '[]', 'm', '{}', 1, 7);
         INSERT INTO events (process_id, at, kind, data) VALUES ('p', 1, 'status', '{}');",
    )
    .expect("rows");
    (dir, file)
}

#[test]
fn an_older_schema_is_brought_up_to_date_without_loss() {
    let (dir, file) = older();
    Store::open(dir.path(), Arc::new(|| 0)).expect("opens").close();
    let db = Connection::open(&file).expect("opens");
    let version: usize = db.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a version");
    assert_eq!(version, open::MIGRATIONS.len());
    let row = db.query_row("SELECT process_id, turns, spent_tokens FROM assistant_processes", [], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
    });
    assert_eq!(row.expect("the row"), ("p".to_owned(), 7, 0));
    let events: i64 = db.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).expect("a count");
    assert_eq!(events, 1);
    // The same as a new one.
    let columns = |db: &Connection| -> Vec<String> {
        let mut look = db.prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").expect("SQL");
        look.query_map([], |row| row.get(0)).expect("rows").collect::<Result<_, _>>().expect("texts")
    };
    let fresh = tempfile::tempdir().expect("a folder");
    Store::open(fresh.path(), Arc::new(|| 0)).expect("opens").close();
    assert_eq!(columns(&db), columns(&Connection::open(fresh.path().join(FILE)).expect("opens")));
}

#[test]
fn a_step_that_fails_half_way_leaves_the_file_as_it_was() {
    let (_dir, file) = older();
    let steps = [
        open::MIGRATIONS[0],
        open::MIGRATIONS[1],
        "CREATE TABLE more (x INTEGER) STRICT; INSERT INTO nowhere VALUES (1);",
    ];
    let error = open::open(&file, Tuning::default(), &steps).expect_err("it fails").to_string();
    assert!(error.contains("its schema 1 could not be brought to 3") && error.contains("nowhere"), "{error}");
    let db = Connection::open(&file).expect("opens");
    let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a version");
    let tables: i64 = db
        .query_row("SELECT count(*) FROM sqlite_master WHERE name IN ('more', 'spent_days')", [], |row| row.get(0))
        .expect("a count");
    let turns: i64 = db.query_row("SELECT turns FROM assistant_processes", [], |row| row.get(0)).expect("the row");
    assert_eq!((version, tables, turns), (1, 0, 7), "nothing of any step is there");
}
