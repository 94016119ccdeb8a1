//! A runner may end at any moment of its life: its process ends in exactly one told way, and nothing of it is left.

use std::path::PathBuf;

use conformance::bed::{Bed, Client, SOON, assistant, script};
use conformance::doors::{self, Doors, signal};
use conformance::processes::{children, files, marked};
use conformance::programs;
use serde_json::{Value, json};

use crate::{FAKE_RUNNER, HOST, RUNNER};

/// Steps of a runner that has answered `initialize`.
fn begun(steps: &[Value]) -> Vec<Value> {
    let answer = json!({ "protocol_version": 1, "runner": { "name": "fake" }, "max_frame_bytes": 1_000_000 });
    let mut all = vec![json!({ "wait": "initialize" }), json!({ "answer": "initialize", "result": answer })];
    all.extend_from_slice(steps);
    all
}

/// Steps of a runner that has answered `run` with `said`, and goes on with others.
fn answered(said: &str, steps: &[Value]) -> Vec<Value> {
    let result = json!({ "stop_reason": "finished", "content": said });
    let mut all = vec![json!({ "wait": "run" }), json!({ "answer": "run", "result": result })];
    all.extend_from_slice(steps);
    begun(&all)
}

/// A program that stays, in the runner's group.
fn child() -> Value {
    json!({ "start": ["sleep", "600"] })
}

/// The same in a session of its own, its parent gone.
fn stray() -> Value {
    json!({ "start": ["setsid", "-f", "sleep", "600"] })
}

/// A bed whose runners do these steps.
fn fake(steps: &[Value]) -> Bed {
    let script = script(&[("x", json!([{ "hang": true }]))]);
    let mut bed = Bed::new(FAKE_RUNNER, &[("x.md", &assistant("x", "send_message, recv_message"))], &script);
    let file = bed.dir.path().join("transcript.jsonl");
    let lines: Vec<String> = steps.iter().map(Value::to_string).collect();
    std::fs::write(&file, lines.join("\n")).expect("a file");
    bed.runner.args = vec![file.into()];
    bed.limits.shutdown_ms = 1_000;
    bed.limits.grace_ms = 1_000;
    bed
}

/// When a runner is killed that does not end by itself.
#[derive(Clone, Copy, PartialEq)]
enum Moment {
    /// It ends by itself.
    Itself,
    /// In a model call.
    Asking,
    /// In a model call, and a message waits for it.
    AskingWithMail,
    /// In a blocking wait, or unsettled.
    Waiting,
    /// It is not, but its process is cancelled.
    Cancelled,
}

/// How it ends: its status, its reason or its cause, a part of what its parent reads, and the exit code.
type Want<'a> = (&'a str, &'a str, &'a str, i64);

/// Waits until nothing is left of a process: neither its runner nor what that has started.
async fn gone(process: &Value) {
    let id = process.as_str().expect("an id").to_owned();
    let look = async {
        while !marked(&id).is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, look).await.unwrap_or_else(|_| panic!("{:?} are left of {id}", marked(&id)));
}

/// The process once its runner has exited.
async fn exited(client: &Client, spawned: &Value) -> Value {
    let look = async {
        loop {
            let now = client.end(spawned).await;
            if now["exit_code"].is_number() {
                return now;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, look).await.expect("the exit code is told")
}

async fn check(name: &str, bed: Bed, moment: Moment, want: Want<'_>) {
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    let id = spawned["process_id"].as_str().expect("an id");
    match moment {
        Moment::Itself => {}
        Moment::Asking => client.asked(&spawned).await,
        Moment::AskingWithMail => {
            client.asked(&spawned).await;
            client.call("send_message", json!({ "thread_id": spawned["thread_id"], "message": "too late" })).await;
        }
        Moment::Waiting => drop(client.until(&spawned, "waiting").await),
        Moment::Cancelled => {
            client.until(&spawned, "running").await;
            client.call("cancel_assistant", json!({ "process_id": id })).await;
        }
    }
    if !matches!(moment, Moment::Itself | Moment::Cancelled) {
        let runner = marked(id);
        assert!(!runner.is_empty(), "{name}: it has no runner");
        runner.into_iter().for_each(|pid| signal("KILL", pid.into()));
    }
    let ended = exited(&client, &spawned).await;
    let why = if ended["reason"].is_string() { &ended["reason"] } else { &ended["cause"] };
    let got = (ended["status"].as_str().unwrap_or_default(), why.as_str().unwrap_or_default());
    assert_eq!((got, ended["exit_code"].as_i64()), ((want.0, want.1), Some(want.3)), "{name}: {ended}");
    let mail = client.mail(&spawned).await;
    assert!(mail.len() == 1 && mail[0].contains(want.2), "{name}: told once, with `{}`: {mail:?}", want.2);
    gone(&spawned["process_id"]).await;
    assert_eq!(client.host.living().await.expect("a count"), 0, "{name}");
    let listed = client.call("list_process", json!({})).await;
    assert_eq!(listed["total_items"], listed["items"].as_array().map_or(0, Vec::len), "{name}");
    let next = client.spawn("x", "again").await;
    assert_eq!(next["capacity"]["running"], 1, "{name}: it holds no slot: {next}");
    client.host.close().await;
    gone(&next["process_id"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_may_exit_at_every_moment() {
    let asks = json!({ "call": "on_llm_request", "id": 1, "params": { "thread_id": "$thread_id", "messages": [] } });
    let arguments = json!({ "thread_id": "$thread_id", "message": "a word" });
    let params =
        json!({ "thread_id": "$thread_id", "call_id": "c", "tool_name": "send_message", "arguments": arguments });
    let calls = json!({ "call": "on_tool_call", "id": 1, "params": params });
    let exit = |code: u8| json!({ "exit": code });
    let run = json!({ "wait": "run" });
    let shutdown = json!({ "wait": "shutdown" });
    let ended = json!({ "answer": "shutdown", "result": {} });
    let said = json!({ "stderr": "out of luck" });
    let failed = |reason, told, code| ("failed", reason, told, code);
    let rows: Vec<(&str, Vec<Value>, Moment, Want<'_>)> = vec![
        (
            "before `initialize`",
            vec![said.clone(), exit(3)],
            Moment::Itself,
            failed("launch_failed", "exited with 3 before its run ended; it said: out of luck", 3),
        ),
        ("before `run`", begun(&[exit(4)]), Moment::Itself, failed("runner_exited", "exited with 4", 4)),
        (
            "in `run`",
            begun(&[run.clone(), said.clone(), exit(5)]),
            Moment::Itself,
            failed("runner_exited", "exited with 5 before its run ended; it said: out of luck", 5),
        ),
        (
            "in a model call",
            begun(&[run.clone(), asks.clone(), exit(6)]),
            Moment::Itself,
            failed("runner_exited", "exited with 6", 6),
        ),
        (
            "with children that hold its pipes",
            begun(&[run.clone(), child(), stray(), asks.clone(), exit(7)]),
            Moment::Itself,
            failed("runner_exited", "exited with 7", 7),
        ),
        (
            "killed in a model call",
            begun(&[run.clone(), child(), stray(), asks.clone(), json!({ "hang": true })]),
            Moment::Asking,
            failed("runner_exited", "exited with -9", -9),
        ),
        (
            "while it is cancelled",
            begun(&[run.clone(), json!({ "wait": "cancel" }), exit(8)]),
            Moment::Cancelled,
            ("cancelled", "requested", "Cancelled (requested).", 8),
        ),
        (
            "never, though it is cancelled",
            begun(&[run.clone(), child(), stray(), json!({ "hang": true })]),
            Moment::Cancelled,
            ("cancelled", "requested", "Cancelled (requested).", -9),
        ),
        ("after its answer", answered("done", &[exit(9)]), Moment::Itself, ("finished", "", "done", 9)),
        (
            "after `shutdown`",
            answered("done", &[shutdown.clone(), exit(10)]),
            Moment::Itself,
            ("finished", "", "done", 10),
        ),
        (
            "after the answer to `shutdown`",
            answered("done", &[child(), shutdown, ended, exit(11)]),
            Moment::Itself,
            ("finished", "", "done", 11),
        ),
        (
            "never, though its stdin is closed",
            answered("done", &[child(), stray(), json!({ "hang": true })]),
            Moment::Itself,
            ("finished", "", "done", -9),
        ),
    ];
    futures::future::join_all(rows.into_iter().map(|(name, steps, moment, want)| async move {
        let mut bed = fake(&steps);
        if (8..=11).contains(&want.3) {
            // It ends by itself, as soon as it comes to it.
            (bed.limits.shutdown_ms, bed.limits.grace_ms) = (20_000, 20_000);
        }
        check(name, bed, moment, want).await;
    }))
    .await;
    // In a tool call: what the tool has done stands.
    let bed = fake(&begun(&[run, calls, exit(12)]));
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    let ended = exited(&client, &spawned).await;
    assert_eq!((&ended["reason"], &ended["exit_code"]), (&json!("runner_exited"), &json!(12)), "{ended}");
    let mail = client.mail(&spawned).await;
    assert!(mail.last().is_some_and(|last| last.contains("exited with 12")), "{mail:?}");
    assert!(mail.len() == 1 || mail[0] == "a word", "{mail:?}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_runner_may_be_killed_at_every_moment() {
    let call = |tool: &str, arguments: Value| json!({ "tool_calls": [{ "tool_name": tool, "arguments": arguments }] });
    let hang = json!([{ "hang": true }]);
    let wait = json!([call("recv_message", json!({ "thread_id": "{{id_after.thread_id}}", "wait_ms": 600_000 }))]);
    let spawn = call("spawn_assistant", json!({ "assistant_id": "child", "query": "help" }));
    let unsettled = json!([spawn, { "text": "half of it" }]);
    let rows: Vec<(&str, Value, Moment, Want<'_>)> = vec![
        ("in a model call", hang.clone(), Moment::Asking, ("failed", "runner_exited", "exited with -9", -9)),
        ("with queued messages", hang.clone(), Moment::AskingWithMail, ("failed", "runner_exited", "with -9", -9)),
        ("in a blocking wait", wait, Moment::Waiting, ("failed", "runner_exited", "exited with -9", -9)),
        ("unsettled", unsettled, Moment::Waiting, ("failed", "runner_exited", "Until then it had:\nhalf of it", -9)),
    ];
    futures::future::join_all(rows.into_iter().map(|(name, steps, moment, want)| {
        let tools = "spawn_assistant, recv_message";
        let files = [("x.md", assistant("x", tools)), ("child.md", assistant("child", tools))];
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let bed = Bed::new(RUNNER, &files, &script(&[("x", steps), ("child", json!([{ "hang": true }]))]));
        async move { check(name, bed, moment, want).await }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_holds_the_pipes_delays_no_end() {
    let bed = fake(&begun(&[json!({ "wait": "run" }), child(), json!({ "exit": 7 })]));
    let begun = std::time::Instant::now();
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    client.end(&spawned).await;
    // Its grace, its shutdown and the life of its child are all longer on their own.
    assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{:?}", begun.elapsed());
    client.host.close().await;
}

/// A folder with the real program, and a runner beside it that does these steps.
fn beside(steps: &[Value]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let host = dir.path().join("assistant-host");
    programs::put(std::path::Path::new(HOST), &host);
    let transcript = dir.path().join("transcript.jsonl");
    let lines: Vec<String> = steps.iter().map(Value::to_string).collect();
    std::fs::write(&transcript, lines.join("\n")).expect("a file");
    let build = assistant_protocol::BUILD_ID;
    let runner = dir.path().join("assistant-runner");
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = --build-id ]; then echo '{build}'; exit; fi\nexec '{FAKE_RUNNER}' '{}'\n",
        transcript.display()
    );
    programs::write(&runner, &text);
    (dir, host)
}

/// What a process has open that is no file: readers of the store come and go as they are needed.
fn nameless(pid: u32) -> Vec<String> {
    files(pid).into_iter().filter(|file| !file.starts_with('/')).collect()
}

/// Waits until nothing of it runs any more.
fn all_end(client: &mut doors::RawClient, wait: &Value) {
    let begun = std::time::Instant::now();
    while client.must("wait_assistant", wait)["still_running"] != json!([]) {
        assert!(begun.elapsed() < SOON, "they never end");
    }
}

#[test]
fn two_hundred_runs_leave_no_process_no_zombie_and_no_open_pipe() {
    let steps = [child(), stray(), json!({ "start": ["setsid", "true"] }), json!({ "start": ["true"] })];
    let run = json!({ "stop_reason": "finished", "content": "done" });
    let steps = [
        &[json!({ "wait": "run" })],
        &steps[..],
        &[json!({ "answer": "run", "result": run }), json!({ "wait_eof": true })],
    ]
    .concat();
    let (_dir, program) = beside(&begun(&steps));
    let doors = Doors::new(program, "");
    let mut client = doors.client();
    assert!(client.shake());
    let host = doors.host_pid().expect("a host");
    let mut before = Vec::new();
    let mut spawned = Vec::new();
    for round in 0..11 {
        let ids: Vec<Value> = (0..20)
            .map(|_| client.must("spawn_assistant", &json!({ "assistant_id": "quick", "query": "go" })))
            .map(|answer| answer["process_id"].clone())
            .collect();
        let wait = json!({ "process_ids": ids, "mode": "all", "wait_ms": 25_000 });
        all_end(&mut client, &wait);
        for id in &ids {
            let polled = client.must("poll_assistant", &json!({ "process_id": id }));
            assert_eq!(polled["process"]["status"], "finished", "{polled}");
        }
        doors::until("no child is left", || children(host).is_empty().then_some(()));
        spawned.extend(ids);
        // What is opened once for good is open after the first round.
        if round == 0 {
            before = nameless(host);
        }
    }
    // That look may have come before the last pipe of its round was closed.
    let open = || (nameless(host).len() <= before.len()).then_some(());
    doors::until("no pipe and nothing of a process is open", open);
    for id in spawned {
        assert_eq!(marked(id.as_str().expect("an id")), Vec::<u32>::new());
    }
}

#[test]
fn what_a_killed_host_has_left_ends_with_the_next_one() {
    let (_dir, program) = beside(&begun(&[json!({ "wait": "run" }), stray(), json!({ "wait_eof": true })]));
    let doors = Doors::new(program, "");
    let mut client = doors.client();
    assert!(client.shake());
    let spawned = client.must("spawn_assistant", &json!({ "assistant_id": "quick", "query": "go" }));
    let id = spawned["process_id"].as_str().expect("an id").to_owned();
    doors::until("the stray runs", || (marked(&id).len() == 2).then_some(()));
    signal("KILL", doors.host_pid().expect("a host").into());
    // The runner ends with its stdin; what has left its group has to be found.
    // A call that reaches the old one yet is told so, and made again.
    let poll = json!({ "process_id": id });
    let polled = match client.call("poll_assistant", &poll) {
        Some(Ok(polled)) => polled,
        _ => client.must("poll_assistant", &poll),
    };
    assert_eq!(polled["process"]["reason"], "host_lost", "{polled}");
    doors::until("nothing is left", || marked(&id).is_empty().then_some(()));
}

#[test]
fn too_many_open_files_are_told_and_the_host_goes_on() {
    let doors = Doors::new(HOST, "");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "ulimit -n 90; exec \"$@\"", "sh"]).arg(HOST);
    let command = doors.command(&["mcp"]);
    shell.args(command.get_args()).env_clear().env("HOME", doors.dir.path()).current_dir(doors.dir.path());
    let mut client = doors::RawClient::start(shell);
    assert!(client.shake());
    let spawn = json!({ "assistant_id": "hang", "query": "go" });
    let spawned: Vec<Value> = (0..16).map(|_| client.must("spawn_assistant", &spawn)["process_id"].clone()).collect();
    let mut poll = |id: &Value| client.must("poll_assistant", &json!({ "process_id": id }))["process"].clone();
    let mut failed = Vec::new();
    let begun = std::time::Instant::now();
    while failed.is_empty() {
        assert!(begun.elapsed() < SOON, "none fails");
        failed = spawned.iter().map(&mut poll).filter(|one| one["status"] == "failed").collect();
    }
    assert_eq!(failed[0]["reason"], "launch_failed", "{failed:?}");
    assert!(failed[0]["error"].as_str().is_some_and(|text| text.contains("ulimit -n")), "{failed:?}");
    for id in &spawned {
        client.must("cancel_assistant", &json!({ "process_id": id }));
    }
    let wait = json!({ "mode": "all", "wait_ms": 20_000 });
    all_end(&mut client, &wait);
    doors::until("their runners have gone", || doors.runners().is_empty().then_some(()));
    let last = client.must("spawn_assistant", &json!({ "assistant_id": "quick", "query": "go", "run_mode": "sync" }));
    assert_eq!(last["status"], "finished", "{last}");
}
