//! Runners that the configuration names: how a program of a stranger's is started as one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Config, ConfigError};
use crate::launcher::RunnerCommand;
use crate::runners::{Agent, Kind, MayBeAgent, OWN, Runner, kept};

/// The longest name of a runner, bytes.
const NAME_BYTES_MAX: usize = 64;
/// Variables that one runner gets besides.
const ENV_MAX: usize = 64;

/// One runner of `[runners.NAME]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunnerConfig {
    /// A program that is a runner, and its arguments. A program without a `/` is looked up in `PATH`; one with a `/`, and
    /// arguments that begin with `./`, `../` or `~/`, are paths of the configuration file.
    #[serde(default)]
    pub command: Option<Vec<String>>,
    /// A command-line agent that our own runner has an adapter for. Either this, `command` or `acp`.
    #[serde(default)]
    pub agent: Option<Agent>,
    /// The program of `agent`, where it is not the one of its name in `PATH`.
    #[serde(default)]
    pub program: Option<String>,
    /// Further arguments for the program of `agent`.
    #[serde(default)]
    pub args: Vec<String>,
    /// A program that speaks the Agent Client Protocol, and its arguments.
    #[serde(default)]
    pub acp: Option<Vec<String>>,
    /// Variables of the host's environment that it gets besides those of every runner of its kind.
    #[serde(default)]
    pub env: Vec<String>,
}

impl RunnerConfig {
    /// An agent, started from PATH, which gets these variables besides.
    #[cfg(feature = "cli")]
    pub(crate) fn of_agent(agent: Agent, env: Vec<String>) -> Self {
        Self { command: None, agent: Some(agent), program: None, args: Vec::new(), acp: None, env }
    }
}

impl MayBeAgent for RunnerConfig {
    fn is_agent(&self) -> bool {
        self.agent.is_some() || self.acp.is_some()
    }
}

impl Config {
    /// The runners that it names, and that its default is one of them.
    ///
    /// # Errors
    /// [`ConfigError::Value`] names the key, and what is wrong with it.
    pub fn runners(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<BTreeMap<String, Runner>, ConfigError> {
        let mut runners = BTreeMap::new();
        for name in self.runners.keys() {
            runners.insert(name.clone(), self.runner(name, env)?);
        }
        if let Some(Err(error)) = self.default_runner.as_deref().map(|name| kept(&runners, name)) {
            let message = format!("cannot be used: {error}; name one of them, or add [runners.NAME] with its command");
            return Err(self.value_error(self.default_key("runner"), message));
        }
        Ok(runners)
    }

    /// One of them.
    ///
    /// # Errors
    /// [`ConfigError::Value`] names the key, and what is wrong with it.
    pub(crate) fn runner(&self, name: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Runner, ConfigError> {
        let wrong = |key: String, message: &str| Err(self.value_error(key, message));
        if name == OWN {
            return wrong(
                format!("runners.{name}"),
                "has the name of the runner that comes with this program; name it otherwise",
            );
        }
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(plain) {
            let message = "is no name of a runner; it is made of letters, digits, `.`, `_` and `-`, and is short";
            return wrong(format!("runners.{name}"), message);
        }
        let Some(RunnerConfig { command, agent, program, args, acp, env: names }) = self.runners.get(name) else {
            return wrong(format!("runners.{name}"), "is not there");
        };
        let is_variable = |name: &&String| !name.is_empty() && !name.contains(['=', '\0', ' ', '$']);
        if names.len() > ENV_MAX || !names.iter().all(|name| is_variable(&name)) {
            let message = "is a list of names of variables, as [\"NAME\"]; their values are the host's own";
            return wrong(format!("runners.{name}.env"), message);
        }
        if agent.is_none() && (program.is_some() || !args.is_empty()) {
            let key = if program.is_some() { "program" } else { "args" };
            let message = "goes with `agent`; `command` and `acp` are lists of a program and its arguments";
            return wrong(format!("runners.{name}.{key}"), message);
        }
        let list = |key: &str, words: &[String]| self.command_of(&format!("runners.{name}.{key}"), words, env);
        let kind = match (command, agent, acp) {
            (Some(words), None, None) => Kind::Program(list("command", words)?),
            (None, None, Some(words)) => Kind::Acp(list("acp", words)?),
            (None, Some(agent), None) => {
                // The program comes first in a command: what stands there is read as that.
                let named = program.as_deref().unwrap_or(agent.name()).to_owned();
                let words: Vec<String> = std::iter::once(named).chain(args.iter().cloned()).collect();
                let RunnerCommand { program: found, args } = list("program", &words)?;
                Kind::Agent { agent: *agent, program: program.is_some().then_some(found), args }
            }
            _ => {
                let message = "takes one of `command` (a program that is a runner), `agent` (claude, codex, opencode, gemini) \
                               and `acp` (a program that speaks the Agent Client Protocol)";
                return wrong(format!("runners.{name}"), message);
            }
        };
        Ok(Runner { kind, env: names.clone() })
    }

    /// A program with its arguments, as it is written under `key`.
    fn command_of(
        &self,
        key: &str,
        words: &[String],
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<RunnerCommand, ConfigError> {
        let Some((program, args)) = words.split_first().filter(|(program, _)| !program.trim().is_empty()) else {
            return Err(self.value_error(key, "names no program; write it as [\"PROGRAM\", \"ARGUMENT\"]"));
        };
        let path = |written: &str| {
            let path = self.resolve_path(Path::new(written), env);
            std::path::absolute(&path).unwrap_or(path)
        };
        let program = if program.contains(std::path::is_separator) { path(program) } else { PathBuf::from(program) };
        let is_path = |arg: &str| ["./", "../", "~/"].iter().any(|begin| arg.starts_with(begin));
        let args = args.iter().map(|arg| if is_path(arg) { path(arg).into_os_string() } else { OsString::from(arg) });
        Ok(RunnerCommand { program, args: args.collect() })
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// What a runner's command comes to, or what is wrong.
    fn check(text: &str, expected: &str) {
        let env = |name: &str| (name == "HOME").then(|| "/h".to_owned());
        let read = Config::parse(text, Path::new("/c/config.toml")).and_then(|config| config.runners(&env));
        let told = match read {
            Ok(runners) => {
                let words = |one: &Runner| {
                    let one = one.command(&RunnerCommand::new("own"));
                    let args = one.args.iter().map(|arg| arg.to_string_lossy().into_owned());
                    std::iter::once(one.program.display().to_string()).chain(args).collect::<Vec<_>>().join(" ")
                };
                runners.iter().map(|(name, one)| format!("{name}: {}", words(one))).collect::<Vec<_>>().join("; ")
            }
            Err(error) => error.to_string(),
        };
        assert!(told.contains(expected), "{text}: {told}");
    }

    #[test]
    fn commands_are_read_and_faults_are_named() {
        check("", "");
        check("[runners.py]\ncommand = ['python3', '-u', './r.py', 'a/b']", "py: python3 -u /c/r.py a/b");
        check("[runners.a]\ncommand = ['bin/a', '~/x']\n[runners.b]\ncommand = ['/b']", "a: /c/bin/a /h/x; b: /b");
        check("default_runner = 'a'\n[runners.a]\ncommand = ['a']", "a: a");
        check("default_runner = 'assistant-runner'", "");
        check(
            "default_runner = 'b'\n[runners.a]\ncommand = ['a']",
            "`default_runner` cannot be used: no runner is called `b`; there are: assistant-runner, a",
        );
        check("default_runner = 'pythn'\n[runners.python]\ncommand = ['a']", "called `pythn` (`python` is); there are");
        check("[runners.a]\ncommand = []", "`runners.a.command` names no program");
        check("[runners.a]\ncommand = [' ']", "`runners.a.command` names no program");
        check("[runners.a]\ncommand = 'a b'", "line 2: invalid type: string \"a b\", expected a sequence");
        check("[runners.a]\ncommand = ['a']\ncwd = '/'", "unknown field `cwd`");
        check("[runners.a]\nagent = 'claude'\nenv = ['K']", "a: own cli claude --env K");
        let all = "[runners.a]\nagent = 'codex'\nprogram = './c'\nargs = ['-c', '~/x']";
        check(all, "a: own cli codex --program /c/c -- -c /h/x");
        check("[runners.a]\nacp = ['g', '--acp']", "a: own acp -- g --acp");
        check("[runners.a]\nacp = []", "`runners.a.acp` names no program");
        check("[runners.a]\nagent = 'claud'", "unknown variant `claud`, expected one of `claude`, `codex`");
        check("[runners.a]\nagent = 'claude'\nprogram = ''", "`runners.a.program` names no program");
        for none_or_two in ["", "agent = 'claude'\ncommand = ['a']", "acp = ['a']\nagent = 'gemini'"] {
            check(&format!("[runners.a]\n{none_or_two}"), "`runners.a` takes one of `command` (a program");
        }
        check("[runners.a]\ncommand = ['a']\nargs = ['b']", "`runners.a.args` goes with `agent`");
        check("[runners.a]\nagent = 'claude'\nenv = ['A=b']", "`runners.a.env` is a list of names of variables");
        check("[runners.assistant-runner]\ncommand = ['a']", "comes with this program");
        check("[runners.'a b']\ncommand = ['a']", "is no name of a runner");
    }
}
