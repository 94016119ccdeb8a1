//! The configuration file: TOML, every key known, every error naming the file, the line and what to do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::hooks::Hooks;
use crate::limits::Limits;
use crate::model::prices::{Price, Prices};
use crate::servers::{Configured, ServerConfig};

mod defaults;
mod launcher;
pub mod paths;
mod runner;
mod secret;

pub use defaults::Defaults;
pub use launcher::LauncherConfig;
pub use runner::RunnerConfig;
pub use secret::{Secret, read_key_file};

/// The longest configuration file that is read, bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// What a person configures. Everything has a default: no file is a configuration too.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where it was read from, or would be; messages name it.
    #[serde(skip)]
    pub path: PathBuf,
    /// What is used where a definition names nothing; what stands here stands in `default_model` and the like, too.
    pub defaults: Defaults,
    /// The model of an assistant whose definition names none.
    pub default_model: Option<String>,
    /// A definition that names an unknown model is refused instead of getting the default one.
    pub strict_models: bool,
    /// The models, by the name that definitions and commands use.
    pub models: BTreeMap<String, ModelConfig>,
    /// What models cost, by the provider's name for them; above the table that comes with the program.
    pub prices: Prices,
    /// Further names of models.
    pub model_aliases: BTreeMap<String, String>,
    /// Tools of other systems by the tool of ours that stands in.
    pub tool_aliases: BTreeMap<String, String>,
    /// Tool servers that assistants can ask for, by name.
    pub mcp_servers: BTreeMap<String, ServerConfig>,
    /// Well-kept tool servers that come by a name: `filesystem`, `shell`.
    pub tool_presets: Vec<String>,
    /// Runners of others, by the name that definitions and commands use.
    pub runners: BTreeMap<String, RunnerConfig>,
    /// The runner of an assistant whose definition names none.
    pub default_runner: Option<String>,
    /// Where and in what runners are started, by the name that definitions use.
    pub launchers: BTreeMap<String, LauncherConfig>,
    /// The launcher of an assistant that none is named for. Left out, it is this machine as it is.
    pub default_launcher: Option<String>,
    /// Where git worktrees are made for assistants that have their own. A path of this file.
    pub worktrees: Option<PathBuf>,
    /// Commands that are run when a process ends or asks.
    pub hooks: Hooks,
    /// What is allowed.
    pub limits: Limits,
}

/// One model of `[models.NAME]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// What speaks to it.
    pub provider: Provider,
    /// Its name at the provider, sent exactly so. Not needed for `scripted`.
    #[serde(default)]
    pub model: Option<String>,
    /// Where the provider is, without the last part (`chat/completions`, `messages`). An address without a path gets
    /// that of the API (`/v1`, of Gemini `/v1beta`). Left out, it is the provider's own.
    #[serde(default)]
    pub base_url: Option<String>,
    /// The environment variable that holds the key.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// The file that holds the key; readable by its owner only. Relative to the configuration file.
    #[serde(default)]
    pub api_key_file: Option<PathBuf>,
    /// Most tokens of one answer.
    #[serde(default)]
    pub max_output_tokens: Option<u32>,
    /// Tokens that the model takes as input and output together.
    #[serde(default)]
    pub context_tokens: Option<u32>,
    /// Settings of the provider's own, added to each request's body.
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// What it costs, where [`crate::model::prices`] does not know it or is wrong. Unknown is not zero.
    #[serde(default)]
    pub price: Option<Price>,
    /// The script of a `scripted` model. Relative to the configuration file.
    #[serde(default)]
    pub script: Option<PathBuf>,
}

/// What speaks to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Chat completions of OpenAI, and every server that speaks them.
    #[serde(rename = "openai")]
    OpenAi,
    /// Responses of OpenAI, whose thoughts go back to it.
    #[serde(rename = "openai_responses")]
    OpenAiResponses,
    /// Messages of Anthropic.
    Anthropic,
    /// Gemini of Google.
    Gemini,
    /// Ollama, by its own format.
    Ollama,
    /// Replies from a file.
    Scripted,
}

impl Provider {
    /// The name that configuration and errors use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai_responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::Scripted => "scripted",
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not a configuration.
    #[error("{}, line {line}: {message}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// A value does not fit the others.
    #[error("{}: `{key}` {message}", path.display())]
    Value {
        /// The file that holds the value.
        path: PathBuf,
        /// The key, dotted.
        key: String,
        /// What is wrong with it, and what to do.
        message: String,
    },
}

impl Config {
    /// Reads `path`, or `default_path` where there is one; with neither, everything is as by default.
    ///
    /// # Errors
    /// [`ConfigError`] where the file cannot be read (a named one must exist) or is not a configuration.
    pub fn read(path: Option<&Path>, default_path: &Path) -> Result<Self, ConfigError> {
        let file = path.unwrap_or(default_path);
        let unreadable = |source| ConfigError::Unreadable { path: file.to_owned(), source };
        let text = match text_of(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && path.is_none() => String::new(),
            Err(error) => return Err(unreadable(error)),
        };
        Self::parse(&text, file)
    }

    /// Reads the text of a configuration; `path` is where it comes from.
    ///
    /// # Errors
    /// [`ConfigError::Wrong`] names the key and the line.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let config = Self::shaped(text, path)?;
        config.in_range()?;
        config.servers()?;
        config.runners(&|_| None)?;
        config.launchers(&|_| None)?;
        Ok(config)
    }

    /// The same, of which only the form is right.
    ///
    /// # Errors
    /// [`ConfigError::Wrong`] names the key and the line.
    pub(crate) fn shaped(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let config: Config = toml::from_str(text).map_err(|error| wrong(text, path, &error))?;
        Self { path: path.to_owned(), ..config }.with_defaults()
    }

    /// Whether the limits leave something to be done.
    ///
    /// # Errors
    /// [`ConfigError::Value`] names the first that does not.
    pub(crate) fn in_range(&self) -> Result<(), ConfigError> {
        match self.limits.zero() {
            Some(name) => {
                let message = "is 0, so that nothing could run; leave it out, or give a number above";
                Err(self.value_error(format!("limits.{name}"), message))
            }
            None => Ok(()),
        }
    }

    /// The tool servers that it names.
    ///
    /// # Errors
    /// [`ConfigError::Value`] names the server, and what is wrong with it.
    pub fn servers(&self) -> Result<Configured, ConfigError> {
        Configured::read(&self.mcp_servers, &self.tool_presets).map_err(|(key, message)| self.value_error(key, message))
    }

    /// The variables that keys are read from: those that it names, else those of the providers that need no more.
    #[must_use]
    pub fn key_variables(&self) -> Vec<String> {
        if self.models.is_empty() {
            return crate::model::variables_of_keys();
        }
        self.models.values().filter_map(|model| model.api_key_env.clone()).collect()
    }

    /// A path of the file: `~/` is the home folder, and a relative one starts at the file's folder.
    #[must_use]
    pub fn resolve_path(&self, path: &Path, env: &dyn Fn(&str) -> Option<String>) -> PathBuf {
        match (path.strip_prefix("~"), env("HOME")) {
            (Ok(rest), Some(home)) => Path::new(&home).join(rest),
            _ => self.path.parent().unwrap_or(Path::new("")).join(path),
        }
    }

    /// An error about a key of this configuration.
    pub(crate) fn value_error(&self, key: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError::Value { path: self.path.clone(), key: key.into(), message: message.into() }
    }
}

/// The text of a configuration file, of at most [`FILE_BYTES_MAX`] bytes.
pub(crate) fn text_of(file: &Path) -> std::io::Result<String> {
    let size = std::fs::metadata(file)?.len();
    if size > FILE_BYTES_MAX {
        let message = format!("it has {size} bytes, and a configuration has at most {FILE_BYTES_MAX}");
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, message));
    }
    std::fs::read_to_string(file)
}

/// Not the parser's own Display: that one quotes the line, and the line may be a key that someone put into the file.
fn wrong(text: &str, path: &Path, error: &toml::de::Error) -> ConfigError {
    let start = error.span().map_or(0, |span| span.start).min(text.len());
    let line = text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1;
    let mut message = error.message().to_owned();
    if message.contains("`api_key`") || message.contains("`key`") {
        message
            .push_str("; keys do not go into this file: name a variable in `api_key_env` or a file in `api_key_file`");
    }
    ConfigError::Wrong { path: path.to_owned(), line, message }
}

#[cfg(test)]
mod tests {
    use assistant_protocol::types::Usage;

    use super::*;

    fn error(text: &str) -> String {
        Config::parse(text, Path::new("c.toml")).expect_err("refused").to_string()
    }

    #[test]
    fn a_whole_file_is_read() {
        let text = r#"
            default_model = "fast"
            strict_models = true
            [models.fast]
            provider = "openai"
            model = "qwen3-high"
            base_url = "http://127.0.0.1:8080"
            api_key_env = "K"
            max_output_tokens = 100
            context_tokens = 32000
            extra = { temperature = 0.5, reasoning_effort = "low" }
            price = { input = 2.0, output = 10.0, cache_read = 0.5 }
            [models.demo]
            provider = "scripted"
            script = "demo.json"
            [model_aliases]
            sonnet = "fast"
            [tool_aliases]
            Bash = "shell"
            [hooks]
            on_end = ["notify", "--end"]
            [limits]
            depth = 5
        "#;
        let config = Config::parse(text, Path::new("/etc/a/c.toml")).expect("reads");
        assert_eq!(config.limits, Limits { depth: 5, ..Limits::default() });
        assert_eq!(config.models["fast"].extra["reasoning_effort"], "low");
        let usage = |input, output, cached| Usage {
            input_tokens: Some(input),
            output_tokens: Some(output),
            cache_read_tokens: cached,
            ..Usage::default()
        };
        let price = config.models["fast"].price.expect("a price");
        assert_eq!(price.cost(&usage(1_000_000, 100_000, None)), 3.0);
        assert_eq!(price.cost(&usage(1_000_000, 0, Some(500_000))), 1.25);
        assert_eq!(price.cost(&Usage::default()), 0.0);
        assert_eq!(config.models["demo"].provider, Provider::Scripted);
        assert_eq!((config.hooks.on_end.len(), config.hooks.on_question.len()), (2, 0));
        assert_eq!(config.model_aliases["sonnet"], "fast");
        let env = |name: &str| (name == "HOME").then(|| "/home/a".to_owned());
        assert_eq!(config.resolve_path(Path::new("demo.json"), &env), Path::new("/etc/a/demo.json"));
        assert_eq!(config.resolve_path(Path::new("~/key"), &env), Path::new("/home/a/key"));
        assert_eq!(config.resolve_path(Path::new("/k"), &env), Path::new("/k"));
    }

    #[test]
    fn errors_name_the_key_and_the_line() {
        let top = "expected one of `defaults`, `default_model`, `strict_models`, `models`, `prices`, `model_aliases`, `tool_aliases`, `mcp_servers`, `tool_presets`, `runners`, `default_runner`, `launchers`, `default_launcher`, `worktrees`, `hooks`, `limits`";
        assert_eq!(error("a = 1"), format!("c.toml, line 1: unknown field `a`, {top}"));
        let limits = error("[limits]\n\ndeep = 1");
        assert!(limits.starts_with("c.toml, line 3: unknown field `deep`, expected one of `depth`"), "{limits}");
        let provider = error("[models.x]\nmodel = \"m\"\nprovider = \"other\"");
        let want = "c.toml, line 3: unknown variant `other`, expected one of `openai`, `openai_responses`, `anthropic`, \
                    `gemini`, `ollama`, `scripted`";
        assert_eq!(provider, want);
        let depth = error("[limits]\ndepth = \"deep\"");
        assert_eq!(depth, "c.toml, line 2: invalid type: string \"deep\", expected u32");
    }

    #[test]
    fn a_key_in_the_file_is_refused_and_not_shown() {
        let message = error("[models.x]\nprovider = \"openai\"\napi_key = \"sk-very-secret\"");
        assert!(message.contains("line 3") && message.contains("keys do not go into this file"), "{message}");
        assert!(!message.contains("very-secret"), "{message}");
    }

    #[test]
    fn only_a_named_file_must_exist() {
        let missing = Path::new("/nowhere/config.toml");
        assert_eq!(
            Config::read(None, missing).expect("defaults"),
            Config { path: missing.into(), ..Config::default() }
        );
        let error = Config::read(Some(missing), missing).expect_err("refused").to_string();
        assert!(error.starts_with("cannot read /nowhere/config.toml: "), "{error}");
    }
}
