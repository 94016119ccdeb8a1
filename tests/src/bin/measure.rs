//! How fast it is, on this machine: `cargo build --release -p conformance --bins && target/release/measure`.
//!
//! Each figure is told beside a floor of the same run: what the machine needs for the bare parts of the same work.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use conformance::bed::{Bed, Client, assistant, script};
use conformance::timing::{p50, tell, timed};
use serde_json::json;

const ROUNDS: usize = 50;
const AT_ONCE: usize = 100;

/// A bare program started, its stdin closed, and its end waited for, p50 in milliseconds.
fn bare_process(runner: &Path) -> f64 {
    timed(ROUNDS, || {
        let mut command = Command::new(runner);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).env_clear();
        if command.status().is_err() {
            tell("a bare process could not be started");
        }
    })
}

/// One durable row of SQLite, p50 in milliseconds.
fn bare_commit(folder: &Path) -> Result<f64, rusqlite::Error> {
    let db = rusqlite::Connection::open(folder.join("floor.db"))?;
    db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (a TEXT)")?;
    let mut failed = None;
    let time = timed(ROUNDS, || failed = db.execute("INSERT INTO t VALUES ('row')", []).err().or(failed.take()));
    failed.map_or(Ok(time), Err)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runner = std::env::current_exe()?.with_file_name(format!("runner-under-test{}", std::env::consts::EXE_SUFFIX));
    if !runner.is_file() {
        return Err("build the runner first: cargo build --release -p conformance --bins".into());
    }
    let steps =
        json!([{ "text": "1", "tool_calls": [{ "tool_name": "list_files", "arguments": {} }] }, { "text": "done" }]);
    let mut bed = Bed::new(&runner, &[("x.md", &assistant("x", "list_files"))], &script(&[("x", steps)]));
    bed.limits.running_per_session = 100;
    bed.limits.running_per_host = 100;
    bed.limits.model_calls = 100;
    let (process, commit) = (bare_process(&runner), bare_commit(bed.dir.path())?);
    tell(&format!("floor: a runner started and ended {process:.2} ms, a durable row {commit:.2} ms"));
    let client = bed.open().await;

    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        client.call("spawn_assistant", json!({ "assistant_id": "x", "query": "q", "run_mode": "sync" })).await;
        times.push(start.elapsed());
    }
    let spawn = p50(times);
    tell(&format!(
        "spawn to result, two model calls and a tool call: p50 {spawn:.2} ms, {:.1} times the floor",
        spawn / (process + commit)
    ));

    let mut times = Vec::new();
    let last = client.spawn("x", "q").await;
    client.end(&last).await;
    for _ in 0..ROUNDS * 10 {
        let start = Instant::now();
        client.poll(&last).await;
        times.push(start.elapsed());
    }
    tell(&format!("poll_assistant: p50 {:.3} ms", p50(times)));

    let all = at_once(&client).await;
    let ratio = all / (process * AT_ONCE as f64);
    tell(&format!("{AT_ONCE} at once: {all:.0} ms, {ratio:.1} times as many bare processes one after the other"));
    client.host.close().await;
    Ok(())
}

/// Spawns many and waits for all, milliseconds.
async fn at_once(client: &Client) -> f64 {
    let start = Instant::now();
    let mut spawned = Vec::new();
    for _ in 0..AT_ONCE {
        spawned.push(client.spawn("x", "q").await);
    }
    for one in &spawned {
        client.end(one).await;
    }
    start.elapsed().as_secs_f64() * 1_000.0
}
