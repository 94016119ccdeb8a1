//! Polls, spawns, and runs from the spawn to the result.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;

use super::floor::{self, Floor};
use super::gate::Gate;
use super::{Goal, told, told_rate};
use crate::bed::{Bed, Client, assistant, script};
use crate::timing::p50;

const ROUNDS: usize = 100;
const POLLS: usize = 5_000;
const POLLS_IN_FLIGHT: usize = 32;

fn bed(runner: &Path) -> Bed {
    let tool =
        json!([{ "text": "1", "tool_calls": [{ "tool_name": "list_files", "arguments": {} }] }, { "text": "done" }]);
    let assistants = [("plain.md", assistant("plain", "")), ("tool.md", assistant("tool", "list_files"))];
    let assistants = assistants.each_ref().map(|(file, text)| (*file, text.as_str()));
    Bed::new(runner, &assistants, &script(&[("plain", json!([{ "text": "done" }])), ("tool", tool)]))
}

/// Polls one at a time, and with many in flight.
///
/// # Errors
/// In words: SQLite's, the system's.
pub async fn poll(runner: &Path) -> Result<(), String> {
    let bed = bed(runner);
    let client = bed.open().await;
    let spawned = client.spawn("plain", "q").await;
    client.end(&spawned).await;
    let process = spawned["process_id"].as_str().unwrap_or_default();
    let floor =
        floor::reads(&bed.state().join(assistant_host::store::FILE), process).map_err(|error| error.to_string())?;
    let floor = ("bare reads of its row", floor);
    for (flight, goal) in [(1, 2_500.0), (POLLS_IN_FLIGHT, 10_000.0)] {
        let start = Instant::now();
        let polling = (0..flight).map(|_| {
            let (client, spawned) = (client.clone(), spawned.clone());
            tokio::spawn(async move {
                for _ in 0..POLLS / flight {
                    client.poll(&spawned).await;
                }
            })
        });
        for one in join_all(polling).await {
            one.map_err(|error| error.to_string())?;
        }
        let rate = (POLLS / flight * flight) as f64 / start.elapsed().as_secs_f64();
        told_rate(&format!("poll_assistant, {flight} in flight"), rate, floor, Some(Goal::AtLeast(goal, "/s")));
    }
    client.host.close().await;
    Ok(())
}

/// Spawns one after the other: until each is answered, and until its runner asks the model first.
pub async fn first_requests(runner: &Path) -> (Vec<Duration>, Vec<Duration>) {
    let gate = Arc::new(Gate::new(true));
    let gated = Bed::with_model(runner, &[("x.md", &assistant("x", ""))], gate.clone());
    let client = gated.open().await;
    let (mut answered, mut asked) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let start = Instant::now();
        let spawned = client.spawn("x", "q").await;
        answered.push(start.elapsed());
        asked.push(gate.until_asked(round + 1).await.duration_since(start));
        client.end(&spawned).await;
    }
    client.host.close().await;
    (answered, asked)
}

/// A spawn until it is answered, until its runner asks the model first, and until its result is there.
///
/// # Errors
/// None so far.
pub async fn spawn(runner: &Path, floor: Floor) -> Result<(), String> {
    let (answered, asked) = first_requests(runner).await;
    told("spawn_assistant answered, p50", p50(answered), ("a durable row", floor.row), None);
    let both = ("a process and a row", floor.process + floor.row);
    told("spawn to the first model request, p50", p50(asked), both, None);
    let bed = bed(runner);
    let client = bed.open().await;
    let goal = Some(Goal::AtMost(5.0, " ms"));
    told("spawn to result, p50", results(&client, "plain").await, both, goal);
    told("spawn to result, two model calls and a tool call, p50", results(&client, "tool").await, both, goal);
    client.host.close().await;
    Ok(())
}

async fn results(client: &Client, assistant: &str) -> f64 {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        client.call("spawn_assistant", json!({ "assistant_id": assistant, "query": "q", "run_mode": "sync" })).await;
        times.push(start.elapsed());
    }
    p50(times)
}
