//! The whole way: a client, the host, our runner as the adapter, and a program that stands in for the agent.

use std::path::{Path, PathBuf};

use conformance::programs;

use super::*;
use crate::{RUNNER, SERVER};

const STAND_IN: &str = include_str!("stand_in.py");

/// The program, where Python is here; else that is said.
#[expect(clippy::print_stderr, reason = "who runs the tests is told what was left out")]
fn stand_in(dir: &Path) -> Option<PathBuf> {
    let asked = std::process::Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let Some(python) = asked.ok().filter(|told| told.status.success()) else {
        eprintln!("skipped: an agent behind its adapter, because python3 is not here");
        return None;
    };
    let python = String::from_utf8_lossy(&python.stdout).trim().to_owned();
    let file = dir.join("agent");
    programs::write(&file, &format!("#!{python}\n{STAND_IN}"));
    Some(file)
}

fn told(dir: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(dir.join("told")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// A host whose assistant `a` has these keys and is run by the stand-in behind our runner; `other` is run by our runner alone.
async fn adapted(keys: &str) -> Option<(Bed, Client)> {
    let (mut bed, _) = bed(keys);
    let program = stand_in(bed.dir.path())?;
    bed.runner = RunnerCommand::new(RUNNER);
    let kind = Kind::Agent { agent: Agent::Claude, program: Some(program), args: Vec::new() };
    bed.runners.insert("claude".to_owned(), Runner { kind, env: Vec::new() });
    let client = bed.open().await;
    bed.trust_all(&client.host).await;
    Some((bed, client))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_behind_its_adapter_does_the_work() {
    let Some((bed, client)) = adapted("tools: [Read, Bash, ask_parent]\nmodel: sonnet").await else { return };
    let dir = bed.dir.path().to_owned();

    let first = client.spawn("a", "look what there is").await;
    let seen = client.end(&first).await;
    assert_eq!((&seen["status"], &seen["model"]), (&json!("finished"), &json!("stand-in-1")), "{seen}");
    assert_eq!(client.mail(&first).await.pop().as_deref(), Some("There is a.txt."));
    assert_eq!(
        (&seen["usage"]["input_tokens"], &seen["usage"]["output_tokens"], &seen["usage"]["cost_usd"]),
        (&json!(30), &json!(6), &json!(0.02)),
        "{seen}"
    );
    assert_eq!(seen["usage"]["tool_calls"], 1, "{seen}");
    let events = log(&client, &first).await;
    for (kind, key, value) in [
        ("status", "agent_session", json!("session-1")),
        ("tool_call", "tool", json!("Bash")),
        ("tool_result", "tool", json!("Bash")),
        ("progress", "text", json!("There is a.txt.")),
    ] {
        assert!(events.iter().any(|(of, data)| of == kind && data[key] == value), "{kind} {key}: {events:#?}");
    }

    // It goes on in its own session, asks its parent by the tools that it got, and uses the answer.
    let second = client
        .call("spawn_assistant", json!({ "resume_process_id": first["process_id"], "query": "ask which colour" }))
        .await;
    let question = asked::question(&client).await;
    assert_eq!((&question["process_id"], &question["question"]), (&second["process_id"], &json!("Which colour?")));
    asked::answer(&client, &question, "blue").await;
    let seen = client.end(&second).await;
    assert_eq!(seen["status"], "finished", "{seen}");
    let result = client.mail(&second).await.pop().unwrap_or_default();
    assert!(result.starts_with("The answer was:") && result.contains("blue"), "{result}");

    let started = told(&dir);
    let args = |at: usize| started[at]["args"].as_array().cloned().unwrap_or_default();
    assert_eq!(started.len(), 2);
    assert!(!args(0).contains(&json!("--resume")), "{:?}", args(0));
    assert!(args(1).windows(2).any(|pair| pair == [json!("--resume"), json!("session-1")]), "{:?}", args(1));
    assert!(args(0).windows(2).any(|pair| pair == [json!("--model"), json!("sonnet")]), "{:?}", args(0));
    assert!(started[0]["prompt"].as_str().is_some_and(|prompt| prompt.contains("look what there is")), "{started:?}");
    assert!(!started[0]["args"].to_string().contains("look what there is"), "no prompt on a command line");
    let project = bed.project().canonicalize().expect("a folder");
    assert_eq!(started[0]["cwd"], json!(project.display().to_string()));
    client.host.close().await;
}

/// What is the host's reaches the agent through the bridge: the tools of the servers that its definition names, which the
/// host runs, its mail, and an assistant that it may spawn.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_uses_the_tools_that_the_host_runs_for_it() {
    let keys = format!(
        "tools: [s__echo, send_message, recv_message, spawn_assistant]\nmcpServers: {{s: {{command: {}}}}}",
        json!(SERVER)
    );
    let Some((bed, client)) = adapted(&keys).await else { return };
    let uses = json!([
        ["s__echo", { "text": "by the bridge" }],
        ["s__place", {}],
        ["spawn_assistant", { "assistant_id": "other", "query": "help", "run_mode": "sync" }],
        ["spawn_assistant", { "assistant_id": "nobody", "query": "help" }],
        ["send_message", { "thread_id": "$thread", "message": "which colour?" }],
        ["recv_message", { "thread_id": "$thread", "wait_ms": 60_000, "unread_only": true }],
    ]);
    let spawned = client.spawn("a", &format!("uses: {uses}")).await;
    let thread = &spawned["thread_id"];
    let asked = client.call("recv_message", json!({ "thread_id": thread, "wait_ms": 60_000 })).await;
    assert_eq!(asked["messages"][0]["content"], "which colour?", "{asked}");
    // It waits for the answer, with the call that it makes next.
    client.until(&spawned, "waiting").await;
    client.call("send_message", json!({ "thread_id": thread, "message": "blue" })).await;
    let seen = client.end(&spawned).await;
    assert_eq!(seen["status"], "finished", "{seen}");
    let used = std::fs::read_to_string(bed.dir.path().join("used")).expect("it has used them");
    let told: Value = serde_json::from_str(&used).expect("JSON");
    // By `permission` the agent itself asks before calls of its own tools.
    let tools = ["permission", "recv_message", "s__echo", "send_message", "spawn_assistant"];
    assert_eq!(told["tools"], json!(tools), "no other");
    for (at, words) in [(0, "by the bridge"), (1, "s__place"), (2, "ours"), (3, "nobody"), (4, "success"), (5, "blue")]
    {
        assert!(told["said"][at].as_str().is_some_and(|said| said.contains(words)), "{at} {words}: {told}");
    }
    let below = client.call("list_process", json!({ "process_id": spawned["process_id"] })).await;
    let items = below["items"].as_array().cloned().unwrap_or_default();
    let all: Vec<_> = items.iter().map(|one| (&one["assistant_id"], &one["status"])).collect();
    assert_eq!(all, [(&json!("a"), &json!("finished")), (&json!("other"), &json!("finished"))]);
    client.host.close().await;
}
