//! Document 001, "Subagent Protocol Specification", row by row: its message flow, its tools, its state machine, its
//! timeouts.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};

use crate::documents::{Home, TALKING, Walk, call, ends_with, is_iso, until};

/// Milliseconds.
const DAY: i64 = 24 * 60 * 60 * 1_000;

fn tool(name: &str, arguments: Value) -> Value {
    json!({ "tool_name": name, "arguments": arguments })
}

/// The state of a question in the store.
fn state(walk: &Walk, message: &Value) -> String {
    walk.stored("SELECT state FROM questions WHERE message_id = ?1", message)
}

/// The document's diagram, step by step: the worker in the hand of the test, the parent a real client.
#[tokio::test(flavor = "multi_thread")]
async fn the_message_flow_diagram() {
    let walk = Walk::new(&[("worker", TALKING)], |_| {}).await;
    let (run, mut worker) = walk.starts("worker").await;
    // 1. ask_parent(question) returns a message_id.
    let asked = worker.uses("ask_parent", json!({ "question": "red or blue?" })).await;
    let message = asked["message_id"].clone();
    assert_eq!(state(&walk, &message), "PENDING");
    // 2. notify / poll: the parent hears of it.
    let heard = walk.call("check_status", json!({ "runId": run, "wait_ms": 20_000 })).await;
    assert_eq!(heard["status"], "waiting_parent_reply");
    // 3. check_answer(message_id) returns null.
    let none = worker.uses("check_answer", json!({ "message_id": message })).await;
    assert_eq!(none, json!({ "message_id": message, "answer": null, "status": "PENDING" }));
    // 4. reply_subagent(ans): ANSWERED.
    let replied = walk.call("reply_subagent", json!({ "subagent_id": run, "message": "blue" })).await;
    assert_eq!((replied["success"].clone(), state(&walk, &message).as_str()), (json!(true), "ANSWERED"));
    // 5. check_answer(message_id) returns the answer: RETRIEVED.
    let got = worker.uses("check_answer", json!({ "message_id": message })).await;
    assert_eq!(got, json!({ "message_id": message, "answer": "blue", "status": "RETRIEVED" }));
    assert_eq!(state(&walk, &message), "RETRIEVED");
    worker.ends("painted");
    until(&walk.parent, &run, "success").await;
    walk.close().await;
}

/// The same over the program's own pipe, with a worker on a script that looks, waits, and goes on.
#[tokio::test(flavor = "multi_thread")]
async fn the_usage_over_the_pipe() {
    let steps = json!([
        { "tool_calls": [tool("ask_parent", json!({ "question": "red or blue?" }))] },
        { "tool_calls": [tool("check_answer", json!({ "message_id": "{{ask_parent.message_id}}" }))] },
        { "text": "looked once: {{check_answer.status}} {{check_answer.answer}}", "tool_calls": [
            tool("check_answer", json!({ "message_id": "{{ask_parent.message_id}}", "wait_ms": 60_000 })),
        ] },
        { "text": "it is {{check_answer.answer}}" },
    ]);
    let worker = "---\nname: worker\ndescription: Works.\n---\nYou are worker.\n";
    let home = Home::new(&[("agents/worker/agent.md", worker)], &[("worker", steps)]);
    let parent = home.parent().await;
    let started = call(&parent, "run_subagent_worker", json!({ "prompt": "go" })).await;
    let run = &started["runId"];
    // It has looked once when it is answered.
    let looked = loop {
        let logs =
            call(&parent, "get_logs", json!({ "runId": run })).await["logs"].as_str().expect("a text").to_owned();
        if logs.contains("looked once") {
            break logs;
        }
        call(&parent, "check_status", json!({ "runId": run, "wait_ms": 1_000 })).await;
    };
    assert!(looked.contains("looked once: PENDING null"), "{looked}");
    let pending = call(&parent, "get_pending_questions", json!({})).await;
    assert_eq!(pending["questions"][0]["question"], "red or blue?");
    call(&parent, "reply_subagent", json!({ "subagent_id": run, "message": "blue" })).await;
    assert_eq!(until(&parent, run, "success").await["result"], "it is blue");
    parent.cancel().await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_1_1_ask_parent() {
    let walk = Walk::new(&[("worker", TALKING)], |_| {}).await;
    let (_, mut worker) = walk.starts("worker").await;
    let asked = worker.uses("ask_parent", json!({ "question": "well?" })).await;
    let id = asked["message_id"].as_str().expect("a text");
    let shape: String = id.chars().map(|c| if c.is_ascii_hexdigit() { 'x' } else { c }).collect();
    assert_eq!(shape, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "a UUID: {id}");
    let again = worker.uses("ask_parent", json!({ "question": "well?" })).await;
    assert_ne!(again["message_id"], asked["message_id"], "each question has its own");
    assert_eq!(state(&walk, &asked["message_id"]), "PENDING");
    // It may wait for the answer at once.
    let waits = worker.calls("ask_parent", json!({ "question": "and now?", "wait_ms": 60_000 }));
    let third = loop {
        let pending = walk.call("get_pending_questions", json!({})).await;
        if let Some(third) = pending["questions"].get(2) {
            break third.clone();
        }
    };
    let reply = json!({ "runId": third["run_id"], "messageId": third["message_id"], "answer": "now" });
    walk.call("reply_subagent", reply).await;
    let got = waits.result().await["structured_content"].clone();
    assert_eq!(
        (&got["answer"], &got["status"], &got["message_id"]),
        (&json!("now"), &json!("RETRIEVED"), &third["message_id"])
    );
    walk.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_1_2_reply_subagent() {
    let walk = Walk::new(&[("worker", TALKING)], |_| {}).await;
    let (run, mut worker) = walk.starts("worker").await;
    let asked = worker.uses("ask_parent", json!({ "question": "well?" })).await;
    let replied = walk.call("reply_subagent", json!({ "subagent_id": run, "message": "well" })).await;
    assert_eq!((replied["success"].clone(), state(&walk, &asked["message_id"]).as_str()), (json!(true), "ANSWERED"));
    // There is one answer to a question, and none without one.
    let (code, words) = walk.refused("reply_subagent", json!({ "subagent_id": run, "message": "again" })).await;
    assert!(code == "unknown_message" && words.contains("is ANSWERED"), "{code}: {words}");
    for arguments in
        [json!({ "subagent_id": run }), json!({ "message": "x" }), json!({ "subagent_id": "worker", "message": "x" })]
    {
        assert_eq!(walk.refused("reply_subagent", arguments).await.0, "bad_argument");
    }
    walk.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_1_3_check_answer() {
    let time = Arc::new(AtomicI64::new(1_795_839_046_000));
    let clock = time.clone();
    let walk = Walk::new(&[("worker", TALKING)], |bed| {
        bed.clock = Some(Arc::new(move || clock.load(Ordering::Relaxed)));
        bed.limits.answer_wait_ms = bed.limits.question_ms * 2;
    })
    .await;
    let (run, mut worker) = walk.starts("worker").await;
    let message = worker.uses("ask_parent", json!({ "question": "well?" })).await["message_id"].clone();
    let check = json!({ "message_id": message });
    assert_eq!(worker.uses("check_answer", check.clone()).await["answer"], Value::Null);
    walk.call("reply_subagent", json!({ "subagent_id": run, "message": "well" })).await;
    // Delivered once, and read again: what was given and lost on the way is not lost.
    for _ in 0..3 {
        let got = worker.uses("check_answer", check.clone()).await;
        assert_eq!((&got["answer"], &got["status"]), (&json!("well"), &json!("RETRIEVED")));
    }
    // Unknown and expired are told apart from pending.
    let nobody = "0190a0a0-0000-7000-8000-000000000000";
    assert_eq!(worker.uses("check_answer", json!({ "message_id": nobody })).await["code"], "unknown_message");
    assert_eq!(worker.uses("check_answer", json!({ "message_id": "x" })).await["code"], "bad_argument");
    assert_eq!(worker.uses("check_answer", json!({})).await["code"], "bad_argument");
    let old = worker.uses("ask_parent", json!({ "question": "old?" })).await["message_id"].clone();
    time.fetch_add(DAY + 1, Ordering::Relaxed);
    let got = worker.uses("check_answer", json!({ "messageId": old })).await;
    assert_eq!(got, json!({ "message_id": old, "answer": null, "status": "EXPIRED" }));
    // The answer to the question of another run is none of this one's.
    let (_, mut other) = walk.starts("worker").await;
    assert_eq!(other.uses("check_answer", check).await["code"], "unknown_message");
    assert_eq!(walk.refused("check_answer", json!({ "message_id": message })).await.0, "not_permitted");
    walk.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_1_4_get_pending_questions() {
    let walk = Walk::new(&[("worker", TALKING), ("other", TALKING)], |_| {}).await;
    assert_eq!(walk.call("get_pending_questions", json!({})).await, json!({ "questions": [] }));
    let (run, mut worker) = walk.starts("worker").await;
    let (other_run, mut other) = walk.starts("other").await;
    let one = worker.uses("ask_parent", json!({ "question": "one?" })).await["message_id"].clone();
    let two = other.uses("ask_parent", json!({ "question": "two?" })).await["message_id"].clone();
    let all = walk.call("get_pending_questions", json!({})).await;
    let first = &all["questions"][0];
    assert!(is_iso(&first["timestamp"]), "{first}");
    assert_eq!(
        (&first["message_id"], &first["question"], &first["status"], &first["run_id"], &first["agent_name"]),
        (&one, &json!("one?"), &json!("PENDING"), &run, &json!("worker"))
    );
    assert_eq!((&all["questions"][1]["message_id"], all["questions"].as_array().map(Vec::len)), (&two, Some(2)));
    for name in ["run_id", "runId", "subagent_id"] {
        let only = walk.call("get_pending_questions", json!({ name: other_run })).await;
        assert_eq!(only["questions"], json!([all["questions"][1]]), "{name}");
    }
    // What is answered is not listed any more.
    walk.call("reply_subagent", json!({ "subagent_id": run, "message": "1" })).await;
    assert_eq!(walk.call("get_pending_questions", json!({})).await["questions"], json!([all["questions"][1]]));
    walk.close().await;
}

/// 300 s are the default; whoever looks or waits for the answer after them fails, whoever the parent is.
#[tokio::test(flavor = "multi_thread")]
async fn row_1_5_the_worker_stalls() {
    let time = Arc::new(AtomicI64::new(1_795_839_046_000));
    for look in ["check_answer", "check_status", "check_message_status"] {
        let clock = time.clone();
        let walk = Walk::new(&[("worker", TALKING)], |bed| {
            bed.clock = Some(Arc::new(move || clock.load(Ordering::Relaxed)));
            assert_eq!(bed.limits.answer_wait_ms, 300_000);
        })
        .await;
        let (run, mut worker) = walk.starts("worker").await;
        let message = worker.uses("ask_parent", json!({ "question": "well?" })).await["message_id"].clone();
        let arguments = match look {
            "check_status" => json!({}),
            _ => json!({ "message_id": message }),
        };
        // The last moment counts.
        time.fetch_add(299_999, Ordering::Relaxed);
        let pending = worker.uses(look, arguments.clone()).await;
        assert!(pending.get("code").is_none(), "{look} {pending}");
        // A look of the parent ends nothing, however late.
        time.fetch_add(1, Ordering::Relaxed);
        assert_eq!(walk.status(&run).await["status"], "waiting_parent_reply");
        ends_with(&mut worker, look, arguments).await;
        let ended = until(&walk.parent, &run, "error").await;
        assert_eq!(ended["error"], "Stalled: Parent No-Response (no_answer)", "{look}");
        assert_eq!(ended["messages"][0]["messageStatus"], "expired");
        walk.close().await;
    }
}

/// It is configurable: a worker behind the pipe that waits, and a configuration that gives it little time.
#[tokio::test(flavor = "multi_thread")]
async fn row_1_5_the_time_is_configurable() {
    let steps = json!([
        { "tool_calls": [tool("ask_parent", json!({ "question": "well?" }))] },
        { "tool_calls": [tool("check_answer", json!({ "message_id": "{{ask_parent.message_id}}", "wait_ms": 600_000 }))] },
        { "text": "never" },
    ]);
    let worker = "---\nname: worker\ndescription: Works.\n---\nYou are worker.\n";
    let home = Home::new(&[("agents/worker/agent.md", worker)], &[("worker", steps)]);
    home.configure("[limits]\nanswer_wait_ms = 200");
    let parent = home.parent().await;
    let started = call(&parent, "run_subagent_worker", json!({ "prompt": "go" })).await;
    let ended = until(&parent, &started["runId"], "error").await;
    assert_eq!(ended["error"], "Stalled: Parent No-Response (no_answer)");
    parent.cancel().await.expect("it ends");
}

/// The host expires by itself what is older than 24 hours: nobody has to call anything.
#[tokio::test(flavor = "multi_thread")]
async fn row_1_6_pending_questions_expire() {
    let time = Arc::new(AtomicI64::new(1_795_839_046_000));
    let clock = time.clone();
    let walk = Walk::new(&[("worker", TALKING)], |bed| {
        bed.clock = Some(Arc::new(move || clock.load(Ordering::Relaxed)));
    })
    .await;
    let (run, mut worker) = walk.starts("worker").await;
    let message = worker.uses("ask_parent", json!({ "question": "well?" })).await["message_id"].clone();
    time.fetch_add(DAY, Ordering::Relaxed);
    conformance::doors::until("it expires", || (state(&walk, &message) == "EXPIRED").then_some(()));
    assert_eq!(walk.call("get_pending_questions", json!({})).await["questions"], json!([]));
    let seen = walk.status(&run).await;
    assert_eq!((&seen["status"], &seen["messages"][0]["messageStatus"]), (&json!("running"), &json!("expired")));
    let (code, words) =
        walk.refused("reply_subagent", json!({ "runId": run, "messageId": message, "answer": "late" })).await;
    assert!(code == "bad_argument" && words.contains("EXPIRED"), "{code}: {words}");
    // The worker hears it and goes on.
    let got = worker.uses("check_answer", json!({ "message_id": message })).await;
    assert_eq!((&got["answer"], &got["status"]), (&Value::Null, &json!("EXPIRED")));
    worker.ends("without");
    until(&walk.parent, &run, "success").await;
    walk.close().await;
}
