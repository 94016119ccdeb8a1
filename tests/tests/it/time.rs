//! Time and turns: what a limit of theirs ends, and what an assistant may still hand in then.

use conformance::bed::{Bed, Client, assistant, script};
use serde_json::{Value, json};

use crate::RUNNER;

/// A bed with the assistant `x`, which plays `steps`, and `hands_in` once it is told that the limit `limit` is near.
fn bed(tools: &str, steps: Value, limit: &str, hands_in: Value) -> Bed {
    let mut all = script(&[("x", hands_in), ("x", steps)]);
    all["assistants"][0]["when"]["last_user"] = json!(format!("limit {limit}:"));
    Bed::new(RUNNER, &[("x.md", &assistant("x", tools))], &all)
}

/// The data of the events of one kind, oldest first.
async fn events(client: &Client, spawned: &Value, kind: &str) -> Vec<Value> {
    let asked = json!({ "process_id": spawned["process_id"], "kinds": [kind] });
    let read = client.call("read_log", asked).await;
    read["events"].as_array().into_iter().flatten().map(|event| event["data"].clone()).collect()
}

fn lists() -> Value {
    json!({ "text": "more", "tool_calls": [{ "tool_name": "list_files", "arguments": {} }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_turn_hands_in_what_there_is() {
    let steps = Value::Array(vec![lists(); 9]);
    let mut bed = bed("list_files", steps, "turns", json!([{ "text": "all I have: {{last_user}}" }]));
    bed.limits.turns = 3;
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    let ended = client.end(&spawned).await;
    assert_eq!((&ended["status"], &ended["usage"]["model_calls"]), (&json!("finished"), &json!(3)), "{ended}");
    let mail = client.mail(&spawned).await;
    assert!(mail[0].starts_with("all I have: ") && mail[0].contains("limit turns: 3 model calls"), "{mail:?}");
    let calls: Vec<Value> = events(&client, &spawned, "model_call").await;
    let told: Vec<&Value> = calls.iter().map(|call| &call["hand_in"]).collect();
    assert_eq!(told, [&Value::Null, &Value::Null, &json!("turns")]);
    // It is in the record, once.
    let said = client.call("read_log", json!({ "process_id": spawned["process_id"], "transcript": true })).await;
    assert_eq!(said.to_string().matches("This is your last turn").count(), 2, "told once, and said once: {said}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_refused_after_the_last_turn() {
    let steps = Value::Array(vec![lists(); 9]);
    let mut bed = bed("list_files", steps, "turns", json!([lists(), lists(), lists()]));
    bed.limits.turns = 2;
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    let ended = client.end(&spawned).await;
    assert_eq!((&ended["reason"], &ended["usage"]["model_calls"]), (&json!("budget_exceeded"), &json!(2)), "{ended}");
    let results: Vec<Value> = events(&client, &spawned, "tool_result").await;
    let errors: Vec<&Value> = results.iter().map(|result| &result["is_error"]).collect();
    assert_eq!(errors, [&json!(false), &json!(true)]);
    let said = client.call("read_log", json!({ "process_id": spawned["process_id"], "transcript": true })).await;
    assert!(said.to_string().contains("limit_turns"), "{said}");
    assert!(client.mail(&spawned).await[0].contains("Until then it had:\nmore"));
    client.host.close().await;
}
