//! Servers that misbehave: each hurts its own calls only.

use std::time::Duration;

use assistant_host::limits::Limits;
use serde_json::{Value, json};

use super::{Served, calls, definition, server};

/// What an assistant with two servers is told of the last of these calls of the bad one `s`, while a good one `t` goes on.
async fn check(mode: &str, tools: &[(&str, Value)], more: &str, want: &str) {
    let servers = server(&[mode], more);
    let good = server(&["honest"], "").replace("{s:", " t:").replace("}}", "}");
    let servers = format!("{},{good}}}", servers.strip_suffix('}').expect("a map"));
    let mut steps = tools.to_vec();
    steps.push(("t__echo", json!({ "text": "fine" })));
    let limits = Limits { server_start_ms: 20_000, ..Limits::default() };
    let served = Served::new(&[definition("a", &servers)], &[("a", calls(&steps))], limits).await;
    let (last, told) = served.told("a").await;
    assert_eq!(last, "fine", "{mode}: {told}");
    assert!(told.contains(want), "{mode}: no `{want}` in {told}");
}

#[tokio::test]
async fn one_that_lies_is_told_so() {
    let text = || json!({ "text": "a" });
    check("liar", &[("s__no_shape", text())], "", "no answer of this protocol").await;
    check("liar", &[("s__text_id", text())], "", "as a text").await;
    check("liar", &[("s__strange", text())], "", "hologram").await;
    check(
        "liar",
        &[("s__loop", text()), ("s__union", text()), ("s__text_schema", json!({ "text": "anything" }))],
        "",
        "anything",
    )
    .await;
    // The answer to nobody's question is nobody's.
    check("liar", &[("s__wrong_id_", text())], ", timeoutMs: 500", "did not answer within 500 ms").await;
}

#[tokio::test]
async fn one_that_floods_is_bounded() {
    check("flood", &[("s__notes", json!({}))], "", "a million").await;
    check(
        "flood",
        &[("s__line", json!({})), ("s__fine", json!({ "text": "goes on" }))],
        "",
        "limit server_message_bytes",
    )
    .await;
    check("flood", &[("s__line", json!({})), ("s__fine", json!({ "text": "goes on" }))], "", "goes on").await;
    check("flood", &[("s__endless", json!({})), ("s__fine", json!({ "text": "is back" }))], "", "is back").await;
    check("flood", &[("s__asks", json!({})), ("s__fine", json!({ "text": "is back" }))], "", "is back").await;
}

#[tokio::test]
async fn one_that_hangs_is_given_up() {
    let limits = Limits { server_start_ms: 500, ..Limits::default() };
    let steps = json!([{ "text": "{{system}}" }]);
    let served = Served::new(&[definition("a", &server(&["hang"], ""))], &[("a", steps)], limits).await;
    let told = tokio::time::timeout(Duration::from_secs(90), served.told("a")).await.expect("it is given up").1;
    assert!(told.contains("limit server_start_ms: it did not answer within 500 ms"), "{told}");
    assert!(served.servers().is_empty());
    // One with a time of its own is not told of the limit of the host.
    let assistants = [definition("a", &server(&["hang"], ", startTimeoutMs: 400"))];
    let served = Served::new(&assistants, &[("a", json!([{ "text": "{{system}}" }]))], Limits::default()).await;
    let told = tokio::time::timeout(Duration::from_secs(90), served.told("a")).await.expect("it is given up").1;
    let want = "the time that its definition gives its start: it did not answer within 400 ms";
    assert!(told.contains(want) && !told.contains("server_start_ms"), "{told}");
}

#[tokio::test]
async fn one_that_answers_nothing_any_more_is_replaced() {
    let mut tools = vec![("s__stuck", json!({}))];
    // Each is given up after half a second, until the server is another one.
    tools.extend((0..40).map(|_| ("s__fine", json!({ "text": "is back" }))));
    check("flood", &tools, ", timeoutMs: 500", "is back").await;
}

#[tokio::test]
async fn as_many_run_as_may() {
    let command = json!(crate::SERVER);
    let two = format!("{{s: {{command: {command}, args: [honest, s]}}, t: {{command: {command}, args: [honest, t]}}}}");
    let one = format!("{{u: {{command: {command}, args: [honest, u]}}}}");
    let limits = Limits { servers_per_host: 1, ..Limits::default() };
    let steps = [("a", json!([{ "text": "{{system}}" }])), ("b", calls(&[("u__echo", json!({ "text": "b" }))]))];
    let served = Served::new(&[definition("a", &two), definition("b", &one)], &steps, limits).await;
    let spawned = served.client.spawn("a", "go").await;
    served.client.end(&spawned).await;
    let told = json!(super::events(served.host(), &spawned, super::Kind::Server).await).to_string();
    assert!(told.contains("limit servers_per_host: 1 servers run"), "{told}");
    // One that nobody uses makes room: its servers are used until its runner has gone.
    let gone = async { while !served.client.poll(&spawned).await["exit_code"].is_number() {} };
    tokio::time::timeout(super::SOON, gone).await.expect("its runner exits");
    assert_eq!(served.run("b").await, "b");
    super::until("one runs", || served.servers().len() == 1).await;
}
