//! What is left of worktrees when something is not where it was: files that are away, `.git` files, a removal half done.

use std::path::Path;

use conformance::bed::Bed;
use serde_json::{Value, json};
use tokio::process::Command;

use super::{bed, git, go_on, has_git, isolated, kept, nothing_left, until, waits, worktree};
use crate::HOST;

/// A bed whose assistant w waits for a message, and ends.
fn waiting() -> Bed {
    bed(&[("w.md", &isolated("w", "recv_message"))], &[("w", json!([waits(), { "text": "done" }]))])
}

/// The git directory of a worktree.
fn git_dir(path: &Path) -> String {
    git(path, &["rev-parse", "--absolute-git-dir"])
}

/// The program's `worktrees --remove` of a process.
async fn remove(bed: &Bed, spawned: &Value, more: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(HOST);
    command.args(["worktrees", "--remove", spawned["process_id"].as_str().expect("an id")]).args(more);
    command.arg("--state").arg(bed.state()).arg("--no-project").env("HOME", bed.dir.path());
    let output = command.output().await.expect("it runs");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn worktrees_of_the_user_stay_whatever_is_removed() {
    if !has_git() {
        return;
    }
    let bed = waiting();
    let (theirs, away) = (bed.dir.path().join("theirs"), bed.dir.path().join("away"));
    git(&bed.project(), &["worktree", "add", "--quiet", "--detach", &theirs.to_string_lossy()]);
    // A disk that is not there now.
    std::fs::rename(&theirs, &away).expect("moved");
    let client = bed.open().await;
    let known = || bed.project().join(".git/worktrees").read_dir().map_or(0, Iterator::count);
    for files_are_gone in [false, true] {
        let spawned = client.spawn("w", "wait").await;
        let (path, branch) = worktree(&client, &spawned).await;
        if files_are_gone {
            std::fs::remove_dir_all(&path).expect("removed");
        }
        go_on(&client, &spawned).await;
        client.end(&spawned).await;
        until("removed", || git(&bed.project(), &["branch", "--list", &branch]).is_empty()).await;
        assert_eq!((known(), path.exists()), (1, false), "{files_are_gone}");
    }
    client.host.close().await;
    std::fs::rename(&away, &theirs).expect("moved");
    assert_eq!(git(&theirs, &["status", "--porcelain"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_cannot_be_reached_is_not_forgotten() {
    if !has_git() {
        return;
    }
    let bed = waiting();
    let (place, away) = (bed.state().join("worktrees"), bed.dir.path().join("away"));
    let client = bed.open().await;
    let spawned = client.spawn("w", "wait").await;
    let (path, branch) = worktree(&client, &spawned).await;
    std::fs::write(path.join("new.txt"), "new").expect("a file");
    client.until(&spawned, "waiting").await;
    std::fs::rename(&place, &away).expect("moved");
    go_on(&client, &spawned).await;
    client.end(&spawned).await;
    client.host.close().await;
    drop(client);
    // Once as it was in use, and once as it is kept.
    for _ in 0..2 {
        let client = bed.open().await;
        client.host.close().await;
        drop(client);
        std::fs::rename(&away, &place).expect("moved");
        let client = bed.open().await;
        assert_eq!(kept(&client, &spawned).await["holds"], "1 file that is not committed");
        assert!(!git(&bed.project(), &["branch", "--list", &branch]).is_empty());
        client.host.close().await;
        drop(client);
        std::fs::rename(&place, &away).expect("moved");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_was_broken_off_is_done() {
    if !has_git() {
        return;
    }
    let bed = waiting();
    let client = bed.open().await;
    for (begun, has_new) in [(true, false), (true, true), (false, false)] {
        let spawned = client.spawn("w", "wait").await;
        let (path, _) = worktree(&client, &spawned).await;
        if begun {
            std::fs::write(Path::new(&git_dir(&path)).join("assistant-removing"), "").expect("a file");
        }
        if has_new {
            std::fs::write(path.join("new.txt"), "new").expect("a file");
        }
        std::fs::remove_file(path.join("sub/b.txt")).expect("removed");
        std::fs::remove_file(path.join(".git")).expect("removed");
        go_on(&client, &spawned).await;
        client.end(&spawned).await;
        if begun && !has_new {
            until("removed", || nothing_left(&bed)).await;
        } else {
            assert_eq!(kept(&client, &spawned).await["holds"], "1 file that is not committed", "{begun} {has_new}");
        }
    }
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_git_takes_for_none_is_removed_by_force() {
    if !has_git() {
        return;
    }
    let bed = waiting();
    let client = bed.open().await;
    for text in [None, Some("gitdir: /no/such\n")] {
        let spawned = client.spawn("w", "wait").await;
        let (path, _) = worktree(&client, &spawned).await;
        std::fs::write(path.join("new.txt"), "new").expect("a file");
        std::fs::remove_file(path.join(".git")).expect("removed");
        if let Some(text) = text {
            std::fs::write(path.join(".git"), text).expect("a file");
        }
        go_on(&client, &spawned).await;
        client.end(&spawned).await;
        kept(&client, &spawned).await;
        let (code, told) = remove(&bed, &spawned, &[]).await;
        assert_eq!((code, told.contains("stays: git says: "), path.exists()), (Some(1), true, true), "{told}");
        let (code, told) = remove(&bed, &spawned, &["--force"]).await;
        assert_eq!(code, Some(0), "{told}");
        assert!(nothing_left(&bed), "{text:?}");
    }
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_its_user_has_begun_to_remove_or_removed_by_hand_is_removed() {
    if !has_git() {
        return;
    }
    let bed = waiting();
    let client = bed.open().await;
    for (by_hand, has_new) in [(true, false), (false, false), (false, true)] {
        let spawned = client.spawn("w", "wait").await;
        let (path, branch) = worktree(&client, &spawned).await;
        std::fs::write(path.join("new.txt"), "new").expect("a file");
        git(&path, &["add", "."]);
        git(&path, &["commit", "--quiet", "-m", "new"]);
        go_on(&client, &spawned).await;
        client.end(&spawned).await;
        assert_eq!(kept(&client, &spawned).await["holds"], "1 commit");
        if by_hand {
            std::fs::remove_dir_all(&path).expect("removed");
        } else {
            // As far as one comes that is killed.
            std::fs::write(Path::new(&git_dir(&path)).join("assistant-removing"), "").expect("a file");
            std::fs::remove_file(path.join("sub/b.txt")).expect("removed");
            std::fs::remove_file(path.join(".git")).expect("removed");
        }
        if has_new {
            std::fs::write(path.join("newer.txt"), "new").expect("a file");
            let (code, told) = remove(&bed, &spawned, &[]).await;
            assert_eq!(
                (code, told.contains("files in it are not committed"), path.exists()),
                (Some(1), true, true),
                "{told}"
            );
            std::fs::remove_file(path.join("newer.txt")).expect("removed");
        }
        assert_eq!(listed(&bed).await.contains("its folder is gone"), by_hand);
        let (code, told) = remove(&bed, &spawned, &[]).await;
        assert!(code == Some(0) && told.contains(&format!("is on the branch {branch}")), "{told}");
        assert!(!path.exists() && git(&bed.project(), &["worktree", "list"]).lines().count() == 1);
        assert_eq!(listed(&bed).await, "");
        git(&bed.project(), &["branch", "-D", &branch]);
    }
    client.host.close().await;
}

/// What `worktrees` lists.
async fn listed(bed: &Bed) -> String {
    let mut command = Command::new(HOST);
    command.arg("worktrees").arg("--state").arg(bed.state()).arg("--no-project").env("HOME", bed.dir.path());
    String::from_utf8_lossy(&command.output().await.expect("it runs").stdout).into_owned()
}
