//! Every limit is told when it is hit: its name, how much there is, how much may be, and what to do. Slots go round.

use assistant_host::limits::Limits;
use conformance::bed::{Bed, Client, assistant, script};
use serde_json::{Value, json};

use crate::RUNNER;

/// A bed with `quick`, which answers at once, and `hang`, which never does.
fn bed(limits: Limits) -> Bed {
    let files: Vec<(String, String)> =
        ["quick", "hang"].iter().map(|name| (format!("{name}.md"), assistant(name, "send_message"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let steps = [("quick", json!([{ "text": "done" }])), ("hang", json!([{ "hang": true }]))];
    let mut bed = Bed::new(RUNNER, &files, &script(&steps));
    bed.limits = limits;
    bed
}

/// The error of a call that has to fail.
async fn error(client: &Client, tool: &str, arguments: Value) -> Value {
    match client.try_call(tool, arguments).await {
        Err(error) => error,
        Ok(value) => panic!("{tool} succeeded: {value}"),
    }
}

/// The refusal of a call tells the limit by its name in the configuration, the count, the most, and what to do next.
fn told(error: &Value, name: &str, numbers: &[&str]) {
    let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    assert_eq!(text("code"), format!("limit_{name}"), "{error}");
    for number in numbers {
        assert!(text("message").contains(number), "no {number}: {error}");
    }
    assert!(text("hint").split_whitespace().count() > 3, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_tell_the_limit_the_count_and_what_to_do() {
    let limits = Limits {
        running_per_session: 1,
        queue_per_session: 2,
        message_bytes: 9,
        queued_messages: 2,
        ..Limits::default()
    };
    let bed = bed(limits);
    let client = bed.open().await;
    let spawn = json!({ "assistant_id": "hang", "query": "go" });
    let first = client.call("spawn_assistant", spawn.clone()).await;
    client.asked(&first).await;
    client.call("spawn_assistant", spawn.clone()).await;
    client.call("spawn_assistant", spawn.clone()).await;
    told(&error(&client, "spawn_assistant", spawn.clone()).await, "queue_per_session", &["2 processes", "is 2"]);
    let send = |text: &str| json!({ "thread_id": first["thread_id"], "message": text });
    told(&error(&client, "send_message", send("ten bytes.")).await, "message_bytes", &["10 bytes", "is 9"]);
    client.call("send_message", send("one")).await;
    client.call("send_message", send("two")).await;
    told(&error(&client, "send_message", send("three")).await, "queued_messages", &["2 messages", "is 2"]);
    client.host.close().await;
    drop(client);

    let bed = self::bed(Limits { living_per_session: 1, ..Limits::default() });
    let client = bed.open().await;
    client.call("spawn_assistant", spawn.clone()).await;
    told(&error(&client, "spawn_assistant", spawn.clone()).await, "living_per_session", &["1 processes", "is 1"]);
    client.host.close().await;
    drop(client);

    // Of a host of its own: the call that the other one gave up may have cost something.
    let bed = self::bed(Limits { tokens_per_day: 100, ..Limits::default() });
    let client = bed.open().await;
    told(&error(&client, "spawn_assistant", spawn).await, "tokens_per_day", &["100 of 100 tokens"]);
    client.host.close().await;
}

/// With one slot for all, sessions take turns, however many each has queued and whoever came first.
#[tokio::test(flavor = "multi_thread")]
async fn slots_go_round_between_sessions() {
    let bed = bed(Limits { running_per_host: 1, ..Limits::default() });
    let first = bed.open().await;
    let (second, third) = (Client::of(&first.host).await, Client::of(&first.host).await);
    let holder = first.spawn("hang", "hold the slot").await;
    first.asked(&holder).await;
    let mut spawned = Vec::new();
    for (client, name) in
        [(&first, "a1"), (&first, "a2"), (&first, "a3"), (&second, "b1"), (&second, "b2"), (&third, "c1")]
    {
        let one = client.spawn("quick", name).await;
        assert_eq!(one["status"], "queued", "{one}");
        spawned.push((client, name, one));
    }
    assert_eq!(spawned[2].2["capacity"]["position"], 3);
    first.call("cancel_assistant", json!({ "process_id": holder["process_id"] })).await;
    let mut started = Vec::new();
    for (client, name, one) in &spawned {
        assert_eq!(client.end(one).await["status"], "finished");
        started.push((*name, one["process_id"].as_str().expect("an id").to_owned()));
    }
    first.host.close().await;
    let db = rusqlite::Connection::open(bed.state().join("assistant-host.db")).expect("the store");
    let mut look = db
        .prepare("SELECT process_id FROM events WHERE kind = 'status' AND data LIKE '%\"starting\"%' ORDER BY seq")
        .expect("SQL");
    let rows = look.query_map([], |row| row.get::<_, String>(0)).expect("rows");
    let order: Vec<&str> = rows
        .filter_map(|row| {
            let id = row.expect("a row");
            started.iter().find(|(_, known)| *known == id).map(|(name, _)| *name)
        })
        .collect();
    assert_eq!(order, ["b1", "c1", "a1", "b2", "a2", "a3"]);
}

/// A client that runs within an assistant, of this host or another one, is as deep as that one.
#[cfg(target_os = "linux")]
#[test]
fn depth_crosses_hosts() {
    use conformance::doors::{Doors, RawClient};

    let doors = Doors::new(crate::HOST, "");
    let spawn = json!({ "assistant_id": "quick", "query": "go" });
    let check = |depth: &str, args: &[&str], told: Option<&str>| {
        let mut command = doors.command(args);
        command.env("ASSISTANT_HOST_DEPTH", depth);
        let mut client = RawClient::start(command);
        assert!(client.shake(), "served");
        let spawned = client.call("spawn_assistant", &spawn).expect("answered");
        match (spawned, told) {
            (Ok(_), None) => {}
            (Err(error), Some(told)) => {
                let message = error["message"].as_str().unwrap_or_default();
                assert!(error["code"] == "limit_depth" && message.contains(told), "{depth}: {error}");
            }
            (other, _) => panic!("{depth}: {other:?}"),
        }
        assert_eq!(client.close(), Some(0));
    };
    check("0", &["mcp"], None);
    check("2", &["mcp"], None);
    check("3", &["mcp"], Some("at level 3, the deepest that may be is 3"));
    check("many", &["mcp"], Some("ASSISTANT_HOST_DEPTH is no number, the deepest that may be is 3"));
    check("-1", &["mcp"], Some("ASSISTANT_HOST_DEPTH is no number"));
    assert_eq!(doors.run(&["stop", "--force"]).0, Some(0));
    check("2", &["mcp", "--embedded"], None);
    check("3", &["mcp", "--embedded"], Some("at level 3"));
}
