//! JSON files, with comments.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use serde_json::{Map, Value};

/// What clients read: JSON with comments and trailing commas, nothing looser.
const READ: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};
/// What some editors put before the text.
const MARK: char = '\u{feff}';

/// Reads a file's text; an empty one holds nothing.
pub(super) fn read(text: &str) -> Result<Value, String> {
    let root = parse(text).map_err(|error| format!("is no JSON: {error}"))?;
    let nothing = || Value::Object(Map::new());
    match root.value() {
        None => Ok(nothing()),
        Some(value) => value.to_serde_value().ok_or_else(|| "is no JSON".to_owned()),
    }
}

/// The text with the fields in the entry.
pub(super) fn put(text: &str, under: &str, name: &str, fields: &super::edit::Fields) -> Option<String> {
    let root = parse(text).ok()?;
    let top = root.object_value_or_create()?;
    let servers = top.object_value_or_create(under)?;
    match servers.get(name) {
        None => {
            let entry = fields.iter().map(|(key, value)| ((*key).to_owned(), input(value))).collect();
            servers.append(name, CstInputValue::Object(entry));
        }
        Some(entry) => {
            let entry = entry.object_value()?;
            for (key, value) in fields {
                match entry.get(key) {
                    Some(field) => field.set_value(input(value)),
                    None => _ = entry.append(key, input(value)),
                }
            }
        }
    }
    let mark = text.starts_with(MARK).then_some(MARK);
    Some(mark.into_iter().chain(root.to_string().chars()).collect())
}

fn parse(text: &str) -> Result<CstRootNode, jsonc_parser::errors::ParseError> {
    CstRootNode::parse(text.strip_prefix(MARK).unwrap_or(text), &READ)
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(map) => {
            CstInputValue::Object(map.iter().map(|(key, value)| (key.clone(), input(value))).collect())
        }
    }
}
