//! More than may be.

use super::together::llm_request;
use super::*;

#[tokio::test]
async fn a_request_too_many_is_refused_and_pings_are_answered() {
    let mut raw = raw(PeerLimits::default(), 1 << 20);
    for id in 0..IN_FLIGHT_MAX as u64 {
        raw.ask(id, "heed", json!(1)).await;
    }
    raw.ask(1000, "heed", json!(1)).await;
    let answer = raw.receive().await;
    assert_eq!((&answer["id"], &answer["error"]["data"]["kind"]), (&json!(1000), &json!("overloaded")));
    raw.settle().await;
    assert_eq!(raw.sizes().1, IN_FLIGHT_MAX);
    // One is answered, one more is taken.
    raw.send(r#"{"jsonrpc":"2.0","id":2000,"method":"cancel_call","params":{"id":0}}"#).await;
    assert_eq!([raw.receive().await["id"].clone(), raw.receive().await["id"].clone()], [json!(2000), json!(0)]);
    raw.ask(1001, "echo", json!(1)).await;
    assert_eq!(raw.receive().await["result"]["content"][0]["text"], "1");
}

#[tokio::test]
async fn a_call_too_many_fails_here() {
    let mut raw = raw(PeerLimits { in_flight: 2, ..PeerLimits::default() }, 1 << 16);
    let call = || {
        let peer = raw.peer.clone();
        tokio::spawn(async move { peer.call::<OnLlmRequest>(&llm_request(1)).await.map(drop) })
    };
    let (first, _second) = (call(), call());
    let number = raw.receive().await["id"].clone();
    raw.receive().await;
    let error = raw.peer.call::<OnLlmRequest>(&llm_request(1)).await.expect_err("too many");
    assert_eq!(kind_and_text(&error), (Some(Kind::Overloaded), "as many calls are in flight as may be".to_owned()));

    // A call that is given up is in flight until the other side has answered it.
    first.abort();
    let cancel = raw.receive().await;
    assert_eq!((&cancel["method"], &cancel["params"]["id"]), (&json!("cancel_call"), &number));
    assert_eq!(raw.sizes().0, 2);
    raw.send(json!({ "jsonrpc": "2.0", "id": cancel["id"], "result": {} }).to_string()).await;
    raw.send(json!({ "jsonrpc": "2.0", "id": number, "error": { "code": 4001, "message": "cancelled" } }).to_string())
        .await;
    raw.settle().await;
    assert_eq!(raw.sizes().0, 1);
    assert_eq!(raw.peer.oddities(), Oddities::default());
}

#[tokio::test]
async fn queued_bytes_are_bounded_and_a_call_given_up_leaves_the_queue() {
    let mut raw = raw(PeerLimits { queue_bytes: 300_000, ..PeerLimits::default() }, 64);
    let call = |bytes| {
        let peer = raw.peer.clone();
        tokio::spawn(async move { peer.call::<OnLlmRequest>(&llm_request(bytes)).await.map(drop) })
    };
    let (written, queued) = (call(100_000), call(100_000));
    while raw.sizes().2 < 200_000 {
        tokio::task::yield_now().await;
    }
    let error = raw.peer.call::<OnLlmRequest>(&llm_request(100_000)).await.expect_err("no room");
    assert_eq!(error.kind(), Some(Kind::Overloaded));

    // An answer that finds no room is an error answer.
    raw.ask(1, "long", json!(100_000)).await;
    raw.seen.reaches(|seen| &seen.gone, 1).await;

    queued.abort();
    assert!(queued.await.expect_err("aborted").is_cancelled());
    assert!(raw.sizes().2 < 200_000, "{:?}", raw.sizes());
    assert_eq!(raw.receive().await["method"], "on_llm_request");
    let answer = raw.receive().await;
    assert_eq!((&answer["id"], &answer["error"]["data"]["kind"]), (&json!(1), &json!("overloaded")));
    raw.settle().await;
    assert_eq!((raw.sizes().0, raw.sizes().2), (1, 0), "only the call that was written is in flight");
    drop(written);
}

#[tokio::test]
async fn control_frames_overtake_the_others() {
    let mut raw = raw(PeerLimits::default(), 64);
    for _ in 0..5 {
        let peer = raw.peer.clone();
        tokio::spawn(async move { peer.call::<OnLlmRequest>(&llm_request(100_000)).await.map(drop) });
    }
    let given_up = tokio::spawn({
        let peer = raw.peer.clone();
        async move {
            peer.call::<OnProgress>(&ProgressParams {
                thread_id: ThreadId::mint(),
                text: String::new(),
                fraction: None,
            })
            .await
        }
    });
    while raw.sizes().0 < 6 {
        tokio::task::yield_now().await;
    }
    let ping = tokio::spawn({
        let peer = raw.peer.clone();
        async move { peer.call::<Ping>(&Empty {}).await }
    });
    raw.send(r#"{"jsonrpc":"2.0","id":"theirs","method":"ping"}"#).await;
    while raw.sizes().0 < 7 {
        tokio::task::yield_now().await;
    }
    given_up.abort();
    let mut order = Vec::new();
    for _ in 0..7 {
        let line = raw.receive().await;
        order.push(line["method"].as_str().or(line["id"].as_str()).expect("told").to_owned());
    }
    // The first was being written when the others came; the one given up was never written.
    assert_eq!(order[0], "on_llm_request");
    let mut overtook = order[1..3].to_vec();
    overtook.sort();
    assert_eq!(overtook, ["ping", "theirs"]);
    assert_eq!(order[3..], ["on_llm_request"; 4]);
    ping.abort();
}

#[tokio::test(start_paused = true)]
async fn a_side_that_does_not_read_ends_the_link() {
    let raw = raw(PeerLimits::default(), 64);
    let begun = tokio::time::Instant::now();
    let error = raw.peer.call::<OnLlmRequest>(&llm_request(1000)).await.map(drop).expect_err("never read");
    assert!(matches!(error, CallError::Closed), "{error}");
    assert_eq!(begun.elapsed().as_millis(), u128::from(WRITE_STUCK_MS));
    assert!(matches!(raw.link.await.expect("no panic").end, LinkEnd::WriteStuck));
}

#[tokio::test(start_paused = true)]
async fn a_side_that_neither_reads_nor_writes_is_left_at_once() {
    let mut raw = raw(PeerLimits::default(), 64);
    raw.ask(1, "long", json!(100_000)).await;
    raw.seen.reaches(|seen| &seen.gone, 1).await;
    raw.pipe.shutdown().await.expect("closes one way");
    let begun = tokio::time::Instant::now();
    assert!(matches!(raw.link.await.expect("no panic").end, LinkEnd::Eof));
    assert_eq!(begun.elapsed().as_millis(), u128::from(END_FLUSH_MS));
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_and_an_idle_link_are_not_stuck() {
    let mut raw = raw(PeerLimits::default(), 64);
    tokio::time::sleep(millis(10 * WRITE_STUCK_MS)).await;
    let call = tokio::spawn({
        let peer = raw.peer.clone();
        async move { peer.call::<OnLlmRequest>(&llm_request(200)).await.map(drop) }
    });
    let mut byte = [0];
    let mut bytes = 0;
    while byte != *b"\n" {
        if bytes % 100 == 0 {
            tokio::time::sleep(millis(WRITE_STUCK_MS - 1)).await;
        }
        bytes += tokio::io::AsyncReadExt::read(raw.lines.get_mut(), &mut byte).await.expect("reads");
    }
    assert!(!raw.link.is_finished() && !call.is_finished());
}

#[tokio::test]
async fn a_side_that_asks_on_without_reading_ends_the_link() {
    let mut raw = raw(PeerLimits::default(), 64);
    let line = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    let flood = line.repeat(2 * SMALL_FRAMES_MAX);
    // The link stops reading when it ends, so that writing may fail.
    let _ = raw.pipe.write_all(flood.as_bytes()).await;
    assert!(matches!(raw.link.await.expect("no panic").end, LinkEnd::WriteStuck));
}

#[tokio::test]
async fn frames_longer_than_the_other_side_takes_are_not_written() {
    let mut raw = raw(PeerLimits::default(), 1 << 16);
    raw.peer.set_their_max_frame_bytes(10_000);
    let error = raw.peer.call::<OnLlmRequest>(&llm_request(10_000)).await.expect_err("too long");
    assert_eq!(error.kind(), Some(Kind::FrameTooLarge));
    assert!(error.to_string().ends_with("the other side takes at most 10000"), "{error}");
    raw.ask(1, "long", json!(10_000)).await;
    let answer = raw.receive().await;
    assert_eq!(answer["error"]["data"], json!({ "kind": "frame_too_large", "max_frame_bytes": 10_000 }));
    raw.ask(2, "long", json!(9_000)).await;
    assert_eq!(raw.receive().await["id"], 2);
    assert_eq!(raw.sizes(), (0, 0, 0));
}

#[tokio::test]
async fn a_line_longer_than_this_side_takes_ends_the_link() {
    let mut raw = raw(PeerLimits::for_frames(1000), 4096);
    raw.ask(1, "echo", json!(1)).await;
    assert_eq!(raw.receive().await["id"], 1);
    raw.send("x".repeat(1001)).await;
    assert!(matches!(raw.link.await.expect("no panic").end, LinkEnd::FrameTooLarge));
}

/// A pipe whose other end is gone.
struct Broken;

impl AsyncWrite for Broken {
    fn poll_write(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        _: &[u8],
    ) -> std::task::Poll<io::Result<usize>> {
        std::task::Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
    }

    fn poll_flush(self: std::pin::Pin<&mut Self>, _: &mut std::task::Context<'_>) -> std::task::Poll<io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn poll_shutdown(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }
}

#[tokio::test(start_paused = true)]
async fn last_answers_are_read_after_writing_failed() {
    let (theirs, ours) = duplex(4096);
    let (peer, link) = connect(ours, Broken, Service::new(Arc::new(())), PeerLimits::default());
    let link = tokio::spawn(link);
    let begun = Instant::now();
    let (mut theirs, request) = (theirs, llm_request(1));
    let call = peer.call::<OnLlmRequest>(&request);
    let answer = async {
        tokio::time::sleep(millis(LAST_READ_MS / 2)).await;
        let line = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"last words\"}}\n";
        theirs.write_all(line).await.expect("read");
    };
    let (call, ()) = tokio::join!(call, answer);
    assert_eq!(call.map(drop).expect_err("an error").to_string(), "last words");
    let report = link.await.expect("no panic");
    assert!(matches!(report.end, LinkEnd::WriteError(_)), "{report:?}");
    assert!(begun.elapsed().as_secs() < 5, "the clock is paused");
}
