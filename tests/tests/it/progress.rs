//! Progress of calls: what a client with a token is told, and that one without is told nothing.

use assistant_host::caller::Within;
use assistant_host::mcp;
use conformance::bed::{Bed, SOON, assistant, script};
use rmcp::model::{CallToolRequestParams, ProgressNotificationParam};
use rmcp::service::{NotificationContext, RoleClient};
use rmcp::{ClientHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::RUNNER;

/// Bytes on their way.
const PIPE_BYTES: usize = 64 * 1024;

/// A client that keeps what it is told, with the time.
struct Told(mpsc::UnboundedSender<(Instant, ProgressNotificationParam)>);

impl ClientHandler for Told {
    async fn on_progress(&self, told: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        // Nobody listens after the test.
        drop(self.0.send((Instant::now(), told)));
    }
}

/// An assistant that reads a file and thinks for a while then.
fn bed() -> Bed {
    let steps = json!([
        { "tool_calls": [{ "tool_name": "list_files", "arguments": {} }] },
        { "delay_ms": 2_500, "text": "done" },
    ]);
    Bed::new(RUNNER, &[("poet.md", &assistant("poet", "list_files"))], &script(&[("poet", steps)]))
}

/// A host of the bed, and a pipe to its door.
async fn door(bed: &Bed) -> (assistant_host::host::Host, DuplexStream) {
    let host = bed.try_open().await.expect("a host");
    let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
    let serving = host.clone();
    tokio::spawn(async move {
        mcp::serve(&serving, "local", Within::default(), tokio::io::split(theirs), CancellationToken::new())
            .await
            .expect("served");
    });
    (host, ours)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_call_tells_what_the_process_does() {
    let bed = bed();
    let (host, pipe) = door(&bed).await;
    let (sender, mut told) = mpsc::unbounded_channel();
    let client = Told(sender).serve(tokio::io::split(pipe)).await.expect("connects");
    let spawn = json!({ "assistant_id": "poet", "query": "go", "run_mode": "sync", "name": "haiku" });
    let call = CallToolRequestParams::new("spawn_assistant").with_arguments(spawn.as_object().cloned().expect("a map"));
    let result = tokio::time::timeout(SOON, client.call_tool(call)).await.expect("it returns").expect("it succeeds");
    assert_eq!(result.structured_content.expect("data")["status"], "finished");
    let mut lines = Vec::new();
    let mut last: Option<(Instant, f64)> = None;
    while let Ok((at, one)) = told.try_recv() {
        if let Some((before, progress)) = last {
            assert!(one.progress > progress, "it grows");
            // What is sent a second later may come less than that later: the one before may have come late.
            assert!((at - before).as_millis() > 300, "at most one a second");
        }
        last = Some((at, one.progress));
        lines.push(one.message.expect("words"));
    }
    assert!((1..=5).contains(&lines.len()), "{lines:?}");
    assert!(lines.iter().all(|line| line.starts_with("haiku: ")), "{lines:?}");
    let thinks = "haiku: running, 2 model calls, last: asks scripted";
    assert!(lines.iter().any(|line| line == thinks), "{lines:?}");
    client.cancel().await.expect("it ends");
    host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_a_token_is_told_nothing() {
    let bed = bed();
    let (host, pipe) = door(&bed).await;
    let (read, mut write) = tokio::io::split(pipe);
    let mut lines = BufReader::new(read).lines();
    let call = |id: u64, meta: Value| {
        let arguments = json!({ "assistant_id": "poet", "query": "go", "run_mode": "sync" });
        let params = json!({ "name": "spawn_assistant", "arguments": arguments, "_meta": meta });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let client = json!({ "name": "t", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    for line in [
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        call(1, json!({})),
        call(2, json!({ "progressToken": "mine" })),
    ] {
        write.write_all(format!("{line}\n").as_bytes()).await.expect("written");
    }
    let mut answered = Vec::new();
    let mut tokens = Vec::new();
    while answered.len() < 3 {
        let line =
            tokio::time::timeout(SOON, lines.next_line()).await.expect("in time").expect("read").expect("a line");
        let line: Value = serde_json::from_str(&line).expect("JSON");
        match line["method"].as_str() {
            Some("notifications/progress") => tokens.push(line["params"]["progressToken"].clone()),
            Some(_) => {}
            None => answered.push(line["id"].clone()),
        }
    }
    assert!(!tokens.is_empty() && tokens.iter().all(|token| token == "mine"), "{tokens:?}");
    drop((lines, write));
    host.close().await;
}
