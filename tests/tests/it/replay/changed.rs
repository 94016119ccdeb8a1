//! Runners that were changed: what is not the same is named, with its place.

use std::time::Duration;

use assistant_host::launcher::RunnerCommand;
use assistant_host::replay::{How, Recording, Step, What, replay};
use conformance::bed::{Bed, assistant, script};
use serde_json::{Value, json};

use super::{call, id};
use crate::{FAKE_RUNNER, RUNNER};

/// The beginning of every transcript: the runner is asked to run.
fn beginning() -> Vec<Value> {
    let told =
        json!({ "protocol_version": 1, "runner": { "name": "changed", "version": "2" }, "max_frame_bytes": 1_000_000 });
    vec![json!({ "wait": "initialize" }), json!({ "answer": "initialize", "result": told }), json!({ "wait": "run" })]
}

/// A recording of a run with two model calls and two tool calls beside each other.
async fn recorded() -> (Bed, Recording) {
    let read = |name: &str| call("read_file", json!({ "path": name }));
    let steps = json!([{ "text": "I look.", "tool_calls": [read("a.txt"), read("b.txt")] }, { "text": "done" }]);
    let bed = Bed::new(RUNNER, &[("x.md", &assistant("x", "read_file"))], &script(&[("x", steps)]));
    for name in ["a.txt", "b.txt"] {
        std::fs::write(bed.project().join(name), format!("text of {name}")).expect("written");
    }
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    client.end(&spawned).await;
    client.host.close().await;
    let recording = Recording::read(&bed.state(), id(&spawned)).expect("a recording");
    (bed, recording)
}

/// The params of the model calls as the runner that was recorded sent them.
fn asked(recording: &Recording) -> Vec<Value> {
    let system = json!({ "role": "system", "content": recording.run.assistant.system_prompt });
    let mut held = vec![system];
    let mut calls = Vec::new();
    for step in &recording.steps {
        match step {
            Step::ModelAsked(asked) => {
                held.extend(asked.add.iter().map(|message| json!(message)));
                let params = json!({ "thread_id": "$thread_id", "messages": held, "tools": recording.run.tools });
                calls.push(params);
            }
            Step::ModelAnswered { answer, .. } => held.push(json!(answer)["result"]["message"].clone()),
            _ => {}
        }
    }
    calls
}

fn asks(id: u64, params: &Value) -> Value {
    json!({ "call": "on_llm_request", "id": id, "params": params })
}

fn calls(id: u64, call_id: &str, path: &str) -> Value {
    let arguments = json!({ "path": path });
    let params =
        json!({ "thread_id": "$thread_id", "call_id": call_id, "tool_name": "read_file", "arguments": arguments });
    json!({ "call": "on_tool_call", "id": id, "params": params })
}

fn has(id: u64) -> Value {
    json!({ "result_of": id })
}

fn ends(text: &str) -> Value {
    json!({ "answer": "run", "result": { "stop_reason": "finished", "content": [{ "type": "text", "text": text }] } })
}

fn eof() -> Value {
    json!({ "wait_eof": true })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_difference_is_named() {
    let (bed, recording) = recorded().await;
    let asked = asked(&recording);
    let answered = recording.steps.iter().find_map(|step| match step {
        Step::ToolAnswered { call_id, .. } => Some(format!("the call {call_id} of read_file")),
        _ => None,
    });
    let first = answered.expect("a tool call");
    let dir = bed.dir.path().to_owned();
    let check = async |name: &str, steps: Vec<Value>, what: Option<What>, place: &str, path: &str, told: &str| {
        let transcript = dir.join(format!("{name}.jsonl"));
        let lines: Vec<String> = beginning().iter().chain(&steps).map(Value::to_string).collect();
        std::fs::write(&transcript, lines.join("\n")).expect("written");
        let runner = RunnerCommand { program: FAKE_RUNNER.into(), args: vec![transcript.into()] };
        let how = How { wait: Duration::from_secs(5), ..How::default() };
        let report = replay(&recording, &runner, how).await.expect("it is played");
        let Some(what) = what else { return assert!(report.identical(), "{name}: {report}") };
        let found = report.difference.as_ref().unwrap_or_else(|| panic!("{name} is the same"));
        let got = (found.what, found.place.as_str(), found.path.as_deref().unwrap_or_default());
        assert_eq!(got, (what, place, path), "{name}: {report}");
        assert!(report.to_string().contains(told), "{name}: {report} lacks {told}");
    };
    let changed = |call: usize, pointer: &str, to: Value| {
        let mut params = asked[call].clone();
        *params.pointer_mut(pointer).expect("there") = to;
        params
    };
    let both = || vec![calls(2, "call_0_0", "a.txt"), calls(3, "call_0_1", "b.txt"), has(2), has(3)];
    let whole = |second: &Value, rest: Vec<Value>| {
        let mut steps = vec![asks(1, &asked[0]), has(1)];
        steps.extend(both());
        steps.extend([asks(4, second), has(4)]);
        steps.extend(rest);
        steps
    };
    check("the same", whole(&asked[1], vec![ends("done"), eof()]), None, "", "", "").await;
    let steps = vec![asks(1, &changed(0, "/messages/1/content", json!("stop"))), eof()];
    check(
        "other task",
        steps,
        Some(What::Differs),
        "model call 1",
        "/messages/1/content",
        "recorded  \"go\"\n  now       \"stop\"",
    )
    .await;
    let steps = vec![asks(1, &changed(0, "/tools", json!([]))), eof()];
    check("no tools", steps, Some(What::Differs), "model call 1", "/tools/0", "now       nothing").await;
    let mut hot = asked[0].clone();
    hot["options"] = json!({ "temperature": 1 });
    let steps = vec![asks(1, &hot), eof()];
    check("options", steps, Some(What::Differs), "model call 1", "/options", "recorded  nothing").await;
    let steps = vec![asks(1, &asked[0]), has(1), calls(2, "call_0_0", "c.txt"), eof()];
    let place = "the call call_0_0 of read_file";
    check("other arguments", steps, Some(What::Differs), place, "/arguments/path", "now       \"c.txt\"").await;
    let steps = vec![asks(1, &asked[0]), has(1), calls(2, "call_9", "a.txt"), eof()];
    check("other call", steps, Some(What::TooMany), "the call call_9 of read_file", "", "is recorded and has not come")
        .await;
    let steps = vec![asks(1, &asked[0]), has(1), ends("done"), eof()];
    check("no calls", steps, Some(What::Missing), &first, "", "run 1 was answered instead").await;
    let steps = vec![asks(1, &asked[0]), has(1), calls(2, "call_0_0", "a.txt"), eof()];
    check("one call", steps, Some(What::Missing), "the call call_0_1 of read_file", "", "nothing came for 5000 ms")
        .await;
    let text = "/messages/3/content/0/content/0/text";
    // Which of the two was answered first is not told.
    let whole_text = asked[1].pointer(text).and_then(Value::as_str).expect("a text");
    let cut = changed(1, text, json!(&whole_text[..whole_text.len() - 1]));
    check("cut result", whole(&cut, vec![eof()]), Some(What::Differs), "model call 2", text, "\n  now       \"").await;
    let steps = whole(&asked[1], vec![asks(5, &asked[1]), eof()]);
    check("asks again", steps, Some(What::TooMany), "model call 3", "", "was not recorded").await;
    let steps = whole(&asked[1], vec![ends("other"), eof()]);
    check("other answer", steps, Some(What::Differs), "the answer to run 1", "/content/0/text", "now       \"other\"")
        .await;
    let error = json!({ "answer": "run", "error": { "code": -32603, "message": "no" } });
    let steps = whole(&asked[1], vec![error, eof()]);
    check("an error", steps, Some(What::Differs), "the answer to run 1", "", "now       {\"error\":{\"code\":-32603")
        .await;
    let steps = whole(&asked[1], vec![eof()]);
    check("no answer", steps, Some(What::Missing), "the answer to run 1", "", "did not come").await;
    let steps = vec![asks(1, &asked[0]), has(1), json!({ "stderr": "I give up" }), json!({ "exit": 7 })];
    check("exits", steps, Some(What::Ended), &first, "", "it exited with 7; it said: I give up").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_come_in_the_order_in_which_they_came() {
    let (bed, mut recording) = recorded().await;
    let answers: Vec<usize> =
        (0..recording.steps.len()).filter(|at| matches!(recording.steps[*at], Step::ToolAnswered { .. })).collect();
    recording.steps.swap(answers[0], answers[1]);
    let report = replay(&recording, &bed.runner, How::default()).await.expect("it is played");
    let found = report.difference.unwrap_or_else(|| panic!("the other order is the same"));
    assert_eq!((found.place.as_str(), found.path.as_deref()), ("model call 2", Some("/messages/3/content/0/call_id")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_runner_is_told() {
    let (bed, recording) = recorded().await;
    let nowhere = replay(&recording, &RunnerCommand::new("/nowhere/runner"), How::default()).await;
    assert!(nowhere.expect_err("it does not start").to_string().contains("cannot start /nowhere/runner"));
    let how = How { wait: Duration::from_secs(5), ..How::default() };
    let mute = RunnerCommand { program: "sleep".into(), args: vec!["60".into()] };
    let report = replay(&recording, &mute, how.clone()).await.expect("it is played");
    assert!(report.to_string().starts_with("the answer to initialize did not come"), "{report}");
    let gone = replay(&recording, &RunnerCommand::new("true"), how).await.expect("it is played");
    assert!(
        gone.to_string().contains("the runner ended before the answer to initialize\n  it exited with 0"),
        "{gone}"
    );
    drop(bed);
}
