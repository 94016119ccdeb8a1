//! The commands that start assistants and talk to them, over the door of a real host.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::process::Stdio;

use conformance::doors::{Doors, socket, until};
use serde_json::{Value, json};

use crate::HOST;

/// Runs a command that has to succeed, and reads the JSON that it prints, a document a line.
fn json_of(doors: &Doors, args: &[&str]) -> Vec<Value> {
    let (code, stdout, stderr) = doors.run(args);
    assert_eq!(code, Some(0), "{args:?}: {stdout}{stderr}");
    stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{args:?}: {line}"))).collect()
}

fn id(spawned: &Value) -> String {
    spawned["process_id"].as_str().expect("an id").to_owned()
}

#[test]
fn many_are_spawned_from_a_file_or_none() {
    let doors = Doors::new(HOST, "");
    let file = doors.dir.path().join("tasks.jsonl");
    let path = file.to_str().expect("a path");
    std::fs::write(&file, "{\"assistant_id\": \"quick\", \"query\": \"a\"}\nnonsense\n\n[]\n{\"query\": \"b\"}\n{\"assistant_id\": \"quick\", \"task\": \"c\"}\n")
        .expect("a file");
    let (code, stdout, stderr) = doors.run(&["spawn", "--file", path]);
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    for words in [
        "nothing was spawned",
        "line 2:",
        "line 4: no JSON object",
        "line 5: neither assistant_id",
        "line 6: there is no argument `task`",
    ] {
        assert!(stderr.contains(words), "no `{words}` in {stderr}");
    }
    let tasks: Vec<String> =
        (0..30).map(|number| json!({ "assistantId": "quick", "query": format!("{number}") }).to_string()).collect();
    std::fs::write(&file, tasks.join("\n")).expect("a file");
    let spawned = json_of(&doors, &["spawn", "--json", "--file", path]);
    assert_eq!(spawned.len(), 30);
    let ids: Vec<String> = spawned.iter().map(id).collect();
    let mut wait = vec!["wait"];
    wait.extend(ids.iter().map(String::as_str));
    assert_eq!(doors.run(&wait).0, Some(0), "all finish after the command that spawned them");
    std::fs::write(
        &file,
        "{\"assistant_id\": \"nobody\", \"query\": \"a\"}\n{\"assistant_id\": \"quick\", \"query\": \"a\"}\n",
    )
    .expect("a file");
    let (code, stdout, stderr) = doors.run(&["spawn", "--file", path]);
    assert!(
        code == Some(1) && stdout.lines().count() == 1 && stderr.contains("task 1: no assistant has the id"),
        "{stderr}"
    );
}

#[test]
fn more_are_spawned_than_the_host_takes_at_once() {
    let file_of = |doors: &Doors, tasks: usize| {
        let file = doors.dir.path().join("tasks.jsonl");
        let task = |number: usize| json!({ "assistant_id": "quick", "query": format!("task {number}") }).to_string();
        std::fs::write(&file, (0..tasks).map(task).collect::<Vec<_>>().join("\n")).expect("a file");
        file.display().to_string()
    };
    for limits in ["queue_per_session = 2", "living_per_session = 3"] {
        let doors = Doors::new(HOST, &format!("[limits]\nrunning_per_session = 1\n{limits}"));
        let told = json_of(&doors, &["spawn", "--json", "--wait", "--file", &file_of(&doors, 20)]);
        let spawned: Vec<String> = told.iter().filter(|line| line["thread_id"].is_string()).map(id).collect();
        let mut ended: Vec<String> = told.iter().filter(|line| line["kind"] == "finished").map(id).collect();
        assert_eq!((spawned.len(), ended.len(), told.len()), (20, 20, 40), "{limits}: {told:?}");
        ended.sort_by_key(|one| spawned.iter().position(|other| other == one));
        assert_eq!(ended, spawned, "{limits}: each ends, and is told once");
    }
}

#[test]
fn what_is_lost_is_resumed_and_what_is_said_arrives() {
    let doors = Doors::new(HOST, "");
    let spawned = json_of(&doors, &["spawn", "--json", "--assistant", "waits", "go"]);
    let first = id(&spawned[0]);
    let waiting = |process: &str| {
        let log = doors.run(&["ps", "--json"]).1;
        log.contains("\"waiting\"").then(|| assert!(log.contains(process)))
    };
    until("it waits", || waiting(&first));
    let host = doors.host_pid().expect("a host");
    conformance::doors::signal("9", host.into());
    let resumed = json_of(&doors, &["resume", "--failed", "--since", "1h", "--json"]);
    let totals = |resumed: u32| json!({ "totals": { "failed": 1, "resumed": resumed, "refused": 0 } });
    assert_eq!(resumed[1..], [totals(1)], "{resumed:?}");
    assert_eq!(doors.run(&["wait", &id(&resumed[0])]).0, Some(0));
    assert_eq!(json_of(&doors, &["resume", "--failed", "--json"]), [totals(0)], "it goes on already");
    assert_eq!(json_of(&doors, &["wait", "--any", "--json"]), [json!({ "kind": "nothing_at_work" })]);
    let waits = id(&json_of(&doors, &["spawn", "--json", "--assistant", "waits", "go"])[0]);
    until("it waits", || waiting(&waits));
    let short = &waits[waits.len() - 8..];
    assert_eq!(doors.run(&["send", short, "come on"]).0, Some(0));
    assert_eq!(doors.run(&["wait", short]).0, Some(0));
    let (code, _, stderr) = doors.run(&["send", short, "too late"]);
    assert!(code == Some(1) && stderr.contains("has ended and takes no messages"), "{stderr}");
    let hang = id(&json_of(&doors, &["spawn", "--json", "--assistant", "hang", "go"])[0]);
    let cancelled = json_of(&doors, &["cancel", "--json", "--all", "--reason", "enough"]);
    assert_eq!(cancelled, [json!({ "cancelled": [hang] })]);
}

#[test]
fn questions_are_listed_and_answered() {
    let doors = Doors::new(HOST, "");
    let asks = conformance::bed::assistant("asks", "ask_parent");
    std::fs::write(doors.dir.path().join("assistants/asks.md"), asks).expect("a file");
    let call = json!({ "tool_name": "ask_parent", "arguments": { "question": "red or blue?" } });
    let steps = json!([{ "tool_calls": [call] }, { "text": "it is {{ask_parent.answer}}" }]);
    let script = conformance::bed::script(&[("asks", steps)]).to_string();
    std::fs::write(doors.dir.path().join("script.json"), script).expect("a file");
    let process = id(&json_of(&doors, &["spawn", "--json", "--assistant", "asks", "go"])[0]);
    let asked = until("it asks", || {
        let pending = json_of(&doors, &["questions", "--json"]);
        pending[0]["questions"].get(0).cloned()
    });
    assert_eq!((&asked["question"], &asked["process_id"]), (&json!("red or blue?"), &json!(process)));
    let (_, stdout, _) = doors.run(&["questions"]);
    assert!(stdout.contains("asks asked") && stdout.contains("red or blue?"), "{stdout}");
    assert_eq!(doors.run(&["reply", &process, "blue"]).0, Some(0));
    let (code, stdout, _) = doors.run(&["wait", &process]);
    assert!(code == Some(0) && stdout.contains("it is blue"), "{stdout}");
    let (code, _, stderr) = doors.run(&["reply", &process, "red"]);
    assert!(code == Some(1) && stderr.contains("has asked you nothing"), "{stderr}");
    let mut command = doors.command(&["run", "go", "--assistant", "asks"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut run = command.spawn().expect("it runs");
    let mut told = BufReader::new(run.stderr.take().expect("a pipe")).lines().map(|line| line.expect("text"));
    assert!(told.any(|line| line == "  asks: red or blue?"), "what it waits for is told where it was started");
    let how = told.next().expect("how it is answered");
    let words: Vec<&str> = how.trim().trim_start_matches("`assistant-host ").split(' ').collect();
    assert!(words[0] == "reply" && how.ends_with(" ANSWER` answers it"), "{how}");
    assert_eq!(doors.run(&["reply", words[1], "green"]).0, Some(0));
    assert!(told.last().is_some_and(|line| line.starts_with("finished ")), "it goes on");
    let run = run.wait_with_output().expect("ends");
    assert!(run.status.success() && String::from_utf8_lossy(&run.stdout).contains("it is green"), "{run:?}");
}

#[test]
fn commands_that_follow_find_another_host_when_theirs_is_killed() {
    let doors = Doors::new(HOST, "");
    let started = |args: &[&str]| {
        let mut command = doors.command(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it runs")
    };
    let run = started(&["run", "go", "--assistant", "hang"]);
    let process = until("it runs", || {
        let listed = json_of(&doors, &["ps", "--json"]);
        let one = listed[0]["items"].get(0).cloned()?;
        (one["status"] == "running").then(|| id(&one))
    });
    let (wait, logs) = (started(&["wait", &process]), started(&["logs", "-f", &process]));
    until("all are connected", || {
        let status: Value = serde_json::from_str(&doors.run(&["status", "--json"]).1).expect("JSON");
        (status["host"]["clients"] == 3).then_some(())
    });
    conformance::doors::signal("9", doors.host_pid().expect("a host").into());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let check = |child: std::process::Child, code: i32, stdout: &str, stderr: &str| {
        let output = child.wait_with_output().expect("it ends");
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.code() == Some(code) && out.contains(stdout) && err.contains(stderr), "{out}\n{err}");
    };
    check(wait, 1, "failed", "");
    check(logs, 0, "failed (host_lost)", "");
    check(run, 1, "", &format!("`assistant-host resume {}` goes on with it", &process[process.len() - 8..]));
    let resumed = json_of(&doors, &["resume", "--json", &process]);
    let listed = json_of(&doors, &["ps", "--json", "--living"]);
    assert_eq!((id(&listed[0]["items"][0]), &listed[0]["items"][0]["task"]), (id(&resumed[0]), &json!("go")));
    let (code, _, stderr) = doors.run(&["cancel", &process]);
    assert!(code == Some(0) && stderr.contains("has ended already"), "{stderr}");
}

#[test]
fn a_host_that_ends_between_its_welcome_and_its_first_answer_is_one_that_went() {
    let doors = Doors::new(HOST, "");
    let path = socket(&doors.state());
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    let listener = UnixListener::bind(&path).expect("a socket");
    let ends = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).expect("a line");
        stream.write_all(b"{\"welcome\":{\"pid\":1,\"told\":[]}}\n").expect("written");
        line
    });
    assert_eq!(json_of(&doors, &["ps", "--json"])[0]["items"], json!([]));
    assert!(ends.join().expect("it was asked").contains("\"want\":\"mcp\""));
}

#[test]
fn doctor_looks_at_hooks() {
    let doors = Doors::new(HOST, "[hooks]\non_end = [\"/nowhere/at/all\"]\non_question = [\"sh\", \"-c\", \"true\"]\n");
    let mut doctor = doors.command(&["doctor", "--json", "--no-calls"]);
    let output = doctor.env("PATH", "/usr/bin:/bin").output().expect("it runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let problems = report["problems"].to_string();
    assert!(problems.contains("on_end names /nowhere/at/all") && !problems.contains("on_question"), "{problems}");
}
