//! `setup model`: what there is on a machine, tried by the way that assistants go, and written into a configuration of which
//! all else stays.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use conformance::bed::SOON;
#[cfg(target_os = "linux")]
use conformance::launching::skipped;
use conformance::model_server::{ModelServer, Reply, Then};
use conformance::programs;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::HOST;

/// The configuration of whoever runs `setup model`: comments, and a model of another name.
const BEFORE: &str = "# mine\ndefault_model = \"old\" # the usual one\n\n[models.old]\nprovider = \"openai\"   # as it is\n\
                      model = \"m\"\nbase_url = \"http://127.0.0.1:9\"\n\n[limits]\ndepth = 2\n";

/// Where no Ollama is.
const NO_OLLAMA: &str = "127.0.0.1:9";

fn folder(config: Option<&str>) -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    if let Some(config) = config {
        std::fs::write(dir.path().join("config.toml"), config).expect("a file");
    }
    std::fs::create_dir(dir.path().join("bin")).expect("a folder");
    dir
}

fn config(dir: &TempDir) -> String {
    std::fs::read_to_string(dir.path().join("config.toml")).unwrap_or_default()
}

/// `setup model` with the places of a folder, an Ollama that is not there, and these variables.
async fn setup(dir: &Path, args: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let mut command = Command::new(HOST);
    command.args(["setup", "model"]).args(args).args(["--state", "state", "--config", "config.toml", "--no-project"]);
    command.current_dir(dir).env_clear().env("HOME", dir).env("PATH", dir.join("bin")).env("OLLAMA_HOST", NO_OLLAMA);
    command.envs(variables.iter().copied()).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(SOON, command.output()).await.expect("it ends").expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A program `name` on PATH and a login of it, without anything that works.
fn log_in(dir: &Path, name: &str, file: &str, text: &str) {
    let program = dir.join("bin").join(name);
    programs::write(&program, "#!/bin/sh\nexit 1\n");
    let file = dir.join(file);
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    std::fs::write(file, text).expect("a file");
}

const LOGIN: &str = r#"{"claudeAiOauth":{"accessToken":"very-secret"}}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_tried_and_written_and_all_else_stays() {
    let server = ModelServer::start().await.expect("starts");
    server.push(Reply::text("ok"));
    let dir = folder(Some(BEFORE));
    let key = dir.path().join("my.key");
    std::fs::write(&key, "sk-secret-1\n").expect("a file");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("set");
    let base = server.base_url().to_owned();
    let args = ["anthropic", "--model", "m-2", "--base-url", &base, "--key-file", "my.key", "--write"];
    let (code, out, said) = setup(dir.path(), &args, &[]).await;
    assert_eq!(code, Some(0), "{out}{said}");
    assert!(!format!("{out}{said}").contains("secret"), "no key is shown: {out}{said}");
    assert!(said.contains("answered in"), "{said}");
    assert!(said.contains("still use `old`"), "{said}");
    let sent = &server.requests()[0];
    assert_eq!((sent.header("x-api-key"), &sent.body["model"]), (Some("sk-secret-1"), &json!("m-2")));
    let file = key.display();
    let more = format!(
        "\n[models.anthropic]\nprovider = \"anthropic\"\nmodel = \"m-2\"\nbase_url = \"{base}\"\napi_key_file = \"{file}\"\n"
    );
    let after = config(&dir);
    assert!(after.contains(&more), "{after}");
    assert_eq!(after.replace(&more, ""), BEFORE, "all else is as it was");
    let added: String = more.lines().map(|line| format!("+ {line}\n")).collect();
    for line in added.lines().filter(|line| line.len() > 2) {
        assert!(out.contains(line), "{line}: {out}");
    }
    assert_eq!(std::fs::read_to_string(dir.path().join("config.toml.bak")).expect("kept"), BEFORE);

    // The same once more is no fault; another one of that name is written over only where that is said.
    let (code, _, said) = setup(dir.path(), &[&args[..], &["--no-test"]].concat(), &[]).await;
    assert_eq!((code, said.contains("has it already; nothing was written")), (Some(0), true), "{said}");
    let again = ["anthropic", "--model", "m-3", "--base-url", &base, "--key-file", "my.key", "--write", "--no-test"];
    let (code, _, said) = setup(dir.path(), &again, &[]).await;
    assert_eq!((code, said.contains("has [models.anthropic] already")), (Some(1), true), "{said}");
    assert_eq!(config(&dir), after);
    let (code, out, said) = setup(dir.path(), &[&again[..], &["--replace", "--default"]].concat(), &[]).await;
    assert_eq!(code, Some(0), "{out}{said}");
    assert!(out.contains("- model = \"m-2\"") && out.contains("+ model = \"m-3\""), "{out}");
    assert!(config(&dir).contains("default_model = \"anthropic\" # the usual one"), "{}", config(&dir));
    assert_eq!(server.requests().len(), 1, "it was not asked again");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_work_is_told_and_not_written() {
    let server = ModelServer::start().await.expect("starts");
    server.push(Reply::error(401, &json!({ "error": { "message": "no such key" } })));
    let dir = folder(None);
    let base = server.base_url().to_owned();
    let variables = [("MY_KEY", "sk-secret-2")];
    let args = ["openai", "--base-url", &base, "--key-env", "MY_KEY", "--write"];
    let (code, out, said) = setup(dir.path(), &args, &variables).await;
    assert_eq!(code, Some(1), "{out}{said}");
    assert!(said.contains("no such key") && said.contains("nothing was written"), "{said}");
    assert!(!said.contains("secret") && !dir.path().join("config.toml").exists());
    let (code, out, _) = setup(dir.path(), &[&args[..], &["--json"]].concat(), &variables).await;
    let told: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, &told["test"]["ok"], &told["written"]), (Some(1), &json!(false), &json!(false)), "{told}");

    for (args, words) in [
        (&["anthropic"][..], "ANTHROPIC_API_KEY is not set"),
        (&["anthropic", "--key-file", "nowhere"][..], "which cannot be read"),
        (&["claude", "--write"][..], "no program `claude` on PATH"),
        (&["ollama"][..], "it does not answer"),
        (&["nothing"][..], "nothing is called `nothing` here"),
        (&[][..], "say what is to be used"),
        (&["--model", "m"][..], "not provided:\n  <WHAT>"),
        (&["--base-url", "http://127.0.0.1:9"][..], "not provided:\n  <WHAT>"),
        (&["--key-env", "K"][..], "not provided:\n  <WHAT>"),
        (&["--key-file", "k"][..], "not provided:\n  <WHAT>"),
    ] {
        let (code, _, said) = setup(dir.path(), args, &[]).await;
        assert_eq!((code, said.contains(words)), (Some(2), true), "{args:?}: {said}");
    }
    // A configuration that is none stays as it is.
    std::fs::write(dir.path().join("config.toml"), "default_model = [").expect("a file");
    let (code, _, said) = setup(dir.path(), &["openai", "--no-test", "--write"], &[("OPENAI_API_KEY", "k")]).await;
    assert_eq!((code, config(&dir).as_str()), (Some(1), "default_model = ["), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ollama_tells_its_models_and_their_context() {
    let server = ModelServer::start().await.expect("starts");
    let raw = |value: Value| Reply::Raw {
        status: 200,
        headers: vec![("content-type".into(), "application/json".into())],
        then: vec![Then::Write(value.to_string().into_bytes())],
    };
    let tags = json!({ "models": [{ "name": "qwen3:8b" }, { "name": "gemma3:4b" }] });
    let show = json!({ "model_info": { "qwen3.context_length": 40_960 }, "capabilities": ["completion", "tools"] });
    let host = server.base_url().to_owned();
    let variables = [("OLLAMA_HOST", host.as_str())];
    let has = || [tags.clone(), show.clone(), show.clone()].into_iter().for_each(|one| server.push(raw(one)));
    let dir = folder(None);
    has();
    let (code, out, said) = setup(dir.path(), &["--list", "--json"], &variables).await;
    let told: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{said}"));
    let first = &told["items"][0];
    assert_eq!((code, &first["what"], &first["ready"]), (Some(0), &json!("ollama"), &json!(true)), "{told}");
    assert_eq!(first["models"][0], json!({ "name": "qwen3:8b", "context_tokens": 40_960, "tools": true }));
    has();
    let (code, _, said) = setup(dir.path(), &["ollama", "--write"], &variables).await;
    assert_eq!((code, said.contains("qwen3:8b, gemma3:4b")), (Some(2), true), "{said}");
    has();
    server.push(Reply::text("ok"));
    let (code, out, said) = setup(dir.path(), &["ollama", "--model", "qwen3:8b", "--write"], &variables).await;
    assert_eq!(code, Some(0), "{out}{said}");
    let want = "default_model = \"ollama\"\n\n[models.ollama]\nprovider = \"ollama\"\nmodel = \"qwen3:8b\"\n\
                context_tokens = 32768\n";
    assert_eq!(config(&dir), want);
    let last = server.requests().pop().expect("asked");
    assert_eq!((last.path.as_str(), &last.body["options"]["num_ctx"]), ("/api/chat", &json!(32_768)));
    // The one of the address that is given is asked, and none where another thing is named.
    has();
    let elsewhere = ["ollama", "--base-url", &host];
    let (code, _, said) = setup(dir.path(), &elsewhere, &[]).await;
    assert_eq!((code, said.contains("qwen3:8b, gemma3:4b")), (Some(2), true), "{said}");
    let asked = server.requests().len();
    setup(dir.path(), &["openai", "--no-test"], &[("OPENAI_API_KEY", "k"), variables[0]]).await;
    assert_eq!(server.requests().len(), asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_are_found_and_nothing_of_them_is_shown() {
    let dir = folder(Some("[models.m]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9\"\n"));
    log_in(dir.path(), "claude", ".claude/.credentials.json", LOGIN);
    std::fs::write(dir.path().join("bin/codex"), "").expect("a file");
    let (code, out, said) = setup(dir.path(), &["--list"], &[]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(
        out.lines().next().is_some_and(|line| line.starts_with("claude     ready")),
        "what is ready comes first: {out}"
    );
    assert!(out.contains("no program `codex` on PATH") && !out.contains("very-secret"), "{out}");
    let (code, out, said) = setup(dir.path(), &["claude", "--no-test", "--write", "--default"], &[]).await;
    assert_eq!(code, Some(0), "{out}{said}");
    assert!(config(&dir).starts_with("default_runner = \"claude\"\n"), "{}", config(&dir));
    assert!(config(&dir).ends_with("\n[runners.claude]\nagent = \"claude\"\n"), "{}", config(&dir));
    let (code, _, said) = setup(dir.path(), &["claude", "--model", "x"], &[]).await;
    assert_eq!((code, said.contains("leave keys, addresses and models out")), (Some(2), true), "{said}");
}

/// What an agent tells while it is tried is told at once, and what can be done is not only the login.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_does_not_reach_its_model_says_so() {
    let dir = folder(None);
    log_in(dir.path(), "claude", ".claude/.credentials.json", LOGIN);
    let lines = [
        json!({ "type": "system", "subtype": "init", "session_id": "0193a5c0-7c1a-7b52-9d3e-4f1f0a6b7c02" }),
        json!({ "type": "system", "subtype": "api_retry", "attempt": 3, "error_status": null }),
    ];
    let says: String = lines.iter().map(|line| format!("echo '{line}'\n")).collect();
    let script = format!("#!/bin/sh\nwhile read -r line; do :; done\n{says}echo 'no route' >&2\nexit 1\n");
    programs::write(&dir.path().join("bin/claude"), &script);
    let (code, out, said) = setup(dir.path(), &["claude", "--write"], &[]).await;
    assert_eq!((code, dir.path().join("config.toml").exists()), (Some(1), false), "{out}{said}");
    for words in [
        "trying Claude Code",
        "it says: Claude Code asks its model again, for the 3. time",
        "no route",
        "where it is the way there",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// What a person sees who types at a terminal, each answer as soon as its question is there. `script` gives the terminal;
/// none where that is missing.
#[cfg(target_os = "linux")]
async fn at_a_terminal(dir: &Path, args: &str, ollama: &str, steps: &[(&str, &str)]) -> Option<String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let line = format!(
        "HOME=$PWD PATH=$PWD/bin {HOST} setup model {args} --state state --config config.toml --no-project; stty -a; echo left"
    );
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(dir).env_clear().env("OLLAMA_HOST", ollama);
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut terminal = match command.spawn() {
        Ok(terminal) => terminal,
        Err(error) => {
            skipped(&format!("`script` cannot be run: {error}"));
            return None;
        }
    };
    let (mut types, mut sees) = (terminal.stdin.take().expect("piped"), terminal.stdout.take().expect("piped"));
    let mut seen = Vec::new();
    for (question, answer) in steps {
        let begin = seen.len();
        let asked = async {
            while !String::from_utf8_lossy(&seen[begin..]).contains(question) {
                assert!(sees.read_buf(&mut seen).await.expect("read") > 0, "it ended before `{question}`");
            }
        };
        let in_time = tokio::time::timeout(SOON, asked).await;
        assert!(in_time.is_ok(), "no `{question}`: {}", String::from_utf8_lossy(&seen));
        types.write_all(answer.as_bytes()).await.expect("typed");
    }
    Some(String::from_utf8_lossy(&seen).into_owned())
}

/// A key that is pasted at a terminal is not shown there, and whoever gives up has the terminal as it was.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_pasted_is_not_shown() {
    let dir = folder(None);
    let (number, key) = (("Number [1]", "1\n"), "Paste the key");
    let all = [number, (key, "sk-secret-3\n"), ("Which model?", "m-9\n"), ("Write this", "y\n"), ("left", "")];
    let Some(seen) = at_a_terminal(dir.path(), "--no-test", NO_OLLAMA, &all).await else { return };
    assert!(seen.contains("m-9") && !seen.contains("secret") && seen.contains(" echo "), "{seen}");
    assert!(config(&dir).contains("model = \"m-9\"\napi_key_file = \"anthropic.key\""), "{}", config(&dir));
    assert_eq!(std::fs::read_to_string(dir.path().join("anthropic.key")).expect("a key"), "sk-secret-3\n");
    let dir = folder(None);
    let given_up = [number, (key, "sk-secret-3\u{3}"), ("left", "")];
    let seen = at_a_terminal(dir.path(), "--no-test", NO_OLLAMA, &given_up).await.expect("as before");
    assert!(seen.contains("interrupted; nothing was written") && !seen.contains("secret"), "{seen}");
    assert!(seen.contains(" echo ") && !seen.contains("-isig"), "{seen}");
    assert!(!dir.path().join("config.toml").exists() && !dir.path().join("anthropic.key").exists());
}

/// A login that is on the machine is offered first, tried by a run of its agent, and written.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_is_here_is_offered_and_tried() {
    let dir = folder(None);
    log_in(dir.path(), "claude", ".claude/.credentials.json", LOGIN);
    let session = "0193a5c0-7c1a-7b52-9d3e-4f1f0a6b7c02";
    let content = json!([{ "type": "text", "text": "ok" }]);
    let usage = json!({ "input_tokens": 3, "output_tokens": 1 });
    let message = json!({ "id": "m1", "role": "assistant", "model": "played", "content": content, "usage": usage });
    let lines = [
        json!({ "type": "system", "subtype": "init", "session_id": session, "model": "played", "tools": [] }),
        json!({ "type": "assistant", "message": message, "parent_tool_use_id": null, "session_id": session }),
        json!({
            "type": "result", "subtype": "success", "is_error": false, "result": "ok", "session_id": session,
            "num_turns": 1, "total_cost_usd": 0.01, "usage": usage,
        }),
    ];
    let says: String = lines.iter().map(|line| format!("echo '{line}'\n")).collect();
    let script = format!("#!/bin/sh\nwhile read -r line; do :; done\necho asked >> \"$0.log\"\n{says}");
    programs::write(&dir.path().join("bin/claude"), &script);
    let steps = [("Number [1]", "1\n"), ("Write this", "y\n"), ("left", "")];
    let Some(seen) = at_a_terminal(dir.path(), "", NO_OLLAMA, &steps).await else { return };
    let first = seen.lines().find(|line| line.trim_start().starts_with("1 ")).unwrap_or_default();
    assert!(first.contains("Claude Code") && first.contains("is logged in"), "{seen}");
    assert!(seen.contains("Claude Code answered in") && !seen.contains("very-secret"), "{seen}");
    assert!(config(&dir).ends_with("[runners.claude]\nagent = \"claude\"\n"), "{}", config(&dir));
    assert_eq!(std::fs::read_to_string(dir.path().join("bin/claude.log")).expect("it was asked"), "asked\n");

    // One that does not work is told, and nothing is written.
    let dir = folder(None);
    log_in(dir.path(), "claude", ".claude/.credentials.json", LOGIN);
    let steps = [("Number [1]", "1\n"), ("left", "")];
    let seen = at_a_terminal(dir.path(), "", NO_OLLAMA, &steps).await.expect("as before");
    assert!(seen.contains("nothing was written") && !dir.path().join("config.toml").exists(), "{seen}");
}

/// What is chosen is asked for a word before it is written.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_chosen_is_tried() {
    let server = ModelServer::start().await.expect("starts");
    let raw = |value: Value| Reply::Raw {
        status: 200,
        headers: vec![("content-type".into(), "application/json".into())],
        then: vec![Then::Write(value.to_string().into_bytes())],
    };
    let show = json!({ "model_info": { "x.context_length": 8_192 }, "capabilities": ["completion", "tools"] });
    let has = || {
        server.push(raw(json!({ "models": [{ "name": "one:8b" }, { "name": "two:4b" }] })));
        server.push(raw(show.clone()));
        server.push(raw(show.clone()));
    };
    let dir = folder(Some(BEFORE));
    has();
    server.push(Reply::error(400, &json!({ "error": "it does not fit into memory" })));
    let chosen = [("Number [1]", "1\n"), ("Number [1]", "2\n")];
    let refused = [&chosen[..], &[("left", "")]].concat();
    let Some(seen) = at_a_terminal(dir.path(), "", server.base_url(), &refused).await else { return };
    assert!(seen.contains("it does not fit into memory") && seen.contains("nothing was written"), "{seen}");
    assert_eq!(config(&dir), BEFORE);
    has();
    server.push(Reply::text("ok"));
    let works = [&chosen[..], &[("Write this", "y\n"), ("left", "")]].concat();
    let seen = at_a_terminal(dir.path(), "", server.base_url(), &works).await.expect("as before");
    assert!(seen.contains("two:4b (8192 tokens)") && seen.contains("answered in"), "{seen}");
    let last = server.requests().pop().expect("asked");
    assert_eq!((last.path.as_str(), &last.body["model"]), ("/api/chat", &json!("two:4b")));
    assert!(config(&dir).contains("[models.ollama]\nprovider = \"ollama\"\nmodel = \"two:4b\"\n"), "{}", config(&dir));
}
