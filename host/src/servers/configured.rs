//! The servers of the configuration: `[mcp_servers.NAME]`, and those that `tool_presets` names.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::presets;
use super::spec::{How, Spec};

/// One server of `[mcp_servers.NAME]`. `${VAR}` in its values is a variable of the host.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// The program that it is.
    #[serde(default)]
    pub command: Option<String>,
    /// The arguments of the program.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables of the program, beside PATH, HOME and the like.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The folder that the program runs in; the project's, unless it is given.
    #[serde(default)]
    pub cwd: Option<String>,
    /// The address of a server that is reached over HTTP.
    #[serde(default)]
    pub url: Option<String>,
    /// Headers of each request to the address.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Whether all assistants use one server; else each process has its own.
    #[serde(default = "yes")]
    pub shared: bool,
    /// Whether it is used at all.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// The longest that one call may take, milliseconds; `limits.tool_call_ms` holds all the same.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// The longest that its start may take, milliseconds, in place of `limits.server_start_ms`.
    #[serde(default)]
    pub start_timeout_ms: Option<u64>,
    /// The only tools of it that assistants may have; `*` in a name is any text.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
}

fn yes() -> bool {
    true
}

/// Without the values of variables and headers.
impl std::fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.spec("").fmt(f)
    }
}

impl ServerConfig {
    fn spec(&self, name: &str) -> Spec {
        let how = match (&self.command, &self.url) {
            _ if !self.enabled => How::Off,
            (Some(command), None) => How::Program {
                command: command.clone(),
                args: self.args.clone(),
                env: self.env.clone(),
                folder: self.cwd.clone(),
            },
            (None, Some(url)) => How::Http { url: url.clone(), headers: self.headers.clone(), sse: false },
            _ => How::Unusable("it tells neither a command nor an address, or both".to_owned()),
        };
        Spec {
            timeout_ms: self.timeout_ms,
            start_ms: self.start_timeout_ms,
            shared: self.shared,
            only: self.tools.clone(),
            ..Spec::new(name, how)
        }
    }

    /// What is wrong with it, and what to do.
    fn wrong(&self) -> Option<&'static str> {
        let Self { command, args, env, cwd, url, headers, .. } = self;
        match (command, url) {
            (None, None) => Some("has neither a `command` nor a `url`; give one of them"),
            (Some(_), Some(_)) => Some("has both a `command` and a `url`; give one of them"),
            (Some(command), None) if command.trim().is_empty() => Some("has an empty `command`; name a program"),
            (Some(_), None) if !headers.is_empty() => Some("has `headers`, which go with a `url` only"),
            (None, Some(url))
                if !url.starts_with("http://") && !url.starts_with("https://") && !url.starts_with('$') =>
            {
                Some("has a `url` that is none of http or https")
            }
            (None, Some(_)) if !args.is_empty() || !env.is_empty() || cwd.is_some() => {
                Some("has `args`, `env` or `cwd`, which go with a `command` only")
            }
            (None, Some(_)) if cfg!(not(feature = "http-servers")) => {
                Some("has a `url`, and this build speaks to programs only (feature `http-servers`)")
            }
            _ if self.timeout_ms == Some(0) || self.start_timeout_ms == Some(0) => {
                Some("has a timeout of 0, so that nothing could be done; leave it out, or give milliseconds")
            }
            _ => None,
        }
    }
}

/// The servers that a host knows by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Configured(BTreeMap<String, Spec>);

impl Configured {
    /// Those of a configuration. One that is configured under the name of a preset takes the place of that.
    ///
    /// # Errors
    /// The dotted key, and what is wrong with it.
    pub fn read(servers: &BTreeMap<String, ServerConfig>, presets: &[String]) -> Result<Self, (String, String)> {
        let mut found = BTreeMap::new();
        for name in presets {
            let Some(preset) = presets::preset(name) else {
                let known = presets::names();
                return Err(("tool_presets".to_owned(), format!("names `{name}`, and there are only {known}")));
            };
            let mut words = preset.command.iter().map(ToString::to_string);
            // Commands find the folder of the project by this name; where there is none, there is no such server.
            let env = BTreeMap::from([("PROJECT".to_owned(), "${PROJECT}".to_owned())]);
            let how = How::Program {
                command: words.next().unwrap_or_default(),
                args: words.collect(),
                env,
                folder: preset.shared.then(|| "${PROJECT}".to_owned()),
            };
            found.insert(name.clone(), Spec { shared: preset.shared, ..Spec::new(name, how) });
        }
        for (name, config) in servers {
            let key = format!("mcp_servers.{name}");
            if name.trim().is_empty() || name.chars().count() > super::NAME_CHARS_MAX {
                let most = super::NAME_CHARS_MAX;
                return Err((key, format!("has a name that is empty or longer than {most} characters; shorten it")));
            }
            if let Some(wrong) = config.wrong() {
                return Err((key, wrong.to_owned()));
            }
            found.insert(name.clone(), config.spec(name));
        }
        Ok(Self(found))
    }

    /// The server of this name. Cases count, unless only one has it in another case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Spec> {
        self.0.get(name).or_else(|| {
            let mut alike = self.0.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
            alike.next().map(|(_, spec)| spec).filter(|_| alike.next().is_none())
        })
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Spec> {
        self.0.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Configured, (String, String)> {
        let map: BTreeMap<String, ServerConfig> = toml::from_str(text).expect("TOML");
        Configured::read(&map, &["shell".to_owned()])
    }

    #[test]
    fn what_is_wrong_is_named() {
        let check = |text: &str, part: &str| {
            let (key, message) = read(text).expect_err("refused");
            assert!(key == "mcp_servers.a" && message.contains(part), "{key} {message}");
        };
        check("[a]", "neither");
        check("[a]\ncommand = 'x'\nurl = 'https://x'", "both");
        check("[a]\ncommand = ' '", "empty");
        check("[a]\nurl = 'ftp://x'", "none of http");
        check("[a]\nurl = 'https://x'\nargs = ['y']", "`command` only");
        check("[a]\ncommand = 'x'\nheaders = {A = 'b'}", "`url` only");
        check("[a]\ncommand = 'x'\ntimeout_ms = 0", "timeout of 0");
        let refused = Configured::read(&BTreeMap::new(), &["word".to_owned()]).expect_err("refused");
        assert_eq!(refused.1, "names `word`, and there are only `filesystem`, `shell`");
    }

    #[test]
    fn a_configured_server_takes_the_place_of_a_preset_and_shows_no_secret() {
        let found =
            read("[shell]\ncommand = 'mine'\nenv = {T = 'very-secret'}\n[Docs]\nurl = 'https://d'").expect("reads");
        assert!(matches!(&found.get("shell").expect("it").how, How::Program { command, .. } if command == "mine"));
        assert!(found.get("docs").is_some() && found.get("none").is_none());
        assert!(!format!("{found:?}").contains("very-secret"), "{found:?}");
    }
}
