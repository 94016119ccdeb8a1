//! Recorded runs again: with the same runner all is the same, with another one the first difference is named.

use assistant_host::launcher::RunnerCommand;
use assistant_host::replay::{How, Recording, Report, Step, replay};
use assistant_protocol::ids::ProcessId;
use conformance::bed::{Bed, Client, assistant, script};
use futures::StreamExt;
use serde_json::{Value, json};

use crate::{FAKE_RUNNER, RUNNER};

#[cfg(target_os = "linux")]
mod changed;
#[cfg(target_os = "linux")]
mod command;
mod cut;

/// Rounds of all assistants: more than a hundred processes.
const ROUNDS: usize = 4;
/// Recordings that are played beside each other.
const AT_ONCE: usize = 4;

const TOOLS: &str = "spawn_assistant, poll_assistant, wait_assistant, reply_assistant, ask_parent, send_message, \
                     recv_message, list_files, read_file, search_files";

fn call(tool: &str, arguments: Value) -> Value {
    json!({ "tool_name": tool, "arguments": arguments })
}

fn id(spawned: &Value) -> ProcessId {
    spawned["process_id"].as_str().and_then(|id| id.parse().ok()).expect("an id")
}

/// The assistants of a bed, each for one thing that can happen on a link.
fn all() -> Vec<(&'static str, Value)> {
    let spawn = |who: &str, more: Value| {
        let mut arguments = json!({ "assistant_id": who, "query": "go" });
        arguments.as_object_mut().expect("one").extend(more.as_object().cloned().unwrap_or_default());
        call("spawn_assistant", arguments)
    };
    let latest = json!({ "process_id": "{{spawn_assistant.process_id}}", "answer": "blue" });
    let read = |name: &str| call("read_file", json!({ "path": name }));
    vec![
        ("leaf", json!([{ "text": "the result of a leaf" }])),
        (
            "reads",
            json!([
                { "text": "I look.", "tool_calls": [
                    read("a.txt"), call("list_files", json!({})), read("nowhere.txt"),
                    call("search_files", json!({ "pattern": "needle" })), read("b.txt"), call("poll_assistant", json!({})),
                ] },
                { "reasoning": "hm", "text": "read", "tool_calls": [call("no_such_tool", json!({ "a": 1 }))] },
                { "text": "done" },
            ]),
        ),
        (
            "asks",
            json!([
                { "tool_calls": [call("ask_parent", json!({ "question": "which colour?" }))] },
                { "text": "It is {{ask_parent.answer}}." },
            ]),
        ),
        (
            "replies",
            json!([
                { "tool_calls": [spawn("asks", json!({}))] },
                { "tool_calls": [call("wait_assistant", json!({ "wait_ms": 20_000 }))] },
                { "tool_calls": [call("reply_assistant", latest), spawn("leaf", json!({ "run_mode": "sync" }))] },
                { "tool_calls": [call("wait_assistant", json!({ "mode": "all", "wait_ms": 20_000 }))] },
                { "text": "all have answered" },
            ]),
        ),
        (
            "boss",
            json!([
                { "tool_calls": [spawn("leaf", json!({})), spawn("reads", json!({})), spawn("replies", json!({}))] },
                { "text": "I leave it to them" },
                { "text": "one is back" }, { "text": "two are back" }, { "text": "all are back" },
            ]),
        ),
        (
            "fails",
            json!([{ "text": "on", "tool_calls": [read("a.txt")] }, { "error": { "kind": "rejected", "status": 400 } }]),
        ),
        (
            "again",
            json!([{ "error": { "kind": "overloaded", "status": 529, "retry_after_ms": 1 }, "times": 1, "text": "at last" }]),
        ),
        (
            "scores",
            json!([
                { "text": "eleven" },
                { "tool_calls": [call("final_answer", json!({ "score": 3 })), read("a.txt")] },
            ]),
        ),
        (
            "unfit",
            json!([
                { "tool_calls": [call("final_answer", json!({ "score": 11 }))] },
                { "tool_calls": [call("final_answer", json!({ "score": 12 }))] },
            ]),
        ),
        (
            "loops",
            json!([
                { "tool_calls": [read("a.txt")] }, { "tool_calls": [read("a.txt")] }, { "tool_calls": [read("a.txt")] },
                { "tool_calls": [read("a.txt")] },
            ]),
        ),
        (
            "listens",
            json!([
                { "text": "I look.", "delay_ms": 2_000, "tool_calls": [read("a.txt")] }, { "text": "I have heard it." },
            ]),
        ),
        ("hangs", json!([{ "text": "on", "tool_calls": [read("a.txt")] }, { "hang": true }])),
        ("late", json!([{ "text": "on", "tool_calls": [read("a.txt")] }, { "hang": true }])),
        (
            "allowed",
            json!([
                { "tool_calls": [read("a.txt"), call("list_files", json!({}))] }, { "tool_calls": [read("b.txt")] },
                { "text": "read what I may" },
            ]),
        ),
        (
            "beside",
            json!([
                { "tool_calls": [
                    call("recv_message", json!({
                        "thread_id": "{{id_after.Your thread_id is}}", "unread_only": true, "wait_ms": 400 })),
                    spawn("leaf", json!({ "run_mode": "sync" })), read("a.txt"), read("b.txt"),
                ] },
                { "text": "in any order" },
            ]),
        ),
        (
            "waits",
            json!([
                { "tool_calls": [call("recv_message", json!({
                    "thread_id": "{{id_after.Your thread_id is}}", "unread_only": true, "wait_ms": 60_000 })), read("a.txt")] },
                { "text": "heard" },
            ]),
        ),
    ]
}

fn bed() -> Bed {
    let assistants = all();
    let files: Vec<(String, String)> = assistants.iter().map(|(name, _)| (format!("{name}.md"), file(name))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let mut bed = Bed::new(RUNNER, &files, &script(&assistants));
    bed.limits.spawns_per_tree = 100;
    for (name, text) in [("a.txt", "a needle\n".to_owned()), ("b.txt", "much\n".repeat(5_000))] {
        std::fs::write(bed.project().join(name), text).expect("written");
    }
    bed
}

fn file(name: &str) -> String {
    let more = match name {
        "scores" | "unfit" => {
            "output_format: json\noutput_schema:\n  type: object\n  properties:\n    score: { type: integer, maximum: 10 }\n  \
             required: [score]\n"
        }
        "loops" => "max_turns: 3\n",
        "late" => "timeout_ms: 300\n",
        "allowed" => "askTools: [read_file]\n",
        _ => "",
    };
    assistant(name, TOOLS).replacen("tools:", &format!("{more}tools:"), 1)
}

/// Runs all assistants, with what their clients do meanwhile.
async fn round(client: &Client) {
    let spawn = |name: &'static str| async move { client.spawn(name, &format!("go, {name}")).await };
    let plain = ["boss", "fails", "again", "scores", "unfit", "loops", "reads", "leaf", "replies", "late", "beside"];
    let spawned = futures::future::join_all(plain.map(spawn)).await;
    let talks = async {
        let listens = spawn("listens").await;
        client.asked(&listens).await;
        for word in ["one", "two"] {
            client.call("send_message", json!({ "thread_id": listens["thread_id"], "message": word })).await;
        }
        client.end(&listens).await;
        let more = json!({ "assistant_id": "listens", "query": "go on", "resume_process_id": listens["process_id"] });
        client.end(&client.call("spawn_assistant", more).await).await;
    };
    let answers = async {
        for (name, answers) in [("asks", &["red"][..]), ("allowed", &["yes", "no, not that"]), ("allowed", &["always"])]
        {
            let spawned = spawn(name).await;
            for answer in answers {
                let question = question(client, &spawned).await;
                let reply = json!({ "process_id": spawned["process_id"], "message_id": question, "answer": answer });
                client.call("reply_assistant", reply).await;
            }
            client.end(&spawned).await;
        }
        let given = json!({ "assistant_id": "leaf", "query": "go", "context": "for </context> me", "inputs": ["a.txt", "b.txt"] });
        client.end(&client.call("spawn_assistant", given).await).await;
    };
    let stops = async {
        for name in ["hangs", "waits"] {
            let spawned = spawn(name).await;
            client.asked(&spawned).await;
            if name == "waits" {
                client.until(&spawned, "waiting").await;
            }
            client.call("cancel_assistant", json!({ "process_id": spawned["process_id"] })).await;
            client.end(&spawned).await;
        }
    };
    let ends = async {
        for one in &spawned {
            client.end(one).await;
        }
    };
    tokio::join!(talks, answers, stops, ends);
}

/// The question of a process that waits for an answer.
async fn question(client: &Client, spawned: &Value) -> Value {
    let process = json!({ "process_id": spawned["process_id"] });
    loop {
        client.until(spawned, "waiting").await;
        let pending = client.call("get_pending_questions", process.clone()).await;
        if let Some(one) = pending["questions"].get(0) {
            return one["message_id"].clone();
        }
    }
}

/// Whether calls that were made beside each other were answered in another order.
fn is_out_of_order(recording: &Recording) -> bool {
    let asked = recording.steps.iter().filter_map(|step| match step {
        Step::ToolAsked { call_id, .. } => Some(call_id),
        _ => None,
    });
    let answered = recording.steps.iter().filter_map(|step| match step {
        Step::ToolAnswered { call_id, .. } => Some(call_id),
        _ => None,
    });
    !asked.eq(answered)
}

/// All processes of a store, oldest first, with where each is in its life.
fn processes(bed: &Bed) -> Vec<(ProcessId, String)> {
    let db = rusqlite::Connection::open(bed.state().join("assistant-host.db")).expect("the store");
    let mut look = db
        .prepare("SELECT process_id, assistant_id || ' ' || status FROM assistant_processes ORDER BY seq")
        .expect("SQL");
    let rows = look.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?))).expect("rows");
    rows.map(|row| row.expect("a row")).map(|(id, told)| (id.parse().expect("an id"), told)).collect()
}

async fn play(recording: &Recording, runner: &RunnerCommand) -> Report {
    let how = How { wait: conformance::bed::SOON, ..How::default() };
    replay(recording, runner, how).await.expect("it is played")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_recorded_runs_are_the_same_again() {
    let bed = bed();
    let client = bed.open().await;
    for _ in 0..ROUNDS {
        round(&client).await;
    }
    // Beside a living host first.
    let first = processes(&bed).first().expect("one").0;
    assert!(play(&Recording::read(&bed.state(), first).expect("a recording"), &bed.runner).await.identical());
    client.host.close().await;
    let all = processes(&bed);
    assert!(all.len() > 100, "{} processes", all.len());
    let beside = all.iter().filter(|(_, told)| told.starts_with("beside"));
    let mut beside = beside.map(|(id, _)| Recording::read(&bed.state(), *id).expect("a recording"));
    assert!(beside.any(|recording| is_out_of_order(&recording)), "no call was answered before an earlier one");
    let played = futures::stream::iter(&all).map(|(id, told)| {
        let (bed, runner) = (&bed, bed.runner.clone());
        async move {
            let recording = Recording::read(&bed.state(), *id).unwrap_or_else(|error| panic!("{told}: {error}"));
            let file = bed.dir.path().join(format!("{id}.json"));
            recording.write_file(&file).expect("written");
            let read = Recording::read_file(&file).expect("read");
            let reports = [play(&recording, &runner).await, play(&read, &runner).await];
            for report in &reports {
                assert!(report.identical() && report.complete, "{id} {told}: {report}\n{:#?}", recording.steps);
            }
            assert_eq!(reports[0], reports[1], "{told}");
            reports[0].clone()
        }
    });
    let reports: Vec<Report> = played.buffer_unordered(AT_ONCE).collect().await;
    let count = |of: fn(&Report) -> usize| reports.iter().map(of).sum::<usize>();
    let (runs, tools) = (count(|report| report.runs), count(|report| report.tool_calls));
    assert!(runs > reports.len(), "some were run again: {runs} runs");
    assert!(tools > reports.len(), "{tools} tool calls");
}

/// A bed whose runner plays a transcript.
fn fake(name: &str) -> Bed {
    let steps = script(&[("x", json!([{ "text": "said" }]))]);
    let mut bed = Bed::new(FAKE_RUNNER, &[("x.md", &assistant("x", TOOLS))], &steps);
    bed.runner.args = vec![format!("{}/transcripts/{name}.jsonl", env!("CARGO_MANIFEST_DIR")).into()];
    bed.limits.shutdown_ms = 500;
    bed
}

#[tokio::test(flavor = "multi_thread")]
async fn other_runners_are_played_too() {
    for (name, messages) in [
        ("asks-context", &[][..]),
        ("repeats-call", &[]),
        ("adapter-in-time", &["one"]),
        ("adapter-takes", &["one", "two", "three"]),
        ("wrong-result", &[]),
        ("mischief", &[]),
        ("fails", &[]),
        ("cancels-everything", &[]),
        ("two-model-calls", &[]),
        ("calls-before-run", &[]),
        ("calls-after-run", &[]),
        ("foreign-thread", &[]),
    ] {
        let bed = fake(name);
        let client = bed.open().await;
        let spawned = client.spawn("x", "go").await;
        for message in messages {
            client.call("send_message", json!({ "thread_id": spawned["thread_id"], "message": message })).await;
        }
        client.end(&spawned).await;
        client.host.close().await;
        let recording = Recording::read(&bed.state(), id(&spawned)).expect("a recording");
        let report = play(&recording, &bed.runner).await;
        assert!(report.identical(), "{name}: {report}\n{:#?}", recording.steps);
    }
}
