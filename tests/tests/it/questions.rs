//! Questions: many at once, by the clock of the host, and answers that come in no other way than by their call.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use conformance::bed::{Bed, Client, assistant, script};
use serde_json::{Value, json};

use crate::RUNNER;

const TOOLS: &str = "ask_parent, check_answer, send_message, recv_message, spawn_assistant, get_pending_questions, \
                     reply_assistant, wait_assistant";
/// Questions at once.
const MANY: usize = 50;
/// Milliseconds.
const DAY: i64 = 24 * 60 * 60 * 1_000;

fn call(tool: &str, arguments: Value) -> Value {
    json!({ "tool_name": tool, "arguments": arguments })
}

fn bed(assistants: &[(&str, Value)]) -> Bed {
    let files: Vec<(String, String)> =
        assistants.iter().map(|(name, _)| (format!("{name}.md"), assistant(name, TOOLS))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    Bed::new(RUNNER, &files, &script(assistants))
}

/// Answers `re: <question>` until so many are answered; returns what was asked.
async fn answer_all(client: &Client, many: usize) -> Vec<String> {
    let mut asked = Vec::new();
    let mut cursor = json!(null);
    while asked.len() < many {
        let pending = client.call("get_pending_questions", json!({})).await;
        for one in pending["questions"].as_array().expect("a list") {
            let question = one["question"].as_str().expect("a text").to_owned();
            let reply = json!({
                "process_id": one["process_id"], "message_id": one["message_id"], "answer": format!("re: {question}"),
            });
            client.call("reply_assistant", reply.clone()).await;
            let again = client.try_call("reply_assistant", reply).await.expect_err("once is enough");
            assert!(again["message"].as_str().is_some_and(|text| text.contains("takes no answer")), "{again}");
            asked.push(question);
        }
        if asked.len() < many {
            cursor = client.call("wait_assistant", json!({ "cursor": cursor })).await["next_cursor"].clone();
        }
    }
    asked.sort();
    asked
}

fn all() -> Vec<String> {
    let mut all: Vec<String> = (0..MANY).map(|number| format!("what is {number}?")).collect();
    all.sort();
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn many_questions_of_one_process_are_each_answered_once() {
    let calls: Vec<Value> =
        (0..MANY).map(|number| call("ask_parent", json!({ "question": format!("what is {number}?") }))).collect();
    let bed = bed(&[("asker", json!([{ "tool_calls": calls }, { "text": "done" }]))]);
    let client = bed.open().await;
    let spawned = client.spawn("asker", "go").await;
    assert_eq!(answer_all(&client, MANY).await, all());
    assert_eq!(client.end(&spawned).await["status"], "finished");
    client.host.close().await;
    let db = rusqlite::Connection::open(bed.state().join("assistant-host.db")).expect("the store");
    let fits: usize = db
        .query_row(
            "SELECT count(*) FROM questions q JOIN assistant_messages m ON m.id = q.message_id
               JOIN assistant_messages a ON a.id = q.answer_message_id
             WHERE q.state = 'RETRIEVED' AND a.content = 're: ' || m.content",
            [],
            |row| row.get(0),
        )
        .expect("a number");
    assert_eq!(fits, MANY);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_questions_of_many_processes_hold_no_slot_and_are_each_answered_once() {
    let asks = json!([
        { "tool_calls": [call("ask_parent", json!({ "question": "{{task}}" }))] },
        { "text": "{{ask_parent.answer}}" },
    ]);
    let mut bed = bed(&[("asker", asks)]);
    // Fewer than there are processes: they all ask only because whoever waits holds no slot.
    bed.limits.running_per_session = 4;
    let client = bed.open().await;
    let mut spawned = Vec::new();
    for question in all() {
        spawned.push((client.spawn("asker", &question).await, format!("re: {question}")));
    }
    assert_eq!(answer_all(&client, MANY).await, all());
    for (spawned, want) in &spawned {
        assert_eq!(client.end(spawned).await["status"], "finished");
        assert_eq!(client.mail(spawned).await.last(), Some(want));
    }
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_an_answer_ends_when_the_hosts_clock_says_so() {
    let asks = json!([{ "tool_calls": [call("ask_parent", json!({ "question": "well?" }))] }, { "text": "never" }]);
    let checks = json!([
        { "tool_calls": [call("ask_parent", json!({ "question": "well?", "wait_ms": 0 }))] },
        { "tool_calls": [call("check_answer", json!({ "message_id": "{{ask_parent.message_id}}", "wait_ms": 600_000 }))] },
        { "text": "it is {{check_answer.state}}" },
    ]);
    let mut bed = bed(&[("asks", asks), ("checks", checks)]);
    let time = Arc::new(AtomicI64::new(1_000_000));
    let clock = time.clone();
    bed.clock = Some(Arc::new(move || clock.load(Ordering::Relaxed)));
    let client = bed.open().await;
    let (asks, checks) = (client.spawn("asks", "go").await, client.spawn("checks", "go").await);
    client.until(&asks, "waiting").await;
    client.until(&checks, "waiting").await;
    let pending = client.call("get_pending_questions", json!({ "process_id": asks["process_id"] })).await;
    time.fetch_add(DAY - 1, Ordering::Relaxed);
    assert_eq!(client.call("get_pending_questions", json!({})).await["questions"].as_array().map(Vec::len), Some(2));
    time.fetch_add(1, Ordering::Relaxed);
    let ended = client.end(&asks).await;
    assert_eq!((&ended["reason"], &ended["error"]), (&json!("no_answer"), &json!("Stalled: Parent No-Response")));
    assert_eq!(client.end(&checks).await["status"], "finished");
    assert_eq!(client.mail(&checks).await.last().map(String::as_str), Some("it is expired"));
    let late = json!({ "process_id": asks["process_id"], "answer": "yes" });
    let late = client.try_call("reply_assistant", late).await.expect_err("too late");
    let id = pending["questions"][0]["message_id"].as_str().expect("an id");
    let told = late["message"].as_str().expect("a text");
    assert!(told.contains(id) && told.contains("EXPIRED"), "the refusal tells the state: {late}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_comes_by_its_own_calls_only() {
    let recv = |arguments: Value| call("recv_message", arguments);
    let own = "{{id_after.thread_id}}";
    let asks = json!([
        { "tool_calls": [call("ask_parent", json!({ "question": "red or blue?", "wait_ms": 0 }))] },
        { "tool_calls": [recv(json!({ "thread_id": own, "wait_ms": 600_000, "unread_only": true }))] },
        { "tool_calls": [recv(json!({ "thread_id": own, "last_n": 50 }))] },
        { "tool_calls": [call("check_answer", json!({ "message_id": "{{ask_parent.message_id}}" }))] },
        { "tool_calls": [call("check_answer", json!({ "message_id": "{{ask_parent.message_id}}" }))] },
        { "text": "{{recv_message.summary.total_fetched}} {{recv_message.messages.last.content}} {{check_answer.state}} {{check_answer.answer}}" },
    ]);
    let bed = bed(&[("asks", asks)]);
    let client = bed.open().await;
    let spawned = client.spawn("asks", "go").await;
    client.until(&spawned, "waiting").await;
    client.call("reply_assistant", json!({ "process_id": spawned["process_id"], "answer": "blue" })).await;
    client.until(&spawned, "waiting").await;
    client.call("send_message", json!({ "thread_id": spawned["thread_id"], "message": "go on" })).await;
    client.end(&spawned).await;
    let told = client.mail(&spawned).await;
    // The question and the message; the answer is no mail until it is retrieved, and is read again after that.
    assert_eq!(told.last().map(String::as_str), Some("2 go on retrieved blue"), "{told:?}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_questions_hands_them_over_with_what_was_written_before() {
    let spawn =
        |wait: u64| call("spawn_assistant", json!({ "assistant_id": "child", "query": "help", "wait_ms": wait }));
    let parent = json!([
        { "tool_calls": [spawn(0)] },
        // The child writes and asks while the model thinks.
        { "delay_ms": 8_000, "tool_calls": [call("get_pending_questions", json!({}))] },
        { "tool_calls": [
            call("reply_assistant", json!({ "process_id": "{{spawn_assistant.process_id}}", "answer": "seven" })),
            call("wait_assistant", json!({ "mode": "all", "wait_ms": 600_000 })),
        ] },
        { "text": "{{get_pending_questions.messages.0.content}} {{get_pending_questions.questions.0.question}} {{wait_assistant.events.last.content}}; {{last_user}}" },
    ]);
    let child = json!([
        { "tool_calls": [call("send_message", json!({ "thread_id": "{{id_after.thread_id}}", "message": "I have begun." }))] },
        { "tool_calls": [call("ask_parent", json!({ "question": "How many?" }))] },
        { "text": "{{ask_parent.answer}} it is" },
    ]);
    let bed = bed(&[("parent", parent), ("child", child)]);
    let client = bed.open().await;
    let spawned = client.spawn("parent", "the task").await;
    assert_eq!(client.end(&spawned).await["status"], "finished");
    // Nothing was inserted as well: the last word of the user is the task.
    assert_eq!(client.mail(&spawned).await, ["I have begun. How many? seven it is; the task"]);
    client.host.close().await;
}
