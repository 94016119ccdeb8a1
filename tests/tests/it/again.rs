//! Calls that are made again with an idempotency key, calls that wait beside each other, and questions that change hands.

use conformance::bed::{Bed, Client, SOON, assistant, script};
use serde_json::{Value, json};

use crate::RUNNER;

const TOOLS: &str = "spawn_assistant, wait_assistant, reply_assistant, ask_parent, send_message, recv_message";

fn call(tool: &str, arguments: Value) -> Value {
    json!({ "tool_name": tool, "arguments": arguments })
}

fn bed(assistants: &[(&str, Value)]) -> Bed {
    let files: Vec<(String, String)> =
        assistants.iter().map(|(name, _)| (format!("{name}.md"), assistant(name, TOOLS))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    Bed::new(RUNNER, &files, &script(assistants))
}

/// How many processes a client has, and those below them.
async fn count(client: &Client) -> u64 {
    client.call("list_process", json!({})).await["total_items"].as_u64().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spawn_with_a_key_is_done_once() {
    let bed = bed(&[("one", json!([{ "text": "the result" }]))]);
    let client = bed.open().await;
    let asked = json!({ "assistant_id": "one", "query": "go", "idempotency_key": "k" });
    let with = |name: &str, value: Value| {
        let mut asked = asked.clone();
        asked[name] = value;
        asked
    };
    let both =
        tokio::join!(client.call("spawn_assistant", asked.clone()), client.call("spawn_assistant", asked.clone()));
    let process = both.0["process_id"].clone();
    assert_eq!(both.1["process_id"], process, "two at once are one");
    let waited = client.call("spawn_assistant", with("run_mode", json!("sync"))).await;
    assert_eq!((&waited["process_id"], &waited["result"]["content"]), (&process, &json!("the result")));
    let again = client.call("spawn_assistant", with("assistantId", json!(null))).await;
    assert_eq!((&again["process_id"], &again["status"]), (&process, &json!("finished")), "as it is now");
    for (name, value) in [("query", json!("another")), ("detached", json!(true)), ("model", json!("scripted"))] {
        let refused = client.try_call("spawn_assistant", with(name, value)).await.expect_err("another call");
        assert!(
            refused["message"].as_str().is_some_and(|text| text.contains("was used for another call")),
            "{refused}"
        );
    }
    for key in ["".to_owned(), "k".repeat(201)] {
        assert_eq!(client.refused("spawn_assistant", with("idempotency_key", json!(key))).await, "bad_argument");
    }
    // A refused call has used up nothing.
    let nobody = json!({ "assistant_id": "nobody", "query": "go", "idempotency_key": "n" });
    assert_eq!(client.refused("spawn_assistant", nobody).await, "unknown_assistant");
    assert_ne!(client.call("spawn_assistant", with("idempotency_key", json!("n"))).await["process_id"], process);
    assert_eq!(count(&client).await, 2);
    // A key belongs to the principal: it outlives the session and the host, and others have their own.
    let again = Client::of(&client.host).await;
    assert_eq!(again.call("spawn_assistant", asked.clone()).await["process_id"], process);
    let guest = client.host.open_session("guest", "main").await.expect("a session");
    let guest = Client { host: client.host.clone(), session: guest };
    assert_ne!(guest.call("spawn_assistant", asked.clone()).await["process_id"], process);
    client.host.close().await;
    drop((client, again, guest));
    let client = bed.open().await;
    assert_eq!(client.call("spawn_assistant", asked.clone()).await["process_id"], process);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spawn_with_a_key_is_told_as_it_is_now() {
    let bed = bed(&[
        ("ends", json!([{ "text": "the result" }])),
        ("fails", json!([{ "error": { "kind": "rejected", "message": "no" } }])),
        ("hangs", json!([{ "hang": true }])),
        ("lost", json!([{ "hang": true }])),
    ]);
    let client = bed.open().await;
    let asked = |id: &str| json!({ "assistant_id": id, "query": "go", "idempotency_key": id });
    for (id, want) in [("ends", "finished"), ("fails", "failed"), ("hangs", "cancelled")] {
        let spawned = client.call("spawn_assistant", asked(id)).await;
        if id == "hangs" {
            client.until(&spawned, "running").await;
            assert_eq!(client.call("spawn_assistant", asked(id)).await["status"], "running");
            client.call("cancel_assistant", json!({ "process_id": spawned["process_id"] })).await;
        }
        client.end(&spawned).await;
        let again = client.call("spawn_assistant", asked(id)).await;
        assert_eq!((&again["process_id"], &again["status"]), (&spawned["process_id"], &json!(want)), "{id}");
        assert_eq!(again["capacity"]["running"], 0, "{again}");
    }
    let spawned = client.call("spawn_assistant", asked("lost")).await;
    client.until(&spawned, "running").await;
    client.host.close().await;
    drop(client);
    let client = bed.open().await;
    let again = client.call("spawn_assistant", asked("lost")).await;
    assert_eq!(again["process_id"], spawned["process_id"]);
    assert_eq!(again["status"], client.poll(&spawned).await["status"], "{again}");
    assert_ne!(again["status"], "starting", "{again}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_with_a_key_is_sent_once() {
    let bed = bed(&[("one", json!([{ "hang": true }]))]);
    let client = bed.open().await;
    let spawned = client.spawn("one", "go").await;
    let sent = |text: &str| json!({ "thread_id": spawned["thread_id"], "message": text, "idempotency_key": "k" });
    let first = client.call("send_message", sent("hello")).await;
    assert_eq!(client.call("send_message", sent("hello")).await, first);
    assert_eq!(client.refused("send_message", sent("good bye")).await, "bad_argument");
    let read = client.call("recv_message", json!({ "thread_id": spawned["thread_id"] })).await;
    let contents: Vec<&Value> =
        read["messages"].as_array().expect("a list").iter().map(|message| &message["content"]).collect();
    assert_eq!(contents, ["hello"]);
    client.call("cancel_assistant", json!({ "process_id": spawned["process_id"] })).await;
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_process_has_the_keys_of_the_one_before() {
    let spawn = || call("spawn_assistant", json!({ "assistant_id": "child", "query": "help", "idempotency_key": "k" }));
    let wait = json!({ "thread_id": "{{id_after.thread_id}}", "wait_ms": 600_000, "unread_only": true });
    let parent = json!([
        { "tool_calls": [spawn()] },
        { "tool_calls": [call("recv_message", wait)] },
        { "tool_calls": [spawn()] },
        { "text": "{{spawn_assistant.process_id}}" },
    ]);
    let bed = bed(&[("parent", parent), ("child", json!([{ "hang": true }]))]);
    let client = bed.open().await;
    let spawned = client.spawn("parent", "go").await;
    client.until(&spawned, "waiting").await;
    let listed = client.call("list_process", json!({ "process_id": spawned["process_id"] })).await;
    let child = &listed["items"][1]["process_id"];
    client.call("cancel_assistant", json!({ "process_id": spawned["process_id"] })).await;
    client.end(&spawned).await;
    let resumed =
        client.call("spawn_assistant", json!({ "resume_process_id": spawned["process_id"], "run_mode": "sync" })).await;
    assert_eq!((&resumed["status"], &resumed["result"]["content"]), (&json!("finished"), child), "{resumed}");
    assert_eq!(count(&client).await, 3);
    // The assistant that it had may be named; another one may not.
    let as_assistant = |id: &str| {
        let old = &resumed["process_id"];
        json!({ "assistant_id": id, "resume_process_id": old, "query": "once more", "run_mode": "sync" })
    };
    let refused = client.try_call("spawn_assistant", as_assistant("child")).await.expect_err("another assistant");
    assert!(refused.to_string().contains("`resume_process_id` is given with another assistant"), "{refused}");
    let again = client.call("spawn_assistant", as_assistant("parent")).await;
    assert_eq!((&again["assistant_id"], &again["status"]), (&json!("parent"), &json!("finished")), "{again}");
    client.host.close().await;
}

/// A resumed process that is asked to go on, as its child has ended after it had answered, goes on where it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_process_that_runs_again_keeps_what_it_has_said() {
    let listen = json!({ "thread_id": "{{id_after.thread_id}}", "wait_ms": 600_000, "unread_only": true });
    let parent = json!([
        { "text": "first" },
        { "tool_calls": [call("spawn_assistant", json!({ "assistant_id": "child", "query": "help" }))] },
        { "text": "second" },
        { "text": "third: {{spawn_assistant.process_id}}" },
    ]);
    let child = json!([{ "tool_calls": [call("recv_message", listen)] }, { "text": "helped" }]);
    let bed = bed(&[("parent", parent), ("child", child)]);
    let client = bed.open().await;
    let old = client.spawn("parent", "go").await;
    assert_eq!(client.end(&old).await["status"], "finished");
    let resume = json!({ "resume_process_id": old["process_id"], "query": "go on" });
    let resumed = client.call("spawn_assistant", resume).await;
    client.until(&resumed, "waiting").await;
    let listed = client.call("list_process", json!({ "process_id": resumed["process_id"] })).await;
    let child = &listed["items"][1];
    // Earlier, its first model call would take the message in.
    client.until(child, "waiting").await;
    client.call("send_message", json!({ "thread_id": child["thread_id"], "message": "end" })).await;
    assert_eq!(client.end(&resumed).await["status"], "finished");
    let process = child["process_id"].as_str().expect("an id");
    assert_eq!(client.mail(&resumed).await, [format!("third: {process}")]);
    assert_eq!(count(&client).await, 3);
    client.host.close().await;
}

/// Two calls wait beside each other, and one of them hands a question over: the model can answer it only when the other
/// one returns too.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_ends_all_waits_of_a_turn() {
    let recv =
        |thread: &str| call("recv_message", json!({ "thread_id": thread, "wait_ms": 600_000, "unread_only": true }));
    let child = json!("{{spawn_assistant.process_id}}");
    let parent = json!([
        { "tool_calls": [call("spawn_assistant", json!({ "assistant_id": "child", "query": "help" }))] },
        // The question comes while the model thinks: the first call finds it, the second one has to hear of it.
        { "delay_ms": 6_000, "tool_calls": [recv("{{spawn_assistant.thread_id}}"), recv("{{id_after.thread_id}}")] },
        { "tool_calls": [
            call("reply_assistant", json!({ "process_id": child, "answer": "seven" })),
            call("wait_assistant", json!({ "process_ids": [child], "mode": "all", "wait_ms": 600_000 })),
        ] },
        { "text": "{{wait_assistant.events.last.content}}" },
    ]);
    let child = json!([
        { "delay_ms": 1_500, "tool_calls": [call("ask_parent", json!({ "question": "how many?" }))] },
        { "text": "it is {{ask_parent.answer}}" },
    ]);
    let bed = bed(&[("parent", parent), ("child", child)]);
    let client = bed.open().await;
    let spawned = client.spawn("parent", "go").await;
    let seen = tokio::time::timeout(SOON, client.end(&spawned)).await.expect("nobody waits for the other");
    assert_eq!(seen["status"], "finished", "{seen}");
    assert_eq!(client.mail(&spawned).await, ["it is seven"]);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_a_detached_run_goes_to_the_session_with_it() {
    let parent = json!([
        { "tool_calls": [call("spawn_assistant", json!({ "assistant_id": "child", "query": "help", "detached": true }))] },
        { "tool_calls": [call("recv_message", json!({ "thread_id": "{{spawn_assistant.thread_id}}", "wait_ms": 600_000 }))] },
        { "text": "not my business: {{spawn_assistant.process_id}}" },
    ]);
    let child = json!([
        // When its parent waits.
        { "delay_ms": 2_000, "tool_calls": [call("ask_parent", json!({ "question": "how many?" }))] },
        { "text": "it is {{ask_parent.answer}}" },
    ]);
    let mut bed = bed(&[("parent", parent), ("child", child)]);
    bed.limits.answer_wait_ms = 8_000;
    let client = bed.open().await;
    let before = client.call("wait_assistant", json!({})).await["next_cursor"].clone();
    let spawned = client.spawn("parent", "go").await;
    assert_eq!(client.end(&spawned).await["status"], "finished");
    let waited = client.call("wait_assistant", json!({ "cursor": before })).await;
    let mut told: Vec<(&str, &str)> = waited["events"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|event| (event["assistant_id"].as_str().expect("an id"), event["kind"].as_str().expect("a kind")))
        .collect();
    told.sort_unstable();
    assert_eq!(told, [("child", "question"), ("parent", "finished")], "each once: {waited}");
    let pending = client.call("get_pending_questions", json!({})).await;
    let asked = &pending["questions"][0];
    assert_eq!(asked["question"], "how many?", "{pending}");
    // A process would have stalled by then; a person may take longer.
    tokio::time::sleep(std::time::Duration::from_millis(8_500)).await;
    client.call("reply_assistant", json!({ "process_id": asked["process_id"], "answer": "seven" })).await;
    assert_eq!(client.end(asked).await["status"], "finished");
    let log = client.call("read_log", json!({ "process_id": asked["process_id"], "transcript": true })).await;
    assert!(log.to_string().contains("it is seven"), "{log}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_may_ask_is_told_how() {
    let says = || json!([{ "text": "{{system}}" }]);
    let files = [("asks.md", assistant("asks", "ask_parent")), ("reads.md", assistant("reads", "read_file"))];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let bed = Bed::new(RUNNER, &files, &script(&[("asks", says()), ("reads", says())]));
    let client = bed.open().await;
    for (name, told) in [("asks", true), ("reads", false)] {
        let asked = json!({ "assistant_id": name, "query": "go", "run_mode": "sync" });
        let spawned = client.call("spawn_assistant", asked).await;
        let prompt = spawned["result"]["content"].as_str().expect("a text");
        assert_eq!(prompt.contains("ask_parent"), told, "{name}: {prompt}");
    }
    client.host.close().await;
}
