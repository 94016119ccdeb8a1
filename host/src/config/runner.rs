//! Runners that the configuration names: how a program of a stranger's is started as one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Config, ConfigError};
use crate::launcher::RunnerCommand;
use crate::runners::{OWN, kept};

/// The longest name of a runner, bytes.
const NAME_BYTES_MAX: usize = 64;

/// One runner of `[runners.NAME]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunnerConfig {
    /// The program and its arguments. A program without a `/` is looked up in `PATH`; one with a `/`, and arguments that
    /// begin with `./`, `../` or `~/`, are paths of the configuration file.
    pub command: Vec<String>,
}

impl Config {
    /// The runners that it names, and that its default is one of them.
    ///
    /// # Errors
    /// [`ConfigError::Value`] names the key, and what is wrong with it.
    pub fn runners(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<BTreeMap<String, RunnerCommand>, ConfigError> {
        let mut runners = BTreeMap::new();
        for name in self.runners.keys() {
            runners.insert(name.clone(), self.runner(name, env)?);
        }
        if let Some(Err(error)) = self.default_runner.as_deref().map(|name| kept(&runners, name)) {
            let message = format!("cannot be used: {error}; name one of them, or add [runners.NAME] with its command");
            return Err(self.value_error("default_runner", message));
        }
        Ok(runners)
    }

    /// One of them.
    ///
    /// # Errors
    /// [`ConfigError::Value`] names the key, and what is wrong with it.
    pub(crate) fn runner(
        &self,
        name: &str,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<RunnerCommand, ConfigError> {
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
        let command = self.runners.get(name).map(|runner| runner.command.as_slice()).unwrap_or_default();
        let Some((program, args)) = command.split_first().filter(|(program, _)| !program.trim().is_empty()) else {
            return wrong(
                format!("runners.{name}.command"),
                "names no program; write it as [\"PROGRAM\", \"ARGUMENT\"]",
            );
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
                let words = |one: &RunnerCommand| {
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
        check("[runners.assistant-runner]\ncommand = ['a']", "comes with this program");
        check("[runners.'a b']\ncommand = ['a']", "is no name of a runner");
    }
}
