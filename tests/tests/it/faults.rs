//! The faults by which others of this kind lose work, and where it is shown that this one has none of them.
//!
//! | fault | shown by |
//! | --- | --- |
//! | 1 messages lost where many come at once | `mail::fifty_senders_lose_nothing`, `two_hosts_never_share_a_state` |
//! | 2 orphans after SIGTERM or `kill -9` | `mcp::signals_end_it_with_all_children_gone`, `crash::kill_9_loses_nothing_and_leaves_nothing`, `endings::what_a_killed_host_has_left_ends_with_the_next_one` |
//! | 3 `running` for ever after a crash | `crash::kill_9_loses_nothing_and_leaves_nothing`, `doors::a_run_outlives_its_client_and_its_result_outlives_the_host` |
//! | 4 a cancel that is ignored, or ends the server | `life::a_runner_that_ignores_cancel_is_killed`, `mcp::a_client_that_gives_a_sync_spawn_up_leaves_nothing_running`, `cascade` |
//! | 5 a failure told as success | `failures_are_told_as_such`, `bad_input::a_failing_model_is_the_reason` |
//! | 6 a wrong folder kills the server | `a_wrong_folder_is_told_and_harms_nobody` |
//! | 7 torn reads under polling; strays on stdout | `sixty_ends_at_once_fail_no_poll`; each raw client reads all of stdout as messages |
//! | 8 prompts on the command line | `ten_megabytes_go_over_the_pipe_and_nothing_on_the_command_line` |
//! | 9 much output, long lines, bytes that are no text | `much_output_is_bounded_and_the_result_is_kept`, `life` (`huge-line`, `garbage`) |
//! | 10 a hidden cap on what runs at once | `spawn::what_finds_no_slot_queues_in_order` |
//! | 11 a grandchild that holds the pipe delays the end | `endings::a_child_that_holds_the_pipes_delays_no_end` |
//! | 12 dependencies that rot | `Cargo.lock`; `embedding::the_core_pulls_in_what_it_needs_and_no_more` |
//! | 13 tools that fill the context | the test of the tool texts: 24 KB in all |
//!
//! What users of such systems complain about:
//!
//! | complaint | shown by |
//! | --- | --- |
//! | a call times out while work goes on | `a_spawn_is_answered_at_once`, `mail::a_wait_that_is_too_long_is_clamped_and_told` |
//! | a stuck tool or child freezes its parent | `endings`, `stall::a_runner_that_does_not_answer_a_ping_is_stuck`, `life::the_wall_limit_ends_a_run` |
//! | a late completion is lost | `a_spawn_is_answered_at_once`, `doors::a_run_outlives_its_client_and_its_result_outlives_the_host` |
//! | zombies, servers that are never reaped | `endings::two_hundred_runs_leave_no_process_no_zombie_and_no_open_pipe` |
//! | a record says `running` after a crash | fault 3 |
//! | finished, and the program never exits | `endings::a_runner_may_exit_at_every_moment` |
//! | started, and nothing runs | `life::every_runner_ends_in_one_told_way`, `life::a_missing_runner_is_told` |
//! | completed without a word | `life::every_runner_ends_in_one_told_way` (`empty`) |
//! | a time-out is told to nobody | `a_time_out_tells_the_parent_what_there_was` |
//! | the sender is told `sent` and it waits | `a_sender_is_told_that_its_message_waits` |
//! | runaway recursion | `cascade::one_that_always_spawns_five_more_is_held_by_its_tree` |
//! | interrupts that do not cascade | `cascade::a_tree_of_five_hundred_is_cancelled_in_one_go` |
//! | a child gets more tools than its parent | `spawn::nobody_gets_tools_by_spawning_someone_who_has_them` |
//! | cost of children is not counted | `budgets` |
//! | `database is locked` | `sixty_ends_at_once_fail_no_poll`, `mail::fifty_senders_lose_nothing`: one writer |
//! | those that have completed keep their slots | `endings::a_runner_may_exit_at_every_moment`: the next one is the only that runs |

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assistant_host::host::OpenError;
use assistant_host::model::{Answer, Ask, Model, ModelError, Progress};
use assistant_host::tools::CallError;
use assistant_protocol::types::{FinishReason, Message, Role, Usage};
use conformance::bed::{Bed, SOON, assistant, script};
use conformance::doors::Doors;
use conformance::processes::marked;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{FAKE_RUNNER, HOST, RUNNER};

/// A bed with one assistant, `x`, that does these steps.
fn bed(steps: Value) -> Bed {
    Bed::new(RUNNER, &[("x.md", &assistant("x", "send_message"))], &script(&[("x", steps)]))
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_never_share_a_state() {
    let bed = bed(json!([{ "text": "done" }]));
    let first = bed.open().await;
    assert!(matches!(bed.try_open().await.err(), Some(OpenError::Held { .. })), "one host holds it");
    first.host.close().await;
    drop(first);
    // Soon: what another test forks meanwhile keeps the lock until it has become its program.
    bed.open().await.host.close().await;
}

#[test]
fn failures_are_told_as_such() {
    let doors = Doors::new(HOST, "");
    let mut client = doors.client();
    assert!(client.shake());
    let nobody = client.call("no_such_tool", &json!({})).expect("an answer").expect_err("there is no such tool");
    assert!(nobody["message"].as_str().is_some_and(|text| text.contains("no_such_tool")), "{nobody}");
    let odd = client.ask("tools/odd", &json!({})).expect("an answer");
    assert_eq!(odd["error"]["code"], -32601, "{odd}");
    let wrong = client.call("spawn_assistant", &json!({ "assistant_id": "nobody", "query": "go" }));
    assert_eq!(wrong.expect("an answer").expect_err("nobody")["code"], "unknown_assistant");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_folder_is_told_and_harms_nobody() {
    let bed = bed(json!([{ "hang": true }]));
    let client = bed.open().await;
    let other = client.spawn("x", "go").await;
    client.asked(&other).await;
    let asked = json!({ "assistant_id": "x", "query": "go", "working_dir": "not/there" });
    let error = client.try_call("spawn_assistant", asked).await.expect_err("no such folder");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("not/there does not exist")), "{error}");
    // One that goes after it was named.
    let project = bed.project();
    std::fs::create_dir(project.join("here")).expect("a folder");
    let asked = json!({ "assistant_id": "x", "query": "go", "working_dir": "here" });
    let gone = client.call("spawn_assistant", asked).await;
    std::fs::remove_dir(project.join("here")).expect("it goes");
    client.asked(&gone).await;
    assert_eq!(client.poll(&other).await["status"], "running");
    client.host.close().await;
}

#[test]
fn sixty_ends_at_once_fail_no_poll() {
    let doors = Doors::new(HOST, "[limits]\nrunning_per_session = 60\nmodel_calls = 60\n");
    let mut client = doors.client();
    assert!(client.shake());
    let spawned: Vec<Value> = (0..60)
        .map(|_| client.must("spawn_assistant", &json!({ "assistant_id": "slow", "query": "go" })))
        .map(|answer| answer["process_id"].clone())
        .collect();
    let (mut left, mut polls) = (spawned.clone(), 0);
    let begun = Instant::now();
    while !left.is_empty() {
        assert!(begun.elapsed() < SOON, "they never end");
        // All of them asked before the first answer is read.
        let asked: Vec<u64> = spawned
            .iter()
            .map(|id| client.send_call("poll_assistant", &json!({ "process_id": id })).expect("it is written"))
            .collect();
        left.clear();
        for (id, polled) in spawned.iter().zip(client.answers(&asked)) {
            assert!(polled["error"].is_null() && polled["result"]["isError"] != true, "no poll fails: {polled}");
            polls += 1;
            let process = &polled["result"]["structuredContent"]["process"];
            match process["status"].as_str() {
                Some("finished") => {}
                Some("queued" | "starting" | "running" | "waiting") => left.push(id.clone()),
                _ => panic!("{process}"),
            }
        }
    }
    assert!(polls >= 60);
    for id in &spawned {
        let thread = client.must("poll_assistant", &json!({ "process_id": id }))["process"]["thread_id"].clone();
        let mail = client.must("recv_message", &json!({ "thread_id": thread }));
        assert_eq!(mail["messages"][0]["content"], "the slow result", "{mail}");
    }
}

/// Answers when it is let, with the size of what it was asked with.
struct Weighs(Semaphore);

impl Model for Weighs {
    fn answer<'a>(&'a self, ask: Ask, _: &'a (dyn Fn(Progress) + Sync)) -> BoxFuture<'a, Result<Answer, ModelError>> {
        async move {
            drop(self.0.acquire().await);
            let bytes: usize = ask.messages.iter().map(|message| message.content.as_text().len()).sum();
            Ok(Answer {
                message: Message::text(Role::Assistant, bytes.to_string()),
                finish: FinishReason::Stop,
                usage: Usage::default(),
                model: "weighs".to_owned(),
            })
        }
        .boxed()
    }

    fn provider(&self) -> &str {
        "weighs"
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_megabytes_go_over_the_pipe_and_nothing_on_the_command_line() {
    const PIECE: usize = 1_000_000;
    let model = Arc::new(Weighs(Semaphore::new(0)));
    let mut bed = Bed::with_model(RUNNER, &[("x.md", &assistant("x", ""))], model.clone());
    (bed.limits.tokens_per_tree, bed.limits.tokens_per_day) = (u64::MAX / 4, u64::MAX / 4);
    let client = bed.open().await;
    let task = format!("SECRET{}", "x".repeat(PIECE));
    let spawned = client.spawn("x", &task).await;
    client.asked(&spawned).await;
    for _ in 0..10 {
        let arguments = json!({ "thread_id": spawned["thread_id"], "message": "y".repeat(PIECE) });
        client.call("send_message", arguments).await;
    }
    for pid in marked(spawned["process_id"].as_str().expect("an id")) {
        for file in ["cmdline", "environ"] {
            let text = std::fs::read(Path::new("/proc").join(pid.to_string()).join(file)).expect("it runs");
            assert!(!String::from_utf8_lossy(&text).contains("SECRET"), "{file}");
        }
    }
    model.0.add_permits(1_000);
    let ended = client.end(&spawned).await;
    assert_eq!(ended["status"], "finished", "{ended}");
    let id = spawned["process_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let row = client.host.process(id).await.expect("a look").expect("a row");
    let weighed: usize = row.result.as_deref().and_then(|said| said.parse().ok()).expect("a number");
    assert!(weighed > 11 * PIECE, "the model has seen all of it: {weighed}");
    // A new runner gets it in its first line.
    let asked = json!({ "resume_process_id": spawned["process_id"], "query": "again", "run_mode": "sync" });
    let again = client.call("spawn_assistant", asked).await;
    let again = client.end(&again).await;
    assert_eq!(again["status"], "finished", "{again}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn much_output_is_bounded_and_the_result_is_kept() {
    const FLOOD: usize = 32 * 1024 * 1024;
    let mut bed = bed(json!([{ "text": "unused" }]));
    let file = bed.dir.path().join("transcript.jsonl");
    let flood = format!(
        "yes 'a line of output' | head -c {FLOOD} >&2; head -c {FLOOD} /dev/zero >&2; \
         printf '\\377\\376 no text\\n' >&2; echo go > go"
    );
    let answer = json!({ "protocol_version": 1, "runner": { "name": "fake" }, "max_frame_bytes": 1_000_000 });
    let result = json!({ "stop_reason": "finished", "content": format!("the answer{}", "z".repeat(3 * 1024 * 1024)) });
    let steps = [
        json!({ "wait": "initialize" }),
        json!({ "answer": "initialize", "result": answer }),
        json!({ "wait": "run" }),
        json!({ "start": ["sh", "-c", flood] }),
        json!({ "read_file": "go" }),
        json!({ "answer": "run", "result": result }),
        json!({ "wait_eof": true }),
    ];
    std::fs::write(&file, steps.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")).expect("a file");
    bed.runner.program = FAKE_RUNNER.into();
    bed.runner.args = vec![file.into()];
    let client = bed.open().await;
    let made = std::process::Command::new("mkfifo").arg(bed.state().join("go")).status().expect("mkfifo");
    assert!(made.success());
    let spawned = client.spawn("x", "go").await;
    let ended = client.end(&spawned).await;
    assert_eq!(ended["status"], "finished", "{ended}");
    let mail = client.mail(&spawned).await;
    assert!(mail[0].starts_with("the answer") && mail[0].len() < 2 * 1024 * 1024, "{} bytes", mail[0].len());
    let row = client.host.process(spawned["process_id"].as_str().and_then(|id| id.parse().ok()).expect("an id")).await;
    let kept = row.expect("a look").expect("a row").result.expect("a result");
    assert!(kept.contains("[cut: the result had"), "what is left out is told");
    client.host.close().await;
    let bytes = std::fs::metadata(bed.state().join("assistant-host.db")).expect("the store").len();
    assert!(bytes < 40 * 1024 * 1024, "the store took {bytes} bytes of {} of output", 2 * FLOOD);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spawn_is_answered_at_once() {
    let bed = bed(json!([{ "text": "late, but here", "delay_ms": 8_000 }]));
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    assert!(spawned["result"].is_null() && spawned["status"] != "finished", "{spawned}");
    // A wait that is over before the work is tells so, and is taken up again.
    let waited = client.call("wait_assistant", json!({ "wait_ms": 100 })).await;
    assert_eq!(waited["still_running"], json!([spawned["process_id"]]), "{waited}");
    let begun = Instant::now();
    loop {
        let next = client.call("wait_assistant", json!({ "wait_ms": 5_000, "cursor": waited["next_cursor"] })).await;
        if let Some(event) = next["events"].as_array().and_then(|events| events.first()) {
            assert_eq!((&event["kind"], &event["content"]), (&json!("finished"), &json!("late, but here")), "{next}");
            break;
        }
        assert!(begun.elapsed() < SOON, "never told");
    }
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_out_tells_the_parent_what_there_was() {
    let spawn = json!({ "tool_name": "spawn_assistant", "arguments": { "assistant_id": "child", "query": "help" } });
    let steps = script(&[
        ("x", json!([{ "tool_calls": [spawn] }, { "text": "half of it" }])),
        ("child", json!([{ "hang": true }])),
    ]);
    let files = [("x.md", assistant("x", "spawn_assistant")), ("child.md", assistant("child", ""))];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let mut bed = Bed::new(RUNNER, &files, &steps);
    bed.limits.wall_ms = 12_000;
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    client.until(&spawned, "waiting").await;
    let ended = client.end(&spawned).await;
    assert_eq!((&ended["status"], &ended["reason"]), (&json!("failed"), &json!("timed_out")), "{ended}");
    let mail = client.mail(&spawned).await;
    assert!(mail.len() == 1 && mail[0].contains("wall_ms") && mail[0].ends_with("half of it"), "{mail:?}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_is_told_that_its_message_waits() {
    let bed = bed(json!([{ "hang": true }]));
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    client.asked(&spawned).await;
    let sent = client.call("send_message", json!({ "thread_id": spawned["thread_id"], "message": "hello" })).await;
    assert_eq!((&sent["success"], &sent["state"]), (&json!(true), &json!("queued")), "{sent}");
    client.call("cancel_assistant", json!({ "process_id": spawned["process_id"] })).await;
    client.end(&spawned).await;
    let late = json!({ "thread_id": spawned["thread_id"], "message": "too late" });
    assert_eq!(client.refused("send_message", late).await, "process_ended");
    let unknown = client.host.call(client.session, "no_such_tool", serde_json::Map::new());
    let unknown = tokio::time::timeout(Duration::from_secs(60), unknown).await.expect("an answer");
    assert!(matches!(unknown, Err(CallError::UnknownTool(_))));
    client.host.close().await;
}
