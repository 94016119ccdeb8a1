//! What the walks through the documents have in common: a parent that is a real MCP client of the profile `subagents`, and
//! subagents that the test plays by hand, or that run on a script behind the program's own pipe.

use std::path::PathBuf;
use std::process::Stdio;

use assistant_host::host::Host;
use assistant_host::store;
use assistant_host::tools::profile::Profile;
use conformance::bed::{Bed, SOON, assistant, script};
use conformance::puppets::{Puppet, Puppets};
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::crash::McpClient;
use crate::{HOST, PUPPET};

/// Tools of assistants that talk.
pub(crate) const TALKING: &str = "ask_parent, check_answer";

/// Calls a tool: its structured result, or the error that it tells; a protocol error as `{"protocol": …}`.
pub(crate) async fn try_call(client: &McpClient, tool: &str, arguments: Value) -> Result<Value, Value> {
    let map = arguments.as_object().cloned().expect("an object");
    let asked = client.call_tool(CallToolRequestParams::new(tool.to_owned()).with_arguments(map));
    let result = match tokio::time::timeout(SOON, asked).await.expect("it is answered") {
        Ok(result) => result,
        Err(error) => return Err(json!({ "protocol": error.to_string() })),
    };
    if result.is_error == Some(true) {
        let text = result.content[0].as_text().expect("a text");
        let error: Value = serde_json::from_str(&text.text).expect("an error as JSON");
        // Each says what to do next, and names no tool that is not here.
        for field in ["message", "hint"] {
            let words = error[field].as_str().unwrap_or_default();
            assert!(!words.is_empty(), "no {field}: {error}");
            for elsewhere in ["spawn_assistant", "poll_assistant", "wait_assistant", "reply_assistant", "process_id"] {
                assert!(!words.contains(elsewhere), "{tool} names {elsewhere}: {error}");
            }
        }
        return Err(error);
    }
    Ok(result.structured_content.expect("structured content"))
}

/// Calls a tool that has to succeed.
pub(crate) async fn call(client: &McpClient, tool: &str, arguments: Value) -> Value {
    let shown = arguments.to_string();
    try_call(client, tool, arguments).await.unwrap_or_else(|error| panic!("{tool} {shown}: {error}"))
}

/// The code and the message of a call that has to fail.
pub(crate) async fn refused(client: &McpClient, tool: &str, arguments: Value) -> (String, String) {
    let error = match try_call(client, tool, arguments).await {
        Ok(value) => panic!("{tool} succeeded: {value}"),
        Err(error) => error,
    };
    let text = |field: &str| error[field].as_str().unwrap_or_default().to_owned();
    (text("code"), text("message"))
}

/// The names of the tools that a client is offered.
pub(crate) async fn offered(client: &McpClient) -> Vec<String> {
    let tools = client.list_all_tools().await.expect("tools");
    tools.iter().map(|tool| tool.name.to_string()).collect()
}

/// Looks at a run until it has this status.
pub(crate) async fn until(client: &McpClient, run: &Value, status: &str) -> Value {
    let reached = async {
        loop {
            let now = call(client, "check_status", json!({ "runId": run })).await;
            if now["status"] == status {
                return now;
            }
            call(client, "check_status", json!({ "runId": run, "wait_ms": 5_000 })).await;
        }
    };
    tokio::time::timeout(SOON, reached).await.unwrap_or_else(|_| panic!("never {status}"))
}

/// Calls a tool of a subagent whose run this ends: it hears so, or finds its link ended.
pub(crate) async fn ends_with(puppet: &mut Puppet, tool: &str, arguments: Value) {
    // Where its runner is ended before it has the answer, that it was cancelled or cut off is the answer.
    if let Ok(result) = puppet.calls(tool, arguments).outcome().await {
        assert_eq!(result["structured_content"]["code"], "process_ended", "{tool}");
    }
}

/// Whether a text is a time as ISO 8601 has it.
pub(crate) fn is_iso(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00T00:00:00.000Z"
}

/// A parent, and subagents in the hand of the test.
pub(crate) struct Walk {
    pub(crate) parent: McpClient,
    pub(crate) host: Host,
    pub(crate) bed: Bed,
    puppets: Puppets,
}

impl Walk {
    /// Assistants with these names and tools; `set` changes the bed before its host is opened.
    pub(crate) async fn new(assistants: &[(&str, &str)], set: impl FnOnce(&mut Bed)) -> Self {
        let files: Vec<(String, String)> =
            assistants.iter().map(|(name, tools)| (format!("{name}.md"), assistant(name, tools))).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        Self::with(&files, set).await
    }

    /// The same with files.
    pub(crate) async fn with(files: &[(&str, &str)], set: impl FnOnce(&mut Bed)) -> Self {
        let mut bed = Bed::new(PUPPET, files, &script(&[("a puppet", json!([{ "text": "hm" }]))]));
        let puppets = Puppets::new(bed.dir.path());
        bed.runner.args = puppets.args();
        set(&mut bed);
        let host = bed.try_open().await.expect("a host");
        let parent = host.connect_in_process_as("local", Profile::Subagents).await.expect("a client");
        Self { parent, host, bed, puppets }
    }

    /// Starts a subagent: the id of its run, and the run itself.
    pub(crate) async fn starts(&self, name: &str) -> (Value, Puppet) {
        let started = call(&self.parent, &format!("run_subagent_{name}"), json!({ "prompt": "go" })).await;
        (started["runId"].clone(), self.puppets.next().await)
    }

    /// The next subagent that is run.
    pub(crate) async fn next(&self) -> Puppet {
        self.puppets.next().await
    }

    /// Calls a tool of the parent that has to succeed.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        call(&self.parent, tool, arguments).await
    }

    /// The code and the message of a call of the parent that has to fail.
    pub(crate) async fn refused(&self, tool: &str, arguments: Value) -> (String, String) {
        refused(&self.parent, tool, arguments).await
    }

    /// What the parent sees of a run.
    pub(crate) async fn status(&self, run: &Value) -> Value {
        self.call("check_status", json!({ "runId": run })).await
    }

    /// One value of the store.
    pub(crate) fn stored(&self, sql: &str, of: &Value) -> String {
        let db = rusqlite::Connection::open(self.bed.state().join(store::FILE)).expect("the store");
        db.query_row(sql, [of.as_str().expect("an id")], |row| row.get(0)).expect("a text")
    }

    /// Ends the host; the bed looks at what it left.
    pub(crate) async fn close(self) {
        self.parent.cancel().await.expect("it ends");
        self.host.close().await;
    }
}

/// A project folder with assistants, a script and a configuration, served by the program's own pipe.
pub(crate) struct Home {
    pub(crate) dir: TempDir,
}

impl Home {
    /// With these files in the project folder, and the script of a model.
    pub(crate) fn new(files: &[(&str, &str)], steps: &[(&str, Value)]) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = dir.path().join("project").join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        std::fs::write(dir.path().join("script.json"), script(steps).to_string()).expect("a file");
        let model = "default_model = \"s\"\n[models.s]\nprovider = \"scripted\"\nscript = \"script.json\"\n";
        std::fs::write(dir.path().join("config.toml"), model).expect("a file");
        Self { dir }
    }

    /// Adds lines to the configuration.
    pub(crate) fn configure(&self, more: &str) {
        let path = self.dir.path().join("config.toml");
        let text = std::fs::read_to_string(&path).expect("a file");
        std::fs::write(path, format!("{text}{more}\n")).expect("a file");
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// The program with a command and the places of this folder.
    pub(crate) fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(HOST);
        command.args(args).arg("--state").arg(self.state()).arg("--config").arg(self.dir.path().join("config.toml"));
        command.arg("--project").arg(self.dir.path().join("project"));
        command.env_clear().env("HOME", self.dir.path()).current_dir(self.dir.path());
        command
    }

    /// Runs a command to its end: its exit code, stdout and stderr.
    pub(crate) fn run(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(args).stdin(Stdio::null()).output().expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    /// A client behind `mcp` with these arguments.
    pub(crate) async fn client(&self, args: &[&str]) -> McpClient {
        let args: Vec<&str> = ["mcp"].into_iter().chain(args.iter().copied()).collect();
        let mut command = Command::from(self.command(&args));
        command.kill_on_drop(true);
        ().serve(TokioChildProcess::new(command).expect("a process")).await.expect("a client")
    }

    /// A client of the profile.
    pub(crate) async fn parent(&self) -> McpClient {
        self.client(&["--profile", "subagents"]).await
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let stopped = self.command(&["stop", "--force"]).stderr(Stdio::null()).status();
        if std::thread::panicking() {
            // The test has failed by now; a host that could not be stopped ends for want of clients.
            return;
        }
        stopped.expect("it runs");
        let db = self.state().join(store::FILE);
        if db.exists() {
            let wrong = conformance::oracle::check(&db);
            assert!(wrong.is_empty(), "the store of this test:\n{}", wrong.join("\n"));
        }
    }
}
