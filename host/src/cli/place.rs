//! Which host a command means: its state directory, and what it is to use. Nothing is opened.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::open::env;
use super::within::within;
use super::{Failure, Places, USAGE};
use crate::config::paths;
use crate::door::hello::{Asked, Hello, VARIABLES_MAX, Want};
use crate::registry::sha256_hex;

/// The build of this program.
pub(super) const BUILD: &str = env!("ASSISTANT_HOST_BUILD_ID");
/// The log of a host, in its state directory.
pub(super) const LOG_FILE: &str = "host.log";
/// The longest name of a variable that is told, bytes.
const VARIABLE_BYTES_MAX: usize = 64;

/// Which host is meant. All paths are absolute.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The state directory.
    pub(super) state: PathBuf,
    /// The project, where there is one.
    pub(super) project: Option<PathBuf>,
    /// The configuration that is read, whether it is there or not.
    pub(super) config: PathBuf,
    /// What was named.
    pub(super) asked: Asked,
}

impl Place {
    pub(super) fn find(places: &Places) -> Result<Self, Failure> {
        let usage = |error: &dyn std::fmt::Display| Failure::new(USAGE, error);
        let cwd = std::env::current_dir().map_err(|error| usage(&format!("there is no working folder: {error}")))?;
        let absolute =
            |path: &Path| std::path::absolute(path).map_err(|error| usage(&format!("{}: {error}", path.display())));
        let project = project(places, &cwd)?;
        let state = match &places.state {
            Some(state) => absolute(state)?,
            None => paths::state_dir(&env, project.as_deref()).map_err(|error| usage(&error))?,
        };
        let named = places.config.as_deref().map(absolute).transpose()?;
        let config = match &named {
            Some(named) => named.clone(),
            None => paths::default_path(&env).unwrap_or_else(|_| cwd.join("config.toml")),
        };
        let assistants = places.assistants.iter().map(|folder| absolute(folder)).collect::<Result<_, _>>()?;
        let named_project = places.project.is_some().then(|| project.clone()).flatten();
        Ok(Self { state, project, config, asked: Asked { config: named, project: named_project, assistants } })
    }

    /// The log of the host of this place.
    pub(super) fn log(&self) -> PathBuf {
        self.state.join(LOG_FILE)
    }

    /// What a client says to the host of this place.
    pub(super) fn hello(&self, want: Want, client: &str) -> Hello {
        let short = |name: OsString| name.into_string().ok().filter(|name| name.len() <= VARIABLE_BYTES_MAX);
        let within = within();
        Hello {
            want,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: BUILD.to_owned(),
            pid: std::process::id(),
            client: client.to_owned(),
            asked: self.asked.clone(),
            config_hash: Some(config_hash(&self.config)),
            variables: std::env::vars_os().filter_map(|(name, _)| short(name)).take(VARIABLES_MAX).collect(),
            level: within.level,
            within: within.process,
            profile: None,
        }
    }

    /// The arguments by which a host of this place is started from anywhere.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["--state".into(), self.state.clone().into()];
        match &self.project {
            Some(project) => arguments.extend(["--project".into(), project.clone().into()]),
            None => arguments.push("--no-project".into()),
        }
        if let Some(config) = &self.asked.config {
            arguments.extend(["--config".into(), config.clone().into()]);
        }
        for folder in &self.asked.assistants {
            arguments.extend(["--assistants".into(), folder.clone().into()]);
        }
        arguments
    }
}

/// The project of a command: named, told, found, or none.
pub(super) fn project(places: &Places, cwd: &Path) -> Result<Option<PathBuf>, Failure> {
    if places.no_project {
        return Ok(None);
    }
    let project = paths::project_of(&env, places.project.as_deref(), cwd);
    if let (Some(named), Some(project)) = (&places.project, &project)
        && !project.is_dir()
    {
        return Err(Failure::new(USAGE, format!("--project {}: there is no such folder", named.display())));
    }
    Ok(project)
}

/// Tells configurations apart. One that cannot be read is like none: whoever needs it says why.
pub(super) fn config_hash(file: &Path) -> String {
    sha256_hex(&std::fs::read(file).unwrap_or_default())
}
