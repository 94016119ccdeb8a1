//! A cancel reaches everything below, at once, and leaves nothing behind.

use std::path::Path;
use std::time::Duration;

use conformance::bed::{Bed, Client, SOON, assistant, script};
use serde_json::{Value, json};

use crate::RUNNER;
use crate::crash::runners_of;

const SPAWNING: &str = "spawn_assistant, wait_assistant";

/// A model call that spawns `many` assistants.
fn spawns(assistant: &str, many: usize) -> Value {
    let one = json!({ "tool_name": "spawn_assistant", "arguments": { "assistant_id": assistant, "query": "go" } });
    json!({ "tool_calls": vec![one; many] })
}

/// Waits until `many` processes run.
async fn all_at_work(client: &Client, many: usize) {
    let there = async {
        loop {
            let listed = client.call("list_process", json!({ "status": "running", "page_size": 1 })).await;
            if listed["total_items"] == json!(many) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // Each is a process that starts: on a loaded machine that takes its time.
    let soon = SOON + Duration::from_millis(200) * u32::try_from(many).unwrap_or(u32::MAX);
    tokio::time::timeout(soon, there).await.unwrap_or_else(|_| panic!("never {many} at work"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_of_five_hundred_is_cancelled_in_one_go() {
    let files = ["top", "middle", "leaf"].map(|name| (format!("{name}.md"), assistant(name, SPAWNING)));
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let hang = json!({ "hang": true });
    let steps = script(&[
        ("top", json!([spawns("middle", 20), hang])),
        ("middle", json!([spawns("leaf", 24), hang])),
        ("leaf", json!([hang])),
    ]);
    let mut bed = Bed::new(RUNNER, &files, &steps);
    let many = 1 + 20 + 20 * 24;
    for limit in [
        &mut bed.limits.running_per_session,
        &mut bed.limits.running_per_host,
        &mut bed.limits.spawns_per_tree,
        &mut bed.limits.model_calls,
        &mut bed.limits.queue_per_session,
    ] {
        *limit = 1_000;
    }
    bed.limits.launch_ms = 60_000;
    (bed.limits.tokens_per_tree, bed.limits.tokens_per_day) = (u64::MAX / 4, u64::MAX / 4);
    let client = bed.open().await;
    let state = bed.state().canonicalize().expect("the state");
    let root = client.spawn("top", "go").await;
    all_at_work(&client, many).await;
    assert_eq!(runners_of(&state).len(), many);
    let cancelled = client.call("cancel_assistant", json!({ "process_id": root["process_id"] })).await;
    assert_eq!(cancelled["cancelled"].as_array().map(Vec::len), Some(many));
    nothing_left(&client, &state).await;
    let ended = client.call("list_process", json!({ "status": "cancelled", "page_size": 1 })).await;
    assert_eq!(ended["total_items"], json!(many), "each of them is cancelled");
    assert_eq!(client.mail(&root).await, ["Cancelled (requested)."]);
    client.host.close().await;
}

/// Waits until every row is terminal and every runner has gone.
async fn nothing_left(client: &Client, state: &Path) {
    let look = async {
        while client.host.living().await.expect("a count") > 0 || !runners_of(state).is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(3 * SOON, look).await.unwrap_or_else(|_| panic!("these are left: {:?}", runners_of(state)));
}

/// An assistant that spawns five more of its kind in each of its turns, and then does nothing.
fn greedy() -> Bed {
    let turns: Vec<Value> = std::iter::repeat_n(spawns("greedy", 5), 12).chain([json!({ "hang": true })]).collect();
    let mut bed =
        Bed::new(RUNNER, &[("greedy.md", &assistant("greedy", SPAWNING))], &script(&[("greedy", Value::Array(turns))]));
    bed.limits.model_calls = 100;
    bed.limits.running_per_session = 6;
    bed
}

/// Lets one spawn as it likes until its root is refused by a limit; what there is then is within `most` in all, `living`
/// at once, 3 deep, 6 running, and the limit is reached exactly. Its cancel leaves nothing.
async fn held(bed: Bed, limit: &str, most: u32) {
    let client = bed.open().await;
    let state = bed.state().canonicalize().expect("the state");
    let db = rusqlite::Connection::open(state.join("assistant-host.db")).expect("the store");
    let count = |what: &str| {
        let sql = format!("SELECT {what} FROM assistant_processes p");
        db.query_row(&sql, [], |row| row.get::<_, u32>(0)).expect("a count")
    };
    let refused = || {
        let sql = "SELECT count(*) FROM tool_calls WHERE result LIKE ?1";
        db.query_row(sql, [format!("%{limit}%")], |row| row.get::<_, u32>(0)).expect("a count") > 0
    };
    let root = client.spawn("greedy", "go").await;
    let begun = std::time::Instant::now();
    let slots = "count(*) FILTER (WHERE status IN ('starting', 'running') AND NOT EXISTS (SELECT 1 FROM
                 assistant_processes c WHERE c.parent_process_id = p.process_id AND c.finished_at IS NULL))";
    while !refused() {
        assert!(begun.elapsed() < SOON, "{limit} is never told");
        assert!(count(slots) <= 6, "more run than may");
        assert!(count("count(*)") <= most, "more than {most}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!((count("count(*)"), count("count(*) FILTER (WHERE finished_at IS NULL)")), (most, most), "{limit}");
    assert!(count("max(depth)") <= 3);
    client.call("cancel_assistant", json!({ "process_id": root["process_id"] })).await;
    nothing_left(&client, &state).await;
    assert_eq!(count("count(*) FILTER (WHERE status = 'cancelled')"), most, "{limit}: nothing is spawned any more");
    let next = client.spawn("greedy", "go").await;
    assert_eq!(next["capacity"]["running"], 1, "no slot is held: {next}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_always_spawns_five_more_is_held_by_its_tree() {
    let mut bed = greedy();
    bed.limits.spawns_per_tree = 40;
    held(bed, "limit_spawns_per_tree", 40).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_always_spawns_five_more_is_held_by_the_living() {
    let mut bed = greedy();
    bed.limits.living_per_session = 23;
    held(bed, "limit_living_per_session", 23).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_always_spawns_five_more_is_held_in_depth() {
    let mut bed = greedy();
    bed.limits.depth = 1;
    held(bed, "limit_depth", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parents_that_wait_in_the_only_slot_always_finish() {
    let tools = "spawn_assistant, wait_assistant, reply_assistant, ask_parent";
    let call = |tool: &str, arguments: Value| json!({ "tool_name": tool, "arguments": arguments });
    let spawn = |assistant: &str, run_mode: &str| {
        call("spawn_assistant", json!({ "assistant_id": assistant, "query": "go", "run_mode": run_mode }))
    };
    // Longer than any machine takes: who stops waiting ends, and its children with it.
    let wait = call("wait_assistant", json!({ "mode": "all", "wait_ms": 1_200_000 }));
    let reply = call("reply_assistant", json!({ "process_id": "{{spawn_assistant.process_id}}", "answer": "seven" }));
    // Waits in a sync spawn, then for several, and answers nobody: its children ask nothing.
    let top = json!([
        { "tool_calls": [spawn("middle", "sync")] },
        { "tool_calls": [spawn("middle", "async"), spawn("middle", "async")] },
        { "tool_calls": [wait] },
        { "text": "all are done" },
    ]);
    // Its child asks while it waits.
    let middle = json!([
        { "tool_calls": [spawn("leaf", "sync")] },
        { "tool_calls": [reply] },
        { "tool_calls": [wait] },
        // The result may have come before it waited: then it is told already, and the wait gives none.
        { "text": "my leaf is done" },
    ]);
    let leaf = json!([
        { "tool_calls": [call("ask_parent", json!({ "question": "how many?" }))] },
        { "text": "{{ask_parent.answer}} it is" },
    ]);
    let files = ["top", "middle", "leaf"].map(|name| (format!("{name}.md"), assistant(name, tools)));
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let mut bed = Bed::new(RUNNER, &files, &script(&[("top", top), ("middle", middle), ("leaf", leaf)]));
    bed.limits.running_per_host = 1;
    bed.limits.running_per_session = 1;
    let client = bed.open().await;
    // Several trees at once, for one slot.
    let mut tops = Vec::new();
    for _ in 0..3 {
        tops.push(client.spawn("top", "go").await);
    }
    for top in &tops {
        let ended = client.end(top).await;
        assert_eq!(ended["status"], "finished", "{ended}");
        assert_eq!(client.mail(top).await, ["all are done"]);
    }
    let listed = client.call("list_process", json!({ "page_size": 50 })).await;
    let all = listed["items"].as_array().cloned().unwrap_or_default();
    let others: Vec<&Value> = all.iter().filter(|one| one["status"] != "finished").collect();
    assert_eq!((all.len(), others), (3 * (1 + 3 + 3), vec![]), "each of them is finished");
    client.host.close().await;
}
