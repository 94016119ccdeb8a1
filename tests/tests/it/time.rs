//! Time and turns: what a limit of theirs ends, and what an assistant may still hand in then.

use std::sync::Arc;
use std::time::Duration;

use assistant_host::app::AppTool;
use assistant_host::awake::ByHand;
use assistant_host::host::Ending;
use assistant_host::tools::Hints;
use conformance::bed::{Bed, Client, SOON, assistant, script};
use futures::FutureExt;
use serde_json::{Value, json};

use crate::RUNNER;

/// A bed with the assistant `x`, which plays `steps`, and `hands_in` once it is told that the limit `limit` is near.
fn bed(tools: &str, steps: Value, limit: &str, hands_in: Value) -> Bed {
    let mut all = script(&[("x", hands_in), ("x", steps)]);
    all["assistants"][0]["when"]["last_user"] = json!(format!("limit {limit}:"));
    Bed::new(RUNNER, &[("x.md", &assistant("x", tools))], &all)
}

/// The data of the events of one kind, oldest first.
async fn events(client: &Client, spawned: &Value, kind: &str) -> Vec<Value> {
    let asked = json!({ "process_id": spawned["process_id"], "kinds": [kind] });
    let read = client.call("read_log", asked).await;
    read["events"].as_array().into_iter().flatten().map(|event| event["data"].clone()).collect()
}

fn lists() -> Value {
    json!({ "text": "more", "tool_calls": [{ "tool_name": "list_files", "arguments": {} }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_turn_hands_in_what_there_is() {
    let steps = Value::Array(vec![lists(); 9]);
    let mut bed = bed("list_files", steps, "turns", json!([{ "text": "all I have: {{last_user}}" }]));
    bed.limits.turns = 3;
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    let ended = client.end(&spawned).await;
    assert_eq!((&ended["status"], &ended["usage"]["model_calls"]), (&json!("finished"), &json!(3)), "{ended}");
    let mail = client.mail(&spawned).await;
    assert!(mail[0].starts_with("all I have: ") && mail[0].contains("limit turns: 3 model calls"), "{mail:?}");
    let calls: Vec<Value> = events(&client, &spawned, "model_call").await;
    let told: Vec<&Value> = calls.iter().map(|call| &call["hand_in"]).collect();
    assert_eq!(told, [&Value::Null, &Value::Null, &json!("turns")]);
    // It is in the record, once.
    let said = client.call("read_log", json!({ "process_id": spawned["process_id"], "transcript": true })).await;
    assert_eq!(said.to_string().matches("This is your last turn").count(), 2, "told once, and said once: {said}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_refused_after_the_last_turn() {
    let steps = Value::Array(vec![lists(); 9]);
    let mut bed = bed("list_files", steps, "turns", json!([lists(), lists(), lists()]));
    bed.limits.turns = 2;
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    let ended = client.end(&spawned).await;
    assert_eq!((&ended["reason"], &ended["usage"]["model_calls"]), (&json!("budget_exceeded"), &json!(2)), "{ended}");
    let results: Vec<Value> = events(&client, &spawned, "tool_result").await;
    let errors: Vec<&Value> = results.iter().map(|result| &result["is_error"]).collect();
    assert_eq!(errors, [&json!(false), &json!(true)]);
    let said = client.call("read_log", json!({ "process_id": spawned["process_id"], "transcript": true })).await;
    assert!(said.to_string().contains("limit_turns"), "{said}");
    assert!(client.mail(&spawned).await[0].contains("Until then it had:\nmore"));
    client.host.close().await;
}

const HOUR: Duration = Duration::from_secs(3_600);

/// A bed whose time is moved by hand, with the assistant `x`, and `marker`, which is soon done by the real time.
fn by_hand(tools: &str, steps: Value) -> (Bed, ByHand) {
    let hand = ByHand::default();
    let files = [("x.md", assistant("x", tools)), ("marker.md", assistant("marker", ""))];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let marker = json!([{ "text": "done", "delay_ms": 20 }]);
    let mut bed = Bed::new(RUNNER, &files, &script(&[("x", steps), ("marker", marker)]));
    bed.awake = hand.clock();
    // A model that hangs is no stall here.
    bed.limits.stall_ms = 100_000_000;
    (bed, hand)
}

/// Lets real time pass: as much as another process needs for its whole life.
async fn pass(client: &Client) {
    let marker = client.spawn("marker", "go").await;
    assert_eq!(client.end(&marker).await["status"], "finished");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wall_time_counts_while_the_machine_is_awake() {
    let (mut bed, hand) = by_hand("", json!([{ "hang": true }]));
    bed.limits.wall_ms = 3_600_000;
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    client.asked(&spawned).await;
    hand.sleep(HOUR * 24);
    hand.advance(HOUR - Duration::from_millis(1));
    pass(&client).await;
    assert_eq!(client.poll(&spawned).await["status"], "running", "a millisecond is left");
    hand.advance(Duration::from_millis(1));
    let ended = client.end(&spawned).await;
    assert_eq!((&ended["status"], &ended["reason"]), (&json!("failed"), &json!("timed_out")), "{ended}");
    assert!(ended["error"].as_str().is_some_and(|text| text.contains("limit wall_ms: 3600000 ms")), "{ended}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_get_the_time_back_that_the_machine_slept() {
    let asks = json!([
        { "tool_calls": [{ "tool_name": "ask_parent", "arguments": { "question": "well?" } }] },
        { "text": "{{ask_parent.answer}}" },
    ]);
    let (bed, hand) = by_hand("ask_parent", asks);
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    client.until(&spawned, "waiting").await;
    let left = async || {
        let pending = client.call("get_pending_questions", json!({})).await;
        let time = |name: &str| pending["questions"][0][name].as_i64().expect("a time");
        time("answer_by_at") - time("asked_at")
    };
    assert_eq!(left().await, 86_400_000);
    hand.sleep(HOUR * 30);
    assert_eq!(left().await, 86_400_000 + 30 * 3_600_000);
    assert_eq!(left().await, 86_400_000 + 30 * 3_600_000, "once");
    client.call("reply_assistant", json!({ "process_id": spawned["process_id"], "answer": "yes" })).await;
    assert_eq!(client.end(&spawned).await["status"], "finished");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_grace_of_a_left_session_counts_while_the_machine_is_awake() {
    let (mut bed, hand) = by_hand("", json!([{ "hang": true }]));
    bed.limits.session_grace_ms = 600_000;
    let client = bed.open().await;
    let other = Client::of(&client.host).await;
    let spawned = client.spawn("x", "go").await;
    client.asked(&spawned).await;
    client.host.end_session(client.session, Ending::AfterGrace).await.expect("left");
    hand.advance(Duration::from_millis(599_999));
    pass(&other).await;
    let process = spawned["process_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    assert!(
        !client.host.process(process).await.expect("read").expect("there").status.is_end(),
        "a millisecond is left"
    );
    hand.advance(Duration::from_millis(1));
    let ended = async {
        let mut after = 0;
        loop {
            let row = client.host.process(process).await.expect("read").expect("there");
            if row.status.is_end() {
                return row;
            }
            let news = client.host.events(process, after, 100).await.expect("events");
            after = news.last().map_or(after, |event| event.seq);
        }
    };
    let ended = tokio::time::timeout(SOON, ended).await.expect("it ends");
    assert_eq!(ended.cause.map(|cause| cause.name()), Some("session_ended"));
    client.host.close().await;
}

/// Waits for mail that never comes.
fn waits_for_mail() -> Value {
    let arguments = json!({ "thread_id": "{{id_after.thread_id}}", "unread_only": true, "wait_ms": 100_000_000 });
    json!({ "text": "so far", "tool_calls": [{ "tool_name": "recv_message", "arguments": arguments }] })
}

/// A bed with an hour of time, moved by hand, whose assistant `x` waits for mail, and `hands_in` when that is over.
fn waiting(hands_in: Value) -> (Bed, ByHand) {
    let hand = ByHand::default();
    let mut bed = bed("recv_message", json!([waits_for_mail()]), "wall_ms", hands_in);
    bed.awake = hand.clock();
    bed.limits.wall_ms = 3_600_000;
    (bed, hand)
}

#[tokio::test(flavor = "multi_thread")]
async fn near_its_wall_an_assistant_hands_in_what_it_has() {
    let (bed, hand) = waiting(json!([{ "text": "all I have: {{last_user}}, {{recv_message.code}}" }]));
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    client.until(&spawned, "waiting").await;
    hand.advance(HOUR - Duration::from_millis(60_001));
    client.until(&spawned, "waiting").await;
    assert_eq!(events(&client, &spawned, "tool_result").await.len(), 0, "a millisecond is left");
    hand.advance(Duration::from_millis(1));
    let ended = client.end(&spawned).await;
    assert_eq!(ended["status"], "finished", "{ended}");
    let mail = client.mail(&spawned).await;
    assert!(mail[0].contains("limit wall_ms: 3600000 ms") && mail[0].ends_with(", limit_wall_ms"), "{mail:?}");
    let calls: Vec<Value> = events(&client, &spawned, "model_call").await;
    assert_eq!(calls.iter().map(|call| call["hand_in"].clone()).collect::<Vec<_>>(), [json!(null), json!("wall_ms")]);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_instead_of_a_last_answer_end_a_run_with_what_it_had() {
    let (bed, hand) = waiting(json!([waits_for_mail(), waits_for_mail(), waits_for_mail()]));
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    client.until(&spawned, "waiting").await;
    hand.advance(HOUR - Duration::from_secs(60));
    let ended = client.end(&spawned).await;
    assert_eq!((&ended["status"], &ended["reason"]), (&json!("failed"), &json!("timed_out")), "{ended}");
    assert_eq!(ended["usage"]["model_calls"], 2, "one last turn: {ended}");
    assert!(client.mail(&spawned).await[0].ends_with("Until then it had:\nso far"));
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_its_children_at_its_wall_ends_with_what_it_had() {
    let spawns = json!({ "assistant_id": "child", "query": "help" });
    let steps = json!([
        { "tool_calls": [{ "tool_name": "spawn_assistant", "arguments": spawns }] },
        { "text": "my own part" },
    ]);
    let hand = ByHand::default();
    let files = [("x.md", assistant("x", "spawn_assistant")), ("child.md", assistant("child", ""))];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let mut bed = Bed::new(RUNNER, &files, &script(&[("x", steps), ("child", json!([{ "hang": true }]))]));
    bed.awake = hand.clock();
    bed.limits.wall_ms = 3_600_000;
    // Only the wall is to end them.
    bed.limits.stall_ms = 100_000_000;
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    client.until(&spawned, "waiting").await;
    hand.advance(HOUR - Duration::from_secs(30));
    let now = client.poll(&spawned).await;
    assert_eq!(now["status"], "waiting", "an unsettled process is left as it is: {now}");
    hand.advance(Duration::from_secs(30));
    let ended = client.end(&spawned).await;
    assert_eq!((&ended["status"], &ended["reason"]), (&json!("failed"), &json!("timed_out")), "{ended}");
    let mail = client.mail(&spawned).await;
    assert!(mail[0].ends_with("Until then it had:\nmy own part"), "{mail:?}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_takes_too_long_is_given_up_and_its_caller_goes_on() {
    let steps = json!([
        { "tool_calls": [{ "tool_name": "app__wait", "arguments": {} }] },
        { "text": "{{app__wait.code}}: {{app__wait.message}}" },
    ]);
    let mut bed = Bed::new(RUNNER, &[("x.md", &assistant("x", "app__wait"))], &script(&[("x", steps)]));
    bed.limits.tool_call_ms = 200;
    bed.app_tools.push(AppTool {
        name: "app__wait".to_owned(),
        title: "Wait".to_owned(),
        description: "Waits for ever.".to_owned(),
        input_schema: json!({ "type": "object" }),
        hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
        for_clients: false,
        needs_approval: false,
        run: Arc::new(|_| std::future::pending().boxed()),
    });
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    assert_eq!(client.end(&spawned).await["status"], "finished");
    let told = "limit_tool_call_ms: limit tool_call_ms: the tool did not answer within 200 ms";
    assert_eq!(client.mail(&spawned).await, [told]);
    client.host.close().await;
}
