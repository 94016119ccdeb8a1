//! Questions and their answers, resumption, detached runs, and the tools that see and wait.

use std::time::Duration;

use conformance::bed::{Bed, assistant, script};
use serde_json::{Value, json};

use crate::RUNNER;

const TALKING: &str = "ask_parent, check_answer, send_message, recv_message";
const SPAWNING: &str = "spawn_assistant, poll_assistant, wait_assistant, reply_assistant, get_pending_questions, \
                        ask_parent, check_answer, send_message, recv_message";

fn call(tool: &str, arguments: Value) -> Value {
    json!({ "tool_name": tool, "arguments": arguments })
}

fn bed(assistants: &[(&str, &str, Value)]) -> Bed {
    let files: Vec<(String, String)> =
        assistants.iter().map(|(name, tools, _)| (format!("{name}.md"), assistant(name, tools))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let steps: Vec<(&str, Value)> = assistants.iter().map(|(name, _, steps)| (*name, steps.clone())).collect();
    Bed::new(RUNNER, &files, &script(&steps))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_waits_for_the_session_and_its_answer_goes_on() {
    let asks = json!([
        { "tool_calls": [call("ask_parent", json!({ "question": "red or blue?" }))] },
        { "text": "{{ask_parent.state}}: {{ask_parent.answer}}" },
    ]);
    let bed = bed(&[("asker", TALKING, asks)]);
    let client = bed.open().await;
    let spawned = client.spawn("asker", "go").await;
    let process = &spawned["process_id"];
    let waited = client.call("wait_assistant", json!({ "process_ids": [process], "mode": "all" })).await;
    assert_eq!(waited["events"][0]["kind"], "question", "a wait for all ends at a question: {waited}");
    assert_eq!(waited["events"][0]["content"], "red or blue?");
    client.until(&spawned, "waiting").await;
    let polled = client.call("poll_assistant", json!({ "process_id": process })).await;
    assert_eq!(polled["pending_questions"], 1, "{polled}");
    let pending = client.call("get_pending_questions", json!({})).await;
    let one = &pending["questions"][0];
    assert_eq!(
        (&one["process_id"], &one["question"], &one["assistant_id"]),
        (process, &json!("red or blue?"), &json!("asker"))
    );
    assert_eq!(one["answer_by_at"].as_i64().expect("a time") - one["asked_at"].as_i64().expect("a time"), 86_400_000);
    assert_eq!(
        client.refused("reply_assistant", json!({ "process_id": process, "answer": " " })).await,
        "bad_argument"
    );
    client
        .call("reply_assistant", json!({ "process_id": process, "answer": "blue", "message_id": one["message_id"] }))
        .await;
    client.end(&spawned).await;
    assert_eq!(client.mail(&spawned).await, ["red or blue?", "answered: blue"]);
    let twice = json!({ "process_id": process, "answer": "red", "message_id": one["message_id"] });
    let refused = client.try_call("reply_assistant", twice).await.expect_err("no second answer");
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("RETRIEVED")), "{refused}");
    assert_eq!(
        client.refused("reply_assistant", json!({ "process_id": process, "answer": "x" })).await,
        "unknown_message"
    );
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_questions_are_told_apart_and_read_again() {
    let asks = json!([
        { "tool_calls": [
            call("ask_parent", json!({ "question": "first?", "wait_ms": 0 })),
        ] },
        { "tool_calls": [call("ask_parent", json!({ "question": "second?", "wait_ms": 0 }))] },
        { "tool_calls": [call("check_answer", json!({ "message_id": "{{ask_parent.message_id}}", "wait_ms": 50_000 }))] },
        { "tool_calls": [call("check_answer", json!({ "message_id": "{{ask_parent.message_id}}" }))] },
        { "text": "{{check_answer.state}} {{check_answer.answer}}" },
    ]);
    let bed = bed(&[("asker", TALKING, asks)]);
    let client = bed.open().await;
    let spawned = client.spawn("asker", "go").await;
    let process = &spawned["process_id"];
    client.until(&spawned, "waiting").await;
    let refused = client.try_call("reply_assistant", json!({ "process_id": process, "answer": "x" })).await;
    let message = refused.expect_err("which?")["message"].as_str().expect("a text").to_owned();
    assert!(message.contains("first?") && message.contains("second?"), "{message}");
    let pending = client.call("get_pending_questions", json!({ "process_id": process })).await;
    let ids: Vec<Value> =
        pending["questions"].as_array().expect("a list").iter().map(|one| one["message_id"].clone()).collect();
    assert_eq!(ids.len(), 2);
    client.call("reply_assistant", json!({ "process_id": process, "answer": "two", "message_id": ids[1] })).await;
    client.end(&spawned).await;
    assert_eq!(client.mail(&spawned).await.last().map(String::as_str), Some("retrieved two"));
    // The end of a process expires what it asked.
    let late = client
        .try_call("reply_assistant", json!({ "process_id": process, "answer": "one", "message_id": ids[0] }))
        .await;
    assert!(late.expect_err("too late")["message"].as_str().is_some_and(|text| text.contains("EXPIRED")));
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_that_waits_for_its_child_hears_its_question() {
    let parent = json!([
        { "tool_calls": [call("spawn_assistant", json!({ "assistant_id": "child", "query": "help", "run_mode": "sync" }))] },
        { "tool_calls": [
            call("reply_assistant", json!({ "process_id": "{{spawn_assistant.process_id}}", "answer": "seven" })),
            call("wait_assistant", json!({ "process_ids": ["{{spawn_assistant.process_id}}"], "mode": "all", "wait_ms": 50_000 })),
        ] },
        { "text": "it said {{wait_assistant.events.last.content}}" },
    ]);
    let child = json!([
        { "tool_calls": [call("ask_parent", json!({ "question": "how many?" }))] },
        { "text": "{{ask_parent.answer}} it is" },
    ]);
    let mut bed = bed(&[("parent", SPAWNING, parent), ("child", TALKING, child)]);
    bed.limits.running_per_session = 1;
    let client = bed.open().await;
    let spawned = client.spawn("parent", "go").await;
    let seen = client.end(&spawned).await;
    assert_eq!(seen["status"], "finished", "{seen}");
    assert_eq!(client.mail(&spawned).await, ["it said seven it is"]);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_that_never_answers_stalls_its_child() {
    let parent = json!([
        { "tool_calls": [call("spawn_assistant", json!({ "assistant_id": "child", "query": "help" }))] },
        { "text": "not interested" },
        { "text": "still not interested" },
    ]);
    let child = json!([{ "tool_calls": [call("ask_parent", json!({ "question": "well?" }))] }, { "text": "never" }]);
    let mut bed = bed(&[("parent", SPAWNING, parent), ("child", TALKING, child)]);
    bed.limits.answer_wait_ms = 300;
    let client = bed.open().await;
    let spawned = client.spawn("parent", "go").await;
    client.end(&spawned).await;
    let listed = client.call("list_process", json!({ "process_id": spawned["process_id"] })).await;
    let child = &listed["items"][1];
    assert_eq!((&child["level"], &child["assistant_id"]), (&json!(1), &json!("child")), "{listed}");
    assert_eq!((&child["reason"], &child["error"]), (&json!("no_answer"), &json!("Stalled: Parent No-Response")));
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_expires_by_the_hosts_clock() {
    let asks = json!([
        { "tool_calls": [call("ask_parent", json!({ "question": "hello?", "wait_ms": 0 }))] },
        { "text": "x", "hang": true },
    ]);
    let mut bed = bed(&[("asker", TALKING, asks)]);
    bed.limits.question_ms = 1;
    let client = bed.open().await;
    let spawned = client.spawn("asker", "go").await;
    let asked = client.call("recv_message", json!({ "thread_id": spawned["thread_id"], "wait_ms": 20_000 })).await;
    assert_eq!(asked["messages"][0]["content"], "hello?");
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(client.call("get_pending_questions", json!({})).await["questions"], json!([]));
    let arguments =
        json!({ "process_id": spawned["process_id"], "answer": "yes", "message_id": asked["messages"][0]["id"] });
    let refused = client.try_call("reply_assistant", arguments).await.expect_err("too late");
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("EXPIRED")), "{refused}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumption_goes_on_with_the_conversation_and_the_mail() {
    let steps = json!([
        { "tool_calls": [call("recv_message", json!({ "thread_id": "{{id_after.thread_id}}", "wait_ms": 100_000, "unread_only": true }))] },
        { "text": "after all: {{last_user}}" },
        { "text": "and then: {{last_user}}" },
    ]);
    let bed = bed(&[("worker", TALKING, steps)]);
    let client = bed.open().await;
    let spawned = client.spawn("worker", "the task").await;
    client.until(&spawned, "waiting").await;
    let alive = client.try_call("spawn_assistant", json!({ "resume_process_id": spawned["process_id"] })).await;
    assert!(alive.expect_err("it lives")["message"].as_str().is_some_and(|text| text.contains("has not ended")));
    client.call("cancel_assistant", json!({ "process_id": spawned["process_id"] })).await;
    assert_eq!(client.end(&spawned).await["status"], "cancelled");
    // The call that was open gets a result that says so, and the model is asked again.
    let resumed =
        client.call("spawn_assistant", json!({ "resume_process_id": spawned["process_id"], "run_mode": "sync" })).await;
    assert_eq!(resumed["result"]["content"], "after all: the task", "{resumed}");
    let log = client.call("read_log", json!({ "process_id": resumed["process_id"], "transcript": true })).await;
    let told = log["events"].to_string();
    assert!(told.contains("tool_result"), "{told}");
    // Only the last of a line; and a finished one wants to know what next.
    let again = client.try_call("spawn_assistant", json!({ "resume_process_id": spawned["process_id"] })).await;
    let message = again.expect_err("resumed already")["message"].as_str().expect("a text").to_owned();
    assert!(message.contains(resumed["process_id"].as_str().expect("an id")), "{message}");
    assert_eq!(
        client.refused("spawn_assistant", json!({ "resume_process_id": resumed["process_id"] })).await,
        "bad_argument"
    );
    let third = json!({ "resume_process_id": resumed["process_id"], "query": "more", "run_mode": "sync" });
    let third = client.call("spawn_assistant", third).await;
    assert_eq!(third["result"]["content"], "and then: more", "{third}");
    assert_eq!(third["assistant_id"], "worker");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_detached_run_outlives_its_parent() {
    let parent = json!([
        { "tool_calls": [call("spawn_assistant", json!({ "assistant_id": "child", "query": "help", "detached": true }))] },
        { "text": "off it goes: {{spawn_assistant.process_id}}" },
    ]);
    let child = json!([{ "text": "made it", "delay_ms": 4_000 }]);
    let bed = bed(&[("parent", SPAWNING, parent), ("child", TALKING, child)]);
    let client = bed.open().await;
    let spawned = client.spawn("parent", "go").await;
    assert_eq!(client.end(&spawned).await["status"], "finished");
    let listed = client.call("list_process", json!({ "root_only": true })).await;
    let child = listed["items"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["assistant_id"] == "child")
        .expect("the child")
        .clone();
    assert_eq!(client.end(&child).await["status"], "finished", "it was not ended with its parent");
    assert_eq!(client.mail(&child).await, ["made it"]);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_tell_everything_once() {
    let bed = bed(&[
        (
            "one",
            TALKING,
            json!([
                { "tool_calls": [call("send_message", json!({ "thread_id": "{{id_after.thread_id}}", "message": "on my way" }))] },
                { "text": "done" },
            ]),
        ),
        ("bad", TALKING, json!([{ "error": { "kind": "bad_key" } }])),
    ]);
    let client = bed.open().await;
    let (one, bad) = (client.spawn("one", "go").await, client.spawn("bad", "go").await);
    let ids = json!([one["process_id"], bad["process_id"]]);
    let (mut told, mut cursor) = (Vec::new(), None);
    loop {
        let mut asked = json!({ "process_ids": ids });
        if let Some(cursor) = &cursor {
            asked["cursor"] = json!(cursor);
        }
        let waited = client.call("wait_assistant", asked).await;
        told.extend(waited["events"].as_array().expect("a list").iter().cloned());
        cursor = waited["next_cursor"].as_str().map(str::to_owned);
        if waited["still_running"] == json!([]) && waited["events"] == json!([]) {
            break;
        }
    }
    let mut kinds: Vec<(String, String)> = told
        .iter()
        .map(|event| {
            (
                event["assistant_id"].as_str().expect("an id").to_owned(),
                event["kind"].as_str().expect("a kind").to_owned(),
            )
        })
        .collect();
    let of_one: Vec<&str> = kinds.iter().filter(|(id, _)| id == "one").map(|(_, kind)| kind.as_str()).collect();
    assert_eq!(of_one, ["message", "finished"]);
    kinds.sort();
    assert_eq!(kinds.len(), 3, "{told:?}");
    let failed = told.iter().find(|event| event["kind"] == "failed").expect("a failure");
    assert!(failed["content"].as_str().is_some_and(|text| text.starts_with("Failed (model_failed)")), "{failed}");
    assert_eq!(client.refused("wait_assistant", json!({ "cursor": "x" })).await, "bad_argument");
    // Nothing is at work: no wait.
    assert_eq!(client.call("wait_assistant", json!({})).await["still_running"], json!([]));
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_read_in_pieces_and_from_the_end() {
    let bed = bed(&[("one", TALKING, json!([{ "text": "x".repeat(10_000) }]))]);
    let client = bed.open().await;
    let spawned = client.spawn("one", "go").await;
    client.end(&spawned).await;
    let read = async |arguments: Value| {
        let mut asked = json!({ "process_id": spawned["process_id"] });
        asked.as_object_mut().expect("an object").extend(arguments.as_object().expect("an object").clone());
        client.call("read_log", asked).await
    };
    let all = read(json!({})).await;
    let kinds: Vec<&str> =
        all["events"].as_array().expect("a list").iter().map(|event| event["kind"].as_str().expect("a kind")).collect();
    assert_eq!(kinds, ["status", "status", "run", "model_call", "model_answer", "run", "status", "message"]);
    assert_eq!((&all["more"], &all["done"]), (&json!(false), &json!(true)));
    let (mut pieces, mut cursor) = (Vec::new(), json!(null));
    loop {
        let piece = read(json!({ "limit": 2, "cursor": cursor })).await;
        pieces.extend(piece["events"].as_array().expect("a list").iter().cloned());
        cursor = piece["next_cursor"].clone();
        if piece["more"] == false {
            break;
        }
    }
    assert_eq!(json!(pieces), all["events"]);
    let tail = read(json!({ "tail": true, "limit": 2 })).await;
    assert_eq!(tail["events"], json!(pieces[6..]));
    let some = read(json!({ "kinds": ["model_call", "model_answer"] })).await;
    assert_eq!(some["events"], json!(pieces[3..5]));
    let said = read(json!({ "transcript": true })).await;
    let roles: Vec<&Value> = said["events"].as_array().expect("a list").iter().map(|event| &event["kind"]).collect();
    assert_eq!(roles, ["user", "assistant"]);
    assert!(said.to_string().len() < 6_000, "long texts are cut");
    client.host.close().await;
}

/// Whoever answered reads the answer in its place in the thread, before the process has it.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_waits_is_not_skipped_by_whoever_gave_it() {
    let asks = json!([
        { "tool_calls": [call("ask_parent", json!({ "question": "red or blue?", "wait_ms": 0 }))] },
        { "hang": true },
    ]);
    let bed = bed(&[("asker", TALKING, asks)]);
    let client = bed.open().await;
    let spawned = client.spawn("asker", "go").await;
    client.call("wait_assistant", json!({ "process_ids": [spawned["process_id"]] })).await;
    client.call("reply_assistant", json!({ "process_id": spawned["process_id"], "answer": "blue" })).await;
    client.call("send_message", json!({ "thread_id": spawned["thread_id"], "message": "and now" })).await;
    let read = client.call("recv_message", json!({ "thread_id": spawned["thread_id"], "since": 0 })).await;
    let contents: Vec<&str> =
        read["messages"].as_array().into_iter().flatten().filter_map(|one| one["content"].as_str()).collect();
    assert_eq!(contents, ["red or blue?", "blue", "and now"]);
    client.call("cancel_assistant", json!({ "process_id": spawned["process_id"] })).await;
    client.host.close().await;
}
