//! What a file says, looked at as a whole: what is missing, what does not fit, and what it names that is not there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value};

use super::file::{File, Model, Server, VERSION};
use super::output::Form;
use super::reading::Reading;
use super::{CALL_WAIT_MS_MAX, Single, definition, json_schema, provider, text_of};
use crate::config::{Config, ConfigError, ModelConfig};
use crate::limits::Limits;
use crate::model::Models;
use crate::servers::{Lack, lacks};

/// The longest name of the tool, characters: what all providers take.
const NAME_CHARS_MAX: usize = 64;
/// The longest description of the tool, bytes; every client loads it into each conversation.
const DESCRIPTION_BYTES_MAX: usize = 8 * 1024;
/// The longest one that every provider takes whole, bytes.
const DESCRIPTION_BYTES_GOOD: usize = 1024;

type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The subagent that `text`, the content of `file`, defines; what is wrong is told to `reading`.
pub(super) fn check(text: &str, file: &Path, env: Env<'_>, reading: &mut Reading) -> Option<Single> {
    let written = Value::Object(reading.of(text, &json_schema())?);
    let servers = written.get("mcpServers").filter(|servers| servers.as_object().is_some_and(|map| !map.is_empty()));
    let servers = servers.cloned();
    let read: File = match serde_json::from_value(written) {
        Ok(read) => read,
        Err(error) => {
            reading.error("", error.to_string());
            return None;
        }
    };
    version(&read, reading);
    let limits = limits(&read, reading);
    let config = Config { path: file.to_owned(), limits, ..Config::default() };
    let name_and_words = subagent(&read, reading);
    let (config, models) = models(config, &read, env, reading);
    let prompt = prompt(&read, &config, env, reading);
    let output = output(&read, &config, env, reading);
    for (name, server) in &read.mcp_servers {
        check_server(name, server, reading);
        check_variables(name, server, env, reading);
    }
    let (name, description) = name_and_words?;
    let models = models?;
    Some(Single {
        file: file.to_owned(),
        definition: definition(&name, &description, prompt?, servers, output.as_ref()),
        key_variables: config.models.values().filter_map(|model| model.api_key_env.clone()).collect(),
        name,
        description,
        output,
        config,
        models,
    })
}

fn version(read: &File, reading: &mut Reading) {
    match read.version.as_deref().map(str::trim) {
        Some(VERSION | "1") => {}
        Some(other) => reading.error("version", format!("is {other}; this host reads {VERSION}")),
        None => reading.warning("version", format!("is missing; the file is read as \"{VERSION}\"")),
    }
}

fn subagent(read: &File, reading: &mut Reading) -> Option<(String, String)> {
    let Some(subagent) = &read.subagent else {
        reading.error("subagent", "is missing: it names the one tool that is served, with `name` and `description`");
        return None;
    };
    let text =
        |text: &Option<String>| text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let (name, description) = (text(&subagent.name), text(&subagent.description));
    match &name {
        None => reading.error("subagent.name", "is missing: it is the name of the tool"),
        Some(name) if !is_tool_name(name) => {
            let rule = format!(
                "is `{}`, which is no name of a tool: 1 to {NAME_CHARS_MAX} letters, digits, `_` and `-`, the first a letter",
                crate::text::cut(&crate::text::one_line(name), NAME_CHARS_MAX)
            );
            reading.error("subagent.name", rule);
        }
        Some(_) => {}
    }
    let bytes = description.as_ref().map_or(0, String::len);
    match bytes {
        0 => reading.error("subagent.description", "is missing: it tells whoever calls the tool what it is for"),
        1..=DESCRIPTION_BYTES_GOOD => {}
        _ if bytes <= DESCRIPTION_BYTES_MAX => {
            let message = format!("has {bytes} bytes; some clients cut what is longer than {DESCRIPTION_BYTES_GOOD}");
            reading.warning("subagent.description", message);
        }
        _ => {
            let message = format!("has {bytes} bytes, the most is {DESCRIPTION_BYTES_MAX}");
            reading.error("subagent.description", message);
        }
    }
    if read.defaults.as_ref().is_some_and(|defaults| defaults.code_mode.enabled) {
        reading.warning(
            "defaults.codeMode.enabled",
            "is true, and this host has no interpreter: runs go on without one, with the tools of `mcpServers`",
        );
    }
    Some((name?, description?))
}

fn is_tool_name(name: &str) -> bool {
    name.len() <= NAME_CHARS_MAX
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// The limits of the host; a call of the tool may last as long as its run.
fn limits(read: &File, reading: &mut Reading) -> Limits {
    let mut wanted = read.limits.clone();
    let repairs = read.output_repairs.map(|repairs| ("output_repairs".to_owned(), Value::from(repairs)));
    wanted.extend(repairs);
    let mut limits: Limits = match serde_json::from_value(Value::Object(wanted)) {
        Ok(limits) => limits,
        Err(error) => {
            reading.error("limits", error.to_string());
            Limits::default()
        }
    };
    if let Some(name) = limits.zero() {
        reading
            .error(&format!("limits.{name}"), "is 0, so that nothing could run; leave it out, or give a number above");
    }
    if !read.limits.contains_key("client_wait_ms") {
        limits.client_wait_ms = CALL_WAIT_MS_MAX;
    }
    limits
}

/// The configuration with the models of the file, and these; none where one does not fit.
fn models(mut config: Config, read: &File, env: Env<'_>, reading: &mut Reading) -> (Config, Option<Models>) {
    let listed = read.models.as_deref().unwrap_or_default();
    let mut refs = BTreeMap::new();
    let mut broken = BTreeSet::new();
    for (at, model) in listed.iter().enumerate() {
        let key = format!("models[{at}]");
        let Some(name) = model.reference.clone().filter(|name| !name.trim().is_empty()) else {
            reading.error(&format!("{key}.ref"), "is missing: it is what `defaults.model` calls the model");
            continue;
        };
        if let Some(first) = refs.insert(name.clone(), at) {
            reading
                .error(&format!("{key}.ref"), format!("is `{name}`, as `models[{first}].ref` is; each needs its own"));
            continue;
        }
        match settings(model, &key, reading) {
            Some(settings) => _ = config.models.insert(name, settings),
            None => _ = broken.insert(name),
        }
    }
    let wanted =
        read.defaults.as_ref().and_then(|defaults| defaults.model.clone()).filter(|name| !name.trim().is_empty());
    let known = || match refs.keys().map(String::as_str).collect::<Vec<_>>().join(", ") {
        names if names.is_empty() => "`models` has none".to_owned(),
        names => format!("`models` has {names}"),
    };
    match &wanted {
        None => reading.error("defaults.model", format!("is missing: it says which model answers; {}", known())),
        Some(name) if broken.contains(name) => {}
        Some(name) if !refs.contains_key(name) => {
            reading.error("defaults.model", format!("is `{name}`, which is no `ref` of `models`: {}", known()));
        }
        Some(_) => {}
    }
    config.default_model = wanted.filter(|name| config.models.contains_key(name));
    if config.default_model.is_none() {
        return (config, None);
    }
    let models = match Models::from_config(&config, env) {
        Ok(models) => models,
        Err(error) => {
            let (key, message) = match error {
                ConfigError::Value { key, message, .. } => (key, message),
                other => (String::new(), other.to_string()),
            };
            // `models.opus.script`: the configuration's way to say it.
            let name = key.split('.').nth(1).unwrap_or_default();
            let line_of = refs.get(name).map(|at| format!("models[{at}]"));
            reading.error(&line_of.unwrap_or(key.clone()), format!("(`{key}`) {message}"));
            return (config, None);
        }
    };
    for (name, _, model) in models.all() {
        let (Err(why), Some(at)) = (model, refs.get(name)) else { continue };
        let key = format!("models[{at}].api_key_env");
        match config.default_model.as_deref() == Some(name) {
            true => reading.lacking(&key, format!("cannot be used: {why}; set it where this program is started")),
            false => reading.warning(&key, format!("cannot be used: {why}; nothing here uses that model")),
        }
    }
    (config, Some(models))
}

fn settings(model: &Model, key: &str, reading: &mut Reading) -> Option<ModelConfig> {
    let provider = match model.provider.as_deref().filter(|name| !name.trim().is_empty()) {
        Some(name) => provider(name).map_err(|why| reading.error(&format!("{key}.type"), why)).ok(),
        None => {
            reading.error(&format!("{key}.type"), "is missing: it says what speaks to the model, as `anthropic`");
            None
        }
    };
    let scripted = provider == Some(crate::config::Provider::Scripted);
    let id = model.id.clone().filter(|id| !id.trim().is_empty());
    if id.is_none() && !scripted {
        reading.error(&format!("{key}.id"), "is missing: it is the provider's name of the model");
        return None;
    }
    Some(ModelConfig {
        provider: provider?,
        model: id,
        base_url: model.base_url.clone().filter(|url| !url.trim().is_empty()),
        // What answers from a script needs no key.
        api_key_env: model.api_key_env.clone().filter(|name| !name.trim().is_empty()),
        api_key_file: None,
        max_output_tokens: None,
        context_tokens: None,
        extra: Map::new(),
        price: None,
        script: model.script.clone().map(Into::into),
    })
}

/// The system prompt; none where it cannot be read.
fn prompt(read: &File, config: &Config, env: Env<'_>, reading: &mut Reading) -> Option<String> {
    const KEY: &str = "defaults.systemPromptPath";
    let path = read.defaults.as_ref().and_then(|defaults| defaults.system_prompt_path.as_deref());
    let Some(path) = path.filter(|path| !path.trim().is_empty()) else {
        reading.warning(KEY, "is missing: the model is told nothing but the task");
        return Some(String::new());
    };
    let path = config.resolve_path(Path::new(path), env);
    match text_of(&path) {
        Ok(text) => {
            if text.trim().is_empty() {
                reading.warning(KEY, format!("names {}, which is empty", path.display()));
            }
            Some(text)
        }
        Err(why) => {
            reading.error(KEY, format!("names {}, which cannot be read: {why}", path.display()));
            None
        }
    }
}

fn output(read: &File, config: &Config, env: Env<'_>, reading: &mut Reading) -> Option<Form> {
    let path = read.subagent.as_ref()?.output_schema_path.as_deref()?;
    let form = match path.trim() {
        "" => Err("is empty; name the file of a JSON schema, or leave it out".to_owned()),
        path => Form::read(&config.resolve_path(Path::new(path), env)),
    };
    form.map_err(|why| reading.error("subagent.outputSchemaPath", why)).ok()
}

/// Tells of variables in what is written of a server that cannot be filled in: without them it does not start.
fn check_variables(name: &str, server: &Server, env: Env<'_>, reading: &mut Reading) {
    let key = |rest: &str| format!("mcpServers.{name}.{rest}");
    let alone = [("command", &server.command), ("url", &server.url)];
    let alone = alone.into_iter().filter_map(|(name, text)| Some((key(name), text.as_ref()?)));
    let args = server.args.iter().enumerate().map(|(at, text)| (key(&format!("args[{at}]")), text));
    let env_of = server.env.iter().map(|(name, text)| (key(&format!("env.{name}")), text));
    let headers = server.headers.iter().map(|(name, text)| (key(&format!("headers.{name}")), text));
    for (key, text) in alone.chain(args).chain(env_of).chain(headers) {
        for lack in lacks(text, env) {
            let why = match lack {
                Lack::Unset(name) => format!("the variable {name} is not set here"),
                Lack::Key(_) | Lack::Odd(_) => lack.to_string(),
            };
            reading.warning(&key, format!("cannot be filled in: {why}; the server does not start without it"));
        }
    }
}

fn check_server(name: &str, server: &Server, reading: &mut Reading) {
    let key = format!("mcpServers.{name}");
    if name.trim().is_empty() {
        reading.error(&key, "has no name");
    }
    let has = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.trim().is_empty());
    let (command, url) = (has(&server.command), has(&server.url));
    let kind = server.kind.as_deref().map(|kind| kind.trim().to_ascii_lowercase().replace('-', "_"));
    match (kind.as_deref(), command, url) {
        (Some("stdio"), true, _) | (None, true, false) => {
            if url {
                reading.warning(&format!("{key}.url"), "is left out: the server is one of type stdio");
            }
        }
        (Some("http" | "sse" | "streamable_http" | "streamablehttp"), _, true) | (None, false, true) => {
            let http = server.url.as_deref().is_some_and(|url| {
                let url = url.trim().to_ascii_lowercase();
                url.starts_with("http://") || url.starts_with("https://") || url.starts_with("${")
            });
            if !http {
                reading.error(&format!("{key}.url"), "begins with neither http:// nor https://");
            }
            if command {
                reading.warning(&format!("{key}.command"), "is left out: the server is one of type http");
            }
        }
        (Some("stdio"), false, _) => {
            reading.error(&format!("{key}.command"), "is missing: a stdio server is a program")
        }
        (Some("http" | "sse" | "streamable_http" | "streamablehttp"), _, false) => {
            reading.error(&format!("{key}.url"), "is missing: it says where the server is");
        }
        (Some(_), ..) => reading.error(&format!("{key}.type"), "has to be stdio, http or sse"),
        (None, true, true) => {
            reading.error(&key, "has `command` and `url`: keep one, or say with `type` which of them counts");
        }
        (None, false, false) => reading.error(&key, "has neither `command` nor `url`: nothing could be started"),
    }
}
