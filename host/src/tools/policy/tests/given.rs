//! Which tools are given, and what of one definition is more than another has.

use super::*;
use crate::registry::Definition;
use crate::servers::Configured;

#[test]
fn tools_that_are_offered() {
    let check = |keys: &str, offered: &[&str]| {
        let policy = policy(keys, None);
        let all = [
            "fs__read_text_file",
            "fs__write_file",
            "fs__edit_file",
            "shell__run_command",
            "git-hub__list_issues",
            "web__fetch",
        ];
        let got: Vec<&str> = all.into_iter().filter(|tool| policy.offers(named(tool))).collect();
        assert_eq!(got, offered, "{keys}");
    };
    let all = [
        "fs__read_text_file",
        "fs__write_file",
        "fs__edit_file",
        "shell__run_command",
        "git-hub__list_issues",
        "web__fetch",
    ];
    check("model: x", &all);
    check("tools: '*'", &all);
    check("tools: []", &[]);
    check("tools: [Read]", &[]);
    check("tools: [Write, Bash]", &["fs__write_file", "shell__run_command"]);
    check("tools: ['Edit(src/**)', 'Bash(curl:*)']", &["fs__write_file", "fs__edit_file", "shell__run_command"]);
    check(
        "tools: [mcp__fs__*, mcp__git_hub]",
        &["fs__read_text_file", "fs__write_file", "fs__edit_file", "git-hub__list_issues"],
    );
    check("tools: [fs/write_file, git-hub/*, web__fetch]", &["fs__write_file", "git-hub__list_issues", "web__fetch"]);
    check("tools: [WebFetch]", &["web__fetch"]);
    check("disallowedTools: [mcp__fs]", &["shell__run_command", "git-hub__list_issues", "web__fetch"]);
    check("disallowedTools: [Bash, Write, web/*]", &["fs__read_text_file", "fs__edit_file", "git-hub__list_issues"]);
    check(
        "disallowedTools: [Read]",
        &["fs__write_file", "fs__edit_file", "shell__run_command", "git-hub__list_issues", "web__fetch"],
    );
    check("disallowedTools: ['Bash(rm:*)', 'Read(.env)']", &all);
    check(
        "disallowedTools: ['mcp__git-hub__list_issues(x)']",
        &["fs__read_text_file", "fs__write_file", "fs__edit_file", "shell__run_command", "web__fetch"],
    );
    check("disallowedTools: '*'", &[]);
    check("permission: {'*': deny, bash: {'git *': allow}}", &["shell__run_command"]);
}

#[test]
fn tools_of_the_host_and_the_app() {
    let check = |keys: &str, tool: &str, arguments: Value, want: &str| {
        let policy = policy(keys, Some(Path::new("/")));
        assert_eq!(word(&policy, tool, &arguments), want, "{keys} {tool} {arguments}");
    };
    check("tools: ['Bash(ls:*)']", "app__sh", json!({ "command": "ls" }), "allow");
    check("tools: ['Bash(ls:*)']", "app__sh", json!({ "command": "rm" }), "deny");
    check("tools: ['Run(ls:*)']", "app__do_it", json!({ "command": "ls" }), "deny");
    check("tools: ['app__*']", "app__do_it", json!({ "command": "ls" }), "allow");
    check("tools: ['app__do_it(ls)']", "app__do_it", json!({ "command": "ls" }), "deny");
    check("askTools: ['*']", "read_file", json!({ "path": "x" }), "ask");
    check("askTools: ['*']", "ask_parent", json!({ "question": "x" }), "allow");
    check("askTools: [ask_parent]", "ask_parent", json!({ "question": "x" }), "ask");
    check("permission: {'*': ask}", "send_message", json!({}), "allow");
    check("askTools: [app]", "app__sh", json!({}), "ask");
    // Whom it spawns.
    let spawn = |id: &str| json!({ "assistant_id": id });
    for (keys, id, want) in [
        ("disallowedTools: ['Agent(root)']", "root", "deny"),
        ("disallowedTools: ['Agent(Root)']", "root", "deny"),
        ("disallowedTools: ['Agent(root, boss)']", "boss", "deny"),
        ("disallowedTools: ['Agent(root)']", "other", "allow"),
        ("permission: {task: {'*': deny, 'review-*': allow}}", "review-code", "allow"),
        ("permission: {task: {'*': deny, 'review-*': allow}}", "other", "deny"),
        ("askTools: ['Agent(x)']", "x", "ask"),
        ("tools: ['Agent(x)']", "y", "allow"),
    ] {
        check(keys, "spawn_assistant", spawn(id), want);
    }
    check("disallowedTools: ['Agent(root)']", "spawn_assistant", json!({ "search": { "text": "root" } }), "allow");
    check("disallowedTools: ['Agent(root)']", "spawn_assistant", json!({ "assistant_id": ["root"] }), "deny");
    check("disallowedTools: ['Agent(root)']", "spawn_assistant", json!({ "assistantId": "root" }), "deny");
}

#[test]
fn more_than_another_has() {
    let of = |keys: &str| -> Definition {
        let text = format!("---\nname: n\n{keys}\n---\nGo.\n");
        read(text.as_bytes(), "n.md".as_ref(), Source::Dir).expect("a definition")
    };
    let configured = Configured::read(&BTreeMap::new(), &["shell".to_owned()]).expect("a preset");
    let check = |child: &str, parent: &str, more: &[&str]| {
        let tools = ["ask_parent".to_owned(), "read_file".to_owned(), "list_files".to_owned()];
        let got = exceeds(&of(child), &of(parent), &tools, &configured, &BTreeMap::new());
        assert_eq!(got, more, "{child} below {parent}");
    };
    check("tools: [Read]", "tools: [Read]", &[]);
    check("tools: [Read]", "tools: ['Read(src/**)']", &["read_file"]);
    check("tools: ['Read(src/**)']", "tools: [Read]", &[]);
    check("tools: ['Read(src/**)']", "tools: ['Read(src/**)', 'Read(docs/**)']", &[]);
    check("tools: ['Read(**)']", "tools: ['Read(src/**)']", &["read_file"]);
    check("tools: [Read]", "tools: [Read]\ndisallowedTools: ['Read(.env)']", &["read_file", "list_files"]);
    check("tools: [Read]\ndisallowedTools: ['Read(.env)']", "tools: [Read]\ndisallowedTools: ['Read(.env)']", &[]);
    check("tools: [Read]", "askTools: [Read]", &["read_file"]);
    check("tools: [Read]", "permission: {read: {'*.env': ask}}", &["read_file", "list_files"]);
    check("mcpServers: {fs: {command: x}}", "mcpServers: {fs: {command: x}}", &[]);
    check("mcpServers: {fs: {command: x}}", "model: y", &["the server fs"]);
    check("mcpServers: {fs: {command: x}}", "mcpServers: {fs: {command: y}}", &["the server fs"]);
    check("mcpServers: [fs]", "mcpServers: [fs, git]", &[]);
    check("mcpServers: [fs]", "mcpServers: [fs]\ntools: [fs/read]", &["all tools of its servers"]);
    check("mcpServers: [fs]\ntools: [fs/write]", "mcpServers: [fs]\ntools: [fs/read]", &["fs/write"]);
    check("mcpServers: [fs]\ntools: ['Bash(ls:*)']", "mcpServers: [fs]\ntools: [Bash]", &[]);
    check("mcpServers: [fs]", "mcpServers: [fs]\nreadonly: true", &["tools of servers that change something"]);
    check("tools: [Bash]", "tools: [Read]", &["Bash"]);
    check("tools: [Bash]", "tools: ['Bash(ls:*)']", &["Bash"]);
    check("tools: ['Bash(ls:*)']", "tools: [Bash]", &[]);
    check("tools: [WebFetch, NoSuchTool]", "tools: [Read]", &[]);
    check("tools: [ask_parent]", "tools: [Read]", &[]);
}
