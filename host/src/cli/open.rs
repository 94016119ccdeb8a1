//! From places and the environment to what a host is opened with.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;

use super::automatic::{self, Automatic};
use super::{Failure, Places, USAGE, system};
use crate::config::{Config, paths};
use crate::host::Options;
use crate::launcher::RunnerCommand;
use crate::model::Models;
use crate::registry::{self, Registry, Source, SourceDir, mirror};
use crate::runners::MayBeAgent;
use crate::search::{self, SearchIndex};
use crate::servers::{self, Configured, Environment, Tried};
use crate::store;
use crate::tools::Tool;
use crate::tools::outfit::Stock;

/// How long a host that is about to end is waited for.
const LOCK_WITHIN: Duration = Duration::from_secs(5);
/// How long a runner may take to say its build id.
const BUILD_ID_WITHIN: Duration = Duration::from_secs(2);
/// The longest build id, in bytes, with the end of its line.
const BUILD_ID_BYTES_MAX: u64 = 64;

/// What a command works with.
pub(super) struct Setting {
    pub(super) config: Config,
    pub(super) project: Option<PathBuf>,
    pub(super) sources: Vec<SourceDir>,
    pub(super) servers: Configured,
    /// What was chosen for lack of a configuration.
    pub(super) automatic: Option<Automatic>,
    state: Option<PathBuf>,
}

pub(super) fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Where it is remembered what the user trusts, if there is a place for it.
pub(super) fn trust_dir() -> Option<PathBuf> {
    paths::trust_dir(&env).ok()
}

/// A folder with a short path, for a socket whose own would be too long.
pub(super) fn run_dir() -> PathBuf {
    env("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute()).unwrap_or_else(std::env::temp_dir)
}

impl Setting {
    /// Reads the configuration and finds the project and the folders of assistants. Takes no lock.
    pub(super) fn read(places: &Places) -> Result<Self, Failure> {
        let usage = |error: &dyn std::fmt::Display| Failure::new(USAGE, error);
        let config_path = paths::default_path(&env);
        let fallback = config_path.clone().unwrap_or_else(|_| PathBuf::from("config.toml"));
        let mut config = Config::read(places.config.as_deref(), &fallback).map_err(|error| usage(&error))?;
        let automatic = automatic::choose(&mut config, &env);
        let servers = config.servers().map_err(|error| usage(&error))?;
        let cwd = std::env::current_dir().map_err(|error| usage(&format!("there is no working folder: {error}")))?;
        let project = super::place::project(places, &cwd)?;
        if let Some(missing) = places.assistants.iter().find(|folder| !folder.is_dir()) {
            let what = if missing.exists() { "it is no folder" } else { "there is no such folder" };
            return Err(usage(&format!("--assistants {}: {what}", missing.display())));
        }
        let home = env("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let config_dir = config_path.ok().and_then(|path| path.parent().map(Path::to_owned));
        let sources = registry::sources(project.as_deref(), home.as_deref(), config_dir.as_deref(), &places.assistants);
        Ok(Self { config, project, sources, servers, automatic, state: places.state.clone() })
    }

    /// Where assistants are read from, for whoever wonders why there are none.
    pub(super) fn where_read(&self) -> String {
        let shown = |source: &SourceDir| source.path.display().to_string();
        let there: Vec<String> = self.sources.iter().filter(|source| source.path.is_dir()).map(shown).collect();
        let folders = match (there.is_empty(), self.sources.first()) {
            (false, _) => format!("assistants are read from {}", there.join(", ")),
            (true, Some(first)) => {
                format!("there is no folder of assistants; {} is the first to be read", shown(first))
            }
            (true, None) => "there is no folder to read assistants from; --assistants names one".to_owned(),
        };
        let project = match &self.project {
            Some(project) => format!("the project is {}", project.display()),
            None => "no project was found: --project names one, else it is the repository around the folder".to_owned(),
        };
        format!("{project}; {folders}")
    }

    /// Where a file that was read comes from, by the folder that it lies in.
    pub(super) fn source_of(&self, file: &str) -> Option<Source> {
        let inside = self.sources.iter().filter(|source| Path::new(file).starts_with(&source.path));
        inside.max_by_key(|source| source.path.components().count()).map(|source| source.source)
    }

    /// All assistants: those of the folders, and behind them those that the database keeps, where it can be read. Takes
    /// no lock.
    pub(super) fn registry(&self) -> Registry {
        let stored = match self.state() {
            Ok(state) => store::peek(&state, mirror::stored).map_err(|error| error.to_string()),
            Err(failure) => Err(failure.message),
        };
        let stored = stored.unwrap_or_else(|error| {
            super::talk(&format!("the assistants of the database are left out: {error}"));
            None
        });
        Registry::read(&self.sources).join(stored.into_iter().flatten().map(Arc::new))
    }

    /// The search index of `registry`: made from that of the state directory, where there is one. Takes no lock that a host
    /// wants, and writes nothing.
    pub(super) fn index(&self, registry: &Registry) -> Result<SearchIndex, Failure> {
        let index = match self.state() {
            Ok(state) => SearchIndex::copied(&state.join(search::FOLDER), registry),
            // Where there is no place for a state directory, there is no index in it.
            Err(_) => SearchIndex::in_memory(registry),
        };
        index.map_err(|error| Failure::new(super::FAILED, error))
    }

    /// Whether an assistant may be run by an agent that has tools of its own.
    pub(super) fn has_agents(&self) -> bool {
        self.config.runners.values().any(MayBeAgent::is_agent)
    }

    /// What decides what a definition gets here.
    pub(super) fn stock<'a>(&'a self, table: &'a [Tool], models: &'a Models) -> Stock<'a> {
        let (aliases, strict_models) = (&self.config.tool_aliases, self.config.strict_models);
        Stock {
            table,
            aliases,
            servers: &self.servers,
            models,
            runners: &self.config.runners,
            default_runner: self.config.default_runner.as_deref(),
            launchers: &self.config.launchers,
            default_launcher: self.config.default_launcher.as_deref(),
            strict_models,
        }
    }

    /// Starts each configured tool server for once, to tell what it offers or why it does not start.
    pub(super) async fn try_servers(&self) -> Vec<Tried> {
        let state = self.state().unwrap_or_else(|_| std::env::temp_dir()).join("tried");
        let environment = Environment::new(env);
        servers::try_all(&self.servers, &environment, &self.config.limits, self.project.as_deref(), &state).await
    }

    /// The state directory.
    pub(super) fn state(&self) -> Result<PathBuf, Failure> {
        match &self.state {
            Some(state) => absolute(state),
            None => paths::state_dir(&env, self.project.as_deref()).map_err(|error| Failure::new(USAGE, error)),
        }
    }

    /// What a host is opened with.
    pub(super) async fn options(self) -> Result<Options, Failure> {
        let usage = |error: &dyn std::fmt::Display| Failure::new(USAGE, error);
        let state = self.state()?;
        let models = Models::from_config(&self.config, &env).map_err(|error| usage(&error))?;
        let runners = self.config.runners(&env).map_err(|error| usage(&error))?;
        let launchers = self.config.launchers(&env).map_err(|error| usage(&error))?;
        let mut options = Options::new(state, runner().await?);
        (options.runners, options.default_runner) = (runners, self.config.default_runner.clone());
        (options.launchers, options.default_launcher) = (launchers, self.config.default_launcher.clone());
        options.private = self.config.private(&env);
        if let Some(automatic) = self.automatic {
            tracing::info!("{}", automatic.words);
            options.default_runner_why = Some(automatic.words);
        }
        options.worktrees = self.config.worktrees.as_deref().map(|folder| self.config.resolve_path(folder, &env));
        options.adopts_orphans = system::prepare();
        options.lock_wait = LOCK_WITHIN;
        options.log = Some(options.state.join(super::place::LOG_FILE));
        options.trust = trust_dir();
        options.project = self.project;
        options.sources = self.sources;
        options.models = models;
        options.servers = self.servers;
        options.environment = Environment::new(env);
        options.key_variables.extend(self.config.key_variables());
        options.strict_models = self.config.strict_models;
        options.limits = self.config.limits;
        options.hooks = self.config.hooks;
        options.tool_aliases = self.config.tool_aliases;
        Ok(options)
    }
}

/// The state directory that was named.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::new(USAGE, format!("--state {}: {error}", path.display())))
}

/// `assistant-runner` beside this program, where it is of the same build; else this program as the runner, which needs
/// more memory.
pub(super) async fn runner() -> Result<RunnerCommand, Failure> {
    let me = std::env::current_exe().map_err(|error| Failure::new(super::FAILED, error))?;
    let beside = me.with_file_name(format!("assistant-runner{}", std::env::consts::EXE_SUFFIX));
    if beside.is_file() && build_id(&beside).await.as_deref() == Some(assistant_protocol::BUILD_ID) {
        return Ok(RunnerCommand::new(beside));
    }
    Ok(RunnerCommand { program: me, args: vec!["runner".into()] })
}

/// What a runner says that it was built from; a program that says much, or nothing for long, is none of ours.
async fn build_id(program: &Path) -> Option<String> {
    let mut command = tokio::process::Command::new(program);
    command.arg("--build-id").env_clear().kill_on_drop(true);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let mut said = Vec::new();
    let mut stdout = child.stdout.take()?.take(BUILD_ID_BYTES_MAX);
    let read = tokio::time::timeout(BUILD_ID_WITHIN, stdout.read_to_end(&mut said)).await;
    matches!(read, Ok(Ok(_))).then(|| String::from_utf8_lossy(&said).trim().to_owned())
}
