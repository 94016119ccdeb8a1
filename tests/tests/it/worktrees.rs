//! Assistants with `isolation: worktree`: each run in a git worktree of its own, which goes when nothing is new in it, and
//! stays, and is told, when something is. With the real git.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use conformance::bed::{Bed, Client, SOON, assistant, script};
use conformance::launching::can;
use conformance::programs;
use serde_json::{Value, json};

use crate::RUNNER;

mod hidden;
mod killed;
mod left;
mod refused;

/// Whether git is here; where it is not, that is said.
fn has_git() -> bool {
    can(&["git", "--version"])
}

/// Runs git in a folder and returns its stdout.
fn git(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always"]);
    let output = command.args(args).current_dir(dir).output().expect("git runs");
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "git {args:?}: {said} {wrong}");
    said.trim().to_owned()
}

/// Makes a repository of a folder, with `a.txt` and `sub/b.txt` committed.
fn repository(dir: &Path) {
    git(dir, &["init", "--quiet", "--initial-branch=main"]);
    std::fs::create_dir_all(dir.join("sub")).expect("a folder");
    std::fs::write(dir.join("a.txt"), "committed").expect("a file");
    std::fs::write(dir.join("sub/b.txt"), "below").expect("a file");
    git(dir, &["add", "."]);
    git(dir, &["commit", "--quiet", "-m", "first"]);
}

/// An assistant that has worktrees.
fn isolated(name: &str, tools: &str) -> String {
    assistant(name, tools).replace("\ntools:", "\nisolation: worktree\ntools:")
}

fn tool(name: &str, arguments: Value) -> Value {
    json!({ "tool_calls": [{ "tool_name": name, "arguments": arguments }] })
}

/// A step that waits for a message.
fn waits() -> Value {
    tool("recv_message", json!({ "thread_id": "{{id_after.thread_id}}", "wait_ms": 600_000, "unread_only": true }))
}

/// A bed whose project is a repository.
fn bed(assistants: &[(&str, &str)], steps: &[(&str, Value)]) -> Bed {
    let bed = Bed::new(RUNNER, assistants, &script(steps));
    repository(&bed.project());
    bed
}

/// The worktree of a process, once it has one.
async fn worktree(client: &Client, spawned: &Value) -> (PathBuf, String) {
    let begun = Instant::now();
    loop {
        let seen = client.poll(spawned).await;
        if let (Some(path), Some(branch)) = (seen["worktree"]["path"].as_str(), seen["worktree"]["branch"].as_str()) {
            return (path.into(), branch.to_owned());
        }
        assert!(begun.elapsed() < SOON, "no worktree: {seen}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until something is so.
async fn until(what: &str, so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < SOON, "never {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the worktree of an ended process is kept, and returns what is told of it.
async fn kept(client: &Client, spawned: &Value) -> Value {
    let begun = Instant::now();
    loop {
        let seen = client.poll(spawned).await;
        if seen["worktree"]["state"] == "kept" {
            return seen["worktree"].clone();
        }
        assert!(begun.elapsed() < SOON, "not kept: {seen}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until an ended process is told without a worktree.
async fn gone(client: &Client, spawned: &Value) {
    let begun = Instant::now();
    while !client.poll(spawned).await["worktree"].is_null() {
        assert!(begun.elapsed() < SOON, "the worktree is still told");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Nothing of any worktree is left in a repository, or where worktrees are.
fn nothing_left(bed: &Bed) -> bool {
    let project = bed.project();
    let files = std::fs::read_dir(bed.state().join("worktrees")).map_or(0, Iterator::count);
    files == 0
        && git(&project, &["worktree", "list", "--porcelain"]).matches("worktree ").count() == 1
        && git(&project, &["for-each-ref", "refs/heads/assistant"]).is_empty()
        && !project.join(".git/worktrees").read_dir().is_ok_and(|mut entries| entries.next().is_some())
}

/// Sends a message to a process that waits for one: an earlier one would be told with its task.
async fn go_on(client: &Client, spawned: &Value) {
    client.until(spawned, "waiting").await;
    let message = json!({ "thread_id": spawned["thread_id"], "message": "go on" });
    let sent = client.call("send_message", message).await;
    assert_eq!(sent["success"], true, "{sent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_in_which_nothing_is_new_goes_with_its_branch() {
    if !has_git() {
        return;
    }
    let reads = json!([tool("read_file", json!({ "path": "a.txt" })), { "text": "{{result.content}}" }]);
    let bed = bed(&[("x.md", &isolated("x", "read_file"))], &[("x", reads)]);
    // What is not committed is not in it; hooks of the repository are not run.
    std::fs::write(bed.project().join("a.txt"), "not committed").expect("a file");
    let hook = bed.project().join(".git/hooks/post-checkout");
    programs::write(&hook, &format!("#!/bin/sh\ntouch {}/hooked\n", bed.dir.path().display()));
    let client = bed.open().await;
    let spawned = client.spawn("x", "read").await;
    let seen = client.end(&spawned).await;
    assert_eq!(seen["status"], "finished", "{seen}");
    let told = client.mail(&spawned).await.pop().unwrap_or_default();
    assert!(told.contains("committed") && !told.contains("not committed") && !told.contains("worktree"), "{told}");
    until("removed", || nothing_left(&bed)).await;
    assert!(!bed.dir.path().join("hooked").exists(), "a hook was run");
    // What is told of it goes after it.
    gone(&client, &spawned).await;
    assert_eq!(std::fs::read_to_string(bed.project().join("a.txt")).expect("a file"), "not committed");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_with_changes_is_kept_told_and_gone_on_with() {
    if !has_git() {
        return;
    }
    let first = json!({ "when": { "system": "You are x.", "last_user": "more" }, "steps": [
        // Those of the run before.
        { "text": "1" }, { "text": "2" },
        tool("read_file", json!({ "path": "new.txt" })), { "text": "again {{result.content}}" },
    ] });
    let then = json!({ "when": { "system": "You are x." }, "steps": [waits(), { "text": "done" }] });
    let files = [("x.md", isolated("x", "read_file, recv_message"))];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let bed = Bed::new(RUNNER, &files, &json!({ "assistants": [first, then] }));
    repository(&bed.project());
    let client = bed.open().await;
    let spawned = client.spawn("x", "work").await;
    let (path, branch) = worktree(&client, &spawned).await;
    std::fs::write(path.join("new.txt"), "by x").expect("a file");
    git(&path, &["add", "."]);
    git(&path, &["commit", "--quiet", "-m", "of x"]);
    std::fs::write(path.join("sub/b.txt"), "changed").expect("a file");
    go_on(&client, &spawned).await;
    let seen = client.end(&spawned).await;
    assert_eq!(seen["status"], "finished", "{seen}");
    let told = client.mail(&spawned).await.pop().unwrap_or_default();
    let want = format!(
        "done\n\n[What it changed is in the git worktree {}, on the branch {branch}: 1 commit and 1 file that is not \
         committed.]",
        path.display()
    );
    assert_eq!(told, want);
    let waited = client.call("wait_assistant", json!({ "process_ids": [spawned["process_id"]] })).await;
    assert!(waited["events"][0]["content"].as_str().is_some_and(|words| words == want), "{waited}");
    assert_eq!(kept(&client, &spawned).await["holds"], "1 commit and 1 file that is not committed");

    let again = json!({ "resume_process_id": spawned["process_id"], "query": "more" });
    let resumed = client.call("spawn_assistant", again).await;
    let seen = client.end(&resumed).await;
    assert_eq!(seen["status"], "finished", "{seen}");
    assert!(client.mail(&resumed).await.pop().is_some_and(|told| told.starts_with("again by x")));
    let same = kept(&client, &resumed).await;
    assert_eq!(same["path"].as_str().map(PathBuf::from), Some(path.clone()));

    // Where it was removed, by git or by hand, a new one is made on its branch, and that is told.
    let mut last = (resumed, path);
    for by_hand in [true, false] {
        let path = last.1.to_string_lossy().into_owned();
        match by_hand {
            true => std::fs::remove_dir_all(&path).expect("removed"),
            false => drop(git(&bed.project(), &["worktree", "remove", "--force", &path])),
        }
        let again = json!({ "resume_process_id": last.0["process_id"], "query": "x" });
        let resumed = client.call("spawn_assistant", again).await;
        let told = resumed["worktree_gone"].as_str().unwrap_or_default();
        assert!(told.contains(&path) && told.contains(&branch), "{resumed}");
        let (new, on) = worktree(&client, &resumed).await;
        assert!(new != last.1 && on == branch && new.join("new.txt").exists(), "{} on {on}", new.display());
        client.call("cancel_assistant", json!({ "process_id": resumed["process_id"] })).await;
        client.end(&resumed).await;
        assert_eq!(kept(&client, &resumed).await["holds"], "1 commit");
        let log =
            client.call("read_log", json!({ "process_id": resumed["process_id"], "limit": 200 })).await.to_string();
        assert!(log.contains("instead_of"), "{log}");
        last = (resumed, new);
    }
    // Where the branch is checked out elsewhere, another one goes on from it.
    let resume = async |old: &Value, more: &str| {
        let resumed =
            client.call("spawn_assistant", json!({ "resume_process_id": old["process_id"], "query": "x" })).await;
        let (new, on) = worktree(&client, &resumed).await;
        assert!(on != more && on != branch, "{on}");
        let has = new.join("new.txt").exists();
        client.call("cancel_assistant", json!({ "process_id": resumed["process_id"] })).await;
        client.end(&resumed).await;
        (resumed, new, on, has)
    };
    let remove = |path: &Path| git(&bed.project(), &["worktree", "remove", "--force", &path.to_string_lossy()]);
    remove(&last.1);
    git(&bed.project(), &["checkout", "--quiet", &branch]);
    let (resumed, new, on, has) = resume(&last.0, "").await;
    assert!(has, "what was committed is there");
    assert_eq!(kept(&client, &resumed).await["holds"], "1 commit");
    // Without a branch what is checked out is begun with.
    remove(&new);
    git(&bed.project(), &["checkout", "--quiet", "main"]);
    git(&bed.project(), &["branch", "-D", &on]);
    let (_, new, _, has) = resume(&resumed, &on).await;
    assert!(!has, "nothing of it is there");
    until("removed", || !new.exists()).await;
    assert!(git(&bed.project(), &["log", "--oneline", &branch]).contains("of x"), "what was committed is there");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn children_work_in_it_and_keep_it() {
    if !has_git() {
        return;
    }
    let parent = json!([
        waits(),
        tool("spawn_assistant", json!({ "assistant_id": "y", "query": "read", "run_mode": "sync" })),
        tool("spawn_assistant", json!({ "assistant_id": "z", "query": "stay", "detached": true })),
        { "text": "done" },
    ]);
    let child = json!([tool("read_file", json!({ "path": "b.txt" })), { "text": "{{result.content}}" }]);
    let bed = bed(
        &[
            ("x.md", &isolated("x", "recv_message, spawn_assistant, read_file")),
            ("y.md", &assistant("y", "read_file")),
            ("z.md", &assistant("z", "recv_message")),
        ],
        &[("x", parent), ("y", child), ("z", json!([waits(), { "text": "over" }]))],
    );
    let client = bed.open().await;
    let asked = json!({ "assistant_id": "x", "query": "work", "working_dir": "sub" });
    let spawned = client.call("spawn_assistant", asked).await;
    let (path, _) = worktree(&client, &spawned).await;
    std::fs::write(path.join("sub/b.txt"), "of the parent").expect("a file");
    std::fs::write(path.join("sub/b.txt"), "below").expect("a file");
    go_on(&client, &spawned).await;
    let seen = client.end(&spawned).await;
    assert_eq!(seen["status"], "finished", "{seen}");
    let listed = client.call("list_process", json!({})).await;
    let items: Vec<&Value> = listed["items"].as_array().into_iter().flatten().collect();
    let of = |name: &str| items.iter().find(|one| one["assistant_id"] == name).copied().cloned().unwrap_or_default();
    assert_eq!((&of("y")["status"], &of("y")["worktree"]["shared"]), (&json!("finished"), &json!(true)), "{listed}");
    // One that outlives it works there still.
    assert!(path.exists(), "a process works in it");
    go_on(&client, &of("z")).await;
    client.end(&of("z")).await;
    until("removed", || nothing_left(&bed)).await;
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_with_isolation_begins_at_what_its_parent_has_committed() {
    if !has_git() {
        return;
    }
    let parent = json!([
        waits(),
        tool("spawn_assistant", json!({ "assistant_id": "y", "query": "read", "run_mode": "sync" })),
        { "text": "done" },
    ]);
    let child = json!([tool("read_file", json!({ "path": "a.txt" })), { "text": "read {{result.content}}" }]);
    let bed = bed(
        &[("x.md", &isolated("x", "recv_message, spawn_assistant, read_file")), ("y.md", &isolated("y", "read_file"))],
        &[("x", parent), ("y", child)],
    );
    let client = bed.open().await;
    let spawned = client.spawn("x", "work").await;
    let (path, _) = worktree(&client, &spawned).await;
    std::fs::write(path.join("a.txt"), "by the parent").expect("a file");
    git(&path, &["commit", "--quiet", "-a", "-m", "of x"]);
    go_on(&client, &spawned).await;
    let seen = client.end(&spawned).await;
    assert_eq!(seen["status"], "finished", "{seen}");
    let asked = json!({ "process_id": spawned["process_id"], "transcript": true });
    let log = client.call("read_log", asked).await.to_string();
    assert!(log.contains("read by the parent"), "{log}");
    assert_eq!(kept(&client, &spawned).await["holds"], "1 commit");
    let branches = || git(&bed.project(), &["for-each-ref", "refs/heads/assistant"]).lines().count();
    until("that of y only is gone", || branches() == 1).await;
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_at_once_in_one_repository() {
    if !has_git() {
        return;
    }
    let reads = json!([tool("read_file", json!({ "path": "a.txt" })), waits(), { "text": "done" }]);
    let mut bed = bed(&[("x.md", &isolated("x", "read_file, recv_message"))], &[("x", reads)]);
    bed.limits.running_per_session = 20;
    let client = bed.open().await;
    let spawned = futures::future::join_all((0..20).map(|number| {
        let client = client.clone();
        async move { client.spawn("x", &format!("{number}")).await }
    }))
    .await;
    let mut places = Vec::new();
    for (number, one) in spawned.iter().enumerate() {
        let (path, branch) = worktree(&client, one).await;
        if number % 2 == 1 {
            std::fs::write(path.join("new.txt"), "new").expect("a file");
            // A lock that a killed git has left hinders nobody.
            let index = git(&path, &["rev-parse", "--path-format=absolute", "--git-path", "index"]);
            std::fs::write(format!("{index}.lock"), "").expect("a file");
        }
        places.push((path, branch));
    }
    let different: std::collections::HashSet<_> = places.iter().collect();
    assert_eq!(different.len(), 20);
    std::fs::write(bed.project().join(".git/index.lock"), "").expect("a file");
    for one in &spawned {
        go_on(&client, one).await;
    }
    for one in &spawned {
        let seen = client.end(one).await;
        assert_eq!(seen["status"], "finished", "{seen}");
    }
    let branches = || git(&bed.project(), &["for-each-ref", "refs/heads/assistant"]).lines().count();
    until("10 are left", || branches() == 10).await;
    for (number, (path, _)) in places.iter().enumerate() {
        assert_eq!(path.exists(), number % 2 == 1, "{number}");
    }
    for one in spawned.iter().skip(1).step_by(2) {
        assert_eq!(kept(&client, one).await["holds"], "1 file that is not committed");
    }
    client.host.close().await;
    std::fs::remove_file(bed.project().join(".git/index.lock")).expect("removed");
    git(&bed.project(), &["fsck", "--strict"]);
}
