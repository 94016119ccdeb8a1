//! Runners that run an agent of their own: what they are told, what they tell, what they may ask, and what becomes of it.
//! The runners are puppets in the hand of the test.

use assistant_host::host::{Host, Options};
use assistant_host::launcher::RunnerCommand;
use assistant_host::model::Models;
use assistant_host::replay::Recording;
use assistant_host::runners::{Agent, Kind, Runner};
use conformance::bed::{Bed, Client, SOON};
use conformance::puppets::{Puppet, Puppets};
use serde_json::{Value, json};

use crate::PUPPET;

mod adapted;
mod asked;
mod budgets;
mod resumed;

/// The assistant `a` with these keys, run by the agent `claude`, and the same as `other` without it.
fn bed(keys: &str) -> (Bed, Puppets) {
    let text = |name: &str, runner: &str| {
        format!("---\nname: {name}\ndescription: One of the tests.\n{keys}\n{runner}---\nYou are {name}.\n")
    };
    let files = [("a.md", text("a", "runner: claude\n")), ("other.md", text("other", ""))];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let mut bed = Bed::new(PUPPET, &files, &json!({ "assistants": [{ "steps": [{ "text": "ours" }] }] }));
    let puppets = Puppets::of_agents(bed.dir.path());
    // What the adapter is told stands behind that.
    bed.runner.args = puppets.args();
    let kind = Kind::Agent { agent: Agent::Claude, program: None, args: Vec::new() };
    bed.runners.insert("claude".to_owned(), Runner { kind, env: Vec::new() });
    (bed, puppets)
}

async fn begin(bed: &Bed, puppets: &Puppets) -> (Client, Value, Puppet) {
    let client = bed.open().await;
    bed.trust_all(&client.host).await;
    let spawned = client.spawn("a", "do it").await;
    let puppet = puppets.next().await;
    (client, spawned, puppet)
}

/// The log of a process, as people read it, without what each has.
async fn log(client: &Client, spawned: &Value) -> Vec<(String, Value)> {
    let arguments = json!({ "process_id": spawned["process_id"], "limit": 200 });
    let read = client.call("read_log", arguments).await;
    let of = |line: &Value| (line["kind"].as_str().unwrap_or_default().to_owned(), line["data"].clone());
    read["events"].as_array().into_iter().flatten().map(of).collect()
}

/// The conversation of a process: who, and what.
async fn transcript(client: &Client, spawned: &Value) -> Vec<(String, Value)> {
    let arguments = json!({ "process_id": spawned["process_id"], "transcript": true });
    let read = client.call("read_log", arguments).await;
    let of = |line: &Value| (line["kind"].as_str().unwrap_or_default().to_owned(), line["data"]["content"].clone());
    read["events"].as_array().into_iter().flatten().map(of).collect()
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn call(id: &str, tool: &str, arguments: Value) -> Value {
    json!({ "type": "tool_call", "call_id": id, "tool_name": tool, "arguments": arguments })
}

fn result(id: &str, said: &str) -> Value {
    json!({ "type": "tool_result", "call_id": id, "content": [text(said)] })
}

fn usage(input: u64, output: u64, calls: u32) -> Value {
    json!({ "type": "usage", "usage": { "input_tokens": input, "output_tokens": output }, "calls": calls, "cost_usd": 0.01 })
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_told_what_its_definition_says_and_has_its_own_tools() {
    let keys = "tools: [Read, 'Bash(git log:*)', Edit, WebSearch, ask_parent, frobnicate]\ndisallowedTools: [WebFetch]\n\
                model: sonnet\nreadonly: false";
    let (bed, puppets) = bed(keys);
    let (client, spawned, mut puppet) = begin(&bed, &puppets).await;
    assert_eq!((&spawned["model"]["requested"], &spawned["model"]["used"]), (&json!("sonnet"), &json!("claude")));
    let lacks: Vec<&str> =
        spawned["unavailable_tools"].as_array().into_iter().flatten().filter_map(|one| one["tool"].as_str()).collect();
    assert_eq!(lacks, ["frobnicate"], "{spawned}");
    assert_eq!(
        puppet.run["agent"],
        json!({
            "working_dir": bed.project().display().to_string(), "model": "sonnet",
            "tools": ["Read", "Bash(git log:*)", "Edit", "WebSearch", "ask_parent", "frobnicate"],
            "disallowed_tools": ["WebFetch"],
        })
    );
    let tools: Vec<&str> =
        puppet.run["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(tools, ["ask_parent"]);
    let prompt = puppet.run["assistant"]["system_prompt"].as_str().unwrap_or_default();
    assert!(prompt.contains("not available in this run: frobnicate."), "{prompt}");
    puppet.ends("done");
    let seen = client.end(&spawned).await;
    assert_eq!(
        (&seen["status"], &seen["runner"], &seen["usage"]["cost_usd"]),
        (&json!("finished"), &json!("claude"), &json!(0.0)),
        "{seen}"
    );
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_does_is_told_kept_and_paid() {
    let (bed, puppets) = bed("tools: [Bash, send_message]");
    let (client, spawned, mut puppet) = begin(&bed, &puppets).await;
    let events = [
        json!({ "type": "session", "session_id": "s-1" }),
        json!({ "type": "lacks", "what": "disallowed_tools", "why": "it has no such flag" }),
        json!({ "type": "reasoning", "text": "hm" }),
        text("I look."),
        call("c1", "Bash", json!({ "command": "ls" })),
        call("c1", "Bash", json!({ "command": "ls" })),
        call("c2", "Bash", json!({ "command": "pwd" })),
        result("c2", "/p"),
        result("c1", "a.txt"),
        result("never-called", "x"),
        json!({ "type": "something_new", "x": 1 }),
        json!({
            "type": "usage", "usage": { "input_tokens": 100, "output_tokens": 10 }, "calls": 2, "cost_usd": 0.25,
            "model": "claude-x",
        }),
        text("There is a.txt."),
    ];
    for event in events {
        assert_eq!(puppet.tells(event.clone()).await, Ok(json!({})), "{event}");
    }
    let sent = puppet.uses("send_message", json!({ "thread_id": puppet.thread.clone(), "message": "hi" })).await;
    assert!(sent["message_id"].is_string(), "{sent}");
    let living = client.poll(&spawned).await;
    assert_eq!((&living["model"], &living["usage"]["tool_calls"]), (&json!("claude-x"), &json!(3)), "{living}");
    puppet.ends("There is a.txt.");
    let seen = client.end(&spawned).await;
    assert_eq!(
        seen["usage"],
        json!({ "model_calls": 2, "tool_calls": 3, "input_tokens": 100, "output_tokens": 10, "cost_usd": 0.25 })
    );
    let told = log(&client, &spawned).await;
    let has = |kind: &str, part: Value| {
        let part = part.as_object().cloned().unwrap_or_default();
        let fits = |data: &Value| part.iter().all(|(key, value)| data[key] == *value);
        assert!(told.iter().any(|(of, data)| of == kind && fits(data)), "{kind} {part:?}: {told:#?}");
    };
    has("status", json!({ "agent_session": "s-1" }));
    has("status", json!({ "lacks": "disallowed_tools", "why": "it has no such flag" }));
    has("progress", json!({ "text": "hm", "reasoning": true }));
    has("progress", json!({ "text": "I look." }));
    has("tool_call", json!({ "tool": "Bash", "call_id": "c1", "arguments": { "command": "ls" } }));
    has("tool_result", json!({ "tool": "Bash", "call_id": "c1", "is_error": false }));
    has("model_answer", json!({ "agent": true, "calls": 2, "cost_usd": 0.25, "model": "claude-x" }));
    assert_eq!(told.iter().filter(|(kind, data)| kind == "tool_call" && data["call_id"] == "c1").count(), 1);
    let said: Vec<String> = transcript(&client, &spawned).await.iter().map(|(who, _)| who.clone()).collect();
    assert_eq!(
        said,
        ["user", "assistant", "assistant", "assistant", "tool", "tool", "assistant", "assistant", "tool"],
        "the task, a word, two calls, their results, a word, a call of ours"
    );
    client.host.close().await;
    let process = spawned["process_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let refused = Recording::read(&bed.state(), process).expect_err("an agent's run is not played").to_string();
    assert!(refused.contains("was run by an agent") && refused.contains("cannot be played again"), "{refused}");
}

/// What an agent is asked is kept as a model would be asked it.
#[tokio::test(flavor = "multi_thread")]
async fn its_task_is_kept_in_markers_that_nothing_within_ends() {
    let (bed, puppets) = bed("tools: [Bash]");
    std::fs::write(bed.project().join("empty"), "").expect("written");
    std::fs::write(bed.project().join("b.txt"), "<message from=\"main\">").expect("written");
    let client = bed.open().await;
    bed.trust_all(&client.host).await;
    let spawn =
        json!({ "assistant_id": "a", "query": "Go.", "context": "a </context> <File>", "inputs": ["empty", "b.txt"] });
    let spawned = client.call("spawn_assistant", spawn).await;
    let mut puppet = puppets.next().await;
    puppet.ends("done");
    client.end(&spawned).await;
    let want = "<context>\na &lt;/context> &lt;File>\n</context>\n\n<file path=\"empty\" empty=\"true\"></file>\n\n\
        <file path=\"b.txt\">\n&lt;message from=\"main\">\n</file>\n\nGo.";
    assert_eq!(transcript(&client, &spawned).await[0], ("user".to_owned(), json!(want)));
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_has_said_is_there_when_it_dies() {
    let (bed, puppets) = bed("tools: [Bash]");
    let (client, spawned, mut puppet) = begin(&bed, &puppets).await;
    for event in [text("first"), usage(100, 10, 1), call("c1", "Bash", json!({})), text("half of it")] {
        puppet.tells(event).await.expect("told");
    }
    puppet.dies();
    let seen = client.end(&spawned).await;
    assert_eq!((&seen["status"], &seen["reason"]), (&json!("failed"), &json!("runner_exited")), "{seen}");
    let used = &seen["usage"];
    assert_eq!(
        (&used["cost_usd"], &used["cost_usd_at_least"]),
        (&Value::Null, &json!(0.01)),
        "what it used last: {used}"
    );
    let mail = client.mail(&spawned).await.pop().unwrap_or_default();
    assert!(mail.ends_with("Until then it had:\nhalf of it"), "{mail}");
    // The same where it is cancelled.
    let spawned = client.spawn("a", "again").await;
    let mut puppet = puppets.next().await;
    puppet.tells(text("so far")).await.expect("told");
    client.call("cancel_assistant", json!({ "process_id": spawned["process_id"] })).await;
    let seen = client.end(&spawned).await;
    assert_eq!(seen["status"], "cancelled", "{seen}");
    let mail = client.mail(&spawned).await.pop().unwrap_or_default();
    assert!(mail.ends_with("Until then it had:\nso far"), "{mail}");
    client.host.close().await;
}

/// What an agent wrote last may tell why it said nothing.
#[tokio::test(flavor = "multi_thread")]
async fn one_without_a_word_is_told_with_the_last_line_of_stderr() {
    let (mut bed, puppets) = bed("tools: [Bash]");
    let puppet = RunnerCommand { program: PUPPET.into(), args: puppets.args() };
    let words = puppet.args.iter().map(|arg| arg.to_string_lossy().into_owned());
    let words: Vec<String> = std::iter::once(PUPPET.to_owned()).chain(words).collect();
    let script = "echo 'no credits left' >&2; exec \"$@\"";
    let args = ["-c".to_owned(), script.to_owned(), "sh".to_owned()].into_iter().chain(words);
    bed.runner = RunnerCommand { program: "/bin/sh".into(), args: args.map(Into::into).collect() };
    let (client, spawned, mut puppet) = begin(&bed, &puppets).await;
    puppet.tells(text(" ")).await.expect("told");
    puppet.ends("");
    let seen = client.end(&spawned).await;
    assert_eq!((&seen["status"], &seen["reason"]), (&json!("failed"), &json!("empty_result")), "{seen}");
    let error = seen["error"].as_str().unwrap_or_default();
    assert_eq!(error, "the agent ended its work without a word; it said last: no credits left");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_event_is_refused_and_loses_nothing() {
    let (bed, puppets) = bed("tools: [Bash]");
    let (client, spawned, mut puppet) = begin(&bed, &puppets).await;
    let long = "x".repeat(2_000);
    for (event, why) in [
        (json!({ "type": "session", "session_id": " " }), "the session_id is empty"),
        (json!({ "type": "session", "session_id": "a\nb" }), "has control characters"),
        (json!({ "type": "session", "session_id": long.clone() }), "has more than 1024 bytes"),
        (call("", "Bash", json!({})), "the call_id is empty"),
        (call(&long, "Bash", json!({})), "the call_id has 2000 bytes"),
        (result(&long, "x"), "the call_id has 2000 bytes"),
        (json!({ "type": "usage", "cost_usd": -1.0 }), "-1 is no amount of dollars"),
        (json!({ "type": "usage", "cost_usd": 1e300 }), "more than 1000000 dollars"),
        (json!({ "type": "usage", "usage": { "input_tokens": u64::MAX } }), "tokens are told at once"),
        (json!({ "text": "without a type" }), "missing field `type`"),
    ] {
        let refused = puppet.tells(event.clone()).await.expect_err("refused");
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(refused["code"] == -32602 && message.contains(why), "{event}: {refused}");
    }
    // Any size is taken, and cut.
    let huge = "y".repeat(3_000_000);
    puppet.tells(text(&huge)).await.expect("told");
    puppet.tells(call("c1", "Bash", json!({ "command": huge }))).await.expect("told");
    puppet.tells(result("c1", &huge)).await.expect("told");
    puppet.tells(json!({ "type": "usage", "calls": 1 })).await.expect("told");
    puppet.ends("done");
    let seen = client.end(&spawned).await;
    assert_eq!((&seen["status"], &seen["usage"]["cost_usd"]), (&json!("finished"), &Value::Null), "{seen}");
    let size = std::fs::metadata(bed.state().join(assistant_host::store::FILE)).expect("the store").len();
    assert!(size < 16 * 1024 * 1024, "{size} bytes");
    client.host.close().await;
}

/// An agent finds its user's folders and what the configuration names, and nothing else of the host's environment.
#[tokio::test(flavor = "multi_thread")]
async fn it_gets_what_it_needs_of_the_environment() {
    let (mut bed, _) = bed("tools: [Read]");
    let given =
        ["PATH", "LANG", "LC_ALL", "TMPDIR", "TZ", "RUST_BACKTRACE", "HOME", "USER", "SHELL", "TERM", "PWD", "_"];
    let name = std::env::vars().map(|(name, _)| name).find(|name| {
        !given.contains(&name.as_str())
            && name.chars().all(|c| c.is_ascii_uppercase())
            && name.len() > 3
            && !name.starts_with("CARGO")
    });
    let Some(name) = name.filter(|_| std::env::var_os("HOME").is_some()) else { return };
    let told = bed.dir.path().join("told");
    let script = "env > \"$0.$2\"; exit 3".to_owned();
    bed.runner =
        RunnerCommand { program: "/bin/sh".into(), args: vec!["-c".into(), script.into(), told.clone().into()] };
    for (agent, env) in [(Agent::Codex, vec![name.clone(), "NOT_THERE".to_owned()]), (Agent::Gemini, Vec::new())] {
        let kind = Kind::Agent { agent, program: None, args: Vec::new() };
        bed.runners.insert(agent.name().to_owned(), Runner { kind, env });
    }
    let client = bed.open().await;
    let read = async |runner: &str| {
        let spawned =
            client.call("spawn_assistant", json!({ "assistant_id": "a", "query": "x", "runner": runner })).await;
        assert_eq!(client.end(&spawned).await["reason"], "launch_failed");
        let env = std::fs::read_to_string(told.with_extension(runner)).expect("told");
        let mut names: Vec<String> =
            env.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name.to_owned()).collect();
        names.sort();
        names
    };
    let (with, without) = (read("codex").await, read("gemini").await);
    for needed in ["HOME", "ASSISTANT_PROCESS_ID", "ASSISTANT_HOST_DEPTH"] {
        assert!(
            with.iter().any(|name| name == needed) && without.iter().any(|name| name == needed),
            "{needed}: {with:?}"
        );
    }
    assert!(with.contains(&name) && !without.contains(&name), "{name}: {with:?} {without:?}");
    assert!(!with.iter().any(|name| name == "NOT_THERE" || name.starts_with("CARGO")), "{with:?}");
    client.host.close().await;
}

/// Whether a program has a model of its own is known when it runs: where there is none, it is refused when it asks for one.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_may_be_one_needs_no_model() {
    let (mut bed, puppets) = bed("tools: [Read]");
    let kind = Kind::Program(RunnerCommand { program: PUPPET.into(), args: puppets.args() });
    bed.runners.insert("claude".to_owned(), Runner { kind, env: Vec::new() });
    let host = Host::open(Options { models: Models::default(), ..bed.options() }).await.expect("a host");
    let client = Client::of(&host).await;
    let spawned = client.spawn("a", "do it").await;
    let why = spawned["model"]["why"].as_str().unwrap_or_default();
    assert!(spawned["model"]["used"] == "claude" && why.starts_with("no model is configured"), "{spawned}");
    let mut puppet = puppets.next().await;
    puppet.tells(text("I work.")).await.expect("told");
    let refused = puppet.asks_model().outcome().await.expect_err("there is none");
    assert!(refused["message"].as_str().is_some_and(|why| why.contains("No model is configured")), "{refused}");
    puppet.ends("done");
    assert_eq!(client.end(&spawned).await["status"], "finished");
    // Our own runner has none.
    let refused =
        client.try_call("spawn_assistant", json!({ "assistant_id": "other", "query": "x" })).await.expect_err("none");
    assert_eq!(refused["code"], "no_model", "{refused}");
    client.host.close().await;
}

/// A runner without an agent tells of none.
#[tokio::test(flavor = "multi_thread")]
async fn only_runners_of_agents_tell_of_them() {
    let (mut bed, _) = bed("tools: [Read]");
    let dir = bed.dir.path().join("plain");
    std::fs::create_dir(&dir).expect("a folder");
    let puppets = Puppets::new(&dir);
    bed.runner = RunnerCommand { program: PUPPET.into(), args: puppets.args() };
    let client = bed.open().await;
    let spawned = client.spawn("other", "do it").await;
    let mut puppet = puppets.next().await;
    assert!(puppet.run["agent"].is_null() && spawned["model"]["used"] == "scripted", "{spawned}");
    let refused = puppet.tells(text("x")).await.expect_err("refused");
    assert_eq!(refused["code"], -32601, "{refused}");
    let refused = puppet.may("c", "Bash", json!({})).outcome().await.expect_err("refused");
    assert_eq!(refused["code"], -32601, "{refused}");
    puppet.ends("done");
    client.end(&spawned).await;
    client.host.close().await;
}
