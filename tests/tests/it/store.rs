//! Whole hosts whose store cannot be written, or holds more than it should.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use assistant_host::host::Host;
use assistant_host::limits::Limits;
use assistant_host::store;
use conformance::bed::{Bed, Client, SOON, assistant, script};
use conformance::doors::Doors;
use conformance::processes::marked;
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};

use crate::crash::{McpClient, mcp};
use crate::{HOST, RUNNER};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// What a file of the host may have at first, bytes: less than the log of changes has before it is copied back.
const FILE_BYTES: u32 = 3_000_000;

/// Calls a tool; an error is its JSON.
async fn call(client: &McpClient, tool: &'static str, arguments: Value) -> Result<Value, Value> {
    let arguments = arguments.as_object().cloned().expect("an object");
    let called = client.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments));
    let result = tokio::time::timeout(SOON, called).await.expect("it returns").expect("an answer");
    if result.is_error == Some(true) {
        let text = result.content.first().and_then(|content| content.as_text()).expect("a text");
        return Err(serde_json::from_str(&text.text).expect("an error is JSON"));
    }
    Ok(result.structured_content.expect("structured content"))
}

fn done(program: &str, args: &[&str]) {
    assert!(Command::new(program).args(args).status().expect("it runs").success(), "{program} {args:?}");
}

/// Waits until the runner of a process has gone.
async fn gone(process: &str) {
    let begun = Instant::now();
    while !marked(process).is_empty() {
        assert!(begun.elapsed() < SOON, "the runner lives on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_files_may_not_grow_says_so_and_goes_on_when_they_may() {
    let steps = script(&[("x", json!([{ "hang": true }]))]);
    let bed = Bed::new(RUNNER, &[("x.md", &assistant("x", ""))], &steps);
    let host = mcp(&bed, &steps);
    let mut limited = tokio::process::Command::new("prlimit");
    limited.arg(format!("--fsize={FILE_BYTES}:unlimited")).arg(host.as_std().get_program());
    limited.args(host.as_std().get_args()).stderr(Stdio::null()).kill_on_drop(true);
    let transport = TokioChildProcess::new(limited).expect("a process");
    let pid = transport.id().expect("a pid").to_string();
    let client: McpClient = ().serve(transport).await.expect("a client");
    let spawn = json!({ "assistant_id": "x", "query": "go" });
    let spawned = call(&client, "spawn_assistant", spawn.clone()).await.expect("it runs");
    let process = spawned["process_id"].as_str().expect("an id");
    let poll = async |wait_ms: u32| {
        let polled = call(&client, "poll_assistant", json!({ "process_id": process, "wait_ms": wait_ms })).await;
        polled.expect("reading goes on")["process"].clone()
    };
    let send = async |bytes: usize| {
        let message = json!({ "thread_id": spawned["thread_id"], "message": "x".repeat(bytes) });
        call(&client, "send_message", message).await.map(|sent| sent["message_id"].clone())
    };

    let (mut sent, mut error) = (Vec::new(), Value::Null);
    for bytes in [900_000, 90_000, 9_000, 500] {
        loop {
            assert!(sent.len() < 100, "the files do not grow without end");
            match send(bytes).await {
                Ok(id) => sent.push(id),
                Err(refused) => {
                    error = refused;
                    break;
                }
            }
        }
    }
    assert!(sent.len() > 2, "there was room at first");
    assert_eq!((&error["code"], &error["retryable"]), (&json!("internal"), &json!(true)), "{error}");
    let (message, hint) = (error["message"].as_str().unwrap_or_default(), error["hint"].as_str().unwrap_or_default());
    assert!(message.contains("assistant-host.db cannot be read or written"), "{error}");
    assert!(message.contains("ulimit -f") && hint.starts_with("Nothing was changed."), "{error}");

    // What ends meanwhile has ended as soon as that can be stored.
    assert_eq!(poll(0).await["done"], false);
    let runners = marked(process);
    assert!(!runners.is_empty(), "it has a runner");
    for runner in runners {
        done("kill", &["-9", &runner.to_string()]);
    }
    gone(process).await;
    send(500).await.expect_err("there is no room still");
    assert_eq!(poll(0).await["done"], false);

    done("prlimit", &["--pid", &pid, "--fsize=unlimited"]);
    let begun = Instant::now();
    let ended = loop {
        let now = poll(5_000).await;
        if now["done"] == true {
            break now;
        }
        assert!(begun.elapsed() < SOON, "it never ends: {now}");
    };
    assert_eq!(ended["reason"], "runner_exited", "{ended}");
    let again = call(&client, "spawn_assistant", spawn).await.expect("it runs");
    call(&client, "cancel_assistant", json!({ "process_id": again["process_id"] })).await.expect("it is cancelled");
    client.cancel().await.expect("it ends");

    let after = bed.open().await;
    after.host.close().await;
    drop(after);
    let db = rusqlite::Connection::open(bed.state().join(store::FILE)).expect("opens");
    for id in sent {
        let kept =
            db.query_row("SELECT count(*) FROM assistant_messages WHERE id = ?1", [id.as_str()], |row| row.get(0));
        assert_eq!(kept, Ok(1), "what was answered is there, once");
    }
}

/// Runs `serve`, obeying the rights of files as root too, and returns what it says at its end.
fn refused(doors: &Doors) -> String {
    let serve = doors.command(&["serve"]);
    let root = Command::new("id").arg("-u").output().expect("id").stdout == b"0\n";
    let mut command = if root {
        let mut obeying = Command::new("setpriv");
        obeying.arg("--bounding-set=-dac_override,-dac_read_search").arg(serve.get_program());
        obeying
    } else {
        Command::new(serve.get_program())
    };
    command.args(serve.get_args()).env("HOME", doors.dir.path());
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "it was served: {said}");
    said
}

/// Runs assistants to their end, and ends the host.
fn run(doors: &Doors, assistant: &str) {
    let (code, _, said) = doors.run(&["run", "--assistant", assistant, "go"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, _, said) = doors.run(&["stop", "--force"]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_file_or_a_folder_that_may_not_be_written_is_told_and_left_as_it_is() {
    let doors = Doors::new(HOST, "");
    run(&doors, "quick");
    let file = doors.state().join(store::FILE);
    let mode = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    };
    let before = std::fs::read(&file).expect("bytes");
    for (path, closed, open) in [(file.clone(), 0o400, 0o600), (doors.state(), 0o500, 0o700)] {
        mode(&path, closed);
        let said = refused(&doors);
        mode(&path, open);
        assert!(said.contains(&*file.to_string_lossy()), "it names the file: {said}");
        assert!(said.contains("see that this user may write the file and its folder"), "{said}");
        assert!(std::fs::read(&file).expect("bytes") == before, "the file is as it was");
    }
    let (code, shown, said) = doors.run(&["ps", "--json"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(shown.contains("quick"), "{shown}");
}

/// Moves all ends of a closed store into the past.
fn age(doors: &Doors, days: i64) {
    let db = rusqlite::Connection::open(doors.state().join(store::FILE)).expect("opens");
    let older = db.execute("UPDATE assistant_processes SET finished_at = finished_at - ?1", [days * DAY_MS]);
    assert_ne!(older, Ok(0), "there are processes");
}

fn vacuum(doors: &Doors) -> Value {
    let (code, shown, said) = doors.run(&["vacuum", "--json"]);
    assert_eq!(code, Some(0), "{said}");
    serde_json::from_str(&shown).expect("JSON")
}

#[test]
fn vacuum_removes_what_is_old_beside_a_host_at_work_and_without_one() {
    let doors = Doors::new(HOST, "");
    let (code, shown, said) = doors.run(&["vacuum", "--json"]);
    assert_eq!((code, shown.as_str()), (Some(0), ""), "{said}");
    assert!(said.contains("there is nothing to do"), "{said}");

    run(&doors, "quick");
    age(&doors, 40);
    let alone = vacuum(&doors);
    let counts = (&alone["by_host"], &alone["trees_removed"], &alone["processes_removed"]);
    assert_eq!(counts, (&json!(false), &json!(1), &json!(1)), "{alone}");

    run(&doors, "quick");
    age(&doors, 40);
    assert_eq!(doors.run(&["spawn", "--assistant", "hang", "go"]).0, Some(0));
    let beside = vacuum(&doors);
    assert_eq!((&beside["by_host"], &beside["trees_removed"]), (&json!(true), &json!(1)), "{beside}");
    assert!(beside["bytes_after"].as_u64() > Some(0), "{beside}");
    let living = doors.run(&["ps", "--json"]).1;
    assert!(living.contains("hang") && !living.contains("quick"), "{living}");
    let shown = doors.run(&["vacuum"]).1;
    assert!(shown.starts_with("removed  0 processes in 0 trees\nbefore   "), "{shown}");
    let doctor: Value = serde_json::from_str(&doors.run(&["doctor", "--no-calls", "--json"]).1).expect("JSON");
    assert!(doctor["database_bytes"].as_u64() > Some(0), "{doctor}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_removes_ended_trees_when_their_time_is_over_and_nothing_that_lives() {
    let spawn = json!({ "tool_name": "spawn_assistant", "arguments": { "assistant_id": "low", "query": "go" } });
    let done = json!({ "text": "done" });
    let steps = script(&[
        ("top", json!([{ "tool_calls": [spawn] }, done, done])),
        ("low", json!([{ "text": "low is done" }])),
        ("hang", json!([{ "hang": true }])),
    ]);
    let (top, low, hang) = (assistant("top", "spawn_assistant"), assistant("low", ""), assistant("hang", ""));
    let bed = Bed::new(RUNNER, &[("top.md", &top), ("low.md", &low), ("hang.md", &hang)], &steps);
    let passed = Arc::new(AtomicI64::new(0));
    let mut options = bed.options();
    let (real, ahead) = (options.clock.clone(), passed.clone());
    options.clock = Arc::new(move || real() + ahead.load(Ordering::Relaxed));
    let host = Host::open(options).await.expect("a host");
    let client = Client::of(&host).await;
    let top = client.spawn("top", "go").await;
    assert_eq!(client.end(&top).await["status"], "finished");
    let living = client.spawn("hang", "go").await;
    client.until(&living, "running").await;

    passed.store(29 * DAY_MS, Ordering::Relaxed);
    assert_eq!(host.retain().await.expect("nothing").trees, 0);
    passed.store(31 * DAY_MS, Ordering::Relaxed);
    let before = host.snapshot().await.expect("a snapshot").revision;
    let removed = host.retain().await.expect("removed");
    assert_eq!((removed.trees, removed.processes), (1, 2));
    assert_eq!(client.refused("poll_assistant", json!({ "process_id": top["process_id"] })).await, "unknown_process");
    assert_eq!(client.poll(&living).await["status"], "running");
    let listed = client.call("list_process", json!({})).await;
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "{listed}");
    assert!(host.snapshot().await.expect("a snapshot").revision >= before, "it never falls");

    client.call("cancel_assistant", json!({ "process_id": living["process_id"] })).await;
    assert_eq!(client.end(&living).await["status"], "cancelled");
    host.vacuum().await.expect("vacuumed");
    host.close().await;
    assert_eq!(Limits { retention_days: 0, retention_bytes: 0, ..Limits::default() }.zero(), None, "0 is for ever");
}
