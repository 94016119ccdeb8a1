//! A client's file with our entry in it. All else stays as it is, comments and layout too; and what was written is read
//! again and compared before anyone sees it.

use serde_json::{Map, Value};

use super::{json, toml, yaml};

/// The name of our program, in entries that other copies of it wrote.
const PROGRAM: &str = "assistant-host";

/// The format of a client's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// JSON, with comments and trailing commas.
    Json,
    Toml,
    Yaml,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Change {
    /// There was no entry of that name.
    Added,
    /// There was one of ours, with something else in it.
    Updated,
    /// It was there already.
    Unchanged,
}

/// A file's text with the entry.
#[derive(Debug, PartialEq)]
pub(super) struct Edited {
    pub(super) text: String,
    pub(super) change: Change,
}

/// The fields of an entry, in order.
pub(super) type Fields = [(&'static str, Value)];

impl Format {
    fn read(self, text: &str) -> Result<Value, String> {
        match self {
            Self::Json => json::read(text),
            Self::Toml => toml::read(text),
            Self::Yaml => yaml::read(text),
        }
    }

    fn put(self, text: &str, under: &str, name: &str, fields: &Fields) -> Option<String> {
        match self {
            Self::Json => json::put(text, under, name, fields),
            Self::Toml => toml::put(text, under, name, fields),
            Self::Yaml => yaml::put(text, under, name, fields),
        }
    }
}

/// Puts the entry `name` below the key `under`. Of an entry of ours that is there, only `fields` are changed.
///
/// # Errors
/// A text that cannot be read, an entry of that name that is not ours, and a layout that cannot be kept, in words that
/// follow the file's name.
pub(super) fn edit(format: Format, text: &str, under: &str, name: &str, fields: &Fields) -> Result<Edited, String> {
    let before = format.read(text)?;
    let Value::Object(mut expected) = before else { return Err("holds no table of settings at its top".to_owned()) };
    let servers = expected.entry(under).or_insert_with(|| Value::Object(Map::new()));
    if servers.is_null() && format == Format::Yaml {
        *servers = Value::Object(Map::new());
    }
    let Value::Object(servers) = servers else { return Err(format!("has something else than servers in `{under}`")) };
    let (change, changed) = match servers.get(name) {
        None => (Change::Added, fields.to_vec()),
        Some(Value::Object(entry)) if is_ours(entry, fields) => {
            let differs = |(key, value): &&(&'static str, Value)| entry.get(*key) != Some(value);
            let changed: Vec<_> = fields.iter().filter(differs).cloned().collect();
            (if changed.is_empty() { Change::Unchanged } else { Change::Updated }, changed)
        }
        Some(_) => {
            return Err(format!("has an entry `{name}` of another program in `{under}`; choose another --name"));
        }
    };
    if change == Change::Unchanged {
        return Ok(Edited { text: text.to_owned(), change });
    }
    let entry = servers.entry(name).or_insert_with(|| Value::Object(Map::new()));
    for (key, value) in &changed {
        entry[*key] = value.clone();
    }
    let edited = format.put(text, under, name, &changed);
    let kept = |text: &String| format.read(text).is_ok_and(|after| after == Value::Object(expected));
    match edited.filter(kept) {
        Some(text) => Ok(Edited { text, change }),
        None => Err("is laid out in a way that cannot be kept; add the entry by hand".to_owned()),
    }
}

/// Whether an entry starts a program of ours.
fn is_ours(entry: &Map<String, Value>, fields: &Fields) -> bool {
    let command = |value: &Value| value.as_str().or_else(|| value[0].as_str()).map(str::to_owned);
    let stem = |command: &str| {
        let file = command.rsplit(['/', '\\']).next().unwrap_or_default();
        file.strip_suffix(".exe").unwrap_or(file).to_owned()
    };
    let Some((key, ours)) = fields.iter().find(|(key, _)| matches!(*key, "command" | "cmd")) else { return false };
    let there = entry.get(*key).and_then(command).map(|command| stem(&command));
    there.is_some_and(|there| there == PROGRAM || command(ours).is_some_and(|ours| stem(&ours) == there))
}
