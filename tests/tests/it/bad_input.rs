//! Bad input gets a clear error and loses nothing.

use std::sync::Arc;

use assistant_host::model::{Answer, Ask, Model, ModelError, ModelErrorKind, Progress};
use conformance::bed::{Bed, Client, assistant, script};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::RUNNER;

const NOBODY: &str = "0190a0a0-0000-7000-8000-000000000000";

#[tokio::test(flavor = "multi_thread")]
async fn each_wrong_call_is_told() {
    let bed = Bed::new(
        RUNNER,
        &[("hanger.md", &assistant("hanger", "send_message"))],
        &script(&[("hanger", json!([{ "hang": true }]))]),
    );
    let client = bed.open().await;
    let spawned = client.spawn("hanger", "go").await;
    client.until(&spawned, "running").await;
    let thread = &spawned["thread_id"];
    let table: Vec<(&str, Value, &str)> = vec![
        ("spawn_assistant", json!({ "assistant_id": "hangar", "query": "x" }), "unknown_assistant"),
        ("spawn_assistant", json!({ "assistant_id": "hanger", "query": "  " }), "bad_argument"),
        ("spawn_assistant", json!({ "assistant_id": "hanger" }), "bad_argument"),
        ("spawn_assistant", json!({ "query": "x" }), "bad_argument"),
        (
            "spawn_assistant",
            json!({ "assistant_id": "hanger", "search": { "text": "x" }, "query": "x" }),
            "bad_argument",
        ),
        ("spawn_assistant", json!({ "assistant_id": "hanger", "query": "x", "run_mode": "later" }), "bad_argument"),
        (
            "spawn_assistant",
            json!({ "assistant_id": "hanger", "query": "x", "search": { "txt": "x" } }),
            "bad_argument",
        ),
        ("spawn_assistant", json!({ "assistant_id": "hanger", "query": "x", "model": "nope" }), "no_model"),
        ("spawn_assistant", json!({ "assistant_id": "hanger", "query": "x", "working_dir": "../.." }), "bad_argument"),
        ("spawn_assistant", json!({ "assistant_id": "hanger", "query": "x".repeat(1_100_000) }), "bad_argument"),
        ("search_assistant", json!({ "query": "" }), "bad_argument"),
        ("search_assistant", json!({ "query": "x", "source": "moon" }), "bad_argument"),
        ("list_assistant", json!({ "page": "one" }), "bad_argument"),
        ("list_assistant", json!({ "page": -1 }), "bad_argument"),
        ("list_assistant", json!({ "assistant_id": "nobody" }), "unknown_assistant"),
        ("poll_assistant", json!({ "process_id": NOBODY }), "unknown_process"),
        ("poll_assistant", json!({ "process_id": "hanger" }), "bad_argument"),
        (
            "poll_assistant",
            json!({ "process_id": spawned["process_id"], "processId": spawned["process_id"] }),
            "bad_argument",
        ),
        ("cancel_assistant", json!({ "process_id": NOBODY }), "unknown_process"),
        ("send_message", json!({ "thread_id": NOBODY, "message": "x" }), "unknown_thread"),
        ("send_message", json!({ "thread_id": thread, "message": "" }), "bad_argument"),
        ("send_message", json!({ "thread_id": thread, "message": "x".repeat(1024 * 1024 + 1) }), "limit_message_bytes"),
        ("send_message", json!({ "thread_id": thread, "message": "x", "to_assistant_id": "stranger" }), "bad_argument"),
        ("recv_message", json!({ "thread_id": thread, "cursor": "abc" }), "bad_argument"),
        ("recv_message", json!({ "thread_id": thread, "cursor": "999999999.0" }), "bad_argument"),
        ("wait_assistant", json!({ "cursor": "999999999" }), "bad_argument"),
        ("wait_assistant", json!({ "cursor": "-7" }), "bad_argument"),
        ("read_log", json!({ "process_id": spawned["process_id"], "cursor": "999999999" }), "bad_argument"),
        (
            "read_log",
            json!({ "process_id": spawned["process_id"], "cursor": i64::MAX.to_string(), "transcript": true }),
            "bad_argument",
        ),
        ("list_process", json!({ "page": 99_999_999_999_u64 }), "bad_argument"),
        ("recv_message", json!({ "thread_id": thread, "last_n": 1.5 }), "bad_argument"),
        ("recv_message", json!({ "thread_id": thread, "colour": "red" }), "bad_argument"),
    ];
    for (tool, arguments, code) in table {
        let shown: String = arguments.to_string().chars().take(200).collect();
        assert_eq!(client.refused(tool, arguments).await, code, "{tool} {shown}");
    }
    let whole = "x".repeat(1024 * 1024);
    client.call("send_message", json!({ "thread_id": thread, "message": whole })).await;
    let stranger = Client {
        session: client.host.open_session("someone else", "main").await.expect("a session"),
        ..client.clone()
    };
    for (tool, arguments, code) in [
        ("recv_message", json!({ "thread_id": thread }), "not_permitted"),
        ("send_message", json!({ "thread_id": thread, "message": "x" }), "not_permitted"),
        ("poll_assistant", json!({ "process_id": spawned["process_id"] }), "unknown_process"),
        ("cancel_assistant", json!({ "process_id": spawned["process_id"] }), "unknown_process"),
    ] {
        assert_eq!(stranger.refused(tool, arguments).await, code, "{tool}");
    }
    assert_eq!(client.poll(&spawned).await["status"], "running");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_are_never_a_syntax() {
    let bed = Bed::new(RUNNER, &[("x.md", &assistant("x", ""))], &script(&[("x", json!([{ "text": "y" }]))]));
    let client = bed.open().await;
    let long = "assistant tests ".repeat(7_000);
    for query in ["\"", "a AND", "title:x", "*", "-x +y", "(", "🎉", "we're [x TO y]", "~2^3", "\0", long.as_str()] {
        client.call("search_assistant", json!({ "query": query })).await;
    }
    client.host.close().await;
}

/// A model that fails in one way, or answers with parts of our choice.
struct Failing(ModelErrorKind);

impl Model for Failing {
    fn answer<'a>(&'a self, _: Ask, _: &'a (dyn Fn(Progress) + Sync)) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let error = ModelError {
            kind: self.0,
            provider: "failing".into(),
            status: Some(400),
            retry_after_ms: None,
            message: "it does not work".into(),
        };
        std::future::ready(Err(error)).boxed()
    }

    fn provider(&self) -> &str {
        "failing"
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_model_is_the_reason() {
    for (kind, reason) in [
        (ModelErrorKind::Rejected, "model_failed"),
        (ModelErrorKind::BadKey, "model_failed"),
        (ModelErrorKind::Unreadable, "model_failed"),
        (ModelErrorKind::ContextExceeded, "context_exceeded"),
    ] {
        let bed = Bed::with_model(RUNNER, &[("x.md", &assistant("x", ""))], Arc::new(Failing(kind)));
        let client = bed.open().await;
        let spawned = client.spawn("x", "go").await;
        let ended = client.end(&spawned).await;
        assert_eq!((&ended["status"], &ended["reason"]), (&json!("failed"), &json!(reason)), "{ended}");
        assert!(ended["error"].as_str().is_some_and(|text| text.contains("failing: it does not work")), "{ended}");
        client.host.close().await;
    }
}

/// A model of an app that has a fault.
struct Panicking;

impl Model for Panicking {
    fn answer<'a>(&'a self, ask: Ask, _: &'a (dyn Fn(Progress) + Sync)) -> BoxFuture<'a, Result<Answer, ModelError>> {
        async move { panic!("a fault of the app, after {} messages", ask.messages.len()) }.boxed()
    }

    fn provider(&self) -> &str {
        "panicking"
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panicking_model_is_told_and_the_host_goes_on() {
    let bed = Bed::with_model(RUNNER, &[("x.md", &assistant("x", ""))], Arc::new(Panicking));
    let client = bed.open().await;
    for _ in 0..2 {
        let spawned = client.spawn("x", "go").await;
        let ended = client.end(&spawned).await;
        assert_eq!((&ended["status"], &ended["reason"]), (&json!("failed"), &json!("model_failed")), "{ended}");
        assert!(ended["error"].as_str().is_some_and(|text| text.contains("the model panicked")), "{ended}");
    }
    client.host.close().await;
}

/// What the file tools give for `arguments`, as the assistant sees it.
async fn file_tool(client: &Client, assistant: &str) -> String {
    let spawned = client.spawn(assistant, "go").await;
    client.end(&spawned).await;
    client.mail(&spawned).await.remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_below_the_folder_only() {
    let cases: Vec<(&str, &str, Value, &str)> = vec![
        ("a1", "read_file", json!({ "path": "notes.txt" }), "{{read_file.content}}"),
        ("a2", "read_file", json!({ "path": "../secret.txt" }), "{{read_file.code}}"),
        ("a3", "read_file", json!({ "path": "link.txt" }), "{{read_file.code}}"),
        ("a4", "read_file", json!({ "path": "/etc/passwd" }), "{{read_file.code}}"),
        (
            "a5",
            "read_file",
            json!({ "path": "notes.txt", "fromLine": 2, "lines": 1 }),
            "{{read_file.content}} {{read_file.next_line}}",
        ),
        ("a6", "read_file", json!({ "path": "binary" }), "{{read_file.message}}"),
        ("a7", "read_file", json!({ "path": "gone.txt" }), "{{read_file.message}}"),
        ("a8", "list_files", json!({}), "{{list_files.files}}"),
        ("a9", "list_files", json!({ "pattern": "src/**/*.rs" }), "{{list_files.files}}"),
        ("b1", "list_files", json!({ "path": ".." }), "{{list_files.code}}"),
        ("b2", "read_file", json!({ "path": "src" }), "{{read_file.message}}"),
        ("b3", "list_files", json!({ "pattern": "[" }), "{{list_files.code}}"),
        ("c1", "search_files", json!({ "pattern": "t[wh]" }), "{{search_files.matches}}"),
        ("c2", "search_files", json!({ "pattern": "key", "path": "link.txt" }), "{{search_files.code}}"),
        ("c3", "search_files", json!({ "pattern": "key" }), "{{search_files.matches}} {{search_files.files_searched}}"),
        ("c4", "search_files", json!({ "pattern": "(" }), "{{search_files.message}}"),
        (
            "c5",
            "search_files",
            json!({ "pattern": "THREE", "caseInsensitive": true, "filesOnly": true, "path": "." }),
            "{{search_files.files}} {{search_files.skipped}}",
        ),
        ("c6", "search_files", json!({ "pattern": "x", "glob": "{" }), "{{search_files.code}}"),
    ];
    let files: Vec<(String, String)> =
        cases.iter().map(|case| (format!("{}.md", case.0), assistant(case.0, "Read, LS, Grep"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let steps = |case: &(&str, &str, Value, &str)| json!([{ "text": "1", "tool_calls": [{ "tool_name": case.1, "arguments": case.2 }] }, { "text": case.3 }]);
    let scripts: Vec<(&str, Value)> = cases.iter().map(|case| (case.0, steps(case))).collect();
    let bed = Bed::new(RUNNER, &files, &script(&scripts));
    let project = bed.project();
    std::fs::create_dir_all(project.join("src/deep")).expect("a folder");
    for (name, text) in [
        ("notes.txt", "one\ntwo\nthree\n"),
        ("src/deep/a.rs", ""),
        ("src/b.py", ""),
        (".gitignore", "*.log\n"),
        ("x.log", ""),
        ("../secret.txt", "key"),
    ] {
        std::fs::write(project.join(name), text).expect("a file");
    }
    std::fs::write(project.join("binary"), [0, 1, 2]).expect("a file");
    std::os::unix::fs::symlink("../secret.txt", project.join("link.txt")).expect("a link");
    let client = bed.open().await;
    let want = [
        "one\ntwo\nthree\n",
        "not_permitted",
        "not_permitted",
        "not_permitted",
        "two\n 3",
        "`binary` is a binary file",
        "`gone.txt` does not exist",
        r#"["binary","notes.txt","src/b.py","src/deep/a.rs"]"#,
        r#"["src/deep/a.rs"]"#,
        "not_permitted",
        "`src` is no file",
        "bad_argument",
        r#"[{"path":"notes.txt","line":2,"text":"two"},{"path":"notes.txt","line":3,"text":"three"}]"#,
        "not_permitted",
        "[] 3",
        "the pattern is no regular expression: unclosed group, at character 1",
        r#"["notes.txt"] [{"path":"binary","why":"binary"}]"#,
        "bad_argument",
    ];
    for (case, want) in cases.iter().zip(want) {
        assert_eq!(file_tool(&client, case.0).await, want, "{} {}", case.1, case.2);
    }
    client.host.close().await;
}
