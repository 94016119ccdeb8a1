//! The same while a host is at work.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use conformance::doors::socket;

use super::importing::collection;
use super::*;

/// A home whose host is ended with it.
struct WithHost(Home);

impl Drop for WithHost {
    fn drop(&mut self) {
        let mut stop = std::process::Command::new(HOST);
        stop.args(["stop", "--force"]).current_dir(self.0.project()).env_clear().env("HOME", self.0.path());
        // Where that fails the host ends for want of clients.
        drop(stop.stderr(Stdio::null()).status());
    }
}

async fn with_host() -> WithHost {
    let home = WithHost(Home::new());
    let script = conformance::bed::script(&[("poet", json!([{ "text": "a verse" }]))]);
    home.0.write("script.json", &script.to_string());
    let config = format!(
        "default_model = \"s\"\n[models.s]\nprovider = \"scripted\"\nscript = \"{}\"\n",
        home.0.path().join("script.json").display()
    );
    home.0.write(".config/assistant-host/config.toml", &config);
    home.0.out(&["ps"]).await;
    assert_eq!(home.0.json(&["status"]).await["running"], true);
    home
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_is_found_at_once() {
    let host = with_host().await;
    let home = &host.0;
    let pid = home.json(&["status"]).await["host"]["pid"].clone();
    home.fails(&["run", "go", "--assistant", "poet"], 3, "no assistant has the id `poet`").await;
    collection(home);
    for n in 0..300 {
        home.write(&format!("lib/many/a{n}.md"), &assistant(&format!("a{n}"), ""));
    }
    assert_eq!(home.json(&["import", "../lib", "--tag", "team"]).await["totals"]["added"], 303);
    assert_eq!(home.json(&["import", "../lib", "--tag", "team"]).await["totals"]["unchanged"], 303);
    assert_eq!(home.out(&["run", "the assistant poet of the tests"]).await, "a verse\n");
    home.out(&["new", "Kept", "--to", "database"]).await;
    home.fails(&["new", "Kept", "--to", "database"], 1, "there is an assistant `kept` already").await;
    home.out(&["remove", "poet", "kept"]).await;
    home.fails(&["run", "go", "--assistant", "poet"], 3, "no assistant has the id `poet`").await;
    assert_eq!(home.json(&["status"]).await["host"]["pid"], pid, "one host did it all");
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_list_stores_nothing() {
    let host = with_host().await;
    let home = &host.0;
    let status = home.json(&["status"]).await;
    let state = std::path::PathBuf::from(status["state"].as_str().expect("a path"));
    let list = format!("[{}", "{},".repeat(1_000));
    for (sent, said) in [(&list[..7], "7 of 3001 bytes came; nothing was stored"), (&list, "no list of assistants")] {
        let mut stream = UnixStream::connect(socket(&state)).expect("a host");
        let hello = json!({
            "want": { "store": { "bytes": list.len(), "how": { "replace": true, "dry_run": false } } },
            "version": "0", "build": status["host"]["build"], "pid": 1,
        });
        stream.write_all(format!("{hello}\n").as_bytes()).expect("it hears");
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).expect("a line");
        assert!(line.contains("welcome"), "{line}");
        stream.write_all(sent.as_bytes()).expect("it hears");
        stream.shutdown(std::net::Shutdown::Write).expect("the end");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.contains(said), "{answer}");
    }
    home.fails(&["export", "--all", "--to", "x"], 1, "there are no assistants to export").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_directory_without_a_door_is_told() {
    let home = Home::new();
    let mut held = home.command(&["mcp", "--embedded"]);
    let mut child = held.stdin(Stdio::piped()).spawn().expect("it runs");
    let mut stdout = tokio::io::BufReader::new(child.stdout.take().expect("stdout"));
    let shake = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"#,
        r#""clientInfo":{"name":"t","version":"1"}}}"#,
        "\n"
    );
    let mut stdin = child.stdin.take().expect("stdin");
    tokio::io::AsyncWriteExt::write_all(&mut stdin, shake.as_bytes()).await.expect("it hears");
    let mut line = String::new();
    let read = tokio::io::AsyncBufReadExt::read_line(&mut stdout, &mut line);
    tokio::time::timeout(SOON, read).await.expect("it answers").expect("a line");
    home.fails(&["new", "x", "--to", "database"], 1, "which has no door or is of an older version").await;
    drop(stdin);
    tokio::time::timeout(SOON, child.wait()).await.expect("it ends").expect("it ends");
}
