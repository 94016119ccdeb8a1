//! Where no worktree can be made, the process fails with words that say why, and nothing is left.

use std::os::unix::ffi::OsStrExt;

use conformance::bed::{Bed, script};
use rmcp::ServiceExt;
use rmcp::transport::TokioChildProcess;
use serde_json::json;

use super::{git, has_git, isolated, kept, nothing_left, repository, tool, until, waits, worktree};
use crate::RUNNER;
use crate::crash::{McpClient, call, mcp};

/// A bed whose assistant x is isolated and answers at once.
fn plain() -> Bed {
    Bed::new(RUNNER, &[("x.md", &isolated("x", ""))], &script(&[("x", json!([{ "text": "done" }]))]))
}

/// The words of a run that cannot start.
async fn fails(bed: &Bed) -> String {
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    let seen = client.end(&spawned).await;
    assert_eq!((&seen["status"], &seen["reason"]), (&json!("failed"), &json!("launch_failed")), "{seen}");
    client.host.close().await;
    let error = seen["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.starts_with("isolation: worktree: "), "{error}");
    let left = std::fs::read_dir(bed.state().join("worktrees")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "something is left where worktrees are");
    error
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_repository_is_told() {
    if !has_git() {
        return;
    }
    // A temporary folder may itself lie in a repository.
    let bed = plain();
    std::fs::write(bed.dir.path().join(".git"), "gitdir: /nowhere/at/all").expect("a file");
    let error = fails(&bed).await;
    assert!(error.contains("in no git repository"), "{error}");

    let bed = plain();
    git(&bed.project(), &["init", "--quiet", "--bare"]);
    let error = fails(&bed).await;
    assert!(error.contains("in a bare repository"), "{error}");

    let bed = plain();
    git(&bed.project(), &["init", "--quiet"]);
    let error = fails(&bed).await;
    assert!(error.contains("has no commit"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_the_way_is_told() {
    if !has_git() {
        return;
    }
    // A branch `assistant` leaves no room for `assistant/x-…`.
    let bed = plain();
    repository(&bed.project());
    git(&bed.project(), &["branch", "assistant"]);
    let error = fails(&bed).await;
    assert!(error.contains("git says: ") && error.contains("refs/heads/assistant"), "{error}");
    assert_eq!(git(&bed.project(), &["worktree", "list"]).lines().count(), 1);
    assert!(git(&bed.project(), &["branch"]).contains("assistant"), "the branch of its user stays");

    // The place of worktrees cannot be had.
    let bed = plain();
    repository(&bed.project());
    std::fs::create_dir_all(bed.state()).expect("a folder");
    let file = bed.dir.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let mut options = bed.options();
    options.worktrees = Some(file.join("below"));
    let host = assistant_host::host::Host::open(options).await.expect("a host");
    let client = conformance::bed::Client::of(&host).await;
    let spawned = client.spawn("x", "go").await;
    let seen = client.end(&spawned).await;
    assert!(seen["error"].as_str().is_some_and(|error| error.contains("cannot be used: Not a directory")), "{seen}");
    host.close().await;
    assert!(nothing_left(&bed));

    // Files that cannot be copied, half way: what was made by then is taken back.
    let bed = plain();
    repository(&bed.project());
    std::fs::write(bed.project().join(".gitattributes"), "sub/* filter=x\n").expect("a file");
    git(&bed.project(), &["add", "."]);
    git(&bed.project(), &["commit", "--quiet", "-m", "filtered"]);
    git(&bed.project(), &["config", "filter.x.smudge", "false"]);
    git(&bed.project(), &["config", "filter.x.required", "true"]);
    let error = fails(&bed).await;
    assert!(error.contains("git says: ") && error.contains("smudge filter x failed"), "{error}");
    assert!(nothing_left(&bed));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_without_git_is_told() {
    if !has_git() {
        return;
    }
    let steps = script(&[("x", json!([{ "text": "done" }]))]);
    let bed = plain();
    repository(&bed.project());
    let mut host = mcp(&bed, &steps);
    host.env("PATH", "/nowhere");
    let client: McpClient = ().serve(TokioChildProcess::new(host).expect("a process")).await.expect("a client");
    let asked = json!({ "assistant_id": "x", "query": "go", "run_mode": "sync" });
    let ended = call(&client, "spawn_assistant", asked).await;
    let error = ended["result"]["error"].as_str().unwrap_or_default();
    assert!(error.contains("cannot start git: there is no such program on PATH"), "{ended}");
    client.cancel().await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_paths_and_submodules_are_worked_in() {
    if !has_git() {
        return;
    }
    let reads = json!([waits(), tool("read_file", json!({ "path": "c.txt" })), { "text": "{{result.content}}" }]);
    let bed = Bed::new(RUNNER, &[("x.md", &isolated("x", "read_file, recv_message"))], &script(&[("x", reads)]));
    let other = bed.dir.path().join("other");
    std::fs::create_dir(&other).expect("a folder");
    repository(&other);
    repository(&bed.project());
    let odd = bed.project().join("with blank \u{fc} $HOME 'x'");
    std::fs::create_dir(&odd).expect("a folder");
    std::fs::write(odd.join("c.txt"), "odd").expect("a file");
    git(&bed.project(), &["submodule", "--quiet", "add", &other.to_string_lossy(), "module"]);
    git(&bed.project(), &["add", "."]);
    git(&bed.project(), &["commit", "--quiet", "-m", "odd"]);
    let client = bed.open().await;
    let asked = json!({ "assistant_id": "x", "query": "go", "working_dir": "with blank \u{fc} $HOME 'x'" });
    let spawned = client.call("spawn_assistant", asked).await;
    let (path, _) = worktree(&client, &spawned).await;
    assert!(!path.join("module/a.txt").exists());
    super::go_on(&client, &spawned).await;
    let seen = client.end(&spawned).await;
    assert_eq!(seen["status"], "finished", "{seen}");
    assert!(client.mail(&spawned).await.pop().is_some_and(|told| told.starts_with("odd")));
    until("removed", || !path.exists()).await;

    // Its submodules are there once somebody wants them. Nobody looks into those: their settings may be another's.
    let spawned = client.spawn("x", "go").await;
    let (path, _) = worktree(&client, &spawned).await;
    git(&path, &["submodule", "--quiet", "update", "--init"]);
    assert!(path.join("module/a.txt").exists());
    client.call("cancel_assistant", json!({ "process_id": spawned["process_id"] })).await;
    client.end(&spawned).await;
    assert_eq!(kept(&client, &spawned).await["holds"], "files of submodules are in it");
    client.host.close().await;

    // A path that is no text.
    let bed = plain();
    let odd = bed.project().join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    std::fs::create_dir(&odd).expect("a folder");
    repository(&odd);
    let mut options = bed.options();
    options.project = Some(odd);
    let host = assistant_host::host::Host::open(options).await.expect("a host");
    let client = conformance::bed::Client::of(&host).await;
    let spawned = client.spawn("x", "go").await;
    let seen = client.end(&spawned).await;
    assert_eq!(seen["reason"], "launch_failed", "{seen}");
    host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worktree_cannot_point_the_host_elsewhere() {
    if !has_git() {
        return;
    }
    let bed = super::bed(&[("x.md", &isolated("x", "recv_message"))], &[("x", json!([waits(), { "text": "done" }]))]);
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    let (path, _) = worktree(&client, &spawned).await;
    // Somebody in it makes it a repository of his own, whose settings would run what he likes.
    let theirs = bed.dir.path().join("theirs");
    std::fs::create_dir(&theirs).expect("a folder");
    repository(&theirs);
    let ran = bed.dir.path().join("ran");
    git(&theirs, &["config", "core.fsmonitor", &format!("touch {}", ran.display())]);
    git(&theirs, &["config", "filter.x.clean", &format!("touch {}", ran.display())]);
    std::fs::write(path.join(".git"), format!("gitdir: {}", theirs.join(".git").display())).expect("a file");
    std::fs::write(path.join(".gitattributes"), "* filter=x\n").expect("a file");
    super::go_on(&client, &spawned).await;
    let seen = client.end(&spawned).await;
    assert_eq!(seen["status"], "finished", "{seen}");
    assert_eq!(kept(&client, &spawned).await["holds"], "1 file that is not committed");
    assert!(!ran.exists(), "the host ran what a worktree says");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_within_a_worktree_has_nothing_run() {
    if !has_git() {
        return;
    }
    let bed = super::bed(&[("x.md", &isolated("x", "recv_message"))], &[("x", json!([waits(), { "text": "done" }]))]);
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    let (path, _) = worktree(&client, &spawned).await;
    let ran = bed.dir.path().join("ran");
    let within = path.join("within");
    std::fs::create_dir(&within).expect("a folder");
    repository(&within);
    // In the index of the worktree it is a submodule; what is not as it was committed goes through a filter.
    git(&path, &["add", "within"]);
    git(&path, &["commit", "--quiet", "-m", "within"]);
    git(&within, &["config", "core.fsmonitor", &format!("touch {}", ran.display())]);
    git(&within, &["config", "filter.x.clean", &format!("touch {}", ran.display())]);
    std::fs::write(within.join(".git/info/attributes"), "* filter=x\n").expect("a file");
    std::fs::write(within.join("a.txt"), "commotted").expect("a file");
    super::go_on(&client, &spawned).await;
    let seen = client.end(&spawned).await;
    assert_eq!(seen["status"], "finished", "{seen}");
    assert_eq!(kept(&client, &spawned).await["holds"], "files of submodules are in it");
    assert!(!ran.exists(), "the host ran what a submodule says");
    client.host.close().await;
    // What it would have been.
    git(&path, &["status", "--porcelain", "--ignore-submodules=none"]);
    assert!(ran.exists(), "git heeds those settings");
}
