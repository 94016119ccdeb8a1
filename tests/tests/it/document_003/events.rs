//! What a client is told of a run while it goes on: `notifications/message`.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use super::{FILE, Shop};

/// A run with everything that is told: it thinks, calls a tool that it does not have, and answers.
fn shop() -> Shop {
    Shop::new(json!([
        { "reasoning": "let me see", "text": "I look.",
          "tool_calls": [{ "tool_name": "look", "arguments": { "path": "a.rs" } }] },
        { "text": "It is fine." },
    ]))
}

/// What one call gives, and all that was told of its run before that, as it stood on the wire: level, and the data without
/// what is new each time. (A client's own handlers run side by side: they know no order.)
fn told(shop: &Shop, level: Option<&str>) -> (Value, Vec<(String, Value)>) {
    let mut command = shop.command(&["mcp", "serve", "--config", FILE]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it runs");
    let client = json!({ "name": "raw", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let call = json!({ "name": "review_changes", "arguments": { "prompt": "go" } });
    let request = |id: u32, method: &str, params: &Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    };
    let mut lines = vec![request(1, "initialize", &hello)];
    lines.push(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
    lines.extend(level.map(|level| request(2, "logging/setLevel", &json!({ "level": level }))));
    let mut stdin = child.stdin.take().expect("stdin");
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout")).lines();
    let mut next = || -> Value { serde_json::from_str(&stdout.next().expect("a line").expect("read")).expect("JSON") };
    for line in lines {
        writeln!(stdin, "{line}").expect("written");
    }
    // Calls are served side by side: the level is set before the one that it is for.
    while level.is_some() && next()["id"] != 2 {}
    writeln!(stdin, "{}", request(3, "tools/call", &call)).expect("written");
    let mut messages = Vec::new();
    let result = loop {
        let message = next();
        match message["method"].as_str() {
            Some("notifications/message") => messages.push(message["params"].clone()),
            Some(_) => {}
            None if message["id"] == 3 => break message["result"].clone(),
            None => {}
        }
    };
    drop(stdin);
    assert!(child.wait().expect("it ends").success());
    let [run] = shop.runs().try_into().expect("one run");
    let run = run["id"].as_str().expect("an id").to_owned();
    let of = |mut message: Value| {
        assert_eq!(message["logger"], "subagent.review_changes");
        let level = message["level"].as_str().expect("a level").to_owned();
        let id = message["data"].as_object_mut().expect("an object").remove("run_id");
        assert_eq!(id, Some(json!(run)));
        let text = message["data"].to_string().replace(&run, "RUN");
        (level, serde_json::from_str(&text).expect("JSON"))
    };
    (result, messages.into_iter().map(of).collect())
}

#[test]
fn row_3_9_events_of_a_run_are_told_with_level_logger_and_data() {
    let (_, lines) = told(&shop(), Some("debug"));
    let call_id = lines.iter().find_map(|(_, data)| data["callId"].as_str()).expect("a call").to_owned();
    let saved = |position: u32, role: &str| {
        let parent = position.checked_sub(1).map(|before| format!("RUN/{before}"));
        let id = format!("RUN/{position}");
        ("info", json!({ "type": "message_saved", "messageId": id, "role": role, "parentId": parent }))
    };
    let mut told: Vec<(&str, Value)> = lines.iter().map(|(level, data)| (level.as_str(), data.clone())).collect();
    // What the host says to a call of a tool that is not there is told twice: as its result, and that it was refused.
    let refused = told.iter().position(|(_, data)| data["error"].is_string()).expect("a refusal");
    let (level, data) = told.remove(refused);
    assert_eq!((level, &data["type"]), ("warning", &json!("tool_result")));
    let result = told.iter_mut().find(|(_, data)| data["isError"] == true).expect("a result");
    let text = result.1.as_object_mut().expect("an object").remove("text").expect("a text");
    assert!(text.as_str().expect("a text").contains("there is no tool `look`"), "{text}");
    let call = json!({ "type": "tool_call", "callId": call_id, "tool": "look", "arguments": { "path": "a.rs" } });
    assert_eq!(
        told,
        [
            saved(0, "user"),
            ("debug", json!({ "type": "response", "reasoning": "let me see" })),
            ("info", json!({ "type": "response", "text": "I look." })),
            saved(1, "assistant"),
            ("info", call),
            ("warning", json!({ "type": "tool_result", "callId": call_id, "tool": "look", "isError": true })),
            saved(2, "tool"),
            ("info", json!({ "type": "response", "text": "It is fine." })),
            saved(3, "assistant"),
        ]
    );
}

#[test]
fn row_3_9_levels_are_honoured() {
    let check = |level: Option<&str>, levels: &[&str]| {
        let mut found: Vec<String> = told(&shop(), level).1.into_iter().map(|(level, _)| level).collect();
        found.sort();
        found.dedup();
        assert_eq!(found, levels, "set to {level:?}");
    };
    check(None, &["info", "warning"]);
    check(Some("debug"), &["debug", "info", "warning"]);
    check(Some("notice"), &["warning"]);
    check(Some("error"), &[]);
}

#[test]
fn row_3_9_failures_are_errors_and_retries_are_warnings() {
    let failure = json!({ "kind": "overloaded", "status": 529, "message": "busy", "retry_after_ms": 1 });
    let (result, lines) = told(&Shop::new(json!([{ "error": failure, "times": 1, "text": "after all" }])), None);
    assert_eq!(result["content"][0]["text"], "after all");
    let retry = lines.iter().find(|(level, _)| level == "warning").expect("a warning");
    assert!(retry.1["error"].as_str().expect("words").contains("busy"), "{lines:?}");
    let failure = json!({ "kind": "bad_key", "status": 401, "message": "no key" });
    let (result, lines) = told(&Shop::new(json!([{ "error": failure }])), None);
    assert_eq!(result["isError"], true);
    let failed = lines.iter().find(|(level, _)| level == "error").expect("an error");
    assert!(
        failed.1["type"] == "response" && failed.1["error"].as_str().expect("words").contains("no key"),
        "{lines:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_9_a_client_that_does_not_read_holds_no_run_up() {
    // 2 × 8 calls of 4,000 characters are more than a pipe holds.
    let call = json!({ "tool_name": "look", "arguments": { "text": "x".repeat(3_500) } });
    let step = json!({ "text": "y".repeat(3_900), "tool_calls": vec![call; 8] });
    let shop = Shop::new(json!([step, step, { "text": "done" }]));
    let mut client = shop.raw();
    let params = json!({ "name": "review_changes", "arguments": { "prompt": "go" } });
    let id = client.send("tools/call", &params).expect("written");
    conformance::doors::until("the run ends", || {
        shop.runs().iter().any(|run| run["status"] == "finished").then_some(())
    });
    assert_eq!(client.answer(id).expect("an answer")["result"]["content"][0]["text"], "done");
    assert_eq!(client.close(), Some(0));
}
