//! The one tool: what it is, what a call does, what it gives, and what it says where it gives nothing.

use conformance::doors::RawClient;
use serde_json::{Value, json};

use super::{Client, FILE, Shop, Told, text};

#[tokio::test(flavor = "multi_thread")]
async fn row_3_1_exactly_one_tool_named_and_described_by_the_file() {
    let shop = Shop::new(json!([{ "text": "fine" }]));
    for args in [
        &["mcp", "serve", "--config", FILE][..],
        &["mcp", "--config", FILE, "serve"],
        &["mcp", "--config", FILE],
        &["--config", FILE, "mcp"],
    ] {
        let client = shop.client_of(args).await;
        let [tool] = client.tools().await.try_into().expect("exactly one tool");
        assert_eq!(tool.name, "review_changes");
        assert_eq!(tool.description.as_deref(), Some("Review a diff and return prioritized feedback."));
        assert_eq!(tool.output_schema, None, "its result is a text");
        let schema = Value::Object((*tool.input_schema).clone());
        assert_eq!((&schema["type"], &schema["required"]), (&json!("object"), &json!(["prompt"])));
        let types = |name: &str| schema["properties"][name]["type"].clone();
        assert_eq!(
            (types("prompt"), types("inputs"), types("run_id")),
            (json!("string"), json!("array"), json!("string"))
        );
        assert_eq!(schema["properties"]["inputs"]["items"]["type"], "string");
        assert_eq!(client.must(json!({ "prompt": "Hello" })).await.0, "fine");
        client.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_1_a_call_lasts_as_long_as_its_run_and_tells_progress_every_five_seconds() {
    let shop = Shop::new(json!([{ "text": "at last", "delay_ms": 14_000 }]));
    let mut client = shop.client().await;
    let (said, run) = client.must(json!({ "prompt": "think" })).await;
    assert_eq!(said, "at last");
    client.told.close();
    let mut progress = Vec::new();
    while let Some(told) = client.told.recv().await {
        if let Told::Progress(words) = told {
            progress.push(words);
        }
    }
    let works = format!("review_changes (run_id {run}): running, 1 model call, last: asks m");
    // Told when it begins to ask, and again each five seconds without news.
    assert!(progress.iter().filter(|words| **words == works).count() >= 3, "{progress:?}");
    client.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_1_cancel_reaches_the_run() {
    let shop = Shop::new(json!([{ "hang": true }]));
    let mut client = shop.raw();
    let call = |token: u32| json!({ "name": "review_changes", "arguments": { "prompt": "go" }, "_meta": { "progressToken": token } });
    let hung = client.send("tools/call", &call(1)).expect("written");
    conformance::doors::until("it runs", || shop.runs().iter().any(|run| run["status"] == "running").then_some(()));
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": hung } });
    assert!(client.write(format!("{cancel}\n").as_bytes()));
    conformance::doors::until("it ends", || shop.runs().iter().all(|run| run["status"] == "cancelled").then_some(()));
    assert_eq!(shop.runs()[0]["cause"], "requested");
    // The server goes on.
    assert!(client.ask("tools/list", &json!({})).expect("an answer")["result"]["tools"].is_array());
    assert_eq!(client.close(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_1_the_same_call_with_run_id_fetches_a_result_left_behind() {
    let shop = Shop::new(json!([{ "text": "done: {{task}}" }]));
    let first = shop.client().await;
    let second = shop.client().await;
    let (said, run) = first.must(json!({ "prompt": "one" })).await;
    assert_eq!(said, "done: one");
    let again = json!({ "prompt": "one", "run_id": run });
    let check = async |client: &Client| {
        assert_eq!(client.must(again.clone()).await, ("done: one".to_owned(), run.clone()));
        assert_eq!(client.must(json!({ "run_id": run })).await.0, "done: one", "without the prompt too");
    };
    check(&first).await;
    // Another server of the same file, beside the first, and after it.
    check(&second).await;
    first.end().await;
    second.end().await;
    let third = shop.client().await;
    check(&third).await;
    let unknown = "0190a0a0-0000-7000-8000-000000000000";
    let (code, message) = third.refused(json!({ "prompt": "one", "run_id": unknown })).await;
    assert_eq!((code.as_str(), message), ("unknown_run", format!("no run of `review_changes` has the id {unknown}")));
    assert_eq!(third.refused(json!({ "prompt": "one", "run_id": "../0" })).await.0, "bad_argument");
    third.end().await;
    assert_eq!(shop.runs().len(), 1, "nothing was run again");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_1_a_run_that_goes_on_is_waited_for() {
    let shop = Shop::new(json!([{ "text": "slow", "delay_ms": 2_000 }]));
    let mut client = shop.client().await;
    let prompt = rmcp::model::CallToolRequestParams::new("review_changes")
        .with_arguments(json!({ "prompt": "go" }).as_object().cloned().expect("an object"));
    let peer = client.service.peer().clone();
    let call = tokio::spawn(async move { peer.call_tool(prompt).await.expect("a result") });
    let run = client
        .hears(|told| match told {
            Told::Log { data, .. } => data["run_id"].as_str().map(str::to_owned),
            Told::Progress(_) => None,
        })
        .await;
    assert_eq!(client.must(json!({ "prompt": "go", "run_id": run })).await, ("slow".to_owned(), run));
    assert_eq!(text(&call.await.expect("a call")), "slow");
    client.end().await;
    assert_eq!(shop.runs().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_1_many_clients_use_one_file_at_once() {
    let shop = Shop::new(json!([{ "text": "for {{task}}", "delay_ms": 200 }]));
    let clients = futures::future::join_all((0..6).map(|_| shop.client())).await;
    let calls = clients.iter().enumerate().flat_map(|(n, client)| {
        (0..3).map(move |m| async move {
            (format!("for {n}.{m}"), client.must(json!({ "prompt": format!("{n}.{m}") })).await.0)
        })
    });
    for (want, said) in futures::future::join_all(calls).await {
        assert_eq!(said, want);
    }
    futures::future::join_all(clients.into_iter().map(Client::end)).await;
    assert_eq!(shop.runs().len(), 18);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_7_each_call_is_a_fresh_run() {
    // The second message of a conversation would be another one.
    let shop = Shop::new(json!([{ "text": "first words on {{task}}" }, { "text": "second words" }]));
    let client = shop.client().await;
    let (one, first) = client.must(json!({ "prompt": "a" })).await;
    let (two, second) = client.must(json!({ "prompt": "b" })).await;
    assert_eq!((one.as_str(), two.as_str()), ("first words on a", "first words on b"));
    assert_ne!(first, second);
    client.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_7_errors_are_returned_with_the_reason_and_nothing_is_run_again() {
    let check = async |step: Value, limits: &str, code: &str, why: &str| {
        let shop = Shop::new(json!([step]));
        shop.edit("defaults:", &format!("limits: {limits}\ndefaults:"));
        let client = shop.client().await;
        let (told, message) = client.refused(json!({ "prompt": "go" })).await;
        client.end().await;
        let [run] = shop.runs().try_into().expect("one run");
        let id = run["id"].as_str().expect("an id");
        assert_eq!((told.as_str(), run["status"].as_str()), (code, Some("failed")), "{message}");
        assert!(message.starts_with(&format!("the run {id} of `review_changes` failed ({code})")), "{message}");
        assert!(message.contains(why), "{message}");
        run
    };
    let error = |kind: &str, status: u16, message: &str| json!({ "error": { "kind": kind, "status": status, "message": message } });
    check(error("bad_key", 401, "invalid x-api-key"), "{}", "model_failed", "invalid x-api-key").await;
    check(error("rejected", 400, "no such model"), "{}", "model_failed", "no such model").await;
    check(error("overloaded", 529, "try later"), "{ retry_for_ms: 0 }", "model_failed", "try later").await;
    check(json!({ "hang": true }), "{ wall_ms: 400, grace_turn_ms: 0 }", "timed_out", "wall_ms").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_7_bad_arguments_are_errors_that_name_them() {
    let shop = Shop::new(json!([{ "text": "fine" }]));
    let client = shop.client().await;
    for (arguments, want) in [
        (json!({}), "`prompt` is missing or empty"),
        (json!({ "prompt": "" }), "`prompt` is missing or empty"),
        (json!({ "prompt": " \n" }), "`prompt` is missing or empty"),
        (json!({ "prompt": null }), "`prompt` is missing or empty"),
        (json!({ "prompt": 7 }), "`prompt` is 7, and has to be of type string"),
        (json!({ "prompt": "x", "inputs": "a.txt" }), "`inputs` is \"a.txt\", and has to be of type array"),
        (json!({ "prompt": "x", "input": ["a.txt"] }), "there is no argument `input`"),
        (json!({ "prompt": "x".repeat(1024 * 1024 + 1) }), "`prompt` has 1048577 bytes, the most is 1048576"),
    ] {
        let (code, message) = client.refused(arguments).await;
        assert_eq!((code.as_str(), message.as_str()), ("bad_argument", want));
    }
    assert_eq!(client.must(json!({ "prompt": "still served" })).await.0, "fine");
    client.end().await;
    let mut raw: RawClient = shop.raw();
    let other = raw.ask("tools/call", &json!({ "name": "spawn_assistant", "arguments": {} })).expect("an answer");
    assert_eq!(other["error"]["message"], "there is no tool `spawn_assistant`; there are: review_changes");
    assert_eq!(raw.close(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_8_traces_are_kept_told_apart_by_name_and_run() {
    let shop = Shop::new(json!([{ "text": "seen: {{task}}" }]));
    let client = shop.client().await;
    let (_, first) = client.must(json!({ "prompt": "the one" })).await;
    let (_, second) = client.must(json!({ "prompt": "the other" })).await;
    let check = || {
        let runs = shop.runs();
        let told: Vec<_> = runs.iter().map(|run| (&run["id"], &run["label"], &run["query"], &run["result"])).collect();
        let row =
            |id: &str, task: &str| (json!(id), json!("review_changes"), json!(task), json!(format!("seen: {task}")));
        let want = [row(&second, "the other"), row(&first, "the one")];
        assert_eq!(told, want.iter().map(|(id, label, task, result)| (id, label, task, result)).collect::<Vec<_>>());
        let (code, trace, _) = shop.run(&["mcp", "runs", &first, "--config", FILE]);
        assert_eq!(code, Some(0));
        assert!(trace.lines().next().expect("a line").starts_with(&first) && trace.contains("asks m"), "{trace}");
        let (code, trace, _) = shop.run(&["mcp", "runs", &first, "--json", "--config", FILE]);
        let kinds: Vec<Value> =
            trace.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["kind"].clone()).collect();
        assert_eq!(code, Some(0));
        assert!(kinds.contains(&json!("model_call")) && kinds.contains(&json!("model_answer")), "{kinds:?}");
    };
    check();
    client.end().await;
    check();
    assert_eq!(shop.run(&["mcp", "runs", "0190a0a0-0000-7000-8000-000000000000", "--config", FILE]).0, Some(1));
}
