//! Our peer and our runner as jsonrpsee's own client sees them: an implementation of JSON-RPC that is not ours.

use std::sync::Arc;
use std::time::Duration;

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::ids::{ProcessId, ThreadId};
use assistant_protocol::methods::{OnProgress, OnToolCall};
use assistant_protocol::peer::{LinkEnd, LinkReport, Oddities, Peer, PeerLimits, connect};
use assistant_protocol::service::{CallCx, Service};
use assistant_protocol::types::{Empty, Part, ProgressParams, ToolCallParams, ToolCallResult};
use jsonrpsee_core::client::async_client::Client;
use jsonrpsee_core::client::{
    BatchResponse, ClientBuilder, ClientT, Error, IdKind, ReceivedMessage, TransportReceiverT, TransportSenderT,
};
use jsonrpsee_core::params::{ArrayParams, BatchRequestBuilder, ObjectParams};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split};
use tokio::task::JoinHandle;

struct Sender(WriteHalf<DuplexStream>);

impl TransportSenderT for Sender {
    type Error = std::io::Error;

    async fn send(&mut self, message: String) -> Result<(), Self::Error> {
        self.0.write_all(format!("{message}\n").as_bytes()).await
    }
}

struct Receiver(Lines<BufReader<ReadHalf<DuplexStream>>>);

impl TransportReceiverT for Receiver {
    type Error = std::io::Error;

    async fn receive(&mut self) -> Result<ReceivedMessage, Self::Error> {
        let line = self.0.next_line().await?;
        line.map(ReceivedMessage::Text).ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
    }
}

/// jsonrpsee's client at one end of a pipe.
fn client(end: DuplexStream, ids: IdKind) -> Client {
    let (read, write) = split(end);
    ClientBuilder::default()
        .id_format(ids)
        .request_timeout(Duration::from_secs(90))
        .build_with_tokio(Sender(write), Receiver(BufReader::new(read).lines()))
}

/// A tool that does what its name says.
async fn tool(_: Arc<()>, params: ToolCallParams, _: CallCx) -> Result<ToolCallResult, RpcError> {
    match params.tool_name.as_str() {
        "panic" => panic!("on purpose"),
        "refuse" => Err(RpcError::new(Kind::NotPermitted, "no").with("who", "you")),
        _ => Ok(ToolCallResult {
            content: vec![Part::text(params.arguments.to_string())],
            structured_content: None,
            is_error: false,
            end_run: None,
        }),
    }
}

async fn on_progress(_: Arc<()>, _: ProgressParams, _: CallCx) -> Result<Empty, RpcError> {
    Ok(Empty {})
}

fn peer_and_client(ids: IdKind) -> (Peer, JoinHandle<LinkReport>, Client) {
    let (ours, theirs) = duplex(4096);
    let (read, write) = split(ours);
    let service = Service::new(Arc::new(())).on(OnToolCall, tool).on(OnProgress, on_progress);
    let (peer, link) = connect(read, write, service, PeerLimits::default());
    (peer, tokio::spawn(link), client(theirs, ids))
}

fn object(params: Value) -> ObjectParams {
    let mut object = ObjectParams::new();
    for (name, value) in params.as_object().expect("an object") {
        object.insert(name, value).expect("JSON");
    }
    object
}

fn call(tool: &str, arguments: Value) -> ObjectParams {
    object(json!({ "thread_id": ThreadId::mint(), "call_id": "1", "tool_name": tool, "arguments": arguments }))
}

/// The code, the message and the data of an error answer.
fn answer(error: &Error) -> (i32, String, Value) {
    let Error::Call(error) = error else { panic!("no answer: {error}") };
    let data = error.data().map_or(Value::Null, |data| serde_json::from_str(data.get()).expect("JSON"));
    (error.code(), error.message().to_owned(), data)
}

#[tokio::test]
async fn our_peer_answers_a_client_that_is_not_ours() {
    for ids in [IdKind::Number, IdKind::String] {
        let (peer, link, client) = peer_and_client(ids);
        let empty: Value = client.request("ping", ObjectParams::new()).await.expect("pong");
        assert_eq!(empty, json!({}));

        // Many at once, some larger than the pipe.
        let calls = (0..200_usize).map(|n| {
            let client = &client;
            async move {
                let text = "x".repeat(n * 50);
                let result: Value = client.request("on_tool_call", call("echo", json!(text))).await.expect("answered");
                assert_eq!(result["content"][0]["text"], json!(text).to_string());
            }
        });
        futures::future::join_all(calls).await;

        let cases = [
            (call("refuse", json!(1)), 4005, "no", json!({ "kind": "not_permitted", "who": "you" })),
            (
                call("panic", json!(1)),
                -32603,
                "the handler of `on_tool_call` panicked",
                json!({ "kind": "internal_error" }),
            ),
            (
                object(json!({ "call_id": 1 })),
                -32602,
                "the params of `on_tool_call` do not fit: invalid type: integer `1`, expected a string at line 1 column 12",
                json!({ "kind": "invalid_params" }),
            ),
        ];
        for (params, code, message, data) in cases {
            let error = client.request::<Value, _>("on_tool_call", params).await.expect_err(message);
            assert_eq!(answer(&error), (code, message.to_owned(), data));
        }
        let mut list = ArrayParams::new();
        list.insert(1).expect("JSON");
        let error = client.request::<Value, _>("on_progress", list).await.expect_err("a list is no params");
        assert_eq!(answer(&error).0, -32602);
        let error = client.request::<Value, _>("eth_call", ObjectParams::new()).await.expect_err("unknown");
        assert_eq!(answer(&error).1, "the protocol has no method `eth_call`");

        // What version 1 does not have is counted, and the link goes on.
        client.notification("on_progress", ObjectParams::new()).await.expect("sent");
        client.request::<Value, _>("ping", ObjectParams::new()).await.expect("pong");
        assert_eq!(peer.oddities(), Oddities { without_id: 1, ..Oddities::default() });

        drop(client);
        let report = link.await.expect("no panic");
        assert!(matches!(report.end, LinkEnd::Eof), "{report:?}");
    }
}

#[tokio::test]
async fn a_batch_is_junk_and_nothing_else_suffers() {
    let (peer, _link, client) = peer_and_client(IdKind::Number);
    let mut batch = BatchRequestBuilder::new();
    batch.insert("ping", ObjectParams::new()).expect("JSON");
    let batch = client.batch_request::<Value>(batch);
    let ping = async {
        while peer.oddities().junk_lines == 0 {
            tokio::task::yield_now().await;
        }
        client.request::<Value, _>("ping", ObjectParams::new()).await
    };
    let pong = tokio::select! {
        answered = batch => { let _: BatchResponse<'_, Value> = answered.expect("answered"); panic!("a batch was answered") }
        pong = ping => pong,
    };
    assert_eq!(pong.expect("pong"), json!({}));
}

#[tokio::test]
async fn our_runner_answers_a_client_that_is_not_ours() {
    let (near, far) = duplex(4096);
    let (read, write) = split(far);
    let runner = tokio::spawn(assistant_runner::agent::serve(read, write));
    let client = client(near, IdKind::Number);
    let initialize = |version: u32| {
        object(json!({
            "protocol_version": version, "process_id": ProcessId::mint(), "thread_id": ThreadId::mint(),
            "host": { "name": "jsonrpsee", "version": "0.26" }, "max_frame_bytes": 1 << 20,
            "capabilities": { "unheard_of": true }, "limits": {}, "unknown": [1],
        }))
    };
    let error = client.request::<Value, _>("initialize", initialize(7)).await.expect_err("refused");
    assert_eq!(answer(&error).2, json!({ "kind": "unsupported_protocol", "protocol_version": 1 }));
    let told: Value = client.request("initialize", initialize(1)).await.expect("answered");
    assert_eq!(
        told,
        json!({
            "protocol_version": 1,
            "runner": { "name": "assistant-runner", "version": env!("CARGO_PKG_VERSION") },
            "max_frame_bytes": 64 << 20,
            "capabilities": { "messages": false },
        })
    );
    // A run that was cancelled before it began never asks its host, which this client could not answer.
    let cancelled: Value =
        client.request("cancel", object(json!({ "reason": "test", "grace_ms": 1 }))).await.expect("{}");
    let run = json!({ "assistant": { "id": "a", "name": "A", "system_prompt": "s" }, "query": "q" });
    let ended: Value = client.request("run", object(run)).await.expect("answered");
    assert_eq!((cancelled, ended), (json!({}), json!({ "stop_reason": "cancelled", "content": "" })));
    let error = client.request::<Value, _>("deliver_message", object(json!({}))).await.expect_err("not answered");
    assert_eq!(answer(&error).1, "this side of the link does not answer `deliver_message`");
    let empty: Value = client.request("shutdown", ObjectParams::new()).await.expect("{}");
    assert_eq!(empty, json!({}));
    let report = runner.await.expect("no panic");
    assert!(matches!(report.end, LinkEnd::Closed | LinkEnd::Eof), "{report:?}");
}
