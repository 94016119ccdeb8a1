//! Random play against one host: whatever models and clients do, in whatever order, nothing in the store is wrong, and
//! all that is left ends.

use assistant_host::host::{Ending, Host};
use assistant_host::store;
use conformance::bed::Client;
use conformance::gate;
use conformance::oracle;
use conformance::stepped::Turn;
use serde_json::{Value, json};

use super::{Stage, spawns};

/// Steps of one play.
const STEPS: usize = 60;
/// Model calls that wait for the player at once; more are answered first.
const OPEN_TURNS_MAX: usize = 12;

/// Numbers that a seed gives (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((x ^ (x >> 31)) % sides as u64).unwrap_or(0)
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() { None } else { from.get(self.roll(from.len())) }
    }
}

/// What a model answers, from what it has heard of.
fn answers(turn: Turn, dice: &mut Dice, rows: &[Value], number: usize) {
    let me = rows.iter().find(|one| turn.ask.system.as_deref().is_some_and(|system| names(system, &one["thread_id"])));
    let Some(me) = me else { return turn.says("who am I?") };
    let children: Vec<&Value> = rows.iter().filter(|one| one["parent_process_id"] == me["process_id"]).collect();
    let others: Vec<&Value> = rows
        .iter()
        .filter(|one| {
            one["parent_process_id"] == me["parent_process_id"] || one["parent_process_id"] == me["process_id"]
        })
        .collect();
    let mut calls = Vec::new();
    for part in 0..=dice.roll(2) {
        let word = format!("word {number}.{part}");
        let child = dice.pick(&children).map(|one| one["process_id"].clone());
        let thread = dice.pick(&others).map_or(me["thread_id"].clone(), |one| one["thread_id"].clone());
        calls.push(match (dice.roll(13), child) {
            (0, _) => spawns("one", json!({})),
            (1, _) => spawns("two", json!({ "run_mode": "sync" })),
            (2, _) => spawns("two", json!({ "detached": true })),
            (3 | 4, _) => ("send_message", json!({ "thread_id": thread, "message": word })),
            (5, _) => ("recv_message", json!({ "thread_id": thread, "last_n": 1 + dice.roll(3) })),
            (6, _) => ("recv_message", json!({ "thread_id": me["thread_id"], "unread_only": true, "wait_ms": 200 })),
            (7, _) => ("ask_parent", json!({ "question": word, "wait_ms": 300 * dice.roll(2) })),
            (8, Some(child)) => ("reply_assistant", json!({ "process_id": child, "answer": word })),
            (9, Some(child)) => ("wait_assistant", json!({ "process_ids": [child], "wait_ms": 300 })),
            (10, Some(child)) => ("cancel_assistant", json!({ "process_id": child })),
            (11, _) => ("wait_assistant", json!({ "wait_ms": 300 })),
            _ => return turn.says(&word),
        });
    }
    if dice.roll(25) == 0 { turn.fails() } else { turn.calls(&calls) }
}

fn names(text: &str, id: &Value) -> bool {
    id.as_str().is_some_and(|id| text.contains(id))
}

async fn rows(client: &Client) -> Vec<Value> {
    let listed = client.call("list_process", json!({ "page_size": 100 })).await;
    listed["items"].as_array().cloned().unwrap_or_default()
}

/// What a client does, whether it may or not: errors are answers too.
async fn acts(stage: &mut Stage, dice: &mut Dice, rows: &[Value], number: usize) {
    let client = stage.client.clone();
    let Some(one) = dice.pick(rows).cloned() else {
        client.spawn("one", "go").await;
        return;
    };
    let (process, thread, word) = (&one["process_id"], &one["thread_id"], format!("said {number}"));
    let (tool, arguments) = match dice.roll(9) {
        0 => spawns("one", json!({ "detached": dice.roll(4) == 0 })),
        1 => spawns("two", json!({ "idempotency_key": format!("key {}", dice.roll(4)) })),
        2 | 3 => ("send_message", json!({ "thread_id": thread, "message": word })),
        4 => ("recv_message", json!({ "thread_id": thread, "mark_as_read": true })),
        5 => ("reply_assistant", json!({ "process_id": process, "answer": word })),
        6 => ("cancel_assistant", json!({ "process_id": process })),
        7 => ("spawn_assistant", json!({ "resume_process_id": process, "query": word })),
        _ => {
            client.host.end_session(client.session, Ending::Now).await.expect("ended");
            stage.client = Client::of(&client.host).await;
            return;
        }
    };
    if let Err(error) = client.try_call(tool, arguments).await {
        assert_ne!(error["code"], "internal", "{tool}: {error}");
    }
}

async fn play(seed: u64) {
    let mut stage = Stage::real(&["one", "two"], |limits| {
        limits.running_per_session = 3;
        limits.running_per_host = 4;
        limits.answer_wait_ms = 1_000;
        limits.grace_ms = 200;
        limits.turns = 12;
    })
    .await;
    let (mut dice, mut open) = (Dice(seed), Vec::new());
    // Half of the plays are looked at between all jobs, in the others one moment is gone on with.
    let photos = (seed % 2 == 1).then(|| stage.gate.photograph(&stage.bed.state()));
    let killed_at = if photos.is_some() { STEPS } else { dice.roll(STEPS) };
    let mut killed = None;
    for number in 0..STEPS {
        if number == killed_at {
            // A moment between two jobs, as a kill would find it.
            let mut held = stage.gate.hold(dice.roll(5));
            if held.within(300).await {
                killed = Some(gate::copied(&stage.bed.state()).expect("a copy"));
            }
            held.release();
            stage.gate.open();
        }
        let all = rows(&stage.client).await;
        while let Some(turn) = stage.turns.any(if open.is_empty() { 20 } else { 1 }).await {
            open.push(turn);
        }
        if open.len() > OPEN_TURNS_MAX || (!open.is_empty() && dice.roll(3) > 0) {
            answers(open.swap_remove(dice.roll(open.len())), &mut dice, &all, number);
        } else {
            acts(&mut stage, &mut dice, &all, number).await;
        }
    }
    // Now all models end their work, whatever comes.
    drop(open);
    let until = tokio::time::Instant::now() + conformance::bed::SOON;
    while rows(&stage.client).await.iter().any(|one| one["done"] == false) {
        assert!(tokio::time::Instant::now() < until, "something never ends");
        if let Some(turn) = stage.turns.any(50).await {
            turn.says("enough");
        }
        for asked in
            stage.client.call("get_pending_questions", json!({})).await["questions"].as_array().expect("a list")
        {
            let answer =
                json!({ "process_id": asked["process_id"], "message_id": asked["message_id"], "answer": "go on" });
            // It may have been answered, or have ended, in between.
            drop(stage.client.try_call("reply_assistant", answer).await);
        }
    }
    let quiet = oracle::check_quiet(&stage.bed.state().join(store::FILE));
    assert_eq!(quiet, Vec::<String>::new());
    if let Some(photos) = photos {
        assert_eq!(photos.wrong(), Vec::<String>::new(), "as a kill would have found it");
    }
    if let Some(killed) = killed {
        let db = killed.path().join(store::FILE);
        assert_eq!(oracle::check(&db), Vec::<String>::new(), "as a kill found it");
        let mut options = stage.bed.options();
        options.state = killed.path().to_owned();
        Host::open(options).await.expect("the next host").close().await;
        assert_eq!(oracle::check_quiet(&db), Vec::<String>::new(), "after the next start");
    }
    stage.close().await;
}

/// The seed of a play that fails is in what it says; put it into the list to play it again.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_goes_wrong_in_random_plays() {
    let fresh = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time").as_micros();
    let fresh = u64::try_from(fresh).expect("a seed");
    for seed in [1, 2, fresh] {
        let played = tokio::spawn(play(seed)).await;
        assert!(played.is_ok(), "the play of seed {seed}: {:?}", played.err());
    }
}
