//! Assistants whose runners are programs of strangers: the examples of the protocol, in Python and in Node, do real work on a
//! real host; and how a runner is named, by whom, and what is said where there is none.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use assistant_host::launcher::RunnerCommand;
use conformance::bed::{Bed, Client, SOON, assistant, script};
use serde_json::{Value, json};

use crate::{HOST, RUNNER};

mod named;

/// Programs that run a script, by the name of the example that they run.
const EXAMPLES: [(&str, &[&str], &str); 2] = [
    // What `sys.executable` says: a wrapper of that name may want a home, which a runner has not.
    ("runner.py", &["python3", "-c", "import sys; print(sys.executable)"], "python3"),
    ("runner.mjs", &["node", "-p", "process.execPath"], "node"),
];

fn example(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocol/examples").join(file)
}

/// The examples that can be run here, by name; what is skipped is printed.
#[expect(clippy::print_stderr, reason = "who runs the tests is told what was left out")]
pub(crate) fn examples() -> Vec<(&'static str, RunnerCommand)> {
    let mut found = Vec::new();
    for (file, asks, program) in EXAMPLES {
        let asked = Command::new(asks[0]).args(&asks[1..]).stderr(Stdio::null()).output();
        match asked.ok().filter(|told| told.status.success()) {
            Some(told) => {
                let program = PathBuf::from(String::from_utf8_lossy(&told.stdout).trim());
                found.push((file, RunnerCommand { program, args: vec![example(file).into()] }));
            }
            None => eprintln!("skipped: {file}, because {program} is not here"),
        }
    }
    found
}

/// A bed on which `x` and `y` are run by this runner, and everything else by ours.
fn bed(runner: &RunnerCommand, tools: &str, steps: &[(&str, Value)]) -> Bed {
    bed_of(runner, tools, &script(steps))
}

fn bed_of(runner: &RunnerCommand, tools: &str, script: &Value) -> Bed {
    let with = |name: &str, tools: &str| assistant(name, tools).replace("\ntools:", "\nrunner: theirs\ntools:");
    let (x, y) = (with("x", tools), with("y", ""));
    let mut bed = Bed::new(RUNNER, &[("x.md", &x), ("y.md", &y), ("ours.md", &assistant("ours", ""))], script);
    bed.runners.insert("theirs".to_owned(), runner.clone().into());
    bed
}

fn tool(name: &str, arguments: Value) -> Value {
    json!({ "tool_name": name, "arguments": arguments })
}

/// The text of what a process told at its end.
async fn told(client: &Client, spawned: &Value) -> String {
    client.mail(spawned).await.pop().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn they_answer() {
    for (name, runner) in examples() {
        let bed = bed(&runner, "", &[("x", json!([{ "text": "{{task}} \u{2028} \u{1f600} done" }]))]);
        let client = bed.open().await;
        let spawned = client.spawn("x", "say \u{2029}\u{1f9ea} \"this\"").await;
        let seen = client.end(&spawned).await;
        assert_eq!((&seen["status"], &seen["runner"]), (&json!("finished"), &json!("theirs")), "{name}: {seen}");
        assert_eq!(told(&client, &spawned).await, "say \u{2029}\u{1f9ea} \"this\" \u{2028} \u{1f600} done", "{name}");
        client.host.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn they_call_tools_beside_each_other_and_spawn() {
    for (name, runner) in examples() {
        let steps = json!([
            { "tool_calls": [
                tool("read_file", json!({ "path": "a.txt" })),
                tool("read_file", json!({ "path": "b.txt" })),
                tool("read_file", json!({ "path": "nothing.txt" })),
                tool("spawn_assistant", json!({ "assistant_id": "y", "query": "in", "run_mode": "sync" })),
                tool("spawn_assistant", json!({ "assistant_id": "ours", "query": "in", "run_mode": "sync" })),
                tool("no_such_tool", json!({})),
            ] },
            { "text": "{{result}}" },
        ]);
        let bed = bed(
            &runner,
            "read_file, spawn_assistant",
            &[("x", steps), ("y", json!([{ "text": "of theirs" }])), ("ours", json!([{ "text": "of ours" }]))],
        );
        for (file, text) in [("a.txt", "AAA"), ("b.txt", "BBB")] {
            std::fs::write(bed.project().join(file), text).expect("a file");
        }
        let client = bed.open().await;
        let spawned = client.spawn("x", "go").await;
        let seen = client.end(&spawned).await;
        assert_eq!(seen["status"], "finished", "{name}: {seen}");
        let asked = json!({ "process_id": spawned["process_id"], "transcript": true, "limit": 100 });
        let log = client.call("read_log", asked).await.to_string();
        for part in ["AAA", "BBB", "of theirs", "of ours", "nothing.txt", "no_such_tool"] {
            assert!(log.contains(part), "{name}, {part}: {log}");
        }
        let listed = client.call("list_process", json!({})).await;
        let whose: Vec<_> = listed["items"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| (&one["assistant_id"], &one["runner"]))
            .collect();
        for pair in [("x", json!("theirs")), ("y", json!("theirs")), ("ours", Value::Null)] {
            assert!(whose.contains(&(&json!(pair.0), &pair.1)), "{name}: {whose:?}");
        }
        client.host.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn they_ask_are_told_and_hear_messages() {
    for (name, runner) in examples() {
        let steps = json!([
            { "tool_calls": [tool("ask_parent", json!({ "question": "which?" }))] },
            { "text": "{{ask_parent.answer}}; {{last_user}}" },
        ]);
        let bed = bed(&runner, "ask_parent", &[("x", steps)]);
        let client = bed.open().await;
        let spawned = client.spawn("x", "go").await;
        client.until(&spawned, "waiting").await;
        let asked = client.call("get_pending_questions", json!({})).await;
        let question = &asked["questions"][0];
        client.call("send_message", json!({ "thread_id": spawned["thread_id"], "message": "by the way" })).await;
        let reply = json!({
            "process_id": spawned["process_id"], "message_id": question["message_id"], "answer": "the blue one",
        });
        client.call("reply_assistant", reply).await;
        let seen = client.end(&spawned).await;
        assert_eq!(seen["status"], "finished", "{name}: {seen}");
        let told = told(&client, &spawned).await;
        assert!(told.contains("the blue one") && told.contains("by the way"), "{name}: {told}");
        client.host.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn they_are_cancelled_and_gone_on_with() {
    for (name, runner) in examples() {
        let goes_on = json!({
            "when": { "system": "You are x.", "last_user": "second" }, "steps": [{ "text": "after {{task}}" }],
        });
        let hangs = json!({ "when": { "system": "You are x." }, "steps": [{ "hang": true }] });
        let bed = bed_of(&runner, "", &json!({ "assistants": [goes_on, hangs] }));
        let client = bed.open().await;
        let spawned = client.spawn("x", "first").await;
        client.asked(&spawned).await;
        client.call("cancel_assistant", json!({ "process_id": spawned["process_id"] })).await;
        let seen = client.end(&spawned).await;
        assert_eq!(seen["status"], "cancelled", "{name}: {seen}");
        let again = json!({ "resume_process_id": spawned["process_id"], "query": "second" });
        let resumed = client.call("spawn_assistant", again).await;
        let seen = client.end(&resumed).await;
        assert_eq!((&seen["status"], &seen["runner"]), (&json!("finished"), &json!("theirs")), "{name}: {seen}");
        assert_eq!(told(&client, &resumed).await, "after first", "{name}");
        client.host.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn their_results_fit_a_schema() {
    for (name, runner) in examples() {
        let steps = json!([
            { "tool_calls": [tool("final_answer", json!({ "count": "many" }))] },
            { "tool_calls": [tool("final_answer", json!({ "count": 7 }))] },
        ]);
        let bed = bed(&runner, "", &[("x", steps)]);
        let client = bed.open().await;
        let schema =
            json!({ "type": "object", "properties": { "count": { "type": "integer" } }, "required": ["count"] });
        let asked = json!({ "assistant_id": "x", "query": "count", "output_schema": schema });
        let spawned = client.call("spawn_assistant", asked).await;
        let seen = client.end(&spawned).await;
        assert_eq!(
            (&seen["status"], &seen["structured"]),
            (&json!("finished"), &json!({ "count": 7 })),
            "{name}: {seen}"
        );
        client.host.close().await;
    }
}
