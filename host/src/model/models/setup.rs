//! A model as its configuration says: its key, its address, its settings.

use std::sync::Arc;

use super::MODELS_OF_KEYS;
use crate::config::{Config, ConfigError, ModelConfig, Provider, Secret, read_key_file};
use crate::model::{Model, ScriptedModel};

/// Where Ollama is, as its own programs read it: `host`, `host:port` or an address.
const OLLAMA_HOST: &str = "OLLAMA_HOST";
/// The port of Ollama where its address has none.
const OLLAMA_PORT: u16 = 11_434;

/// The model of `[models.NAME]`, or why it cannot be used as long as the environment is as it is.
pub(super) fn usable(
    config: &Config,
    name: &str,
    settings: &ModelConfig,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Result<Arc<dyn Model>, String>, ConfigError> {
    let value_error = |key: &str, message: &str| config.value_error(format!("models.{name}.{key}"), message);
    if settings.provider == Provider::Scripted {
        let script = settings.script.as_ref();
        let script = script.ok_or_else(|| value_error("script", "is needed: the file of the scripted replies"))?;
        let path = config.resolve_path(script, env);
        let model =
            ScriptedModel::read(&path).map_err(|error| value_error("script", &format!("does not fit: {error}")))?;
        return Ok(Ok(Arc::new(model)));
    }
    let id = settings.model.as_deref().filter(|id| !id.trim().is_empty());
    let id = id.ok_or_else(|| value_error("model", "is needed: the provider's name of the model"))?;
    let key = match key_of(config, name, settings, env)? {
        Ok(key) => key,
        Err(why) => return Ok(Err(why)),
    };
    let mut settings = settings.clone();
    if settings.provider == Provider::Ollama && settings.base_url.is_none() {
        settings.base_url = ollama_at(env);
    }
    network(&settings, id, key).map(Ok).map_err(|(setting, message)| value_error(setting, &message))
}

/// The key of a model; none where the server needs none, or a text where the environment lacks it.
fn key_of(
    config: &Config,
    name: &str,
    settings: &ModelConfig,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Result<Option<Secret>, String>, ConfigError> {
    let value_error = |key: &str, message: &str| config.value_error(format!("models.{name}.{key}"), message);
    let provider = match settings.provider {
        Provider::OpenAiResponses => Provider::OpenAi,
        other => other,
    };
    let mut of_provider = MODELS_OF_KEYS.iter().filter(|(_, of, _)| *of == provider).map(|(variable, ..)| *variable);
    let variable = match (&settings.api_key_env, &settings.api_key_file) {
        (Some(_), Some(_)) => return Err(value_error("api_key_file", "and `api_key_env` are both set: keep one")),
        (None, Some(file)) => {
            let key = read_key_file(&config.resolve_path(file, env));
            return key.map(|key| Ok(Some(key))).map_err(|message| value_error("api_key_file", &message));
        }
        (Some(variable), None) => variable.as_str(),
        // A server of one's own is not sent the key of the provider whose format it speaks.
        (None, None) if settings.base_url.is_some() => return Ok(Ok(None)),
        (None, None) => match of_provider.clone().find(|variable| env(variable).is_some()).or(of_provider.next()) {
            Some(variable) => variable,
            None => return Ok(Ok(None)),
        },
    };
    match env(variable).and_then(|key| Secret::new(&key)) {
        Some(key) => Ok(Ok(Some(key))),
        None => Ok(Err(format!("the environment variable {variable}, which holds its key, is not set"))),
    }
}

#[cfg(feature = "network-models")]
fn network(settings: &ModelConfig, id: &str, key: Option<Secret>) -> Result<Arc<dyn Model>, (&'static str, String)> {
    use crate::model::network::{NetworkConfig, NetworkModel, Wire};
    let wire = match settings.provider {
        Provider::Anthropic => Wire::Anthropic,
        Provider::Gemini => Wire::Gemini,
        Provider::Ollama => Wire::Ollama,
        Provider::OpenAiResponses => Wire::Responses,
        Provider::OpenAi | Provider::Scripted => Wire::OpenAi,
    };
    let mut config = NetworkConfig::new(wire, id);
    config.base_url.clone_from(&settings.base_url);
    config.key = key;
    config.extra = settings.extra.clone();
    config.context_tokens = settings.context_tokens;
    config.max_output_tokens = settings.max_output_tokens.unwrap_or(config.max_output_tokens);
    let model = NetworkModel::new(config).map_err(|error| (error.setting, error.message))?;
    Ok(Arc::new(model))
}

#[cfg(not(feature = "network-models"))]
fn network(settings: &ModelConfig, _: &str, _: Option<Secret>) -> Result<Arc<dyn Model>, (&'static str, String)> {
    let name = settings.provider.name();
    Err(("provider", format!("is `{name}`, but this program was built without network models (`network-models`)")))
}

/// Where Ollama is, if the environment says so.
pub(crate) fn ollama_at(env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    env(OLLAMA_HOST).and_then(|host| ollama_address(&host))
}

/// The address that `OLLAMA_HOST` means; none where it is empty. The one that a server listens on everywhere is no
/// address to call.
fn ollama_address(host: &str) -> Option<String> {
    let host = host.trim().trim_matches(['"', '\'']);
    if host.is_empty() {
        return None;
    }
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let (place, path) = rest.split_once('/').map_or((rest, ""), |(place, path)| (place, path.trim_end_matches('/')));
    let (name, port) = match place.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => (name, Some(port)),
        _ => (place, None),
    };
    let name = match name {
        "" | "0.0.0.0" => "127.0.0.1",
        "[::]" => "[::1]",
        name => name,
    };
    let port = match port {
        Some(port) => format!(":{port}"),
        None if scheme == "http" && !host.contains("://") => format!(":{OLLAMA_PORT}"),
        None => String::new(),
    };
    Some(format!("{scheme}://{name}{port}/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_ollama_is_read_as_ollama_reads_it() {
        let check = |host: &str, want: Option<&str>| assert_eq!(ollama_address(host).as_deref(), want, "{host}");
        check("", None);
        check(" ", None);
        check("box", Some("http://box:11434/"));
        check("0.0.0.0", Some("http://127.0.0.1:11434/"));
        check("0.0.0.0:8080", Some("http://127.0.0.1:8080/"));
        check(":8080", Some("http://127.0.0.1:8080/"));
        check("[::]:8080", Some("http://[::1]:8080/"));
        check("\"10.0.0.7:1234\"", Some("http://10.0.0.7:1234/"));
        check("http://box", Some("http://box/"));
        check("https://box/ollama/", Some("https://box/ollama"));
    }
}
