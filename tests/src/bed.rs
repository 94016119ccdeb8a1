//! A host in a folder of its own, with assistants and a scripted model, and what tests do with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use assistant_host::app::AppTool;
use assistant_host::awake::Awake;
use assistant_host::events::Kind;
use assistant_host::host::{Host, OpenError, Options};
use assistant_host::launcher::{Launcher, RunnerCommand};
use assistant_host::limits::Limits;
use assistant_host::model::prices::Price;
use assistant_host::model::{Model, ScriptedModel};
use assistant_host::registry;
use assistant_host::runners::Runner;
use assistant_host::servers::{Configured, Environment};
use assistant_host::store;
use assistant_host::tools::CallError;
use assistant_host::trust::Trust;
use assistant_protocol::ids::SessionId;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// How long anything that ends by itself may take on a loaded machine.
pub const SOON: Duration = Duration::from_secs(60);

/// A folder with a state directory, a project and assistants.
pub struct Bed {
    /// Gone with the bed.
    pub dir: TempDir,
    /// What its hosts are allowed.
    pub limits: Limits,
    /// How its hosts start a runner.
    pub runner: RunnerCommand,
    /// The runners that its hosts know by name.
    pub runners: BTreeMap<String, Runner>,
    /// The name of the runner of whoever names none.
    pub default_runner: Option<String>,
    /// The launchers that its hosts know by name.
    pub launchers: BTreeMap<String, Launcher>,
    /// The name of the launcher of whom none is named for.
    pub default_launcher: Option<String>,
    /// What nothing that is fenced in may see.
    pub private: Vec<PathBuf>,
    /// What counts the time of its hosts' limits.
    pub awake: Awake,
    /// What tells its hosts the time; none is the machine's clock.
    pub clock: Option<store::Clock>,
    /// What its hosts offer beside their own tools.
    pub app_tools: Vec<AppTool>,
    /// What its model costs.
    pub price: Option<Price>,
    /// The tool servers that its hosts know by name.
    pub servers: Configured,
    /// Names of tools by what stands in for them.
    pub tool_aliases: BTreeMap<String, String>,
    /// The variables that what is written of servers is filled in from.
    pub environment: Environment,
    model: Arc<dyn Model>,
}

impl Bed {
    /// A bed whose runners are `runner`, with assistants `(file name, text)` and the model of a script.
    ///
    /// # Panics
    /// Where the folder cannot be written or the script is none.
    pub fn new(runner: impl Into<PathBuf>, assistants: &[(&str, &str)], script: &Value) -> Self {
        let model = ScriptedModel::from_value(script.clone()).expect("a script");
        Self::with_model(runner, assistants, Arc::new(model))
    }

    /// The same with any model.
    ///
    /// # Panics
    /// Where the folder cannot be written.
    pub fn with_model(runner: impl Into<PathBuf>, assistants: &[(&str, &str)], model: Arc<dyn Model>) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        for folder in ["assistants", "project"] {
            std::fs::create_dir(dir.path().join(folder)).expect("a folder");
        }
        for (name, text) in assistants {
            std::fs::write(dir.path().join("assistants").join(name), text).expect("a file");
        }
        let (limits, runner) = (Limits::default(), RunnerCommand::new(runner));
        Self {
            dir,
            limits,
            runner,
            runners: BTreeMap::new(),
            default_runner: None,
            launchers: BTreeMap::new(),
            default_launcher: None,
            private: Vec::new(),
            awake: Awake::machine(),
            clock: None,
            app_tools: Vec::new(),
            price: None,
            servers: Configured::default(),
            tool_aliases: BTreeMap::new(),
            environment: Environment::default(),
            model,
        }
    }

    /// Takes another script as its model.
    ///
    /// # Panics
    /// Where it is none.
    pub fn set_script(&mut self, script: &Value) {
        self.model = Arc::new(ScriptedModel::from_value(script.clone()).expect("a script"));
    }

    /// The state directory.
    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// The project folder.
    pub fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    /// What its hosts are opened with.
    pub fn options(&self) -> Options {
        let mut options = Options::new(self.state(), self.runner.clone());
        (options.runners, options.default_runner) = (self.runners.clone(), self.default_runner.clone());
        (options.launchers, options.default_launcher) = (self.launchers.clone(), self.default_launcher.clone());
        options.private.clone_from(&self.private);
        options.limits = self.limits;
        options.awake = self.awake.clone();
        if let Some(clock) = &self.clock {
            options.clock = clock.clone();
        }
        options.app_tools = self.app_tools.clone();
        options.servers = self.servers.clone();
        options.tool_aliases = self.tool_aliases.clone();
        options.environment = self.environment.clone();
        options.project = Some(self.project());
        options.sources = registry::sources(None, None, None, &[self.dir.path().join("assistants")]);
        options.models.insert("scripted", self.model.clone());
        if let Some(price) = self.price {
            options.models.set_price("scripted", price);
        }
        options
    }

    /// Opens a host on the bed's state.
    ///
    /// # Errors
    /// The host's.
    pub async fn try_open(&self) -> Result<Host, OpenError> {
        Host::open(self.options()).await
    }

    /// Allows all that the assistants of a host would run, as their user does with `assistant-host trust`.
    ///
    /// # Panics
    /// Where that cannot be remembered.
    pub async fn trust_all(&self, host: &Host) {
        let all: Vec<_> = host.registry().assistants().to_vec();
        let mut ruled = host.rule(all.clone()).await.expect("what they would run");
        for (one, ruled) in all.iter().zip(&mut ruled) {
            ruled.extend(host.rule_own_tools(one.clone()).await.expect("what an agent would do"));
        }
        let each = all.iter().zip(&ruled).flat_map(|(one, ruled)| ruled.iter().map(move |ruled| (one, ruled)));
        let trusts: Vec<Trust> = each.filter_map(|(one, ruled)| Trust::new(one, ruled, "me", 1)).collect();
        host.trust().add(&trusts).expect("remembered");
    }

    /// Opens a host and a session of it. One that was killed may hold the state for a moment yet.
    ///
    /// # Panics
    /// Where that fails.
    pub async fn open(&self) -> Client {
        let host = Host::open(Options { lock_wait: SOON, ..self.options() }).await.expect("a host");
        Client::of(&host).await
    }
}

/// Whatever a test did: nothing is in the store that must never be.
impl Drop for Bed {
    fn drop(&mut self) {
        let db = self.state().join(store::FILE);
        if !std::thread::panicking() && db.exists() {
            let wrong = crate::oracle::check(&db);
            assert!(wrong.is_empty(), "the store of this test:\n{}", wrong.join("\n"));
        }
    }
}

/// A session of a host, and its calls.
#[derive(Clone)]
pub struct Client {
    /// The host.
    pub host: Host,
    /// The session.
    pub session: SessionId,
}

impl Client {
    /// Another session of the local user.
    ///
    /// # Panics
    /// Where the host is closed.
    pub async fn of(host: &Host) -> Self {
        let session = host.open_session("local", "main").await.expect("a session");
        Self { host: host.clone(), session }
    }

    /// Calls a tool. An error is its JSON: `{code, message, hint, retryable}`.
    ///
    /// # Errors
    /// What the tool says.
    ///
    /// # Panics
    /// Where there is no such tool, or the call takes longer than anything may.
    pub async fn try_call(&self, tool: &str, arguments: Value) -> Result<Value, Value> {
        let map: Map<String, Value> = arguments.as_object().cloned().expect("arguments are an object");
        let call = self.host.call(self.session, tool, map);
        match tokio::time::timeout(SOON, call).await.expect("the call returns") {
            Ok(value) => Ok(value),
            Err(CallError::Tool(error)) => Err(json!(error)),
            Err(error @ CallError::UnknownTool(_)) => panic!("{error}"),
        }
    }

    /// Calls a tool that has to succeed.
    ///
    /// # Panics
    /// Where it does not.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        let shown = arguments.to_string();
        self.try_call(tool, arguments).await.unwrap_or_else(|error| panic!("{tool} {shown}: {error}"))
    }

    /// The code of the error of a call that has to fail.
    ///
    /// # Panics
    /// Where it succeeds.
    pub async fn refused(&self, tool: &str, arguments: Value) -> String {
        match self.try_call(tool, arguments).await {
            Ok(value) => panic!("{tool} succeeded: {value}"),
            Err(error) => {
                for field in ["message", "hint"] {
                    assert!(error[field].as_str().is_some_and(|text| !text.is_empty()), "no {field}: {error}");
                }
                error["code"].as_str().unwrap_or_default().to_owned()
            }
        }
    }

    /// Spawns an assistant by id and returns the answer.
    pub async fn spawn(&self, assistant: &str, query: &str) -> Value {
        self.call("spawn_assistant", json!({ "assistant_id": assistant, "query": query })).await
    }

    /// The process as `poll_assistant` tells it.
    pub async fn poll(&self, spawned: &Value) -> Value {
        self.call("poll_assistant", json!({ "process_id": spawned["process_id"] })).await["process"].clone()
    }

    /// Polls until the process has this status, and returns it.
    ///
    /// # Panics
    /// Where it ends otherwise, or does not get there.
    pub async fn until(&self, spawned: &Value, status: &str) -> Value {
        let reached = async {
            loop {
                let arguments = json!({ "process_id": spawned["process_id"], "wait_ms": 5_000 });
                let now = self.poll(spawned).await;
                if now["status"] == status {
                    return now;
                }
                assert!(now["done"] == false, "wanted {status}, got {now}");
                self.call("poll_assistant", arguments).await;
            }
        };
        tokio::time::timeout(SOON, reached).await.unwrap_or_else(|_| panic!("never {status}"))
    }

    /// Waits until the process has begun its first model call: later messages wait for the next one.
    ///
    /// # Panics
    /// Where it never does.
    pub async fn asked(&self, spawned: &Value) {
        let process = spawned["process_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
        let begun = async {
            let mut after = 0;
            loop {
                let events = self.host.events(process, after, 100).await.expect("events");
                if events.iter().any(|event| event.kind == Kind::ModelCall) {
                    return;
                }
                after = events.last().map_or(after, |event| event.seq);
            }
        };
        tokio::time::timeout(SOON, begun).await.expect("a model call");
    }

    /// Polls until the process has ended, and returns it.
    ///
    /// # Panics
    /// Where it does not end.
    pub async fn end(&self, spawned: &Value) -> Value {
        let ended = async {
            loop {
                let arguments = json!({ "process_id": spawned["process_id"], "wait_ms": 5_000 });
                let now = self.call("poll_assistant", arguments).await;
                if now["process"]["done"] == true {
                    return now["process"].clone();
                }
            }
        };
        match tokio::time::timeout(SOON, ended).await {
            Ok(ended) => ended,
            Err(_) => {
                let log = json!({ "process_id": spawned["process_id"], "tail": true });
                panic!("the process does not end: {}", self.call("read_log", log).await)
            }
        }
    }

    /// The contents of the messages of the process's thread that are addressed to the session, oldest first.
    pub async fn mail(&self, spawned: &Value) -> Vec<String> {
        let arguments = json!({ "thread_id": spawned["thread_id"], "last_n": 200 });
        let read = self.call("recv_message", arguments).await;
        let mine = read["messages"].as_array().into_iter().flatten().filter(|one| one["to_process_id"].is_null());
        mine.filter_map(|one| one["content"].as_str().map(str::to_owned)).collect()
    }
}

/// An assistant's file with these tools.
pub fn assistant(name: &str, tools: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: The assistant {name} of the tests.\ntools: [{tools}]\n---\nYou are {name}.\n"
    )
}

/// A script with one assistant for each pair of a name and its steps.
pub fn script(assistants: &[(&str, Value)]) -> Value {
    let one =
        |(name, steps): &(&str, Value)| json!({ "when": { "system": format!("You are {name}.") }, "steps": steps });
    json!({ "assistants": assistants.iter().map(one).collect::<Vec<_>>() })
}

/// The ids of processes that run with this text in their command line.
pub fn running(text: &Path) -> Vec<u32> {
    let wanted = text.to_string_lossy().into_owned();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(&wanted) {
            found.push(pid);
        }
    }
    found
}
