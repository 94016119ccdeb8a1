use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::registry::{Source, read};

fn policy(keys: &str) -> Policy {
    let text = format!("---\nname: n\ndescription: d\n{keys}\n---\nGo.\n");
    let definition = read(text.as_bytes(), "n.md".as_ref(), Source::Dir).expect("a definition");
    Policy::of(&definition, &BTreeMap::new()).within(Some(env!("CARGO_MANIFEST_DIR").into()))
}

fn in_words(why: &Why) -> String {
    match why {
        Why::Rule(rule) => rule.clone(),
        Why::NoRule | Why::Outside => why.to_string(),
    }
}

/// What becomes of a call: `+` it is made, `?` somebody is asked, `-` it is not; behind it a part of the rule.
fn check(keys: &str, tool: &str, arguments: Value, want: &str) {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let told = match policy(keys).judge_own(tool, &arguments) {
        Verdict::Allow => "+".to_owned(),
        Verdict::Ask { why } => format!("? {}", in_words(&why)),
        Verdict::Deny { rule } => format!("- {rule}"),
    };
    let (sign, rule) = want.split_at(1);
    assert!(told.starts_with(sign) && told.contains(rule.trim()), "{keys}; {tool} {arguments:?}: {told}");
}

#[test]
fn what_a_definition_names_it_gives() {
    let run = |command: &str| json!({ "command": command, "description": "d" });
    for keys in ["tools: [Bash]", "tools: [shell]", "tools: [execute]", "tools: ['*']", "tools: [run_shell_command]"] {
        check(keys, "Bash", run("rm x"), "+");
    }
    check("tools: ['Bash(git log:*)']", "Bash", run("git log -1"), "+");
    check("tools: ['Bash(git log:*)']", "Bash", run("git push"), "- `git push` does not match any of: Bash(git log:*)");
    check("tools: ['Bash(git log:*)']", "Bash", run("git log; rm -r /"), "-");
    check("tools: [Read]", "Bash", run("ls"), "- it is none of the tools");
    check("tools: []", "Read", json!({ "file_path": "a" }), "- it is none of the tools");
    check("tools: ['Read(src/**)']", "Read", json!({ "file_path": "src/a.rs" }), "+");
    check("tools: ['Read(src/**)']", "Read", json!({ "file_path": "key" }), "-");
    check("tools: [view]", "Read", json!({ "file_path": "a" }), "+");
    check("tools: [Read]", "Grep", json!({ "pattern": "a" }), "-");
    check("tools: [Edit]", "MultiEdit", json!({ "file_path": "a" }), "+");
    check("tools: [Write]", "Edit", json!({ "file_path": "a" }), "-");
    check("tools: ['WebFetch(domain:docs.rs)']", "WebFetch", json!({ "url": "https://docs.rs/x", "prompt": "p" }), "+");
    check("tools: ['WebFetch(domain:docs.rs)']", "WebFetch", json!({ "url": "https://evil.com" }), "-");
    check("tools: [WebSearch]", "WebSearch", json!({ "query": "a" }), "+");
    check("tools: [Read]", "WebSearch", json!({ "query": "a" }), "-");
    check("tools: ['mcp__*']", "Bash", run("ls"), "-");
    check("tools: [mcp__x__y]", "mcp__x__y", json!({}), "+");
    check("tools: [Read]", "mcp__x__y", json!({}), "-");
}

#[test]
fn what_is_not_in_the_folder_of_the_run_is_asked_about() {
    let path = |path: &str| json!({ "file_path": path });
    for (tool, keys) in
        [("Read", "tools: [Read]"), ("Read", "model: m"), ("Write", "tools: [Write]"), ("Read", "readonly: true")]
    {
        check(keys, tool, path("src/a.rs"), "+");
        check(keys, tool, path(&format!("{}/src/a.rs", env!("CARGO_MANIFEST_DIR"))), "+");
        for outside in ["/etc/passwd", "../Cargo.toml", "~/.ssh/id_rsa"] {
            check(keys, tool, path(outside), "? what it is about is not in the folder of the run");
        }
    }
    check("tools: [Grep]", "Grep", json!({ "pattern": "a" }), "+");
    check("tools: [Grep]", "Grep", json!({ "pattern": "a", "path": "/etc" }), "?");
}

#[test]
fn what_is_denied_and_what_is_asked_first() {
    let run = |command: &str| json!({ "command": command });
    check("tools: [Bash]\ndisallowedTools: ['Bash(rm:*)']", "Bash", run("rm x"), "- `Bash(rm:*)` is denied");
    check("tools: [Bash]\ndisallowedTools: ['Bash(rm:*)']", "Bash", run("ls"), "+");
    for denied in ["Bash", "shell", "execute", "'*'"] {
        check(&format!("tools: ['*']\ndisallowedTools: [{denied}]"), "Bash", run("ls"), "-");
    }
    check("disallowedTools: [Read]", "Read", json!({ "file_path": "a" }), "- `Read` is denied");
    check("permission: {bash: {'*': ask, 'git *': allow}}", "Bash", run("git log"), "+");
    check("permission: {bash: {'*': ask, 'git *': allow}}", "Bash", run("make"), "? bash(*): ask");
    check("permission: {bash: deny}", "Bash", run("make"), "-");
    check("permission: {edit: allow}", "Write", json!({ "file_path": "a" }), "+");
    // That all is allowed gives nothing.
    check("permission: {'*': allow}", "Bash", run("make"), "? no rule is about it");
}

#[test]
fn where_nothing_is_said_only_looking_needs_no_word() {
    let path = json!({ "file_path": "a" });
    for looks in ["Read", "Glob", "Grep", "LS", "WebSearch", "TodoWrite", "WebFetch"] {
        let arguments = if looks == "WebFetch" { json!({ "url": "https://a.b" }) } else { path.clone() };
        check("model: x", looks, arguments, "+");
    }
    check("model: x", "Bash", json!({ "command": "ls" }), "? no rule is about it");
    check("model: x", "Write", path.clone(), "? no rule is about it");
    check("model: x", "Task", json!({}), "? no rule is about it");
    check("model: x", "mcp__x__y", json!({}), "? no rule is about it");
    // What nobody knows is asked about, whatever the definition names.
    check("tools: [Read]", "frobnicate", json!({}), "? no rule is about it");
    check("tools: [Read]", "mcp__assistants__ask_parent", json!({}), "+");
}

#[test]
fn who_must_change_nothing_neither_writes_nor_runs() {
    for tool in ["Bash", "Write", "Edit", "NotebookEdit", "Task", "frobnicate", "mcp__x__y"] {
        check("readonly: true\ntools: ['*']", tool, json!({ "command": "ls" }), "- the assistant is read-only");
    }
    check("readonly: true", "Read", json!({ "file_path": "a" }), "+");
    check("readonly: true\ntools: [Read]", "Grep", json!({ "pattern": "a" }), "-");
}

#[test]
fn what_does_more_than_look() {
    for name in [
        "Bash",
        "Bash(git log:*)",
        "edit/editFiles",
        "Write",
        "NotebookEdit",
        "*",
        "Skill",
        "mcp__x__y",
        "mcp__*",
        "mcpxy",
        "mcp__assistantsx",
    ] {
        assert!(does_more(name), "{name}");
    }
    for name in [
        "Read",
        "Grep(src/**)",
        "WebFetch",
        "WebSearch",
        "TodoWrite",
        "Task",
        "ask_parent",
        "mcp__assistants__ask_parent",
        "mcp__assistants",
        "AskUserQuestion",
    ] {
        assert!(!does_more(name), "{name}");
    }
}

#[test]
fn who_searches_in_files_reads_them() {
    let by_rule = "permission: {read: {'*': allow, '*.env': deny}}";
    for search in ["Grep", "grep", "grep_search", "search_file_content", "codebase_search"] {
        let (all, src) = (json!({ "pattern": "a" }), json!({ "pattern": "a", "path": "src" }));
        check("model: x", search, all.clone(), "+");
        for arguments in [&all, &src] {
            check(by_rule, search, arguments.clone(), "- *.env");
            check("permission: {read: {'*': allow, '*.env': ask}}", search, arguments.clone(), "? *.env");
            check("disallowedTools: ['Read(*.env)']", search, arguments.clone(), "- *.env");
            check("permission: {read: ask}", search, arguments.clone(), "? read: ask");
            check("askTools: [Read]", search, arguments.clone(), "? Read");
            check("permission: {read: deny}", search, arguments.clone(), "- `read` is denied");
            check("disallowedTools: [Read]", search, arguments.clone(), "- `Read` is denied");
        }
        check("permission: {read: {'*': allow, 'secrets/**': deny}}", search, src.clone(), "+");
        check("permission: {read: {'*': allow, 'secrets/**': deny}}", search, all, "-");
    }
    // Names are none of what stands in them.
    check(by_rule, "Glob", json!({ "pattern": "*.env" }), "+");
    check("disallowedTools: [Read]", "Glob", json!({ "pattern": "*" }), "+");
}

#[test]
fn names_of_what_only_looks_are_sorted() {
    assert!(LOOKS.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn a_child_has_no_more_than_its_parent() {
    let beyond = |child: &str, parent: &str, agent: bool, want: &[&str]| {
        assert_eq!(policy(child).own_beyond(&policy(parent), agent), want, "{child}; {parent}");
    };
    beyond("tools: [Bash, Read]", "tools: [Bash]", true, &[]);
    beyond("tools: [Bash, Read]", "tools: [Bash]", false, &["Bash"]);
    beyond("tools: [Bash, Edit]", "tools: [Read, Bash]", true, &["Edit"]);
    beyond("tools: [Bash]", "tools: ['Bash(git:*)']", true, &["Bash"]);
    beyond("tools: ['Bash(git:*)']", "tools: [Bash]", true, &[]);
    beyond("tools: [Bash]", "tools: ['*']\ndisallowedTools: [Bash]", true, &["Bash"]);
    beyond("tools: ['*']", "tools: [Bash]", true, &["*"]);
    beyond("tools: ['*']", "tools: ['*']", true, &[]);
    beyond("tools: [Read, WebSearch]", "tools: [Read]", false, &["WebSearch"]);
    beyond("model: x", "tools: [Read]", false, &[]);
    beyond("permission: {bash: allow}", "tools: [Read]", true, &["bash"]);
}
