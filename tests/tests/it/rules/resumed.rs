//! Calls that are made again, and processes that are gone on with.

use assistant_host::host::Host;
use conformance::bed::Client;
use conformance::gate::{self, Gate};
use serde_json::{Value, json};

use super::{Stage, next_host};

/// The host dies after a spawn and before its answer is read; the client calls again, over another connection.
#[tokio::test(flavor = "multi_thread")]
async fn key_principal() {
    let stage = Stage::played(&["one"], |_| {}).await;
    let asked = json!({ "assistant_id": "one", "query": "go", "idempotency_key": "k" });
    let spawned = stage.client.call("spawn_assistant", asked.clone()).await;
    let killed = gate::copied(&stage.bed.state()).expect("a copy");
    let mut options = stage.bed.options();
    options.state = killed.path().to_owned();
    let next = Client::of(&Host::open(options).await.expect("a host")).await;
    let again = next.call("spawn_assistant", asked.clone()).await;
    assert_eq!(again["process_id"], spawned["process_id"]);
    assert_eq!(next.call("list_process", json!({})).await["total_items"], 1);
    next.host.close().await;
    // The key of a process goes on with its line.
    let mut puppet = stage.puppet().await;
    let first = puppet.uses("spawn_assistant", asked.clone()).await;
    let below = stage.puppet().await;
    puppet.dies();
    stage.client.end(&spawned).await;
    let go_on = json!({ "resume_process_id": spawned["process_id"], "query": "go on" });
    stage.client.call("spawn_assistant", go_on).await;
    let mut puppet = stage.puppet().await;
    let again = puppet.uses("spawn_assistant", asked).await;
    assert_eq!(again["process_id"], first["process_id"], "{again}");
    drop(below);
    stage.close().await;
}

/// What came to a resumption is in no other one.
#[tokio::test(flavor = "multi_thread")]
async fn resume_last() {
    let mut stage = Stage::played(&["one"], |_| {}).await;
    let first = stage.client.spawn("one", "go").await;
    let puppet = stage.puppet().await;
    stage.send(&first, "listen").await;
    puppet.dies();
    assert_eq!(stage.client.end(&first).await["reason"], "runner_exited");
    let resume = |old: &Value| json!({ "resume_process_id": old["process_id"], "query": "go on" });
    let second = stage.client.call("spawn_assistant", resume(&first)).await;
    let refused = stage.client.try_call("spawn_assistant", resume(&second)).await.expect_err("it lives");
    assert!(refused.to_string().contains("has not ended"), "{refused}");
    let mut puppet = stage.puppet().await;
    let asking = puppet.asks_as("You are one.");
    let turn = stage.turns.of("one").await;
    assert_eq!(turn.has("listen"), 1, "it moved over");
    turn.says("so");
    puppet.takes(&asking.result().await);
    puppet.dies();
    stage.client.end(&second).await;
    let refused = stage.client.try_call("spawn_assistant", resume(&first)).await.expect_err("it is not the last");
    assert!(refused.to_string().contains(second["process_id"].as_str().expect("an id")), "{refused}");
    let third = stage.client.call("spawn_assistant", resume(&second)).await;
    let mut puppet = stage.puppet().await;
    assert!(puppet.run["history"].to_string().contains("listen"), "{}", puppet.run);
    puppet.ends("so");
    assert_eq!(stage.client.end(&third).await["status"], "finished");
    stage.close().await;
}

/// A process is answered and dies before it has the answer.
#[tokio::test(flavor = "multi_thread")]
async fn answer_moves() {
    let mut stage = Stage::played(&["one"], |_| {}).await;
    let first = stage.client.spawn("one", "go").await;
    let mut puppet = stage.puppet().await;
    puppet.uses("ask_parent", json!({ "question": "how many?", "wait_ms": 0 })).await;
    let answer = json!({ "process_id": first["process_id"], "answer": "seven apples" });
    stage.client.call("reply_assistant", answer).await;
    puppet.dies();
    stage.client.end(&first).await;
    let go_on = json!({ "resume_process_id": first["process_id"], "query": "go on" });
    let second = stage.client.call("spawn_assistant", go_on).await;
    let mut puppet = stage.puppet().await;
    let asking = puppet.asks_as("You are one.");
    let turn = stage.turns.of("one").await;
    assert_eq!(turn.has("seven apples"), 1, "the answer came as a message");
    turn.says("so");
    puppet.takes(&asking.result().await);
    puppet.ends("so");
    assert_eq!(stage.client.end(&second).await["status"], "finished");
    stage.close().await;
}

/// A host on the files of one that was killed ends what that one left, and reads everything else as before.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_host_is_gone_on_with() {
    let stage = Stage::played(&["one"], |_| {}).await;
    let spawned = stage.client.spawn("one", "go").await;
    let sent = stage.send(&spawned, "hello").await;
    let killed = gate::copied(&stage.bed.state()).expect("a copy");
    let Stage { bed, client, .. } = stage;
    client.host.close().await;
    drop(client);
    gate::copy_store(killed.path(), &bed.state()).expect("as it was");
    let client = Client::of(&next_host(&bed, &Gate::default()).await).await;
    assert_eq!(client.end(&spawned).await["reason"], "host_lost");
    let read = client.call("recv_message", json!({ "thread_id": spawned["thread_id"] })).await;
    assert_eq!(read["messages"][0]["id"], sent["message_id"]);
    client.host.close().await;
}
