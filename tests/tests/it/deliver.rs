//! Messages for runners that make no model calls: each given once and in order, and `run` called again only where its
//! answer did not know one.

use conformance::bed::{Bed, Client, assistant, script};
use serde_json::{Value, json};

use crate::FAKE_RUNNER;

fn transcript(name: &str) -> String {
    format!("{}/transcripts/{name}.jsonl", env!("CARGO_MANIFEST_DIR"))
}

fn bed(name: &str) -> Bed {
    let tools = "spawn_assistant, send_message, recv_message";
    let mut bed = Bed::new(
        FAKE_RUNNER,
        &[("x.md", &assistant("x", tools))],
        &script(&[("x", json!([{ "text": "never asked" }]))]),
    );
    bed.runner.args = vec![transcript(name).into()];
    bed.limits.shutdown_ms = 500;
    bed
}

/// Lets a runner go on that reads the FIFO `go`.
async fn go(bed: &Bed) {
    let file = bed.state().join("go");
    tokio::task::spawn_blocking(move || std::fs::write(file, "go")).await.expect("a task").expect("the runner reads");
}

async fn send(client: &Client, spawned: &Value, message: &str) {
    client.call("send_message", json!({ "thread_id": spawned["thread_id"], "message": message })).await;
}

/// What was sent to processes, in order, and whether it was delivered.
fn sent(bed: &Bed) -> Vec<(String, bool)> {
    let db = rusqlite::Connection::open(bed.state().join("assistant-host.db")).expect("the store");
    let mut look = db
        .prepare(
            "SELECT content, delivered_at IS NOT NULL AND read_at IS NOT NULL AND handed_by IS NULL
             FROM assistant_messages WHERE to_process_id IS NOT NULL ORDER BY seq",
        )
        .expect("SQL");
    let rows = look.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
    rows.collect::<Result<_, _>>().expect("rows")
}

/// Sends messages to a process that plays a transcript, and compares its end and which of them it was given.
async fn check(name: &str, messages: &[&str], status: &str, told: &str, given: usize) {
    let bed = bed(name);
    let client = bed.open().await;
    let made = std::process::Command::new("mkfifo").arg(bed.state().join("go")).status().expect("mkfifo");
    assert!(made.success());
    let spawned = client.spawn("x", "go").await;
    for message in messages {
        send(&client, &spawned, message).await;
    }
    if name == "adapter-queued" {
        go(&bed).await;
    }
    let ended = client.end(&spawned).await;
    assert_eq!(ended["status"], status, "{name}: {ended}");
    let mail = client.mail(&spawned).await;
    assert!(mail.len() == 1 && mail[0].contains(told), "{name}: {mail:?} lacks `{told}`");
    client.host.close().await;
    let want: Vec<(String, bool)> =
        messages.iter().zip(0..).map(|(message, at)| ((*message).to_owned(), at < given)).collect();
    assert_eq!(sent(&bed), want, "{name}");
}

#[tokio::test(flavor = "multi_thread")]
async fn run_is_called_again_only_for_what_its_answer_did_not_know() {
    tokio::join!(
        check("adapter-in-time", &["one"], "finished", "knows all", 1),
        check("adapter-takes", &["one", "two", "three"], "finished", "knows three", 3),
        check("adapter-queued", &["one", "two"], "finished", "knows both", 2),
        check("adapter-refuses", &["one"], "failed", "did not take a message: my agent is deaf", 0),
        check("adapter-dies", &["one"], "failed", "exited with 9", 0),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_child_is_given_to_a_parent_that_has_answered() {
    // The same transcript at every level: the deepest may spawn nothing, and each parent tells what it was given.
    let bed = bed("adapter-spawns");
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    let ended = client.end(&spawned).await;
    assert_eq!(ended["status"], "finished", "{ended}");
    assert_eq!(client.mail(&spawned).await, ["it works for me"]);
    let listed = client.call("list_process", json!({ "process_id": spawned["process_id"] })).await;
    let states: Vec<&Value> = listed["items"].as_array().expect("a list").iter().map(|one| &one["status"]).collect();
    assert_eq!(states, ["finished", "finished", "finished"], "{listed}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_runner_died_with_is_given_to_the_one_that_goes_on() {
    let mut bed = bed("adapter-dies");
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    send(&client, &spawned, "do not forget this").await;
    assert_eq!(client.end(&spawned).await["reason"], "runner_exited");
    client.host.close().await;
    drop(client);
    bed.runner.args = vec![transcript("adapter-in-time").into()];
    let client = bed.open().await;
    let resumed = json!({ "resume_process_id": spawned["process_id"], "run_mode": "sync" });
    let resumed = client.call("spawn_assistant", resumed).await;
    assert_eq!(resumed["result"]["content"], "knows all", "{resumed}");
    client.host.close().await;
    assert_eq!(sent(&bed), [("do not forget this".to_owned(), true)]);
}
