//! Services of the app whose tools an assistant has besides those that it names: kept as written, for the grants.

use serde_json::{Map, Value};

use super::known::{self, Field};
use super::yaml::Entry;

/// Keeps what `entry` names. Where another such key was there, what both name is left of each.
pub(super) fn both(entry: &Entry, extra: &mut Map<String, Value>) {
    let mut named = entry.value.json();
    for (_, before) in extra.iter_mut().filter(|(key, _)| is_key(key)) {
        let shared = match (&*before, &named) {
            (Value::Array(one), Value::Array(other)) => {
                one.iter().filter(|name| other.contains(name)).cloned().collect()
            }
            _ => Vec::new(),
        };
        *before = Value::Array(shared);
        named.clone_from(before);
    }
    extra.insert(entry.key.clone(), named);
}

/// Takes them all away.
pub(super) fn none(extra: &mut Map<String, Value>) {
    extra.retain(|key, _| !is_key(key));
}

fn is_key(key: &str) -> bool {
    known::look(&known::fold(key)).is_some_and(|(field, _)| field == Field::Services)
}
