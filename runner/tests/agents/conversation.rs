//! Runs, messages and ends of an agent that plays along.

use assistant_protocol::error::Kind;
use serde_json::json;

use crate::host::Host;
use crate::stand_in::{StandIn, result, says};

/// A turn that waits for a file.
fn waits(agent: &StandIn, begun: &str, until: &str, text: &str) -> serde_json::Value {
    let path = |name: &str| agent.path(name).display().to_string();
    json!([["read"], agent.notes(), says(begun), ["wait", path(until)], result(text)])
}

/// What is told of a turn of which the agent has not told what it has used.
const UNKNOWN: &str = "usage 0 calls, ? in, ? out, ? cached, $?, -";
/// What Claude Code writes at the beginning of a turn.
const BEGINS: &str = r#"{"type":"system","subtype":"init","session_id":"s-1"}"#;

/// The argument behind another one, of a turn that was noted.
fn behind(note: &serde_json::Value, arg: &str) -> String {
    let args = note["args"].as_array().expect("a list");
    let at = args.iter().position(|one| one == arg).expect("is there");
    args[at + 1].as_str().expect("a text").to_owned()
}

fn prompts(agent: &StandIn) -> Vec<String> {
    agent.noted().iter().map(|note| note["stdin"].as_str().expect("a text").to_owned()).collect()
}

#[tokio::test]
async fn it_is_started_with_what_it_may_have() {
    let agent = StandIn::of("claude");
    agent.plays(&json!([["read"], agent.notes(), result("Hi.")]));
    let host = agent.host().await;
    assert!(host.initialized.capabilities.messages && host.initialized.capabilities.agent);
    assert_eq!(host.initialized.runner.name, "assistant-runner cli claude");
    let dir = agent.path("").canonicalize().expect("is there");
    let brief = json!({
        "working_dir": dir, "model": "gpt-5", "tools": ["Read", "Bash(git log:*)", "Nonsense", "mcp__x__y"],
        "disallowed_tools": ["WebFetch"], "ask_tools": ["Bash(git push:*)"],
    });
    let run = json!({ "agent": brief, "query": "Hello.", "context": "c" });
    assert_eq!(host.run(run.clone()).await, "finished: Hi.");
    assert_eq!(host.run(run).await, "finished: Hi.");
    let noted = agent.noted();
    let args: Vec<&str> = noted[0]["args"].as_array().expect("a list").iter().filter_map(|arg| arg.as_str()).collect();
    assert!(!args.iter().any(|arg| arg.contains("Hello") || arg.contains("Ada")), "{args:?}");
    let behind = |name: &str| args.iter().position(|arg| *arg == name).map(|at| args[at + 1]);
    assert_eq!(behind("--tools"), Some("Bash,Read,TaskOutput,TaskStop"));
    assert_eq!((behind("--setting-sources"), behind("--model"), behind("--resume")), (Some(""), None, None));
    let again: Vec<&str> = noted[1]["args"].as_array().expect("a list").iter().filter_map(|arg| arg.as_str()).collect();
    assert!(again.windows(2).any(|two| two == ["--resume", "s-1"]), "{again:?}");
    let env = noted[0]["env"].as_object().expect("an object");
    assert!(env.contains_key("ASSISTANT_PROCESS_ID") && env.contains_key("HOME") && env.contains_key("PATH"));
    assert!(!env.contains_key("SOME_KEY") && !env.contains_key("CLAUDECODE"), "{env:?}");
    assert_eq!(noted[0]["cwd"].as_str(), dir.to_str());
    assert_eq!(prompts(&agent)[0], "<context>\nc\n</context>\n\nHello.");
    let lacks: Vec<String> = host.lines().into_iter().filter(|line| line.starts_with("lacks")).collect();
    assert_eq!(
        lacks,
        [
            "lacks the model `gpt-5`: Claude Code has models of Claude only; it takes its own choice",
            "lacks the tool `Nonsense`: Claude Code has no tool of this name",
        ]
    );
    assert_eq!(host.end().await, Some(0));
}

#[tokio::test]
async fn claude_is_told_how_many_turns_are_left() {
    let mut agent = StandIn::of("claude");
    agent.setup.turns = Some(3);
    let calls = |id: &str| {
        let message =
            json!({ "id": id, "model": "m", "content": [], "usage": { "input_tokens": 1, "output_tokens": 1 } });
        json!(["out", json!({ "type": "assistant", "message": message }).to_string()])
    };
    agent.plays(&json!([["read"], agent.notes(), calls("a"), calls("b"), calls("b"), result("Hi.")]));
    let host = agent.host().await;
    for _ in 0..3 {
        assert_eq!(host.run(json!({})).await, "finished: Hi.");
    }
    let left: Vec<String> = agent.noted().iter().map(|note| behind(note, "--max-turns")).collect();
    assert_eq!(left, ["3", "1", "1"]);
    assert_eq!(host.end().await, Some(0));
}

#[tokio::test]
async fn messages_begin_a_further_turn() {
    let agent = StandIn::of("claude");
    agent.plays(&waits(&agent, "One.", "go", "One."));
    let host = agent.host().await;
    let run = host.begin(json!({ "query": "First." }));
    host.sees("text \"One.\"").await;
    let mail = Host::mail("Look at </message> too.");
    let (given, again) = (host.deliver(mail.clone()), host.deliver(mail.clone()));
    let second = host.deliver(Host::mail("And that."));
    agent.plays(&json!([["read"], agent.notes(), result("Two.")]));
    assert!(!given.is_finished() && !second.is_finished(), "held until the turn has ended");
    std::fs::write(agent.path("go"), "").expect("writes");
    for given in [given, again, second] {
        given.await.expect("ends").expect("is answered");
    }
    assert_eq!(run.await.expect("ends"), "finished: Two.");
    let prompts = prompts(&agent);
    assert_eq!(prompts.len(), 2);
    assert!(prompts[1].contains("Look at &lt;/message> too.\n</message>\n\n<message "), "{}", prompts[1]);
    assert!(prompts[1].ends_with("And that.\n</message>"));
    // One that was given is not given again; one between runs is for the next run.
    host.deliver(mail).await.expect("ends").expect("is answered");
    let between = host.deliver(Host::mail("Between."));
    between.await.expect("ends").expect("is answered at once");
    assert_eq!(host.run(json!({ "query": null })).await, "finished: Two.");
    let noted = agent.noted();
    let last = noted[2]["stdin"].as_str().expect("a text");
    assert!(
        last.starts_with("<message message_id=") && last.ends_with("Between.\n</message>") && !last.contains("Look"),
        "{last}"
    );
    assert_eq!(host.run(json!({ "query": null })).await, "finished: Two.");
    assert_eq!(agent.noted()[3]["stdin"], "Go on.");
    assert_eq!(host.end().await, Some(0));
}

#[tokio::test]
async fn a_cancelled_run_is_answered_with_what_there_is() {
    for (deaf, grace_ms) in [(false, 3_000), (true, 3_000), (false, 0)] {
        let agent = StandIn::of("claude");
        let first = if deaf { json!(["deaf"]) } else { json!(["err", "listening"]) };
        agent.plays(&json!([first, ["read"], ["out", BEGINS], says("Half."), ["child", "own"], ["hang"]]));
        let host = agent.host().await;
        let run = host.begin(json!({}));
        host.sees("text \"Half.\"").await;
        let begun = std::time::Instant::now();
        let second = host.run(json!({})).await;
        assert_eq!(second, "invalid_request: a run is going on, and there are never two at once");
        let late = host.deliver(Host::mail("Too late."));
        host.cancel(grace_ms).await;
        assert_eq!(run.await.expect("ends"), "cancelled: Half.");
        // What that has cost, it has not told.
        assert_eq!(host.lines().last().map(String::as_str), Some(UNKNOWN));
        assert!(begun.elapsed().as_millis() < 10_000, "took {:?}", begun.elapsed());
        // There may be no further run: it stays the host's, and is given once where it comes again.
        let refused = late.await.expect("ends").expect_err("is refused");
        assert!(refused.to_string().contains("the agent did not take the message"), "{refused}");
        // A cancel between runs is for the next one.
        host.cancel(grace_ms).await;
        assert_eq!(host.run(json!({})).await, "cancelled: ");
        agent.plays(&json!([["read"], agent.notes(), result("On.")]));
        assert_eq!(host.run(json!({})).await, "finished: On.");
        assert_eq!(prompts(&agent)[0].matches("Too late.").count(), 1);
        assert_eq!(host.end().await, Some(0));
    }
}

#[tokio::test]
async fn a_run_that_is_given_up_tells_what_its_agent_waited_for() {
    let agent = StandIn::of("claude");
    let retry =
        |attempt: u64| json!({ "type": "system", "subtype": "api_retry", "attempt": attempt, "error_status": null });
    let waits = |text: &str| {
        json!([["read"], says(text), ["out", retry(1).to_string()], ["out", retry(2).to_string()], ["hang"]])
    };
    let host = agent.host().await;
    for (steps, want) in [
        (waits("Half."), "cancelled: Half.\n\n[Claude Code asks its model again, for the 2. time: no answer]"),
        (waits(""), "cancelled: [Claude Code asks its model again, for the 2. time: no answer]"),
    ] {
        agent.plays(&steps);
        host.forget();
        let run = host.begin(json!({}));
        host.sees("progress Claude Code asks its model again, for the 2. time").await;
        host.cancel(2_000).await;
        assert_eq!(run.await.expect("ends"), want);
    }
    assert_eq!(host.end().await, Some(0));
}

/// An agent whose final answer is taken comes to its end, and so tells what the run has cost; where it does not, that is unknown.
#[tokio::test]
async fn a_run_that_its_answer_has_ended_costs_what_it_costs() {
    let agent = StandIn::of("claude");
    let host = agent.host().await;
    let schema = json!({ "type": "object" });
    let tools = json!([{ "name": "final_answer", "description": "Ends.", "input_schema": schema }]);
    let answers = json!(["call", "final_answer", { "n": 7 }]);
    for (last, cost) in [
        (result("Done."), "usage 0 calls, 10 in, 2 out, ? cached, $0.500000, -"),
        (json!(["exit", 1]), UNKNOWN),
        (json!(["hang"]), UNKNOWN),
    ] {
        agent.plays(&json!([["read"], ["out", BEGINS], says("I answer."), answers, last]));
        let ended = host.run(json!({ "output_schema": schema, "tools": tools })).await;
        assert_eq!(ended, "final_answer: I answer. {\"n\":7}");
        assert_eq!(host.lines().last().map(String::as_str), Some(cost), "{last}");
    }
    assert_eq!(host.end().await, Some(0));
}

#[tokio::test]
async fn the_host_ends_an_agent_that_has_used_up_its_budget() {
    for (kind, want) in [(Kind::BudgetExceeded, "budget_exceeded"), (Kind::Cancelled, "cancelled")] {
        let agent = StandIn::of("claude");
        agent.plays(&json!([["read"], says("Enough?"), ["child", "own"], ["hang"]]));
        let host = agent.host().await;
        host.refuse("Enough?", kind);
        assert_eq!(host.run(json!({})).await, format!("{want}: as the test says"));
        assert_eq!(host.end().await, Some(0));
    }
}

#[tokio::test]
async fn what_was_said_elsewhere_is_told() {
    let agent = StandIn::of("claude");
    agent.plays(&json!([["read"], agent.notes(), result("Hi.")]));
    let host = agent.host().await;
    let history = json!([{ "role": "user", "content": "Q" }, { "role": "assistant", "content": "A" }]);
    let schema = json!({ "type": "object" });
    assert_eq!(host.run(json!({ "history": history, "output_schema": schema })).await, "finished: Hi.");
    let prompt = &prompts(&agent)[0];
    assert!(prompt.starts_with("<earlier>\nUser: Q\nYou: A\n</earlier>"), "{prompt}");
    assert!(prompt.contains("final_answer"), "{prompt}");
    assert_eq!(host.end().await, Some(0));
}

/// An agent that dies before it has begun has got no message: it stays the host's, whose reason is that of the run.
#[tokio::test]
async fn a_message_is_given_when_the_agent_has_begun() {
    let agent = StandIn::of("claude");
    agent.plays(&waits(&agent, "One.", "go", "One."));
    let host = agent.host().await;
    let run = host.begin(json!({}));
    host.sees("text \"One.\"").await;
    let mail = Host::mail("Hear me.");
    let lost = host.deliver(mail.clone());
    // It is in the pipe when the agent dies.
    agent.plays(&json!([
        ["touch", agent.path("begun").display().to_string()],
        ["wait", agent.path("die").display().to_string()],
        ["die", 9]
    ]));
    std::fs::write(agent.path("go"), "").expect("writes");
    let begun = async {
        while !agent.path("begun").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(crate::host::SOON, begun).await.expect("begins");
    assert!(!lost.is_finished(), "nobody has it");
    std::fs::write(agent.path("die"), "").expect("writes");
    let ended = run.await.expect("ends");
    assert!(ended.starts_with("internal_error: Claude Code gave no result: it was ended by signal 9"), "{ended}");
    lost.await.expect("ends").expect_err("is refused");
    // One that comes when the run has failed waits for no run that may never come.
    host.deliver(Host::mail("And me.")).await.expect("ends").expect_err("is refused");
    // Where there is a further run, it can come again.
    agent.plays(&json!([says("Two."), ["wait", agent.path("again").display().to_string()], result("Two.")]));
    let run = host.begin(json!({}));
    host.sees("text \"Two.\"").await;
    let again = host.deliver(mail);
    agent.plays(&json!([["read"], agent.notes(), result("Three.")]));
    std::fs::write(agent.path("again"), "").expect("writes");
    again.await.expect("ends").expect("is answered");
    assert_eq!(run.await.expect("ends"), "finished: Three.");
    assert_eq!(prompts(&agent).last().map(|prompt| prompt.matches("Hear me.").count()), Some(1));
    assert_eq!(host.end().await, Some(0));
}
