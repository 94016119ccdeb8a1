//! How messages get into a conversation.

use assistant_protocol::types::LlmRequestResult;
use conformance::oracle;
use serde_json::json;

use super::{LONG_MS, Stage, spawns};

/// At each place between two jobs the host may be killed: what is marked as handed over is in the record.
#[tokio::test(flavor = "multi_thread")]
async fn result_in_tx() {
    let mut stage = Stage::real(&["parent", "child"], |_| {}).await;
    let photos = stage.gate.photograph(&stage.bed.state());
    let spawned = stage.client.spawn("parent", "go").await;
    // A result, and what was written before it.
    stage.turns.of("parent").await.calls(&[spawns("child", json!({ "run_mode": "sync" }))]);
    let child = stage.turns.of("child").await;
    let thread = stage.tree(&spawned).await[1]["thread_id"].clone();
    child.calls(&[("send_message", json!({ "thread_id": thread, "message": "first of all" }))]);
    stage.turns.of("child").await.says("the first result");
    let parent = stage.turns.of("parent").await;
    assert_eq!(parent.result()["result"]["messages"][0]["content"], "first of all");
    // A message, a question, and its answer.
    parent.calls(&[spawns("child", json!({}))]);
    let parent = stage.turns.of("parent").await;
    let (child, thread) = (parent.result()["process_id"].clone(), parent.result()["thread_id"].clone());
    stage.turns.of("child").await.calls(&[
        ("send_message", json!({ "thread_id": thread, "message": "a word" })),
        ("ask_parent", json!({ "question": "how many?" })),
    ]);
    parent.calls(&[("recv_message", json!({ "thread_id": thread, "wait_ms": LONG_MS, "unread_only": true }))]);
    let parent = stage.turns.of("parent").await;
    parent.calls(&[("reply_assistant", json!({ "process_id": child, "answer": "seven" }))]);
    let asked = stage.turns.of("child").await;
    assert_eq!(asked.has("seven"), 1);
    // An end, by a wait.
    let parent = stage.turns.of("parent").await;
    parent.calls(&[("wait_assistant", json!({ "process_ids": [child], "mode": "all", "wait_ms": LONG_MS }))]);
    asked.says("seven it is");
    let parent = stage.turns.of("parent").await;
    assert_eq!(parent.has("seven it is"), 1);
    // And an insertion.
    stage.send(&spawned, "by the way").await;
    parent.calls(&[("poll_assistant", json!({ "process_id": child }))]);
    stage.turns.of("parent").await.says("all done");
    stage.client.end(&spawned).await;
    assert!(photos.count() > 40, "{} places were looked at", photos.count());
    assert_eq!(photos.wrong(), Vec::<String>::new());
    stage.close().await;
}

/// A model call fails after it took a message in, and the runner asks again.
#[tokio::test(flavor = "multi_thread")]
async fn reinsert() {
    let mut stage = Stage::played(&["one"], |_| {}).await;
    let spawned = stage.client.spawn("one", "go").await;
    let mut puppet = stage.puppet().await;
    stage.send(&spawned, "the first").await;
    let asking = puppet.asks_as("You are one.");
    let turn = stage.turns.of("one").await;
    assert_eq!(turn.has("the first"), 1);
    stage.send(&spawned, "the second").await;
    turn.fails();
    assert!(asking.outcome().await.is_err(), "its answer is an error");
    let asking = puppet.asks_as("You are one.");
    let turn = stage.turns.of("one").await;
    assert_eq!((turn.has("the first"), turn.has("the second")), (1, 1), "the model sees both, once");
    assert!(turn.place("the first") < turn.place("the second"));
    turn.says("so");
    let answer = asking.result().await;
    let told: LlmRequestResult = serde_json::from_value(answer.clone()).expect("an answer");
    assert_eq!(told.inserted.map(|all| all.len()), Some(2), "{answer}");
    // An answer that the runner never got is given again too.
    let asking = puppet.asks_as("You are one.");
    let turn = stage.turns.of("one").await;
    assert_eq!((turn.has("the first"), turn.has("the second")), (1, 1));
    turn.says("so");
    puppet.takes(&asking.result().await);
    assert_eq!(puppet.messages.len(), 4, "task, two messages, answer: {:?}", puppet.messages);
    puppet.ends("so");
    assert_eq!(stage.client.end(&spawned).await["status"], "finished");
    stage.close().await;
}

/// One waits for a message of another one, and there is one slot.
#[tokio::test(flavor = "multi_thread")]
async fn recv_waits() {
    let mut stage = Stage::real(&["one", "two"], |limits| limits.running_per_session = 1).await;
    let one = stage.client.spawn("one", "go").await;
    let two = stage.client.spawn("two", "go").await;
    let wait = json!({ "thread_id": one["thread_id"], "wait_ms": LONG_MS, "unread_only": true });
    stage.turns.of("one").await.calls(&[("recv_message", wait)]);
    let message = json!({ "thread_id": one["thread_id"], "message": "wake up" });
    stage.turns.of("two").await.calls(&[("send_message", message)]);
    let turn = stage.turns.of("one").await;
    assert_eq!(turn.has("wake up"), 1);
    turn.says("so");
    stage.turns.of("two").await.says("so");
    for spawned in [one, two] {
        assert_eq!(stage.client.end(&spawned).await["status"], "finished");
    }
    stage.close().await;
}

/// Three wait, and a call wants one: it is the oldest.
#[tokio::test(flavor = "multi_thread")]
async fn recv_oldest() {
    let mut stage = Stage::real(&["one"], |_| {}).await;
    let spawned = stage.client.spawn("one", "go").await;
    let turn = stage.turns.of("one").await;
    for text in ["the first", "the second", "the third"] {
        stage.send(&spawned, text).await;
    }
    turn.calls(&[("recv_message", json!({ "thread_id": spawned["thread_id"], "last_n": 1 }))]);
    let turn = stage.turns.of("one").await;
    assert_eq!(turn.result()["messages"][0]["content"], "the first");
    assert!(turn.place("the second") < turn.place("the third"), "the others came behind it");
    assert_eq!((turn.has("the first"), turn.has("the second")), (1, 1));
    turn.says("so");
    assert_eq!(stage.client.end(&spawned).await["status"], "finished");
    stage.close().await;
}

/// A child writes and ends: whatever tells the end tells what was written before.
#[tokio::test(flavor = "multi_thread")]
async fn take_along() {
    for way in ["sync", "wait", "sibling"] {
        let mut stage = Stage::real(&["parent", "child", "sister"], |_| {}).await;
        let spawned = stage.client.spawn("parent", "go").await;
        let mode = if way == "sync" { "sync" } else { "async" };
        stage.turns.of("parent").await.calls(&[spawns("sister", json!({}))]);
        let sister = stage.turns.of("sister").await;
        stage.turns.of("parent").await.calls(&[spawns("child", json!({ "run_mode": mode }))]);
        let child = stage.turns.of("child").await;
        let tree = stage.tree(&spawned).await;
        let find = |name: &str| tree.iter().find(|one| one["assistant_id"] == name).expect("a row").clone();
        let (row, other) = (find("child"), find("sister"));
        let message = match way {
            // To the parent, in another child's thread.
            "sibling" => {
                json!({ "thread_id": other["thread_id"], "to_assistant_id": "parent", "message": "first of all" })
            }
            _ => json!({ "thread_id": row["thread_id"], "message": "first of all" }),
        };
        let waiting = match way {
            "sync" => None,
            _ => Some(stage.turns.of("parent").await),
        };
        child.calls(&[("send_message", message)]);
        stage.turns.of("child").await.says("the result");
        if let Some(parent) = waiting {
            stage.client.end(&row).await;
            let asked = json!({ "process_ids": [row["process_id"]], "mode": "all", "wait_ms": LONG_MS });
            parent.calls(&[("wait_assistant", asked)]);
        }
        let parent = stage.turns.of("parent").await;
        let (first, result) = (parent.place("first of all"), parent.place("the result"));
        assert!(first.is_some() && first <= result, "{way}: in the order in which they were sent");
        assert_eq!((parent.has("first of all"), parent.has("the result")), (1, 1), "{way}: once each");
        parent.calls(&[("poll_assistant", json!({ "process_id": row["process_id"] }))]);
        let parent = stage.turns.of("parent").await;
        assert_eq!((parent.has("first of all"), parent.has("the result")), (1, 1), "{way}: and not again");
        sister.says("me too");
        parent.says("so");
        stage.turns.of("parent").await.says("so");
        assert_eq!(stage.client.end(&spawned).await["status"], "finished");
        stage.close().await;
    }
}

/// What a model call took in is read.
#[tokio::test(flavor = "multi_thread")]
async fn inserted_read() {
    let mut stage = Stage::played(&["one"], |_| {}).await;
    let spawned = stage.client.spawn("one", "go").await;
    let mut puppet = stage.puppet().await;
    stage.send(&spawned, "hello").await;
    let asking = puppet.asks_as("You are one.");
    stage.turns.of("one").await.says("so");
    puppet.takes(&asking.result().await);
    let own = json!({ "thread_id": spawned["thread_id"], "unread_only": true });
    assert_eq!(puppet.uses("recv_message", own.clone()).await["messages"], json!([]));
    // And what a call handed over is read as well.
    stage.send(&spawned, "hello again").await;
    let read = puppet.uses("recv_message", json!({ "thread_id": spawned["thread_id"] })).await;
    assert_eq!(read["messages"][0]["content"], "hello again");
    assert_eq!(puppet.uses("recv_message", own).await["messages"], json!([]));
    puppet.ends("so");
    assert_eq!(stage.client.end(&spawned).await["status"], "finished");
    stage.close().await;
}

/// Two calls of one turn are answered in the other order, each with a message of the same sender.
#[tokio::test(flavor = "multi_thread")]
async fn pipe_order() {
    let mut stage = Stage::real(&["parent", "child", "sister"], |_| {}).await;
    let spawned = stage.client.spawn("parent", "go").await;
    stage
        .turns
        .of("parent")
        .await
        .calls(&[spawns("child", json!({ "run_mode": "sync" })), spawns("sister", json!({ "run_mode": "sync" }))]);
    let (child, sister) = (stage.turns.of("child").await, stage.turns.of("sister").await);
    let tree = stage.tree(&spawned).await;
    let row = |name: &str| tree.iter().find(|one| one["assistant_id"] == name).expect("a row").clone();
    // The call that was made last is answered first.
    sister.says("from the sister");
    stage.client.end(&row("sister")).await;
    child.says("from the child");
    let parent = stage.turns.of("parent").await;
    assert!(parent.place("from the sister") < parent.place("from the child"), "as the answers came");
    let order: Vec<_> = parent.results().iter().map(|result| result["assistant_id"].clone()).collect();
    assert_eq!(order, [json!("sister"), json!("child")]);
    parent.says("so");
    assert_eq!(stage.client.end(&spawned).await["status"], "finished");
    let wrong = oracle::check(&stage.bed.state().join(assistant_host::store::FILE));
    assert_eq!(wrong, Vec::<String>::new());
    stage.close().await;
}
