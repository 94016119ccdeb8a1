//! Cost per execution (4.16).

use assistant_host::model::prices::Price;
use conformance::bed::SOON;
use serde_json::{Value, json};

use super::{bed, call};

/// Dollars; what floats leave over is not compared.
fn cents(usage: &Value) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "small numbers")]
    usage["cost_usd"].as_f64().map(|dollars| (dollars * 10_000.0).round() as i64)
}

#[tokio::test(flavor = "multi_thread")]
async fn row_4_16_cost_of_a_process_and_of_all_that_it_spawned() {
    let spawn =
        |id: &str, mode: &str| call("spawn_assistant", json!({ "assistant_id": id, "query": "go", "run_mode": mode }));
    let mut bed = bed(&[
        (
            "parent",
            "spawn_assistant, list_files",
            json!([
                { "text": "1", "tool_calls": [spawn("child", "sync")] },
                { "text": "2", "tool_calls": [spawn("slow", "async")] },
                { "text": "3", "tool_calls": [spawn("slow", "sync")] },
                { "text": "never" },
            ]),
        ),
        (
            "child",
            "list_files",
            json!([{ "text": "a", "tool_calls": [call("list_files", json!({}))] }, { "text": "done" }]),
        ),
        (
            "slow",
            "list_files",
            json!([{ "text": "a", "tool_calls": [call("list_files", json!({}))] }, { "hang": true }]),
        ),
    ]);
    bed.price = Some(Price { input: 1_000.0, output: 10_000.0, cache_read: None, cache_write: None });
    let client = bed.open().await;
    let spawned = client.spawn("parent", "go").await;
    // Both of the slow ones have begun their second call.
    let all = async {
        loop {
            let listed = client.call("list_process", json!({ "process_id": spawned["process_id"] })).await;
            let items = listed["items"].as_array().cloned().unwrap_or_default();
            let slow = items.iter().filter(|one| one["assistant_id"] == "slow" && one["usage"]["model_calls"] == 2);
            if slow.count() == 2 {
                return items;
            }
            client.call("poll_assistant", json!({ "process_id": spawned["process_id"], "wait_ms": 50 })).await;
        }
    };
    let items = tokio::time::timeout(SOON, all).await.expect("all are at work");
    let own: i64 = items.iter().map(|one| cents(&one["usage"]).expect("known")).sum();
    let polled = client.poll(&spawned).await;
    assert_eq!((cents(&polled["usage_tree"]), items.len()), (Some(own), 4), "with those in flight: {polled}");
    assert!(cents(&polled["usage"]) < cents(&polled["usage_tree"]), "{polled}");
    assert_eq!(polled["usage_tree"]["model_calls"], 3 + 2 + 2 + 2);
    let listed = items.iter().find(|one| one["assistant_id"] == "parent").expect("the root");
    assert_eq!(listed["usage_tree"], polled["usage_tree"], "one computation");
    // The sync spawn's answer, as the parent was given it.
    let transcript = json!({ "process_id": spawned["process_id"], "transcript": true });
    let transcript = client.call("read_log", transcript).await;
    let results = transcript["events"].as_array().into_iter().flatten().filter(|one| one["kind"] == "tool");
    let texts = results.flat_map(|one| one["data"]["content"].as_array().cloned().unwrap_or_default());
    let answers: Vec<Value> =
        texts.filter_map(|part| serde_json::from_str(part["content"][0]["text"].as_str()?).ok()).collect();
    let child = items.iter().find(|one| one["assistant_id"] == "child").expect("the child");
    assert_eq!(answers[0]["result"]["usage"], child["usage"], "{transcript}");
    // Each call in the log; and the sum of them is the process's.
    let answers = json!({ "process_id": child["process_id"], "kinds": ["model_answer"] });
    let answers = client.call("read_log", answers).await;
    let calls: i64 =
        answers["events"].as_array().into_iter().flatten().map(|one| cents(&one["data"]).expect("known")).sum();
    assert_eq!(Some(calls), cents(&child["usage"]), "{answers}");
    client.call("cancel_assistant", json!({ "process_id": spawned["process_id"] })).await;
    client.end(&spawned).await;
    let waited = client.call("wait_assistant", json!({ "process_ids": [spawned["process_id"]] })).await;
    let end = &waited["events"][0];
    assert_eq!((&end["kind"], cents(&end["usage_tree"])), (&json!("cancelled"), Some(own)), "{waited}");
    client.host.close().await;
    // Without a price it is not known, and that is null.
    drop(client);
    bed.price = None;
    let client = bed.open().await;
    let polled = client.poll(&spawned).await;
    assert_eq!((&polled["usage"]["cost_usd"], &polled["usage_tree"]["cost_usd"]), (&Value::Null, &Value::Null));
    let child =
        client.call("spawn_assistant", json!({ "assistant_id": "child", "query": "go", "run_mode": "sync" })).await;
    let usage = &child["result"]["usage"];
    assert_eq!((&usage["model_calls"], &usage["cost_usd"]), (&json!(2), &Value::Null), "{child}");
    assert_eq!(child["result"]["usage_tree"], Value::Null, "it spawned nothing: {child}");
    client.host.close().await;
}
