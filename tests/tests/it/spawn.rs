//! Spawning: by search and by id, queued and limited, and what parents and children owe each other.

use conformance::bed::{Bed, assistant, script};
use serde_json::{Value, json};

use crate::RUNNER;

const SPAWNING: &str = "spawn_assistant, poll_assistant, send_message, recv_message";

fn call(tool: &str, arguments: Value) -> Value {
    json!({ "tool_name": tool, "arguments": arguments })
}

/// A bed with a parent, which does `steps`, and a child, which does `child`.
fn family(steps: Value, child: Value) -> Bed {
    let files = [("parent.md", assistant("parent", SPAWNING)), ("child.md", assistant("child", SPAWNING))];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    Bed::new(RUNNER, &files, &script(&[("parent", steps), ("child", child)]))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spawn_by_search_takes_the_best_and_tells_the_others() {
    let files = [
        ("a.md", "---\nname: SQL Tuner\ndescription: Makes slow database queries fast.\n---\nYou tune."),
        (
            "b.md",
            "---\nname: Query Writer\ndescription: Writes database queries.\nmodel: opus\ntools: Read, Bash, Task\n---\nYou write.",
        ),
    ];
    let bed = Bed::new(RUNNER, &files, &json!({ "assistants": [{ "steps": [{ "text": "done" }] }] }));
    let client = bed.open().await;
    let spawned = client
        .call("spawn_assistant", json!({ "search": { "text": "my slow database queries" }, "query": "go", "run_mode": "sync", "name": "first" }))
        .await;
    assert_eq!((&spawned["assistant_id"], &spawned["status"]), (&json!("sql-tuner"), &json!("finished")), "{spawned}");
    assert_eq!(spawned["matched"]["runners_up"][0]["assistant_id"], "query-writer");
    assert_eq!(spawned["result"]["content"], "done");
    let other = client.spawn("query-writer", "go").await;
    assert_eq!(other["unavailable_tools"][0]["tool"], "Bash");
    assert_eq!((&other["model"]["requested"], &other["model"]["used"]), (&json!("opus"), &json!("scripted")));
    assert!(other["model"]["why"].is_string(), "{other}");
    let error = client
        .try_call(
            "spawn_assistant",
            json!({ "search": { "text": "knitting queries for grandmothers" }, "query": "go" }),
        )
        .await;
    let error = error.expect_err("nothing fits");
    assert_eq!(error["code"], "no_match");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("`query-writer`")), "{error}");
    assert_eq!(
        client.refused("spawn_assistant", json!({ "search": { "text": "asdf qwer" }, "query": "go" })).await,
        "no_match"
    );
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_waits_for_its_child_in_one_slot() {
    let steps = json!([
        { "text": "1", "tool_calls": [call("spawn_assistant", json!({ "assistant_id": "child", "query": "help", "run_mode": "sync" }))] },
        { "text": "child says {{spawn_assistant.result.content}} after {{spawn_assistant.result.messages.0.content}}" },
    ]);
    let child = json!([
        { "text": "1", "tool_calls": [call("send_message", json!({ "thread_id": "{{id_after.thread_id}}", "message": "a word" }))] },
        { "text": "42" },
    ]);
    let mut bed = family(steps, child);
    bed.limits.running_per_session = 1;
    let client = bed.open().await;
    let spawned = client.spawn("parent", "go").await;
    client.end(&spawned).await;
    assert_eq!(client.mail(&spawned).await, ["child says 42 after a word"]);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_childs_end_wakes_a_parent_that_had_already_answered() {
    let steps = json!([
        { "text": "1", "tool_calls": [call("spawn_assistant", json!({ "assistant_id": "child", "query": "help" }))] },
        { "text": "I wait." },
        { "text": "then: {{last_user}}" },
    ]);
    let bed = family(steps, json!([{ "text": "42", "delay_ms": 3_000 }]));
    let client = bed.open().await;
    let spawned = client.spawn("parent", "go").await;
    let ended = client.end(&spawned).await;
    assert_eq!((&ended["status"], &ended["usage"]["model_calls"]), (&json!("finished"), &json!(3)), "{ended}");
    let mail = client.mail(&spawned).await;
    assert!(mail[0].contains("kind=\"final\"") && mail[0].contains("42"), "{mail:?}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_takes_all_below_along() {
    let steps = json!([
        { "text": "1", "tool_calls": [call("spawn_assistant", json!({ "assistant_id": "child", "query": "help", "run_mode": "sync" }))] },
        { "text": "2" },
    ]);
    let bed = family(steps, json!([{ "hang": true }]));
    let client = bed.open().await;
    let spawned = client.spawn("parent", "go").await;
    client.until(&spawned, "waiting").await;
    let parent = spawned["process_id"].as_str().expect("an id").parse().expect("an id");
    let child = client.host.children(parent).await.expect("children")[0].id;
    let cancelled = client.call("cancel_assistant", json!({ "process_id": spawned["process_id"] })).await;
    assert_eq!(cancelled["cancelled"], json!([parent, child]));
    let child = json!({ "process_id": child });
    assert_eq!(client.end(&child).await["status"], "cancelled");
    assert_eq!(client.end(&spawned).await["status"], "cancelled");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_told_by_name() {
    let spawn = call("spawn_assistant", json!({ "assistant_id": "child", "query": "help", "run_mode": "sync" }));
    let once = json!([{ "text": "1", "tool_calls": [spawn] }, { "text": "{{spawn_assistant.code}}" }]);
    let told = json!([{ "text": "1", "tool_calls": [spawn] }, { "text": "{{spawn_assistant.result.content}}" }]);
    let mut bed = family(told.clone(), once.clone());
    bed.limits.depth = 2;
    let client = bed.open().await;
    let spawned = client.spawn("parent", "go").await;
    client.end(&spawned).await;
    assert_eq!(client.mail(&spawned).await, ["limit_depth"]);
    client.host.close().await;
    let mut bed = family(told, once);
    bed.limits.spawns_per_tree = 2;
    let client = bed.open().await;
    let spawned = client.spawn("parent", "go").await;
    client.end(&spawned).await;
    assert_eq!(client.mail(&spawned).await, ["limit_spawns_per_tree"]);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_finds_no_slot_queues_in_order() {
    let bed = {
        let mut bed = Bed::new(RUNNER, &[("x.md", &assistant("x", ""))], &script(&[("x", json!([{ "hang": true }]))]));
        bed.limits.running_per_session = 1;
        bed.limits.queue_per_session = 2;
        bed
    };
    let client = bed.open().await;
    let first = client.spawn("x", "1").await;
    assert_eq!(first["status"], "starting");
    let second = client.spawn("x", "2").await;
    let third = client.spawn("x", "3").await;
    assert_eq!((&second["status"], &second["capacity"]["position"]), (&json!("queued"), &json!(1)));
    assert_eq!((&third["status"], &third["capacity"]["position"]), (&json!("queued"), &json!(2)));
    assert_eq!(
        client.refused("spawn_assistant", json!({ "assistant_id": "x", "query": "4" })).await,
        "limit_queue_per_session"
    );
    client.call("cancel_assistant", json!({ "process_id": first["process_id"] })).await;
    client.end(&first).await;
    client.until(&second, "running").await;
    assert_eq!(client.poll(&third).await["status"], "queued");
    client.call("cancel_assistant", json!({ "process_id": third["process_id"] })).await;
    let ended = client.poll(&third).await;
    assert_eq!((&ended["status"], &ended["exit_code"]), (&json!("cancelled"), &Value::Null));
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_at_once_all_end() {
    let mut bed = Bed::new(
        RUNNER,
        &[("x.md", &assistant("x", "list_files"))],
        &script(&[(
            "x",
            json!([
                { "text": "1", "tool_calls": [call("list_files", json!({}))] }, { "text": "done {{task}}" },
            ]),
        )]),
    );
    bed.limits.running_per_session = 100;
    bed.limits.running_per_host = 100;
    bed.limits.model_calls = 100;
    let client = bed.open().await;
    let mut spawned = Vec::new();
    for number in 0..100 {
        spawned.push(client.spawn("x", &format!("task {number}")).await);
    }
    for (number, one) in spawned.iter().enumerate() {
        assert_eq!(client.end(one).await["status"], "finished");
        assert_eq!(client.mail(one).await, [format!("done task {number}")]);
    }
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_result_reaches_a_waiting_parent_whole() {
    let steps = json!([
        { "text": "1", "tool_calls": [call("spawn_assistant", json!({ "assistant_id": "child", "query": "help", "run_mode": "sync" }))] },
        { "text": "{{spawn_assistant.result.more}} {{last_user}}" },
    ]);
    let bed = family(steps, json!([{ "text": "z".repeat(50_000) }]));
    let client = bed.open().await;
    let spawned = client.spawn("parent", "go").await;
    client.end(&spawned).await;
    let told =
        client.call("recv_message", json!({ "thread_id": spawned["thread_id"] })).await["messages"][0]["content"]
            .clone();
    let told = told.as_str().expect("a text");
    assert!(told.starts_with("true <message kind=\"final\""), "{}", &told[..100]);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_tools_by_spawning_someone_who_has_them() {
    let files = [
        ("parent.md", assistant("parent", "spawn_assistant")),
        ("child.md", assistant("child", "read_file")),
        ("known.md", assistant("known", "read_file").replace("tools:", "allowed_callers: [parent]\ntools:")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let spawn = |id: &str| call("spawn_assistant", json!({ "assistant_id": id, "query": "help", "run_mode": "sync" }));
    let steps = json!([
        { "text": "1", "tool_calls": [spawn("child")] },
        { "text": "{{spawn_assistant.code}}: {{spawn_assistant.message}}", "tool_calls": [spawn("known")] },
        { "text": "{{spawn_assistant.result.content}}" },
    ]);
    let bed = Bed::new(RUNNER, &files, &script(&[("parent", steps), ("known", json!([{ "text": "known did it" }]))]));
    let client = bed.open().await;
    let spawned = client.spawn("parent", "go").await;
    client.end(&spawned).await;
    assert_eq!(client.mail(&spawned).await, ["known did it"]);
    client.host.close().await;
    let db = rusqlite::Connection::open(bed.state().join("assistant-host.db")).expect("the store");
    let refused: String = db
        .query_row(
            "SELECT result FROM tool_calls WHERE tool = 'spawn_assistant' ORDER BY started_at LIMIT 1",
            [],
            |row| row.get(0),
        )
        .expect("a row");
    assert!(refused.contains("caller_not_allowed") && refused.contains("read_file"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_assistant_spawns_only_whom_its_definition_names() {
    let files = [
        ("parent.md", assistant("parent", "spawn_assistant").replace("tools:", "agents: [Known]\ntools:")),
        ("other.md", assistant("other", "ask_parent")),
        ("known.md", assistant("known", "ask_parent")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let spawn = |id: &str| call("spawn_assistant", json!({ "assistant_id": id, "query": "help", "run_mode": "sync" }));
    let steps = json!([
        { "text": "1", "tool_calls": [spawn("other")] },
        { "text": "2", "tool_calls": [spawn("known")] },
        { "text": "{{spawn_assistant.result.content}}" },
    ]);
    let answer = json!([{ "text": "did it" }]);
    let script = script(&[("parent", steps), ("known", answer.clone()), ("other", answer)]);
    let bed = Bed::new(RUNNER, &files, &script);
    let client = bed.open().await;
    let spawned = client.spawn("parent", "go").await;
    client.end(&spawned).await;
    assert_eq!(client.mail(&spawned).await, ["did it"]);
    client.host.close().await;
    let db = rusqlite::Connection::open(bed.state().join("assistant-host.db")).expect("the store");
    let refused: String = db
        .query_row(
            "SELECT result FROM tool_calls WHERE tool = 'spawn_assistant' ORDER BY started_at LIMIT 1",
            [],
            |row| row.get(0),
        )
        .expect("a row");
    assert!(refused.contains("caller_not_allowed") && refused.contains("Known only"), "{refused}");
}
