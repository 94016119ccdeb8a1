//! A host that is killed at any moment leaves no worktree in which nothing is new, and loses none in which something is; and
//! the command line, which lists and removes them.

use std::time::Duration;

use conformance::bed::{Bed, SOON, script};
use conformance::dice::Dice;
use conformance::programs;
use rmcp::ServiceExt;
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};
use tokio::process::Command;

use super::{git, has_git, isolated, nothing_left, repository, tool, until, waits};
use crate::crash::{McpClient, call, mcp, runners_of};
use crate::{HOST, RUNNER};

/// How often a host is killed.
const ROUNDS: usize = 10;

fn steps() -> Value {
    script(&[
        ("x", json!([tool("read_file", json!({ "path": "a.txt" })), { "text": "{{result.content}}" }])),
        ("w", json!([waits(), { "text": "done" }])),
    ])
}

fn bed() -> Bed {
    let files = [("x.md", &*isolated("x", "read_file")), ("w.md", &*isolated("w", "recv_message"))];
    let bed = Bed::new(RUNNER, &files, &steps());
    repository(&bed.project());
    bed
}

async fn start(bed: &Bed) -> (McpClient, u32) {
    let transport = TokioChildProcess::new(mcp(bed, &steps())).expect("a process");
    let pid = transport.id().expect("a pid");
    (().serve(transport).await.expect("a client"), pid)
}

async fn kill(bed: &Bed, pid: u32) {
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill");
    assert!(killed.success());
    let state = bed.state().canonicalize().expect("the state");
    until("the runners ended", || runners_of(&state).is_empty()).await;
}

/// Runs `assistant-host worktrees`: its exit code, what it prints, what it complains of.
async fn worktrees(bed: &Bed, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(HOST);
    command.arg("worktrees").args(args).arg("--state").arg(bed.state()).arg("--no-project");
    let output = command.env("HOME", bed.dir.path()).output().await.expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn at_any_moment() {
    if !has_git() {
        return;
    }
    let bed = bed();
    let mut dice = Dice::new(7, 1);
    for round in 0..ROUNDS {
        let (client, pid) = start(&bed).await;
        let spawned = futures::future::join_all(
            (0..6).map(|_| call(&client, "spawn_assistant", json!({ "assistant_id": "x", "query": "read" }))),
        );
        spawned.await;
        tokio::time::sleep(Duration::from_millis(dice.below(12) * 10)).await;
        kill(&bed, pid).await;
        drop(client);
        let client = bed.open().await;
        until(&format!("clean in round {round}"), || nothing_left(&bed)).await;
        client.host.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_new_is_kept_listed_and_removed_by_its_user_only() {
    if !has_git() {
        return;
    }
    let bed = bed();
    let (client, pid) = start(&bed).await;
    let spawned = call(&client, "spawn_assistant", json!({ "assistant_id": "w", "query": "wait" })).await;
    let seen = async || {
        let polled = call(&client, "poll_assistant", json!({ "process_id": spawned["process_id"] })).await;
        polled["process"].clone()
    };
    let found = async {
        loop {
            let seen = seen().await;
            if seen["status"] == "waiting" {
                return seen["worktree"].clone();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let worktree = tokio::time::timeout(SOON, found).await.expect("it works");
    let path = std::path::PathBuf::from(worktree["path"].as_str().expect("a path"));
    std::fs::write(path.join("new.txt"), "new").expect("a file");
    kill(&bed, pid).await;
    drop(client);

    let run = async |args: &[&str]| worktrees(&bed, args).await;
    // While nobody has looked at it, it counts as in use.
    let id = spawned["process_id"].as_str().expect("an id");
    let (code, _, told) = run(&["--remove", id]).await;
    assert_eq!((code, told.contains("a process works in it")), (Some(1), true), "{told}");
    let client = bed.open().await;
    let listed = async {
        loop {
            let listed: Value = serde_json::from_str(&run(&["--json"]).await.1).expect("JSON");
            if listed["items"][0]["state"] == "kept" {
                return listed;
            }
        }
    };
    let listed = tokio::time::timeout(SOON, listed).await.expect("kept");
    assert_eq!(listed["items"][0]["holds"], "1 file that is not committed", "{listed}");
    let (_, table, _) = run(&[]).await;
    assert!(table.contains("1 file that is not committed") && table.contains("assistant/w-"), "{table}");

    let (code, _, told) = run(&["--remove", &id[id.len() - 8..]]).await;
    assert_eq!((code, told.contains("stays: git says: ")), (Some(1), true), "{told}");
    git(&path, &["add", "."]);
    git(&path, &["commit", "--quiet", "-m", "kept"]);
    let (code, _, told) = run(&["--remove", &id[id.len() - 8..]]).await;
    assert_eq!((code, told.contains("is on the branch assistant/w-"), path.exists()), (Some(0), true, false), "{told}");
    assert_eq!(git(&bed.project(), &["for-each-ref", "refs/heads/assistant"]).lines().count(), 1);
    assert_eq!(run(&[]).await, (Some(0), String::new(), "no worktrees\n".to_owned()));
    let (code, _, told) = run(&["--remove", id]).await;
    assert_eq!((code, told.contains("no worktree belongs")), (Some(2), true), "{told}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_whose_process_has_just_ended_is_told_so() {
    if !has_git() {
        return;
    }
    let bed = bed();
    // A git that looks at the files when the process ends, and then not until it may.
    let bin = bed.dir.path().join("bin");
    std::fs::create_dir(&bin).expect("a folder");
    let text = "#!/bin/sh\nd=${0%/*}\ncase \"$*\" in *status*) if [ -e $d/first ]; then while [ ! -e $d/open ]; do sleep 0.05; \
                done; else : > $d/first; fi;; esac\nPATH=${PATH#*:}\nexec git \"$@\"\n";
    programs::write(&bin.join("git"), text);
    let mut host = mcp(&bed, &steps());
    host.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default()));
    let client: McpClient = ().serve(TokioChildProcess::new(host).expect("a process")).await.expect("a client");
    let asked = json!({ "assistant_id": "x", "query": "read", "run_mode": "sync" });
    let ended = call(&client, "spawn_assistant", asked).await;
    assert_eq!(ended["status"], "finished", "{ended}");
    let run = async |args: &[&str]| worktrees(&bed, args).await;
    let (_, table, _) = run(&[]).await;
    assert!(table.contains("its process has ended, and a host looks into it next"), "{table}");
    let (code, _, told) = run(&["--remove", ended["process_id"].as_str().expect("an id")]).await;
    assert_eq!((code, told.contains("try it again in a moment")), (Some(1), true), "{told}");
    std::fs::write(bin.join("open"), "").expect("a file");
    until("removed", || nothing_left(&bed)).await;
    client.cancel().await.expect("it ends");
}
