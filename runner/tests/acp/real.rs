//! Real agents that speak the protocol, each with a stand-in for the API of its models (`tests/data/fake_api.py`): from the
//! folders that ASSISTANT_TEST_AGENTS lists, else from PATH; what is not there is skipped, and said so.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::host::{Host, Judge, PATIENCE, allow, ended, marked, nothing_is_left, skip};

/// What there is to know of an agent.
struct Kind {
    program: &'static str,
    args: &'static [&'static str],
    /// A model that it offers, and how its API is asked for it.
    model: (&'static str, &'static str),
    /// Its tool for commands, and the one of ours named `look_up`, as its model calls them.
    shell: &'static str,
    look_up: &'static str,
    /// Its tool that writes a file, and the call of it, `{file}` being the path.
    write: (&'static str, &'static str),
    /// Variables for its model, `{api}` being where that is.
    env: &'static [(&'static str, &'static str)],
    /// A file in its home, with what is in it.
    file: Option<(&'static str, &'static str)>,
}

const GEMINI: Kind = Kind {
    program: "gemini",
    // Where it does not trust the folder, it starts no servers of tools.
    args: &["--acp", "--skip-trust"],
    // The one that it takes by itself begins with further questions.
    model: ("gemini-2.5-pro", "models/gemini-2.5-pro:"),
    shell: "run_shell_command",
    look_up: "mcp_assistants_look_up",
    write: ("write_file", r#"{"file_path": "{file}", "content": "written"}"#),
    env: &[("GEMINI_API_KEY", "a-key"), ("GOOGLE_GEMINI_BASE_URL", "{api}")],
    file: Some((".gemini/settings.json", r#"{"security":{"auth":{"selectedType":"gemini-api-key"}}}"#)),
};

const OPENCODE: Kind = Kind {
    program: "opencode",
    args: &["acp"],
    model: ("claude-opus-4-5", "claude-opus-4-5"),
    shell: "bash",
    look_up: "assistants_look_up",
    write: ("write", r#"{"filePath": "{file}", "content": "written"}"#),
    env: &[],
    file: Some((
        ".config/opencode/opencode.json",
        r#"{"model":"anthropic/claude-sonnet-4-5","autoupdate":false,"share":"disabled","permission":{"bash":"ask","edit":"ask"},
            "provider":{"anthropic":{"options":{"baseURL":"{api}/v1","apiKey":"a-key"}}}}"#,
    )),
};

const CLAUDE: Kind = Kind {
    program: "claude-agent-acp",
    args: &[],
    model: ("haiku", "claude-haiku"),
    shell: "Bash",
    look_up: "mcp__assistants__look_up",
    write: ("Write", r#"{"file_path": "{file}", "content": "written"}"#),
    env: &[
        ("ANTHROPIC_API_KEY", "a-key"),
        ("ANTHROPIC_BASE_URL", "{api}"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ],
    file: None,
};

/// A program in one of the folders that the variable lists, else on PATH.
fn found(program: &str) -> Option<PathBuf> {
    let listed = [std::env::var_os("ASSISTANT_TEST_AGENTS"), std::env::var_os("PATH")];
    let folders = listed.iter().flatten().flat_map(std::env::split_paths);
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// An agent with its model and a home of its own.
struct Real {
    kind: &'static Kind,
    program: PathBuf,
    home: TempDir,
    work: TempDir,
    /// It ends with its stdin.
    _api: Child,
    api: String,
}

impl Real {
    /// None where it is not here, which is said.
    async fn find(kind: &'static Kind) -> Option<Self> {
        let Some(program) = found(kind.program) else {
            skip(&format!("`{}` is neither on PATH nor in a folder of ASSISTANT_TEST_AGENTS", kind.program));
            return None;
        };
        let api = Command::new("python3")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fake_api.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let Ok(mut api) = api else {
            skip("the stand-in for models needs python3 on PATH");
            return None;
        };
        let mut port = String::new();
        let mut out = BufReader::new(api.stdout.take().expect("piped"));
        timeout(PATIENCE, out.read_line(&mut port)).await.expect("in time").expect("reads");
        let (home, work) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let address = format!("http://127.0.0.1:{}", port.trim());
        if let Some((name, content)) = kind.file {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, content.replace("{api}", &address)).expect("written");
        }
        Some(Self { kind, program, home, work, _api: api, api: address })
    }

    async fn start(&self, judge: Judge) -> Host {
        let values: Vec<(&str, OsString)> =
            self.kind.env.iter().map(|(name, value)| (*name, value.replace("{api}", &self.api).into())).collect();
        let named = self.kind.env.iter().flat_map(|(name, _)| ["--env", name]);
        let mut args: Vec<&OsStr> = named.map(OsStr::new).collect();
        args.extend(["--".as_ref(), self.program.as_os_str()]);
        args.extend(self.kind.args.iter().map(OsStr::new));
        let mut env: Vec<(&str, &OsStr)> = values.iter().map(|(name, value)| (*name, value.as_os_str())).collect();
        env.push(("HOME", self.home.path().as_os_str()));
        Host::start(&args, &env, judge).await
    }

    /// What a run brings beside its task.
    fn brief(&self, session: Option<&str>) -> Value {
        let tool = json!({ "name": "look_up", "description": "Looks something up.",
            "input_schema": { "type": "object", "properties": { "word": { "type": "string" } } } });
        json!({ "agent": { "working_dir": self.work.path(), "session": session, "model": self.kind.model.0 }, "tools": [tool],
            "assistant": { "id": "a", "name": "A", "system_prompt": "You are a tester." } })
    }
}

/// A task, a command that is allowed, one that is not, a tool of ours, a cancel, and a second runner that goes on with the
/// session.
async fn works(kind: &'static Kind) {
    let Some(real) = Real::find(kind).await else { return };
    let judge: Judge = |params| Some(!params.arguments["command"].to_string().contains("forbidden"));
    let host = real.start(judge).await;
    let task = format!(
        "The moon is green.\nmodel: call {} {{\"command\": \"echo one-two-three | tr a-z A-Z > made; cat made\", \"description\": \"x\"}}\nmodel: repeat",
        kind.shell
    );
    let result = ended(host.run(&task, real.brief(None)).await);
    let told = host.told();
    assert!(result.starts_with("finished It said: ") && result.contains("ONE-TWO-THREE"), "{result}\n{told:#?}");
    assert!(told[0].starts_with("session "), "{told:#?}");
    let asked: Vec<&String> = told.iter().filter(|line| line.starts_with("may ")).collect();
    let [asked] = asked.as_slice() else { panic!("{told:#?}") };
    assert!(
        asked.contains(" Bash {") && asked.contains(r#""command":"echo one-two-three | tr a-z A-Z > made; cat made""#),
        "{asked}"
    );
    let (calls, results) = (count(&told, "call "), count(&told, "result "));
    assert_eq!((calls, results, count(&told, "failed ")), (1, 1, 0), "{told:#?}");
    assert_eq!(count(&told, "usage "), 1, "{told:#?}");
    assert_eq!(count(&told, "lacks "), 0, "{told:#?}");
    let session = told[0]["session ".len()..].to_owned();
    let asked = real.requests().await.into_iter().filter(|request| request.to_string().contains("one-two-three"));
    let models: Vec<String> =
        asked.map(|request| format!("{} {}", request["path"], request["body"]["model"])).collect();
    assert!(models.iter().any(|model| model.contains(kind.model.1)), "{models:?}");

    host.forget();
    let task = format!(
        "model: call {} {{\"command\": \"echo forbidden > not-made\", \"description\": \"x\"}}\nmodel: say So be it.",
        kind.shell
    );
    let result = ended(host.run(&task, real.brief(None)).await);
    // What it says then is its own.
    assert!(result.starts_with("finished") || result.starts_with("cancelled"), "{result}");
    assert!(!real.work.path().join("not-made").exists());
    assert_eq!((count(&host.told(), "may "), count(&host.told(), "result ")), (1, 0), "{:#?}", host.told());

    host.forget();
    let file = real.work.path().join("new.txt").display().to_string();
    let task = format!("model: call {} {}\nmodel: say Written.", kind.write.0, kind.write.1.replace("{file}", &file));
    let result = ended(host.run(&task, real.brief(None)).await);
    let told = host.told();
    let may = told.iter().find(|line| line.starts_with("may ")).unwrap_or_else(|| panic!("{result} {told:#?}"));
    assert!(may.contains(" Write {") || may.contains(" Edit {"), "{may}");
    assert!(may.contains(&format!(r#""file_path":"{file}""#)), "{may}");
    assert_eq!(std::fs::read_to_string(&file).expect("written"), "written");

    host.forget();
    let task = format!("model: call {} {{\"word\": \"moon\"}}\nmodel: repeat", kind.look_up);
    let result = ended(host.run(&task, real.brief(None)).await);
    let told = host.told();
    assert!(result.contains("the answer of look_up"), "{result}\n{told:#?}");
    assert_eq!(
        (count(&told, "tool look_up {\"word\":\"moon\"}"), count(&told, "may "), count(&told, "call ")),
        (1, 0, 0),
        "{told:#?}"
    );

    host.forget();
    let run = host.begin("model: hang", real.brief(None));
    real.is_asked("model: hang").await;
    host.cancel(3_000).await;
    let result = ended(run.await.expect("ends"));
    assert!(result.starts_with("cancelled"), "{result}");
    let result = ended(host.run("model: say Again.", real.brief(None)).await);
    assert_eq!(result, "finished Again.", "{:#?}", host.told());
    host.end().await;

    // Another runner, with the session of the first.
    if kind.program == "gemini" {
        real.make_sessions_older();
    }
    let host = real.start(allow).await;
    let result = ended(host.run("model: say Welcome back.", real.brief(Some(&session))).await);
    assert_eq!(result, "finished Welcome back.", "{:#?}", host.told());
    assert_eq!((host.told()[0].clone(), count(&host.told(), "lacks its session")), (format!("session {session}"), 0));
    let last = real.requests().await.pop().expect("asked").to_string();
    assert!(last.contains("The moon is green.") && last.contains("Welcome back."), "{last}");
    host.end().await;
}

#[tokio::test]
async fn claude_has_the_tools_that_the_definition_says() {
    let Some(real) = Real::find(&CLAUDE).await else { return };
    let host = real.start(allow).await;
    let mut brief = real.brief(None);
    brief["agent"]["tools"] = json!(["read_file", "Bash", "look_up", "ghost"]);
    brief["agent"]["disallowed_tools"] = json!(["shell"]);
    assert_eq!(ended(host.run("model: say Hi.", brief).await), "finished Hi.");
    let lacks: Vec<String> = host.told().into_iter().filter(|line| line.starts_with("lacks")).collect();
    assert_eq!(lacks, ["lacks tools: the agent has none of these names: ghost"]);
    let requests = real.requests().await;
    let asked = requests.iter().find(|request| request["body"]["tools"].as_array().is_some_and(|all| !all.is_empty()));
    let tools = asked.expect("a request with tools")["body"]["tools"].as_array().expect("a list").clone();
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.contains(&"Read") && names.contains(&CLAUDE.look_up), "{names:?}");
    assert!(!names.contains(&"Bash") && !names.contains(&"Write"), "{names:?}");
    host.end().await;
}

/// The runner is killed while its agent waits for its model: nothing of it is left.
async fn dies_with_its_runner(kind: &'static Kind) {
    let Some(real) = Real::find(kind).await else { return };
    let mut host = real.start(allow).await;
    let _run = host.begin("model: hang", real.brief(None));
    real.is_asked("model: hang").await;
    if cfg!(target_os = "linux") {
        assert!(marked(&host.mark).len() > 2, "the agent and its bridge are there: {:?}", marked(&host.mark));
    }
    host.child.kill().await.expect("killed");
    nothing_is_left(&host.mark).await;
}

fn count(told: &[String], beginning: &str) -> usize {
    told.iter().filter(|line| line.starts_with(beginning)).count()
}

impl Real {
    /// Gemini CLI (0.61) loses a session that is gone on with in the minute in which it began: the name of its file has the
    /// minute, and is written anew.
    fn make_sessions_older(&self) {
        let projects = std::fs::read_dir(self.home.path().join(".gemini/tmp")).expect("a folder").flatten();
        for file in
            projects.filter_map(|project| std::fs::read_dir(project.path().join("chats")).ok()).flatten().flatten()
        {
            let name = file.file_name().into_string().expect("a text");
            // session-2026-11-29T13-10-9f05f882.jsonl
            let older = format!("{}2020-01-01T00-00{}", &name[..8], &name[24..]);
            std::fs::rename(file.path(), file.path().with_file_name(older)).expect("renamed");
        }
    }

    /// What the model was asked.
    async fn requests(&self) -> Vec<Value> {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let address = self.api.trim_start_matches("http://");
        let mut stream = tokio::net::TcpStream::connect(address).await.expect("connects");
        stream.write_all(b"GET /requests HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.expect("written");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("reads");
        let answer = String::from_utf8(answer).expect("a text");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        serde_json::from_str(body).expect("JSON")
    }

    /// Waits until the model was asked so.
    async fn is_asked(&self, what: &str) {
        let asked = async {
            while !self.requests().await.iter().any(|request| request["body"].to_string().contains(what)) {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        timeout(PATIENCE, asked).await.expect("asked in time");
    }
}

#[tokio::test]
async fn gemini_works() {
    works(&GEMINI).await;
}

#[tokio::test]
async fn opencode_works() {
    works(&OPENCODE).await;
}

#[tokio::test]
async fn claude_works() {
    works(&CLAUDE).await;
}

#[tokio::test]
async fn gemini_dies_with_its_runner() {
    dies_with_its_runner(&GEMINI).await;
}

#[tokio::test]
async fn opencode_dies_with_its_runner() {
    dies_with_its_runner(&OPENCODE).await;
}

#[tokio::test]
async fn claude_dies_with_its_runner() {
    dies_with_its_runner(&CLAUDE).await;
}
