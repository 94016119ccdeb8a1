//! What no peer should send.

use super::*;

#[tokio::test]
async fn odd_lines_are_counted_and_harmless() {
    let mut raw = raw(PeerLimits::default(), 4096);
    let junk: [&[u8]; 9] = [
        b"   Compiling tokio v1.54.1",
        b"",
        b"[1,2]",
        b"\xff\xfe",
        b"7",
        b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
        b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
        b"{\"level\":\"info\",\"id\":3}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi",
    ];
    for line in junk {
        raw.send(line).await;
    }
    raw.send(r#"{"jsonrpc":"2.0","method":"on_progress","params":{}}"#).await;
    for id in ["77", r#""cancel""#, r#""x""#] {
        raw.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":1}}"#)).await;
    }
    raw.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r").await;
    assert_eq!(raw.receive().await["id"], 1);

    let expected = Oddities {
        junk_lines: 9,
        junk: junk.map(|line| String::from_utf8_lossy(line).into_owned()).to_vec(),
        without_id: 1,
        unknown_answers: 3,
    };
    assert_eq!(raw.peer.oddities(), expected);
    assert_eq!(raw.end().await.oddities, expected);
}

#[tokio::test]
async fn a_second_answer_is_counted_and_ignored() {
    let mut raw = raw(PeerLimits::default(), 4096);
    let peer = raw.peer.clone();
    let call = tokio::spawn(async move { peer.call::<Ping>(&Empty {}).await });
    let id = raw.receive().await["id"].clone();
    for _ in 0..2 {
        raw.send(json!({ "jsonrpc": "2.0", "id": id, "result": {} }).to_string()).await;
    }
    assert!(call.await.expect("no panic").is_ok());
    raw.settle().await;
    assert_eq!(raw.peer.oddities(), Oddities { unknown_answers: 1, ..Oddities::default() });
}

#[tokio::test]
async fn a_second_request_with_an_id_in_use_gets_no_answer() {
    let mut raw = raw(PeerLimits::default(), 4096);
    raw.ask(1, "heed", json!(1)).await;
    raw.ask(1, "echo", json!(1)).await;
    raw.send(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    raw.settle().await;
    assert_eq!(raw.peer.oddities().junk_lines, 2);
    raw.send(r#"{"jsonrpc":"2.0","id":2,"method":"cancel_call","params":{"id":1}}"#).await;
    let answers = [raw.receive().await, raw.receive().await].map(|answer| answer["id"].clone());
    assert_eq!(answers, [json!(2), json!(1)]);
    // Answered, the id is free again.
    raw.ask(1, "echo", json!(5)).await;
    assert_eq!(raw.receive().await["result"]["content"][0]["text"], "5");
}

#[tokio::test]
async fn too_much_noise_ends_the_link() {
    let mut raw = raw(PeerLimits { noise_lines: 3, ..PeerLimits::default() }, 4096);
    for _ in 0..2 {
        raw.send("x".repeat(1000)).await;
    }
    raw.settle().await;
    raw.send("third").await;
    let report = raw.link.await.expect("no panic");
    assert!(matches!(report.end, LinkEnd::Noise { count: 3 }), "{report:?}");
    let cut = "x".repeat(wire::EXCERPT_BYTES);
    assert_eq!(report.oddities.junk, [cut.clone(), cut, "third".to_owned()]);
}
