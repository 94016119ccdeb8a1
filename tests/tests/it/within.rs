//! A client that runs within an assistant, as one of the agent's own MCP servers does: it looks after what was spawned there,
//! and what others have spawned does not exist for it.

use conformance::bed::{assistant, script};
use conformance::doors::{Doors, RawClient, until};
use serde_json::{Value, json};

use crate::HOST;

/// `asks` asks who gave the task, and says what that answered; `hang` never ends.
fn doors() -> Doors {
    let doors = Doors::new(HOST, "");
    let file = doors.dir.path().join("assistants/asks.md");
    std::fs::write(file, assistant("asks", "ask_parent, send_message")).expect("a file");
    let ask = json!({ "tool_name": "ask_parent", "arguments": { "question": "May I?" } });
    let steps = script(&[
        ("asks", json!([{ "tool_calls": [ask] }, { "text": "it was answered" }])),
        ("hang", json!([{ "hang": true }])),
    ]);
    std::fs::write(doors.dir.path().join("script.json"), steps.to_string()).expect("a file");
    doors
}

/// A client of these doors; `within` is its level, and the process that it runs in where that is known.
fn client(doors: &Doors, args: &[&str], within: Option<(&str, Option<&str>)>) -> RawClient {
    let mut command = doors.command(args);
    if let Some((level, process)) = within {
        command.env("ASSISTANT_HOST_DEPTH", level);
        command.envs(process.map(|process| ("ASSISTANT_PROCESS_ID", process)));
    }
    let mut client = RawClient::start(command);
    assert!(client.shake(), "served");
    client
}

fn spawn(client: &mut RawClient, assistant: &str) -> Value {
    client.must("spawn_assistant", &json!({ "assistant_id": assistant, "query": "go" }))
}

fn questions(client: &mut RawClient) -> Vec<Value> {
    let found = client.must("get_pending_questions", &json!({}));
    found["questions"].as_array().cloned().unwrap_or_default()
}

fn question(client: &mut RawClient, spawned: &Value) -> Value {
    let asked = std::cell::RefCell::new(client);
    until("a question", || {
        questions(&mut asked.borrow_mut()).into_iter().find(|one| one["process_id"] == spawned["process_id"])
    })
}

fn listed(client: &mut RawClient) -> Vec<Value> {
    let found = client.must("list_process", &json!({}));
    found["items"].as_array().into_iter().flatten().map(|one| one["process_id"].clone()).collect()
}

/// Waits for the end of a process: its status.
fn end(client: &mut RawClient, spawned: &Value) -> Value {
    let asked = std::cell::RefCell::new(client);
    until("an end", || {
        let arguments = json!({ "process_id": spawned["process_id"], "wait_ms": 5_000 });
        let seen = asked.borrow_mut().must("poll_assistant", &arguments)["process"].clone();
        (seen["done"] == true).then(|| seen["status"].clone())
    })
}

/// Whatever names a process of others is told that there is none, or no thread for this caller; and nothing lists it.
fn is_kept_from(client: &mut RawClient, spawned: &Value) {
    let (process, thread) = (&spawned["process_id"], &spawned["thread_id"]);
    for (tool, arguments, code) in [
        ("reply_assistant", json!({ "process_id": process, "answer": "yes" }), "unknown_process"),
        ("cancel_assistant", json!({ "process_id": process }), "unknown_process"),
        ("poll_assistant", json!({ "process_id": process }), "unknown_process"),
        ("read_log", json!({ "process_id": process }), "unknown_process"),
        ("read_log", json!({ "process_id": process, "transcript": true }), "unknown_process"),
        ("list_process", json!({ "process_id": process }), "unknown_process"),
        ("wait_assistant", json!({ "process_ids": [process], "wait_ms": 0 }), "unknown_process"),
        ("spawn_assistant", json!({ "resume_process_id": process, "query": "go on" }), "unknown_process"),
        ("send_message", json!({ "thread_id": thread, "message": "yes" }), "not_permitted"),
        ("recv_message", json!({ "thread_id": thread }), "not_permitted"),
    ] {
        let refused = client.call(tool, &arguments).expect("answered").expect_err(tool);
        assert_eq!(refused["code"], code, "{tool}: {refused}");
    }
    assert!(questions(client).iter().all(|one| one["process_id"] != *process));
    assert!(!listed(client).contains(process));
    let told = client.must("wait_assistant", &json!({ "wait_ms": 0 })).to_string();
    assert!(!told.contains(process.as_str().expect("an id")), "{told}");
}

#[test]
fn it_answers_no_question_of_others_and_uses_its_own() {
    let doors = doors();
    let mut outer = client(&doors, &["mcp"], None);
    let (theirs, hangs) = (spawn(&mut outer, "asks"), spawn(&mut outer, "hang"));
    question(&mut outer, &theirs);
    let mut inner = client(&doors, &["mcp"], Some(("1", None)));
    is_kept_from(&mut inner, &theirs);
    is_kept_from(&mut inner, &hangs);
    assert_eq!(listed(&mut inner), Vec::<Value>::new());

    let own = spawn(&mut inner, "asks");
    let asked = question(&mut inner, &own);
    assert_eq!(asked["question"], "May I?");
    assert_eq!(listed(&mut inner), [own["process_id"].clone()]);
    let told = json!({ "thread_id": own["thread_id"], "message": "by the way" });
    assert_eq!(inner.must("send_message", &told)["success"], true);
    inner.must("reply_assistant", &json!({ "process_id": own["process_id"], "answer": "yes" }));
    assert_eq!(end(&mut inner, &own), "finished");
    let mail = inner.must("recv_message", &json!({ "thread_id": own["thread_id"] })).to_string();
    assert!(mail.contains("it was answered"), "{mail}");
    let cancelled = spawn(&mut inner, "hang");
    inner.must("cancel_assistant", &json!({ "process_id": cancelled["process_id"] }));
    assert_eq!(end(&mut inner, &cancelled), "cancelled");

    // Another one within is another one, and the user sees all.
    let mut other = client(&doors, &["mcp"], Some(("2", None)));
    is_kept_from(&mut other, &theirs);
    is_kept_from(&mut other, &own);
    let all = listed(&mut outer);
    for one in [&theirs, &hangs, &own, &cancelled] {
        assert!(all.contains(&one["process_id"]), "{one}: {all:?}");
    }
    outer.must("reply_assistant", &json!({ "process_id": theirs["process_id"], "answer": "yes" }));
    assert_eq!(end(&mut outer, &theirs), "finished");
}

/// A command that the same assistant runs later, and a client that has come back, find what was spawned there.
#[test]
fn clients_within_one_assistant_are_one() {
    let doors = doors();
    let mut outer = client(&doors, &["mcp"], None);
    let hangs = spawn(&mut outer, "hang");
    let within = hangs["process_id"].as_str().expect("an id");
    let mut first = client(&doors, &["mcp"], Some(("1", Some(within))));
    let own = spawn(&mut first, "asks");
    assert_eq!(first.close(), Some(0));
    let mut second = client(&doors, &["mcp"], Some(("1", Some(within))));
    assert_eq!(listed(&mut second), [own["process_id"].clone()]);
    question(&mut second, &own);
    is_kept_from(&mut second, &hangs);
    let mut stranger = client(&doors, &["mcp"], Some(("1", own["process_id"].as_str())));
    is_kept_from(&mut stranger, &own);

    let command = |args: &[&str]| {
        let mut command = doors.command(args);
        command.env("ASSISTANT_HOST_DEPTH", "1").env("ASSISTANT_PROCESS_ID", within);
        let output = command.stdin(std::process::Stdio::null()).output().expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.code(), text(output.stdout) + &text(output.stderr))
    };
    let id = own["process_id"].as_str().expect("an id");
    let (code, told) = command(&["ps", "--json"]);
    assert!(code == Some(0) && told.contains(id), "{told}");
    let (code, told) = command(&["reply", within, "yes"]);
    assert!(code != Some(0), "{told}");
    let (code, told) = command(&["reply", id, "yes"]);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(end(&mut second, &own), "finished");
}

#[test]
fn a_host_inside_of_the_client_keeps_to_the_same() {
    let doors = doors();
    let mut outer = client(&doors, &["mcp", "--embedded"], None);
    let theirs = spawn(&mut outer, "asks");
    question(&mut outer, &theirs);
    outer.must("reply_assistant", &json!({ "process_id": theirs["process_id"], "answer": "yes" }));
    assert_eq!(end(&mut outer, &theirs), "finished");
    assert_eq!(outer.close(), Some(0));
    let mut inner = client(&doors, &["mcp", "--embedded"], Some(("1", None)));
    is_kept_from(&mut inner, &theirs);
    let own = spawn(&mut inner, "asks");
    question(&mut inner, &own);
    inner.must("reply_assistant", &json!({ "process_id": own["process_id"], "answer": "yes" }));
    assert_eq!(end(&mut inner, &own), "finished");
    assert_eq!(listed(&mut inner), [own["process_id"].clone()]);
    assert_eq!(inner.close(), Some(0));
    let mut outer = client(&doors, &["mcp", "--embedded"], None);
    assert_eq!(listed(&mut outer).len(), 2);
    assert_eq!(outer.close(), Some(0));
}

/// An agent may give its servers an environment without what tells where they are.
#[cfg(target_os = "linux")]
#[test]
fn one_whose_environment_was_emptied_is_within_all_the_same() {
    let doors = doors();
    let mut outer = client(&doors, &["mcp"], None);
    let hangs = spawn(&mut outer, "hang");
    let plain = doors.command(&["mcp"]);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut emptied = std::process::Command::new("sh");
    emptied.args(["-c", "env -i HOME=\"$HOME\" PATH=\"$PATH\" \"$@\"; exit $?", "sh"]).arg(plain.get_program());
    emptied.args(plain.get_args()).envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    emptied.env("PATH", path).env("ASSISTANT_HOST_DEPTH", "1");
    emptied.env("ASSISTANT_PROCESS_ID", hangs["process_id"].as_str().expect("an id"));
    let mut inner = RawClient::start(emptied);
    assert!(inner.shake(), "served");
    is_kept_from(&mut inner, &hangs);
    assert_eq!(listed(&mut inner), Vec::<Value>::new());
}
