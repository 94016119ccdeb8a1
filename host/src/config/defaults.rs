//! `[defaults]`: what an assistant has whose definition names none. The older keys `default_…` say the same.

use serde::Deserialize;

use super::{Config, ConfigError};

/// What is used where nothing is named.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Defaults {
    /// The model; as `default_model`.
    pub model: Option<String>,
    /// The runner; as `default_runner`.
    pub runner: Option<String>,
}

impl Config {
    /// Puts the defaults where they are looked for.
    ///
    /// # Errors
    /// [`ConfigError::Value`] where one is given twice.
    pub(super) fn with_defaults(mut self) -> Result<Self, ConfigError> {
        let Defaults { model, runner } = self.defaults.clone();
        for (name, new, old) in [("model", &model, &self.default_model), ("runner", &runner, &self.default_runner)] {
            if new.is_some() && old.is_some() {
                let message = format!("and `default_{name}` say the same thing; keep one of them");
                return Err(self.value_error(format!("defaults.{name}"), message));
            }
        }
        self.default_model = model.or(self.default_model);
        self.default_runner = runner.or(self.default_runner);
        Ok(self)
    }

    /// The key under which the default of this name stands, `model` or `runner`.
    pub(crate) fn default_key(&self, name: &str) -> String {
        let new = match name {
            "model" => self.defaults.model.is_some(),
            _ => self.defaults.runner.is_some(),
        };
        if new { format!("defaults.{name}") } else { format!("default_{name}") }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn defaults_are_said_in_one_way() {
        let read = |text: &str| Config::parse(text, Path::new("c.toml"));
        let check = |text: &str, want: Result<[Option<&str>; 2], &str>| {
            let got = read(text).map_err(|error| error.to_string());
            let got = got.as_ref().map(|config| [config.default_model.as_deref(), config.default_runner.as_deref()]);
            assert_eq!(got.map_err(String::as_str), want, "{text}");
        };
        check("[defaults]\nmodel = 'm'\nrunner = 'assistant-runner'", Ok([Some("m"), Some("assistant-runner")]));
        check(
            "default_model = 'm'\n[defaults]\nrunner = 'assistant-runner'",
            Ok([Some("m"), Some("assistant-runner")]),
        );
        let twice = "c.toml: `defaults.model` and `default_model` say the same thing; keep one of them";
        check("default_model = 'm'\n[defaults]\nmodel = 'm'", Err(twice));
        let unknown = read("[defaults]\nrunner = 'x'").expect_err("refused").to_string();
        assert!(unknown.starts_with("c.toml: `defaults.runner` cannot be used: no runner is called `x`"), "{unknown}");
        assert!(read("[defaults]\nmodels = 'm'").is_err());
    }
}
