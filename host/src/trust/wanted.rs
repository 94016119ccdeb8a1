//! What a definition would run, in whatever way its dialect says so.

use serde_json::{Map, Value, json};

use super::{Kind, Wanted};
use crate::registry::yaml::truth;
use crate::registry::{Definition, fold};
use crate::servers::Configured;
use crate::tools::policy::{does_more, is_configured};

/// Keys that hold a program or a line for a shell, folded.
pub(crate) const COMMANDS: &[&str] = &["command", "cmd", "bash", "powershell", "run", "program", "exec", "shell"];
/// Keys that hold arguments.
pub(crate) const ARGUMENTS: &[&str] = &["args", "arguments", "argv"];
/// Keys that hold an address.
pub(crate) const URLS: &[&str] = &["url", "uri", "httpurl", "serverurl", "sseurl", "endpoint"];
/// Keys that hold a folder.
pub(crate) const FOLDERS: &[&str] = &["cwd", "workingdir", "workingdirectory"];
/// Keys that hold variables: a map, `NAME=value` lines, or names.
pub(crate) const VARIABLES: &[&str] =
    &["env", "environment", "envs", "envkeys", "envvars", "bearertokenenvvar", "envhttpheaders", "envfile"];
/// Keys that hold headers.
pub(crate) const HEADERS: &[&str] = &["headers", "httpheaders"];
/// Keys that hold a program itself.
pub(crate) const SCRIPTS: &[&str] = &["code", "script"];

/// What a definition would run, in the order in which it stands there. As many as the reader's bound on a file allows.
#[must_use]
pub fn wanted(definition: &Definition) -> Vec<Wanted> {
    let mut found = Vec::new();
    if let Some(value) = &definition.mcp_servers {
        servers(value, &mut found);
    }
    for (key, value) in &definition.extra {
        match fold(key).as_str() {
            "mcp" | "mcpservers" => servers(value, &mut found),
            "extensions" => extensions(value, &mut found),
            "hooks" | "notify" => hooks(key, value, &mut found),
            "retry" => checks(value, &mut found),
            _ => {}
        }
    }
    found
}

/// The tools of an agent's own that a definition asks for and that do more than look, as one thing: none where it asks for
/// none, or only for those of servers that are `configured`.
#[must_use]
pub fn own_tools(definition: &Definition, configured: &Configured) -> Option<Wanted> {
    let by_rules = definition.given_by_rules();
    let asked = definition.tools.iter().flatten().chain(&by_rules);
    let mut more: Vec<&str> = asked.filter(|name| does_more(name)).map(String::as_str).collect();
    more.sort_unstable();
    more.dedup();
    // What is allowed names them all: it stays allowed when a server is configured, or no more.
    (!more.iter().all(|name| is_configured(name, configured))).then(|| Wanted {
        kind: Kind::Agent,
        text: Some(more.join(", ")),
        ..named("tools", &json!(more))
    })
}

/// Servers: a map of them, a list of them or of names, or names in one text.
fn servers(value: &Value, found: &mut Vec<Wanted>) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => found.push(named(&number.to_string(), value)),
        Value::String(text) => {
            let names: Vec<&str> =
                text.split([',', '\n']).map(|name| name.trim().trim_start_matches("- ").trim()).collect();
            // What is no list of names, such as a map that was no valid YAML, may hold secrets.
            match names.iter().any(|name| name.ends_with(':') || name.contains(": ") || name.contains(['{', '"'])) {
                true => {
                    let text = Some("servers that cannot be read".to_owned());
                    found.push(Wanted { text, ..named("unreadable", value) });
                }
                false => found.extend(names.into_iter().filter(|name| !name.is_empty()).map(|name| {
                    let url = name.contains("://").then(|| name.to_owned());
                    Wanted { url, ..named(name, &json!(name)) }
                })),
            }
        }
        Value::Array(list) => {
            for one in list {
                match (one, one.get("name").and_then(Value::as_str)) {
                    (Value::Object(_), Some(name)) => found.push(server(name, one)),
                    (Value::Object(map), None) if !is_config(map) => servers(one, found),
                    (Value::Object(_), None) => found.push(server("unnamed", one)),
                    _ => servers(one, found),
                }
            }
        }
        Value::Object(map) if is_config(map) => {
            found.push(server(map.get("name").and_then(Value::as_str).unwrap_or("unnamed"), value));
        }
        Value::Object(map) => {
            for (name, one) in map {
                match one {
                    Value::Object(inner)
                        if matches!(fold(name).as_str(), "servers" | "mcpservers") && !is_config(inner) =>
                    {
                        servers(one, found);
                    }
                    _ => found.push(server(name, one)),
                }
            }
        }
    }
}

fn server(name: &str, value: &Value) -> Wanted {
    match value {
        Value::Object(map) if !map.is_empty() => thing(Kind::Server, name, map, value),
        Value::String(text) if text.contains("://") => Wanted { url: Some(text.clone()), ..named(name, value) },
        Value::String(text) if !text.trim().is_empty() => Wanted { command: vec![text.clone()], ..named(name, value) },
        Value::Array(list) if !list.is_empty() => Wanted { command: texts(value), ..named(name, value) },
        _ => named(name, value),
    }
}

/// A server of which the definition says no more than its name.
fn named(name: &str, written: &Value) -> Wanted {
    Wanted {
        name: name.to_owned(),
        kind: Kind::Server,
        command: Vec::new(),
        url: None,
        folder: None,
        env: Vec::new(),
        headers: Vec::new(),
        text: None,
        written: written.clone(),
    }
}

/// goose's extensions. Those that are built into it name nothing that could run here.
fn extensions(value: &Value, found: &mut Vec<Wanted>) {
    let runs = |one: &Value| one.as_object().is_some_and(is_config);
    match value {
        Value::Array(list) => {
            for one in list.iter().filter(|one| runs(one)) {
                found.push(server(one.get("name").and_then(Value::as_str).unwrap_or("unnamed"), one));
            }
        }
        Value::Object(map) => {
            found.extend(map.iter().filter(|(_, one)| runs(one)).map(|(name, one)| server(name, one)))
        }
        _ => {}
    }
}

/// Hooks: by event, each a command, or a list of matchers with their commands.
fn hooks(name: &str, value: &Value, found: &mut Vec<Wanted>) {
    match value {
        Value::Object(map) if !is_config(map) => {
            for (event, one) in map {
                hook(event, one, found);
            }
        }
        _ => hook(name, value, found),
    }
}

fn hook(name: &str, value: &Value, found: &mut Vec<Wanted>) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(line) => {
            found.push(Wanted { kind: Kind::Hook, command: vec![line.clone()], ..named(name, value) });
        }
        Value::Array(list) if !list.is_empty() && list.iter().all(Value::is_string) => {
            found.push(Wanted { kind: Kind::Hook, command: texts(value), ..named(name, value) });
        }
        Value::Array(list) => list.iter().for_each(|one| hook(name, one, found)),
        Value::Object(map) => {
            let name = match map.get("matcher").and_then(Value::as_str) {
                Some(matcher) if !matcher.is_empty() => format!("{name}({matcher})"),
                _ => name.to_owned(),
            };
            match map.get("hooks") {
                Some(inner) => hook(&name, inner, found),
                None => found.push(thing(Kind::Hook, &name, map, value)),
            }
        }
    }
}

/// The checks of a goose recipe, and what it runs when they fail.
fn checks(value: &Value, found: &mut Vec<Wanted>) {
    for one in value.get("checks").and_then(Value::as_array).into_iter().flatten() {
        match one {
            Value::Object(map) => found.push(thing(Kind::Check, "retry", map, one)),
            Value::String(line) => {
                found.push(Wanted { kind: Kind::Check, command: vec![line.clone()], ..named("retry", one) });
            }
            _ => {}
        }
    }
    if let Some(line) = value.get("on_failure").filter(|line| !line.is_null()) {
        found.push(Wanted { kind: Kind::Check, command: texts(line), ..named("on_failure", line) });
    }
}

/// Whether a map says what runs, and is no map of such by their names: what its keys hold is no map itself.
fn is_config(map: &Map<String, Value>) -> bool {
    let says = |keys: &[&str]| get(map, keys).is_some_and(|value| value.is_string() || value.is_array());
    says(COMMANDS) || says(URLS) || says(SCRIPTS)
}

fn get<'a>(map: &'a Map<String, Value>, keys: &[&str]) -> Option<&'a Value> {
    map.iter().find(|(key, _)| keys.contains(&fold(key).as_str())).map(|(_, value)| value)
}

/// All that stands under any of these keys: a map may say the same thing twice.
pub(crate) fn all<'a>(map: &'a Map<String, Value>, keys: &'static [&'static str]) -> impl Iterator<Item = &'a Value> {
    map.iter().filter(move |(key, _)| keys.contains(&fold(key).as_str())).map(|(_, value)| value)
}

fn thing(kind: Kind, name: &str, map: &Map<String, Value>, written: &Value) -> Wanted {
    let mut command: Vec<String> = all(map, COMMANDS).chain(all(map, SCRIPTS)).flat_map(texts).collect();
    command.extend(all(map, ARGUMENTS).flat_map(texts));
    let urls: Vec<String> = all(map, URLS).flat_map(texts).collect();
    let url = (!urls.is_empty()).then(|| urls.join(" "));
    let says_nothing = command.is_empty() && url.is_none() && map.keys().any(|key| key != "name");
    Wanted {
        kind,
        command,
        url,
        folder: get(map, FOLDERS).and_then(Value::as_str).map(str::to_owned),
        env: all(map, VARIABLES).flat_map(names).collect(),
        headers: all(map, HEADERS).flat_map(names).collect(),
        text: says_nothing.then(|| without_values(map)),
        ..named(name, written)
    }
}

/// A text, or the texts of a list; what is no text is shown as it is written.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.clone()],
        Value::Array(list) => list.iter().flat_map(texts).collect(),
        other => vec![other.to_string()],
    }
}

/// The names of variables or headers.
fn names(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => map.keys().cloned().collect(),
        other => {
            let name = |text: String| text.split(['=', ':']).next().unwrap_or_default().trim().to_owned();
            texts(other).into_iter().map(name).collect()
        }
    }
}

/// Whether what is written of a server switches it off. A switch that cannot be read is off.
pub(super) fn is_off(written: &Value) -> bool {
    let says = |value: &Value| match value {
        Value::Bool(on) => Some(*on),
        Value::String(text) => truth(text.trim()),
        Value::Number(number) => truth(&number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    match written {
        Value::Bool(on) => !on,
        Value::Object(map) => {
            map.iter().filter(|(_, value)| !value.is_null()).any(|(key, value)| match fold(key).as_str() {
                "enabled" => says(value) != Some(true),
                "disabled" => says(value) != Some(false),
                _ => false,
            })
        }
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}

/// What stands in a map, as JSON, without the values of variables and headers.
fn without_values(map: &Map<String, Value>) -> String {
    let hides = |key: &str| VARIABLES.contains(&fold(key).as_str()) || HEADERS.contains(&fold(key).as_str());
    let kept: Map<String, Value> =
        map.iter().filter(|(key, _)| !hides(key)).map(|(key, value)| (key.clone(), value.clone())).collect();
    Value::Object(kept).to_string()
}
