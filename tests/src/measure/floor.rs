//! What the bare parts of the work take on this machine.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rusqlite::{Connection, named_params};

use crate::timing::{p50, timed};

const ROUNDS: usize = 50;
const SETTINGS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
    PRAGMA mmap_size = 268435456;";

/// What most figures are told beside, milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct Floor {
    /// A runner started, its stdin closed, and its end waited for.
    pub process: f64,
    /// One durable row of SQLite.
    pub row: f64,
}

fn bare(runner: &Path) -> Command {
    let mut command = Command::new(runner);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).env_clear();
    command
}

/// Measures a process and a row.
///
/// # Errors
/// In words: the program does not start, SQLite refuses.
pub fn measure(runner: &Path, folder: &Path) -> Result<Floor, String> {
    let mut failed = None;
    let process = timed(ROUNDS, || match bare(runner).stdin(Stdio::null()).status() {
        Ok(status) if status.success() => {}
        other => failed = Some(format!("the bare runner did not run: {other:?}")),
    });
    let row = row(folder).map_err(|error| error.to_string())?;
    failed.map_or(Ok(Floor { process, row }), Err)
}

/// The middle time of one durable row in a new database in `folder`, milliseconds.
///
/// # Errors
/// SQLite's.
pub fn row(folder: &Path) -> rusqlite::Result<f64> {
    let db = Connection::open(folder.join("floor.db"))?;
    db.execute_batch(SETTINGS)?;
    db.execute_batch("CREATE TABLE t (a TEXT)")?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        db.execute("INSERT INTO t VALUES ('row')", [])?;
        times.push(start.elapsed());
    }
    Ok(p50(times))
}

/// Starts many bare runners, then closes their stdin and waits for all: how long each of the two took, milliseconds.
///
/// # Errors
/// The system's.
pub fn crowd(runner: &Path, count: usize) -> std::io::Result<(f64, f64)> {
    let start = Instant::now();
    let mut all: Vec<Child> = (0..count).map(|_| bare(runner).spawn()).collect::<Result<_, _>>()?;
    let started = start.elapsed();
    let start = Instant::now();
    for one in &mut all {
        drop(one.stdin.take());
    }
    for mut one in all {
        one.wait()?;
    }
    Ok((started.as_secs_f64() * 1_000.0, start.elapsed().as_secs_f64() * 1_000.0))
}

/// SQLite alone, one thread, doing in the store `db` what sends do: the same statements, in batches of these sizes, to
/// these threads in turn. Messages a second.
///
/// # Errors
/// SQLite's.
pub fn sends(db: &Path, batches: &[u64], threads: &[String], text: &str) -> rusqlite::Result<f64> {
    let db = Connection::open(db)?;
    db.execute_batch(SETTINGS)?;
    let mut threads = threads.iter().cycle();
    let mut sent = 0_u64;
    let start = Instant::now();
    for jobs in batches {
        db.execute_batch("BEGIN IMMEDIATE")?;
        for _ in 0..*jobs {
            db.execute_batch("SAVEPOINT job")?;
            if let Some(thread) = threads.next() {
                send(&db, thread, text, sent)?;
            }
            db.execute_batch("RELEASE job")?;
            sent += 1;
        }
        db.execute_batch("COMMIT")?;
    }
    Ok(sent as f64 / start.elapsed().as_secs_f64())
}

/// The statements of one send of a session to the process of a thread.
fn send(db: &Connection, thread: &str, text: &str, number: u64) -> rusqlite::Result<()> {
    let (process, session) = process(db, "thread_id", thread)?;
    process_by_id(db, &process)?;
    for _ in 0..2 {
        db.prepare_cached("SELECT session_id, principal, caller_name, ended_at FROM sessions WHERE session_id = ?1")?
            .query_row([&session], |row| row.get::<_, String>(2))?;
    }
    db.prepare_cached(
        "SELECT count(*) FROM assistant_messages WHERE to_process_id = ?1 AND delivered_at IS NULL AND kind <> 'answer'",
    )?
    .query_row([&process], |row| row.get::<_, u32>(0))?;
    db.prepare_cached(
        "INSERT INTO assistant_messages (id, thread_id, session_id, kind, from_assistant_id, to_assistant_id,
           from_process_id, to_process_id, content, created_at)
         VALUES (:id, :thread, :session, 'message', 'main', 'x', NULL, :to, :content,
           max(:now, 1 + coalesce((SELECT max(created_at) FROM assistant_messages WHERE thread_id = :thread), 0)))",
    )?
    .execute(named_params! {
        ":id": format!("01a220ee-9b67-74ca-0000-{number:012}"), ":thread": thread, ":session": session,
        ":to": process, ":content": text, ":now": 1_764_000_000_000_i64,
    })?;
    db.prepare_cached("INSERT INTO events (process_id, at, kind, data) VALUES (?1, ?2, ?3, ?4)")?.execute((
        &process,
        1_764_000_000_000_i64,
        "message",
        format!(
            r#"{{"bytes":{},"from":"main","kind":"message","message_id":"01a220ee-9b67-74ca-0000-{number:012}","to":"x"}}"#,
            text.len()
        ),
    ))?;
    Ok(())
}

fn process_by_id(db: &Connection, process_id: &str) -> rusqlite::Result<()> {
    process(db, "process_id", process_id).map(|_| ())
}

/// The id and the session of a process; all of its row is read.
fn process(db: &Connection, column: &str, id: &str) -> rusqlite::Result<(String, String)> {
    let mut look = db.prepare_cached(&format!("SELECT * FROM assistant_processes WHERE {column} = ?1 ORDER BY seq"))?;
    look.query_row([id], |row| {
        for column in 0..row.as_ref().column_count() {
            row.get_ref(column)?;
        }
        Ok((row.get("process_id")?, row.get("session_id")?))
    })
}

/// One read of a process's row, on one thread: reads a second.
///
/// # Errors
/// SQLite's.
pub fn reads(db: &Path, process: &str) -> rusqlite::Result<f64> {
    let db = Connection::open(db)?;
    db.execute_batch("PRAGMA mmap_size = 268435456;")?;
    let count = 20_000;
    let start = Instant::now();
    for _ in 0..count {
        process_by_id(&db, process)?;
    }
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}
