//! Whatever a runner does, its process ends in one told way, and the host goes on; most of that is said by the transcripts
//! themselves, see `transcripts.rs`.

use assistant_host::events::Kind;
use conformance::bed::{Bed, assistant, script};
use serde_json::{Value, json};

use crate::{FAKE_RUNNER, RUNNER};

/// A bed whose runner plays a transcript.
fn bed(transcript: &str) -> Bed {
    let file = format!("{}/transcripts/{transcript}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let mut bed = Bed::new(
        FAKE_RUNNER,
        &[("x.md", &assistant("x", "send_message, recv_message"))],
        &script(&[("x", json!([{ "text": "hi" }]))]),
    );
    bed.runner.args = vec![file.into()];
    bed.limits.launch_ms = 30_000;
    bed.limits.grace_ms = 300;
    bed.limits.shutdown_ms = 500;
    bed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_tool_call_is_done_once() {
    let bed = bed("repeats-call");
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    client.end(&spawned).await;
    assert_eq!(client.mail(&spawned).await, ["once", "sent"]);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_never_takes_its_mail_in_fails() {
    let bed = bed("lazy");
    let client = bed.open().await;
    let made = std::process::Command::new("mkfifo").arg(bed.state().join("go")).status().expect("mkfifo");
    assert!(made.success());
    let spawned = client.spawn("x", "go").await;
    client.call("send_message", json!({ "thread_id": spawned["thread_id"], "message": "hello" })).await;
    let go = bed.state().join("go");
    tokio::task::spawn_blocking(move || std::fs::write(go, "go")).await.expect("a task").expect("the runner reads");
    let ended = client.end(&spawned).await;
    assert_eq!((&ended["status"], &ended["reason"]), (&json!("failed"), &json!("protocol_error")), "{ended}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_runner_is_told() {
    let mut bed = bed("answers");
    bed.runner.program = "/nowhere/runner".into();
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    let ended = client.end(&spawned).await;
    assert_eq!(ended["reason"], "launch_failed");
    assert!(ended["error"].as_str().is_some_and(|text| text.contains("/nowhere/runner")), "{ended}");
    client.host.close().await;
}

/// Cancels a process that plays a transcript, and compares how it ended.
async fn cancelled(bed: &Bed, want: &str) -> Value {
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    client.until(&spawned, "running").await;
    let answer =
        client.call("cancel_assistant", json!({ "process_id": spawned["process_id"], "reason": "enough" })).await;
    assert_eq!(answer["cancelled"], json!([spawned["process_id"]]));
    let ended = client.end(&spawned).await;
    assert_eq!((&ended["status"], &ended["cause"]), (&json!("cancelled"), &json!(want)), "{ended}");
    let again = client.call("cancel_assistant", json!({ "process_id": spawned["process_id"] })).await;
    assert_eq!(again["cancelled"], json!([]));
    client.host.close().await;
    ended
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_ignores_cancel_is_killed() {
    let bed = bed("ignores-cancel");
    let ended = cancelled(&bed, "requested").await;
    let client = bed.open().await;
    let process = ended["process_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let events = client.host.events(process, 0, 100).await.expect("events");
    let told = events.iter().filter(|event| event.kind == Kind::Link).map(|event| &event.data);
    let told: Vec<Value> = told.map(|data| json!([data["limit"], data["ms"]])).collect();
    assert_eq!(told, [json!(["grace_ms", 300]), json!(["shutdown_ms", 500])]);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_model_is_cancelled() {
    let bed = Bed::new(RUNNER, &[("x.md", &assistant("x", ""))], &script(&[("x", json!([{ "hang": true }]))]));
    cancelled(&bed, "requested").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wall_limit_ends_a_run() {
    let mut bed = Bed::new(RUNNER, &[("x.md", &assistant("x", ""))], &script(&[("x", json!([{ "hang": true }]))]));
    bed.limits.wall_ms = 300;
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    let ended = client.end(&spawned).await;
    assert_eq!((&ended["status"], &ended["reason"]), (&json!("failed"), &json!("timed_out")), "{ended}");
    assert!(ended["error"].as_str().is_some_and(|text| text.contains("wall_ms")), "{ended}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_are_counted_by_the_host() {
    let again = json!([{ "text": "more", "tool_calls": [{ "tool_name": "list_files", "arguments": {} }] }]);
    let steps: Vec<Value> = std::iter::repeat_n(again[0].clone(), 9).collect();
    let mut bed = Bed::new(RUNNER, &[("x.md", &assistant("x", "list_files"))], &script(&[("x", json!(steps))]));
    bed.limits.turns = 3;
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    let ended = client.end(&spawned).await;
    assert_eq!((&ended["reason"], &ended["usage"]["model_calls"]), (&json!("budget_exceeded"), &json!(3)), "{ended}");
    let mail = client.mail(&spawned).await;
    assert!(mail[0].contains("limit turns") && mail[0].contains("more"), "{mail:?}");
    client.host.close().await;
}
