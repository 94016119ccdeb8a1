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
    tokio::time::timeout(SOON, there).await.unwrap_or_else(|_| panic!("never {many} at work"));
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
    tokio::time::timeout(SOON, look).await.unwrap_or_else(|_| panic!("these are left: {:?}", runners_of(state)));
}
