//! Ends, cancels, sessions and slots.

use conformance::oracle;
use serde_json::json;

use super::{Stage, another, leave, queued, spawns};

/// Whoever is above may end in the moment in which something below begins.
#[tokio::test(flavor = "multi_thread")]
async fn cascade() {
    let mut stage = Stage::real(&["parent", "child", "grandchild"], |_| {}).await;
    let spawned = stage.client.spawn("parent", "go").await;
    stage.turns.of("parent").await.calls(&[spawns("child", json!({}))]);
    stage.turns.of("child").await.calls(&[spawns("grandchild", json!({}))]);
    let (child, grandchild) = (stage.turns.of("child").await, stage.turns.of("grandchild").await);
    stage.turns.of("parent").await.fails();
    assert_eq!(stage.client.end(&spawned).await["reason"], "model_failed");
    let below: Vec<_> = stage.tree(&spawned).await[1..].iter().map(|one| one["cause"].clone()).collect();
    assert_eq!(below, [json!("parent_ended"), json!("parent_ended")], "ended with what is above them");
    drop((child, grandchild));
    stage.close().await;
}

/// A call of a runner has begun when its process is marked: none of its jobs may change anything.
#[tokio::test(flavor = "multi_thread")]
async fn live_caller() {
    for tool in [
        "spawn_assistant",
        "send_message",
        "recv_message",
        "wait_assistant",
        "ask_parent",
        "check_answer",
        "reply_assistant",
        "cancel_assistant",
        "get_pending_questions",
    ] {
        let stage = Stage::played(&["parent", "child"], |limits| limits.grace_ms = 30_000).await;
        let spawned = stage.client.spawn("parent", "go").await;
        let mut parent = stage.puppet().await;
        let asked = parent.uses("ask_parent", json!({ "question": "how many?", "wait_ms": 0 })).await;
        let child = parent.uses("spawn_assistant", spawns("child", json!({})).1).await;
        let mut below = stage.puppet().await;
        let asks = below.calls("ask_parent", json!({ "question": "how?", "wait_ms": 0 })).result().await;
        let answer = json!({ "process_id": spawned["process_id"], "answer": "seven" });
        stage.client.call("reply_assistant", answer).await;
        stage.send(&spawned, "hello").await;
        let (child, thread) = (child["process_id"].clone(), parent.thread.clone());
        let arguments = match tool {
            "spawn_assistant" => spawns("child", json!({})).1,
            "send_message" => json!({ "thread_id": thread, "message": "late" }),
            "recv_message" => json!({ "thread_id": thread }),
            "ask_parent" => json!({ "question": "late?", "wait_ms": 0 }),
            "check_answer" => json!({ "message_id": asked["message_id"] }),
            "reply_assistant" => json!({ "process_id": child, "answer": "so" }),
            "cancel_assistant" => json!({ "process_id": child }),
            _ => json!({}),
        };
        // The call begins in one job; behind it comes the mark, and then what the tool does.
        let mut held = stage.gate.hold(0);
        let reply = parent.calls(tool, arguments);
        held.reached().await;
        let (host, session) = (stage.client.host.clone(), stage.client.session);
        let ending = queued(async move { host.end_session(session, assistant_host::host::Ending::Now).await }).await;
        held.release();
        ending.await.expect("a task").expect("ended");
        let outcome = reply.outcome().await;
        let refused = outcome.as_ref().map_or(true, |result| result["is_error"] == true);
        assert!(refused, "{tool} was done for a process that is marked: {outcome:?}");
        let said = format!("{outcome:?}");
        assert!(said.contains("process_ended") || said.contains("ended or is cancelled"), "{tool}: {said}");
        assert_eq!(asks["is_error"], false);
        for puppet in [&mut parent, &mut below] {
            puppet.ends("late");
        }
        assert_eq!(another(&stage.client).await.end(&spawned).await["cause"], "session_ended");
        stage.close().await;
    }
}

/// A message comes at every place around the end of a run: it is refused, or taken in.
#[tokio::test(flavor = "multi_thread")]
async fn settle_one() {
    let (mut refused, mut taken) = (0, 0);
    for place in 0.. {
        let mut stage = Stage::played(&["one"], |_| {}).await;
        let spawned = stage.client.spawn("one", "go").await;
        let mut puppet = stage.puppet().await;
        let mut held = stage.gate.hold(place);
        // A job before the one that settles, so that a place is in front of it.
        let told = puppet.ask("on_progress", json!({ "thread_id": spawned["thread_id"], "text": "nearly" }));
        puppet.ends("the result");
        if place < 2 {
            held.reached().await;
        } else if !held.within(1_000).await {
            drop(told);
            stage.close().await;
            break;
        }
        let client = stage.client.clone();
        let message = json!({ "thread_id": spawned["thread_id"], "message": "one more thing" });
        let sending = queued(async move { client.try_call("send_message", message).await }).await;
        held.release();
        match sending.await.expect("a task") {
            Err(error) => {
                assert_eq!(error["code"], "process_ended", "{error}");
                refused += 1;
            }
            Ok(_) => {
                assert!(puppet.is_run_again().await, "place {place}: sent, and nobody takes it in");
                let asking = puppet.asks_as("You are one.");
                let turn = stage.turns.of("one").await;
                assert_eq!(turn.has("one more thing"), 1);
                turn.says("so");
                puppet.takes(&asking.result().await);
                puppet.ends("so");
                taken += 1;
            }
        }
        assert_eq!(stage.client.end(&spawned).await["status"], "finished", "place {place}");
        stage.close().await;
    }
    assert!(refused > 0, "some place is behind the end ({refused} refused, {taken} taken in)");
}

/// A run is called again for the sake of a message, and answered without a look at it: that never ends otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn must_take() {
    let stage = Stage::played(&["lazy"], |_| {}).await;
    let spawned = stage.client.spawn("lazy", "go").await;
    let mut puppet = stage.puppet().await;
    stage.send(&spawned, "listen").await;
    puppet.ends("done");
    assert!(puppet.is_run_again().await, "it has a message to take in");
    puppet.ends("done");
    assert!(!puppet.is_run_again().await, "once is enough");
    assert_eq!(stage.client.end(&spawned).await["reason"], "protocol_error");
    stage.close().await;
}

/// Whatever ends a process that is marked: a result, a death, a failure of its model, the death of its host.
#[tokio::test(flavor = "multi_thread")]
async fn mark_wins() {
    for way in ["result", "death", "refusal", "kill"] {
        let stage = Stage::played(&["one"], |limits| limits.grace_ms = 30_000).await;
        let spawned = stage.client.spawn("one", "go").await;
        let mut puppet = stage.puppet().await;
        stage.client.call("cancel_assistant", json!({ "process_id": spawned["process_id"] })).await;
        assert!(stage.row(&spawned).await.marked);
        if way == "kill" {
            let next = assistant_host::host::Options::new(
                conformance::gate::copied(&stage.bed.state()).expect("a copy").keep(),
                stage.bed.runner.clone(),
            );
            let state = next.state.clone();
            let host = assistant_host::host::Host::open(next).await.expect("a host");
            let row = host.process(spawned["process_id"].as_str().expect("an id").parse().expect("an id")).await;
            assert_eq!(row.expect("read").expect("a row").status.name(), "cancelled", "the next host says so too");
            host.close().await;
            assert_eq!(oracle::check_quiet(&state.join(assistant_host::store::FILE)), Vec::<String>::new());
            std::fs::remove_dir_all(state).expect("removed");
        }
        match way {
            "death" => puppet.dies(),
            "refusal" => puppet.fails_run("I lost my head"),
            _ => puppet.ends("done all the same"),
        }
        let ended = stage.client.end(&spawned).await;
        assert_eq!((&ended["status"], &ended["cause"]), (&json!("cancelled"), &json!("requested")), "{way}");
        stage.close().await;
    }
}

/// A spawn is under way while its session ends.
#[tokio::test(flavor = "multi_thread")]
async fn open_session() {
    let stage = Stage::played(&["one"], |_| {}).await;
    let client = another(&stage.client).await;
    let mut held = stage.gate.hold(0);
    // Something to be held: the end comes right behind it, and the spawn behind that.
    let (first, ends, spawns) = (stage.client.clone(), client.clone(), client.clone());
    let opening = queued(async move { first.host.open_session("local", "main").await }).await;
    held.reached().await;
    let ending =
        queued(async move { ends.host.end_session(ends.session, assistant_host::host::Ending::Now).await }).await;
    let asked = json!({ "assistant_id": "one", "query": "go" });
    let spawning = queued(async move { spawns.try_call("spawn_assistant", asked).await }).await;
    held.release();
    opening.await.expect("a task").expect("opened");
    ending.await.expect("a task").expect("ended");
    let spawned = spawning.await.expect("a task");
    assert!(spawned.is_err(), "spawned by a session that had ended: {spawned:?}");
    assert_eq!(stage.client.call("list_process", json!({})).await["total_items"], 0);
    stage.close().await;
}

/// A slot becomes free while one waits for it and another one comes.
#[tokio::test(flavor = "multi_thread")]
async fn no_barging() {
    let stage = Stage::played(&["one"], |limits| limits.running_per_session = 1).await;
    let first = stage.client.spawn("one", "first").await;
    let mut puppet = stage.puppet().await;
    let second = stage.client.spawn("one", "second").await;
    assert_eq!(second["status"], "queued");
    // The supervisor has looked at it, and looks again when the slot is free.
    stage.gate.quiet(2_000).await;
    let mut held = stage.gate.hold(0);
    puppet.ends("done");
    held.reached().await;
    // In the same batch as the end of the first, before the supervisor hears of it.
    let client = stage.client.clone();
    let asked = json!({ "assistant_id": "one", "query": "third" });
    let spawning = queued(async move { client.call("spawn_assistant", asked).await }).await;
    held.release();
    let third = spawning.await.expect("a task");
    // Before it is the second, in the queue or, where the supervisor was slow before and quick now, at work.
    let number = |key: &str| third["capacity"][key].as_u64().unwrap_or_default();
    assert_eq!((&third["status"], number("running") + number("position")), (&json!("queued"), 2), "{third}");
    for (query, spawned) in [("second", &second), ("third", &third)] {
        let mut next = stage.puppet().await;
        assert_eq!(next.run["query"], query);
        next.ends("done");
        stage.client.end(spawned).await;
    }
    assert_eq!(stage.client.end(&first).await["status"], "finished");
    stage.close().await;
}

/// A session ends above a detached process that has a child of its own.
#[tokio::test(flavor = "multi_thread")]
async fn spare_detached() {
    let mut stage = Stage::real(&["parent", "kept", "below"], |_| {}).await;
    let other = another(&stage.client).await;
    let spawned = other.spawn("parent", "go").await;
    stage.turns.of("parent").await.calls(&[spawns("kept", json!({ "detached": true }))]);
    stage.turns.of("kept").await.calls(&[spawns("below", json!({ "run_mode": "sync" }))]);
    let (parent, below) = (stage.turns.of("parent").await, stage.turns.of("below").await);
    leave(other).await;
    assert_eq!(stage.client.end(&spawned).await["cause"], "session_ended");
    drop(parent);
    below.says("from below");
    let kept = stage.turns.of("kept").await;
    assert_eq!(kept.result()["result"]["content"], "from below");
    kept.says("all done");
    let all = stage.client.call("list_process", json!({})).await;
    let kept = all["items"].as_array().expect("a list").iter().find(|one| one["assistant_id"] == "kept");
    assert_eq!(stage.client.end(kept.expect("a row")).await["status"], "finished");
    stage.close().await;
}
