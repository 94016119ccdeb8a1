//! Budgets: what model calls of a tree, of a part of it and of a day may use, and the limits that a spawn sets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use assistant_host::limits::{Limits, Usd};
use assistant_host::model::prices::Price;
use assistant_host::model::{Answer, Ask, Model, ModelError, ModelErrorKind, Progress, ToolChoice};
use assistant_protocol::types::{Content, FinishReason, Message, Part, Role, Usage};
use conformance::bed::{Bed, Client, SOON, assistant, script};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::RUNNER;

/// A model that writes as many tokens with each call, if it may, and calls a tool again and again until it is told not to.
struct Spender {
    tokens: u64,
    told: bool,
    asked: Mutex<Vec<(Option<u32>, ToolChoice)>>,
    numbers: AtomicU64,
}

impl Spender {
    fn new(tokens: u64) -> Arc<Self> {
        Arc::new(Self { tokens, told: true, asked: Mutex::default(), numbers: AtomicU64::new(0) })
    }

    /// How often it was asked, and how the last time.
    fn asked(&self) -> (usize, Option<(Option<u32>, ToolChoice)>) {
        let asked = self.asked.lock().expect("not poisoned");
        (asked.len(), asked.last().copied())
    }
}

impl Model for Spender {
    fn answer<'a>(&'a self, ask: Ask, _: &'a (dyn Fn(Progress) + Sync)) -> BoxFuture<'a, Result<Answer, ModelError>> {
        async move {
            self.asked.lock().expect("not poisoned").push((ask.max_output_tokens, ask.tool_choice));
            let done = ask.tool_choice == ToolChoice::None || ask.tools.is_empty();
            let number = self.numbers.fetch_add(1, Ordering::Relaxed);
            let call = Part::ToolCall {
                call_id: format!("c{number}"),
                tool_name: "list_files".into(),
                arguments: Ok(json!({})),
            };
            let parts = if done { vec![Part::text("all that I have")] } else { vec![Part::text("on it"), call] };
            let most = ask.max_output_tokens.map_or(u64::MAX, u64::from);
            let used = |tokens| Some(tokens).filter(|_| self.told);
            Ok(Answer {
                message: Message { role: Role::Assistant, content: Content::Parts(parts) },
                finish: if done { FinishReason::Stop } else { FinishReason::ToolCalls },
                usage: Usage { input_tokens: used(10), output_tokens: used(self.tokens.min(most)), ..Usage::default() },
                model: "spender".into(),
            })
        }
        .boxed()
    }

    fn provider(&self) -> &str {
        "spender"
    }
}

fn bed(model: Arc<dyn Model>, limits: Limits) -> Bed {
    let assistants = [("x.md", assistant("x", "list_files")), ("plain.md", assistant("plain", "send_message"))];
    let files: Vec<(&str, &str)> = assistants.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let mut bed = Bed::with_model(RUNNER, &files, model);
    bed.limits = limits;
    bed
}

async fn spawn(client: &Client, limits: Value) -> Value {
    client.call("spawn_assistant", json!({ "assistant_id": "x", "query": "go", "limits": limits })).await
}

/// A tree's tokens are never passed: the last call that is affordable hands in what there is.
#[tokio::test(flavor = "multi_thread")]
async fn a_budget_of_tokens_is_kept_and_ends_in_a_result() {
    let model = Spender::new(8_000);
    let bed = bed(model.clone(), Limits { tokens_per_tree: 60_000, ..Limits::default() });
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    assert_eq!(spawned["capacity"]["budget_left"], 60_000, "{spawned}");
    let end = client.end(&spawned).await;
    let used =
        end["usage"]["input_tokens"].as_u64().expect("told") + end["usage"]["output_tokens"].as_u64().expect("told");
    assert_eq!((end["status"].as_str(), used <= 60_000), (Some("finished"), true), "{end}");
    assert!(client.mail(&spawned).await.last().is_some_and(|last| last == "all that I have"));
    let (calls, last) = model.asked();
    assert!((6..=8).contains(&calls), "{calls} calls of 8,000 tokens");
    assert_eq!(last.map(|(_, choice)| choice), Some(ToolChoice::None));
    client.host.close().await;
}

/// What a spawn allows is less than the tree's, and an answer is cut to what is left.
#[tokio::test(flavor = "multi_thread")]
async fn a_spawn_sets_limits_that_are_kept() {
    let model = Spender::new(1_000);
    let bed = bed(model.clone(), Limits::default());
    let client = bed.open().await;
    let spawned = spawn(&client, json!({ "tokens": 3_000, "turns": 40 })).await;
    assert_eq!(spawned["capacity"]["budget_left"], 3_000);
    let end = client.end(&spawned).await;
    assert_eq!(end["status"], "finished", "{end}");
    let (_, last) = model.asked();
    assert!(last.is_some_and(|(most, _)| most.is_some_and(|most| most < 3_000)), "{last:?}");

    let few = spawn(&client, json!({ "tokens": 100 })).await;
    let end = client.end(&few).await;
    assert_eq!((end["status"].as_str(), end["reason"].as_str()), (Some("failed"), Some("budget_exceeded")), "{end}");
    let error = end["error"].as_str().unwrap_or_default();
    assert!(error.contains("limit tokens_per_tree: 100 of 100 tokens are left"), "{error}");

    let turns = spawn(&client, json!({ "turns": 2 })).await;
    let end = client.end(&turns).await;
    assert_eq!((end["status"].as_str(), &end["usage"]["model_calls"]), (Some("finished"), &json!(2)), "{end}");

    for (limits, code) in [
        (json!({ "turns": 0 }), "bad_argument"),
        (json!({ "tokens": -1 }), "bad_argument"),
        (json!({ "cost_usd": 0 }), "bad_argument"),
        (json!({ "hours": 1 }), "bad_argument"),
        (json!({ "cost_usd": 1 }), "limit_cost_per_tree_usd"),
    ] {
        let arguments = json!({ "assistant_id": "x", "query": "go", "limits": limits });
        assert_eq!(client.refused("spawn_assistant", arguments).await, code, "{limits}");
    }
    client.host.close().await;
}

/// The tokens of a day are the host's; who comes too late is refused by name.
#[tokio::test(flavor = "multi_thread")]
async fn a_day_has_its_tokens() {
    let model = Spender::new(8_000);
    let limits = Limits { tokens_per_day: 40_000, tokens_per_tree: 30_000, ..Limits::default() };
    let bed = bed(model, limits);
    let client = bed.open().await;
    let first = client.spawn("x", "go").await;
    assert_eq!(client.end(&first).await["status"], "finished");
    let second = client.spawn("x", "go").await;
    assert!(second["capacity"]["budget_left"].as_u64().is_some_and(|left| left < 30_000), "{second}");
    client.end(&second).await;
    let rest = client.spawn("x", "go").await;
    let end = client.end(&rest).await;
    let error = end["error"].as_str().unwrap_or_default();
    assert!(end["reason"] == "budget_exceeded" && error.contains("limit tokens_per_day"), "{end}");
    client.host.close().await;
    drop(client);

    // A new host knows what the day has used.
    let client = bed.open().await;
    let late = client.spawn("x", "go").await;
    assert!(late["capacity"]["budget_left"].as_u64().is_some_and(|left| left < 10_000), "{late}");
    client.host.close().await;
}

/// Money is limited where prices are known.
#[tokio::test(flavor = "multi_thread")]
async fn a_budget_of_money_is_kept() {
    let model = Spender::new(8_000);
    let price = Price { input: 1.0, output: 3.0, cache_read: None, cache_write: None };
    let mut bed = bed(model, Limits { cost_per_tree_usd: Usd::new(0.1).expect("an amount"), ..Limits::default() });
    bed.price = Some(price);
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    let end = client.end(&spawned).await;
    let cost = end["usage"]["cost_usd"].as_f64().expect("a cost");
    assert!(end["status"] == "finished" && cost <= 0.1 && cost > 0.04, "{end}");
    client.host.close().await;
}

/// A provider that tells no usage does not evade a budget.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_provider_does_not_tell_is_estimated() {
    let model = Arc::new(Spender { told: false, ..Arc::into_inner(Spender::new(0)).expect("its only owner") });
    let bed = bed(model.clone(), Limits { tokens_per_tree: 20_000, turns: 50, ..Limits::default() });
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    let end = client.end(&spawned).await;
    assert_eq!((end["status"].as_str(), &end["usage"]["cost_usd"]), (Some("finished"), &Value::Null), "{end}");
    let (calls, _) = model.asked();
    assert!(calls < 50, "{calls} calls");
    client.host.close().await;
}

/// Never answers until it is told to.
#[derive(Default)]
struct Gate {
    asked: Notify,
}

impl Model for Gate {
    fn answer<'a>(&'a self, _: Ask, _: &'a (dyn Fn(Progress) + Sync)) -> BoxFuture<'a, Result<Answer, ModelError>> {
        async move {
            self.asked.notify_one();
            std::future::pending::<()>().await;
            Err(ModelError {
                kind: ModelErrorKind::Rejected,
                provider: "gate".into(),
                status: None,
                retry_after_ms: None,
                message: "never".into(),
            })
        }
        .boxed()
    }

    fn provider(&self) -> &str {
        "gate"
    }
}

/// A call in flight holds what it may use: others of the day see less. One that is given up counts as used.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_flight_holds_its_reservation() {
    let gate = Arc::new(Gate::default());
    let bed = bed(gate.clone(), Limits::default());
    let client = bed.open().await;
    let left = |spawned: &Value| spawned["capacity"]["budget_left"].as_u64().expect("told");
    let first = spawn(&client, json!({ "tokens": 20_000 })).await;
    assert_eq!(left(&first), 20_000);
    tokio::time::timeout(SOON, gate.asked.notified()).await.expect("asked");
    let db = rusqlite::Connection::open(bed.state().join("assistant-host.db")).expect("opens");
    let sums = || -> (u64, u64) {
        db.query_row(
            "SELECT sum(reserved_tokens), (SELECT coalesce(sum(tokens), 0) FROM spent_days) FROM assistant_processes",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .expect("sums")
    };
    let (reserved, spent) = sums();
    assert!((8_192..20_000).contains(&reserved) && spent == 0, "{reserved} {spent}");
    client.call("cancel_assistant", json!({ "process_id": first["process_id"] })).await;
    client.end(&first).await;
    assert_eq!(sums(), (0, reserved), "what was reserved counts as used");
    client.host.close().await;
}

/// Siblings whose calls hold most of a budget for a moment do not fail each other: each waits for what is given back.
#[tokio::test(flavor = "multi_thread")]
async fn what_calls_in_flight_hold_is_waited_for() {
    let spawn = json!({ "tool_name": "spawn_assistant", "arguments": { "assistant_id": "child", "query": "help" } });
    let wait = json!({ "tool_name": "wait_assistant", "arguments": { "mode": "all", "wait_ms": 60_000 } });
    let parent =
        json!([{ "tool_calls": [spawn, spawn, spawn, spawn, spawn] }, { "tool_calls": [wait] }, { "text": "all" }]);
    let script = script(&[("parent", parent), ("child", json!([{ "text": "done", "delay_ms": 50 }]))]);
    let assistants = [
        ("parent.md", assistant("parent", "spawn_assistant, wait_assistant")),
        ("child.md", assistant("child", "wait_assistant")),
    ];
    let files: Vec<(&str, &str)> = assistants.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let bed = Bed::new(RUNNER, &files, &script);
    let client = bed.open().await;
    let arguments = json!({ "assistant_id": "parent", "query": "go", "limits": { "tokens": 20_000 } });
    let spawned = client.call("spawn_assistant", arguments).await;
    let end = client.end(&spawned).await;
    assert_eq!(end["status"], "finished", "{end}");
    let parent = spawned["process_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let children = client.host.children(parent).await.expect("children");
    assert_eq!(children.len(), 5);
    for child in children {
        assert_eq!((child.status.name(), child.error), ("finished", None));
    }
    client.host.close().await;
}
