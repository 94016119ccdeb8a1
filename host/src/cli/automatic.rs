//! The runner that is used where nothing is configured: the login of a coding agent that is found on this machine.

use super::logins;
use crate::config::{Config, RunnerConfig};

/// What was chosen, though nobody did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Automatic {
    /// What people are told of it.
    pub(super) words: String,
}

/// Lets assistants be run by an agent that is logged in to, where there is no model and nobody has named a runner.
/// Nothing is started for that.
pub(super) fn choose(config: &mut Config, env: &dyn Fn(&str) -> Option<String>) -> Option<Automatic> {
    let has_key = |name: &String| env(name).is_some_and(|key| !key.trim().is_empty());
    let is_configured = !config.models.is_empty() || config.default_model.is_some() || config.default_runner.is_some();
    if is_configured || crate::model::variables_of_keys().iter().any(has_key) {
        return None;
    }
    for found in logins::find(env).into_iter().filter(logins::Found::is_ready) {
        let (name, agent) = (found.agent.name(), found.agent.agent);
        match config.runners.get(name) {
            // One that was given this name for something else is left alone.
            Some(runner) if runner.agent != Some(agent) => continue,
            Some(_) => {}
            None => {
                let env = found.variable.map(str::to_owned).into_iter().collect();
                config.runners.insert(name.to_owned(), RunnerConfig::of_agent(agent, env));
            }
        }
        config.default_runner = Some(name.to_owned());
        let words = format!(
            "no model is configured; using your login of {} as the runner `{name}`; `assistant-host setup model` changes \
             that",
            found.agent.title
        );
        return Some(Automatic { words });
    }
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::path::Path;

    use super::*;

    /// The runner that is chosen for a configuration, in a home where Claude Code and Codex are logged in to.
    fn check(text: &str, programs: &[&str], variables: &[(&str, &str)], expected: Option<&str>) {
        let dir = tempfile::tempdir().expect("a folder");
        let write = |file: &str, text: &str| {
            let file = dir.path().join(file);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
            std::fs::write(&file, text).expect("a file");
            file
        };
        write(".claude/.credentials.json", r#"{"claudeAiOauth":{"accessToken":"t"}}"#);
        write(".codex/auth.json", r#"{"OPENAI_API_KEY":"k"}"#);
        for program in programs {
            let file = write(&format!("bin/{program}"), "");
            std::fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
        }
        let env = |name: &str| match name {
            "HOME" => Some(dir.path().display().to_string()),
            "PATH" => Some(dir.path().join("bin").display().to_string()),
            name => variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned()),
        };
        let mut config = Config::parse(text, Path::new("c.toml")).expect("reads");
        let before = config.default_runner.clone();
        let chosen = choose(&mut config, &env);
        let runner = config.default_runner.clone().filter(|_| chosen.is_some());
        assert_eq!(runner.as_deref(), expected, "{text} {programs:?} {variables:?}");
        assert!(chosen.is_some() || config.default_runner == before, "{text}");
        config.runners(&env).expect("it fits");
    }

    #[test]
    fn an_agent_is_chosen_only_where_nothing_else_is() {
        check("", &[], &[], None);
        check("", &["claude", "codex"], &[], Some("claude"));
        check("", &["codex"], &[], Some("codex"));
        check("", &["gemini", "opencode"], &[], None);
        check("", &["claude"], &[("ANTHROPIC_API_KEY", "k")], None);
        check("", &["claude"], &[("ANTHROPIC_API_KEY", "  ")], Some("claude"));
        check("[models.m]\nprovider = 'openai'\nmodel = 'm'", &["claude"], &[], None);
        check("default_runner = 'assistant-runner'", &["claude"], &[], None);
        check("[defaults]\nrunner = 'assistant-runner'", &["claude"], &[], None);
        check("[runners.claude]\nagent = 'claude'\nprogram = '/c'", &["claude"], &[], Some("claude"));
        check("[runners.claude]\ncommand = ['c']", &["claude", "codex"], &[], Some("codex"));
        check("[limits]\ndepth = 2", &["claude"], &[], Some("claude"));
    }
}
