//! What a person sees of processes from the command line, over the door of a host in the background.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use conformance::doors::{Doors, RawClient};
use serde_json::{Value, json};

use crate::HOST;

/// A door and a client that has come through it.
fn doors() -> (Doors, RawClient) {
    let doors = Doors::new(HOST, "");
    let mut client = doors.client();
    assert!(client.shake(), "the client is served");
    (doors, client)
}

/// Spawns an assistant and returns its process's id.
fn spawn(client: &mut RawClient, assistant: &str) -> String {
    let spawned = client.must("spawn_assistant", &json!({ "assistant_id": assistant, "query": "Look at it" }));
    spawned["process_id"].as_str().expect("an id").to_owned()
}

fn cancel(client: &mut RawClient, process: &str) {
    client.must("cancel_assistant", &json!({ "process_id": process }));
}

/// The last eight characters of an id.
fn end_of(process: &str) -> &str {
    &process[process.len() - 8..]
}

/// Runs a command and compares its exit code, and parts of what it prints. Returns what it prints to stdout.
fn check(doors: &Doors, args: &[&str], code: i32, stdout: &[&str], stderr: &str) -> String {
    let (got, out, err) = doors.run(args);
    assert_eq!(got, Some(code), "{args:?}\nstdout: {out}\nstderr: {err}");
    for part in stdout {
        assert!(out.contains(part), "{args:?} lacks `{part}`\nstdout: {out}\nstderr: {err}");
    }
    assert!(err.contains(stderr), "{args:?} lacks `{stderr}`\nstdout: {out}\nstderr: {err}");
    out
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A command that goes on, and its lines.
fn follow(doors: &Doors, args: &[&str]) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut child = doors.command(args).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it runs");
    let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    (child, lines.map(|line| line.expect("a line")))
}

#[test]
fn a_run_is_seen_from_everywhere_when_it_is_over() {
    let doors = Doors::new(HOST, "price = { input = 1000000.0, output = 0.0 }");
    check(&doors, &["run", "Look at it", "--assistant", "quick"], 0, &["the quick result\n"], "finished after");
    let listed = json_of(&check(&doors, &["ps", "--json"], 0, &[], ""));
    let item = &listed["items"][0];
    assert_eq!(
        (&item["status"], &item["task"], &listed["left_out"]),
        (&json!("finished"), &json!("Look at it"), &json!(0))
    );
    assert!(item["usage"]["cost_usd"].as_f64().is_some_and(|cost| cost > 0.0), "{item}");
    let id = item["process_id"].as_str().expect("an id");
    let end = end_of(id);
    check(&doors, &["ps"], 0, &["ASSISTANT", end, "finished", "Look at it"], "");
    assert_eq!(json_of(&check(&doors, &["ps", "--living", "--json"], 0, &[], ""))["items"], json!([]));
    check(&doors, &["ps", "--living"], 0, &[], "no processes");
    check(&doors, &["ps", "--watch"], 0, &[end], "");
    check(&doors, &["logs", end], 0, &["Z  status", "asks s", "  finished"], "");
    check(
        &doors,
        &["logs", id, "-f", "--transcript"],
        0,
        &["── user\n", "Look at it", "── assistant\nthe quick result"],
        "",
    );
    let lines = check(&doors, &["logs", end, "--json"], 0, &[], "");
    assert!(lines.lines().map(json_of).any(|event| event["data"]["status"] == "finished"), "{lines}");
    check(&doors, &["wait", end], 0, &[end, "finished", "quick: the quick result"], "");
    check(&doors, &["wait"], 0, &[], "nothing is at work");
    let report = json_of(&check(&doors, &["report", "--since", "1h", "--json"], 0, &[], ""));
    assert_eq!((&report["finished"], &report["models"]["s"]["model_calls"]), (&json!(1), &json!(1)), "{report}");
    check(&doors, &["report"], 0, &["In the last 12 h: 1 processes", "MODEL"], "");
}

#[test]
fn what_is_at_work_is_watched_to_its_end() {
    let (doors, mut client) = doors();
    let (slow, hang) = (spawn(&mut client, "slow"), spawn(&mut client, "hang"));
    let (mut watch, mut changes) = follow(&doors, &["ps", "--watch", "--living", "--json"]);
    let (mut logs, log) = follow(&doors, &["logs", &hang, "--follow"]);
    let first = json_of(&changes.next().expect("a line"));
    assert!(first["items"].as_array().is_some_and(|items| !items.is_empty()), "{first}");
    check(
        &doors,
        &["wait", end_of(&hang), "--timeout", "1"],
        124,
        &[],
        &format!("still at work after 1 s: {}", end_of(&hang)),
    );
    let ended = json_of(&check(&doors, &["wait", "--any", "--json", &slow, &hang], 0, &[], ""));
    assert_eq!((&ended["process_id"], &ended["kind"]), (&json!(slow), &json!("finished")), "{ended}");
    cancel(&mut client, &hang);
    check(&doors, &["wait", &slow, &hang], 1, &["finished", "cancelled"], "");
    assert!(watch.wait().expect("it ends").success());
    assert_eq!(json_of(&changes.last().expect("a line"))["items"], json!([]));
    let log: Vec<String> = log.collect();
    assert!(log.iter().any(|line| line.contains("cancelled (requested)")), "not followed to the end: {log:?}");
    assert!(logs.wait().expect("it ends").success());
    let report = json_of(&check(&doors, &["report", "--json"], 0, &[], ""));
    assert_eq!(report["cancelled"], json!({ "requested": 1 }));
}

#[test]
fn a_part_of_an_id_means_one_process_or_none() {
    let (doors, mut client) = doors();
    let (one, other) = (spawn(&mut client, "quick"), spawn(&mut client, "quick"));
    // Ids of one time begin alike.
    check(&doors, &["logs", &one[..6]], 2, &[], &format!("2 processes fit `{}`", &one[..6]));
    check(&doors, &["logs", &one[..6]], 2, &[], &other);
    check(&doors, &["logs", "abcde"], 2, &[], "is too short for a part of an id");
    check(&doors, &["logs", "no-such-id"], 1, &[], "no process has an id that begins or ends with `no-such-id`");
    let nobody = "0190a0a0-0000-7000-8000-000000000000";
    check(&doors, &["logs", nobody], 1, &[], &format!("no process of yours has the id {nobody}"));
    check(&doors, &["report", "--since", "yesterday"], 2, &[], "write a number and s, m, h or d");
}

#[test]
fn all_state_directories_are_seen_and_no_host_is_started() {
    let (doors, mut client) = doors();
    let states = doors.dir.path().join(".local/state/assistant-host");
    std::fs::create_dir_all(states.join("idle")).expect("a folder");
    std::fs::write(states.join("idle/lock"), "").expect("a file");
    std::os::unix::fs::symlink(doors.state(), states.join("busy")).expect("a link");
    let hang = spawn(&mut client, "hang");
    let told = json_of(&check(&doors, &["ps", "--all", "--json"], 0, &[], ""))["states"].clone();
    let seen: Vec<_> =
        told.as_array().expect("states").iter().map(|one| (&one["running"], &one["items"][0]["process_id"])).collect();
    assert_eq!(seen, [(&json!(true), &json!(hang)), (&json!(false), &Value::Null)]);
    check(&doors, &["ps", "--all"], 0, &["busy: at work\nID ", end_of(&hang), "idle: no host runs"], "");
    let left: Vec<_> =
        std::fs::read_dir(states.join("idle")).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["lock"], "nothing is begun there");
    // The one that was named is among them, wherever it lies.
    std::fs::remove_file(states.join("busy")).expect("removed");
    let at_work = format!("{}: at work\nID ", doors.state().display());
    check(&doors, &["ps", "--all"], 0, &["idle: no host runs", &at_work], "");
}

#[test]
fn a_run_that_fails_says_why_and_gives_what_it_had() {
    let doors = Doors::new(HOST, "[limits]\nturns = 1");
    let steps = json!([{ "text": "half of it", "tool_calls": [{ "tool_name": "list_assistant", "arguments": {} }] }, { "text": "never" }]);
    let script = conformance::bed::script(&[("quick", steps)]);
    std::fs::write(doors.dir.path().join("script.json"), script.to_string()).expect("a file");
    let args = ["run", "go", "--assistant", "quick"];
    check(&doors, &args, 1, &["half of it\n"], "budget_exceeded: ");
    assert_eq!(doors.run(&["stop"]).0, Some(0));
    check(&doors, &[&args[..], &["--embedded"]].concat(), 1, &["half of it\n"], "budget_exceeded: ");
}

#[test]
fn a_run_outlives_the_command_that_began_it() {
    let doors = Doors::new(HOST, "");
    let mut run = doors.command(&["run", "go", "--assistant", "slow"]);
    let mut run = run.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs");
    let lines = BufReader::new(run.stderr.take().expect("stderr")).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("asks s")), "it asks its model");
    run.kill().expect("killed");
    run.wait().expect("it ends");
    let listed = json_of(&check(&doors, &["ps", "--json"], 0, &[], ""));
    let process = listed["items"][0]["process_id"].as_str().expect("an id");
    check(&doors, &["wait", process], 0, &["slow: the slow result"], "");
}
