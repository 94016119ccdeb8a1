//! `config lint` of a host's configuration: all that is wrong with it, and what the environment lacks for it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toml_edit::{Document, Item};

use super::check::CheckArgs;
use super::open::env;
use super::{USAGE, counted, say, talk};
use crate::config::{Config, ConfigError, text_of};
use crate::model::Models;
use crate::runners::MayBeAgent;
use crate::runners::{Kind, Runner};
use crate::servers::{Configured, Lack, ServerConfig, lacks};
use crate::single::Finding;

/// Tells what was found in a file, and gives the exit code.
pub(super) fn tell(file: &Path, findings: &[Finding], args: &CheckArgs) -> u8 {
    // What the environment lacks here is no fault of the file.
    let severity = |finding: &Finding| if finding.warning || finding.of_environment { "warning" } else { "error" };
    let errors = findings.iter().filter(|finding| severity(finding) == "error").count();
    let warnings = findings.len() - errors;
    if args.json() {
        let found: Vec<Value> = findings
            .iter()
            .map(|one| json!({ "severity": severity(one), "key": one.key, "line": one.line, "message": one.message }))
            .collect();
        say(&json!({ "file": file.display().to_string(), "findings": found }).to_string());
    } else {
        for one in findings {
            say(&format!("{}: {}", severity(one), one.in_words(file)));
        }
        talk(&format!("{}: {}, {}", file.display(), counted(errors, "error"), counted(warnings, "warning")));
    }
    match (errors, warnings) {
        (0, 0) => 0,
        (0, _) => args.code_of_warnings(),
        _ => USAGE,
    }
}

/// What is wrong with the configuration of a host, in the order of its lines.
pub(super) fn of_host(file: &Path) -> Vec<Finding> {
    let text = match text_of(file) {
        Ok(text) => text,
        Err(error) => return vec![finding("", 0, format!("it cannot be read: {error}"))],
    };
    let config = match Config::shaped(&text, file) {
        Ok(config) => config,
        Err(error) => return vec![of_error(&text, &error)],
    };
    let mut found = Vec::new();
    if let Err(error) = config.in_range() {
        found.push(of_error(&text, &error));
    }
    for preset in &config.tool_presets {
        let read = Configured::read(&std::collections::BTreeMap::new(), std::slice::from_ref(preset));
        found.extend(read.err().map(|(key, message)| finding(&key, line_of(&text, &key), message)));
    }
    for (name, server) in &config.mcp_servers {
        let alone = std::iter::once((name.clone(), server.clone())).collect();
        match Configured::read(&alone, &[]) {
            Ok(_) => of_server(&text, name, server, &mut found),
            Err((key, message)) => found.push(finding(&key, line_of(&text, &key), message)),
        }
    }
    for name in config.runners.keys() {
        match config.runner(name, &env) {
            Ok(runner) => of_runner(&text, name, &runner, &mut found),
            Err(error) => found.push(of_error(&text, &error)),
        }
    }
    // What is wrong with one of them is told above.
    if let Err(error @ ConfigError::Value { .. }) = config.runners(&env)
        && matches!(&error, ConfigError::Value { key, .. } if *key == config.default_key("runner"))
    {
        found.push(of_error(&text, &error));
    }
    launchers(&text, &config, &mut found);
    match Models::from_config(&config, &env) {
        Ok(models) => {
            for (name, _, model) in models.all() {
                let Err(why) = model else { continue };
                let key = format!("models.{name}");
                let message = format!("cannot be used here: {why}");
                found.push(Finding { of_environment: true, ..finding(&key, line_of(&text, &key), message) });
            }
        }
        Err(error) => found.push(of_error(&text, &error)),
    }
    found.sort_by_key(|one| one.line);
    found
}

/// What a server lacks: variables that are not set, texts that nothing can be filled into, a program that is not there.
fn of_server(text: &str, name: &str, server: &ServerConfig, found: &mut Vec<Finding>) {
    if !server.enabled {
        return;
    }
    let alone = [("command", &server.command), ("cwd", &server.cwd), ("url", &server.url)];
    let alone = alone.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text.as_ref()?)));
    let args = server.args.iter().map(|text| ("args".to_owned(), text));
    let env_of = server.env.iter().map(|(name, text)| (format!("env.{name}"), text));
    let headers = server.headers.iter().map(|(name, text)| (format!("headers.{name}"), text));
    for (key, written) in alone.chain(args).chain(env_of).chain(headers) {
        let key = format!("mcp_servers.{name}.{key}");
        for lack in lacks(written, &env) {
            let (why, of_environment) = match lack {
                Lack::Unset(name) => (format!("the variable {name} is not set here"), true),
                Lack::Key(_) | Lack::Odd(_) => (lack.to_string(), false),
            };
            let message = format!("cannot be filled in: {why}; the server does not start without it");
            found.push(Finding { of_environment, ..finding(&key, line_of(text, &key), message) });
        }
    }
    let written = server.command.as_deref().filter(|command| !command.contains('$') && !command.starts_with("~/"));
    if let Some(command) = written.filter(|command| !is_there(command, server.cwd.is_some())) {
        let key = format!("mcp_servers.{name}.command");
        let message = format!("names {command}, and there is no such program here; install it, or name its whole path");
        found.push(Finding { of_environment: true, ..finding(&key, line_of(text, &key), message) });
    }
}

/// A runner whose program is not there.
fn of_runner(text: &str, name: &str, runner: &Runner, found: &mut Vec<Finding>) {
    let program = runner.program().to_string_lossy();
    if !is_there(&program, false) {
        let key = match &runner.kind {
            Kind::Program(_) => "command",
            Kind::Acp(_) => "acp",
            Kind::Agent { program: Some(_), .. } => "program",
            Kind::Agent { program: None, .. } => "agent",
        };
        let key = format!("runners.{name}.{key}");
        let message = format!("names {program}, and there is no such program here; install it, or name its whole path");
        found.push(Finding { of_environment: true, ..finding(&key, line_of(text, &key), message) });
    }
}

/// What is wrong with launchers: keys, a program or a path that is not there, an agent that would not reach its model.
fn launchers(text: &str, config: &Config, found: &mut Vec<Finding>) {
    for name in config.launchers.keys() {
        let launcher = match config.launcher(name, &env) {
            Ok(launcher) => launcher,
            Err(error) => {
                found.push(of_error(text, &error));
                continue;
            }
        };
        let mut here = |key: &str, message: String, of_environment: bool| {
            let key = format!("launchers.{name}{key}");
            let warning = !of_environment;
            found.push(Finding { of_environment, warning, ..finding(&key, line_of(text, &key), message) });
        };
        if launcher.program().is_some_and(|program| !is_there(program, false)) {
            here("", format!("cannot be used here: {}", launcher.not_installed()), true);
        }
        for (key, paths) in [(".bind", &launcher.bind), (".bind_read", &launcher.bind_read)] {
            if let Some(missing) = paths.iter().find(|path| !path.exists()) {
                let message = format!("names {}, which is not there; nothing starts until it is", missing.display());
                here(key, message, true);
            }
        }
        let agent = config.runners.iter().find(|(_, runner)| runner.is_agent());
        if let Some((agent, _)) = agent.filter(|_| launcher.is_without_network()) {
            let message = format!(
                "has no network, so that the agent of [runners.{agent}] does not reach its model; `network = true`"
            );
            here("", message, false);
        }
    }
    // What is wrong with one of them is told above.
    if let Err(error @ ConfigError::Value { .. }) = config.launchers(&env)
        && matches!(&error, ConfigError::Value { key, .. } if key == "default_launcher")
    {
        found.push(of_error(text, &error));
    }
}

/// Whether a program is there, as far as that is known before it is started: a relative path starts where the server runs.
fn is_there(command: &str, elsewhere: bool) -> bool {
    let path = Path::new(command);
    match path.components().count() {
        1 => std::env::split_paths(&env("PATH").unwrap_or_default()).any(|folder| is_program(&folder.join(path))),
        _ => path.is_file() || (path.is_relative() && elsewhere),
    }
}

fn is_program(path: &Path) -> bool {
    let ended = |ending: &&str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name).is_file()
    };
    let endings: &[&str] = if cfg!(windows) { &["", ".exe", ".cmd", ".bat"] } else { &[""] };
    endings.iter().any(ended)
}

fn finding(key: &str, line: u32, message: String) -> Finding {
    Finding { key: key.to_owned(), line, message, warning: false, of_environment: false }
}

fn of_error(text: &str, error: &ConfigError) -> Finding {
    match error {
        ConfigError::Unreadable { source, .. } => finding("", 0, format!("it cannot be read: {source}")),
        ConfigError::Wrong { line, message, .. } => {
            finding("", u32::try_from(*line).unwrap_or(0), one_sentence(message))
        }
        ConfigError::Value { key, message, .. } => finding(key, line_of(text, key), message.clone()),
    }
}

/// A parser's lines as one.
fn one_sentence(message: &str) -> String {
    crate::text::one_line(message.trim())
}

/// The line of a key, dotted, or of the nearest one around it that is there; 0 is none.
fn line_of(text: &str, key: &str) -> u32 {
    let Ok(document) = Document::parse(text) else { return 0 };
    let (mut item, mut line, mut rest) = (document.as_item(), 0, key);
    while let Some(table) = item.as_table_like() {
        // A name may have dots in it.
        let ends = rest.match_indices('.').map(|(at, _)| at).chain([rest.len()]);
        let Some((name, end)) = ends.map(|end| (&rest[..end], end)).find(|(name, _)| table.contains_key(name)) else {
            break;
        };
        if let Some(span) = table.key(name).and_then(toml_edit::Key::span) {
            let before = text.as_bytes()[..span.start.min(text.len())].iter().filter(|byte| **byte == b'\n').count();
            line = u32::try_from(before + 1).unwrap_or(0);
        }
        item = table.get(name).unwrap_or(&Item::None);
        rest = rest[end..].trim_start_matches('.');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_key_is_found() {
        let text = "a = 1\n[limits]\ndepth = 0\n\n[mcp_servers.\"x.y\"]\ncommand = 'a'\n[mcp_servers.z.env]\nK = 'v'\n";
        for (key, line) in [
            ("a", 1),
            ("limits.depth", 3),
            ("mcp_servers.x.y", 5),
            ("mcp_servers.x.y.command", 6),
            ("mcp_servers.z.env.K", 8),
            ("limits.none", 2),
            ("none", 0),
        ] {
            assert_eq!(line_of(text, key), line, "{key}");
        }
        assert_eq!(line_of("not = [", "not"), 0);
    }
}
