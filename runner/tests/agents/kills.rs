//! Whoever is killed by -9, at whatever moment: nothing is left that the runner has started.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::host::{Host, SOON, marked};
use crate::stand_in::{StandIn, says};

/// Who is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Adapter,
    Guard,
    Agent,
}

fn kill(pid: i32) {
    // It may be gone.
    let _ = kill_process(Pid::from_raw(pid).expect("a number"), Signal::KILL);
}

fn with(process: &[(i32, String)], what: &str) -> Vec<i32> {
    process.iter().filter(|(_, command)| command.contains(what)).map(|(pid, _)| *pid).collect()
}

/// Waits until nothing has the mark any more, without the adapter where that lives on.
async fn gone(host: &Host, but: &[i32]) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        let left: Vec<_> = marked(host.process).into_iter().filter(|(pid, _)| !but.contains(pid)).collect();
        if left.is_empty() {
            return Ok(());
        }
        if begun.elapsed() > SOON {
            return Err(format!("left: {left:?}"));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// An agent that hears no signal, with children in its group and outside of it, all deaf.
async fn begun() -> (StandIn, Host) {
    let agent = StandIn::of("claude");
    agent.plays(&json!([["deaf"], ["read"], ["child", "deaf"], ["child", "own"], ["child"], says("Here."), ["hang"]]));
    let host = agent.host().await;
    (agent, host)
}

fn adapter(host: &Host) -> i32 {
    i32::try_from(host.child.id().expect("lives")).expect("a number")
}

/// The agent itself, or the step before it, without its guard and its adapter.
fn agent_of(all: &[(i32, String)]) -> Vec<i32> {
    let others = [with(all, " guard "), with(all, " cli ")].concat();
    with(all, "--play").into_iter().filter(|pid| !others.contains(pid)).collect()
}

/// Kills `moment_ms` after a run has begun; none is when the agent has started all that it starts.
async fn check(who: Who, moment_ms: Option<u64>) {
    let (_agent, host) = begun().await;
    let adapter = adapter(&host);
    let run = host.begin(json!({}));
    match moment_ms {
        Some(moment_ms) => tokio::time::sleep(Duration::from_millis(moment_ms)).await,
        None => host.sees("text \"Here.\"").await,
    }
    let all = marked(host.process);
    if moment_ms.is_none() {
        assert_eq!(all.len(), 6, "adapter, guard, agent and its children: {all:?}");
    }
    let killed = match who {
        Who::Adapter => vec![adapter],
        Who::Guard => with(&all, " guard "),
        Who::Agent => agent_of(&all),
    };
    killed.iter().copied().for_each(kill);
    if who != Who::Adapter && !killed.is_empty() {
        let ended = run.await.expect("ends");
        assert!(ended.starts_with("internal_error: "), "{who:?} after {moment_ms:?} ms: {ended}");
        gone(&host, &[adapter]).await.unwrap_or_else(|left| panic!("{who:?} after {moment_ms:?} ms: {left}"));
    }
    // What is left ends with the adapter.
    kill(adapter);
    gone(&host, &[]).await.unwrap_or_else(|left| panic!("{who:?} after {moment_ms:?} ms: {left}"));
}

/// Milliseconds after the beginning of a run: while the guard, the step before the agent, and the agent begin.
const MOMENTS_MS: [u64; 16] = [0, 1, 2, 3, 4, 6, 8, 11, 14, 18, 23, 30, 40, 55, 80, 200];

async fn at_all_moments(who: Who) {
    for moment in MOMENTS_MS {
        check(who, Some(moment)).await;
    }
    check(who, None).await;
}

#[tokio::test]
async fn a_killed_adapter_leaves_nothing() {
    at_all_moments(Who::Adapter).await;
}

#[tokio::test]
async fn a_killed_guard_leaves_nothing() {
    at_all_moments(Who::Guard).await;
}

#[tokio::test]
async fn a_killed_agent_leaves_nothing() {
    at_all_moments(Who::Agent).await;
}

/// Where all that could end the agent's children is killed at once, the agent itself ends, and what it has started is found
/// by its mark: the host ends it so.
#[tokio::test]
async fn what_outlives_all_of_them_is_known_by_its_mark() {
    let (_agent, host) = begun().await;
    let adapter = adapter(&host);
    drop(host.begin(json!({})));
    host.sees("text \"Here.\"").await;
    let all = marked(host.process);
    // The guard first, so that it cannot hear of the adapter's end.
    with(&all, " guard ").into_iter().chain([adapter]).for_each(kill);
    let children = with(&all, "import time");
    assert_eq!(children.len(), 3, "{all:?}");
    gone(&host, &children).await.expect("the agent dies with its guard");
    for (pid, command) in marked(host.process) {
        assert!(children.contains(&pid), "{command}");
        kill(pid);
    }
    gone(&host, &[]).await.expect("killed");
}

/// As the end of a run in order.
#[tokio::test]
async fn a_shutdown_in_a_run_leaves_nothing() {
    let (_agent, host) = begun().await;
    drop(host.begin(json!({})));
    host.sees("text \"Here.\"").await;
    let process = host.process;
    assert_eq!(host.end().await, Some(0));
    assert_eq!(marked(process), []);
}

/// The end of the adapter's input is its end, and that of all others.
#[tokio::test]
async fn the_end_of_the_link_leaves_nothing() {
    let (_agent, host) = begun().await;
    drop(host.begin(json!({})));
    host.sees("text \"Here.\"").await;
    let process = host.process;
    let (mut child, temporary) = host.hang_up().await;
    let ended = tokio::time::timeout(Duration::from_secs(90), child.wait()).await.expect("soon");
    assert_eq!(ended.expect("ends").code(), Some(0));
    assert_eq!(marked(process), []);
    assert_eq!(crate::host::left_in(temporary.path()), Vec::<String>::new());
}
