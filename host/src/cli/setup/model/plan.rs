//! What is to be written.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::super::super::logins::Agent;
use super::super::file;
use crate::config::{Provider, Secret};
use crate::whole::{self, Mode};

/// The variable by which a pasted key is tried before it has its file. It is set nowhere.
pub(super) const PASTED: &str = "ASSISTANT_HOST_PASTED_KEY";

/// Where a key is.
#[derive(Debug, Clone)]
pub(super) enum Key {
    /// In a variable.
    Variable(String),
    /// In a file.
    File(PathBuf),
    /// It was pasted, and gets a file beside the configuration.
    Pasted(Secret),
}

/// An entry of the configuration.
#[derive(Debug, Clone)]
pub(super) enum Plan {
    /// `[models.NAME]`.
    Model {
        name: String,
        title: &'static str,
        provider: Provider,
        model: String,
        key: Option<Key>,
        base_url: Option<String>,
        context_tokens: Option<u32>,
    },
    /// `[runners.NAME]` of a coding agent.
    Agent { name: String, agent: &'static Agent, variable: Option<&'static str> },
}

impl Plan {
    /// The name of the entry.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Model { name, .. } | Self::Agent { name, .. } => name,
        }
    }

    /// What it is for people.
    pub(super) fn title(&self) -> String {
        match self {
            Self::Model { title, model, .. } => format!("{model} ({title})"),
            Self::Agent { agent, .. } => agent.title.to_owned(),
        }
    }

    /// What can be done where it does not work.
    pub(super) fn hint(&self) -> String {
        match self {
            Self::Model { provider: Provider::Ollama, model, .. } => {
                format!("see that Ollama runs and has it (`ollama pull {model}`), or give --no-test")
            }
            Self::Model { .. } => "mend the key, the model's name or the way there, or give --no-test".to_owned(),
            Self::Agent { agent, .. } => format!(
                "where it is the login, log in anew (`{}`); where it is the way there, mend that; or give --no-test",
                agent.login
            ),
        }
    }

    /// The table that it stands in.
    pub(super) fn under(&self) -> &'static str {
        match self {
            Self::Model { .. } => "models",
            Self::Agent { .. } => "runners",
        }
    }

    /// The key that makes it the default one, alone and below `[defaults]`.
    pub(super) fn default_keys(&self) -> (&'static str, &'static str) {
        match self {
            Self::Model { .. } => ("default_model", "model"),
            Self::Agent { .. } => ("default_runner", "runner"),
        }
    }

    /// The fields of the entry.
    pub(super) fn entry(&self) -> Map<String, Value> {
        let mut entry = Map::new();
        let mut put = |key: &str, value: Value| _ = entry.insert(key.to_owned(), value);
        match self {
            Self::Agent { agent, variable, .. } => {
                put("agent", json!(agent.name()));
                if let Some(variable) = variable {
                    put("env", json!([variable]));
                }
            }
            Self::Model { name, provider, model, key, base_url, context_tokens, .. } => {
                put("provider", json!(provider.name()));
                put("model", json!(model));
                if let Some(base_url) = base_url {
                    put("base_url", json!(base_url));
                }
                match key {
                    Some(Key::Variable(variable)) => put("api_key_env", json!(variable)),
                    Some(Key::File(file)) => put("api_key_file", json!(file)),
                    Some(Key::Pasted(_)) => put("api_key_file", json!(key_file(name))),
                    None => {}
                }
                if let Some(tokens) = context_tokens {
                    put("context_tokens", json!(tokens));
                }
            }
        }
        entry
    }

    /// Whether its key was pasted, and is in no place yet.
    pub(super) fn has_pasted_key(&self) -> bool {
        matches!(self, Self::Model { key: Some(Key::Pasted(_)), .. })
    }

    /// The same with a key that was pasted in a variable, and that key.
    pub(super) fn for_test(&self) -> (Self, Option<Secret>) {
        match self.clone() {
            Self::Model { name, title, provider, model, key: Some(Key::Pasted(secret)), base_url, context_tokens } => {
                let key = Some(Key::Variable(PASTED.to_owned()));
                (Self::Model { name, title, provider, model, key, base_url, context_tokens }, Some(secret))
            }
            plan => (plan, None),
        }
    }

    /// Writes a key that was pasted into its file, for its owner only; gives what undoes that.
    ///
    /// # Errors
    /// In words: the system's, and a file of that name that is not to be replaced.
    pub(super) fn keep_key(&self, config: &Path, replace: bool) -> Result<Option<KeptKey>, String> {
        let Self::Model { name, key: Some(Key::Pasted(secret)), .. } = self else { return Ok(None) };
        let folder = config.parent().unwrap_or(Path::new("."));
        let path = folder.join(key_file(name));
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        if path.symlink_metadata().is_ok() && !replace {
            return Err(format!("{} is there already; choose another --name, or give --replace", path.display()));
        }
        let before = file::read(&path).map_err(failed)?;
        std::fs::create_dir_all(folder).map_err(failed)?;
        whole::put(&path, &format!("{}\n", secret.expose()), Mode::Private, || Ok(())).map_err(failed)?;
        whole::keep(folder).map_err(failed)?;
        Ok(Some(KeptKey { path, before }))
    }
}

/// A key that has its file, as long as nothing else says that it is used.
pub(super) struct KeptKey {
    path: PathBuf,
    /// The one that stood there.
    before: Option<String>,
}

impl KeptKey {
    /// Puts back what stood there.
    ///
    /// # Errors
    /// In words: the new key stays.
    pub(super) fn undo(self) -> Result<(), String> {
        let undone = match &self.before {
            Some(key) => whole::put(&self.path, key, Mode::Private, || Ok(())),
            None => std::fs::remove_file(&self.path),
        };
        undone.map_err(|error| format!("{} still holds the new key: {error}", self.path.display()))
    }
}

/// The file of a pasted key, beside the configuration.
fn key_file(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' };
    format!("{}.key", name.chars().map(plain).collect::<String>())
}
