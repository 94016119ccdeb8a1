//! A real agent, Claude Code, with a stand-in for the API of its models: on PATH, or in the folder that ASSISTANT_TEST_AGENTS
//! names.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::kit::{Adapter, SOON};

/// Says that a test is skipped, also where what tests print is kept back.
pub(crate) fn skip(test: &str, why: &str) {
    writeln!(std::io::stderr(), "skipped: {test}: {why}").expect("is told");
}

/// A program in the named folder or on PATH.
fn found(name: &str) -> Option<PathBuf> {
    let named = std::env::var_os("ASSISTANT_TEST_AGENTS").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = named.into_iter().chain(std::env::split_paths(&path)).collect();
    folders.iter().map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Claude Code in a home of its own.
struct Claude {
    program: PathBuf,
    home: TempDir,
    /// It ends with its stdin.
    _api: Child,
    base_url: String,
}

impl Claude {
    /// None where there is none, which is said.
    async fn start(test: &str) -> Option<Self> {
        let Some(program) = found("claude") else {
            skip(test, "there is no `claude` on PATH, and none in ASSISTANT_TEST_AGENTS");
            return None;
        };
        let Some(python) = found("python3") else {
            skip(test, "there is no `python3` on PATH");
            return None;
        };
        let mut api = Command::new(python)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fake_api.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("starts");
        let mut port = String::new();
        let mut out = BufReader::new(api.stdout.take().expect("piped"));
        timeout(SOON, out.read_line(&mut port)).await.expect("soon").expect("reads");
        let base_url = format!("http://127.0.0.1:{}", port.trim());
        Some(Self { program, home: tempfile::tempdir().expect("a folder"), _api: api, base_url })
    }

    /// One turn in the home: what it says in the end.
    async fn say(&self, adapter: &Adapter, args: &[&str], prompt: &str) -> Value {
        let server = adapter.bridge.server();
        let env: serde_json::Map<_, _> =
            server.env.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let config = json!({ "command": server.command, "args": server.args, "env": env, "alwaysLoad": true });
        let config = json!({ "mcpServers": { "assistants": config } });
        let file = self.home.path().join("mcp.json");
        std::fs::write(&file, config.to_string()).expect("writes");
        let mut child = Command::new(&self.program)
            .args(["-p", "--output-format", "json", "--setting-sources", "", "--strict-mcp-config", "--mcp-config"])
            .arg(&file)
            .args(args)
            .current_dir(self.home.path())
            .env_clear()
            .envs(["PATH", "LANG"].iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .env("HOME", self.home.path())
            .env("ANTHROPIC_BASE_URL", &self.base_url)
            .env("ANTHROPIC_API_KEY", "a-key")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            // As it is with the API itself: tools that it has not searched for it does not have.
            .env("ENABLE_TOOL_SEARCH", "true")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("starts");
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(prompt.as_bytes()).await.expect("is read");
        drop(stdin);
        let output = timeout(4 * SOON, child.wait_with_output()).await.expect("soon").expect("runs");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let result: Value = serde_json::from_str(out.trim()).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
        result["result"].clone()
    }
}

#[tokio::test]
async fn claude_calls_the_tools_of_its_assistant() {
    let Some(claude) = Claude::start("claude_calls_the_tools_of_its_assistant").await else { return };
    let adapter = Adapter::start();
    let _run = adapter.run(&["ask_parent", "echo", "picture"], false);
    let prompt = "model: call mcp__assistants__ask_parent {\"question\": \"Which one?\"}\nmodel: repeat\n";
    let answering = async {
        adapter.host.called("ask_parent", 1).await;
        adapter.host.go.notify_waiters();
    };
    let allowed = ["--allowedTools", "mcp__assistants"];
    let (said, ()) = tokio::join!(claude.say(&adapter, &allowed, prompt), answering);
    assert_eq!(said, "It said: the second one");
    let prompt = "model: call mcp__assistants__budget_exceeded {}\nmodel: repeat\n";
    let run = adapter.run(&["budget_exceeded"], false);
    let said = claude.say(&adapter, &allowed, prompt).await;
    assert!(said.to_string().contains("`budget_exceeded` failed: budget_exceeded it is"), "{said}");
    timeout(SOON, run.ended()).await.expect("soon");
}

#[tokio::test]
async fn claude_takes_the_answer_of_the_permission_tool() {
    let Some(claude) = Claude::start("claude_takes_the_answer_of_the_permission_tool").await else { return };
    let adapter = Adapter::start();
    let _run = adapter.run(&["echo"], true);
    let asks = ["--permission-prompt-tool", "mcp__assistants__permission"];
    let touch = "touch made && echo made";
    let prompt =
        format!("model: call Bash {}\nmodel: repeat\n", json!({ "command": touch, "description": "Makes it" }));
    assert_eq!(claude.say(&adapter, &asks, &prompt).await, "It said: made");
    assert!(claude.home.path().join("made").exists(), "the call was made");
    let asked = &adapter.host.permissions()[0];
    assert!(asked[0].as_str().is_some_and(|id| id.starts_with("toolu_")), "{asked}");
    assert_eq!((&asked[1], &asked[2]["command"]), (&json!("Bash"), &json!(touch)));
    let prompt = "model: call Bash {\"command\": \"rm\"}\nmodel: repeat\n";
    assert_eq!(claude.say(&adapter, &asks, prompt).await, "It said: a rule forbids it");
    // Its own tools go through without a question: they are judged when they are called.
    let prompt = "model: call mcp__assistants__echo {\"a\": 1}\nmodel: repeat\n";
    assert_eq!(claude.say(&adapter, &asks, prompt).await, "It said: {\"a\":1}");
    assert_eq!(adapter.host.permissions().len(), 2);
}
