//! What the real agents may and may not do.

use serde_json::json;

use super::{CLAUDE, CODEX, GEMINI, OPENCODE, Real, Tools};

#[tokio::test]
async fn claude_code_asks_for_permission() {
    let Some(real) = Real::start("claude", CLAUDE).await else { return };
    let host = real.host().await;
    // It would read in its folder without a word.
    std::fs::write(real.work.join("forbidden.env"), "secret").expect("writes");
    let reads = real.command("cat forbidden.env");
    let steps = [reads, real.command("touch allowed"), real.command("touch forbidden"), "repeat".to_owned()];
    let tools = json!({ "tools": ["Bash(echo:*)"] });
    let ended = host.run(real.run(&steps, tools)).await;
    assert_eq!(ended, "finished: It said: The test forbids it.");
    let lines = host.lines();
    for asked in ["cat forbidden.env", "touch allowed"] {
        assert!(lines.contains(&format!("may Bash {{\"command\":\"{asked}\"}}")), "{asked}: {lines:#?}");
    }
    assert!(real.work.join("allowed").exists() && !real.work.join("forbidden").exists());
    assert_eq!(host.end().await, Some(0));
}

/// With rules for a tool the host judges each call of it, also one that Claude Code would make without a word.
#[tokio::test]
async fn claude_code_asks_before_it_reads_by_rules() {
    let Some(real) = Real::start("claude", CLAUDE).await else { return };
    let host = real.host().await;
    let path = |name: &str| real.work.join(name).display().to_string();
    for name in ["notes", "forbidden.env"] {
        std::fs::write(path(name), "secret").expect("writes");
    }
    let reads = |name: &str| format!("call Read {{\"file_path\":\"{}\"}}", path(name));
    let steps = [reads("notes"), real.command("cat notes"), reads("forbidden.env"), "repeat".to_owned()];
    let rules = json!([
        { "action": "allow", "tool": "read" }, { "action": "deny", "tool": "read", "pattern": "*.env" },
        { "action": "deny", "tool": "bash", "pattern": "rm *" },
    ]);
    let ended = host.run(real.run(&steps, json!({ "rules": rules }))).await;
    let lines = host.lines();
    assert!(ended.contains("denied") && !ended.contains("secret"), "{ended}: {lines:#?}");
    for asked in ["may Read", "may Bash {\"command\":\"cat notes\"}"] {
        assert!(lines.iter().any(|line| line.starts_with(asked)), "{asked}: {lines:#?}");
    }
    assert_eq!(host.end().await, Some(0));
}

/// What rules forbid to read does not come by a search or a command either.
#[tokio::test]
async fn claude_code_searches_by_the_rules_for_reading() {
    let Some(real) = Real::start("claude", CLAUDE).await else { return };
    let host = real.host().await;
    for name in ["x.env", "notes"] {
        std::fs::write(real.work.join(name), "secret").expect("writes");
    }
    let search = "call Grep {\"pattern\":\"secret\",\"output_mode\":\"content\"}".to_owned();
    let rules =
        json!([{ "action": "deny", "tool": "read", "pattern": "*.env" }, { "action": "allow", "tool": "bash" }]);
    let tools = json!({ "tools": ["Read", "Grep", "Bash"], "rules": rules });
    let found = host.run(real.run(&[search, "repeat".to_owned()], tools.clone())).await;
    assert!(found.contains("notes:1:secret") && !found.contains("x.env"), "{found}");
    let ended = host.run(real.run(&[real.command("cat x.env"), "repeat".to_owned()], tools)).await;
    assert!(ended.contains("denied"), "{ended}");
    assert_eq!(host.end().await, Some(0));
}

/// Where some commands only are allowed, none writes what it prints into a file.
#[tokio::test]
async fn opencode_writes_nothing_by_commands_that_are_allowed() {
    let Some(real) = Real::start("opencode", OPENCODE).await else { return };
    let host = real.host().await;
    let commands =
        ["echo a > forbidden", "echo a; touch forbidden", "echo a | tee forbidden", "echo $(touch forbidden)"];
    let mut steps: Vec<String> = commands.iter().map(|command| real.command(command)).collect();
    steps.extend([real.command("echo forty-two"), "repeat".to_owned()]);
    let ended = host.run(real.run(&steps, json!({ "tools": ["Bash(echo:*)"] }))).await;
    assert!(ended.contains(real.tools.said), "{ended}");
    assert!(!real.work.join("forbidden").exists(), "{:#?}", host.lines());
    assert_eq!(host.end().await, Some(0));
}

/// Where all commands are allowed, they write into files too; where only some are, none does.
#[tokio::test]
async fn gemini_writes_by_commands_where_all_are_allowed() {
    let Some(real) = Real::start("gemini", GEMINI).await else { return };
    let host = real.host().await;
    for (tool, writes) in [("Bash", true), ("Bash(echo:*)", false)] {
        let file = real.work.join(if writes { "allowed" } else { "forbidden" });
        let command = format!("echo b; echo a > {}", file.display());
        let steps = [real.command(&command), "say Over.".to_owned()];
        assert_eq!(host.run(real.run(&steps, json!({ "tools": [tool] }))).await, "finished: Over.");
        assert_eq!(file.exists(), writes, "{tool}: {:#?}", host.lines());
    }
    assert_eq!(host.end().await, Some(0));
}

/// What a definition must not have, the agents do not do.
async fn does_nothing_forbidden(name: &'static str, tools: Tools) {
    let Some(real) = Real::start(name, tools).await else { return };
    let host = real.host().await;
    for more in [
        json!({ "readonly": true }),
        json!({ "tools": ["Read"] }),
        json!({ "disallowed_tools": ["Bash"] }),
        json!({ "tools": [] }),
    ] {
        let steps = [real.command("touch forbidden"), "say Over.".to_owned()];
        let ended = host.run(real.run(&steps, more.clone())).await;
        assert_eq!(ended, "finished: Over.", "{more}");
        assert!(!real.work.join("forbidden").exists(), "{more}");
    }
    assert_eq!(host.end().await, Some(0));
}

#[tokio::test]
async fn claude_code_does_nothing_forbidden() {
    does_nothing_forbidden("claude", CLAUDE).await;
}

#[tokio::test]
async fn codex_does_nothing_forbidden() {
    does_nothing_forbidden("codex", CODEX).await;
}

#[tokio::test]
async fn opencode_does_nothing_forbidden() {
    does_nothing_forbidden("opencode", OPENCODE).await;
}

#[tokio::test]
async fn gemini_does_nothing_forbidden() {
    does_nothing_forbidden("gemini", GEMINI).await;
}
