//! Many assistants alive at once, and the cancel of many.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use futures::future::join_all;
use serde_json::{Value, json};

use super::gate::Gate;
use super::{Goal, floor};
use crate::bed::{Bed, Client, assistant, running};
use crate::doors::until;
use crate::timing::{pss_kib, tell};

/// Processes whose cancel is measured.
const CANCELLED: usize = 500;

fn bed(runner: &Path, gate: &Arc<Gate>, count: usize) -> Bed {
    let assistants = [("leaf.md", assistant("leaf", "")), ("boss.md", assistant("boss", "spawn_assistant"))];
    let assistants = assistants.each_ref().map(|(file, text)| (*file, text.as_str()));
    let mut bed = Bed::with_model(runner, &assistants, gate.clone());
    let most = u32::try_from(count + 8).unwrap_or(u32::MAX);
    let limits = &mut bed.limits;
    (limits.running_per_session, limits.running_per_host, limits.living_per_session) = (most, most, most);
    (limits.tokens_per_tree, limits.tokens_per_day) = (1 << 50, 1 << 50);
    (limits.queue_per_session, limits.model_calls, limits.spawns_per_tree, limits.tool_calls) =
        (most, most, most, most);
    bed
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1_000.0
}

async fn spawned(client: &Client, count: usize) -> Vec<Value> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(client.spawn("leaf", "q").await);
    }
    all
}

/// Waits for all, and tells how many did not finish.
async fn failures(client: &Client, all: &[Value]) -> usize {
    let mut failed = 0;
    for one in all {
        failed += usize::from(client.end(one).await["status"] != "finished");
    }
    failed
}

/// As many at once as given: with a model that answers at once, and all alive until the last one runs.
///
/// # Errors
/// In words: the system's, and those that did not finish.
pub async fn alive(runner: &Path, count: usize) -> Result<(), String> {
    let (bare_start, bare_end) = floor::crowd(runner, count).map_err(|error| error.to_string())?;
    let gate = Arc::new(Gate::new(true));
    let instant = bed(runner, &gate, count);
    let client = instant.open().await;
    let start = Instant::now();
    let mut failed = failures(&client, &spawned(&client, count).await).await;
    let took = ms(start);
    client.host.close().await;
    let goal = if count == 100 { Goal::AtMost(450.0, " ms").judge(took) } else { String::new() };
    let bare = bare_start + bare_end;
    tell(&format!(
        "{count} at once, first spawn to last end: {took:.0} ms, {:.1} × as many bare processes ({bare:.0} ms){goal}",
        took / bare
    ));

    let gate = Arc::new(Gate::new(false));
    let held = bed(runner, &gate, count);
    let client = held.open().await;
    let before = pss_kib(std::process::id());
    let start = Instant::now();
    let all = spawned(&client, count).await;
    let answered = ms(start);
    gate.until_asked(count).await;
    let ran = ms(start);
    let host = pss_kib(std::process::id()).saturating_sub(before);
    let runners: u64 = running(runner).into_iter().map(pss_kib).sum();
    let start = Instant::now();
    gate.open();
    failed += failures(&client, &all).await;
    let ended = ms(start);
    client.host.close().await;
    let goal = if count == 1_000 { Goal::AtMost(200.0, " MB").judge(runners as f64 / 1_024.0) } else { String::new() };
    tell(&format!(
        "{count} alive: answered after {answered:.0} ms, all ask the model after {ran:.0} ms ({:.0} started a second, \
         {:.1} × bare), all ended {ended:.0} ms after the answer ({:.1} × bare); memory (PSS): host +{:.1} MB, runners \
         {:.1} MB{goal}; failures: {failed}",
        count as f64 * 1_000.0 / ran,
        ran / bare_start,
        ended / bare_end,
        host as f64 / 1_024.0,
        runners as f64 / 1_024.0,
    ));
    if failed == 0 { Ok(()) } else { Err(format!("{failed} of {count} did not finish")) }
}

/// The cancel of one process with 500 below it, and of 500 that a session spawned.
///
/// # Errors
/// In words: the system's, and what was not cancelled.
pub async fn cancel(runner: &Path) -> Result<(), String> {
    let (_, bare) = floor::crowd(runner, CANCELLED).map_err(|error| error.to_string())?;
    let gate = Arc::new(Gate::new(false));
    let tree = bed(runner, &gate, CANCELLED);
    let client = tree.open().await;
    let root = client.spawn("boss", &format!("{CANCELLED} leaves")).await;
    gate.until_asked(CANCELLED + 2).await;
    let start = Instant::now();
    let answer = client.call("cancel_assistant", json!({ "process_id": root["process_id"] })).await;
    let answered = ms(start);
    let ids = answer["cancelled"].as_array().cloned().unwrap_or_default();
    let ended = cancelled(&client, ids.iter().map(|id| json!({ "process_id": id })).collect()).await?;
    told("a tree of 1 + 500", &client, runner, (start, answered, ended, bare)).await;

    let gate = Arc::new(Gate::new(false));
    let roots = bed(runner, &gate, CANCELLED);
    let client = roots.open().await;
    let all = spawned(&client, CANCELLED).await;
    gate.until_asked(CANCELLED).await;
    let start = Instant::now();
    join_all(all.iter().map(|one| client.call("cancel_assistant", json!({ "process_id": one["process_id"] })))).await;
    let answered = ms(start);
    let ended = cancelled(&client, all).await?;
    told("500 of a session", &client, runner, (start, answered, ended, bare)).await;
    Ok(())
}

async fn cancelled(client: &Client, all: Vec<Value>) -> Result<Instant, String> {
    if all.len() < CANCELLED {
        return Err(format!("only {} were cancelled", all.len()));
    }
    for one in &all {
        let end = client.end(one).await;
        if end["status"] != "cancelled" {
            return Err(format!("not cancelled: {end}"));
        }
    }
    Ok(Instant::now())
}

async fn told(
    what: &str,
    client: &Client,
    runner: &Path,
    (start, answered, ended, bare): (Instant, f64, Instant, f64),
) {
    until("the runners are gone", || running(runner).is_empty().then_some(()));
    let gone = ms(start);
    client.host.close().await;
    let ended = ended.duration_since(start).as_secs_f64() * 1_000.0;
    tell(&format!(
        "cancel of {what}: answered after {answered:.0} ms, all ended after {ended:.0} ms, no runner left after \
         {gone:.0} ms, {:.1} × as many bare processes that end ({bare:.0} ms){}",
        gone / bare,
        Goal::AtMost(2_000.0, " ms").judge(gone)
    ));
}
