//! Agents that write anything, or nothing, end anyhow, or do not end: the run is answered, and in time.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::stand_in::{StandIn, result, says};

/// How long a run with such an agent may take beyond what it waits for itself, with room for a busy machine.
const LATE: Duration = Duration::from_secs(60);

/// Plays steps, and checks how the run ends: its answer begins like this.
async fn check(steps: Value, want: &str) {
    let agent = StandIn::of("claude");
    agent.plays(&steps);
    let host = agent.host().await;
    let begun = Instant::now();
    let ended = host.run(json!({})).await;
    assert!(ended.starts_with(want), "{steps}\nwant {want}\ngot  {ended}");
    assert!(begun.elapsed() < LATE, "{steps} took {:?}", begun.elapsed());
    // And it can be used again.
    agent.plays(&json!([["read"], result("Again.")]));
    assert_eq!(host.run(json!({})).await, "finished: Again.");
    assert_eq!(host.end().await, Some(0));
}

#[tokio::test]
async fn a_good_one_is_answered() {
    check(json!([["read"], says("Hi."), result("Hi.")]), "finished: Hi.").await;
    // The last line has no end.
    let last = result("Hi.")[1].as_str().expect("a text").bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    check(json!([["read"], ["raw", last]]), "finished: Hi.").await;
    // Its prompt is not read before it answers.
    check(json!([result("Hi.")]), "finished: Hi.").await;
}

#[tokio::test]
async fn junk_is_passed_over() {
    check(
        json!([["read"], ["out", "Hello"], ["out", ""], ["out", "[1]"], ["out", "7"], result("Hi.")]),
        "finished: Hi.",
    )
    .await;
    check(json!([["read"], ["raw", "fffe000a"], ["raw", "7b22747970650a"], result("Hi.")]), "finished: Hi.").await;
    check(
        json!([
            ["read"],
            ["out", "{\"type\":7}"],
            ["out", "{\"type\":\"assistant\",\"message\":{\"content\":7}}"],
            result("Hi.")
        ]),
        "finished: Hi.",
    )
    .await;
    check(
        json!([
            ["read"],
            ["out", "{\"type\":\"user\",\"message\":{\"content\":[7,{\"type\":\"tool_result\"}]}}"],
            result("Hi.")
        ]),
        "finished: Hi.",
    )
    .await;
    // Far more than a pipe holds, in one line.
    check(json!([["read"], ["fill", 40_000_000], ["out", ""], result("Hi.")]), "finished: Hi.").await;
    check(json!([["read"], ["flood", 5_000_000], result("Hi.")]), "finished: Hi.").await;
}

#[tokio::test]
async fn one_that_gives_no_result_fails_with_its_reason() {
    let none = "internal_error: Claude Code gave no result: it ";
    check(json!([]), &format!("{none}exited with code 0")).await;
    check(json!([["exit", 3]]), &format!("{none}exited with code 3")).await;
    check(json!([["read"], says("Hi."), ["die", 15]]), &format!("{none}was ended by signal 15")).await;
    check(json!([["read"], ["die", 9]]), &format!("{none}was ended by signal 9")).await;
    let why =
        "model_failed: Claude Code: Claude Code gave no result: it exited with code 1; the last of its stderr:\nno way";
    check(json!([["read"], ["err", "no way"], ["exit", 1]]), why).await;
    // In the middle of a line.
    check(json!([["read"], ["raw", "7b2274"], ["exit", 1]]), &format!("{none}exited with code 1")).await;
    check(json!([["read"], ["fill", 40_000_000], ["exit", 1]]), &format!("{none}exited with code 1")).await;
}

#[tokio::test]
async fn one_that_says_nothing_is_asked_what_it_wrote() {
    let junk = "It wrote 2 lines that are no JSON objects; the first: usage: agent [--json]";
    check(
        json!([["out", "usage: agent [--json]"], ["out", "more"], ["exit", 2]]),
        &format!("internal_error: Claude Code gave no result: it exited with code 2\n{junk}"),
    )
    .await;
    let silent = "the agent has ended its turn without a word";
    check(
        json!([["read"], ["out", "Hello \u{1b}[1m"], ["err", "no key"], result("")]),
        &format!(
            "internal_error: {silent} that was understood; it wrote: Hello  [1m; the last line of its stderr: no key"
        ),
    )
    .await;
    let said = format!("model_failed: {silent}; the last line of its stderr: no key");
    check(json!([["read"], ["err", "one"], ["err", "no key"], result("")]), &said).await;
    // One that has done something may have nothing to say.
    check(json!([["read"], ["out", "Hello"], says("I look."), result("")]), "finished: ").await;
    check(json!([["read"], result("")]), "finished: ").await;
}

#[tokio::test]
async fn one_that_does_not_end_is_ended() {
    check(json!([["read"], result("Hi."), ["hang"]]), "finished: Hi.").await;
    check(json!([["deaf"], ["read"], result("Hi."), ["hang"]]), "finished: Hi.").await;
    // Nor does it help to go on writing.
    check(json!([["read"], result("Hi."), ["chat", says("More.")[1]]]), "finished: Hi.").await;
    check(json!([["deaf"], ["read"], result("Hi."), ["chat", ""]]), "finished: Hi.").await;
    let closed = "internal_error: Claude Code gave no result: it was ended by signal 9";
    check(json!([["read"], ["close"], ["hang"]]), closed).await;
    check(json!([["deaf"], ["read"], ["close"], ["hang"]]), closed).await;
}

#[tokio::test]
async fn its_children_hold_up_nothing() {
    check(json!([["read"], ["child"], result("Hi.")]), "finished: Hi.").await;
    check(json!([["read"], ["child", "own"], result("Hi.")]), "finished: Hi.").await;
    check(
        json!([["read"], ["child", "deaf"], ["child", "own"], ["exit", 2]]),
        "internal_error: Claude Code gave no result",
    )
    .await;
}

#[tokio::test]
async fn a_large_prompt_needs_no_reader() {
    let agent = StandIn::of("claude");
    let host = agent.host().await;
    let query = "x".repeat(10_000_000);
    agent.plays(&json!([["read"], agent.notes(), result("Read.")]));
    assert_eq!(host.run(json!({ "query": query })).await, "finished: Read.");
    assert_eq!(agent.noted()[0]["stdin"].as_str().map(str::len), Some(10_000_000));
    agent.plays(&json!([result("Not read.")]));
    assert_eq!(host.run(json!({ "query": query })).await, "finished: Not read.");
    assert_eq!(host.end().await, Some(0));
}

#[tokio::test]
async fn what_cannot_be_started_is_told() {
    let mut agent = StandIn::of("claude");
    let script = agent.path("no-program");
    std::fs::write(&script, "x").expect("writes");
    agent.setup.program = script;
    let host = agent.host().await;
    let ended = host.run(json!({})).await;
    assert!(ended.contains("the agent cannot be started: Permission denied"), "{ended}");
    let ended = host.run(json!({ "agent": { "working_dir": "/no/such/folder" } })).await;
    assert!(ended.contains("there is no folder /no/such/folder"), "{ended}");
    assert_eq!(host.end().await, Some(0));
}
