//! Commands that make, show, bring in, give out and remove assistants.

use std::path::Path;
use std::process::{Output, Stdio};

use conformance::bed::{SOON, assistant};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::HOST;

#[cfg(target_os = "linux")]
mod beside_a_host;
mod importing;

/// A home with a project in it.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().expect("a folder"));
        std::fs::create_dir_all(home.path().join("project/.git")).expect("a folder");
        home
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn project(&self) -> std::path::PathBuf {
        self.path().join("project")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).expect("a file")
    }

    /// The program in the project, with nothing of the environment but the home.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(HOST);
        command.args(args).current_dir(self.project()).env_clear().env("HOME", self.path()).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Its exit code, and what it says on stdout and stderr.
    async fn run(&self, args: &[&str]) -> (i32, String, String) {
        let output = self.command(args).output();
        let output: Output = tokio::time::timeout(SOON, output).await.expect("it ends").expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (output.status.code().expect("a code"), text(output.stdout), text(output.stderr))
    }

    /// What it says, where it has to succeed.
    async fn out(&self, args: &[&str]) -> String {
        let (code, out, err) = self.run(args).await;
        assert_eq!(code, 0, "{args:?}\nstdout: {out}\nstderr: {err}");
        out
    }

    async fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.out(&[args, &["--json"]].concat()).await).expect("JSON")
    }

    /// Where it has to fail: the exit code, and a part of the reason.
    async fn fails(&self, args: &[&str], code: i32, reason: &str) {
        let (found, out, err) = self.run(args).await;
        assert!(found == code && err.contains(reason), "{args:?}: {found}\nstdout: {out}\nstderr: {err}");
    }
}

const CHECKER: &str = r#"---
name: Invoice Checker
description: "Checks invoices: all.

  <example>user: Does 77 match?</example>"
tools: [Read, Grep, "Bash(git log:*, git show:*)"]
model: sonnet
tags: [money]
color: red
allowed_callers: [main]
max-turns: 7
---
Check them.
"#;

#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_a_secret_is_exported_and_not_shown() {
    let home = Home::new();
    let servers = r#"mcpServers: {s: {command: c, env: {A: hush, B: "${B}"}, headers: {Authorization: "Bearer hush"}}}
extensions: [{name: e, cmd: c, envs: {K: hush}}]
disallowedTools: [[x]]
apiKey: hush"#;
    home.write(
        "project/.agents/agents/keeper.md",
        &format!("---\nname: keeper\ndescription: d\n{servers}\n---\nGo.\n"),
    );
    let shown = home.json(&["show", "keeper"]).await;
    let env = json!({ "command": "c", "env": { "A": "(set)", "B": "${B}" }, "headers": { "Authorization": "(set)" } });
    assert_eq!(shown["mcp_servers"], json!({ "s": env }));
    for args in [&["show", "keeper"][..], &["show", "keeper", "--json"], &["check", "--all"], &["list", "--json"]] {
        let (_, out, err) = home.run(args).await;
        assert!(out.contains("keeper") && !format!("{out}{err}").contains("hush"), "{args:?}: {out} {err}");
    }
    let written = home.out(&["export", "keeper"]).await;
    assert_eq!(written.matches("hush").count(), 4, "{written}");
}

/// What servers bring, and the rules in their order.
#[tokio::test(flavor = "multi_thread")]
async fn show_tells_what_servers_bring() {
    let home = Home::new();
    let config = "tool_presets = [\"shell\"]\n[mcp_servers.orders]\ncommand = \"orders-mcp\"\nargs = [\"--all\"]\n";
    home.write(".config/assistant-host/config.toml", config);
    let file = |name: &str, keys: &str| {
        let text = format!("---\nname: {name}\ndescription: d\n{keys}\n---\nGo.\n");
        home.write(&format!(".claude/agents/{name}.md"), &text);
    };
    let schema = "output_schema: {type: object, properties: {a: {type: string}}}";
    file(
        "seller",
        &format!(
            "tools: [Read, 'Bash(git log:*)', 'orders__*', docs/find]\nmcpServers: {{docs: {{command: d}}, orders2: ~}}\naskTools: [orders__pay]\n{schema}"
        ),
    );
    file("opener", "mcpServers: {docs: {command: d}}\npermission: {bash: {'*': ask, 'git *': allow}}");
    let shown = home.out(&["show", "seller"]).await;
    for line in [
        "tools of server docs (of its own): docs/find, and what of it is called or does Bash(git log:*)\n",
        "tools of server orders (of the configuration): orders__*\n",
        "tools of server shell (of the configuration): Bash(git log:*)\n",
        "asks first      orders__pay\n",
        "result          data that fits an output schema\n",
    ] {
        assert!(shown.contains(line), "{line} {shown}");
    }
    assert!(
        shown.contains(
            "tools of server orders2 (a name only): what of it is called or does Bash(git log:*); not here: "
        ) && shown.contains("no server of that name is configured"),
        "{shown}"
    );
    let shown = home.out(&["show", "opener"]).await;
    for line in [
        "tools of server docs (of its own): all that are not refused\n",
        "tools of server shell (of the configuration): bash\n",
        "rule            bash(*): ask\nrule            bash(git *): allow\n",
    ] {
        assert!(shown.contains(line), "{line} {shown}");
    }
    let shown = home.json(&["show", "opener"]).await;
    let docs = json!({ "server": "docs", "of_definition": true, "tools": null });
    let shell = json!({ "server": "shell", "of_definition": false, "tools": ["bash"] });
    assert_eq!(shown["tools_of_servers"], json!([docs, shell]));
}

#[tokio::test(flavor = "multi_thread")]
async fn show_tells_all_about_one() {
    let home = Home::new();
    home.write("project/.agents/agents/checker.md", CHECKER);
    home.write(".claude/agents/checker.md", &assistant("invoice-checker", ""));
    let path = home.project().join(".agents/agents/checker.md").canonicalize().expect("a path");
    let (code, out, err) = home.run(&["show", "invoice-checker"]).await;
    let expected = format!(
        "name            Invoice Checker
id              invoice-checker
description     Checks invoices: all.
example         Does 77 match?
source          project
file            {}
tools           read_file, search_files
not available   Bash(git log:*, git show:*): the host itself only reads; tool_presets = [\"shell\"] in the configuration \
         brings a tool server for it
model           sonnet
tags            money
callers         main
turns           7
kept            color: \"red\"
prompt          11 characters
  Check them.
",
        path.display()
    );
    assert_eq!((code, out), (0, expected));
    assert!(err.starts_with("info: ") && err.contains("shadowed: "), "{err}");
    assert_eq!(home.out(&["show", "Invoice Checker", "--prompt"]).await, "Check them.\n");
    let shown = home.json(&["show", "invoice-checker"]).await;
    assert_eq!((&shown["granted_tools"], &shown["tags"]), (&json!(["read_file", "search_files"]), &json!(["money"])));
    assert_eq!((&shown["extra"], &shown["system_prompt"]), (&json!({ "color": "red" }), &json!("Check them.")));
    // A file that was skipped is told by its name, with the reason.
    home.write("project/.agents/agents/broken-one.md", "---\nname: broken-one\ndisable: perhaps\n---\nGo.\n");
    let path = home.project().join(".agents/agents/broken-one.md").canonicalize().expect("a path");
    let skipped = format!("its file was skipped: {}:3:", path.display());
    for args in [
        &["show", "Broken One"][..],
        &["show", "broken-one"],
        &["run", "go", "--assistant", "broken-one", "--embedded"],
    ] {
        home.fails(args, 3, &skipped).await;
    }
    home.fails(&["show", "invoice-cheker"], 3, "near it are `invoice-checker`").await;
    home.fails(&["show", "zzz"], 3, "`assistant-host list` shows them").await;
    home.fails(&["explain", "invoices", "invoice-cheker"], 3, "near it are `invoice-checker`").await;
    home.fails(&["explain", " ", "invoice-checker"], 2, "the query is empty").await;
    assert!(home.out(&["explain", "invoices", "Invoice Checker"]).await.starts_with("invoice-checker is hit 1 of 1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_exported_reads_the_same() {
    let home = Home::new();
    home.write("project/.agents/agents/checker.md", CHECKER);
    home.write("project/.agents/agents/poet.md", &assistant("poet", "read_file"));
    let printed = home.out(&["export", "invoice-checker"]).await;
    assert_eq!(home.out(&["export", "invoice-checker", "--to", "-"]).await, printed);
    let out = home.out(&["export", "--all", "--to", "../out"]).await;
    assert_eq!(out, "../out/invoice-checker.md\n../out/poet.md\n");
    assert_eq!(home.read("out/invoice-checker.md"), printed);
    let of = async |places: &[&str], id: &str| -> Value {
        let mut shown = home.json(&[&["show", id], places].concat()).await;
        for key in ["path", "source", "dialect", "warnings", "findings", "content_hash", "hides"] {
            shown.as_object_mut().expect("an object").remove(key);
        }
        shown
    };
    for id in ["invoice-checker", "poet"] {
        assert_eq!(of(&[], id).await, of(&["--assistants", "../out"], id).await);
    }
    home.write("out/poet.md", "mine");
    let (code, out, err) = home.run(&["export", "poet", "invoice-checker", "--to", "../out"]).await;
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(
        err.contains("../out/poet.md is there already; nothing was written over it") && err.contains("0 files"),
        "{err}"
    );
    assert_eq!(home.read("out/poet.md"), "mine");
    home.out(&["export", "poet", "--to", "../out", "--force"]).await;
    assert!(home.read("out/poet.md").starts_with("---\nname: poet\n"));
    assert_eq!(std::fs::read_dir(home.path().join("out")).expect("a folder").count(), 2, "nothing is left behind");
    home.fails(&["export", "--all"], 2, "2 assistants do not fit into one file").await;
    home.fails(&["export"], 2, "required").await;
    home.fails(&["export", "nobody"], 3, "no assistant has the id").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_makes_one_from_each_template() {
    let home = Home::new();
    let listed = home.json(&["new", "--templates"]).await;
    let names: Vec<_> =
        listed["templates"].as_array().expect("a list").iter().filter_map(|one| one["template"].as_str()).collect();
    assert_eq!(names, ["plain", "diff-reviewer", "test-writer", "doc-editor", "log-triager"]);
    assert!(home.out(&["new", "x", "--template", "list"]).await.starts_with("plain "));
    let folder = home.project().canonicalize().expect("a path").join(".agents/agents");
    for name in &names {
        let out =
            home.out(&["new", &format!("My {name}"), "--template", name, "--tag", "mine", "--tag", "#ours"]).await;
        assert_eq!(out, format!("{}\n", folder.join(format!("my-{name}.md")).display()));
        let shown = home.json(&["show", &format!("my-{name}")]).await;
        assert_eq!((&shown["tags"], &shown["unavailable_tools"]), (&json!(["mine", "ours"]), &json!([])));
        assert!(shown["description"].as_str().is_some_and(|text| text.len() > 40), "{shown}");
        let warnings = shown["warnings"].as_array().expect("a list");
        assert!(warnings.iter().all(|one| one["severity"] == "info"), "{warnings:?}");
    }
    assert_eq!(home.json(&["list"]).await["totals"]["assistants"], 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn any_name_gives_a_safe_file_or_a_reason() {
    let home = Home::new();
    for (name, id) in [
        ("C++ Helper", "cpp-helper"),
        ("发票核对", "发票核对"),
        ("../../x", "x"),
        ("no", "no"),
        ("***", "assistant-596f4162"),
        ("a: \"b\" # c", "a-b-c"),
        ("con", "con"),
    ] {
        let made = home.json(&["new", name, "--description", " Does: it. "]).await;
        assert_eq!((&made["assistant_id"], &made["name"]), (&json!(id), &json!(name)));
        let shown = home.json(&["show", id]).await;
        assert_eq!((&shown["name"], &shown["description"]), (&json!(name), &json!("Does: it.")));
        assert_eq!((&shown["path"], &shown["source"]), (&made["path"], &json!("project")));
    }
    let files = std::fs::read_dir(home.project().join(".agents/agents")).expect("a folder");
    assert_eq!(files.count(), 7);
    for (args, code, reason) in [
        (&[""][..], 2, "the name is empty"),
        (&[" \t"], 2, "the name is empty"),
        (&["main"], 2, "`main` is the session's own name"),
        (&["a\u{1b}[31m"], 2, "a control character"),
        (&[&"x".repeat(300)], 2, "more than 128 characters"),
        (&["y", "--template", "poet"], 2, "there is no template `poet`; there are plain, diff-reviewer"),
        (&["y", "--tag", ","], 2, "a tag has 1 to 64 characters"),
        (&["c++ helper"], 1, "there is an assistant `cpp-helper` already, in "),
        (&[], 2, "required"),
    ] {
        home.fails(&[&["new"], args].concat(), code, reason).await;
    }
    assert!(home.run(&["new", "b/c"]).await.2.contains("warning: "), "others refuse such a name");
    home.write("project/.agents/agents/notes.md", "only notes\n");
    home.fails(&["new", "Notes"], 1, "notes.md is there already; nothing was written over it").await;
    assert_eq!(home.read("project/.agents/agents/notes.md"), "only notes\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn new_goes_where_it_is_told() {
    let home = Home::new();
    let user = home.path().join(".config/assistant-host/assistants/mine.md");
    assert_eq!(home.out(&["new", "Mine", "--to", "user"]).await, format!("{}\n", user.display()));
    assert_eq!(home.json(&["show", "mine"]).await["source"], "user");
    assert_eq!(home.out(&["new", "Kept", "--to", "database"]).await, "kept\n");
    let kept = home.json(&["show", "kept"]).await;
    assert_eq!((&kept["source"], &kept["path"]), (&json!("database"), &Value::Null));
    home.fails(&["new", "kept"], 1, "there is an assistant `kept` already, in the database").await;
    let alone = home.out(&["new", "Alone", "--no-project"]).await;
    assert!(alone.ends_with(".config/assistant-host/assistants/alone.md\n"), "{alone}");
    home.fails(&["new", "z", "--no-project", "--to", "project"], 2, "there is no project here").await;
    std::fs::create_dir(home.path().join("own")).expect("a folder");
    assert_eq!(home.out(&["new", "Own", "--assistants", "../own"]).await, "../own/own.md\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn remove_touches_only_what_is_named() {
    let home = Home::new();
    home.write("project/.agents/agents/poet.md", &assistant("poet", ""));
    home.write(".claude/agents/poet.md", &assistant("poet", "read_file"));
    home.out(&["new", "Kept", "--to", "database"]).await;
    home.fails(&["remove", "kept", "nobody"], 3, "no assistant has the id or name `nobody`").await;
    home.fails(&["remove", "kept", "poet"], 2, "poet.md; `remove poet --file` deletes that file").await;
    let (code, out, err) = home.run(&["remove", "Kept"]).await;
    assert_eq!((code, out.split_whitespace().collect::<Vec<_>>()), (0, vec!["kept", "the", "database"]), "{err}");
    home.fails(&["show", "kept"], 3, "no assistant").await;
    home.fails(&["remove", "kept"], 3, "no assistant").await;
    assert_eq!(home.out(&["new", "Kept", "--to", "database"]).await, "kept\n", "the id is free again");
    let (code, out, err) = home.run(&["remove", "poet", "--file"]).await;
    assert!(code == 0 && out.contains("project/.agents/agents/poet.md"), "{out}{err}");
    assert!(err.contains("`poet` is now the one of ") && err.contains(".claude/agents/poet.md"), "{err}");
    assert_eq!(home.json(&["show", "poet"]).await["source"], "user");
}
