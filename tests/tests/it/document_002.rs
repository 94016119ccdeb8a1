//! Document 002, "Subagent MCP Server Design", row by row: its tool, its agents' files, its behaviour, its access control,
//! its sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use conformance::bed::SOON;
use rmcp::model::{CallToolRequestParams, ProtocolVersion, ServerNotification, SubscriptionFilter};
use rmcp::service::{NotificationContext, RoleClient};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ServiceExt};
use serde_json::{Value, json};

use crate::documents::{Home, Walk, call, offered, refused};

mod nesting;
mod waits;

/// The document's own example, byte for byte.
const WEB_SEARCH: &str = r#"---
name: web-search
description: "Searches the web and returns summarized results"
session: false              # false = stateless, true = persistent sessions
allowed_callers: [main]     # access control (enforced server-side)
timeout_ms: 30000           # per-agent timeout override
permissions:
  allow: ["Bash(curl:*)", "Bash(wget:*)"]
  deny: []
mcp_servers:
  - name: brave-search
    command: npx
    args: ["-y", "@anthropic/mcp-server-brave-search"]
    env:
      BRAVE_API_KEY: "${BRAVE_API_KEY}"
---

You are a web search agent. Given a query, search the web
and return a concise summary of the findings.
"#;

/// The folder of the document: two agents, and the main agent's own.
fn home(steps: &[(&str, Value)]) -> Home {
    let github = "---\nname: github\ndescription: Interact with GitHub repos, PRs, issues.\n---\nYou are github.\n";
    let files = [
        ("agents/web-search/agent.md", WEB_SEARCH),
        ("agents/github/agent.md", github),
        ("agents/main/agent.md", "---\nname: main\ndescription: Not me.\n---\nYou are main.\n"),
        ("agents/main/system-prompt.md", "You are the main agent.\n"),
        ("agents/web-search/memory.md", "Nothing yet.\n"),
    ];
    let home = Home::new(&files, steps);
    let script: Value = json!({ "assistants": [
        { "when": { "system": "You are a web search agent." }, "steps": [{ "text": "found: {{task}}" }] },
    ] });
    let mut whole: Value =
        serde_json::from_str(&std::fs::read_to_string(home.dir.path().join("script.json")).expect("a file"))
            .expect("JSON");
    let list = whole["assistants"].as_array_mut().expect("a list");
    list.extend(script["assistants"].as_array().expect("a list").iter().cloned());
    std::fs::write(home.dir.path().join("script.json"), whole.to_string()).expect("a file");
    home
}

#[tokio::test(flavor = "multi_thread")]
async fn row_2_1_run_subagent() {
    let home = home(&[("github", json!([{ "text": "{{task}}" }]))]);
    let parent = home.parent().await;
    let ran = call(
        &parent,
        "run_subagent",
        json!({ "agent_name": "web-search", "prompt": "rust 2024", "context": "for a talk" }),
    )
    .await;
    assert!(ran["result"].as_str().is_some_and(|text| text.contains("found:") && text.contains("rust 2024")), "{ran}");
    assert_eq!((&ran["agent"], &ran["status"]), (&json!("web-search"), &json!("success")));
    assert!(ran["duration_ms"].as_i64().is_some_and(|ms| (0..60_000).contains(&ms)), "{ran}");
    assert!(ran.get("cost_usd").is_none_or(Value::is_number), "{ran}");
    // The other words for it.
    let ran = call(&parent, "run_subagent", json!({ "agentName": "github", "input": "issues" })).await;
    assert_eq!(ran["result"], "issues");
    for (arguments, code) in [
        (json!({ "prompt": "x" }), "bad_argument"),
        (json!({ "agent_name": "github" }), "bad_argument"),
        (json!({ "agent_name": "github", "prompt": "" }), "bad_argument"),
        (json!({ "agent_name": "", "prompt": "x" }), "unknown_assistant"),
        (json!({ "agent_name": "../main", "prompt": "x" }), "unknown_assistant"),
        (json!({ "agent_name": "github", "prompt": "x", "model": "y" }), "bad_argument"),
    ] {
        let shown = arguments.to_string();
        assert_eq!(refused(&parent, "run_subagent", arguments).await.0, code, "{shown}");
    }
    parent.cancel().await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_2_2_agents_are_found_by_scanning() {
    let home = home(&[("github", json!([{ "text": "x" }])), ("pages", json!([{ "text": "the page" }]))]);
    let (code, list, _) = home.run(&["list"]);
    assert_eq!(code, Some(0));
    let ids: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(ids, ["github", "web-search"], "agents/main is the main agent's own: {list}");
    let changed = Arc::new(AtomicUsize::new(0));
    let client = Counting(changed.clone());
    let mut command = tokio::process::Command::from(home.command(&["mcp", "--profile", "subagents"]));
    command.kill_on_drop(true);
    let parent = client.serve(TokioChildProcess::new(command).expect("a process")).await.expect("a client");
    let names = || async {
        let tools = parent.list_all_tools().await.expect("tools");
        tools.iter().filter_map(|tool| tool.name.strip_prefix("run_subagent_").map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["github", "web-search"]);
    // A new folder is a new subagent, and clients are told.
    let folder = home.dir.path().join("project/agents/pages");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join("agent.md"), "---\nname: pages\ndescription: Pages.\n---\nYou are pages.\n")
        .expect("a file");
    let told = async {
        while changed.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, told).await.expect("it is told");
    assert_eq!(names().await, ["github", "pages", "web-search"]);
    let run = CallToolRequestParams::new("run_subagent")
        .with_arguments(json!({ "agent_name": "pages", "prompt": "x" }).as_object().cloned().expect("a map"));
    let ran = parent.call_tool(run).await.expect("an answer").structured_content.expect("data");
    assert_eq!(ran["result"], "the page");
    parent.cancel().await.expect("it ends");
}

/// Where there is no handshake, who has subscribed is told.
#[tokio::test(flavor = "multi_thread")]
async fn row_2_2_subscribers_are_told() {
    let home = home(&[("github", json!([{ "text": "x" }]))]);
    let mut command = tokio::process::Command::from(home.command(&["mcp", "--profile", "subagents"]));
    command.kill_on_drop(true);
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let transport = TokioChildProcess::new(command).expect("a process");
    let parent = ().serve_with_lifecycle(transport, lifecycle).await.expect("a client");
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let mut heard = parent.peer().listen(filter).await.expect("a subscription");
    let folder = home.dir.path().join("project/agents/pages");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join("agent.md"), "---\nname: pages\ndescription: Pages.\n---\nYou are pages.\n")
        .expect("a file");
    let told = tokio::time::timeout(SOON, heard.next()).await.expect("it is told").expect("it is told");
    assert!(matches!(told, Some(ServerNotification::ToolListChangedNotification(_))), "{told:?}");
    assert!(offered(&parent).await.contains(&"run_subagent_pages".to_owned()));
    parent.cancel().await.expect("it ends");
}

/// A client that counts how often it is told that its tools are other ones.
struct Counting(Arc<AtomicUsize>);

impl ClientHandler for Counting {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn row_2_3_frontmatter() {
    let home = home(&[("github", json!([{ "text": "x" }]))]);
    let (code, shown, talk) = home.run(&["show", "web-search", "--json"]);
    assert_eq!(code, Some(0), "{talk}");
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    let definition = if shown.get("definition").is_some() { &shown["definition"] } else { &shown };
    assert_eq!(
        (&definition["name"], &definition["description"], &definition["session"]),
        (&json!("web-search"), &json!("Searches the web and returns summarized results"), &json!(false))
    );
    assert_eq!((&definition["allowed_callers"], &definition["timeout_ms"]), (&json!(["main"]), &json!(30_000)));
    let text = shown.to_string();
    for word in
        ["Bash(curl:*)", "Bash(wget:*)", "brave-search", "${BRAVE_API_KEY}", "@anthropic/mcp-server-brave-search"]
    {
        assert!(text.contains(word), "no {word} in {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_2_4_allowed_callers() {
    let file = |name: &str, callers: &str| {
        (
            format!("{name}.md"),
            format!("---\nname: {name}\ndescription: d\nallowed_callers: {callers}\n---\nYou are {name}.\n"),
        )
    };
    let files =
        [file("open", "[main]"), file("inner", "[open]"), file("nobody", "[]"), file("code-reviewer", "[main]")];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let walk = Walk::with(&files, |_| {}).await;
    let run = |name: &str| json!({ "agent_name": name, "prompt": "x" });
    for name in ["inner", "nobody"] {
        let (code, words) = walk.refused("run_subagent", run(name)).await;
        assert_eq!(code, "caller_not_allowed");
        let who = if name == "inner" { "only by open" } else { "by no one" };
        assert!(words.contains(who), "{words}");
        assert_eq!(
            walk.refused(&format!("run_subagent_{name}"), json!({ "prompt": "x" })).await.0,
            "caller_not_allowed"
        );
    }
    let error =
        crate::documents::try_call(&walk.parent, "run_subagent", run("code-reviewr")).await.expect_err("unknown");
    assert_eq!(error["code"], "unknown_assistant");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("`code-reviewer`")), "{error}");
    let offered = offered(&walk.parent).await;
    let own: Vec<&str> = offered.iter().filter_map(|name| name.strip_prefix("run_subagent_")).collect();
    assert_eq!(own, ["code-reviewer", "open"], "who may not be called is not offered");
    walk.close().await;
}

/// Two calls of an assistant with `session: true`: the second one knows what the first one was told.
#[tokio::test(flavor = "multi_thread")]
async fn row_2_5_sessions() {
    let keeps = "---\nname: keeps\ndescription: d\nsession: true\n---\nYou are keeps.\n";
    let forgets = "---\nname: forgets\ndescription: d\nsession: false\n---\nYou are forgets.\n";
    let answers = json!([{ "text": "first: {{last_user}}" }, { "text": "then: {{last_user}}, after {{task}}" }]);
    let home = Home::new(
        &[("agents/keeps/agent.md", keeps), ("agents/forgets/agent.md", forgets)],
        &[("keeps", answers.clone()), ("forgets", answers)],
    );
    let parent = home.parent().await;
    let run = |name: &'static str, prompt: &'static str| {
        let parent = &parent;
        async move { call(parent, "run_subagent", json!({ "agent_name": name, "prompt": prompt })).await["result"].clone() }
    };
    assert_eq!(run("forgets", "one").await, "first: one");
    assert_eq!(run("forgets", "two").await, "first: two");
    assert_eq!(run("keeps", "one").await, "first: one");
    assert_eq!(run("keeps", "two").await, "then: two, after one");
    parent.cancel().await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_2_11_the_main_agent_is_told() {
    let home = home(&[("github", json!([{ "text": "x" }]))]);
    let (code, section, talk) = home.run(&["prompt"]);
    assert_eq!((code, talk.as_str()), (Some(0), ""));
    let want = "\
## Subagents

You have access to the `run_subagent` tool. Use it to delegate tasks
to specialized agents. Available agents:

- **github** — Interact with GitHub repos, PRs, issues.
- **web-search** — Searches the web and returns summarized results

Do not attempt to do these tasks yourself — delegate to the
appropriate agent.
";
    assert_eq!(section, want);
    let (_, one, _) = home.run(&["prompt", "--limit", "1"]);
    assert!(one.contains("**github**") && !one.contains("web-search") && one.contains("- and 1 more\n"), "{one}");
    // The same is in the tool, and what a command lists is what a client gets.
    let parent = home.parent().await;
    let tools = parent.list_all_tools().await.expect("tools");
    let general = tools.iter().find(|tool| tool.name == "run_subagent").expect("there");
    let description = general.description.as_deref().expect("a text");
    let list = "Subagents:\n- github: Interact with GitHub repos, PRs, issues.\n- web-search: Searches the web and returns summarized results";
    assert!(description.ends_with(list), "{description}");
    let (_, printed, _) = home.run(&["tools", "--profile", "subagents", "--json"]);
    let printed: Value = serde_json::from_str(&printed).expect("JSON");
    let names =
        |list: &Value| list.as_array().expect("a list").iter().map(|one| one["name"].clone()).collect::<Vec<_>>();
    assert_eq!(names(&printed["tools"]), names(&json!(tools)));
    assert_eq!(names(&printed["runner_tools"]), ["ask_parent", "check_answer", "check_status", "update_status"]);
    let (code, _, talk) = home.run(&["tools", "--profile", "other"]);
    assert!(code == Some(2) && talk.contains("orchestrator, subagents"), "{talk}");
    parent.cancel().await.expect("it ends");
}

/// One host, clients of both profiles at once: each has its own tools, and both see what was run.
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_is_of_a_connection() {
    let home = home(&[("github", json!([{ "text": "done" }]))]);
    let (subagents, orchestrator) = (home.parent().await, home.client(&[]).await);
    let ran = call(&subagents, "run_subagent", json!({ "agent_name": "github", "prompt": "x" })).await;
    let polled = call(&orchestrator, "poll_assistant", json!({ "process_id": ran["runId"] })).await;
    assert_eq!(polled["process"]["status"], "finished");
    assert!(offered(&orchestrator).await.contains(&"spawn_assistant".to_owned()));
    assert!(offered(&subagents).await.contains(&"run_subagent_github".to_owned()));
    let info = subagents.peer_info().expect("info");
    assert!(
        info.instructions
            .as_deref()
            .is_some_and(|text| text.contains("run_subagent") && !text.contains("spawn_assistant"))
    );
    let tools = info.capabilities.tools.clone().expect("tools");
    assert_eq!(tools.list_changed, Some(true));
    for client in [subagents, orchestrator] {
        client.cancel().await.expect("it ends");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_embedded_host_has_the_profile_too() {
    let home = home(&[("github", json!([{ "text": "done" }]))]);
    let parent = home.client(&["--embedded", "--profile", "subagents"]).await;
    let ran = call(&parent, "run_subagent", json!({ "agent_name": "github", "prompt": "x" })).await;
    assert_eq!(ran["result"], "done");
    parent.cancel().await.expect("it ends");
}
