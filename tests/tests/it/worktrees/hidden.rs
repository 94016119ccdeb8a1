//! What is in a worktree, and git does not show.

use std::time::{Duration, Instant};

use conformance::bed::{Client, SOON};
use serde_json::{Value, json};

use super::{bed, git, go_on, has_git, isolated, kept, waits, worktree};

/// What is told of a worktree in which this was done; nothing where it has gone.
async fn check(done: &dyn Fn(&std::path::Path, &str), expected: Option<&str>) {
    let holds = after(done).await;
    assert_eq!(holds.as_deref(), expected);
}

/// The same, where a part of what is told is elsewhere at each time.
async fn check_beginning(done: &dyn Fn(&std::path::Path, &str), beginning: &str) {
    let holds = after(done).await.unwrap_or_default();
    assert!(holds.starts_with(beginning), "{holds}");
}

async fn after(done: &dyn Fn(&std::path::Path, &str)) -> Option<String> {
    let bed = bed(&[("x.md", &isolated("x", "recv_message"))], &[("x", json!([waits(), { "text": "done" }]))]);
    let client = bed.open().await;
    let spawned = client.spawn("x", "work").await;
    let (path, branch) = worktree(&client, &spawned).await;
    done(&path, &branch);
    go_on(&client, &spawned).await;
    client.end(&spawned).await;
    let holds = match stays(&client, &spawned).await {
        true => {
            assert!(path.exists());
            kept(&client, &spawned).await["holds"].as_str().map(str::to_owned)
        }
        false => None,
    };
    client.host.close().await;
    holds
}

/// Whether the worktree of an ended process is kept, once that is settled.
async fn stays(client: &Client, spawned: &Value) -> bool {
    let begun = Instant::now();
    loop {
        let seen = client.poll(spawned).await;
        match &seen["worktree"] {
            Value::Null => return false,
            told if told["state"] == "kept" => return true,
            _ => assert!(begun.elapsed() < SOON, "neither: {seen}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn commits(path: &std::path::Path) {
    std::fs::write(path.join("a.txt"), "changed").expect("a file");
    git(path, &["commit", "--quiet", "-a", "-m", "of x"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_git_is_told_not_to_look_at_are_kept() {
    if !has_git() {
        return;
    }
    for flag in ["--skip-worktree", "--assume-unchanged"] {
        let changes = |path: &std::path::Path, _: &str| {
            git(path, &["update-index", flag, "a.txt"]);
            std::fs::write(path.join("a.txt"), "changed").expect("a file");
        };
        check(&changes, Some("1 file that git is told not to look at")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_that_were_left_on_no_branch_are_kept() {
    if !has_git() {
        return;
    }
    let leaves = |path: &std::path::Path, branch: &str| {
        git(path, &["checkout", "--quiet", "--detach"]);
        commits(path);
        git(path, &["checkout", "--quiet", branch]);
    };
    check(&leaves, Some("1 commit that is on no branch any more")).await;
    // What is on one is not lost.
    let named = |path: &std::path::Path, branch: &str| {
        git(path, &["checkout", "--quiet", "-b", "of-its-own"]);
        commits(path);
        git(path, &["checkout", "--quiet", branch]);
    };
    check(&named, None).await;
    // Where that cannot be told, it stays.
    let long = |path: &std::path::Path, _: &str| {
        let log = git(path, &["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]);
        std::fs::write(log, "x\n".repeat(1 << 20)).expect("a file");
    };
    check_beginning(&long, "what is in it cannot be told, because git says: ").await;
}
