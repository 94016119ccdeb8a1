//! Following processes: what a wait tells whom, and what wakes a reader.

use conformance::bed::{Bed, Client, assistant, script};
use serde_json::{Value, json};

use crate::{FAKE_RUNNER, RUNNER};

const TALKING: &str = "send_message, recv_message";
/// Messages of a process that writes many: more than one look at the log takes.
const MANY: usize = 70;

fn bed(name: &str, steps: Value) -> Bed {
    let file = format!("{name}.md");
    Bed::new(RUNNER, &[(&file, &assistant(name, TALKING))], &script(&[(name, steps)]))
}

/// What a wait for everything tells now: kinds and contents, and what still runs.
async fn check(client: &Client, arguments: Value, want: &[(&str, &str)], running: usize) -> Value {
    let waited = client.call("wait_assistant", arguments).await;
    let events = waited["events"].as_array().expect("a list");
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    let told: Vec<_> = events.iter().map(|event| (text(event, "kind"), text(event, "content"))).collect();
    let want: Vec<_> = want.iter().map(|(kind, content)| ((*kind).to_owned(), (*content).to_owned())).collect();
    assert_eq!(told, want, "{waited}");
    assert_eq!(waited["still_running"].as_array().map(Vec::len), Some(running), "{waited}");
    waited
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_before_the_wait_is_told_once_to_whoever_spawned() {
    let bed = bed("quick", json!([{ "text": "done" }]));
    let client = bed.open().await;
    let other = Client::of(&client.host).await;
    let spawned = client.spawn("quick", "go").await;
    client.end(&spawned).await;
    check(&other, json!({}), &[], 0).await;
    // Whoever names it is told, and takes nothing from the other.
    let named = json!({ "process_ids": [spawned["process_id"]] });
    check(&other, named.clone(), &[("finished", "done")], 0).await;
    check(&client, json!({}), &[("finished", "done")], 0).await;
    check(&client, json!({}), &[], 0).await;
    let again = check(&client, named, &[("finished", "done")], 0).await;
    check(&client, json!({ "cursor": again["next_cursor"] }), &[], 0).await;
    check(&client, json!({ "cursor": "0" }), &[("finished", "done")], 0).await;
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn read_messages_do_not_hide_what_comes_behind_them() {
    let message = |number: usize| {
        let arguments = json!({ "thread_id": "{{id_after.thread_id}}", "message": format!("word {number}") });
        json!({ "tool_name": "send_message", "arguments": arguments })
    };
    let calls: Vec<Value> = (0..MANY).map(message).collect();
    let bed = bed("many", json!([{ "text": "I write", "tool_calls": calls }, { "text": "done", "delay_ms": 300 }]));
    let client = bed.open().await;
    let spawned = client.spawn("many", "go").await;
    let mut read = 0;
    let mut asked =
        json!({ "thread_id": spawned["thread_id"], "unread_only": true, "mark_as_read": true, "wait_ms": 5_000 });
    asked["last_n"] = json!(MANY);
    while read < MANY {
        let got = client.call("recv_message", asked.clone()).await;
        read += got["messages"].as_array().map_or(0, Vec::len);
    }
    check(&client, json!({ "process_ids": [spawned["process_id"]] }), &[("finished", "done")], 0).await;
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_wakes_who_reads_the_log() {
    let file = format!("{}/transcripts/says-late.jsonl", env!("CARGO_MANIFEST_DIR"));
    let mut bed = bed("late", json!([{ "text": "never asked" }]));
    bed.runner = assistant_host::launcher::RunnerCommand { program: FAKE_RUNNER.into(), args: vec![file.into()] };
    // Longer than the test waits for a call: what comes in time was woken for.
    bed.limits.client_wait_ms = 600_000;
    let client = bed.open().await;
    let made = std::process::Command::new("mkfifo").arg(bed.state().join("go")).status().expect("mkfifo");
    assert!(made.success());
    let spawned = client.spawn("late", "go").await;
    let asked = json!({ "process_id": spawned["process_id"], "kinds": ["stderr"], "wait_ms": 600_000 });
    let go = bed.state().join("go");
    let (read, wrote) =
        tokio::join!(client.call("read_log", asked), tokio::task::spawn_blocking(move || std::fs::write(go, "go")),);
    wrote.expect("a task").expect("the runner reads");
    assert_eq!(read["events"][0]["data"]["line"], "a word at last", "{read}");
    client.host.close().await;
}

/// A wait for everything, from a place on, hears of what another session of its user begins meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_everything_hears_of_what_began_later_elsewhere() {
    let assistants = [("quick.md", assistant("quick", TALKING)), ("hang.md", assistant("hang", TALKING))];
    let assistants = assistants.each_ref().map(|(file, text)| (*file, text.as_str()));
    let script = script(&[("quick", json!([{ "text": "done" }])), ("hang", json!([{ "hang": true }]))]);
    let mut bed = Bed::new(RUNNER, &assistants, &script);
    // Longer than the test waits for a call: what comes in time was woken for.
    bed.limits.client_wait_ms = 600_000;
    let client = bed.open().await;
    let other = Client::of(&client.host).await;
    let hanging = client.spawn("hang", "go").await;
    client.until(&hanging, "running").await;
    let before = client.call("wait_assistant", json!({ "wait_ms": 0 })).await;
    let asked = json!({ "cursor": before["next_cursor"], "wait_ms": 600_000 });
    let waiting = check(&client, asked, &[("finished", "done")], 1);
    let spawning = async {
        let spawned = other.spawn("quick", "go").await;
        other.end(&spawned).await;
    };
    tokio::join!(waiting, spawning);
    client.host.close().await;
}

/// What a model asks for in one answer is done in that order, as far as others see it.
#[tokio::test(flavor = "multi_thread")]
async fn calls_of_one_answer_keep_their_order() {
    let thread = "{{id_after.thread_id}}";
    let one = |number: usize| json!({ "tool_name": "send_message", "arguments": { "thread_id": thread, "message": format!("m{number:02}") } });
    let ask = |number: usize| json!({ "tool_name": "ask_parent", "arguments": { "question": format!("q{number}"), "wait_ms": 0 } });
    let calls: Vec<Value> = (0..20).map(one).chain((0..3).map(ask)).collect();
    let script = script(&[("x", json!([{ "tool_calls": calls }, { "text": "done" }]))]);
    let bed = Bed::new(RUNNER, &[("x.md", &assistant("x", "send_message, ask_parent"))], &script);
    let client = bed.open().await;
    for round in 0..10 {
        let spawned = client.spawn("x", "go").await;
        assert_eq!(client.end(&spawned).await["status"], "finished");
        let mut want: Vec<String> = (0..20).map(|number| format!("m{number:02}")).collect();
        want.extend(["q0", "q1", "q2", "done"].map(str::to_owned));
        assert_eq!(client.mail(&spawned).await, want, "round {round}");
    }
    client.host.close().await;
}

/// A question that is answered already ends no wait.
#[tokio::test(flavor = "multi_thread")]
async fn an_answered_question_is_no_news() {
    let ask = json!({ "tool_name": "ask_parent", "arguments": { "question": "which?" } });
    let steps = json!([{ "tool_calls": [ask] }, { "text": "done", "delay_ms": 300 }]);
    let bed = Bed::new(RUNNER, &[("x.md", &assistant("x", "ask_parent"))], &script(&[("x", steps)]));
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    client.until(&spawned, "waiting").await;
    client.call("reply_assistant", json!({ "process_id": spawned["process_id"], "answer": "this" })).await;
    let waited = client.call("wait_assistant", json!({ "mode": "all" })).await;
    let kinds: Vec<&str> =
        waited["events"].as_array().into_iter().flatten().filter_map(|one| one["kind"].as_str()).collect();
    assert_eq!(kinds, ["finished"], "{waited}");
    client.host.close().await;
}
