//! Whoever is killed by -9, at whatever moment: nothing is left that the runner has started.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::fake::{Agent, has_python};
use crate::host::{Host, PATIENCE, allow, ended, marked, nothing_is_left};

/// Who is killed beside the runner, by a part of its command line and one that it lacks.
const WHO: [(&str, &str); 2] = [(" guard ", "\0"), ("acp_agent.py", " guard ")];

/// Waits until nothing but the runner itself has the mark.
async fn only_the_runner_is_left(host: &Host, what: &str) {
    let begun = Instant::now();
    let runner = format!("/proc/{} ", host.child.id().expect("lives"));
    loop {
        let left: Vec<String> = marked(&host.mark).into_iter().filter(|one| !one.starts_with(&runner)).collect();
        if left.is_empty() {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: {left:?}");
        sleep(Duration::from_millis(10)).await;
    }
}

fn kill(process: &str) {
    let pid = process.strip_prefix("/proc/").and_then(|rest| rest.split(' ').next()).expect("a process");
    let pid = rustix::process::Pid::from_raw(pid.parse().expect("a number")).expect("a pid");
    // It may be gone.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

/// Kills `moment_ms` after a run has begun; none is when the agent is in the middle of its turn.
async fn check((with, without): (&str, &str), moment_ms: Option<u64>) {
    let what = format!("{with} after {moment_ms:?} ms");
    // It has a child in a session of its own, and hears nothing.
    let Agent { mut host, log: _log } = Agent::start("deaf", allow).await;
    let run = host.begin("the task", json!({}));
    match moment_ms {
        Some(moment_ms) => sleep(Duration::from_millis(moment_ms)).await,
        None => host.happens("text working").await,
    }
    let runner = format!("/proc/{} ", host.child.id().expect("lives"));
    let all = marked(&host.mark);
    let found = all.iter().filter(|one| one.contains(with) && !one.contains(without) && !one.starts_with(&runner));
    let killed: Vec<&String> = found.collect();
    assert!(moment_ms.is_some() || killed.len() == 1, "{what}: {all:?}");
    killed.iter().for_each(|process| kill(process));
    if !killed.is_empty() {
        let ended = ended(run.await.expect("ends"));
        assert!(ended.starts_with("internal_error: "), "{what}: {ended}");
        only_the_runner_is_left(&host, &what).await;
    }
    host.child.kill().await.expect("killed");
    nothing_is_left(&host.mark).await;
}

#[tokio::test]
async fn the_death_of_any_leaves_nothing() {
    if !has_python("kills") {
        return;
    }
    for who in WHO {
        for moment_ms in [Some(0), Some(5), Some(20), Some(50), Some(100), Some(200), Some(400), None] {
            check(who, moment_ms).await;
        }
    }
}
