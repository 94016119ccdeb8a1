//! `assistant-host replay`, and what the log tells of what passed.

use conformance::doors::Doors;
use serde_json::{Value, json};

use crate::{FAKE_RUNNER, HOST, RUNNER};

/// Runs a command and compares its exit code, and parts of what it prints. Returns what it prints to stdout.
fn check(doors: &Doors, args: &[&str], code: i32, stdout: &str, stderr: &str) -> String {
    let (got, out, err) = doors.run(args);
    assert_eq!(got, Some(code), "{args:?}\nstdout: {out}\nstderr: {err}");
    assert!(out.contains(stdout) && err.contains(stderr), "{args:?}\nstdout: {out}\nstderr: {err}");
    out
}

/// The same with the places before the command: what stands behind `--` is the runner's.
fn behind(doors: &Doors, args: &[&str], code: i32, stdout: &str) -> String {
    let mut command = std::process::Command::new(HOST);
    command.arg("--state").arg(doors.state()).arg("--no-project").args(args);
    let output = command.env_clear().current_dir(doors.dir.path()).output().expect("it runs");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{args:?}\nstdout: {out}\nstderr: {err}");
    assert!(out.contains(stdout), "{args:?}\nstdout: {out}\nstderr: {err}");
    out.into_owned()
}

#[test]
fn a_process_is_played_by_its_id_or_from_a_file() {
    let doors = Doors::new(HOST, "");
    check(&doors, &["run", "Look at it", "--assistant", "quick"], 0, "the quick result\n", "");
    let listed: Value = serde_json::from_str(&check(&doors, &["ps", "--json"], 0, "", "")).expect("JSON");
    let process = listed["items"][0]["process_id"].as_str().expect("an id").to_owned();
    let end = &process[process.len() - 8..];
    let same = "identical: 1 runs, 1 model calls, 0 tool calls, 0 other requests\n";
    check(&doors, &["replay", &process], 0, same, "");
    check(&doors, &["replay", end, "--runner", RUNNER], 0, same, "");
    behind(&doors, &["replay", end, "--", RUNNER], 0, same);
    let told: Value = serde_json::from_str(&check(&doors, &["replay", end, "--json"], 0, "", "")).expect("JSON");
    let want = (&json!(true), &json!(true), &json!("finished"), &Value::Null);
    assert_eq!((&told["identical"], &told["complete"], &told["recorded"], &told["difference"]), want, "{told}");
    let file = doors.dir.path().join("run.json").display().to_string();
    check(&doors, &["replay", end, "--save", &file], 0, "", "steps of process");
    check(&doors, &["stop", "--force"], 0, "", "");
    check(&doors, &["replay", &file], 0, same, "");
    check(&doors, &["replay", end], 0, same, "");
    doors.configure("[broken");
    check(&doors, &["replay", &file, "--runner", RUNNER], 0, same, "");
    doors.configure("");
    let lazy = format!("{}/transcripts/lazy.jsonl", env!("CARGO_MANIFEST_DIR"));
    let json = behind(&doors, &["replay", &file, "--json", "--wait-ms", "5000", "--", FAKE_RUNNER, &lazy], 1, "");
    let told: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&told["identical"], &told["difference"]["place"]), (&json!(false), &json!("model call 1")), "{told}");
    behind(&doors, &["replay", &file, "--wait-ms", "5000", "--runner", FAKE_RUNNER, "--", &lazy], 1, "model call 1");
    behind(
        &doors,
        &["replay", &file, "--", "/bin/sh", "-c", "while echo hello; do :; done"],
        1,
        "no messages, the first: hello",
    );
    let unknown = "0190a0a0-0000-7000-8000-000000000000";
    check(&doors, &["replay", unknown], 2, "", "there is no process 0190a0a0-0000-7000-8000-000000000000 here");
    check(&doors, &["replay", "nobody"], 2, "", "no process has an id that begins or ends with `nobody`");
    check(&doors, &["replay", "nowhere/run.json"], 2, "", "nowhere/run.json: No such file");
    check(&doors, &["replay", doors.dir.path().to_str().expect("UTF-8")], 2, "", "is no file");
    check(&doors, &["replay", "abc"], 2, "", "`abc` is neither a file nor enough of an id");
    check(&doors, &["replay", &file, "--runner", "/nowhere"], 2, "", "cannot start /nowhere");
    std::fs::write(doors.dir.path().join("none.json"), "{}").expect("written");
    let none = doors.dir.path().join("none.json").display().to_string();
    check(&doors, &["replay", &none], 2, "", "it is no recording");
    let mut empty: Value = serde_json::from_slice(&std::fs::read(&file).expect("a file")).expect("JSON");
    empty["steps"] = json!([]);
    std::fs::write(&none, empty.to_string()).expect("written");
    check(&doors, &["replay", &none], 2, "", "there is nothing to play again");
}

#[test]
fn a_process_is_played_by_the_runner_that_it_had() {
    let config = format!("[runners.mine]\ncommand = [{RUNNER:?}]");
    let doors = Doors::new(HOST, &config);
    check(&doors, &["run", "Look at it", "--assistant", "quick", "--runner", "mine"], 0, "the quick result\n", "");
    let listed: Value = serde_json::from_str(&check(&doors, &["ps", "--json"], 0, "", "")).expect("JSON");
    let process = listed["items"][0]["process_id"].as_str().expect("an id").to_owned();
    let same = "identical: 1 runs, 1 model calls";
    check(&doors, &["replay", &process], 0, same, "");
    check(&doors, &["replay", &process, "--runner", "mine"], 0, same, "");
    let config = doors.dir.path().join("config.toml").display().to_string();
    let more = ["--config", &config, "replay", "--runner", "mine", &process, "--", "--no-such-argument"];
    behind(&doors, &more, 1, "not `--no-such-argument`");
    check(&doors, &["stop", "--force"], 0, "", "");
    doors.configure("");
    check(&doors, &["replay", &process], 2, "", "the process had the runner `mine`, which is not configured here");
    check(&doors, &["replay", &process, "--runner", "assistant-runner"], 0, same, "");
    check(&doors, &["replay", &process, "--runner", "mine"], 2, "", "cannot start mine");
}

#[test]
fn what_cannot_be_played_is_told() {
    let doors = Doors::new(HOST, "");
    let mut client = doors.client();
    assert!(client.shake(), "the client is served");
    let spawned = client.must("spawn_assistant", &json!({ "assistant_id": "hang", "query": "go" }));
    let process = spawned["process_id"].as_str().expect("an id").to_owned();
    conformance::doors::until("the model is asked", || {
        doors.run(&["logs", &process, "--json"]).1.contains("\"model_call\"").then_some(())
    });
    check(&doors, &["replay", &process], 2, "", "is running: `assistant-host wait");
    let same = "identical: 0 runs, 1 model calls, 0 tool calls, 0 other requests\nThe record ends before";
    check(&doors, &["replay", &process, "--so-far"], 0, same, "");
    client.must("cancel_assistant", &json!({ "process_id": process }));
    check(&doors, &["wait", &process], 1, "", "");
    check(&doors, &["replay", &process], 0, "identical: 1 runs, 1 model calls", "");
}

/// No other network than one in which nothing is.
#[cfg(target_os = "linux")]
#[test]
#[expect(clippy::print_stderr, reason = "who runs the tests is told what was left out")]
fn a_process_is_played_without_a_network() {
    let without = || {
        let mut command = std::process::Command::new("unshare");
        command.args(["--map-root-user", "--net"]).stdin(std::process::Stdio::null());
        command
    };
    if !without().arg("true").status().is_ok_and(|status| status.success()) {
        return eprintln!("skipped: no namespace can be made here");
    }
    let interfaces = without().args(["cat", "/proc/net/dev"]).output().expect("it runs").stdout;
    assert_eq!(String::from_utf8_lossy(&interfaces).lines().count(), 3, "two lines of head, and one for `lo`");
    let doors = Doors::new(HOST, "");
    check(&doors, &["run", "Look at it", "--assistant", "quick"], 0, "the quick result\n", "");
    check(&doors, &["stop", "--force"], 0, "", "");
    let db = rusqlite::Connection::open(doors.state().join("assistant-host.db")).expect("the store");
    let process: String =
        db.query_row("SELECT process_id FROM assistant_processes", [], |row| row.get(0)).expect("a process");
    let plain = doors.command(&["replay", &process]);
    let mut command = without();
    command.arg(plain.get_program()).args(plain.get_args()).env_clear().current_dir(doors.dir.path());
    let output = command.env("HOME", doors.dir.path()).env("PATH", "/usr/bin:/bin").output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.starts_with("identical: 1 runs, 1 model calls"), "{output:?}");
}

#[test]
fn the_log_tells_what_passed() {
    let doors = Doors::new(HOST, "");
    check(&doors, &["run", "Look at it", "--assistant", "quick"], 0, "the quick result\n", "");
    let mut client = doors.client();
    assert!(client.shake(), "the client is served");
    let listed: Value = serde_json::from_str(&check(&doors, &["ps", "--json"], 0, "", "")).expect("JSON");
    let process = listed["items"][0]["process_id"].as_str().expect("an id").to_owned();
    let log = check(&doors, &["logs", &process], 0, "  run           is asked to run (1)", "");
    assert!(log.contains("  run           answered its run (1): finished"), "{log}");
    let asked = json!({ "process_id": process, "kinds": ["run", "asked"] });
    let read = client.must("read_log", &asked);
    let told: Vec<&Value> = read["events"].as_array().expect("events").iter().map(|event| &event["data"]).collect();
    assert_eq!(told.len(), 2, "{read}");
    assert_eq!((&told[0]["run"], &told[0]["prompt"]), (&json!(1), &Value::Null), "{read}");
    assert_eq!(
        told[1],
        &json!({ "answered": 1, "stop_reason": "finished", "content": { "said": true } }),
        "what the model said is not recorded again"
    );
}
