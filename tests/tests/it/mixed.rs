//! Files of many systems in one project, as a new user has them: all are read, found, checked and run.

use std::path::Path;
use std::process::{Command, Stdio};

use assistant_host::registry;
use conformance::bed::{Bed, Client};
use serde_json::{Value, json};

use crate::{HOST, RUNNER};

/// Each system's file in its place.
const FILES: &[(&str, &str)] = &[
    (
        ".agents/agents/release-notes.md",
        "---\nname: release-notes\ndescription: Writes release notes from a list of commits\n---\nWrite notes.\n",
    ),
    (
        ".claude/agents/reviewer.md",
        "---\nname: reviewer\ndescription: Reviews a change for bugs\ntools: Read, Glob, Bash\nmodel: sonnet\ncolor: red\n---\nReview.\n",
    ),
    (".claude/agents/deep/loud.md", "---\nname: loud\ndescription: Reads texts aloud: slowly\n---\nRead aloud.\n"),
    (".claude/agents/README.md", "# Our agents\n"),
    (
        ".github/agents/ticket-sorter.agent.md",
        "---\nname: Ticket Sorter\ndescription: Sorts support tickets by urgency\ntools: ['codebase', 'fetch']\nhandoffs:\n  - label: Go on\n    agent: reviewer\n---\nSort.\n",
    ),
    (
        ".gemini/agents/translator.md",
        "---\nname: translator\ndisplay_name: The Translator\ndescription: Translates manuals into French\nkind: local\ntools: [read_file, list_directory]\nmax_turns: 7\n---\nTranslate.\n",
    ),
    (".gemini/agents/torn.md", "---\nname: torn\ndescription: Half a file\n"),
    (
        ".codex/agents/refactorer.toml",
        "name = \"refactorer\"\ndescription = \"Splits long functions\"\nmodel = \"gpt-5-codex\"\ndeveloper_instructions = \"Split.\"\n",
    ),
    (
        ".opencode/agents/team/migrator.md",
        "---\ndescription: Moves database schemas forward\nmode: subagent\ntools:\n  read: true\n  write: false\n---\nMove.\n",
    ),
    (
        ".goose/recipes/demo.yaml",
        "version: 1.0.0\ntitle: Demo Planner\ndescription: Plans a product demo for customers\ninstructions: Plan it.\nsettings:\n  max_turns: 5\n",
    ),
    (
        ".cursor/agents/verifier.md",
        "---\nname: verifier\ndescription: Proves that work is finished\nreadonly: true\n---\nProve.\n",
    ),
    (".cursor/agents/reviewer.md", "---\nname: reviewer\ndescription: Another one of this name\n---\nReview too.\n"),
    (
        ".pi/agents/scout.md",
        "---\nname: scout\ndescription: Finds the files that matter\ntools: read, ls\n---\nScout.\n",
    ),
    (
        "agents/invoice-clerk/agent.md",
        "---\nname: Invoice Clerk\ndescription: Compares invoices with purchase orders\nallowed_callers: [main]\n---\nCompare.\n",
    ),
    ("agents/invoice-clerk/memory.md", "remember this\n"),
    ("agents/main/agent.md", "---\nname: main\n---\nThe session itself.\n"),
];

/// A task in ordinary words, and who is for it.
const TASKS: &[(&str, &str)] = &[
    ("write the release notes for these commits", "release-notes"),
    ("look for bugs in my change", "reviewer"),
    ("read this text aloud", "loud"),
    ("which support tickets are urgent", "ticket-sorter"),
    ("translate the manual", "translator"),
    ("split this long function", "refactorer"),
    ("database schema", "team-migrator"),
    ("plan a demo for a customer", "demo-planner"),
    ("is the work finished", "verifier"),
    ("files that matter", "scout"),
    ("compare the invoice with its order", "invoice-clerk"),
];

fn bed() -> Bed {
    let bed = Bed::new(RUNNER, &[], &json!({ "assistants": [{ "steps": [{ "text": "done" }] }] }));
    for (name, text) in FILES {
        let path = bed.project().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let config = "[models.s]\nprovider = \"scripted\"\nscript = \"script.json\"\n";
    std::fs::write(bed.dir.path().join("config.toml"), config).expect("a file");
    std::fs::write(bed.dir.path().join("script.json"), r#"{"assistants":[{"steps":[{"text":"done"}]}]}"#)
        .expect("a file");
    bed
}

/// What the program prints as JSON with this exit code.
fn told(folder: &Path, args: &[&str], code: i32) -> Value {
    let mut command = Command::new(HOST);
    command.args(args).args(["--json", "--project", "project", "--config", "config.toml"]).current_dir(folder);
    command.env_clear().env("HOME", folder.join("home")).stdin(Stdio::null());
    let output = command.output().expect("it runs");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {err}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{args:?}: {error}: {err}"))
}

fn ids(items: &Value) -> Vec<&str> {
    let items = items.as_array().into_iter().flatten();
    items.filter_map(|item| item["assistant_id"].as_str()).collect()
}

#[test]
fn every_file_is_listed_found_and_checked() {
    let bed = bed();
    let listed = told(bed.dir.path(), &["list"], 0);
    let mut wanted: Vec<&str> = TASKS.iter().map(|(_, id)| *id).collect();
    wanted.sort_unstable();
    assert_eq!(ids(&listed["assistants"]), wanted);
    for (task, id) in TASKS {
        let found = told(bed.dir.path(), &["search", task], 0);
        assert_eq!(ids(&found["items"]).first(), Some(id), "{task}: {found}");
    }
    let checked = told(bed.dir.path(), &["check"], 2);
    let place = |one: &Value| {
        one["file"].as_str().and_then(|file| file.rsplit_once("project/").map(|(_, file)| file.to_owned()))
    };
    let mut worth = Vec::new();
    for one in checked["diagnostics"].as_array().expect("a list").iter().filter(|one| one["severity"] != "info") {
        worth.push(format!("{}:{} {}", place(one).expect("below"), one["line"], one["code"].as_str().expect("a code")));
    }
    worth.sort();
    assert_eq!(
        worth,
        [
            ".claude/agents/deep/loud.md:3 yaml_repaired",
            ".claude/agents/reviewer.md:4 tool_unavailable",
            ".claude/agents/reviewer.md:5 model_replaced",
            ".codex/agents/refactorer.toml:3 model_replaced",
            ".cursor/agents/reviewer.md:null shadowed",
            ".gemini/agents/torn.md:1 frontmatter_not_closed",
            ".github/agents/ticket-sorter.agent.md:4 tool_unavailable",
        ]
    );
    let of_claude = told(bed.dir.path(), &["check", "project/.claude", "--strict"], 1);
    assert_eq!(of_claude["totals"]["assistants"], 2, "{of_claude}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_assistant_runs() {
    let bed = bed();
    let mut options = bed.options();
    options.sources = registry::sources(Some(&bed.project()), None, None, &[]);
    let host = assistant_host::host::Host::open(options).await.expect("a host");
    let client = Client::of(&host).await;
    let listed = client.call("list_assistant", json!({ "page_size": 100 })).await;
    assert_eq!((&listed["total_items"], &listed["skipped"]), (&json!(TASKS.len()), &json!(3)), "{listed}");
    let torn = listed["skipped_files"][0].as_str().unwrap_or_default().replace('\\', "/");
    assert!(
        torn.contains("project/.gemini/agents/torn.md:1: the frontmatter never ends (frontmatter_not_closed)"),
        "{listed}"
    );
    let first = client.call("list_assistant", json!({ "page_size": 2 })).await;
    assert_eq!(first["skipped_files"], Value::Null, "only the last page has them");
    for (_, id) in TASKS {
        let spawned = client.spawn(id, "go").await;
        assert_eq!(client.end(&spawned).await["status"], "finished", "{id}: {spawned}");
    }
    let reviewer = client.spawn("reviewer", "go").await;
    assert_eq!(reviewer["unavailable_tools"][0]["tool"], "Bash", "{reviewer}");
    assert_eq!(reviewer["model"]["requested"], "sonnet", "{reviewer}");
    client.end(&reviewer).await;
    drop(client);
    host.close().await;
}
