//! Results that have to fit a schema: handed in by `final_answer` or as text, checked by the host whatever the runner says,
//! sent back once, and given to clients as data.

use conformance::bed::{Bed, Client, assistant, script};
use rmcp::model::CallToolRequestParams;
use serde_json::{Value, json};

use crate::{FAKE_RUNNER, RUNNER};

/// An assistant whose result is a score of at most ten.
const SCORES: &str = "---
name: scores
description: Gives a score.
tools: [spawn_assistant, recv_message, final_answer]
output_format: json
output_schema:
  type: object
  properties:
    score: { type: integer, maximum: 10 }
    notes: { type: array, items: { type: string } }
  required: [score]
---
You are scores.
";

fn answer(arguments: Value) -> Value {
    json!({ "tool_calls": [{ "tool_name": "final_answer", "arguments": arguments }] })
}

fn bed(steps: Value) -> Bed {
    Bed::new(RUNNER, &[("scores.md", SCORES)], &script(&[("scores", steps)]))
}

async fn run(client: &Client, more: Value) -> Value {
    let mut asked = json!({ "assistant_id": "scores", "query": "go", "run_mode": "sync" });
    for (name, value) in more.as_object().expect("an object") {
        asked[name] = value.clone();
    }
    client.call("spawn_assistant", asked).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_fits_is_told_as_data_everywhere() {
    let bed = bed(json!([{ "text": "I look.", "tool_calls": [
        { "tool_name": "final_answer", "arguments": { "score": 7, "notes": ["short"] } },
    ] }]));
    let client = bed.open().await;
    let spawned = client.spawn("scores", "go").await;
    assert_eq!(spawned["unavailable_tools"], json!([]));
    client.end(&spawned).await;
    let (data, text) = (json!({ "score": 7, "notes": ["short"] }), r#"{"score":7,"notes":["short"]}"#);
    let process = &spawned["process_id"];
    assert_eq!(client.poll(&spawned).await["structured"], data);
    let waited = client.call("wait_assistant", json!({ "process_ids": [process] })).await;
    assert_eq!((&waited["events"][0]["structured"], &waited["events"][0]["content"]), (&data, &json!(text)));
    assert_eq!(client.call("list_process", json!({})).await["items"][0]["structured"], data);
    let read = client.call("recv_message", json!({ "thread_id": spawned["thread_id"] })).await;
    assert_eq!((&read["structured"], &read["messages"][0]["content"]), (&data, &json!(text)));
    // A client of MCP gets it as structured content, complete, and the same as text.
    let session = client.host.open_session("local", "main").await.expect("a session");
    let door = client.host.connect_session(session).await.expect("a client");
    let asked = json!({ "assistant_id": "scores", "query": "go", "run_mode": "sync" });
    let call = CallToolRequestParams::new("spawn_assistant").with_arguments(asked.as_object().cloned().expect("one"));
    let told = door.call_tool(call).await.expect("an answer");
    let structured = told.structured_content.expect("structured content");
    assert_eq!((&structured["result"]["structured"], &structured["status"]), (&data, &json!("finished")));
    let mirrored = told.content[0].as_text().map(|text| text.text.clone()).expect("a text");
    assert_eq!(serde_json::from_str::<Value>(&mirrored).expect("JSON"), structured);
    let listed = door.list_all_tools().await.expect("tools");
    assert!(listed.iter().all(|tool| tool.name != "final_answer"), "it is for assistants");
    drop(door);
    client.host.close().await;
}

/// How a run with these steps ends: status, reason, result as data, what is kept, rounds that were sent back.
async fn check(steps: Value, repairs: u32, status: &str, reason: &str, data: Value, kept: &str) {
    let shown = steps.to_string();
    let mut bed = bed(steps);
    bed.limits.output_repairs = repairs;
    let client = bed.open().await;
    let ended = run(&client, json!({})).await;
    let result = &ended["result"];
    let got = (ended["status"].as_str(), result["reason"].as_str().unwrap_or_default(), result["structured"].clone());
    assert_eq!(got, (Some(status), reason, data), "{shown}: {ended}");
    assert_eq!(result["content"].as_str(), Some(kept), "{shown}: {ended}");
    if status == "failed" {
        let error = result["error"].as_str().expect("an error");
        assert!(error.starts_with("the result does not fit the output schema:\n- "), "{shown}: {error}");
    }
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_sent_back_once() {
    let (good, bad) = (json!({ "score": 3 }), json!({ "score": 11 }));
    let (good_text, bad_text) = (r#"{"score":3}"#, r#"{"score":11}"#);
    let says = |text: &str| json!({ "text": text });
    let fits = |steps: Value| check(steps, 1, "finished", "", good.clone(), good_text);
    let fails = |steps: Value, repairs: u32, kept: &'static str| {
        check(steps, repairs, "failed", "output_invalid", Value::Null, kept)
    };
    fits(json!([answer(good.clone())])).await;
    fits(json!([answer(bad.clone()), answer(good.clone())])).await;
    fits(json!([says(good_text)])).await;
    fits(json!([says("Here:\n```json\n{\"score\": 3}\n```")])).await;
    fits(json!([says("I am done."), answer(good.clone())])).await;
    fits(json!([says("I am done."), says(good_text)])).await;
    fits(json!([answer(bad.clone()), says(good_text)])).await;
    // What was accepted stands, whatever is said beside it.
    let both = json!([{ "tool_calls": [
        { "tool_name": "final_answer", "arguments": good }, { "tool_name": "final_answer", "arguments": bad },
    ] }]);
    fits(both).await;
    fails(json!([answer(bad.clone()), answer(bad.clone()), answer(good.clone())]), 1, bad_text).await;
    fails(json!([says("I am done."), says("Really.")]), 1, "Really.").await;
    fails(json!([says("I am done."), answer(bad.clone())]), 1, bad_text).await;
    fails(json!([answer(bad.clone()), says("Really.")]), 1, "Really.").await;
    fails(json!([answer(bad.clone()), answer(good.clone())]), 0, bad_text).await;
    fails(json!([says("{\"score\": 3, \"score\": 4}"), answer(good.clone())]), 0, "{\"score\": 3, \"score\": 4}").await;
    check(json!([answer(bad.clone()), answer(bad.clone()), answer(good.clone())]), 2, "finished", "", good, good_text)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_is_told_what_is_wrong_and_where() {
    let bed = bed(json!([
        { "text": "I am done." },
        { "text": "{{system}} | {{last_user}}", "tool_calls": [{ "tool_name": "final_answer", "arguments": {} }] },
        { "text": "{{final_answer.code}}: {{final_answer.message}}" },
    ]));
    let client = bed.open().await;
    let spawned = client.spawn("scores", "go").await;
    assert_eq!(client.end(&spawned).await["reason"], "output_invalid");
    let arguments = json!({ "process_id": spawned["process_id"], "transcript": true });
    let log = client.call("read_log", arguments).await.to_string();
    for told in [
        "Your result has to fit the schema of the tool final_answer.",
        "Your work is not finished: the result does not fit the output schema:",
        "it is no JSON: expected value at line 1 column 1",
        "at the top: \\\\\\\"score\\\\\\\" is a required property",
    ] {
        assert!(log.contains(told), "`{told}` is not in {log}");
    }
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_of_the_call_wins_and_has_to_be_one() {
    let bed = bed(json!([answer(json!({ "answer": ["a", "b"] }))]));
    let client = bed.open().await;
    let list = json!({ "type": "array", "items": { "type": "string" }, "maxItems": 2 });
    let ended = run(&client, json!({ "output_schema": list })).await;
    assert_eq!(ended["result"]["structured"], json!(["a", "b"]), "{ended}");
    assert_eq!(ended["result"]["content"], "[\"a\",\"b\"]");
    for (schema, why) in [
        (json!({ "type": "text" }), "`output_schema` is no JSON schema: at /type: "),
        (json!({ "$ref": "http://127.0.0.1:9/x.json" }), "`output_schema` refers to `http://127.0.0.1:9/x.json`"),
        (json!({ "$ref": "file:///etc/hostname" }), "`output_schema` refers to `file:///etc/hostname`"),
        (json!({ "enum": ["x".repeat(70_000)] }), "`output_schema` has 70013 bytes"),
    ] {
        let asked = json!({ "assistant_id": "scores", "query": "go", "output_schema": schema });
        let refused = client.try_call("spawn_assistant", asked).await.expect_err("no schema");
        assert_eq!(refused["code"], "bad_argument");
        assert!(refused["message"].as_str().is_some_and(|text| text.starts_with(why)), "{refused}");
    }
    assert_eq!(client.call("list_process", json!({})).await["total_items"], 1);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_whose_schema_is_none_is_told_and_not_started() {
    let broken = "---\nname: broken\ndescription: It is.\noutput_schema:\n  type: text\n---\nYou are broken.\n";
    let files = [("broken.md", broken)];
    let bed = Bed::new(RUNNER, &files, &script(&[("broken", json!([answer(json!({ "answer": 1 }))]))]));
    let client = bed.open().await;
    let asked = json!({ "assistant_id": "broken", "query": "go" });
    let refused = client.try_call("spawn_assistant", asked.clone()).await.expect_err("refused");
    let message = refused["message"].as_str().expect("a message");
    let (begin, end) = ("the `output_schema` of `broken` (", "broken.md) is no JSON schema: at /type: ");
    assert!(message.starts_with(begin) && message.contains(end), "{message}");
    let listed = client.call("list_assistant", json!({})).await.to_string();
    assert!(listed.contains("its output schema is no JSON schema: at /type: "), "{listed}");
    let mut other = asked;
    other["output_schema"] = json!({ "type": "integer" });
    other["run_mode"] = json!("sync");
    assert_eq!(client.call("spawn_assistant", other).await["result"]["structured"], 1);
    client.host.close().await;
}

/// A runner that answers `run` with each of these, one after the other.
fn stranger(bed: &mut Bed, answers: &[Value]) {
    let hello = json!({ "protocol_version": 1, "runner": { "name": "stranger" }, "max_frame_bytes": 1_000_000 });
    let mut steps = vec![json!({ "wait": "initialize" }), json!({ "answer": "initialize", "result": hello })];
    for answer in answers {
        steps.extend([json!({ "wait": "run" }), json!({ "answer": "run", "result": answer })]);
    }
    steps.push(json!({ "wait_eof": true }));
    let file = bed.dir.path().join("stranger.jsonl");
    let lines: Vec<String> = steps.iter().map(Value::to_string).collect();
    std::fs::write(&file, lines.join("\n")).expect("written");
    bed.runner.args = vec![file.into()];
    bed.limits.shutdown_ms = 500;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runner_of_a_stranger_is_not_believed() {
    let gives = |reason: &str, data: Value| json!({ "stop_reason": reason, "content": "done", "structured": data });
    let cases = [
        (vec![gives("finished", json!({ "score": 3 }))], "finished", json!({ "score": 3 })),
        (
            vec![gives("final_answer", json!({ "score": "x" })), gives("finished", json!({ "score": 4 }))],
            "finished",
            json!({ "score": 4 }),
        ),
        (
            vec![gives("final_answer", json!({ "score": 11 })), gives("final_answer", json!(null))],
            "failed",
            Value::Null,
        ),
    ];
    for (answers, status, data) in cases {
        let mut bed =
            Bed::new(FAKE_RUNNER, &[("scores.md", SCORES)], &script(&[("scores", json!([{ "text": "hi" }]))]));
        stranger(&mut bed, &answers);
        let client = bed.open().await;
        let ended = run(&client, json!({})).await;
        assert_eq!((&ended["status"], &ended["result"]["structured"]), (&json!(status), &data), "{ended}");
        client.host.close().await;
    }
    // Without a schema its data is kept, if it is not too large.
    for (chars, kept) in [(10, true), (2_000, false)] {
        let files = [("free.md", assistant("free", "recv_message"))];
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let mut bed = Bed::new(FAKE_RUNNER, &files, &script(&[("free", json!([{ "text": "hi" }]))]));
        bed.limits.result_bytes = 1_000;
        stranger(&mut bed, &[gives("finished", json!("x".repeat(chars)))]);
        let client = bed.open().await;
        let spawned = client.spawn("free", "go").await;
        assert_eq!(client.end(&spawned).await["structured"].is_string(), kept);
        assert_eq!(client.mail(&spawned).await, ["done"]);
        client.host.close().await;
    }
}

/// A text of an assistant whose child is at work is no result yet.
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_its_child_has_not_answered() {
    let steps = json!([
        { "tool_calls": [{ "tool_name": "spawn_assistant", "arguments": { "assistant_id": "child", "query": "help" } }] },
        { "text": "I wait." },
        answer(json!({ "score": 5 })),
    ]);
    let child = json!([{ "text": "helped", "delay_ms": 3_000 }]);
    let files = [("child.md", assistant("child", "recv_message")), ("scores.md", SCORES.to_owned())];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let mut bed = Bed::new(RUNNER, &files, &script(&[("scores", steps), ("child", child)]));
    bed.limits.output_repairs = 0;
    let client = bed.open().await;
    assert_eq!(run(&client, json!({})).await["result"]["structured"], json!({ "score": 5 }));
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_process_has_the_schema_of_the_one_before() {
    let bed = bed(json!([{ "text": "no" }, { "text": "no" }, answer(json!({ "answer": true }))]));
    let client = bed.open().await;
    let first = run(&client, json!({ "output_schema": { "type": "boolean" } })).await;
    assert_eq!(first["result"]["reason"], "output_invalid", "{first}");
    let resume = json!({ "resume_process_id": first["process_id"], "query": "once more", "run_mode": "sync" });
    let second = client.call("spawn_assistant", resume).await;
    assert_eq!(second["result"]["structured"], true, "{second}");
    client.host.close().await;
}

/// In its last turn an assistant has this one tool.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_turn_is_for_the_result() {
    let looks = json!({ "tool_calls": [{ "tool_name": "recv_message", "arguments": { "thread_id": "{{id_after.thread_id}}" } }] });
    for (last, status, reason) in [
        (answer(json!({ "score": 1 })), "finished", Value::Null),
        (answer(json!({ "score": 11 })), "failed", json!("output_invalid")),
        (looks.clone(), "failed", json!("budget_exceeded")),
    ] {
        let mut bed = bed(json!([looks, last]));
        bed.limits.turns = 2;
        let client = bed.open().await;
        let ended = run(&client, json!({})).await;
        assert_eq!((&ended["status"], &ended["result"]["reason"]), (&json!(status), &reason), "{ended}");
        client.host.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_long_is_read_in_pieces() {
    let notes: Vec<String> = (0..100).map(|n| format!("{n} {}", "x".repeat(500))).collect();
    let data = json!({ "score": 1, "notes": notes });
    let bed = bed(json!([answer(data.clone())]));
    let client = bed.open().await;
    let ended = run(&client, json!({})).await;
    assert_eq!((&ended["status"], ended["result"].get("structured")), (&json!("finished"), None));
    assert_eq!(ended["result"]["more"], true, "{ended}");
    let (mut text, mut cursor) = (String::new(), Value::Null);
    loop {
        let read = client.call("recv_message", json!({ "thread_id": ended["thread_id"], "cursor": cursor })).await;
        assert!(read.get("structured").is_none(), "it is cut");
        text.extend(read["messages"].as_array().into_iter().flatten().filter_map(|one| one["content"].as_str()));
        cursor = read["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), data);
    client.host.close().await;
    let mut bed = self::bed(json!([answer(data)]));
    (bed.limits.result_bytes, bed.limits.output_repairs) = (10_000, 0);
    let client = bed.open().await;
    let ended = run(&client, json!({})).await;
    let error = ended["result"]["error"].as_str().expect("an error");
    assert!(error.contains("bytes, the most is 10000: hand in less"), "{error}");
    client.host.close().await;
}

/// What was accepted is not lost with its runner, and a call that is made again is answered as before.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_dies_loses_no_result() {
    let mut bed = Bed::new(crate::PUPPET, &[("scores.md", SCORES)], &script(&[("scores", json!([{ "text": "hi" }]))]));
    let puppets = conformance::puppets::Puppets::new(bed.dir.path());
    bed.runner.args = puppets.args();
    let client = bed.open().await;
    let spawned = client.spawn("scores", "go").await;
    let mut puppet = puppets.next().await;
    assert_eq!(puppet.run["output_schema"]["required"], json!(["score"]));
    let tools: Vec<&Value> = puppet.run["tools"].as_array().expect("tools").iter().map(|tool| &tool["name"]).collect();
    assert!(tools.contains(&&json!("final_answer")), "{tools:?}");
    let thread = puppet.thread.clone();
    let mut call = |id: &str, arguments: Value| {
        let params = json!({ "thread_id": thread, "call_id": id, "tool_name": "final_answer", "arguments": arguments });
        puppet.ask("on_tool_call", params)
    };
    let wrong = call("a", json!({ "score": 11 })).result().await;
    assert_eq!((&wrong["is_error"], wrong.get("end_run")), (&json!(true), None), "{wrong}");
    assert_eq!(call("a", json!({ "score": 12 })).result().await, wrong, "it is sent back once, not twice");
    let right = call("b", json!({ "score": 5 })).result().await;
    assert_eq!((&right["end_run"], &right["structured_content"]), (&json!(true), &json!({ "score": 5 })), "{right}");
    // Another one that does not fit changes nothing any more.
    let late = call("c", json!({ "score": "x" })).result().await;
    assert_eq!((&late["is_error"], &late["end_run"]), (&json!(true), &json!(true)), "{late}");
    puppet.dies();
    assert_eq!(client.end(&spawned).await["reason"], "runner_exited");
    assert!(client.mail(&spawned).await[0].ends_with("Until then it had:\n{\"score\":5}"));
    client.host.close().await;
}
