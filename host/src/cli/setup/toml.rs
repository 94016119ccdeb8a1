//! TOML files.

use serde_json::Value;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike};

/// Reads a file's text.
pub(super) fn read(text: &str) -> Result<Value, String> {
    toml::from_str(text).map_err(|error| format!("is no TOML: {}", error.message()))
}

/// The text with the fields in the entry.
pub(super) fn put(text: &str, under: &str, name: &str, fields: &super::edit::Fields) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let servers = document.entry(under).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let servers = servers.as_table_like_mut()?;
    if servers.get(name).is_none() {
        servers.insert(name, Item::Table(Table::new()));
    }
    let entry = servers.get_mut(name)?.as_table_like_mut()?;
    for (key, value) in fields {
        set(entry, key, input(value)?);
    }
    Some(document.to_string())
}

/// Sets a value; what stands around it, as a comment behind it, stays.
pub(super) fn set(entry: &mut dyn TableLike, key: &str, mut value: toml_edit::Value) {
    match entry.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => _ = entry.insert(key, Item::Value(value)),
    }
}

/// The same value in TOML; none where that has none, or where it is a table.
pub(super) fn input(value: &Value) -> Option<toml_edit::Value> {
    match value {
        Value::Bool(value) => Some((*value).into()),
        Value::String(value) => Some(value.into()),
        Value::Number(value) => value.as_i64().map(Into::into),
        Value::Array(values) => values.iter().map(input).collect::<Option<Array>>().map(toml_edit::Value::Array),
        Value::Null | Value::Object(_) => None,
    }
}
