//! What a host is opened with.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::app::{AppTool, Approve};
use crate::awake::Awake;
use crate::hooks::Hooks;
use crate::launcher::{Launcher, RunnerCommand};
use crate::limits::Limits;
use crate::model::Models;
use crate::registry::SourceDir;
use crate::runners::Runner;
use crate::servers::{Configured, Environment};
use crate::store::Clock;

/// What a host is opened with. The world comes in here: paths, models, the time.
pub struct Options {
    /// The state directory, made if it is not there. One host holds it.
    pub state: PathBuf,
    /// The folder that the host belongs to; assistants read files below it.
    pub project: Option<PathBuf>,
    /// Where definitions are read from, first in precedence first.
    pub sources: Vec<SourceDir>,
    /// Whether the folders of the sources are watched, so that a file that changes is read at once. Else
    /// [`Host::reload`](super::Host::reload) reads them.
    pub watch: bool,
    /// What answers model calls.
    pub models: Models,
    /// A definition that names an unknown model is refused.
    pub strict_models: bool,
    /// What is allowed.
    pub limits: Limits,
    /// Tools of other systems by the tool of ours that stands in.
    pub tool_aliases: BTreeMap<String, String>,
    /// Tool servers that assistants can ask for by name.
    pub servers: Configured,
    /// The variables that what is written of tool servers is filled in from. By default there are none.
    pub environment: Environment,
    /// Names of the variables that hold keys of models: nothing that a definition says of a server is filled in from them.
    pub key_variables: Vec<String>,
    /// Variables that every tool server gets beneath those that are listed for it. By default there are none.
    pub server_variables: BTreeMap<String, String>,
    /// Tools of the embedding app, under prefixes of its own.
    pub app_tools: Vec<AppTool>,
    /// Who is asked before a tool that needs it is called; without one such calls are refused.
    pub approval: Option<Arc<dyn Approve>>,
    /// What is run when a process ends or asks.
    pub hooks: Hooks,
    /// The folder in which it is remembered what the user trusts, outside of every project. Without one, nothing that a
    /// project's files name is run. Default: `trust` in the state directory.
    pub trust: Option<PathBuf>,
    /// How the host's own runner is started.
    pub runner: RunnerCommand,
    /// Other runners, by the names that definitions and spawns give.
    pub runners: BTreeMap<String, Runner>,
    /// The name of the runner of an assistant whose definition names none. Default: the host's own.
    pub default_runner: Option<String>,
    /// Why it is that one, where nobody has said so: whoever spawns is told.
    pub default_runner_why: Option<String>,
    /// Where and in what runners are started, by the names that definitions give.
    pub launchers: BTreeMap<String, Launcher>,
    /// The name of the launcher of an assistant that none is named for. Default: none, this machine as it is.
    pub default_launcher: Option<String>,
    /// Files and folders that nothing fenced in may see, beside the state directory and that of what the user trusts: the
    /// configuration, keys.
    pub private: Vec<PathBuf>,
    /// Where git worktrees are made for assistants that have their own. Default: `worktrees` in the state directory.
    pub worktrees: Option<PathBuf>,
    /// Whether this program takes on the orphans of its children (a child subreaper, Linux) and leaves it to the host to
    /// wait for them. What a runner has started and has left its group is found more surely then, and reaped.
    pub adopts_orphans: bool,
    /// Tells the time.
    pub clock: Clock,
    /// Counts the time of limits: only while the machine is awake.
    pub awake: Awake,
    /// How long another host that holds the state directory is waited for: it may be about to end.
    pub lock_wait: Duration,
    /// Where whoever opens the host writes its log; errors that the host's own log explains name it.
    pub log: Option<PathBuf>,
}

impl Options {
    /// A host with its state in `state`, whose runners are started by `runner`; everything else by default.
    #[must_use]
    pub fn new(state: PathBuf, runner: RunnerCommand) -> Self {
        Self {
            trust: Some(state.join("trust")),
            state,
            project: None,
            sources: Vec::new(),
            watch: true,
            models: Models::default(),
            strict_models: false,
            limits: Limits::default(),
            tool_aliases: BTreeMap::new(),
            servers: Configured::default(),
            environment: Environment::default(),
            key_variables: crate::model::variables_of_keys(),
            server_variables: BTreeMap::new(),
            app_tools: Vec::new(),
            approval: None,
            hooks: Hooks::default(),
            runner,
            runners: BTreeMap::new(),
            default_runner: None,
            default_runner_why: None,
            launchers: BTreeMap::new(),
            default_launcher: None,
            private: Vec::new(),
            worktrees: None,
            adopts_orphans: false,
            clock: Arc::new(now),
            awake: Awake::machine(),
            lock_wait: Duration::ZERO,
            log: None,
        }
    }
}

/// The time of the machine, as Unix milliseconds.
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
