//! The door: a real process, real clients, and what strange clients write.

use std::process::Stdio;
use std::time::Duration;

use conformance::bed::{Bed, SOON, assistant, script};
use rmcp::ServiceExt;
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

use crate::RUNNER;
use crate::crash::{McpClient, call, mcp};

fn bed() -> (Bed, Value) {
    let steps = script(&[("x", json!([{ "text": "done" }])), ("h", json!([{ "hang": true }]))]);
    let files = [("x.md", assistant("x", "")), ("h.md", assistant("h", ""))];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    (Bed::new(RUNNER, &files, &steps), steps)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_client_does_the_main_job() {
    let (bed, steps) = bed();
    let client: McpClient =
        ().serve(TokioChildProcess::new(mcp(&bed, &steps)).expect("a process")).await.expect("a client");
    let info = client.peer_info().expect("info");
    assert_eq!(info.server_info.as_ref().map(|info| info.name.as_str()), Some("assistants"));
    let tools = client.list_all_tools().await.expect("tools");
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(
        names,
        [
            "cancel_assistant",
            "get_pending_questions",
            "list_assistant",
            "list_process",
            "poll_assistant",
            "read_log",
            "recv_message",
            "reply_assistant",
            "search_assistant",
            "send_message",
            "spawn_assistant",
            "wait_assistant"
        ]
    );
    assert!(serde_json::to_string(&tools).expect("JSON").len() < 24 * 1024);
    let spawned =
        call(&client, "spawn_assistant", json!({ "assistantId": "x", "query": "go", "runMode": "sync" })).await;
    assert_eq!((&spawned["status"], &spawned["result"]["content"]), (&json!("finished"), &json!("done")));
    let listed = call(&client, "list_assistant", json!({ "pageSize": 1 })).await;
    assert_eq!(
        (&listed["totalItems"], &listed["next_page"], &listed["items"][0]["id"]),
        (&json!(2), &json!(2), &json!("h"))
    );
    client.cancel().await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_connects_without_a_process() {
    let (bed, _) = bed();
    let host = bed.try_open().await.expect("a host");
    let client = host.connect_in_process("the app").await.expect("a client");
    let spawned =
        call(&client, "spawn_assistant", json!({ "assistant_id": "x", "query": "go", "wait_ms": 20_000 })).await;
    assert_eq!(spawned["result"]["content"], "done");
    client.cancel().await.expect("it ends");
    host.close().await;
}

/// A client that writes lines.
struct Raw {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Raw {
    fn start(bed: &Bed, steps: &Value) -> Self {
        let mut child = mcp(bed, steps).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("stdout")).lines();
        Self { child, stdin, stdout }
    }

    async fn write(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().expect("stdin");
        stdin.write_all(text.as_bytes()).await.expect("written");
    }

    /// The next line, which has to be a message of the protocol.
    async fn read(&mut self) -> Value {
        let line = timeout(SOON, self.stdout.next_line()).await.expect("a line").expect("a line").expect("a line");
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    async fn ask(&mut self, id: u32, method: &str, params: Value) -> Value {
        self.write(&format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))).await;
        loop {
            let message = self.read().await;
            if message["id"] == id {
                return message;
            }
        }
    }

    async fn initialize(&mut self) {
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "raw", "version": "1" } });
        let answer = self.ask(0, "initialize", params).await;
        assert_eq!(answer["result"]["serverInfo"]["name"], "assistants");
        self.write("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").await;
    }

    async fn ends(mut self) -> i32 {
        let status = timeout(SOON, self.child.wait()).await.expect("it ends").expect("it ends");
        let mut rest = Vec::new();
        self.stdout.into_inner().read_to_end(&mut rest).await.expect("the rest");
        for line in String::from_utf8_lossy(&rest).lines() {
            serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("no message: {line}"));
        }
        assistant_code(status)
    }
}

fn assistant_code(status: std::process::ExitStatus) -> i32 {
    status.code().unwrap_or(-1)
}

#[tokio::test(flavor = "multi_thread")]
async fn junk_does_no_harm_and_the_end_of_input_ends_it() {
    let (bed, steps) = bed();
    let mut raw = Raw::start(&bed, &steps);
    raw.initialize().await;
    raw.write("this is no JSON\n\n").await;
    let unknown = raw.ask(1, "tools/call", json!({ "name": "fly", "arguments": {} })).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let hanging = raw
        .ask(2, "tools/call", json!({ "name": "spawn_assistant", "arguments": { "assistant_id": "h", "query": "go" } }))
        .await;
    assert_eq!(hanging["result"]["isError"], json!(false), "{hanging}");
    assert_eq!(
        hanging["result"]["structuredContent"],
        serde_json::from_str::<Value>(hanging["result"]["content"][0]["text"].as_str().expect("text")).expect("JSON")
    );
    raw.write("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/ca").await;
    drop(raw.stdin.take());
    assert_eq!(raw.ends().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_end_it_with_all_children_gone() {
    for signal in ["-INT", "-TERM"] {
        let (bed, steps) = bed();
        let mut raw = Raw::start(&bed, &steps);
        raw.initialize().await;
        raw.ask(
            1,
            "tools/call",
            json!({ "name": "spawn_assistant", "arguments": { "assistant_id": "h", "query": "go" } }),
        )
        .await;
        let pid = raw.child.id().expect("a pid").to_string();
        std::process::Command::new("kill").args([signal, &pid]).status().expect("kill");
        let state = bed.state().canonicalize().expect("the state");
        assert_eq!(raw.ends().await, 0, "{signal}");
        assert_eq!(crate::crash::runners_of(&state), Vec::<u32>::new(), "{signal}: nothing is left");
        let host = bed.try_open().await.expect("the state is free");
        host.close().await;
        let db = rusqlite::Connection::open(bed.state().join("assistant-host.db")).expect("the store");
        let row = db.query_row("SELECT status, cause FROM assistant_processes", [], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        });
        assert_eq!(row.expect("a row"), ("cancelled".to_owned(), "session_ended".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_era_needs_no_handshake() {
    let (bed, steps) = bed();
    let mut raw = Raw::start(&bed, &steps);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "raw", "version": "1" },
    });
    let found = raw.ask(1, "server/discover", json!({ "_meta": meta })).await;
    assert!(
        found["result"]["supportedVersions"].as_array().is_some_and(|all| all.contains(&json!("2026-07-28"))),
        "{found}"
    );
    let tools = raw.ask(2, "tools/list", json!({ "_meta": meta })).await;
    assert_eq!(tools["result"]["tools"].as_array().map(Vec::len), Some(12), "{tools}");
    drop(raw.stdin.take());
    assert_eq!(raw.ends().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_gives_a_sync_spawn_up_leaves_nothing_running() {
    let (bed, steps) = bed();
    let mut raw = Raw::start(&bed, &steps);
    raw.initialize().await;
    let spawn =
        json!({ "name": "spawn_assistant", "arguments": { "assistant_id": "h", "query": "go", "run_mode": "sync" } });
    raw.write(&format!("{}\n", json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": spawn }))).await;
    let state = bed.state();
    let row = async |wanted: &str| loop {
        let db = rusqlite::Connection::open(state.join("assistant-host.db")).expect("the store");
        let status = db.query_row("SELECT status FROM assistant_processes", [], |row| row.get::<_, String>(0));
        if status.is_ok_and(|status| status == wanted) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    timeout(SOON, row("running")).await.expect("it runs");
    raw.write("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":7}}\n").await;
    timeout(SOON, row("cancelled")).await.expect("it is cancelled");
    drop(raw.stdin.take());
    assert_eq!(raw.ends().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_before_it_began_is_no_fault() {
    let (bed, steps) = bed();
    let mut raw = Raw::start(&bed, &steps);
    drop(raw.stdin.take());
    assert_eq!(raw.ends().await, 0);
}
