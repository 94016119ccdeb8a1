//! What is in a worktree, and git does not show.

use serde_json::json;

use super::{bed, git, go_on, gone, has_git, isolated, kept, waits, worktree};

/// What is told of a worktree in which this was done; nothing where it has gone.
async fn check(done: &dyn Fn(&std::path::Path, &str), expected: Option<&str>) {
    let bed = bed(&[("x.md", &isolated("x", "recv_message"))], &[("x", json!([waits(), { "text": "done" }]))]);
    let client = bed.open().await;
    let spawned = client.spawn("x", "work").await;
    let (path, branch) = worktree(&client, &spawned).await;
    done(&path, &branch);
    go_on(&client, &spawned).await;
    client.end(&spawned).await;
    match expected {
        Some(expected) => {
            assert_eq!(kept(&client, &spawned).await["holds"], expected);
            assert!(path.exists());
        }
        None => gone(&client, &spawned).await,
    }
    client.host.close().await;
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
}
