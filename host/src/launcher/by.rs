//! A way to start runners that the configuration names: in a sandbox, in a container, on another machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::presets::{BROUGHT, Preset, Setting};
use super::{CLIENT_ENVIRONMENT, RunnerCommand};

/// How long one may take to bring up a runner elsewhere, milliseconds, where nothing else is said.
pub const SLOW_LAUNCH_MS: u64 = 60_000;

/// How names of variables begin that the loader and the library of every program heed.
const LOADERS: &[&str] = &["LD_", "DYLD_", "GLIBC_", "GCONV_", "LOCPATH", "MALLOC_"];
/// How names of variables begin that shells, interpreters and clients of engines heed: what they run, whom they reach, where
/// their settings are.
const CLIENTS: &[&str] = &[
    "ALL_PROXY",
    "BASH",
    "BUILDAH_",
    "CONTAINER",
    "DBUS_",
    "DOCKER_",
    "GODEBUG",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "IFS",
    "KUBE",
    "NODE_OPTIONS",
    "NOMAD_",
    "NO_PROXY",
    "PERL5",
    "PODMAN_",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONUSERBASE",
    "PYTHONWARNINGS",
    "REGISTRY_AUTH_FILE",
    "RUBY",
    "SBATCH_",
    "SHELLOPTS",
    "SLURM_",
    "SRUN_",
    "SSH_",
    "SSL_CERT_",
    "STORAGE_DRIVER",
    "STORAGE_OPTS",
    "TMPDIR",
    "XDG_",
    "_CONTAINERS_",
];

/// Whose files the working folder of a process is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Files {
    /// Of the machine of the host: the tools of the host read what the assistant works on.
    #[default]
    Here,
    /// Of another one: what is read here would be something else.
    Elsewhere,
}

/// What becomes of the tool servers that only this process has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Servers {
    /// They are started where the runner is, in the same way.
    Inside,
    /// They are not started, which is told.
    #[default]
    Withheld,
    /// They are started on this machine, outside of whatever the launcher fences in.
    Outside,
}

/// Words of a command that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// The words, with placeholders.
    pub words: Vec<String>,
    /// They are left out where the process has no working folder.
    pub with_dir: bool,
}

/// One launcher of `[launchers.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// Its name.
    pub name: String,
    /// The preset that it is of.
    pub preset: Option<&'static Preset>,
    /// What is run.
    pub argv: Vec<Words>,
    /// What ends a process that was killed here; empty where nothing has to.
    pub kill: Vec<String>,
    /// The program of our runner over there; none is where it is here.
    pub runner: Option<String>,
    /// The program of the runner that is brought along, where that is not the one of the host.
    pub bring: Option<PathBuf>,
    /// How long it may take until the runner answers, milliseconds.
    pub launch_ms: Option<u64>,
    /// Where the working folder is.
    pub files: Files,
    /// What becomes of tool servers.
    pub servers: Servers,
    /// The folder over there, where a process has none of its own.
    pub dir: Option<String>,
    /// Variables of the host that the runner gets beside the usual ones.
    pub env: Vec<String>,
    /// Whether there is a network inside.
    pub network: bool,
    /// Whether the working folder may be written to.
    pub write: bool,
    /// What else may be written to.
    pub bind: Vec<PathBuf>,
    /// What else may be read.
    pub bind_read: Vec<PathBuf>,
}

impl Launcher {
    /// How long a runner may take to answer; `local_ms` is what it may on this machine.
    #[must_use]
    pub fn within(&self, local_ms: u64) -> Duration {
        let slow = self.preset.map_or(self.files == Files::Elsewhere, |preset| preset.slow);
        let default = if slow { SLOW_LAUNCH_MS.max(local_ms) } else { local_ms };
        Duration::from_millis(self.launch_ms.unwrap_or(default))
    }

    /// Whether nothing inside reaches a network.
    #[must_use]
    pub fn is_without_network(&self) -> bool {
        !self.network && self.preset.is_some_and(|preset| preset.takes.contains(&Setting::Network))
    }

    /// Whether the working folder is on another machine.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        self.files == Files::Elsewhere
    }

    /// Whether its command tells the runner's variables; else the runner inherits them.
    pub(super) fn tells_variables(&self) -> bool {
        self.mentions(&["{env}", "{variable}", "{variables}", "{shell}"])
    }

    /// Whether it tells only their names: the values are those of its own variables.
    pub(super) fn tells_names(&self) -> bool {
        self.mentions(&["{variable}", "{variables}"])
    }

    /// Whether what it tells of variables is in a command line, for all to see.
    pub(crate) fn shows_values(&self) -> bool {
        self.mentions(&["{env}", "{shell}"])
    }

    /// Whether a variable of this name would be heeded by the launcher's own program, which is outside of what it fences in,
    /// when it is only meant for what is inside.
    pub(crate) fn heeds(&self, variable: &str) -> bool {
        if self.program().is_none() || (self.tells_variables() && !self.tells_names()) {
            return false;
        }
        let name = variable.to_ascii_uppercase();
        let begins = |all: &[&str]| all.iter().any(|begin| name.starts_with(begin));
        // Nothing but what loads and starts programs heeds those of bubblewrap.
        let plain = self.preset.is_some_and(|preset| preset.name == "bwrap");
        let of_clients = || name == "ENV" || begins(CLIENTS) || CLIENT_ENVIRONMENT.contains(&name.as_str());
        name == "PATH" || begins(LOADERS) || (!plain && of_clients())
    }

    pub(super) fn mentions(&self, placeholders: &[&str]) -> bool {
        let words = self.argv.iter().flat_map(|one| &one.words);
        words.into_iter().any(|word| placeholders.iter().any(|placeholder| word.contains(placeholder)))
    }

    /// The program that it is; none where that is the runner itself.
    #[must_use]
    pub fn program(&self) -> Option<&str> {
        let first = self.argv.first().and_then(|one| one.words.first())?;
        (first != "{runner}").then_some(first.as_str())
    }

    /// A runner's command as it is over there; `own` is that of the host's own runner.
    pub(super) fn over_there(&self, command: &RunnerCommand, own: &RunnerCommand) -> RunnerCommand {
        let is_own = command.program == own.program && command.args.starts_with(&own.args);
        let (Some(runner), true) = (&self.runner, is_own) else { return command.clone() };
        // What is brought along may be a program that is a runner among other things.
        let skipped = if self.brings() && self.bring.is_none() { 0 } else { own.args.len() };
        RunnerCommand { program: PathBuf::from(runner), args: command.args[skipped..].to_vec() }
    }

    /// Whether the runner is brought along.
    pub(super) fn brings(&self) -> bool {
        self.runner.as_deref() == Some(BROUGHT) && self.mentions(&["{volumes}"])
    }

    /// The program that is brought along, if one is.
    pub(super) fn brought<'a>(&'a self, own: &'a RunnerCommand) -> Option<&'a Path> {
        self.brings().then(|| self.bring.as_deref().unwrap_or(&own.program))
    }

    /// Words about a program that is not there.
    pub(crate) fn not_installed(&self) -> String {
        let program = self.program().unwrap_or("of the runner");
        let install = self.preset.map(|preset| preset.install).filter(|install| !install.is_empty());
        let install = install.unwrap_or("install it, or name its whole path in `argv`");
        format!("there is no program {program} here; {install}")
    }
}
