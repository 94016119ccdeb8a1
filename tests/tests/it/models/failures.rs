//! Everything that goes wrong.

use assistant_host::limits::Limits;
use assistant_host::model::{ModelErrorKind, answer_with_retries};
use conformance::model_server::Then;
use tokio::sync::Semaphore;

use super::*;
use ModelErrorKind::{
    BadKey, ContextExceeded, Cut, Overloaded, RateLimited, Rejected, TimedOut, Unreachable, Unreadable,
};

/// A whole text event of each format, and no end.
fn beginning(wire: Wire) -> String {
    let whole = Say::new(vec![Said::text("hi")]).events(path(wire));
    let (end, between) = match wire {
        Wire::OpenAi => ("\"finish_reason\":\"stop\"", "\n\n"),
        Wire::Responses => ("event: response.completed", "\n\n"),
        Wire::Anthropic => ("event: message_delta", "\n\n"),
        Wire::Gemini => ("\"finishReason\"", "\r\n\r\n"),
        Wire::Ollama => ("\"done\":true", "\n"),
    };
    let end = whole.find(end).expect("there is an end");
    whole[..whole[..end].rfind(between).expect("events end") + between.len()].to_owned()
}

/// An event with this JSON.
fn event(wire: Wire, json: &Value) -> String {
    if wire == Wire::Ollama { format!("{json}\n") } else { format!("event: x\ndata: {json}\n\n") }
}

/// The formats of server-sent events.
const SSE: [Wire; 4] = [Wire::OpenAi, Wire::Responses, Wire::Anthropic, Wire::Gemini];

async fn check(reply: &Reply, kind: ModelErrorKind, message: &str) {
    check_of(&Wire::ALL, reply, kind, message).await;
}

async fn check_of(wires: &[Wire], reply: &Reply, kind: ModelErrorKind, message: &str) {
    for wire in wires.iter().copied() {
        let error = answer_to(wire, reply.clone()).await.expect_err("fails");
        assert_eq!((error.kind, error.provider.as_str()), (kind, wire.provider()), "{error}");
        assert!(error.message.contains(message), "`{}` does not say `{message}`", error.message);
    }
}

#[tokio::test]
async fn statuses_are_told_with_what_to_do() {
    let body = json!({ "type": "error", "error": { "type": "some_error", "message": "because of that" } });
    let reply = |status| Reply::error(status, &body);
    check(
        &reply(401),
        BadKey,
        "the key was refused; check the key variable or file of this model (status 401): because of that",
    )
    .await;
    check(&reply(403), BadKey, "(status 403)").await;
    check_of(&SSE, &reply(404), Rejected, "`m-1` or the address is unknown at 127.0.0.1:").await;
    let missing = Reply::error(404, &json!({ "error": "model 'm-1' not found" }));
    let told = "fetch it: `ollama pull m-1` (status 404): model 'm-1' not found";
    check_of(&[Wire::Ollama], &missing, Rejected, told).await;
    let tools = Reply::error(400, &json!({ "error": "registry.ollama.ai/library/m-1 does not support tools" }));
    check_of(&[Wire::Ollama], &tools, Rejected, "does not support tools").await;
    let key = json!([{ "error": { "code": 400, "status": "INVALID_ARGUMENT", "message": "API key not valid." } }]);
    check_of(&[Wire::Gemini], &Reply::error(400, &key), BadKey, "the key was refused").await;
    check(&reply(400), Rejected, "the provider refused the request (status 400): because of that").await;
    check(&reply(408), TimedOut, "(status 408)").await;
    check(&reply(429), RateLimited, "there were too many requests (status 429)").await;
    check(&reply(500), Overloaded, "(status 500)").await;
    check(&reply(503), Overloaded, "(status 503)").await;
    check(&reply(529), Overloaded, "(status 529)").await;
    let long = json!({ "error": { "code": "context_length_exceeded", "message": "too long" } });
    check(&Reply::error(400, &long), ContextExceeded, "the conversation is longer than `m-1` takes").await;
}

#[tokio::test]
async fn status_and_retry_after_are_there() {
    for wire in Wire::ALL {
        let reply = Reply::error(429, &json!({})).with_header("retry-after", "7");
        let error = answer_to(wire, reply).await.expect_err("fails");
        assert_eq!((error.status, error.retry_after_ms), (Some(429), Some(7_000)));
        let reply = Reply::error(529, &json!({})).with_header("retry-after-ms", "150");
        let error = answer_to(wire, reply).await.expect_err("fails");
        assert_eq!((error.status, error.retry_after_ms), (Some(529), Some(150)));
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_key() {
    for wire in Wire::ALL {
        let thief = ModelServer::start().await.expect("starts");
        let place = format!("{}{}", thief.base_url(), path(wire));
        let reply = Reply::error(307, &Value::Null).with_header("location", &place);
        let error = answer_to(wire, reply).await.expect_err("fails");
        assert_eq!((error.kind, error.status), (Rejected, Some(307)));
        assert!(error.message.contains("redirects, which is not followed"), "{error}");
        assert_eq!(thief.requests(), vec![]);
    }
}

#[tokio::test]
async fn what_breaks_off_is_cut() {
    check(&Reply::Close, Cut, "broke off").await;
    for wire in Wire::ALL {
        let begun = beginning(wire);
        let whole = Say::new(vec![Said::text("hi")]).events(path(wire));
        let no_end = whole.trim_end().rfind('\n').map(|at| whole[..=at].to_owned()).expect("events");
        let no_reason = match wire {
            Wire::OpenAi => format!("{begun}data: [DONE]\n\n"),
            Wire::Anthropic => format!("{begun}data: {{\"type\":\"message_stop\"}}\n\n"),
            Wire::Responses => {
                format!("{begun}{}", event(wire, &json!({ "type": "response.completed", "response": {} })))
            }
            Wire::Gemini => format!("{begun}{}", event(wire, &json!({ "candidates": [] }))),
            Wire::Ollama => format!("{begun}{}", event(wire, &json!({ "done": false }))),
        };
        let half = if wire == Wire::Ollama { "{\"message\":{\"con" } else { "data: {\"type\":\"me" };
        for reply in [
            Reply::events_then(begun.clone(), vec![Then::Break]),
            Reply::events(begun.clone()),
            Reply::events(no_end),
            Reply::events(no_reason),
            Reply::events(format!("{begun}{half}")),
            Reply::events(""),
        ] {
            let error = answer_to(wire, reply.clone()).await.expect_err("fails");
            assert_eq!(error.kind, Cut, "{error} for {reply:?}");
        }
    }
}

#[tokio::test]
async fn what_is_no_event_stream_is_unreadable() {
    let json = |body: Value| Reply::error(200, &body);
    let check_events = async |reply: Reply, message: &str| check_of(&SSE, &reply, Unreadable, message).await;
    check_events(json(json!({ "choices": [{ "message": { "content": "hi" } }] })), "no event stream").await;
    check_events(json(json!({})), "no event stream").await;
    let html = Reply::events("<html>\n\n<p>Welcome</p>\n\n</html>");
    check_events(html.clone(), "no event stream").await;
    check_events(Reply::events("data: {oops\n\n"), "no JSON object").await;
    check_events(Reply::events("data: 7\n\n"), "no JSON object").await;
    for reply in [html, Reply::events("data: {}\n\n"), Reply::events("{oops\n"), Reply::events("7\n")] {
        check_of(&[Wire::Ollama], &reply, Unreadable, "no JSON object").await;
    }
    // A whole answer in one line is one that has no end.
    check_of(&[Wire::Ollama], &json(json!({ "choices": [] })), Cut, "its end has not come").await;
    check(&Reply::events(vec![b'd', 0xff, 0xfe, b'\n', b'\n']), Unreadable, "no text in UTF-8").await;
    // An error with the status of an answer.
    let error = json!({ "error": { "message": "no such model", "code": 404 } });
    check_of(&SSE, &json(error), Rejected, "no such model").await;
}

#[tokio::test]
async fn an_error_inside_the_answer_is_told() {
    let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    for wire in Wire::ALL {
        let reply = Reply::events_then(beginning(wire) + &event(wire, &error), vec![Then::Hang]);
        check_of(&[wire], &reply, Overloaded, "in the middle of its answer: Overloaded").await;
    }
    let line = Reply::events("{\"error\":\"the server is overloaded\"}\n");
    check_of(&[Wire::Ollama], &line, Overloaded, ": the server is overloaded").await;
    let failed = |code: &str| {
        let error = json!({ "code": code, "message": "because" });
        let event = json!({ "type": "response.failed", "response": { "status": "failed", "error": error } });
        Reply::events(format!("data: {event}\n\n"))
    };
    check_of(&[Wire::Responses], &failed("server_error"), Overloaded, ": because").await;
    check_of(&[Wire::Responses], &failed("rate_limit_exceeded"), RateLimited, ": because").await;
    check_of(&[Wire::Responses], &failed("invalid_prompt"), Rejected, ": because").await;
    let flat = json!({ "type": "error", "code": "server_error", "message": "because", "param": null });
    check_of(&[Wire::Responses], &Reply::events(format!("data: {flat}\n\n")), Overloaded, ": because").await;
}

#[tokio::test]
async fn every_wait_has_an_end() {
    for wire in Wire::ALL {
        let server = ModelServer::start().await.expect("starts");
        let check = async |reply: Reply, change: &dyn Fn(&mut Bounds), want: &str| {
            server.push(reply);
            let mut config = config(&server, wire, "m-1");
            change(&mut config.bounds);
            let error = call(&NetworkModel::new(config).expect("sets up"), hello()).await.expect_err("fails");
            assert_eq!(error.kind, TimedOut, "{error}");
            assert!(error.message.contains(want), "{error}");
        };
        check(Reply::Silence, &|bounds| bounds.header_ms = 60, "did not begin to answer in time").await;
        let stops = Reply::events_then(beginning(wire), vec![Then::Hang]);
        check(stops, &|bounds| bounds.read_ms = 60, "stopped in the middle").await;
        // Life signs without end.
        let sign = if wire == Wire::Ollama { "\n" } else { ": still here\n\n" };
        let steady = (0..100).flat_map(|_| [Then::Write(sign.into()), Then::Wait(20)]).collect();
        check(Reply::events_then("", steady), &|bounds| bounds.call_ms = 150, "not whole after 150 ms").await;
        server.closed(2).await;
    }
}

#[tokio::test]
async fn a_slow_answer_is_waited_for() {
    for wire in Wire::ALL {
        let whole = Say::new(vec![Said::text("slow")]).events(path(wire));
        let pieces =
            whole.as_bytes().chunks(300).flat_map(|piece| [Then::Write(piece.to_vec()), Then::Wait(5)]).collect();
        let answer = answer_to(wire, Reply::events_then("", pieces)).await.expect("answers");
        assert_eq!(answer.message.content.as_text(), "slow");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_answer_ends_at_its_bound() {
    for wire in Wire::ALL {
        let server = ModelServer::start().await.expect("starts");
        let more = match wire {
            Wire::OpenAi => json!({ "choices": [{ "delta": { "content": "x".repeat(8_000) } }] }),
            Wire::Responses | Wire::Anthropic => json!({ "type": "ping", "pad": "x".repeat(8_000) }),
            Wire::Gemini | Wire::Ollama => json!({ "pad": "x".repeat(8_000) }),
        };
        let more = Then::Repeat(event(wire, &more).into_bytes(), 1_000_000);
        server.push(Reply::events_then(beginning(wire), vec![more]));
        let mut config = config(&server, wire, "m-1");
        config.bounds.answer_bytes = 1_000_000;
        let error = call(&NetworkModel::new(config).expect("sets up"), hello()).await.expect_err("fails");
        assert_eq!((error.kind, error.message.as_str()), (Unreadable, "the answer is longer than 1000000 bytes"));
        server.closed(1).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_without_events_is_not_gathered_for_long() {
    for wire in SSE {
        for (status, kind, message) in [(200, Unreadable, "no event stream"), (500, Overloaded, "(status 500)")] {
            let server = ModelServer::start().await.expect("starts");
            let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
            let then = vec![Then::Repeat(vec![b' '; 4_000], 1_000_000)];
            server.push(Reply::Raw { status, headers, then });
            let error = call(&model(&server, wire), hello()).await.expect_err("fails");
            assert_eq!(error.kind, kind);
            assert!(error.message.contains(message), "{error}");
            server.closed(1).await;
        }
    }
}

#[tokio::test]
async fn dropping_the_call_ends_it_at_the_provider() {
    for wire in Wire::ALL {
        let server = ModelServer::start().await.expect("starts");
        server.push(Reply::events_then(beginning(wire), vec![Then::Hang]));
        let model = model(&server, wire);
        let (seen, mut begun) = tokio::sync::mpsc::unbounded_channel();
        let see = move |_| seen.send(()).expect("is waited for");
        tokio::select! {
            outcome = model.answer(hello(), &see) => panic!("it ended by itself: {outcome:?}"),
            _ = begun.recv() => {}
        }
        server.closed(1).await;
    }
}

#[tokio::test]
async fn no_server_is_unreachable() {
    let gone = ModelServer::start().await.expect("starts");
    for wire in Wire::ALL {
        let config = config(&gone, wire, "m-1");
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("binds").local_addr().expect("has an address");
        let config = NetworkConfig { base_url: Some(format!("http://{free}")), ..config };
        let error = call(&NetworkModel::new(config).expect("sets up"), hello()).await.expect_err("fails");
        assert_eq!(error.kind, Unreachable);
        let want = format!("cannot connect to {free} (");
        assert!(error.message.starts_with(&want) && error.message.contains("check `base_url`"), "{error}");
    }
}

#[tokio::test]
async fn a_call_that_was_refused_for_now_is_made_again() {
    for wire in Wire::ALL {
        let server = ModelServer::start().await.expect("starts");
        server.push(Reply::error(429, &json!({})).with_header("retry-after-ms", "1"));
        server.push(Reply::error(529, &json!({})));
        server.push(Reply::text("at last"));
        let (permits, mut notices) = (Semaphore::new(1), Vec::new());
        let model = model(&server, wire);
        let told = |notice| notices.push(notice);
        let answer = answer_with_retries(&model, &hello(), &|_| {}, &Limits::default(), &permits, told).await;
        assert_eq!(answer.expect("answers").message.content.as_text(), "at last");
        let notices: Vec<_> = notices.iter().map(|notice| (notice.retry, notice.error.kind)).collect();
        assert_eq!(notices, [(1, RateLimited), (2, Overloaded)]);
        let bodies: Vec<_> = server.requests().into_iter().map(|request| request.body).collect();
        assert!(bodies.len() == 3 && bodies.iter().all(|body| *body == bodies[0]), "the same is asked again");
    }
}
