//! The real programs, each with a stand-in for the API of its models: on PATH, or in the folder that ASSISTANT_TEST_AGENTS
//! names. What is not there is skipped, and said to be.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::host::{Host, SOON, Setup};
use crate::stand_in::{data, own_folder};

mod may;

/// How an agent is told what the script of its model says.
struct Tools {
    /// A call of its own tool that runs a command.
    run: fn(command: &str) -> String,
    /// The tool of the assistant.
    ask: &'static str,
    /// A model that it takes, where it needs one.
    model: Option<&'static str>,
    /// The script has to say this for a command that is allowed.
    said: &'static str,
}

const CLAUDE: Tools = Tools {
    run: |command| format!("Bash {{\"command\":\"{command}\"}}"),
    ask: "mcp__assistants__ask_parent",
    model: Some("sonnet"),
    said: "It said: forty-two",
};
const CODEX: Tools = Tools {
    run: |command| format!("exec_command {{\"cmd\":\"{command}\"}}"),
    ask: "mcp__assistants/ask_parent",
    model: None,
    said: "forty-two",
};
const OPENCODE: Tools = Tools {
    run: |command| format!("bash {{\"command\":\"{command}\",\"description\":\"d\"}}"),
    ask: "assistants_ask_parent",
    model: Some("fake/m"),
    said: "It said: forty-two",
};
const GEMINI: Tools = Tools {
    run: |command| format!("run_shell_command {{\"command\":\"{command}\"}}"),
    ask: "mcp_assistants_ask_parent",
    model: Some("gemini-2.5-flash"),
    said: "forty-two",
};

/// Says that something is skipped, also where the output of tests is kept back.
pub(crate) fn skip(why: &str) {
    writeln!(std::io::stderr(), "skipped: {why}").expect("stderr is open");
}

/// A program on PATH or in the named folder.
fn found(name: &str) -> Option<PathBuf> {
    let named = std::env::var_os("ASSISTANT_TEST_AGENTS").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = named.into_iter().chain(std::env::split_paths(&path)).collect();
    folders.iter().map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// An agent in a home of its own, and the API that it asks.
struct Real {
    tools: Tools,
    setup: Setup,
    work: PathBuf,
    port: u16,
    /// It ends with its stdin.
    _api: Child,
    _home: TempDir,
}

impl Real {
    /// None where there is none, which is said.
    async fn start(name: &'static str, tools: Tools) -> Option<Self> {
        let Some(program) = found(name) else {
            skip(&format!("there is no `{name}` on PATH, and none in ASSISTANT_TEST_AGENTS"));
            return None;
        };
        let Some(python) = found("python3") else {
            skip("there is no `python3` on PATH");
            return None;
        };
        let mut api = Command::new(python);
        api.arg(data().join("fake_api.py")).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut api = api.spawn().expect("starts");
        let mut line = String::new();
        let mut out = BufReader::new(api.stdout.take().expect("piped"));
        timeout(SOON, out.read_line(&mut line)).await.expect("soon").expect("reads");
        let port = line.trim().parse().expect("a port");
        let home = own_folder();
        let work = home.path().join("work");
        std::fs::create_dir(&work).expect("a folder");
        let (env, more) = access(name, port, home.path());
        let setup = Setup { name, program, env, more, home: home.path().to_owned(), turns: None };
        Some(Self { tools, setup, work, port, _api: api, _home: home })
    }

    async fn host(&self) -> Host {
        Host::start(&self.setup).await
    }

    /// A run whose model does these steps.
    fn run(&self, steps: &[String], more: Value) -> Value {
        let script: String = steps.iter().map(|step| format!("model: {step}\n")).collect();
        let schema = json!({ "type": "object", "properties": { "question": { "type": "string" } } });
        let mut agent =
            json!({ "working_dir": self.work, "tools": ["Bash", "Read", "ask_parent"], "model": self.tools.model });
        for (name, value) in more.as_object().expect("an object") {
            agent[name] = value.clone();
        }
        json!({
            "query": format!("Work, please.\n{script}"),
            "agent": agent,
            "tools": [{ "name": "ask_parent", "description": "Asks.", "input_schema": schema }],
        })
    }

    fn command(&self, command: &str) -> String {
        format!("call {}", (self.tools.run)(command))
    }

    /// What the model was asked last, as text.
    async fn asked(&self) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.expect("connects");
        stream.write_all(b"GET /requests HTTP/1.1\r\nConnection: close\r\n\r\n").await.expect("writes");
        let mut answer = Vec::new();
        timeout(SOON, stream.read_to_end(&mut answer)).await.expect("soon").expect("reads");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        let requests: Vec<Value> = serde_json::from_str(body).expect("JSON");
        requests.last().expect("it was asked").to_string()
    }
}

/// How an agent finds the stand-in: variables, and further arguments.
fn access(name: &str, port: u16, home: &Path) -> (Vec<(&'static str, String)>, Vec<String>) {
    let url = format!("http://127.0.0.1:{port}");
    match name {
        "claude" => (vec![("ANTHROPIC_API_KEY", "x".to_owned()), ("ANTHROPIC_BASE_URL", url)], Vec::new()),
        "codex" => {
            let provider = [
                format!(
                    "model_providers.x={{name=\"x\",base_url=\"{url}/v1\",env_key=\"OPENAI_API_KEY\",wire_api=\"responses\"}}"
                ),
                "model_provider=\"x\"".to_owned(),
                // It makes an empty `.git` where its sandbox may write; that of the system's folder would make a project.
                "sandbox_workspace_write.exclude_slash_tmp=true".to_owned(),
            ];
            let more = provider.into_iter().flat_map(|setting| ["-c".to_owned(), setting]).collect();
            (vec![("OPENAI_API_KEY", "x".to_owned())], more)
        }
        "opencode" => {
            let provider = json!({ "provider": { "fake": {
                "npm": "@ai-sdk/openai-compatible", "options": { "baseURL": format!("{url}/v1"), "apiKey": "x" },
                "models": { "m": { "limit": { "context": 100_000, "output": 4_000 } } },
            } }, "small_model": "fake/m" });
            let file = home.join("provider.json");
            std::fs::write(&file, provider.to_string()).expect("writes");
            let file = file.display().to_string();
            (vec![("OPENCODE_CONFIG", file), ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned())], Vec::new())
        }
        _ => {
            let settings = json!({ "security": { "auth": { "selectedType": "gemini-api-key" } } });
            std::fs::create_dir(home.join(".gemini")).expect("a folder");
            std::fs::write(home.join(".gemini/settings.json"), settings.to_string()).expect("writes");
            (vec![("GEMINI_API_KEY", "x".to_owned()), ("GOOGLE_GEMINI_BASE_URL", url)], Vec::new())
        }
    }
}

/// The sum of what usage lines tell: calls, tokens in and out.
fn used(lines: &[String]) -> (u64, u64, u64) {
    let lines = lines.iter().filter_map(|line| line.strip_prefix("usage "));
    lines.fold((0, 0, 0), |(calls, input, output), line| {
        let mut counts = line.split(' ').filter(|word| word.parse::<u64>().is_ok() || *word == "?");
        let mut next = || counts.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        (calls + next(), input + next(), output + next())
    })
}

async fn does_all(name: &'static str, tools: Tools) {
    let Some(real) = Real::start(name, tools).await else { return };
    let host = real.host().await;
    let ask = format!("call {} {{\"question\":\"what\"}}", real.tools.ask);
    let run = real.run(&[real.command("echo hello"), ask, "repeat".to_owned()], json!({}));
    let ended = host.run(run).await;
    let lines = host.lines();
    assert!(ended.starts_with("finished: ") && ended.contains(real.tools.said), "{ended}\n{lines:#?}");
    assert_eq!(lines.iter().filter(|line| *line == "session").count(), 1, "{lines:#?}");
    let has = |beginning: &str| lines.iter().any(|line| line.starts_with(beginning));
    assert!(has("tool ") && has("result \"hello") && has("calls ask_parent {\"question\":\"what\"}"), "{lines:#?}");
    let (calls, input, output) = used(&lines);
    // Some make further calls, as for a title.
    assert!(calls == 3 && input >= 300 && output >= 21, "{lines:#?}");
    let session = host.session();
    // The same runner goes on in its session, and tells what is new only.
    let before = lines.len();
    let ended = host.run(real.run(&["say Second.".to_owned()], json!({}))).await;
    assert_eq!(ended, "finished: Second.");
    let (calls, input, _) = used(&host.lines()[before..]);
    assert!(calls == 1 && (100..300).contains(&input), "{:#?}", &host.lines()[before..]);
    assert_eq!((host.end().await, real.asked().await.matches("echo hello").count() > 0), (Some(0), true));
    // Another runner resumes it.
    let host = real.host().await;
    let ended = host.run(real.run(&["say Third.".to_owned()], json!({ "session": session }))).await;
    assert_eq!(ended, "finished: Third.");
    let (calls, input, _) = used(&host.lines());
    assert!(
        calls == 1 && (100..300).contains(&input),
        "what another runner has used is not told again: {:#?}",
        host.lines()
    );
    assert!(real.asked().await.contains("Second."), "the model is shown what was said before");
    // An answer that is accepted is the end, whatever it would do then.
    let answer = format!("call {} {{\"n\":7}}", real.tools.ask.replace("ask_parent", "final_answer"));
    let mut run = real.run(&[answer, "hang".to_owned()], json!({}));
    run["output_schema"] = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let tool = json!({ "name": "final_answer", "description": "Ends.", "input_schema": run["output_schema"] });
    run["tools"].as_array_mut().expect("a list").push(tool);
    let ended = host.run(run).await;
    assert!(ended.starts_with("final_answer: ") && ended.ends_with(" {\"n\":7}"), "{ended}");
    // Cancelled in the middle, it leaves nothing.
    let before = host.lines().len();
    let run = host.begin(real.run(&[real.command("echo again"), "hang".to_owned()], json!({})));
    host.sees("result \"again").await;
    host.cancel(4_000).await;
    let ended = run.await.expect("ends");
    assert!(ended.starts_with("cancelled: "), "{ended}");
    let (_, input, _) = used(&host.lines()[before..]);
    assert!(name != "codex" || input >= 100, "what it used before is known: {:#?}", &host.lines()[before..]);
    assert_eq!(host.run(real.run(&["say Fourth.".to_owned()], json!({}))).await, "finished: Fourth.");
    assert!(real.asked().await.contains("Third."), "it goes on in the same session");
    #[cfg(target_os = "linux")]
    assert_eq!(crate::host::marked(host.process).len(), 1, "the runner alone");
    assert_eq!(host.end().await, Some(0));
    #[cfg(target_os = "linux")]
    killed(&real).await;
}

/// Killed while the agent runs a command, the adapter leaves nothing of it.
#[cfg(target_os = "linux")]
async fn killed(real: &Real) {
    use crate::host::marked;
    let mut host = real.host().await;
    drop(host.begin(real.run(&[real.command("sleep 987")], json!({}))));
    let until = |seen: fn(&[(i32, String)]) -> bool, process| async move {
        let waits = async {
            while !seen(&marked(process)) {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        timeout(SOON, waits).await.unwrap_or_else(|_| panic!("{:?}", marked(process)));
    };
    until(|all| all.iter().any(|(_, command)| command.trim() == "sleep 987"), host.process).await;
    host.child.start_kill().expect("is killed");
    until(<[_]>::is_empty, host.process).await;
}

#[tokio::test]
async fn claude_code_does_all() {
    does_all("claude", CLAUDE).await;
}

#[tokio::test]
async fn codex_does_all() {
    does_all("codex", CODEX).await;
}

#[tokio::test]
async fn opencode_does_all() {
    does_all("opencode", OPENCODE).await;
}

#[tokio::test]
async fn gemini_does_all() {
    does_all("gemini", GEMINI).await;
}

/// A call of the model that would be one too many is not made.
#[tokio::test]
async fn claude_code_makes_as_many_calls_as_it_may() {
    let Some(mut real) = Real::start("claude", CLAUDE).await else { return };
    real.setup.turns = Some(2);
    let host = real.host().await;
    let mut steps: Vec<String> = (0..4).map(|at| real.command(&format!("echo step-{at}"))).collect();
    steps.push("say Over.".to_owned());
    let ended = host.run(real.run(&steps, json!({}))).await;
    assert!(ended.starts_with("budget_exceeded: "), "{ended}: {:#?}", host.lines());
    let asked = real.asked().await;
    assert_eq!(asked.matches("\"tool_result\"").count(), 1, "{asked}");
    let calls = host.lines().iter().filter(|line| line.starts_with("usage 1 calls")).count();
    assert_eq!(calls, 2, "{:#?}", host.lines());
    assert_eq!(host.end().await, Some(0));
}
