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
    // Maps of opencode: the last rule that fits counts, and `server_tool` is a tool of a server.
    let git_hub = ["git-hub__list_issues"];
    check("tools: {'git-hub__*': false, git-hub__list_issues: true}", &git_hub);
    check(
        "tools: {'*': true, 'git-hub_*': false, 'git-hub_list_*': true, 'fs*': false}",
        &["shell__run_command", "git-hub__list_issues", "web__fetch"],
    );
    check(
        "tools: {'*': true, 'git-hub_*': false, git-hub_others: true}",
        &["fs__read_text_file", "fs__write_file", "fs__edit_file", "shell__run_command", "web__fetch"],
    );
    check("permission: {'*': deny, 'git-hub_*': allow}", &git_hub);
    check("permission: {'git-hub_*': deny, git-hub_list_issues: allow}", &git_hub);
    check("permission: {'git-hub_*': allow, '*': deny}", &[]);
    check("tools: {bash: true, write: false}", &["shell__run_command"]);
    check("mcpServers: [web]\ntools: {bash: true, write: false}", &["shell__run_command", "web__fetch"]);
    check("tools: {'*': false, web_fetch: true}", &["web__fetch"]);
    check("tools: {git-hub_list_issues: false, 'fs_*': false}", &["shell__run_command", "web__fetch"]);
    // Without a word about tools: those of its own servers, and what rules give.
    check("permission: {bash: ask}", &["shell__run_command"]);
    check("permission: {bash: {'rm *': deny}}", &["shell__run_command"]);
    check("mcpServers: [web]\npermission: {bash: {'*': deny, 'git *': allow}}", &["shell__run_command", "web__fetch"]);
    check("mcpServers: [fs, web]\npermission: {'fs_*': deny, fs_edit_file: allow}", &["fs__edit_file", "web__fetch"]);
    check(
        "permissionRules: ['bash: deny']",
        &["fs__read_text_file", "fs__write_file", "fs__edit_file", "git-hub__list_issues", "web__fetch"],
    );
}

/// A tool that is given to the letter brings no other of its server that is spelled nearly so.
#[test]
fn tools_of_nearly_the_same_name() {
    let check = |keys: &str, all: &[(&str, &str)], offered: &[&str]| {
        let policy = policy(keys, None);
        let is = |(tool, shown): &(&str, &str)| policy.offers_beside(ToolName { server: Some("x"), tool }, shown, all);
        let got: Vec<&str> = all.iter().filter(|one| is(one)).map(|(tool, _)| *tool).collect();
        assert_eq!(got, offered, "{keys}");
    };
    let both = [("read_page", "x__read_page"), ("readPage", "x__readPage")];
    check("tools: [x__read_page]", &both, &["read_page"]);
    check("tools: [mcp__x__readPage]", &both, &["readPage"]);
    check("tools: [x_read_page]", &both, &["read_page"]);
    check("tools: [readPage]", &both, &["readPage"]);
    check("tools: [x/read_page, x/readPage]", &both, &["read_page", "readPage"]);
    check("tools: ['x__*']", &both, &["read_page", "readPage"]);
    check("tools: [x__ReadPage]", &both, &["read_page", "readPage"]);
    check("tools: [x__read_page]", &both[1..], &["readPage"]);
    check("disallowedTools: [x__read_page]", &both, &[]);
    // By the name that a model is told.
    let fitted = [("bad name", "x__bad_name_0a1b2c"), ("bad_name", "x__bad_name_3d4e5f"), ("worse!", "x__worse_")];
    check("tools: [x__bad_name]", &fitted, &["bad_name"]);
    check("tools: [x__worse_]", &fitted, &["worse!"]);
    check("disallowedTools: [x__worse_]", &fitted, &["bad name", "bad_name"]);
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
    // Without a word about tools it has no more of configured servers than its rules give.
    check("tools: [Bash]", "model: y", &["Bash"]);
    check("tools: '*'", "tools: [Read]", &["*"]);
    check("tools: '*'", "tools: '*'", &[]);
    check("permission: {bash: allow}", "tools: [Read]", &["bash"]);
    check("tools: [Bash]", "permission: {bash: allow}", &[]);
    check("tools: [Bash]", "permission: {bash: ask}", &["calls that are refused or asked about there"]);
    check("mcpServers: [fs]", "mcpServers: [fs]\npermission: {bash: allow}", &[]);
    check("mcpServers: [fs]\ntools: [fs/write]", "mcpServers: [fs]", &[]);
    // Nor than what a map switches on.
    check("tools: {bash: true, write: false}", "tools: [Read]", &["bash"]);
    check("tools: {bash: true}", "tools: {write: true}", &["bash"]);
    check("tools: {bash: true}", "tools: {bash: true, read: true}", &[]);
    check("tools: [Bash]", "tools: {bash: true}", &[]);
    // Servers under opencode's key.
    check("mcp: {fs: {type: local, command: [x]}}", "model: y", &["the server fs"]);
    check("mcp: {fs: {type: local, command: [x]}}", "mcp: {fs: {type: local, command: [x]}}", &[]);
    check("mcp: {fs: {type: local, command: [x], enabled: false}}", "model: y", &[]);
}

/// A server of its own is no configured one, and a group of names may be of others too.
#[test]
fn names_that_bring_other_servers_are_more() {
    let program = |name: &str| (name.to_owned(), toml::from_str("command = \"x\"").expect("a server"));
    let all = BTreeMap::from(["db", "db2", "secret"].map(program));
    let configured = Configured::read(&all, &[]).expect("servers");
    let check = |child: &str, parent: &str, more: &[&str]| {
        let got = exceeds(&of(child), &of(parent), &[], &configured, &BTreeMap::new());
        assert_eq!(got, more, "{child} below {parent}");
    };
    for name in ["mcp__*", "*/query", "d*"] {
        check(&format!("tools: ['{name}']"), "mcpServers: [db]", &[name]);
    }
    check("tools: [mcp__db__query]", "mcpServers: [db]", &[]);
    check("tools: [mcp__db2__query]", "mcpServers: [db]", &["mcp__db2__query"]);
    check("tools: ['mcp__*']", "mcpServers: [db, db2, secret]", &[]);
    // What the parent has of that name is another server, unless the child has the same.
    let own = "mcpServers: {db: {command: y}}";
    let another = ["mcp__db__query of the configuration", "mcp__db__query"];
    check("tools: [mcp__db__query]", own, &another);
    check("tools: [mcp__db__query]", &format!("{own}\ntools: [mcp__db__query]"), &another[..1]);
    check("tools: ['*']", &format!("{own}\ntools: ['*']"), &["* of the configuration"]);
    check(&format!("{own}\ntools: [mcp__db__query]"), own, &[]);
}

/// What a command redirects to is a file, whatever the shell is of.
#[test]
fn shells_without_the_rules_for_files_are_more() {
    let shell = ["app__shell".to_owned()];
    let check = |child: &str, parent: &str, more: &[&str]| {
        let (child, parent) = (format!("tools: [app__shell]\n{child}"), format!("tools: [app__shell]\n{parent}"));
        let got = exceeds(&of(&child), &of(&parent), &shell, &Configured::default(), &BTreeMap::new());
        assert_eq!(got, more, "{child} below {parent}");
    };
    let (edit, read) = ("disallowedTools: ['Edit(secrets/**)']", "askTools: ['Read(secrets/**)']");
    check("model: x", edit, &["app__shell"]);
    check("model: x", read, &["app__shell"]);
    check("model: x", "permission: {edit: {'secrets/**': deny}}", &["app__shell"]);
    check("model: x", "disallowedTools: ['WebFetch(domain:x.org)']", &[]);
    check(edit, edit, &[]);
    check(read, read, &[]);
    check(edit, "model: x", &[]);
}

fn of(keys: &str) -> Definition {
    let text = format!("---\nname: n\n{keys}\n---\nGo.\n");
    read(text.as_bytes(), "n.md".as_ref(), Source::Dir).expect("a definition")
}
