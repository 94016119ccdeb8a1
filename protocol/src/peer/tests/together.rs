//! Both ends ask and answer at once.

use std::pin::Pin;
use std::task::{Context, Poll};

use super::*;

/// 2,000 calls each way, 200 at a time, some of them large, some calling back, over a pipe of 4 KB.
async fn all_are_answered() {
    let [(a, ..), (b, ..)] = pair(4096);
    let both = [a, b].map(|peer| async move {
        for round in 0..10 {
            let calls = (0..200_u64).map(|n| {
                let peer = peer.clone();
                async move {
                    let (name, arguments, text) = match n % 4 {
                        0 => ("back", json!(n % 5), "bottom".to_owned()),
                        1 => ("long", json!(n * 100), "x".repeat(usize::try_from(n).expect("fits") * 100)),
                        _ => {
                            ("echo", json!([round, n, "y".repeat(300)]), json!([round, n, "y".repeat(300)]).to_string())
                        }
                    };
                    let result = peer.call::<OnToolCall>(&tool_call(name, arguments)).await.expect("answered");
                    assert_eq!(result, text_result(text), "{name}");
                }
            });
            join_all(calls).await;
        }
        peer
    });
    for peer in join_all(both).await {
        comes_to_rest(&peer).await;
        assert_eq!(peer.oddities(), Oddities::default());
    }
}

#[tokio::test]
async fn thousands_of_calls_interleave_on_one_thread() {
    all_are_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn thousands_of_calls_interleave_on_threads() {
    all_are_answered().await;
}

#[tokio::test]
async fn each_way_of_ending_a_handler_is_one_answer() {
    let [(a, ..), (b, seen, _link)] = pair(4096);
    let ask = async |name: &str| a.call::<OnToolCall>(&tool_call(name, json!(1))).await;
    assert_eq!(ask("echo").await.expect("answered"), text_result("1".to_owned()));
    for (name, kind, text) in [
        ("refuse", Kind::NotPermitted, "no"),
        ("other", Kind::UnknownTool, "other"),
        ("panic", Kind::InternalError, "the handler of `on_tool_call` panicked"),
    ] {
        let error = ask(name).await.expect_err(name);
        assert_eq!(kind_and_text(&error), (Some(kind), text.to_owned()));
    }
    let CallError::Answered(error) = ask("refuse").await.expect_err("refused") else { panic!("answered") };
    assert_eq!(error.data["who"], "you");
    assert_eq!(seen.gone.load(Ordering::SeqCst), 5);
    comes_to_rest(&a).await;
    comes_to_rest(&b).await;
}

#[tokio::test]
async fn what_a_side_does_not_answer_is_refused_clearly() {
    let mut raw = raw(PeerLimits::default(), 4096);
    for (method, params, code, text) in [
        ("run", r#"{"x":1}"#, -32601, "this side of the link does not answer `run`"),
        ("on_progress", "{}", -32601, "this side of the link does not answer `on_progress`"),
        ("fly", "{}", -32601, "the protocol has no method `fly`"),
        ("on_tool_call", "[1]", -32602, "the params of `on_tool_call` do not fit: they must be an object"),
        (
            "on_tool_call",
            "{}",
            -32602,
            "the params of `on_tool_call` do not fit: missing field `thread_id` at line 1 column 2",
        ),
        ("cancel_call", "{}", -32602, "the params of `cancel_call` do not fit: missing field `id` at line 1 column 2"),
        ("cancel_call", "7", -32602, "the params of `cancel_call` do not fit: they must be an object"),
    ] {
        raw.send(format!(r#"{{"jsonrpc":"2.0","id":"i","method":"{method}","params":{params}}}"#)).await;
        let answer = raw.receive().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"], &answer["error"]["message"]),
            (&json!("i"), &json!(code), &json!(text))
        );
        assert!(answer["error"]["data"]["kind"].is_string(), "{answer}");
    }
}

#[tokio::test]
async fn a_null_result_is_a_result() {
    /// A method of a stranger whose result may be null.
    #[derive(Debug, Clone, Copy)]
    struct Nothing;
    impl Method for Nothing {
        const NAME: &'static str = "nothing";
        type Params = Empty;
        type Result = Option<u32>;
    }
    let (a, b) = duplex(4096);
    let (read, write) = split(a);
    let answers = Service::new(Arc::new(())).on(Nothing, async |_, _, _| Ok(None));
    let (_answering, link) = connect(read, write, answers, PeerLimits::default());
    tokio::spawn(link);
    let (read, write) = split(b);
    let (asking, link) = connect(read, write, Service::new(Arc::new(())), PeerLimits::default());
    tokio::spawn(link);
    assert_eq!(asking.call::<Nothing>(&Empty {}).await.expect("null is a result"), None);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_cancels_its_handler_and_frees_both_sides() {
    let [(a, ..), (b, seen, _link)] = pair(4096);
    let call = tokio::spawn({
        let a = a.clone();
        async move { a.call::<OnToolCall>(&tool_call("hang", json!(1))).await }
    });
    seen.reaches(|seen| &seen.begun, 1).await;
    assert_eq!((a.0.state().sizes().0, b.0.state().sizes().1), (1, 1));
    call.abort();
    seen.reaches(|seen| &seen.gone, 1).await;
    a.call::<Ping>(&Empty {}).await.expect("pong");
    b.call::<Ping>(&Empty {}).await.expect("pong");
    assert_eq!((a.0.state().sizes(), b.0.state().sizes()), ((0, 0, 0), (0, 0, 0)));
    assert_eq!((a.oddities(), b.oddities()), Default::default());
}

#[tokio::test]
async fn a_cancelled_call_gets_its_one_answer() {
    let mut raw = raw(PeerLimits::default(), 1 << 16);
    // In one write, so that the cancel is there before the handler has begun.
    let mut lines = wire::request_line(&Id::Number(1), OnToolCall::NAME, &tool_call("hang", json!(1))).expect("writes");
    lines.extend(br#"{"jsonrpc":"2.0","id":2,"method":"cancel_call","params":{"id":1}}"#);
    raw.send(&lines).await;
    assert_eq!(raw.receive().await, json!({ "jsonrpc": "2.0", "id": 2, "result": {} }));
    let answer = raw.receive().await;
    assert_eq!((&answer["id"], &answer["error"]["data"]["kind"]), (&json!(1), &json!("cancelled")));
    assert_eq!(raw.seen.begun.load(Ordering::SeqCst), 0, "no work was begun for it");

    // A handler that heeds the cancel answers what it has.
    raw.ask(3, "heed", json!(1)).await;
    raw.seen.reaches(|seen| &seen.begun, 1).await;
    raw.send(r#"{"jsonrpc":"2.0","id":"4","method":"cancel_call","params":{"id":3}}"#).await;
    assert_eq!(raw.receive().await["id"], "4");
    assert_eq!(raw.receive().await["result"]["content"][0]["text"], "stopped where it was safe");

    // What is not being answered can be cancelled without harm.
    for id in ["3", "99", r#""x""#, "null", "[1]", "{}", "-1"] {
        raw.send(format!(r#"{{"jsonrpc":"2.0","id":5,"method":"cancel_call","params":{{"id":{id}}}}}"#)).await;
        let answer = raw.receive().await;
        assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": 5, "result": {} }), "{id}");
    }
    assert_eq!(raw.sizes(), (0, 0, 0));
}

#[tokio::test]
async fn requests_behind_one_in_order_see_what_it_did() {
    let (a, b) = duplex(4096);
    let (read, write) = split(a);
    let limit = Arc::new(AtomicU64::new(0));
    let service = Service::new(limit)
        .on_in_order(OnProgress, |limit: &AtomicU64, params: ProgressParams, _| {
            assert_ne!(params.text, "panic");
            limit.store(7, Ordering::SeqCst);
            Ok(Empty {})
        })
        .on(OnToolCall, async |limit: Arc<AtomicU64>, _, _| Ok(text_result(limit.load(Ordering::SeqCst).to_string())));
    let (_peer, link) = connect(read, write, service, PeerLimits::default());
    tokio::spawn(link);
    let (read, write) = split(b);
    let (peer, link) = connect(read, write, Service::new(Arc::new(())), PeerLimits::default());
    tokio::spawn(link);
    let progress = |text: &str| ProgressParams { thread_id: ThreadId::mint(), text: text.to_owned(), fraction: None };
    let (first, second) = (progress("set"), tool_call("any", json!(1)));
    let (set, seen) = tokio::join!(peer.call::<OnProgress>(&first), peer.call::<OnToolCall>(&second));
    set.expect("answered");
    assert_eq!(seen.expect("answered"), text_result("7".to_owned()));
    let error = peer.call::<OnProgress>(&progress("panic")).await.expect_err("panics");
    assert_eq!(error.to_string(), "the handler of `on_progress` panicked");
    peer.call::<OnProgress>(&progress("again")).await.expect("the reader lives");
}

#[tokio::test]
async fn everything_pending_fails_when_the_pipe_closes() {
    let mut raw = raw(PeerLimits::default(), 4096);
    let call = tokio::spawn({
        let peer = raw.peer.clone();
        async move { peer.call::<OnLlmRequest>(&llm_request(1)).await.map(drop) }
    });
    assert_eq!(raw.receive().await["method"], "on_llm_request");
    raw.ask(1, "heed", json!(1)).await;
    raw.seen.reaches(|seen| &seen.begun, 1).await;
    let (peer, seen) = (raw.peer.clone(), raw.seen.clone());
    let report = raw.end().await;
    assert!(matches!(report.end, LinkEnd::Eof), "{report:?}");
    assert!(matches!(call.await.expect("no panic"), Err(CallError::Closed)));
    assert!(matches!(peer.call::<Ping>(&Empty {}).await, Err(CallError::Closed)));
    seen.reaches(|seen| &seen.gone, 1).await;
    assert_eq!(peer.0.state().sizes().0, 0);
}

#[tokio::test]
async fn a_dropped_link_fails_what_is_pending() {
    let raw = raw(PeerLimits::default(), 4096);
    let (call, request) = (raw.peer.clone(), llm_request(1));
    let call = call.call::<OnLlmRequest>(&request);
    raw.link.abort();
    assert!(matches!(call.await, Err(CallError::Closed)));
}

#[tokio::test(start_paused = true)]
async fn closing_answers_what_is_asked_and_takes_no_more() {
    let mut raw = raw(PeerLimits::default(), 1 << 16);
    raw.ask(1, "hang", json!(1)).await;
    raw.ask(2, "heed", json!(1)).await;
    raw.seen.reaches(|seen| &seen.begun, 2).await;
    raw.peer.close();
    raw.ask(3, "echo", json!(1)).await;
    let mut kinds = [Value::Null, Value::Null, Value::Null, Value::Null];
    for _ in 0..3 {
        let answer = raw.receive().await;
        let id = usize::try_from(answer["id"].as_u64().expect("a number")).expect("fits");
        assert!(kinds[id].is_null(), "answered twice: {answer}");
        kinds[id] = if answer["error"].is_null() { json!("ok") } else { answer["error"]["data"]["kind"].clone() };
    }
    assert_eq!(kinds, [Value::Null, json!("cancelled"), json!("ok"), json!("shutting_down")]);
    let report = raw.link.await.expect("no panic");
    assert!(matches!(report.end, LinkEnd::Closed), "{report:?}");
    assert_eq!(raw.lines.next_line().await.expect("reads"), None);
}

#[tokio::test]
async fn what_was_asked_before_the_end_of_input_is_answered() {
    let mut raw = raw(PeerLimits::default(), 4096);
    raw.send(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    raw.pipe.shutdown().await.expect("closes one way");
    assert_eq!(raw.receive().await["id"], 1);
    assert!(matches!(raw.link.await.expect("no panic").end, LinkEnd::Eof));
}

/// A model call of about `bytes` bytes.
pub(super) fn llm_request(bytes: usize) -> LlmRequestParams {
    let message = crate::types::Message::text(crate::types::Role::User, "x".repeat(bytes));
    LlmRequestParams { thread_id: ThreadId::mint(), messages: vec![message], tools: None, options: None }
}

#[tokio::test]
async fn a_result_that_does_not_fit_is_told() {
    let mut raw = raw(PeerLimits::default(), 4096);
    let peer = raw.peer.clone();
    let call = tokio::spawn(async move { peer.call::<OnLlmRequest>(&llm_request(1)).await });
    let id = raw.receive().await["id"].clone();
    raw.send(json!({ "jsonrpc": "2.0", "id": id, "result": {} }).to_string()).await;
    let answer: Result<LlmRequestResult, CallError> = call.await.expect("no panic");
    let error = answer.expect_err("no result");
    assert_eq!(
        error.to_string(),
        "the result of `on_llm_request` does not fit: missing field `message` at line 1 column 2"
    );
}

/// Counts how often is written.
struct Counting(DuplexStream, Arc<AtomicU32>);

impl AsyncWrite for Counting {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// One worker: which answers are ready together does not depend on how fast threads are.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn answers_that_are_ready_together_are_written_together() {
    const CALLS: u64 = 20;
    let (mut asks, reader) = duplex(8 * 1024);
    let (writer, answers) = duplex(8 * 1024);
    for id in 1..=CALLS {
        let line = wire::request_line(&Id::Number(id), OnToolCall::NAME, &tool_call("echo", json!(id)));
        asks.write_all(&line.expect("writes")).await.expect("there is room");
    }
    let writes = Arc::new(AtomicU32::new(0));
    let seen = Arc::new(Seen::default());
    let (_peer, link) = connect(reader, Counting(writer, writes.clone()), service(&seen), PeerLimits::default());
    let link = tokio::spawn(link);
    let mut lines = BufReader::new(answers).lines();
    for _ in 0..CALLS {
        lines.next_line().await.expect("the link writes").expect("the link is open");
    }
    let writes = writes.load(Ordering::SeqCst);
    assert!(writes <= 3, "{CALLS} answers took {writes} writes");
    drop(asks);
    assert!(matches!(link.await.expect("no panic").end, LinkEnd::Eof));
}
