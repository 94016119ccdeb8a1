//! Waiting and reading while others write: no lost wake-up, nothing skipped, nothing twice.

use std::collections::HashMap;

use conformance::bed::{Bed, Client, SOON, assistant, script};
use serde_json::{Value, json};

use crate::RUNNER;

/// Sessions that wait, each for an assistant that writes.
const WAITERS: usize = 64;
/// Messages of each.
const EACH: usize = 5;
/// Writers into one thread.
const WRITERS: usize = 8;
/// Messages of each writer.
const WRITTEN: usize = 40;

fn call(tool: &str, arguments: Value) -> Value {
    json!({ "tool_name": tool, "arguments": arguments })
}

fn writes(messages: usize) -> Value {
    let message = |number: usize| {
        let arguments = json!({ "thread_id": "{{id_after.thread_id}}", "message": format!("word {number}") });
        json!({ "tool_calls": [call("send_message", arguments)] })
    };
    let mut steps: Vec<Value> = (0..messages).map(message).collect();
    steps.push(json!({ "text": "done" }));
    json!(steps)
}

/// Follows all that a session has by the cursor, from before its first spawn on.
async fn follow(client: Client) -> Vec<String> {
    let mut cursor = client.call("wait_assistant", json!({})).await["next_cursor"].clone();
    let spawned = client.spawn("writer", "go").await;
    let mut told = Vec::new();
    loop {
        let waited = client.call("wait_assistant", json!({ "cursor": cursor, "wait_ms": 600_000 })).await;
        for event in waited["events"].as_array().expect("a list") {
            assert_eq!(event["process_id"], spawned["process_id"]);
            told.push(event["content"].as_str().expect("a text").to_owned());
        }
        cursor = waited["next_cursor"].clone();
        if waited["still_running"] == json!([]) && told.last().is_some_and(|last| last == "done") {
            return told;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_wake_up_is_lost_and_each_event_is_told_once() {
    let mut bed =
        Bed::new(RUNNER, &[("writer.md", &assistant("writer", "send_message"))], &script(&[("writer", writes(EACH))]));
    // Longer than the test waits for a call: what comes in time was woken for.
    bed.limits.client_wait_ms = 600_000;
    let host = bed.try_open().await.expect("a host");
    let mut following = Vec::new();
    for number in 0..WAITERS {
        let session = host.open_session(&format!("principal {number}"), "main").await.expect("a session");
        following.push(tokio::spawn(follow(Client { host: host.clone(), session })));
    }
    let mut want: Vec<String> = (0..EACH).map(|number| format!("word {number}")).collect();
    want.push("done".to_owned());
    for follower in following {
        let told = tokio::time::timeout(SOON, follower).await.expect("nobody waits for nothing").expect("a task");
        assert_eq!(told, want);
    }
    host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_waits_gets_each_word_of_its_children_once() {
    let spawn = || call("spawn_assistant", json!({ "assistant_id": "writer", "query": "go" }));
    let wait = |cursor: Value| {
        let mut arguments = json!({ "wait_ms": 600_000 });
        if !cursor.is_null() {
            arguments["cursor"] = cursor;
        }
        json!({ "tool_calls": [call("wait_assistant", arguments)] })
    };
    let mut steps = vec![json!({ "tool_calls": [spawn(), spawn(), spawn()] }), wait(Value::Null)];
    for _ in 0..30 {
        steps.push(wait(json!("{{wait_assistant.next_cursor}}")));
    }
    steps.push(json!({ "text": "that is all" }));
    let bed = Bed::new(
        RUNNER,
        &[
            ("parent.md", &assistant("parent", "spawn_assistant, wait_assistant, send_message")),
            ("writer.md", &assistant("writer", "send_message")),
        ],
        &script(&[("parent", json!(steps)), ("writer", writes(EACH))]),
    );
    let client = bed.open().await;
    let spawned = client.spawn("parent", "go").await;
    assert_eq!(client.end(&spawned).await["status"], "finished");
    client.host.close().await;
    // In the results of its calls or inserted: each once.
    let db = rusqlite::Connection::open(bed.state().join("assistant-host.db")).expect("the store");
    let mut look =
        db.prepare("SELECT message FROM conversations WHERE process_id = ?1 ORDER BY position").expect("SQL");
    let rows =
        look.query_map([spawned["process_id"].as_str().expect("an id")], |row| row.get::<_, String>(0)).expect("rows");
    let mut words: HashMap<usize, usize> = HashMap::new();
    for row in rows {
        let text = row.expect("a row");
        for number in 0..EACH {
            *words.entry(number).or_default() += text.matches(&format!("word {number}")).count();
        }
    }
    assert_eq!(words, (0..EACH).map(|number| (number, 3)).collect());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_with_a_cursor_sees_each_message_once_while_others_write() {
    let bed =
        Bed::new(RUNNER, &[("x.md", &assistant("x", "send_message"))], &script(&[("x", json!([{ "hang": true }]))]));
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (client, thread) = (client.clone(), spawned["thread_id"].clone());
            tokio::spawn(async move {
                for number in 0..WRITTEN {
                    let message = format!("{writer} {number}");
                    client.call("send_message", json!({ "thread_id": thread, "message": message })).await;
                }
            })
        })
        .collect();
    let mut seen: Vec<String> = Vec::new();
    let (mut cursor, mut since) = (Value::Null, Value::Null);
    let reading = async {
        while seen.len() < WRITERS * WRITTEN {
            // The cursor while there is more, else the time of the last message.
            let mut asked = json!({ "thread_id": spawned["thread_id"], "last_n": 7, "wait_ms": 5_000 });
            if cursor.is_null() {
                asked["since"] = if since.is_null() { json!(0) } else { since.clone() };
            } else {
                asked["cursor"] = cursor.clone();
            }
            let read = client.call("recv_message", asked).await;
            for one in read["messages"].as_array().expect("a list") {
                seen.push(one["content"].as_str().expect("a text").to_owned());
                since = one["created_at"].clone();
            }
            cursor = read["next_cursor"].clone();
        }
    };
    tokio::time::timeout(SOON, reading).await.expect("all are read");
    for writer in writers {
        writer.await.expect("written");
    }
    for writer in 0..WRITERS {
        let own = format!("{writer} ");
        let order: Vec<&str> = seen.iter().filter_map(|text| text.strip_prefix(&own)).collect();
        let want: Vec<String> = (0..WRITTEN).map(|number| number.to_string()).collect();
        assert_eq!(order, want, "writer {writer}: each once and in order");
    }
    assert_eq!(seen.len(), WRITERS * WRITTEN);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_no_kin_has_no_thread() {
    // a and b are siblings below the session; c is a child of a.
    let parent = json!([{ "tool_calls": [call("spawn_assistant", json!({ "assistant_id": "c", "query": "{{task}}" }))] }, { "text": "x", "hang": true }]);
    let other = json!([
        { "tool_calls": [call("recv_message", json!({ "thread_id": "{{id_after.thread_id}}", "wait_ms": 600_000, "unread_only": true }))] },
        { "tool_calls": [call("send_message", json!({ "thread_id": "{{recv_message.messages.0.content}}", "message": "hello" }))] },
        { "text": "x", "hang": true },
    ]);
    let files = [
        ("a.md", assistant("a", "spawn_assistant, send_message, recv_message")),
        ("b.md", assistant("b", "send_message, recv_message")),
        ("c.md", assistant("c", "send_message, recv_message")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let bed = Bed::new(RUNNER, &files, &script(&[("a", parent), ("b", other.clone()), ("c", other)]));
    let client = bed.open().await;
    let (a, b) = (client.spawn("a", "go").await, client.spawn("b", "go").await);
    let c = loop {
        let listed = client.call("list_process", json!({ "process_id": a["process_id"] })).await;
        if let Some(c) = listed["items"].get(1) {
            break c.clone();
        }
        client.call("poll_assistant", json!({ "process_id": a["process_id"], "wait_ms": 1_000 })).await;
    };
    let told = async |who: &Value, thread: &Value, want: &str| {
        client.until(who, "waiting").await;
        let message = json!({ "thread_id": who["thread_id"], "message": thread });
        client.call("send_message", message).await;
        let mut cursor = json!(null);
        loop {
            let asked = json!({ "process_id": who["process_id"], "kinds": ["tool_result"], "wait_ms": 5_000, "cursor": cursor });
            let log = client.call("read_log", asked).await;
            let sent = |event: &&Value| event["data"]["tool"] == "send_message";
            if let Some(event) = log["events"].as_array().into_iter().flatten().find(sent) {
                assert_eq!(event["data"]["is_error"], want == "not_permitted", "{want}: {event}");
                break;
            }
            cursor = log["next_cursor"].clone();
        }
    };
    told(&b, &c["thread_id"], "not_permitted").await;
    told(&c, &a["thread_id"], "not_permitted").await;
    let stranger = client.host.open_session("stranger", "main").await.expect("a session");
    let stranger = Client { host: client.host.clone(), session: stranger };
    for tool in ["send_message", "recv_message"] {
        let mut asked = json!({ "thread_id": a["thread_id"] });
        if tool == "send_message" {
            asked["message"] = json!("hello");
        }
        assert_eq!(stranger.refused(tool, asked).await, "not_permitted");
    }
    // The session above all may read the thread of a grandchild.
    client.call("recv_message", json!({ "thread_id": c["thread_id"] })).await;
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_one_receiver_in_all_its_threads() {
    let mut bed =
        Bed::new(RUNNER, &[("writer.md", &assistant("writer", "send_message"))], &script(&[("writer", writes(2))]));
    bed.limits.queued_messages = 3;
    let client = bed.open().await;
    let (one, two) = (client.spawn("writer", "go").await, client.spawn("writer", "go").await);
    client.end(&one).await;
    client.end(&two).await;
    let mut mail = client.mail(&one).await;
    mail.extend(client.mail(&two).await);
    let words = mail.iter().filter(|text| text.starts_with("word")).count();
    assert_eq!((words, mail.len()), (3, 5), "the fourth is refused, ends never are: {mail:?}");
    client.host.close().await;
}
