//! Services of the app whose tools an assistant has besides those that it names: kept under one key, for the grants.

use serde_json::{Map, Value, json};

use super::access::{cannot_be_read, names};
use super::notes::Notes;
use super::yaml::Entry;

/// The key under which they are kept, however the file spells it.
const KEY: &str = "allowed_builtin_service_aliases";

/// Keeps what `entry` names. Where another such key was there, what both name is left.
pub(super) fn both(entry: &Entry, extra: &mut Map<String, Value>, notes: &mut Notes<'_>) {
    let mut found = names(entry);
    // A sentence is no list: nobody knows which of its words are services, and whether it gives or takes them.
    let prose = found.taken.len() > 1 && entry.value.scalar().is_some_and(|text| !text.contains([',', '\n']));
    if found.unreadable || prose {
        cannot_be_read(entry, "what is no name of a service gives none", notes);
    }
    found.taken.retain(|name| !prose && !found.refused.contains(name));
    let mut named = notes.bounded(found.taken, &entry.key, (entry.line, entry.column));
    if let Some(Value::Array(before)) = extra.get(KEY) {
        named.retain(|name| before.iter().any(|one| one == name));
    }
    extra.insert(KEY.to_owned(), json!(named));
}

/// Takes them all away.
pub(super) fn none(extra: &mut Map<String, Value>) {
    extra.remove(KEY);
}

/// Those that are kept in `extra`.
pub(crate) fn of(extra: &Map<String, Value>) -> impl Iterator<Item = &str> {
    extra.get(KEY).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}
