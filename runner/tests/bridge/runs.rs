//! Connections and runs come and go.

use assistant_runner::adapter::bridge::Bridge;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;

use crate::kit::{Adapter, Client, SOON, bridge, program};

const NO_RUN: &str = "The assistant has no run at the moment, and so no tools.";
const OVER: &str = "The run was ended before this call was answered. It may have had its effect.";

#[tokio::test]
async fn the_agent_is_told_to_start_this_program_as_it_was_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let bridge = Bridge::open(folder.path(), (program(), vec!["runner".into()])).expect("opens");
    assert_eq!(
        (&bridge.server().command, bridge.server().args.as_slice()),
        (&program(), &["runner", "bridge"].map(String::from)[..])
    );
    let gone = Bridge::open(folder.path(), ("/gone/program".into(), Vec::new())).expect_err("refused");
    assert_eq!(gone.to_string(), "/gone/program is not there any more, and the agent would have to start it");
    // A socket is there already: it is another adapter's.
    assert!(Bridge::open(folder.path(), (program(), Vec::new())).is_err());
    let (one, other) = (Adapter::start(), Adapter::start());
    assert_ne!(one.bridge.server().env[1], other.bridge.server().env[1], "each has a token of its own");
}

#[tokio::test]
async fn a_connection_serves_one_run_after_the_other() {
    let adapter = Adapter::start();
    let client = Client::start(adapter.bridge.server()).await;
    assert_eq!(client.tools().await, Vec::<String>::new());
    assert_eq!(client.call("echo", json!({})).await, (NO_RUN.into(), true));
    let first = adapter.run(&["echo", "ask_parent"], false);
    timeout(SOON, client.ears.changed.notified()).await.expect("told");
    assert_eq!(client.tools().await, ["echo", "ask_parent"]);
    let ending = async {
        adapter.host.called("ask_parent", 1).await;
        drop(first);
    };
    let (answer, ()) = tokio::join!(client.call("ask_parent", json!({})), ending);
    assert_eq!(answer, (OVER.to_owned(), true));
    adapter.host.cancelled(1).await;
    assert_eq!(client.tools().await, Vec::<String>::new());
    let second = adapter.run(&["echo"], false);
    timeout(SOON, client.ears.changed.notified()).await.expect("told");
    assert_eq!(client.tools().await, ["echo"]);
    // One that begins before the last has ended takes its place, and is not ended by it.
    let third = adapter.run(&["echo"], false);
    drop(second);
    assert_eq!(client.call("echo", json!({})).await, ("{}".into(), false));
    drop(third);
    assert_eq!(client.call("echo", json!({})).await, (NO_RUN.into(), true));
}

#[tokio::test]
async fn a_bridge_that_is_killed_cancels_its_calls() {
    let adapter = Adapter::start();
    let _run = adapter.run(&["ask_parent", "echo"], false);
    let mut client = Client::start(adapter.bridge.server()).await;
    let killed = async {
        adapter.host.called("ask_parent", 1).await;
        client.child.start_kill().expect("kills");
        adapter.host.cancelled(1).await;
    };
    let arguments = rmcp::model::CallToolRequestParams::new("ask_parent");
    let (answer, ()) = tokio::join!(client.service.call_tool(arguments), killed);
    assert!(answer.is_err(), "{answer:?}");
    let other = Client::start(adapter.bridge.server()).await;
    assert_eq!(other.call("echo", json!({})).await, ("{}".into(), false));
}

/// What one is answered that writes these lines and reads as many answers.
async fn answers(adapter: &Adapter, lines: &[Value], count: usize) -> Vec<Value> {
    let mut child = bridge(adapter.bridge.server()).spawn().expect("starts");
    let mut stdin = child.stdin.take().expect("piped");
    for line in lines {
        stdin.write_all(format!("{line}\n").as_bytes()).await.expect("is read");
    }
    let mut stdout = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut answers = Vec::new();
    for _ in 0..count {
        let line = timeout(SOON, stdout.next_line()).await.expect("soon").expect("reads").expect("a line");
        answers.push(serde_json::from_str(&line).expect("JSON"));
    }
    answers
}

#[tokio::test]
async fn every_revision_of_the_protocol_is_spoken() {
    let adapter = Adapter::start();
    let _run = adapter.run(&["echo"], false);
    let call = |meta: Value| {
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
                "params": { "name": "echo", "arguments": { "a": 1 }, "_meta": meta } })
    };
    let said = |answer: &Value| answer["result"]["content"][0]["text"].clone();
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } } });
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let told = answers(&adapter, &[hello, ready, call(json!({}))], 2).await;
        assert_eq!((&told[0]["result"]["protocolVersion"], said(&told[1])), (&json!(revision), json!("{\"a\":1}")));
    }
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let told = answers(&adapter, &[call(meta)], 1).await;
    assert_eq!(said(&told[0]), "{\"a\":1}", "{told:?}");
}

#[tokio::test]
async fn a_client_that_closes_its_end_ends_its_bridge_and_its_calls() {
    let adapter = Adapter::start();
    let _run = adapter.run(&["ask_parent"], false);
    let mut child = bridge(adapter.bridge.server()).spawn().expect("starts");
    let (mut stdin, mut stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "ask_parent" } }),
    ];
    for line in lines {
        let line = format!("{line}\n");
        stdin.write_all(line.as_bytes()).await.expect("is read");
    }
    adapter.host.called("ask_parent", 1).await;
    drop(stdin);
    adapter.host.cancelled(1).await;
    let status = timeout(SOON, child.wait()).await.expect("soon").expect("ends");
    assert_eq!(status.code(), Some(0));
    let mut out = String::new();
    stdout.read_to_string(&mut out).await.expect("reads");
    assert!(out.starts_with("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":"), "{out}");
}

#[tokio::test]
async fn the_end_of_the_adapter_ends_its_bridges_and_leaves_nothing() {
    let mut adapter = Adapter::start();
    let _run = adapter.run(&["echo"], false);
    let server = adapter.bridge.server().clone();
    let mut client = Client::start(&server).await;
    assert_eq!(client.call("echo", json!({})).await, ("{}".into(), false));
    let other = Adapter::start();
    drop(std::mem::replace(&mut adapter.bridge, other.bridge));
    let status = timeout(SOON, client.child.wait()).await.expect("soon").expect("ends");
    assert_eq!(status.code(), Some(0));
    assert!(!std::path::Path::new(&server.env[0].1).exists(), "the socket is gone");
    // One that is started now is told so.
    let late = bridge(&server).stdin(std::process::Stdio::null()).output().await.expect("runs");
    let err = String::from_utf8_lossy(&late.stderr).into_owned();
    assert_eq!(late.status.code(), Some(2));
    assert!(err.contains("the adapter of the assistant is not at ") && err.contains(" any more"), "{err}");
}

/// In a process of its own: an adapter that is killed, and a bridge below it whose pipes are those of the test.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_adapter_that_is_killed_ends_its_bridges() {
    use std::process::Stdio;
    use tokio::process::Command;

    /// Says that this process is the adapter that is going to be killed.
    const KILLED: &str = "ASSISTANT_TEST_KILLED";
    if std::env::var_os(KILLED).is_some() {
        let adapter = Adapter::start();
        let _run = adapter.run(&["echo"], false);
        let mut command = bridge(adapter.bridge.server());
        let mut child =
            command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).kill_on_drop(false).spawn().expect("starts");
        child.wait().await.expect("ends");
        return;
    }
    let name = "runs::an_adapter_that_is_killed_ends_its_bridges";
    let mut adapter = Command::new(std::env::current_exe().expect("a program"))
        .args(["--exact", name, "--nocapture"])
        .env(KILLED, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("starts");
    let (mut stdin, stdout) = (adapter.stdin.take().expect("piped"), adapter.stdout.take().expect("piped"));
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\
                \"capabilities\":{},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}\n";
    stdin.write_all(ping.as_bytes()).await.expect("is read");
    let mut lines = BufReader::new(stdout).lines();
    let answered = async {
        while let Some(line) = lines.next_line().await.expect("reads") {
            if line.contains("serverInfo") {
                return true;
            }
        }
        false
    };
    assert!(timeout(SOON, answered).await.expect("soon"), "the bridge works");
    adapter.start_kill().expect("kills");
    // The bridge has the pipe too: its end is the end of both.
    let ended = async { while lines.next_line().await.expect("reads").is_some() {} };
    timeout(SOON, ended).await.expect("the bridge ends soon");
}
