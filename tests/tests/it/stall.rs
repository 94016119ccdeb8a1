//! Runs that do nothing any more end as stalled, whether their runner is stuck or only idle; those that wait or work
//! do not.

use std::sync::Arc;
use std::time::Duration;

use assistant_host::awake::ByHand;
use assistant_host::events::Kind;
use assistant_host::model::{Answer, Ask, Model, ModelError, Progress};
use assistant_protocol::types::{FinishReason, Message, Role, Usage};
use conformance::bed::{Bed, Client, SOON, assistant, script};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

use crate::{FAKE_RUNNER, RUNNER};

/// A bed with the assistant `x`, whose time is moved by hand and may last long.
fn bed(runner: &str, tools: &str, steps: Value) -> (Bed, ByHand) {
    let mut bed = Bed::new(runner, &[("x.md", &assistant("x", tools))], &script(&[("x", steps)]));
    let hand = by_hand(&mut bed);
    (bed, hand)
}

fn by_hand(bed: &mut Bed) -> ByHand {
    let hand = ByHand::default();
    bed.awake = hand.clock();
    bed.limits.wall_ms = 30 * 3_600 * 1_000;
    // The time by hand goes faster than a runner that lives can answer.
    bed.limits.ping_ms = 100_000_000;
    hand
}

/// A bed whose runner plays a transcript.
fn plays(transcript: &str) -> (Bed, ByHand) {
    let (mut bed, hand) = bed(FAKE_RUNNER, "", json!([{ "text": "hi" }]));
    bed.runner.args = vec![format!("{}/transcripts/{transcript}.jsonl", env!("CARGO_MANIFEST_DIR")).into()];
    (bed, hand)
}

/// Moves the time by five seconds again and again until the process has ended. Gives it, and the seconds that passed.
async fn advanced(client: &Client, spawned: &Value, hand: &ByHand) -> (Value, u64) {
    let ends = async {
        let mut seconds = 0;
        loop {
            let now = client.poll(spawned).await;
            if now["done"] == true {
                return (now, seconds);
            }
            hand.advance(Duration::from_secs(5));
            seconds += 5;
        }
    };
    tokio::time::timeout(SOON, ends).await.expect("it ends")
}

/// Checks that a run stalls, what is told, and that it lasts for `seconds` at least. Gives what the log says of pings.
async fn check(bed: Bed, hand: ByHand, seconds: u64, told: &str, had: &str) -> String {
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    client.until(&spawned, "running").await;
    stalls(&client, &spawned, &hand, seconds, told, had).await
}

/// The same of a run that is under way.
async fn stalls(client: &Client, spawned: &Value, hand: &ByHand, seconds: u64, told: &str, had: &str) -> String {
    let (ended, lasted) = advanced(client, spawned, hand).await;
    assert_eq!((&ended["status"], &ended["reason"]), (&json!("failed"), &json!("stalled")), "{ended}");
    assert!(lasted >= seconds, "it was given {lasted} seconds");
    let mail = client.mail(spawned).await;
    assert!(mail[0].contains(told), "{mail:?} lacks `{told}`");
    assert!(mail[0].ends_with(had), "{mail:?} lacks `{had}`");
    let log = client.call("read_log", json!({ "process_id": spawned["process_id"], "kinds": ["link"] })).await;
    client.host.close().await;
    log["events"].to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_does_not_answer_a_ping_is_stuck() {
    let (mut bed, hand) = plays("ignores-cancel");
    bed.limits.shutdown_ms = 100;
    bed.limits.ping_ms = 10_000;
    let log = check(bed, hand, 310, "limit ping_ms: the runner did nothing for 300000 ms", "Resume it to go on").await;
    assert!(log.contains(r#"{"limit":"ping_ms","unanswered":"ping","ms":10000}"#), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_answers_and_does_nothing_is_idle() {
    let (bed, hand) = plays("idle");
    let log = check(bed, hand, 600, "limit stall_ms: nothing happened for 600000 ms", "half a poem").await;
    assert_eq!(log, "[]");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_of_its_own_is_no_stall() {
    let asks = json!([
        { "tool_calls": [{ "tool_name": "ask_parent", "arguments": { "question": "well?" } }] },
        { "text": "{{ask_parent.answer}}" },
    ]);
    let (bed, hand) = bed(RUNNER, "ask_parent", asks);
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    client.until(&spawned, "waiting").await;
    for _ in 0..50 {
        hand.advance(Duration::from_secs(1_500));
        client.poll(&spawned).await;
    }
    client.call("reply_assistant", json!({ "process_id": spawned["process_id"], "answer": "yes" })).await;
    assert_eq!(client.end(&spawned).await["status"], "finished");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_the_next_attempt_is_no_stall() {
    let overloaded = json!({ "kind": "overloaded", "retry_after_ms": 1_000 });
    let (bed, hand) = bed(RUNNER, "", json!([{ "error": overloaded, "times": 1, "text": "at last" }]));
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    let process = spawned["process_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let waits = async {
        let mut after = 0;
        loop {
            let events = client.host.events(process, after, 100).await.expect("events");
            if events.iter().any(|event| event.kind == Kind::ModelRetry) {
                return;
            }
            after = events.last().map_or(after, |event| event.seq);
        }
    };
    tokio::time::timeout(SOON, waits).await.expect("a retry");
    for _ in 0..20 {
        hand.advance(Duration::from_secs(1_500));
        client.poll(&spawned).await;
    }
    assert_eq!(client.end(&spawned).await["status"], "finished");
    client.host.close().await;
}

/// A model that brings a piece of its answer for each permit, tells that it did, and ends after so many.
struct Drips {
    pieces: usize,
    next: Semaphore,
    brought: mpsc::UnboundedSender<()>,
}

impl Model for Drips {
    fn answer<'a>(&'a self, _: Ask, seen: &'a (dyn Fn(Progress) + Sync)) -> BoxFuture<'a, Result<Answer, ModelError>> {
        async {
            for _ in 0..self.pieces {
                self.next.acquire().await.expect("open").forget();
                seen(Progress::Text("drip ".to_owned()));
                self.brought.send(()).expect("the test listens");
            }
            Ok(Answer {
                message: Message::text(Role::Assistant, "drip ".repeat(self.pieces)),
                finish: FinishReason::Stop,
                usage: Usage::default(),
                model: "drips".to_owned(),
            })
        }
        .boxed()
    }

    fn provider(&self) -> &str {
        "drips"
    }
}

/// A bed whose assistant `x` asks a model that brings so many pieces; the model, and where it tells of each.
fn drips(pieces: usize) -> (Bed, ByHand, Arc<Drips>, mpsc::UnboundedReceiver<()>) {
    let (brought, hear) = mpsc::unbounded_channel();
    let model = Arc::new(Drips { pieces, next: Semaphore::new(0), brought });
    let mut bed = Bed::with_model(RUNNER, &[("x.md", &assistant("x", ""))], model.clone());
    let hand = by_hand(&mut bed);
    (bed, hand, model, hear)
}

/// Lets the model bring a piece.
async fn brings(model: &Drips, hear: &mut mpsc::UnboundedReceiver<()>) {
    model.next.add_permits(1);
    tokio::time::timeout(SOON, hear.recv()).await.expect("in time").expect("a piece");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_brings_nothing_stalls_its_run() {
    let (bed, hand, model, mut hear) = drips(2);
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    brings(&model, &mut hear).await;
    stalls(&client, &spawned, &hand, 600, "the model has brought nothing for 600000 ms", "drip ").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_brings_a_piece_now_and_then_is_no_stall() {
    let (bed, hand, model, mut hear) = drips(8);
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    brings(&model, &mut hear).await;
    for _ in 1..8 {
        // Long enough that the runner is pinged, which it answers.
        hand.advance(Duration::from_secs(595));
        client.poll(&spawned).await;
        brings(&model, &mut hear).await;
    }
    let ended = client.end(&spawned).await;
    assert_eq!(ended["status"], "finished", "after more than an hour: {ended}");
    client.host.close().await;
}
