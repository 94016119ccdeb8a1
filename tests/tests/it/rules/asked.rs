//! Questions, and the waits that they end.

use serde_json::{Value, json};

use super::{LONG_MS, Stage, spawns};

/// A parent has said its last word, and its child asks it.
#[tokio::test(flavor = "multi_thread")]
async fn wake_any() {
    let mut stage = Stage::real(&["parent", "child"], |_| {}).await;
    let spawned = stage.client.spawn("parent", "go").await;
    stage.turns.of("parent").await.calls(&[spawns("child", json!({}))]);
    let child = stage.turns.of("child").await;
    stage.turns.of("parent").await.says("I have said all");
    stage.client.until(&spawned, "waiting").await;
    child.calls(&[("ask_parent", json!({ "question": "how many?" }))]);
    let woken = stage.turns.of("parent").await;
    assert_eq!(woken.has("how many?"), 1);
    let asks = stage.tree(&spawned).await[1]["process_id"].clone();
    woken.calls(&[("reply_assistant", json!({ "process_id": asks, "answer": "seven" }))]);
    let child = stage.turns.of("child").await;
    assert_eq!(child.result()["answer"], "seven");
    stage.turns.of("parent").await.says("I have answered");
    stage.client.until(&spawned, "waiting").await;
    // Another message wakes it too, and so does the end.
    stage.send(&spawned, "still there?").await;
    let woken = stage.turns.of("parent").await;
    assert_eq!(woken.has("still there?"), 1);
    woken.says("yes");
    stage.client.until(&spawned, "waiting").await;
    child.says("seven it is");
    let woken = stage.turns.of("parent").await;
    assert_eq!(woken.has("seven it is"), 1);
    woken.says("all done");
    assert_eq!(stage.client.end(&spawned).await["status"], "finished");
    stage.close().await;
}

/// Whoever was asked ends, and the one that asks lives on.
#[tokio::test(flavor = "multi_thread")]
async fn ask_moves() {
    let mut stage = Stage::real(&["parent", "child"], |_| {}).await;
    let spawned = stage.client.spawn("parent", "go").await;
    stage.turns.of("parent").await.calls(&[spawns("child", json!({ "detached": true }))]);
    stage.turns.of("child").await.calls(&[("ask_parent", json!({ "question": "how many?" }))]);
    let parent = stage.turns.of("parent").await;
    let child = stage.tree(&spawned).await[1].clone();
    stage.client.until(&child, "waiting").await;
    assert_eq!(stage.client.call("get_pending_questions", json!({})).await["questions"], json!([]));
    parent.fails();
    stage.client.end(&spawned).await;
    let pending = stage.client.call("get_pending_questions", json!({})).await;
    assert_eq!(pending["questions"][0]["question"], "how many?", "{pending}");
    let answer = json!({ "process_id": child["process_id"], "answer": "seven" });
    stage.client.call("reply_assistant", answer).await;
    let asked = stage.turns.of("child").await;
    assert_eq!(asked.result()["answer"], "seven");
    asked.says("seven it is");
    assert_eq!(stage.client.end(&child).await["status"], "finished");
    stage.close().await;
}

/// One call of a turn hands a question over while another one waits: the model can answer only when both return.
#[tokio::test(flavor = "multi_thread")]
async fn fresh() {
    let mut stage = Stage::played(&["parent", "child"], |_| {}).await;
    let spawned = stage.client.spawn("parent", "go").await;
    let mut parent = stage.puppet().await;
    let asking = parent.asks_as("You are parent.");
    stage.turns.of("parent").await.says("I spawn");
    parent.takes(&asking.result().await);
    let child = parent.uses("spawn_assistant", spawns("child", json!({})).1).await;
    let mut below = stage.puppet().await;
    let waits = below.calls("ask_parent", json!({ "question": "how many?" }));
    stage.client.until(&child, "waiting").await;
    let told = parent.uses("wait_assistant", json!({ "wait_ms": LONG_MS })).await;
    assert_eq!(told["events"][0]["content"], "how many?", "{told}");
    // No model call has contained the question: this wait would be for ever.
    let own = json!({ "thread_id": parent.thread, "wait_ms": LONG_MS, "unread_only": true });
    let read = parent.uses("recv_message", own).await;
    assert_eq!(read["messages"], json!([]), "another call has it");
    let asking = parent.asks_as("You are parent.");
    let turn = stage.turns.of("parent").await;
    assert_eq!(turn.has("how many?"), 1, "once");
    turn.says("so");
    parent.takes(&asking.result().await);
    // Now it has been in a model call, and a wait is one again.
    let own = json!({ "thread_id": parent.thread, "wait_ms": LONG_MS, "unread_only": true });
    let waiting = parent.calls("recv_message", own);
    stage.client.until(&spawned, "waiting").await;
    stage.send(&spawned, "go on").await;
    assert_eq!(waiting.result().await["structured_content"]["messages"][0]["content"], "go on");
    parent.uses("reply_assistant", json!({ "process_id": child["process_id"], "answer": "seven" })).await;
    assert_eq!(waits.result().await["structured_content"]["answer"], "seven");
    stage.close().await;
}

/// The end of all that a wait is for was told before.
#[tokio::test(flavor = "multi_thread")]
async fn wait_done() {
    let mut stage = Stage::real(&["parent", "child"], |_| {}).await;
    let spawned = stage.client.spawn("parent", "go").await;
    stage.turns.of("parent").await.calls(&[spawns("child", json!({ "run_mode": "sync" }))]);
    stage.turns.of("child").await.says("done");
    let parent = stage.turns.of("parent").await;
    let child = parent.result()["process_id"].clone();
    let mut turn = parent;
    let mut cursor = Value::Null;
    for asked in [json!({}), json!({ "process_ids": [child] }), json!({ "process_ids": [child], "mode": "all" })] {
        for after in [Value::Null, cursor.clone()] {
            let mut asked = asked.clone();
            asked["wait_ms"] = json!(LONG_MS);
            asked["cursor"] = after;
            turn.calls(&[("wait_assistant", asked)]);
            turn = stage.turns.of("parent").await;
            let waited = turn.result();
            assert_eq!(waited["still_running"], json!([]), "{waited}");
            cursor = waited["next_cursor"].clone();
        }
    }
    turn.says("so");
    assert_eq!(stage.client.end(&spawned).await["status"], "finished");
    stage.close().await;
}

/// An answer waits while its asker asks the model: it comes when it is asked for, and only then.
#[tokio::test(flavor = "multi_thread")]
async fn answer_apart() {
    let mut stage = Stage::real(&["asker"], |_| {}).await;
    let spawned = stage.client.spawn("asker", "go").await;
    stage.turns.of("asker").await.calls(&[("ask_parent", json!({ "question": "how many?", "wait_ms": 0 }))]);
    let turn = stage.turns.of("asker").await;
    let message = turn.result()["message_id"].clone();
    let answer = json!({ "process_id": spawned["process_id"], "answer": "seven apples" });
    stage.client.call("reply_assistant", answer).await;
    // A message beside it is inserted, the answer is not.
    stage.send(&spawned, "by the way").await;
    turn.calls(&[spawns("nobody", json!({}))]);
    let turn = stage.turns.of("asker").await;
    assert_eq!((turn.has("by the way"), turn.has("seven apples")), (1, 0));
    turn.calls(&[("check_answer", json!({ "message_id": message }))]);
    let turn = stage.turns.of("asker").await;
    assert_eq!((turn.result()["answer"].clone(), turn.has("seven apples")), (json!("seven apples"), 1));
    turn.says("so");
    assert_eq!(stage.client.end(&spawned).await["status"], "finished");
    stage.close().await;
}
