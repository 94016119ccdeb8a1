//! What a definition or the configuration says of a server, in whatever way it is written, as one thing.
//!
//! It is read from the very value that the user is asked to trust ([`Wanted`]): what is not told apart there is not
//! started here.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::words;
use crate::registry::fold;
use crate::trust::{ARGUMENTS, COMMANDS, FOLDERS, HEADERS, SCRIPTS, URLS, VARIABLES, Wanted, all};

/// The least number of a bare `timeout` that is taken for milliseconds; less is seconds, as goose writes them. Nobody
/// gives a call of a tool less than a second.
const TIMEOUT_MS_MIN: f64 = 1_000.0;
/// The longest timeout that is taken, milliseconds: a day.
const TIMEOUT_MS_MAX: f64 = 86_400_000.0;

/// A server, as it is written: variables are not expanded.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub how: How,
    /// The longest that one call may take.
    pub timeout_ms: Option<u64>,
    /// The longest that its start may take.
    pub start_ms: Option<u64>,
    /// Whether assistants that name the same server use one.
    pub shared: bool,
    /// The only tools of it that are offered; none is all. `*` is any text.
    pub only: Option<Vec<String>>,
    /// Tools of it that are not offered.
    pub without: Vec<String>,
}

/// How a server is reached.
#[derive(Clone, PartialEq)]
pub enum How {
    /// A program that speaks on its stdin and stdout.
    Program {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its variables. Their values may be secrets.
        env: BTreeMap<String, String>,
        /// The folder that it runs in.
        folder: Option<String>,
    },
    /// An address that is spoken to over HTTP.
    Http {
        /// The address.
        url: String,
        /// Headers of each request. Their values may be secrets.
        headers: BTreeMap<String, String>,
        /// The old transport is meant, of two addresses.
        sse: bool,
    },
    /// The one of this name in the configuration.
    Named,
    /// It is switched off.
    Off,
    /// It cannot be started from what is written.
    Unusable(String),
}

/// Without the values of variables and headers.
impl std::fmt::Debug for How {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Program { command, args, env, folder } => {
                let names: Vec<&String> = env.keys().collect();
                f.debug_struct("Program")
                    .field("command", command)
                    .field("args", args)
                    .field("env", &names)
                    .field("folder", folder)
                    .finish()
            }
            Self::Http { url, headers, sse } => {
                let names: Vec<&String> = headers.keys().collect();
                f.debug_struct("Http").field("url", url).field("headers", &names).field("sse", sse).finish()
            }
            Self::Named => f.write_str("Named"),
            Self::Off => f.write_str("Off"),
            Self::Unusable(why) => f.debug_tuple("Unusable").field(why).finish(),
        }
    }
}

impl Spec {
    /// A server of which no more is said than how it is reached.
    #[must_use]
    pub fn new(name: &str, how: How) -> Self {
        Self {
            name: name.to_owned(),
            how,
            timeout_ms: None,
            start_ms: None,
            shared: true,
            only: None,
            without: Vec::new(),
        }
    }

    /// What is written of a server in a definition.
    #[must_use]
    pub fn of(wanted: &Wanted) -> Self {
        let name = wanted.name.as_str();
        if wanted.is_off() {
            return Self::new(name, How::Off);
        }
        match wanted.written() {
            Value::Object(map) if !map.is_empty() => of_map(name, map),
            _ if wanted.text.is_some() => Self::new(name, unusable("it cannot be read")),
            _ => match (&wanted.url, wanted.command.as_slice()) {
                (Some(url), _) => Self::new(name, http(url.clone(), BTreeMap::new(), false)),
                (None, []) => Self::new(name, How::Named),
                (None, command) => Self::new(name, program(command.to_vec(), None, BTreeMap::new(), None)),
            },
        }
    }
}

fn unusable(why: &str) -> How {
    How::Unusable(why.to_owned())
}

fn http(url: String, headers: BTreeMap<String, String>, sse: bool) -> How {
    How::Http { url, headers, sse }
}

/// A program from its command, and its arguments where they stand apart.
fn program(
    mut command: Vec<String>,
    args: Option<Vec<String>>,
    env: BTreeMap<String, String>,
    folder: Option<String>,
) -> How {
    // `npx -y a-server` in one text, without a key for arguments, is several words.
    if args.is_none()
        && let [line] = command.as_slice()
    {
        match words::split(line) {
            Some(words) => command = words,
            None => return unusable("its command has a quote without an end"),
        }
    }
    command.extend(args.into_iter().flatten());
    let mut words = command.into_iter();
    match words.next() {
        Some(command) if !command.trim().is_empty() => How::Program { command, args: words.collect(), env, folder },
        _ => unusable("its command is empty"),
    }
}

fn of_map(name: &str, map: &Map<String, Value>) -> Spec {
    let mut spec = Spec::new(name, How::Named);
    let mut kind = String::new();
    for (key, value) in map {
        match fold(key).as_str() {
            "type" | "transport" | "transporttype" => kind = fold(value.as_str().unwrap_or_default()),
            "shared" => spec.shared = value != &Value::Bool(false),
            "perprocess" => spec.shared = value != &Value::Bool(true),
            "timeout" | "tooltimeout" => spec.timeout_ms = any_ms(value),
            "timeoutms" | "tooltimeoutms" | "calltimeoutms" => spec.timeout_ms = ms(value, 1.0),
            "timeoutsec" | "timeoutsecs" | "timeoutseconds" | "tooltimeoutsec" | "tooltimeoutsecs" => {
                spec.timeout_ms = ms(value, 1_000.0);
            }
            "starttimeoutms" | "startuptimeoutms" | "inittimeoutms" | "startms" => spec.start_ms = ms(value, 1.0),
            "starttimeoutsec" | "startuptimeoutsec" => spec.start_ms = ms(value, 1_000.0),
            "starttimeout" | "startuptimeout" | "inittimeout" => spec.start_ms = any_ms(value),
            "tools" | "includetools" | "enabledtools" | "availabletools" | "allowedtools" => {
                spec.only = Some(texts(value)).filter(|only| !only.is_empty() || value.is_array());
            }
            "excludetools" | "disabledtools" | "blockedtools" => spec.without.extend(texts(value)),
            _ => {}
        }
    }
    spec.how = how(map, &kind);
    spec
}

fn how(map: &Map<String, Value>, kind: &str) -> How {
    if matches!(kind, "builtin" | "platform" | "frontend" | "inlinepython" | "sdk") {
        return How::Unusable(format!("it is of the type {kind}, which is a part of another program"));
    }
    if all(map, SCRIPTS).next().is_some() {
        return unusable("it is a script in the definition; put it into a file, and name the program that runs it");
    }
    // What is said twice is shown twice to whoever is asked to trust it, and nobody knows which is meant.
    for (keys, what) in [(COMMANDS, "command"), (ARGUMENTS, "arguments"), (URLS, "address"), (FOLDERS, "folder")] {
        if all(map, keys).count() > 1 {
            return How::Unusable(format!("it tells its {what} twice"));
        }
    }
    let env = match env(map) {
        Ok(env) => env,
        Err(why) => return How::Unusable(why),
    };
    let command = all(map, COMMANDS).next().filter(|value| !value.is_null());
    let args = all(map, ARGUMENTS).next().filter(|value| !value.is_null());
    let url = all(map, URLS).next().and_then(Value::as_str);
    match (command, url) {
        (Some(_), Some(_)) => unusable("it tells both a command and an address"),
        (Some(command), None) => {
            let args = match args {
                None if command.is_array() => Some(Vec::new()),
                None => None,
                Some(Value::String(line)) => match words::split(line) {
                    Some(words) => Some(words),
                    None => return unusable("its arguments have a quote without an end"),
                },
                Some(list) => Some(texts(list)),
            };
            let folder = all(map, FOLDERS).next().and_then(Value::as_str).map(str::to_owned);
            program(texts(command), args, env, folder)
        }
        (None, Some(url)) => http(url.to_owned(), headers(map), kind == "sse"),
        (None, None) if map.keys().all(|key| !matches!(fold(key).as_str(), "type" | "transport")) => How::Named,
        (None, None) => unusable("it tells neither a command nor an address"),
    }
}

/// The variables: a map, `NAME=value` lines, or names alone, whose values are the host's.
fn env(map: &Map<String, Value>) -> Result<BTreeMap<String, String>, String> {
    let mut found = BTreeMap::new();
    for (key, value) in map.iter().filter(|(key, _)| VARIABLES.contains(&fold(key).as_str())) {
        match (fold(key).as_str(), value) {
            ("bearertokenenvvar" | "envhttpheaders", _) | (_, Value::Null) => {}
            ("envfile", _) => {
                return Err("it names a file of variables, which is not read; list them under `env`".to_owned());
            }
            (_, Value::Object(values)) => {
                found.extend(values.iter().filter_map(|(name, value)| Some((name.clone(), scalar(value)?))));
            }
            (_, list) => {
                for line in texts(list) {
                    let (name, value) = match line.split_once('=') {
                        Some((name, value)) => (name.trim().to_owned(), value.to_owned()),
                        None => (line.trim().to_owned(), format!("${{{}}}", line.trim())),
                    };
                    found.insert(name, value);
                }
            }
        }
    }
    Ok(found)
}

/// The headers, with those whose values the host's variables hold.
fn headers(map: &Map<String, Value>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for value in all(map, HEADERS) {
        match value {
            Value::Object(values) => {
                found.extend(values.iter().filter_map(|(name, value)| Some((name.clone(), scalar(value)?))));
            }
            list => {
                let lines = texts(list);
                let pairs = lines.iter().filter_map(|line| line.split_once([':', '=']));
                found.extend(pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())));
            }
        }
    }
    for (key, value) in map {
        match (fold(key).as_str(), value) {
            ("bearertokenenvvar", Value::String(name)) => {
                found.insert("Authorization".to_owned(), format!("Bearer ${{{}}}", name.trim()));
            }
            ("envhttpheaders", Value::Object(names)) => {
                let named = names.iter().filter_map(|(header, name)| Some((header.clone(), name.as_str()?)));
                found.extend(named.map(|(header, name)| (header, format!("${{{name}}}"))));
            }
            _ => {}
        }
    }
    found
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// A text, or the texts of a list.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(list) => list.iter().filter_map(scalar).collect(),
        one => scalar(one).into_iter().collect(),
    }
}

fn ms(value: &Value, each: f64) -> Option<u64> {
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    let ms = number * each;
    // A timeout of 0 is none at all in most systems.
    (ms > 0.0).then(|| ms.min(TIMEOUT_MS_MAX).ceil() as u64)
}

/// A time whose unit is not told.
fn any_ms(value: &Value) -> Option<u64> {
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    ms(value, if number < TIMEOUT_MS_MIN { 1_000.0 } else { 1.0 })
}

#[cfg(test)]
mod tests;
