//! What an agent does that does not behave, and what becomes of one that is ended.

use std::time::Duration;

use assistant_protocol::error::Kind;
use serde_json::json;

use crate::fake::{Agent, check, has_python};
use crate::host::{NO_USAGE, PATIENCE, allow, ended, marked, nothing_is_left, skip};

#[tokio::test]
async fn what_is_no_message_is_passed_over() {
    if !has_python("junk") {
        return;
    }
    check("junk", "finished still here", &["text still here"]).await;
    check("foreign", "finished mine; the other one is cancelled", &["text mine; the other one is cancelled"]).await;
    check("answers-twice", "finished once", &["text once"]).await;
    check("unfit", "finished fits", &["text fits"]).await;
    let codes = "fs/read_text_file -32601; fs/write_text_file -32601; terminal/create -32601; elicitation/create -32601; \
                 no/such -32601; no params -32602; a list -32601";
    check("unknown-methods", &format!("finished {codes}"), &[&format!("text {codes}")]).await;
    check("floods-requests", "finished all answered", &["text all answered"]).await;
    check("talks-first", "finished the task", &["text the task"]).await;
}

#[tokio::test]
async fn long_lines_are_taken_and_longer_ones_end_the_agent() {
    if !has_python("long lines") {
        return;
    }
    // It is told in pieces; what is kept of an answer is as much as the host keeps.
    let told: Vec<&str> = std::iter::repeat_n("text of 1048576 bytes", 9).chain(["text short"]).collect();
    check("long-line", "finished 1048576 bytes", &told).await;
    for mode in ["longest-line", "no-newline"] {
        let agent = Agent::start(mode, allow).await;
        let result = ended(agent.host.run("the task", json!({})).await);
        // It may have seen that nobody reads any more, and have said so.
        let error = "internal_error: at its turn: the agent wrote a line of more than 33554432 bytes";
        assert!(result.starts_with(error), "{result}");
        agent.host.end().await;
    }
}

#[tokio::test]
async fn a_session_that_does_not_begin_says_why() {
    if !has_python("sessions") {
        return;
    }
    let version = |version: &str| {
        format!(
            "unsupported_protocol: the agent speaks version {version} of the Agent Client Protocol, and this runner version 1"
        )
    };
    check("version-2", &version("2"), &[]).await;
    check("version-text", &version("\"1.0\""), &[]).await;
    let python = which("python3");
    let login = format!(
        "model_failed: the agent wants a login, which only you can do: start {python} once in a terminal and log in. It offers: \
         Log in with the web (Run `agent login`)."
    );
    check("wants-login", &login, &[]).await;
    check("no-session", "internal_error: the agent began a session without an id", &[]).await;
    check("refuses-session", "model_failed: the agent failed at `session/new`: Internal error: no disk", &[]).await;
    let exits =
        "internal_error: at `initialize`: the agent exited with code 2; the last of its stderr:\nusage: agent --acp";
    check("exits-at-once", exits, &[]).await;
}

/// What floods with no messages is no agent, whenever it does.
#[tokio::test]
async fn an_agent_that_writes_junk_only_is_given_up() {
    if !has_python("junk") {
        return;
    }
    let lines = "the agent wrote 10000 lines in a row that are no messages";
    for (mode, at) in [("junk-first", "at `initialize`"), ("junk-later", "at its turn")] {
        let agent = Agent::start(mode, allow).await;
        let end = ended(agent.host.run("the task", json!({})).await);
        assert!(end.starts_with(&format!("internal_error: {at}: {lines}")), "{end}");
        agent.host.end().await;
    }
}

#[tokio::test]
async fn an_agent_that_says_nothing_is_asked_what_it_wrote() {
    if !has_python("silence") {
        return;
    }
    let silent = "the agent has ended its turn without a word";
    let odd = format!(
        "internal_error: {silent} that was understood; it wrote: an update of the kind `moon_update`; the last line of its \
         stderr: no key"
    );
    check("not-understood", &odd, &[]).await;
    check("mute", &format!("model_failed: {silent}; the last line of its stderr: no key"), &[]).await;
}

fn which(program: &str) -> String {
    let path = std::env::var_os("PATH").expect("a PATH");
    let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file());
    found.expect("on PATH").display().to_string()
}

#[tokio::test]
async fn an_agent_that_dies_is_told_of() {
    if !has_python("deaths") {
        return;
    }
    let exits =
        "internal_error: at its turn: the agent exited with code 3; the last of its stderr:\none\nTraceback: the moon";
    let told = [
        "text I begin",
        "call c1 work {}",
        "failed c1 The turn ended before this call was answered. It may have had its effect.",
    ];
    check("exits", exits, &told).await;
    check("killed", "internal_error: at its turn: the agent was ended by signal 9", &[]).await;
    check("leaves", "internal_error: at its turn: the agent exited with code 5", &[]).await;
    check("closes", "internal_error: at its turn: the agent closed its output", &[]).await;
}

#[tokio::test]
async fn an_agent_that_died_between_runs_is_started_again_with_its_session() {
    if !has_python("a restart") {
        return;
    }
    let agent = Agent::start("between", allow).await;
    let first = ended(agent.host.run("one", json!({})).await);
    assert!(first.starts_with("finished turn 1 of "), "{first}");
    agent.host.forget();
    if !agent.host.started_ones_exit().await {
        return skip("a restart needs /proc");
    }
    let second = ended(agent.host.run("two", json!({})).await);
    assert!(second.starts_with("finished turn 1 of ") && second != first, "{second}");
    let told = agent.host.told();
    let lacks = "lacks the agent's process: it exited with code 4; the last of its stderr:\nI die now; it is started again, with \
                 its session where it can";
    assert_eq!(told[0], lacks, "{told:#?}");
    assert!(told.contains(&"session s1".to_owned()), "{told:#?}");
    assert!(!told.contains(&"text what I said earlier".to_owned()), "{told:#?}");
    assert_eq!((agent.got("session/new").len(), agent.got("session/load").len()), (1, 1));
    agent.host.end().await;
    let _ = std::fs::remove_file(format!("{}.died", agent.log.path().display()));
}

#[tokio::test]
async fn what_comes_after_the_end_of_a_turn_is_nobodys() {
    if !has_python("late things") {
        return;
    }
    let agent = Agent::start("after-the-end", allow).await;
    assert_eq!(ended(agent.host.run("one", json!({})).await), "finished ");
    let answered = async {
        while agent.late_answer().is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, answered).await.expect("answered");
    assert_eq!(agent.late_answer().expect("there"), json!({ "outcome": { "outcome": "cancelled" } }));
    assert_eq!(ended(agent.host.run("two", json!({})).await), "finished second");
    assert_eq!(agent.host.told(), ["session s1", "text second"]);
    agent.host.end().await;
}

#[tokio::test]
async fn cancel_ends_the_turn_and_what_does_not_listen_is_killed() {
    if !has_python("cancel") {
        return;
    }
    // One that listens: it answers, lives, and takes a further prompt.
    let agent = Agent::start("waits", allow).await;
    let run = agent.host.begin("wait", json!({}));
    agent.host.happens("call c1").await;
    agent.host.cancel(3_000).await;
    assert_eq!(ended(run.await.expect("ends")), "cancelled working");
    assert_eq!(agent.got("session/cancel").len(), 1);
    // What it has used, it has not told.
    assert_eq!(agent.host.all_told().last().map(String::as_str), Some(NO_USAGE));
    let before = marked(&agent.host.mark);
    agent.host.forget();
    let run = agent.host.begin("again", json!({}));
    agent.host.happens("call c1").await;
    assert!(
        before
            .iter()
            .filter(|process| process.contains("python"))
            .all(|process| marked(&agent.host.mark).contains(process))
    );
    agent.host.cancel(3_000).await;
    assert_eq!(ended(run.await.expect("ends")), "cancelled working");
    assert_eq!((agent.got("session/new").len(), agent.got("session/cancel").len()), (1, 2));
    agent.host.end().await;

    // One that does not: it is killed with all that it has started, and begins anew with the next run.
    let agent = Agent::start("deaf", allow).await;
    let run = agent.host.begin("wait", json!({}));
    agent.host.happens("text working").await;
    let begun = std::time::Instant::now();
    agent.host.cancel(1_000).await;
    assert_eq!(ended(run.await.expect("ends")), "cancelled working");
    assert!(begun.elapsed().as_millis() < 15_000, "took {:?}", begun.elapsed());
    assert!(marked(&agent.host.mark).iter().all(|process| process.contains("assistant-runner")));
    agent.host.end().await;

    // One that thinks long in the middle of what it says: all of it counts, also what was told in pieces.
    let agent = Agent::start("hesitates", allow).await;
    let run = agent.host.begin("wait", json!({}));
    agent.host.happens("text and two").await;
    agent.host.cancel(3_000).await;
    assert_eq!(ended(run.await.expect("ends")), "cancelled one and two");
    agent.host.end().await;

    // One that waits for an answer gets it: the turn is cancelled.
    let agent = Agent::start("asks-and-waits", |_| None).await;
    let run = agent.host.begin("wait", json!({}));
    agent.host.happens("may c1").await;
    agent.host.cancel(3_000).await;
    assert_eq!(ended(run.await.expect("ends")), "cancelled asking");
    assert_eq!(agent.got("session/new").len(), 1);
    agent.host.end().await;

    // One that says nothing from the beginning.
    let agent = Agent::start("silent", allow).await;
    let run = agent.host.begin("wait", json!({}));
    while agent.got("initialize").is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    agent.host.cancel(1_000).await;
    assert_eq!(ended(run.await.expect("ends")), "cancelled ");
    agent.host.end().await;
}

#[tokio::test]
async fn a_limit_of_the_host_ends_the_agent() {
    if !has_python("limits") {
        return;
    }
    for (kind, mode) in [(Kind::BudgetExceeded, "waits"), (Kind::Cancelled, "waits"), (Kind::BudgetExceeded, "deaf")] {
        let agent = Agent::start(mode, allow).await;
        // The session is taken, the first text is not.
        agent.host.refuse(1, kind);
        let result = ended(agent.host.run("the task", json!({})).await);
        assert_eq!(result, format!("{}: the limit of the test is reached", kind.name()));
        agent.host.end().await;
    }
}

#[tokio::test]
async fn a_flood_of_text_is_waited_out() {
    if !has_python("floods") {
        return;
    }
    let agent = Agent::start("flood", allow).await;
    let result = ended(agent.host.run("the task", json!({})).await);
    assert_eq!(result, "finished 1048576 bytes");
    let told = agent.host.told();
    assert_eq!(told.iter().filter(|line| *line == "text of 1048576 bytes").count(), 16, "{told:?}");
    if let Some(peak) = agent.host.peak_kib() {
        // 20 MB were said.
        assert!(peak < 40 * 1024, "{peak} KiB");
    }
    agent.host.end().await;
}

#[tokio::test]
async fn calls_that_are_hoarded_are_kept_up_to_a_bound() {
    if !has_python("hoards") {
        return;
    }
    let agent = Agent::start("hoards", allow).await;
    // What is not kept is not judged, and so not allowed.
    assert_eq!(ended(agent.host.run("the task", json!({})).await), "finished yes, cancelled");
    if let Some(peak) = agent.host.peak_kib() {
        assert!(peak < 400 * 1024, "{peak} KiB");
    }
    agent.host.end().await;
}

#[tokio::test]
async fn a_flood_of_calls_is_told_up_to_a_bound() {
    if !has_python("floods") {
        return;
    }
    let agent = Agent::start("floods-calls", allow).await;
    assert_eq!(ended(agent.host.run("the task", json!({})).await), "finished flooded");
    let told = agent.host.told();
    let last = "lacks some of its calls: it made more than can be told in a turn; 500 updates of them are left out";
    assert_eq!((told.len(), told.last().map(String::as_str)), (20_003, Some(last)));
    agent.host.end().await;
}

#[tokio::test]
async fn an_agent_that_asks_and_does_not_read_waits_for_itself() {
    if !has_python("floods") {
        return;
    }
    let agent = Agent::start("does-not-read", allow).await;
    let run = agent.host.begin("wait", json!({}));
    while agent.got("session/prompt").is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    agent.host.cancel(500).await;
    assert_eq!(ended(run.await.expect("ends")), "cancelled ");
    agent.host.end().await;
}

#[tokio::test]
async fn calls_that_never_end_are_told_as_such() {
    if !has_python("calls") {
        return;
    }
    let failed =
        |id: &str| format!("failed {id} The turn ended before this call was answered. It may have had its effect.");
    let long = format!("{}#1", "x".repeat(256));
    let told = [
        "call c0 began in the middle {}".to_owned(),
        "call c2 no beginning {}".to_owned(),
        "result c2 ended at once".to_owned(),
        format!("call {long} long id {{}}"),
        "call call#2 no id {}".to_owned(),
        "text done".to_owned(),
        failed("call#2"),
        failed("c0"),
        "call c1 never {}".to_owned(),
        failed("c1"),
        failed(&long),
    ];
    check("never-done", "finished done", &told.iter().map(String::as_str).collect::<Vec<_>>()).await;
}

#[tokio::test]
async fn a_runner_that_is_killed_leaves_nothing() {
    if !has_python("kills") {
        return;
    }
    for (mode, moment) in [("silent", ""), ("waits", "call c1"), ("deaf", "text working"), ("flood", "text of")] {
        let agent = Agent::start(mode, allow).await;
        let _run = agent.host.begin("the task", json!({}));
        if moment.is_empty() {
            while agent.got("initialize").is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        } else {
            agent.host.happens(moment).await;
        }
        let Agent { mut host, log: _log } = agent;
        if cfg!(target_os = "linux") {
            assert!(marked(&host.mark).len() > 1, "the agent is there");
        }
        host.child.kill().await.expect("killed");
        nothing_is_left(&host.mark).await;
    }
}
