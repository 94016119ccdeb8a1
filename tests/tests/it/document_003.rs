//! One subagent as an MCP server: the real program, `mcp serve --config FILE`, driven by a real MCP client, through what
//! its specification promises. Tests are named after the rows of its table.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use assistant_host::store;
use conformance::bed::SOON;
use conformance::doors::RawClient;
use rmcp::model::{CallToolRequestParams, CallToolResult, Tool};
use rmcp::service::{NotificationContext, RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, ServiceExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::HOST;

mod calls;
mod config;
mod errors;
mod events;
mod examples;
mod process;
mod results;
mod servers;

/// The file of the subagent of a shop.
const FILE: &str = "review.cpe.yaml";

/// What stands in it.
const TEXT: &str = r#"version: "1.0"

models:
  - ref: m
    display_name: "Scripted"
    id: scripted-1
    type: scripted
    script: ./script.json

subagent:
  name: review_changes
  description: Review a diff and return prioritized feedback.

defaults:
  model: m
  systemPromptPath: ./prompts/review.prompt
  codeMode:
    enabled: false
"#;

/// A folder with the file of a subagent, its prompt and the script of its model. Dropped, nothing of it runs any more, and
/// nothing is wrong in its stores.
struct Shop {
    dir: TempDir,
}

impl Shop {
    /// A shop whose model takes these steps.
    fn new(steps: Value) -> Self {
        let shop = Self { dir: tempfile::tempdir().expect("a folder") };
        shop.write(FILE, TEXT);
        shop.write("prompts/review.prompt", "You are the reviewer.\n");
        shop.write("script.json", &json!({ "assistants": [{ "steps": steps }] }).to_string());
        shop
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    /// Puts another text in the place of one of the file.
    fn edit(&self, from: &str, to: &str) {
        let text = std::fs::read_to_string(self.path(FILE)).expect("a file");
        assert!(text.contains(from), "`{from}` stands in the file");
        self.write(FILE, &text.replace(from, to));
    }

    /// The program, in a clean environment, in the folder.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(HOST);
        command.args(args).env_clear().env("HOME", self.dir.path().join("home")).current_dir(self.dir.path());
        command
    }

    /// Runs a command to its end: its exit code, stdout and stderr, with `DIR` for the folder.
    fn run(&self, args: &[&str]) -> (Option<i32>, String, String) {
        self.ended(self.command(args))
    }

    fn ended(&self, mut command: Command) -> (Option<i32>, String, String) {
        let output = command.stdin(Stdio::null()).output().expect("it runs");
        let dir = self.dir.path().display().to_string();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace(&dir, "DIR");
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    /// The runs that `mcp runs` tells.
    fn runs(&self) -> Vec<Value> {
        let (code, stdout, stderr) = self.run(&["mcp", "runs", "--json", "--config", FILE]);
        assert_eq!((code, stderr.as_str()), (Some(0), ""));
        stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// A client that writes lines itself, and has shaken hands.
    fn raw(&self) -> RawClient {
        let mut client = RawClient::start(self.command(&["mcp", "serve", "--config", FILE]));
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "raw", "version": "1" },
        });
        let answer = client.ask("initialize", &params).expect("an answer");
        assert_eq!(answer["result"]["serverInfo"]["name"], "review_changes");
        assert!(client.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"));
        client
    }

    /// A client of rmcp.
    async fn client(&self) -> Client {
        self.client_of(&["mcp", "serve", "--config", FILE]).await
    }

    async fn client_of(&self, args: &[&str]) -> Client {
        Client::start(self.command(args)).await
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let left = conformance::bed::running(self.dir.path());
        let told = |pid: &u32| {
            let of = |name: &str| {
                std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default().replace('\0', " ")
            };
            format!("{pid} {}{}", of("cmdline"), of("wchan"))
        };
        assert!(left.is_empty(), "processes are left: {:?}", left.iter().map(told).collect::<Vec<_>>());
        let folders = self.path("home/.local/state/assistant-host/subagents");
        for folder in std::fs::read_dir(folders).into_iter().flatten().flatten() {
            for place in std::fs::read_dir(folder.path()).expect("a folder").flatten() {
                let wrong = conformance::oracle::check(&place.path().join(store::FILE));
                assert!(wrong.is_empty(), "the store of this test:\n{}", wrong.join("\n"));
            }
        }
    }
}

/// What a client is told while it waits.
#[derive(Debug, Clone, PartialEq)]
enum Told {
    Progress(String),
    Log { level: String, logger: String, data: Value },
}

struct Ear(UnboundedSender<Told>);

#[expect(deprecated, reason = "the specification asks for these messages")]
impl ClientHandler for Ear {
    async fn on_progress(&self, told: rmcp::model::ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        // Nobody listens after the test.
        drop(self.0.send(Told::Progress(told.message.unwrap_or_default())));
    }

    async fn on_logging_message(
        &self,
        told: rmcp::model::LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let level = serde_json::to_value(told.level).expect("JSON").as_str().expect("a name").to_owned();
        drop(self.0.send(Told::Log { level, logger: told.logger.unwrap_or_default(), data: told.data }));
    }
}

/// A client of rmcp over the pipes of the real program.
struct Client {
    service: RunningService<RoleClient, Ear>,
    told: UnboundedReceiver<Told>,
    /// The tool that it calls.
    tool: &'static str,
}

impl Client {
    async fn start(command: Command) -> Self {
        let (sender, told) = unbounded_channel();
        let child = TokioChildProcess::new(tokio::process::Command::from(command)).expect("it runs");
        let service = tokio::time::timeout(SOON, Ear(sender).serve(child)).await.expect("in time").expect("served");
        Self { service, told, tool: "review_changes" }
    }

    async fn tools(&self) -> Vec<Tool> {
        self.service.list_all_tools().await.expect("a list")
    }

    async fn call(&self, arguments: Value) -> CallToolResult {
        let params =
            CallToolRequestParams::new(self.tool).with_arguments(arguments.as_object().cloned().expect("an object"));
        tokio::time::timeout(SOON, self.service.call_tool(params)).await.expect("in time").expect("a result")
    }

    /// What a call that has to succeed says, and its run.
    async fn must(&self, arguments: Value) -> (String, String) {
        let result = self.call(arguments).await;
        assert_ne!(result.is_error, Some(true), "{result:?}");
        (text(&result), result.meta.expect("meta")["run_id"].as_str().expect("an id").to_owned())
    }

    /// The error that a call tells: its code and its message.
    async fn refused(&self, arguments: Value) -> (String, String) {
        let result = self.call(arguments).await;
        assert_eq!(result.is_error, Some(true), "{result:?}");
        let error: Value = serde_json::from_str(&text(&result)).expect("an error as JSON");
        let of = |key: &str| error[key].as_str().expect("a text").to_owned();
        (of("code"), of("message"))
    }

    /// The next of what it is told that fits.
    async fn hears<T>(&mut self, mut fits: impl FnMut(Told) -> Option<T>) -> T {
        let listen = async {
            loop {
                let told = self.told.recv().await.expect("the server lives");
                if let Some(found) = fits(told) {
                    return found;
                }
            }
        };
        tokio::time::timeout(SOON, listen).await.expect("it is told")
    }

    async fn end(self) {
        self.service.cancel().await.expect("it ends");
    }
}

fn text(result: &CallToolResult) -> String {
    result.content[0].as_text().expect("a text").text.clone()
}
