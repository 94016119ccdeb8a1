//! What a client is told of a run while it goes on: `notifications/message`.

use serde_json::{Value, json};

use super::{Client, Shop, Told};

/// A run with everything that is told: it thinks, calls a tool that it does not have, and answers.
fn shop() -> Shop {
    Shop::new(json!([
        { "reasoning": "let me see", "text": "I look.",
          "tool_calls": [{ "tool_name": "look", "arguments": { "path": "a.rs" } }] },
        { "text": "It is fine." },
    ]))
}

/// All that was told of the runs until now, and nothing else: level, and the data without what is new each time.
fn told(client: &mut Client, run: &str) -> Vec<(String, Value)> {
    let mut lines = Vec::new();
    while let Ok(one) = client.told.try_recv() {
        let Told::Log { level, logger, mut data } = one else { continue };
        assert_eq!(logger, "subagent.review_changes");
        assert_eq!(data.as_object_mut().expect("an object").remove("run_id"), Some(json!(run)));
        let text = data.to_string().replace(run, "RUN");
        lines.push((level, serde_json::from_str(&text).expect("JSON")));
    }
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_9_events_of_a_run_are_told_with_level_logger_and_data() {
    let shop = shop();
    let mut client = shop.client().await;
    set_level(&client, "debug").await;
    let (_, run) = client.must(json!({ "prompt": "go" })).await;
    let lines = told(&mut client, &run);
    let of = |kind: &str| lines.iter().filter(|(_, data)| data["type"] == kind).cloned().collect::<Vec<_>>();
    let saved = |position: u32, role: &str| {
        let parent = position.checked_sub(1).map(|before| format!("RUN/{before}"));
        let data = json!({ "type": "message_saved", "messageId": format!("RUN/{position}"), "role": role, "parentId": parent });
        ("info".to_owned(), data)
    };
    assert_eq!(of("message_saved"), [saved(0, "user"), saved(1, "assistant"), saved(2, "tool"), saved(3, "assistant")]);
    let response = |level: &str, key: &str, text: &str| (level.to_owned(), json!({ "type": "response", key: text }));
    assert_eq!(
        of("response"),
        [
            response("debug", "reasoning", "let me see"),
            response("info", "text", "I look."),
            response("info", "text", "It is fine."),
        ]
    );
    let [(level, call)] = of("tool_call").try_into().expect("one call");
    assert_eq!(
        (level.as_str(), &call["tool"], &call["arguments"]),
        ("info", &json!("look"), &json!({ "path": "a.rs" }))
    );
    let results = of("tool_result");
    let (level, result) = results.iter().find(|(_, data)| data["callId"] == call["callId"]).expect("its result");
    assert_eq!((level.as_str(), &result["tool"], &result["isError"]), ("warning", &json!("look"), &json!(true)));
    // A call is told when it is saved, its result after it.
    let place =
        |kind: &str| lines.iter().position(|(_, data)| data["type"] == kind && data["callId"] == call["callId"]);
    assert!(place("tool_call") < place("tool_result"), "{lines:?}");
    client.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_9_levels_are_honoured() {
    let check = async |level: Option<&str>, levels: &[&str]| {
        let shop = shop();
        let mut client = shop.client().await;
        if let Some(level) = level {
            set_level(&client, level).await;
        }
        let (_, run) = client.must(json!({ "prompt": "go" })).await;
        let mut found: Vec<String> = told(&mut client, &run).into_iter().map(|(level, _)| level).collect();
        found.sort();
        found.dedup();
        assert_eq!(found, levels, "set to {level:?}");
        client.end().await;
    };
    check(None, &["info", "warning"]).await;
    check(Some("debug"), &["debug", "info", "warning"]).await;
    check(Some("notice"), &["warning"]).await;
    check(Some("error"), &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_9_failures_are_errors_and_retries_are_warnings() {
    let failure = json!({ "kind": "overloaded", "status": 529, "message": "busy", "retry_after_ms": 1 });
    let shop = Shop::new(json!([{ "error": failure, "times": 1, "text": "after all" }]));
    let mut client = shop.client().await;
    let (said, run) = client.must(json!({ "prompt": "go" })).await;
    let lines = told(&mut client, &run);
    let retry = lines.iter().find(|(level, _)| level == "warning").expect("a warning");
    assert!(said == "after all" && retry.1["error"].as_str().expect("words").contains("busy"), "{lines:?}");
    client.end().await;
    let shop = Shop::new(json!([{ "error": { "kind": "bad_key", "status": 401, "message": "no key" } }]));
    let mut client = shop.client().await;
    client.refused(json!({ "prompt": "go" })).await;
    let failed = client
        .hears(|told| match told {
            Told::Log { level, data, .. } if level == "error" => Some(data),
            Told::Log { .. } | Told::Progress(_) => None,
        })
        .await;
    assert!(failed["type"] == "response" && failed["error"].as_str().expect("words").contains("no key"), "{failed}");
    client.end().await;
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

async fn set_level(client: &Client, level: &str) {
    let level = serde_json::from_value(json!(level)).expect("a level");
    #[expect(deprecated, reason = "the specification asks for it")]
    client.service.set_level(rmcp::model::SetLevelRequestParams::new(level)).await.expect("set");
}
