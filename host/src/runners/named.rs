//! What can be named as a runner: a program that is one, or an agent that people have, behind an adapter of our own runner.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::launcher::{Passes, RunnerCommand};

/// A command-line agent that our runner has an adapter for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// opencode.
    Opencode,
    /// Gemini CLI.
    Gemini,
}

impl Agent {
    /// Its name in the configuration and for the adapter, which is that of its program, too.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Gemini => "gemini",
        }
    }
}

/// What a runner is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A program that is a runner.
    Program(RunnerCommand),
    /// A command-line agent.
    Agent {
        /// Which.
        agent: Agent,
        /// Its program; none is the one of its name in `PATH`.
        program: Option<PathBuf>,
        /// Further arguments for it.
        args: Vec<OsString>,
    },
    /// A program that speaks the Agent Client Protocol.
    Acp(RunnerCommand),
}

/// A runner that can be named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runner {
    /// What it is.
    pub kind: Kind,
    /// Variables of the host's environment that it gets besides those of every runner of its kind.
    pub env: Vec<String>,
}

impl From<RunnerCommand> for Runner {
    fn from(command: RunnerCommand) -> Self {
        Self { kind: Kind::Program(command), env: Vec::new() }
    }
}

impl Runner {
    /// Whether it is known to run an agent that has its own model and tools. A program may turn out to do so when it runs.
    #[must_use]
    pub fn is_agent(&self) -> bool {
        match self.kind {
            Kind::Program(_) => false,
            Kind::Agent { .. } | Kind::Acp(_) => true,
        }
    }

    /// Whether it is any program that speaks the Agent Client Protocol: what else that understands is not known.
    #[cfg(feature = "cli")]
    pub(crate) fn is_acp(&self) -> bool {
        matches!(self.kind, Kind::Acp(_))
    }

    /// How it is started: an adapter is a mode of the host's `own` runner.
    #[must_use]
    pub fn command(&self, own: &RunnerCommand) -> RunnerCommand {
        let adapter = |mode: &[&str]| {
            let mut command = own.clone();
            command.args.extend(mode.iter().map(OsString::from));
            command
        };
        let names = self.env.iter().flat_map(|name| ["--env".into(), name.into()]);
        match &self.kind {
            Kind::Program(command) => command.clone(),
            Kind::Agent { agent, program, args } => {
                let mut command = adapter(&["cli", agent.name()]);
                let named = |path: &PathBuf| ["--program".into(), path.clone().into_os_string()];
                command.args.extend(program.iter().flat_map(named));
                command.args.extend(names);
                if !args.is_empty() {
                    command.args.push("--".into());
                    command.args.extend(args.iter().cloned());
                }
                command
            }
            Kind::Acp(agent) => {
                let mut command = adapter(&["acp"]);
                command.args.extend(names);
                command.args.extend(["--".into(), agent.program.clone().into_os_string()]);
                command.args.extend(agent.args.iter().cloned());
                command
            }
        }
    }

    /// What it gets of the host's environment.
    #[must_use]
    pub fn passes(&self) -> Passes {
        Passes { agent: self.is_agent(), names: self.env.clone() }
    }

    /// The program that has to be there for it.
    #[must_use]
    pub fn program(&self) -> &Path {
        match &self.kind {
            Kind::Program(command) | Kind::Acp(command) => &command.program,
            Kind::Agent { agent, program, .. } => program.as_deref().unwrap_or(Path::new(agent.name())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adapters_are_modes_of_our_runner() {
        let own = RunnerCommand { program: "host".into(), args: vec!["runner".into()] };
        let check = |kind: Kind, env: &[&str], want: &str| {
            let env = env.iter().map(ToString::to_string).collect();
            let command = Runner { kind, env }.command(&own);
            let words = command.args.iter().map(|arg| arg.to_string_lossy().into_owned());
            let words: Vec<String> = std::iter::once(command.program.display().to_string()).chain(words).collect();
            assert_eq!(words.join(" "), want);
        };
        let of = |program: &str, args: &[&str]| RunnerCommand {
            program: program.into(),
            args: args.iter().map(OsString::from).collect(),
        };
        check(Kind::Program(of("/r", &["-u"])), &["A"], "/r -u");
        let plain = Kind::Agent { agent: Agent::Claude, program: None, args: Vec::new() };
        check(plain, &[], "host runner cli claude");
        let all =
            Kind::Agent { agent: Agent::Codex, program: Some("/bin/c".into()), args: vec!["-c".into(), "x=1".into()] };
        check(all, &["A", "B"], "host runner cli codex --program /bin/c --env A --env B -- -c x=1");
        check(Kind::Acp(of("g", &["--acp"])), &["K"], "host runner acp --env K -- g --acp");
    }
}
