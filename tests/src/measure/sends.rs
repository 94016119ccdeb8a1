//! Durable messages a second, by 1 to 512 senders, beside SQLite doing the same statements in the same batches.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;

use super::gate::Gate;
use super::{Goal, batches, floor, told_rate};
use crate::bed::{Bed, assistant};

/// Receivers, so that none has more mail than its mailbox holds.
const RECEIVERS: usize = 32;
const SENDS: usize = 8_192;
const SENDERS: [usize; 4] = [1, 8, 64, 512];
/// Of the messages, bytes.
const TEXT_BYTES: usize = 200;

/// Measures each number of senders on a store of its own.
///
/// # Errors
/// In words: SQLite's, the system's.
pub async fn measure(runner: &std::path::Path) -> Result<(), String> {
    for senders in SENDERS {
        let gate = Arc::new(Gate::new(false));
        let mut bed = Bed::with_model(runner, &[("x.md", &assistant("x", ""))], gate.clone());
        (bed.limits.running_per_session, bed.limits.model_calls) = (64, 64);
        let client = bed.open().await;
        let mut threads = Vec::new();
        for _ in 0..RECEIVERS {
            threads.push(client.spawn("x", "q").await["thread_id"].as_str().unwrap_or_default().to_owned());
        }
        gate.until_asked(RECEIVERS).await;
        let copy = bed.dir.path().join("copy.db");
        copied(&bed.state().join(assistant_host::store::FILE), &copy).map_err(|error| error.to_string())?;
        let text = "x".repeat(TEXT_BYTES);
        drop(batches::take());
        let start = Instant::now();
        let each = SENDS / senders;
        let sending = (0..senders).map(|sender| {
            let (client, threads, text) = (client.clone(), threads.clone(), text.clone());
            tokio::spawn(async move {
                for round in 0..each {
                    let thread = &threads[(sender + round) % threads.len()];
                    client.call("send_message", json!({ "thread_id": thread, "message": text })).await;
                }
            })
        });
        for one in sending.collect::<Vec<_>>() {
            one.await.map_err(|error| error.to_string())?;
        }
        let rate = (each * senders) as f64 / start.elapsed().as_secs_f64();
        let batches = batches::take();
        let bare = floor::sends(&copy, &batches, &threads, &text).map_err(|error| error.to_string())?;
        let jobs = batches.iter().sum::<u64>() as f64 / batches.len().max(1) as f64;
        let goal = (senders == 64).then_some(Goal::AtLeast(0.7, " of it"));
        let what = format!("durable sends, {senders} senders, {jobs:.1} jobs a COMMIT");
        told_rate(&what, rate, ("bare SQLite in the same batches", bare), goal);
        gate.open();
        client.host.close().await;
    }
    Ok(())
}

fn copied(db: &std::path::Path, to: &std::path::Path) -> rusqlite::Result<()> {
    let db = rusqlite::Connection::open(db)?;
    db.execute("VACUUM INTO ?1", [to.to_string_lossy()]).map(|_| ())
}
