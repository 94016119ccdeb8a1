//! Sessions: left, looked after, come back to, switched; and the assistants read anew.

use std::time::{Duration, Instant};

use assistant_host::host::{Ending, Host};
use assistant_host::process_table::NotOpened;
use assistant_protocol::ids::SessionId;
use conformance::bed::{Bed, Client, assistant, script};
use serde_json::{Value, json};

use crate::RUNNER;

fn bed(grace_ms: u64) -> Bed {
    let mut bed = Bed::new(RUNNER, &[("h.md", &assistant("h", ""))], &script(&[("h", json!([{ "hang": true }]))]));
    bed.limits.session_grace_ms = grace_ms;
    bed
}

async fn hanging(client: &Client) -> Value {
    let spawned = client.spawn("h", "go").await;
    client.asked(&spawned).await;
    spawned
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_left_ends_unless_someone_looks_after_it() {
    let grace = Duration::from_millis(3_000);
    let bed = bed(3_000);
    let client = bed.open().await;
    let (left, other) = (Client::of(&client.host).await, client.clone());
    let (looked_after, alone) = (hanging(&left).await, Client::of(&client.host).await);
    let forgotten = hanging(&alone).await;
    for session in [left.session, alone.session] {
        client.host.end_session(session, Ending::AfterGrace).await.expect("left");
    }
    assert_eq!(
        left.refused("send_message", json!({ "thread_id": looked_after["thread_id"], "message": "m" })).await,
        "process_ended"
    );
    // Looking at the forgotten one would be looking after it: its row tells the end.
    let id = forgotten["process_id"].as_str().expect("an id").parse().expect("an id");
    let begun = Instant::now();
    loop {
        assert_eq!(other.poll(&looked_after).await["status"], "running", "after {:?}", begun.elapsed());
        let row = client.host.process(id).await.expect("read").expect("a row");
        if begun.elapsed() > grace + grace / 2 && row.status.is_end() {
            assert_eq!((row.status.name(), row.cause.map(|cause| cause.name())), ("cancelled", Some("session_ended")));
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Nobody looks after it any more.
    let id = looked_after["process_id"].as_str().expect("an id").parse().expect("an id");
    while !client.host.process(id).await.expect("read").expect("a row").status.is_end() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_names_its_sessions_and_switches_between_them() {
    let bed = bed(600_000);
    let client = bed.open().await;
    let host = &client.host;
    let id = SessionId::mint();
    host.open_session_as(id, "app", "main").await.expect("opened");
    assert!(matches!(host.open_session_as(id, "app", "main").await, Err(NotOpened::Open(_))));
    assert!(matches!(host.open_session_as(id, "other", "main").await, Err(NotOpened::NotYours(_))));
    let first = Client { host: host.clone(), session: id };
    let kept = hanging(&first).await;
    host.end_session(id, Ending::AfterGrace).await.expect("left");
    host.open_session_as(id, "app", "main").await.expect("come back to");
    assert_eq!(first.poll(&kept).await["status"], "running", "its processes went on");
    // A switch: the old one ends now, and another one begins.
    host.end_session(id, Ending::Now).await.expect("ended");
    let second = Client { host: host.clone(), session: host.open_session("app", "main").await.expect("opened") };
    let seen = second.end(&kept).await;
    assert_eq!((&seen["status"], &seen["cause"]), (&json!("cancelled"), &json!("session_ended")));
    host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_grace_time_the_end_is_at_once() {
    let bed = bed(0);
    let client = bed.open().await;
    let left = Client::of(&client.host).await;
    let spawned = hanging(&left).await;
    client.host.end_session(left.session, Ending::AfterGrace).await.expect("ended");
    assert_eq!(client.end(&spawned).await["cause"], "session_ended");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_process_clients_come_and_go_and_the_host_stays() {
    let bed = bed(600_000);
    let client = bed.open().await;
    for _ in 0..3 {
        let door = client.host.connect_in_process("app").await.expect("a client");
        door.list_all_tools().await.expect("tools");
        door.cancel().await.expect("it ends");
    }
    hanging(&client).await;
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_came_changed_and_went_are_seen_after_a_reload() {
    let bed = bed(0);
    let mut options = bed.options();
    options.watch = false;
    let client = Client::of(&Host::open(options).await.expect("a host")).await;
    let file = |name: &str| bed.dir.path().join("assistants").join(name);
    let found = async |text: &str| {
        let found = client.call("search_assistant", json!({ "query": text })).await;
        found["items"].as_array().expect("a list").iter().map(|one| one["id"].clone()).collect::<Vec<_>>()
    };
    assert!(!client.host.reload().await.expect("read"), "nothing is another");
    std::fs::write(file("knitter.md"), "---\nname: knitter\ndescription: knits socks\n---\nKnit.\n").expect("a file");
    let (one, two) = tokio::join!(client.host.reload(), client.host.reload());
    assert_eq!((one.expect("read"), two.expect("read")), (true, false));
    assert_eq!(found("socks").await, [json!("knitter")]);
    std::fs::write(file("knitter.md"), "---\nname: knitter\ndescription: knits hats\n---\nKnit.\n").expect("a file");
    assert!(client.host.reload().await.expect("read"));
    assert_eq!((found("hats").await, found("socks").await), (vec![json!("knitter")], vec![]));
    std::fs::remove_file(file("knitter.md")).expect("removed");
    assert!(client.host.reload().await.expect("read"));
    assert!(found("hats").await.is_empty());
    assert_eq!(
        client.refused("spawn_assistant", json!({ "assistant_id": "knitter", "query": "go" })).await,
        "unknown_assistant"
    );
    client.host.close().await;
}
