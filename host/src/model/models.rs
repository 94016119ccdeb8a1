//! The models that there are, by name, and which of them a definition's wish means.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::config::{Config, ConfigError, ModelConfig, Provider, Secret};
use crate::model::prices::{self, Price};
use crate::model::{Model, OUTPUT_TOKENS_DEFAULT};

mod setup;

#[cfg(feature = "cli")]
pub(crate) use setup::ollama_at;
use setup::usable;

/// What is used with no configuration: the first whose key is set. Key, provider, model.
const MODELS_OF_KEYS: [(&str, Provider, &str); 4] = [
    ("ANTHROPIC_API_KEY", Provider::Anthropic, "claude-sonnet-4-5"),
    ("OPENAI_API_KEY", Provider::OpenAi, "gpt-5-mini"),
    ("GEMINI_API_KEY", Provider::Gemini, "gemini-2.5-flash"),
    ("GOOGLE_API_KEY", Provider::Gemini, "gemini-2.5-flash"),
];

/// The variables whose key is enough, without a configuration.
#[must_use]
pub fn variables_of_keys() -> Vec<String> {
    MODELS_OF_KEYS.iter().map(|(variable, _, _)| (*variable).to_owned()).collect()
}

/// The variables of keys, whose they are, and the model that each is enough for.
#[cfg(feature = "cli")]
pub(crate) fn usual_models() -> impl Iterator<Item = (&'static str, Provider, &'static str)> {
    MODELS_OF_KEYS.into_iter()
}

/// Names that other systems' definitions use for whichever model of a family there is.
const FAMILIES: [&str; 3] = ["sonnet", "opus", "haiku"];

/// The wish for the model of whoever spawns.
const INHERIT: &str = "inherit";

/// The models that there are. No definition can choose another.
#[derive(Clone, Default)]
pub struct Models {
    by_name: BTreeMap<String, Known>,
    aliases: BTreeMap<String, String>,
    default: Option<String>,
    config_path: PathBuf,
}

#[derive(Clone)]
struct Known {
    /// The provider's name for it; empty for a model that an app passed in.
    id: String,
    /// The model, or why it cannot be used now.
    model: Result<Arc<dyn Model>, String>,
    context_tokens: Option<u32>,
    /// Most tokens of an answer.
    max_output_tokens: u32,
    price: Option<Price>,
}

impl Known {
    /// A model with its settings. What the provider itself serves has a known price.
    fn new(id: String, model: Result<Arc<dyn Model>, String>, settings: &ModelConfig, config: &Config) -> Self {
        let own_address = settings.base_url.is_none() && settings.provider != Provider::Scripted;
        let listed =
            config.prices.get(&id).copied().or_else(|| prices::of(&config.prices, &id).filter(|_| own_address));
        Self {
            id,
            model,
            context_tokens: settings.context_tokens,
            max_output_tokens: settings.max_output_tokens.unwrap_or(OUTPUT_TOKENS_DEFAULT),
            price: settings.price.or(listed),
        }
    }
}

/// The model that is used for a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Its configured name.
    pub name: String,
    /// Why it is not the one that was wished for; none where it is.
    pub why: Option<String>,
}

/// Why there is no model for an assistant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoModel {
    /// There is none at all.
    #[error(
        "No model is configured, so no assistant can run. `assistant-host setup model` sets one up; or set {}, or add \
         [models.NAME] to {}, then restart this server.",
        variables_of_keys().join(" or "), config_path.display()
    )]
    NoneConfigured {
        /// The configuration file, whether or not there is one.
        config_path: PathBuf,
    },
    /// The one that would be used cannot be.
    #[error("The model `{name}` cannot be used: {why}.")]
    Unusable {
        /// Its configured name.
        name: String,
        /// Why, and what to do.
        why: String,
    },
    /// The definition's wish is unknown, and `strict_models` is set.
    #[error(
        "{why}, and `strict_models` is set. Configured are: {known}. Name one of them, or add it to {}.",
        config_path.display()
    )]
    Refused {
        /// Why the wish cannot be fulfilled.
        why: String,
        /// The configured names.
        known: String,
        /// The configuration file.
        config_path: PathBuf,
    },
}

impl Models {
    /// What a model costs, if that is known.
    #[must_use]
    pub fn price(&self, name: &str) -> Option<Price> {
        self.by_name.get(name)?.price
    }

    /// The models of a configuration, or, if it has none, the model whose key is in the environment.
    ///
    /// A model whose key variable is not set is known but cannot be used; choosing it says so.
    ///
    /// # Errors
    /// [`ConfigError`] names the key of the configuration that does not fit and what to do.
    pub fn from_config(config: &Config, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let mut models = Self {
            by_name: BTreeMap::new(),
            aliases: config.model_aliases.clone(),
            default: config.default_model.clone(),
            config_path: config.path.clone(),
        };
        for (name, settings) in &config.models {
            let model = usable(config, name, settings, env)?;
            let id = settings.model.clone().unwrap_or_default();
            models.by_name.insert(name.clone(), Known::new(id, model, settings, config));
        }
        if models.by_name.is_empty() {
            models.add_by_keys(config, env)?;
        }
        models.check(config)?;
        Ok(models)
    }

    /// Adds a model of an embedding app, or replaces one. The first model there is becomes the default.
    pub fn insert(&mut self, name: impl Into<String>, model: Arc<dyn Model>) {
        let name = name.into();
        self.default.get_or_insert_with(|| name.clone());
        let known = Known {
            id: String::new(),
            model: Ok(model),
            context_tokens: None,
            max_output_tokens: OUTPUT_TOKENS_DEFAULT,
            price: None,
        };
        self.by_name.insert(name, known);
    }

    /// Sets what a model of this name costs. An unknown name is left alone.
    pub fn set_price(&mut self, name: &str, price: Price) {
        if let Some(known) = self.by_name.get_mut(name) {
            known.price = Some(price);
        }
    }

    /// The model of a configured name, if it can be used.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<dyn Model>> {
        self.by_name.get(name).and_then(|known| known.model.clone().ok())
    }

    /// The tokens that a model takes as input and output together, where the configuration tells.
    #[must_use]
    pub fn context_tokens(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).and_then(|known| known.context_tokens)
    }

    /// Most tokens of an answer of a model, unless a call asks for less.
    #[must_use]
    pub fn max_output_tokens(&self, name: &str) -> u32 {
        self.by_name.get(name).map_or(OUTPUT_TOKENS_DEFAULT, |known| known.max_output_tokens)
    }

    /// The configured names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// Every model with its configured name and the provider's name for it (empty where an app passed it in), or why it
    /// cannot be used.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str, Result<Arc<dyn Model>, &str>)> {
        self.by_name.iter().map(|(name, known)| {
            let model = known.model.as_ref().map(Arc::clone).map_err(String::as_str);
            (name.as_str(), known.id.as_str(), model)
        })
    }

    /// The model of an assistant whose definition names none.
    #[must_use]
    pub fn default_name(&self) -> Option<&str> {
        self.default.as_deref()
    }

    /// Which model a definition's wish means: the first of `wish` that is known; nothing and `inherit` mean the
    /// spawner's; else it is the default one, with the reason.
    ///
    /// # Errors
    /// [`NoModel`] where there is none, where it cannot be used, or where `strict` and the wish is unknown.
    pub fn resolve(&self, wish: &[String], spawner: Option<&str>, strict: bool) -> Result<Choice, NoModel> {
        let Some(default) = &self.default else {
            return Err(NoModel::NoneConfigured { config_path: self.config_path.clone() });
        };
        let spawner = spawner.filter(|name| self.by_name.contains_key(*name)).unwrap_or(default);
        let wished = wish.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
        let mut reasons = Vec::new();
        for wish in wished.clone() {
            let name = if wish.eq_ignore_ascii_case(INHERIT) { Some(spawner) } else { self.find(wish) };
            match name.map(|name| (name, self.usable(name))) {
                Some((name, Ok(()))) => return Ok(Choice { name: name.to_owned(), why: None }),
                Some((_, Err(why))) => reasons.push(format!("`{wish}` cannot be used: {why}")),
                None => reasons.push(format!("`{wish}` is not configured")),
            }
        }
        let why = (!reasons.is_empty()).then(|| reasons.join("; "));
        if let (true, Some(why)) = (strict, &why) {
            let known = self.names().collect::<Vec<_>>().join(", ");
            return Err(NoModel::Refused { why: why.clone(), known, config_path: self.config_path.clone() });
        }
        let name = if why.is_none() { spawner } else { default.as_str() };
        self.usable(name).map_err(|why| NoModel::Unusable { name: name.to_owned(), why })?;
        Ok(Choice { name: name.to_owned(), why })
    }

    fn usable(&self, name: &str) -> Result<(), String> {
        match self.by_name.get(name).map(|known| &known.model) {
            Some(Ok(_)) => Ok(()),
            Some(Err(why)) => Err(why.clone()),
            None => Err("it is not configured".to_owned()),
        }
    }

    /// A configured name, by that name, by an alias, by the provider's name for it, or by its family.
    fn find(&self, wish: &str) -> Option<&str> {
        let same = |name: &str| name.eq_ignore_ascii_case(wish);
        let alias = || self.aliases.iter().find(|(alias, _)| same(alias)).map(|(_, name)| name.as_str());
        let known = |name: &str| self.by_name.keys().find(|key| key.as_str() == name).map(String::as_str);
        let by_id = || self.by_name.iter().find(|(_, known)| same(&known.id)).map(|(name, _)| name.as_str());
        let family = FAMILIES.into_iter().find(|family| same(family));
        let in_family = |family: &str| {
            let of = |text: &str| text.to_ascii_lowercase().contains(family);
            self.by_name.iter().find(|(name, known)| of(name) || of(&known.id)).map(|(name, _)| name.as_str())
        };
        let by_name = self.by_name.keys().find(|name| same(name)).map(String::as_str);
        by_name.or_else(|| alias().and_then(known)).or_else(by_id).or_else(|| family.and_then(in_family))
    }

    fn add_by_keys(&mut self, config: &Config, env: &dyn Fn(&str) -> Option<String>) -> Result<(), ConfigError> {
        let set = |name: &str| env(name).and_then(|key| Secret::new(&key)).is_some();
        for (variable, provider, id) in MODELS_OF_KEYS.into_iter().filter(|(variable, ..)| set(variable)) {
            if self.by_name.contains_key(id) {
                // A provider's other variable.
                continue;
            }
            let settings = ModelConfig {
                provider,
                model: Some(id.to_owned()),
                base_url: None,
                api_key_env: Some(variable.to_owned()),
                api_key_file: None,
                max_output_tokens: None,
                context_tokens: None,
                price: None,
                extra: serde_json::Map::new(),
                script: None,
            };
            if cfg!(not(feature = "network-models")) {
                return Ok(());
            }
            let model = usable(config, id, &settings, env)?;
            self.by_name.insert(id.to_owned(), Known::new(id.to_owned(), model, &settings, config));
            self.default.get_or_insert_with(|| id.to_owned());
        }
        Ok(())
    }

    /// Every name that the configuration uses is one that it has.
    fn check(&mut self, config: &Config) -> Result<(), ConfigError> {
        let known = self.names().collect::<Vec<_>>().join(", ");
        let there = if known.is_empty() { "it has none".to_owned() } else { format!("it has {known}") };
        let unknown = |name: &str| format!("is `{name}`, which is no [models.NAME] of this file: {there}");
        let missing = |name: &&String| !self.by_name.contains_key(*name);
        if let Some(name) = self.default.as_ref().filter(missing) {
            return Err(config.value_error(config.default_key("model"), unknown(name)));
        }
        if let Some((alias, name)) = self.aliases.iter().find(|(_, name)| missing(name)) {
            return Err(config.value_error(format!("model_aliases.{alias}"), unknown(name)));
        }
        if self.default.is_none() {
            let mut names = self.by_name.keys();
            match (names.next(), names.next()) {
                (Some(_), Some(_)) => {
                    let message = format!("is needed where there are several models: set it to one of {known}");
                    return Err(config.value_error(config.default_key("model"), message));
                }
                (only, _) => self.default = only.cloned(),
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.by_name.keys().collect();
        f.debug_struct("Models").field("names", &names).field("default", &self.default).finish()
    }
}

#[cfg(test)]
mod tests;
