//! ssh to a server of the test's own on this machine: what runs over there has its folder and its variables whatever signs are
//! in them, ends with its host, and what does not come up is told in the words of ssh.

use std::net::TcpListener;

use conformance::launching::Sshd;
use rmcp::ServiceExt;
use rmcp::transport::TokioChildProcess;

use super::*;
use crate::crash::{McpClient, call};

/// Where our runner is over there.
fn runner() -> String {
    format!("runner = {}", json!(RUNNER))
}

#[tokio::test(flavor = "multi_thread")]
async fn it_works_over_there() {
    let Some(sshd) = Sshd::start() else { return };
    let far = tempfile::tempdir().expect("a folder");
    let dir = far.path().join("it's a \"$HOME\" `x`");
    std::fs::create_dir(&dir).expect("a folder");
    let more = format!("{}\nservers = \"inside\"\ndir = {}", runner(), json!(dir));
    let probe = "pwd; echo \"$ASSISTANT_PROCESS_ID $ASSISTANT_HOST_DEPTH\"; echo written > here".to_owned();
    let mut bed = bed(&sshd.launcher("user", &more), "mcp__shell__*", calls(&[("run_command", probe)]));
    bed.servers = shell();
    let client = bed.open().await;
    let (spawned, seen) = run(&client).await;
    assert_eq!((&seen["status"], &seen["launcher"]), (&json!("finished"), &json!("there")), "{seen}");
    let given = given(&client, &spawned).await.concat();
    let lines: Vec<&str> = given.lines().collect();
    assert!(lines[0].ends_with(&dir.display().to_string()) && lines[1].ends_with(" 1"), "{given}");
    assert_eq!(std::fs::read_to_string(dir.join("here")).expect("written over there"), "written\n");
    // A second one takes the connection of the first.
    let (_, seen) = run(&client).await;
    assert_eq!(seen["status"], "finished", "{seen}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn its_own_servers_are_withheld_unless_they_are_asked_for() {
    let Some(sshd) = Sshd::start() else { return };
    let mut bed = bed(&sshd.launcher("user", &runner()), "Bash, Read", json!([{ "text": "done" }]));
    bed.servers = shell();
    let client = bed.open().await;
    let (spawned, seen) = run(&client).await;
    let lacks = spawned["unavailable_tools"].to_string();
    assert!(seen["status"] == "finished" && lacks.contains("would work on the host's"), "{seen}: {spawned}");
    assert!(lacks.contains("read_file") && lacks.contains("the files of another machine"), "{spawned}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_come_up_is_told() {
    let Some(sshd) = Sshd::start() else { return };
    let nobody = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let elsewhere = sshd.launcher("user", &runner()).replace(&format!("\"{}\"", sshd.port), &format!("\"{nobody}\""));
    for (launcher, words) in [
        (sshd.launcher("stranger", &runner()), "Permission denied (publickey)"),
        (sshd.launcher("user", "runner = \"/no/such/runner\""), "/no/such/runner"),
        (sshd.launcher("user", &format!("{}\ndir = \"/no/such/folder\"", runner())), "/no/such/folder"),
        (sshd.launcher("user", "runner = \"/bin/sleep\"\nlaunch_ms = 20000"), "missing operand"),
        (elsewhere, "Connection refused"),
    ] {
        let bed = bed(&launcher, "", json!([{ "text": "done" }]));
        let client = bed.open().await;
        let (_, seen) = run(&client).await;
        let error = seen["error"].as_str().unwrap_or_default();
        assert!(seen["reason"] == "launch_failed" && error.contains(words), "{words}: {seen}");
        assert!(error.starts_with("the launcher `there`: "), "{error}");
        client.host.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_over_there_ends_with_its_host() {
    let Some(sshd) = Sshd::start() else { return };
    let steps = script(&[("x", json!([{ "hang": true }]))]);
    let bed = Bed::new(RUNNER, &[("x.md", &assistant("x", ""))], &steps);
    let command = super::dies::host(&bed, &steps, &sshd.launcher("user", &runner()));
    let transport = TokioChildProcess::new(command).expect("a process");
    let pid = transport.id().expect("a pid");
    let client: McpClient = ().serve(transport).await.expect("a client");
    let spawned = call(&client, "spawn_assistant", json!({ "assistant_id": "x", "query": "go" })).await;
    let process = spawned["process_id"].as_str().expect("an id").to_owned();
    let begun = Instant::now();
    while with_environment(&process).is_empty() {
        assert!(begun.elapsed() < SOON, "it starts");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill").success());
    until_none("runners over there", || with_environment(&process)).await;
    drop(client);
}
