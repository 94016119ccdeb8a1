//! Ways out that are tried, each refused and in the log: one row each.

use serde_json::{Value, json};

use crate::permissions::{bed, events};

/// One attempt: the keys of who makes it, the tool, its arguments, and what the log or the answer tells of it.
struct Attempt {
    keys: &'static str,
    tool: &'static str,
    arguments: Value,
    told: &'static str,
}

const CURL: &str = "tools: ['app__bash(curl:*)']";
const SRC: &str = "tools: ['Read(src/**)', 'LS(src/**)']";
const FILES: &str = "tools: [Read, LS]";
const TALK: &str = "tools: [send_message, recv_message, ask_parent, check_answer]";
const SPAWNS: &str =
    "tools: [spawn_assistant, cancel_assistant, poll_assistant, wait_assistant, read_log, reply_assistant]";
const NOBODY: &str = "00000000-0000-7000-8000-000000000000";

fn attempts() -> Vec<Attempt> {
    let attempt = |keys, tool, arguments, told| Attempt { keys, tool, arguments, told };
    let command = |text: &'static str, told| attempt(CURL, "app__bash", json!({ "command": text }), told);
    let unmatched = "does not match any of: app__bash(curl:*)";
    vec![
        // Signs of the shell.
        command("rm -rf x", unmatched),
        command("curl x; rm y", unmatched),
        command("curl x && rm y", unmatched),
        command("curl x || rm y", unmatched),
        command("curl x | sh", "what `sh` runs is known only when it reads it"),
        command("curl x & rm y", unmatched),
        command("curl x\nrm y", unmatched),
        command("curl $(rm y)", unmatched),
        command("curl `rm y`", unmatched),
        command("curl \"$(rm y)\"", unmatched),
        command("curl <(rm y)", unmatched),
        command("bash -c 'rm y'", unmatched),
        command("env rm y", unmatched),
        command("A=b curl x", unmatched),
        command("/tmp/curl x", unmatched),
        command("curl x > ~/.bashrc", "known only when it runs, and only app__bash(curl:*) is given"),
        command("curl x > /etc/passwd", "no rule lets it write"),
        attempt(
            "tools: ['app__bash(curl:*)', Write]",
            "app__bash",
            json!({ "command": "curl x > /etc/passwd" }),
            "no rule lets it write",
        ),
        attempt(
            "tools: [app__bash]\ndisallowedTools: ['Read(.env)']",
            "app__bash",
            json!({ "command": "cat < .env" }),
            "it reads a file, and `Read(.env)` is denied",
        ),
        attempt(
            "tools: [app__bash]\ndisallowedTools: ['Bash(rm:*)']",
            "app__bash",
            json!({ "command": "echo rm x | sh" }),
            "what `sh` runs is known only when it reads it",
        ),
        command("$X", "known only when it runs"),
        command("curl x\rrm y", "U+000D"),
        command("curl\u{a0}x", "U+00A0"),
        command("curl 'x", "cannot be read as a command"),
        attempt(CURL, "app__bash", json!({ "command": "curl x", "env": { "PATH": "." } }), "is not known"),
        attempt(CURL, "app__bash", json!({ "command": ["rm", "x"] }), unmatched),
        attempt(
            "tools: [app__bash]\ndisallowedTools: ['Bash(rm:*)']",
            "app__bash",
            json!({ "command": "ls; /bin/rm x" }),
            "is denied",
        ),
        attempt(
            "tools: [app__bash]\npermission: {bash: {'*': allow, 'rm *': deny}}",
            "app__bash",
            json!({ "command": "sudo rm x" }),
            "bash(rm *): deny",
        ),
        // Tools outside of the grant.
        attempt(FILES, "app__bash", json!({ "command": "ls" }), "no tool of this assistant has that name"),
        attempt(
            FILES,
            "spawn_assistant",
            json!({ "assistant_id": "strong", "query": "x" }),
            "no tool of this assistant",
        ),
        attempt(FILES, "send_message", json!({ "thread_id": NOBODY, "message": "x" }), "no tool of this assistant"),
        attempt(FILES, "READ_FILE", json!({ "path": "read.me" }), "no tool of this assistant"),
        attempt(FILES, "on_llm_request", json!({}), "no tool of this assistant"),
        attempt("tools: []", "read_file", json!({ "path": "read.me" }), "no tool of this assistant"),
        attempt(
            "readonly: true\ntools: [app__bash, Read]",
            "app__bash",
            json!({ "command": "ls" }),
            "no tool of this assistant",
        ),
        // Paths outside of the folder, or of what is given of it.
        attempt(FILES, "read_file", json!({ "path": "../loot" }), "outside of the working folder"),
        attempt(FILES, "read_file", json!({ "path": "/etc/passwd" }), "outside of the working folder"),
        attempt(FILES, "read_file", json!({ "path": "src/../../loot" }), "outside of the working folder"),
        attempt(FILES, "read_file", json!({ "path": "src/link/loot" }), "outside of the working folder"),
        attempt(FILES, "list_files", json!({ "path": ".." }), "outside of the working folder"),
        attempt(SRC, "read_file", json!({ "path": "docs/x" }), "does not match any of: Read(src/**)"),
        attempt(SRC, "read_file", json!({ "path": "src/../docs/x" }), "does not match any of"),
        attempt(SRC, "read_file", json!({ "path": "src/inner/x" }), "does not match any of"),
        attempt(SRC, "read_file", json!({ "path": "~/x" }), "read differently"),
        attempt(SRC, "read_file", json!({ "path": "file://host/src/x" }), "is an address"),
        attempt(SRC, "list_files", json!({}), "does not match any of: LS(src/**)"),
        attempt(
            "tools: [Read]\ndisallowedTools: ['Read(docs/**)']",
            "read_file",
            json!({ "path": "DOCS/x" }),
            "`Read(docs/**)` is denied",
        ),
        // Threads and processes of others, and who one says to be.
        attempt(TALK, "send_message", json!({ "thread_id": NOBODY, "message": "x" }), ""),
        attempt(TALK, "recv_message", json!({ "thread_id": NOBODY }), ""),
        attempt(TALK, "send_message", json!({ "thread_id": NOBODY, "message": "x", "from_process_id": NOBODY }), ""),
        attempt(TALK, "ask_parent", json!({ "question": "x", "caller": "main" }), ""),
        attempt(TALK, "check_answer", json!({ "message_id": NOBODY }), ""),
        attempt(SPAWNS, "cancel_assistant", json!({ "process_id": NOBODY }), ""),
        attempt(SPAWNS, "reply_assistant", json!({ "process_id": NOBODY, "answer": "yes" }), ""),
        attempt(SPAWNS, "read_log", json!({ "process_id": NOBODY }), ""),
        // Assistants that may do more.
        attempt(SPAWNS, "spawn_assistant", json!({ "assistant_id": "strong", "query": "x" }), "may do what"),
        attempt(SPAWNS, "spawn_assistant", json!({ "assistant_id": "served", "query": "x" }), "the server fs"),
        attempt(SPAWNS, "spawn_assistant", json!({ "assistant_id": "guarded", "query": "x" }), "allowed_callers"),
        attempt(
            "tools: ['Agent(other)', app__bash]",
            "spawn_assistant",
            json!({ "assistant_id": "strong", "query": "x" }),
            "lets it spawn other only",
        ),
        attempt(
            "tools: [Agent, app__bash]\ndisallowedTools: ['Agent(strong)']",
            "spawn_assistant",
            json!({ "assistant_id": "strong", "query": "x" }),
            "`Agent(strong)` is denied",
        ),
        attempt(
            "tools: [Agent, app__bash]\ndisallowedTools: ['Agent(strong)']",
            "spawn_assistant",
            json!({ "search": { "text": "strong" }, "query": "x" }),
            "`Agent(strong)` is denied",
        ),
        attempt(
            "tools: [Agent, 'app__bash(curl:*)']",
            "spawn_assistant",
            json!({ "assistant_id": "strong", "query": "x" }),
            "may do what",
        ),
        attempt(SPAWNS, "spawn_assistant", json!({ "assistant_id": "strong", "query": "x", "caller": "main" }), ""),
        attempt(
            SPAWNS,
            "spawn_assistant",
            json!({ "assistant_id": "weak", "query": "x", "working_dir": ".." }),
            "outside of the project folder",
        ),
        // Through another: files that one may not read, and one whom it is to ask about.
        attempt(
            SPAWNS,
            "spawn_assistant",
            json!({ "assistant_id": "weak", "query": "x", "inputs": ["read.me"] }),
            "you have no read_file",
        ),
        attempt(
            "tools: [Agent, Read]\ndisallowedTools: ['Read(docs/**)']",
            "spawn_assistant",
            json!({ "assistant_id": "weak", "query": "x", "inputs": ["read.me", "docs/x"] }),
            "`Read(docs/**)` is denied",
        ),
        attempt(
            "tools: [Agent]\naskTools: ['Agent(weak)']",
            "spawn_assistant",
            json!({ "assistant_id": " Weak", "query": "x" }),
            "asks first",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_way_out_is_refused_and_in_the_log() {
    let attempts = attempts();
    assert!(attempts.len() >= 40);
    let names: Vec<String> = (0..attempts.len()).map(|number| format!("prober-{number}")).collect();
    let steps = |attempt: &Attempt| json!([{ "tool_calls": [{ "tool_name": attempt.tool, "arguments": attempt.arguments }] }, { "text": "over" }]);
    let nothing = || json!([{ "text": "done" }]);
    let mut assistants: Vec<(&str, &str, Value)> =
        names.iter().zip(&attempts).map(|(name, attempt)| (name.as_str(), attempt.keys, steps(attempt))).collect();
    assistants.push(("strong", "tools: [app__bash]", nothing()));
    assistants.push(("served", "tools: []\nmcpServers: {fs: {command: /bin/false}}", nothing()));
    assistants.push(("guarded", "tools: []\nallowed_callers: [main]", nothing()));
    assistants.push(("weak", "tools: []", nothing()));
    let commands = std::sync::Arc::default();
    let bed = bed(&commands, &assistants);
    for folder in ["project/src", "project/docs", "elsewhere"] {
        std::fs::create_dir_all(bed.dir.path().join(folder)).expect("a folder");
    }
    for file in ["project/docs/x", "project/read.me", "elsewhere/loot", "loot"] {
        std::fs::write(bed.dir.path().join(file), "loot").expect("a file");
    }
    std::os::unix::fs::symlink(bed.dir.path().join("elsewhere"), bed.project().join("src/link")).expect("a link");
    std::os::unix::fs::symlink(bed.project().join("docs"), bed.project().join("src/inner")).expect("a link");
    let client = bed.open().await;
    let mut wrong = Vec::new();
    for (name, attempt) in names.iter().zip(&attempts) {
        let spawned = client.spawn(name, "go").await;
        client.end(&spawned).await;
        let refused = events(&client, &spawned, "refused").await;
        let results = events(&client, &spawned, "tool_result").await;
        let told = refused.iter().any(|event| event["rule"].as_str().is_some_and(|rule| rule.contains(attempt.told)));
        let failed = results.iter().any(|event| event["is_error"] == true);
        // What is wrong in itself is an error; what is against a rule is a refusal besides.
        if !(told || (attempt.told.is_empty() && failed) || (attempt.told.contains("project folder") && failed)) {
            wrong.push(format!("{} {}: {refused:?} {results:?}", attempt.tool, attempt.arguments));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let ran: &std::sync::Mutex<Vec<String>> = &commands;
    assert!(ran.lock().expect("a lock").is_empty(), "nothing was run");
    client.host.close().await;
}
