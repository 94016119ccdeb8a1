//! Mail that a call handed over: whatever becomes of the call and its runner, it is neither lost nor doubled.

use conformance::bed::{Bed, Client, assistant, script};
use serde_json::{Value, json};

use crate::FAKE_RUNNER;

/// How often a race is run.
const ROUNDS: usize = 12;

fn bed(transcript: &str) -> Bed {
    let file = format!("{}/transcripts/{transcript}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let steps = json!([{ "text": "first" }, { "text": "second" }]);
    let mut bed =
        Bed::new(FAKE_RUNNER, &[("x.md", &assistant("x", "send_message, recv_message"))], &script(&[("x", steps)]));
    bed.runner.args = vec![file.into()];
    bed.limits.shutdown_ms = 500;
    bed
}

async fn open(bed: &Bed) -> Client {
    let client = bed.open().await;
    let made = std::process::Command::new("mkfifo").arg(bed.state().join("go")).status().expect("mkfifo");
    assert!(made.success());
    client
}

/// Lets a runner go on that reads the FIFO `go`.
async fn go(bed: &Bed) {
    let file = bed.state().join("go");
    tokio::task::spawn_blocking(move || std::fs::write(file, "go")).await.expect("a task").expect("the runner reads");
}

async fn send(client: &Client, spawned: &Value, message: &str) {
    client.call("send_message", json!({ "thread_id": spawned["thread_id"], "message": message })).await;
}

/// What the store says of a process.
fn ask(bed: &Bed, sql: &str, spawned: &Value) -> i64 {
    let db = rusqlite::Connection::open(bed.state().join("assistant-host.db")).expect("the store");
    let process = spawned["process_id"].as_str().expect("an id");
    db.query_row(sql, [process], |row| row.get(0)).expect("a number")
}

/// Plays a transcript whose runner reads a message and then does not use the result; its second model call tells it.
async fn check(transcript: &str) {
    let bed = bed(transcript);
    let client = open(&bed).await;
    for round in 0..ROUNDS {
        let spawned = client.spawn("x", "go").await;
        client.asked(&spawned).await;
        let mark = format!("word {round}.");
        // In turns before and while the runner reads; one that gives up at once asks the model next, and then no more.
        if round % 2 == 0 || transcript == "gives-up-at-once" {
            send(&client, &spawned, &mark).await;
            go(&bed).await;
        } else {
            tokio::join!(go(&bed), send(&client, &spawned, &mark));
        }
        let ended = client.end(&spawned).await;
        assert_eq!(ended["status"], "finished", "{transcript}: {ended}");
        let told = client.mail(&spawned).await.pop().unwrap_or_default();
        assert_eq!(told.matches(&mark).count(), 1, "{transcript}: the model is given it once: {told}");
        let held = "SELECT count(*) FROM conversations c JOIN assistant_processes p USING (process_id)
                    WHERE process_id = ?1 AND position < conversation_length AND message LIKE '%word %'
                      AND c.seq = (SELECT max(seq) FROM conversations WHERE process_id = ?1 AND position = c.position)";
        assert_eq!(ask(&bed, held, &spawned), 1, "{transcript}: the record has it once");
    }
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_call_that_is_given_up_handed_over_comes_once() {
    tokio::join!(check("gives-up-at-once"), check("gives-up-late"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_runner_read_and_died_with_is_what_its_resumption_has() {
    let bed = bed("dies-with-mail");
    let client = open(&bed).await;
    let spawned = client.spawn("x", "go").await;
    client.asked(&spawned).await;
    send(&client, &spawned, "word for you").await;
    go(&bed).await;
    assert_eq!(client.end(&spawned).await["reason"], "runner_exited");
    let asked = json!({ "resume_process_id": spawned["process_id"], "query": "and now?" });
    let resumed = client.call("spawn_assistant", asked).await;
    let queued = "SELECT count(*) FROM assistant_messages WHERE to_process_id = ?1 AND kind = 'message'";
    assert_eq!(ask(&bed, queued, &resumed), 0, "it does not come once more");
    let result = "SELECT count(*) FROM conversations WHERE process_id = ?1 AND message LIKE '%word for you%'";
    assert_eq!(ask(&bed, result, &spawned), 1, "it stands in the result that the resumption goes on with");
    client.call("cancel_assistant", json!({ "process_id": resumed["process_id"] })).await;
    client.end(&resumed).await;
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reading_that_a_runner_gives_up_takes_nothing() {
    let bed = bed("uses-the-mailbox");
    let client = open(&bed).await;
    for round in 0..ROUNDS {
        let spawned = client.spawn("x", "go").await;
        client.asked(&spawned).await;
        send(&client, &spawned, "word").await;
        go(&bed).await;
        let ended = client.end(&spawned).await;
        assert_eq!(ended["status"], "finished", "{ended}");
        // Either the answer came before it was given up, and the runner has it; or the model is given it.
        let told = client.mail(&spawned).await.pop().unwrap_or_default();
        let delivered = "SELECT count(*) FROM assistant_messages WHERE to_process_id = ?1 AND delivered_at IS NOT NULL AND handed_by IS NULL";
        assert_eq!(ask(&bed, delivered, &spawned), 1, "round {round}: {told}");
        let inserted = "SELECT count(*) FROM conversations WHERE process_id = ?1 AND message_id IS NOT NULL";
        assert_eq!(ask(&bed, inserted, &spawned), i64::from(told.contains("word")), "round {round}: {told}");
    }
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_that_are_given_up_are_counted_down() {
    let bed = bed("waits-twice");
    let client = open(&bed).await;
    let spawned = client.spawn("x", "go").await;
    client.asked(&spawned).await;
    go(&bed).await;
    let waits = "SELECT waits FROM assistant_processes WHERE process_id = ?1";
    let both = async {
        let process = spawned["process_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
        let mut after = 0;
        // Each status is an event: the second wait changes none, so its call is waited for.
        while ask(&bed, waits, &spawned) < 2 {
            match tokio::time::timeout(std::time::Duration::from_millis(100), client.host.events(process, after, 100))
                .await
            {
                Ok(events) => after = events.expect("events").last().map_or(after, |event| event.seq),
                Err(_) => continue,
            }
        }
    };
    tokio::time::timeout(conformance::bed::SOON, both).await.expect("two waits");
    assert_eq!(client.poll(&spawned).await["status"], "waiting");
    go(&bed).await;
    client.until(&spawned, "running").await;
    assert_eq!(ask(&bed, waits, &spawned), 0);
    go(&bed).await;
    assert_eq!(client.end(&spawned).await["status"], "finished");
    client.host.close().await;
}
