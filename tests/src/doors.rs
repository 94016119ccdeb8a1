//! A state directory with a background host, reached by the real program, and raw MCP clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use assistant_host::store;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bed::{SOON, assistant};

/// A folder with a configuration, a script, assistants and a state directory. Dropped, its host is ended, and neither has
/// it panicked nor left anything wrong in the store.
pub struct Doors {
    /// Gone with it.
    pub dir: TempDir,
    host: PathBuf,
}

impl Doors {
    /// Assistants `quick` (answers at once), `slow` (takes a while), `hang` (never does) and `waits` (for a message,
    /// then answers), served by the program `host`. `config` is added to the configuration.
    ///
    /// # Panics
    /// Where the folder cannot be written.
    pub fn new(host: impl Into<PathBuf>, config: &str) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(dir.path().join("assistants")).expect("a folder");
        for name in ["quick", "slow", "hang", "waits"] {
            let file = dir.path().join("assistants").join(format!("{name}.md"));
            std::fs::write(file, assistant(name, "send_message, recv_message")).expect("a file");
        }
        let arguments = json!({ "thread_id": "{{id_after.thread_id}}", "wait_ms": 600_000, "unread_only": true });
        let waits = json!({ "tool_name": "recv_message", "arguments": arguments });
        let script = crate::bed::script(&[
            ("quick", json!([{ "text": "the quick result" }])),
            ("slow", json!([{ "text": "the slow result", "delay_ms": 1_500 }])),
            ("hang", json!([{ "hang": true }])),
            ("waits", json!([{ "tool_calls": [waits] }, { "text": "it went on" }])),
        ]);
        std::fs::write(dir.path().join("script.json"), script.to_string()).expect("a file");
        let doors = Self { dir, host: host.into() };
        doors.configure(config);
        doors
    }

    /// Writes the configuration: the scripted model, and `more`.
    ///
    /// # Panics
    /// Where the file cannot be written.
    pub fn configure(&self, more: &str) {
        let model = "default_model = \"s\"\n[models.s]\nprovider = \"scripted\"\nscript = \"script.json\"\n";
        std::fs::write(self.dir.path().join("config.toml"), format!("{model}{more}\n")).expect("a file");
    }

    /// The state directory.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// The program with a command and the places of this folder, in a clean environment.
    #[must_use]
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.host);
        command.args(args).arg("--state").arg(self.state()).arg("--no-project");
        command.arg("--config").arg(self.dir.path().join("config.toml"));
        command.arg("--assistants").arg(self.dir.path().join("assistants"));
        command.env_clear().env("HOME", self.dir.path()).current_dir(self.dir.path());
        command
    }

    /// Runs a command to its end: its exit code, stdout and stderr.
    ///
    /// # Panics
    /// Where it cannot be started.
    #[must_use]
    pub fn run(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(args).stdin(Stdio::null()).output().expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    /// Starts `mcp` and writes to it.
    ///
    /// # Panics
    /// Where it cannot be started.
    #[must_use]
    pub fn client(&self) -> RawClient {
        RawClient::start(self.command(&["mcp"]))
    }

    /// The process id of the host, if one has the state directory.
    #[must_use]
    pub fn host_pid(&self) -> Option<u32> {
        let status: Value = serde_json::from_str(&self.run(&["status", "--json"]).1).ok()?;
        status["host"]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok())
    }

    /// Every host of this state directory that runs.
    #[must_use]
    pub fn hosts(&self) -> Vec<u32> {
        let background = "--background".to_owned();
        crate::bed::running(&self.state()).into_iter().filter(|pid| arguments(*pid).contains(&background)).collect()
    }

    /// Runners that have the state directory as their folder.
    #[must_use]
    pub fn runners(&self) -> Vec<u32> {
        let state = self.state().canonicalize().unwrap_or_else(|_| self.state());
        processes()
            .filter(|pid| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == state))
            .filter(|pid| arguments(*pid).first().is_some_and(|program| program.contains("runner")))
            .collect()
    }
}

impl Drop for Doors {
    fn drop(&mut self) {
        let stopped = self.command(&["stop", "--force"]).stderr(Stdio::null()).status();
        if std::thread::panicking() {
            // The test has failed by now; a host that could not be stopped ends for want of clients.
            return;
        }
        stopped.expect("it runs");
        let log = std::fs::read_to_string(self.state().join("host.log")).unwrap_or_default();
        assert!(!log.contains("panicked"), "the host panicked:\n{log}");
        let db = self.state().join(store::FILE);
        if db.exists() {
            let wrong = crate::oracle::check(&db);
            assert!(wrong.is_empty(), "the store of this test:\n{}", wrong.join("\n"));
        }
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
}

fn arguments(pid: u32) -> Vec<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}

/// Sends a signal by its name.
///
/// # Panics
/// Where there is no `kill`.
pub fn signal(name: &str, to: i64) {
    let (signal, to) = (format!("-{name}"), to.to_string());
    // What has gone already needs no signal.
    Command::new("kill").args([&signal, "--", &to]).stderr(Stdio::null()).status().expect("kill");
}

/// Waits until a look gives something.
///
/// # Panics
/// Where it never does.
pub fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let begun = std::time::Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < SOON, "never: {what}");
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
}

/// An MCP client that writes lines, of the handshake era, and the program that it speaks to.
pub struct RawClient {
    /// The program.
    pub child: Child,
    wire: Wire,
}

/// The lines of an MCP client.
pub struct Wire {
    /// What it writes to; none once it is closed.
    pub stdin: Option<Box<dyn Write + Send>>,
    lines: Receiver<String>,
    last_id: u64,
}

impl Deref for RawClient {
    type Target = Wire;

    fn deref(&self) -> &Wire {
        &self.wire
    }
}

impl DerefMut for RawClient {
    fn deref_mut(&mut self) -> &mut Wire {
        &mut self.wire
    }
}

impl RawClient {
    /// Starts a program that serves MCP on its stdio.
    ///
    /// # Panics
    /// Where it cannot be started.
    #[must_use]
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a client");
        let (stdin, stdout) = (child.stdin.take().expect("stdin"), child.stdout.take().expect("stdout"));
        Self { child, wire: Wire::new(stdout, stdin) }
    }

    /// Closes its end and waits for the program: its exit code.
    ///
    /// # Panics
    /// Where it does not end.
    pub fn close(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().expect("it ends").code()
    }

    /// Kills the program.
    ///
    /// # Panics
    /// Where it cannot be waited for.
    pub fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("it ends");
    }
}

impl Wire {
    /// A client over two directions.
    pub fn new(read: impl Read + Send + 'static, write: impl Write + Send + 'static) -> Self {
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            // Ends with the client: nobody hears the rest.
            BufReader::new(read).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { stdin: Some(Box::new(write)), lines, last_id: 0 }
    }

    /// Writes bytes; whether they could be written.
    pub fn write(&mut self, bytes: &[u8]) -> bool {
        self.stdin.as_mut().is_some_and(|stdin| stdin.write_all(bytes).and_then(|()| stdin.flush()).is_ok())
    }

    /// Sends a request and does not wait for its answer: its id, if it was written.
    pub fn send(&mut self, method: &str, params: &Value) -> Option<u64> {
        self.last_id += 1;
        let line = json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        let id = self.last_id;
        self.write(format!("{line}\n").as_bytes()).then_some(id)
    }

    /// Waits for the answer to a request; none where the client has gone first.
    ///
    /// # Panics
    /// Where stdout carries anything but messages, or no answer comes.
    pub fn answer(&mut self, id: u64) -> Option<Value> {
        loop {
            let line = match self.lines.recv_timeout(SOON) {
                Ok(line) => line,
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return None,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("request {id} is never answered"),
            };
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}"));
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
            if message["id"] == id {
                return Some(message);
            }
        }
    }

    /// Waits for the answers to requests, in whatever order they come, and gives them in the order of the requests.
    ///
    /// # Panics
    /// Where one is missing, or stdout carries anything but messages.
    pub fn answers(&mut self, ids: &[u64]) -> Vec<Value> {
        let mut found = std::collections::BTreeMap::new();
        while found.len() < ids.len() {
            let line = self.lines.recv_timeout(SOON).unwrap_or_else(|_| panic!("{} of {ids:?} only", found.len()));
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}"));
            if let Some(id) = message["id"].as_u64().filter(|id| ids.contains(id)) {
                found.insert(id, message);
            }
        }
        ids.iter().map(|id| found[id].clone()).collect()
    }

    /// Asks and waits for the answer.
    pub fn ask(&mut self, method: &str, params: &Value) -> Option<Value> {
        let id = self.send(method, params)?;
        self.answer(id)
    }

    /// Shakes hands; whether that worked.
    pub fn shake(&mut self) -> bool {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "raw", "version": "1" },
        });
        let Some(answer) = self.ask("initialize", &params) else { return false };
        answer["result"]["serverInfo"]["name"] == "assistants"
            && self.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")
    }

    /// Sends a tool call: its id, if it was written.
    pub fn send_call(&mut self, tool: &str, arguments: &Value) -> Option<u64> {
        self.send("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// Calls a tool: its structured result, or the error that it tells; none where the client has gone first.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Option<Result<Value, Value>> {
        let id = self.send_call(tool, arguments)?;
        self.called(id)
    }

    /// The result of a tool call.
    ///
    /// # Panics
    /// Where the answer is no result of a tool.
    pub fn called(&mut self, id: u64) -> Option<Result<Value, Value>> {
        let answer = self.answer(id)?;
        if answer.get("error").is_some() {
            return Some(Err(answer["error"].clone()));
        }
        let result = &answer["result"];
        if result["isError"] == true {
            let text = result["content"][0]["text"].as_str().expect("a text");
            return Some(Err(serde_json::from_str(text).expect("an error as JSON")));
        }
        Some(Ok(result["structuredContent"].clone()))
    }

    /// Calls a tool that has to succeed.
    ///
    /// # Panics
    /// Where it does not.
    pub fn must(&mut self, tool: &str, arguments: &Value) -> Value {
        match self.call(tool, arguments) {
            Some(Ok(value)) => value,
            other => panic!("{tool} {arguments}: {other:?}"),
        }
    }
}

impl Drop for RawClient {
    fn drop(&mut self) {
        // Gone already, mostly.
        drop(self.stdin.take());
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The socket of a state directory with a short path.
#[must_use]
pub fn socket(state: &Path) -> PathBuf {
    state.join("door").join("host.sock")
}
