//! What a host has to say, as a pattern: JSON that what it says has to contain.
//!
//! Of an object each field of the pattern has to fit, further ones do not matter; a list fits one of the same length,
//! element by element; everything else has to be the same. An object with one field that begins with `$` asks for
//! something else: see [`ASKS`].

use serde_json::{Map, Value};

/// What a pattern can ask for beside equality, with what it means.
pub const ASKS: &[(&str, &str)] = &[
    ("$has", "TEXT: a text, or the JSON of anything else, that contains TEXT"),
    ("$one_of", "[PATTERN, …]: fits at least one"),
    ("$not", "PATTERN: does not fit"),
    ("$type", "\"string\", \"number\", \"boolean\", \"object\", \"array\" or \"null\""),
    ("$absent", "true: the field is not there, or null"),
];

/// How much of a value is quoted, characters.
const QUOTED_CHARS: usize = 300;

/// What a pattern that is no value asks for.
fn ask(pattern: &Value) -> Option<(&str, &Value)> {
    let map = pattern.as_object().filter(|map| map.len() == 1)?;
    map.iter().next().filter(|(key, _)| key.starts_with('$')).map(|(key, value)| (key.as_str(), value))
}

/// Looks whether a pattern can be asked at all.
///
/// # Errors
/// What is wrong with it.
pub fn check(pattern: &Value) -> Result<(), String> {
    if let Some((key, value)) = ask(pattern) {
        let fits = match key {
            "$has" => value.is_string(),
            "$one_of" => value.is_array(),
            "$not" => true,
            "$type" => matches!(value.as_str(), Some("string" | "number" | "boolean" | "object" | "array" | "null")),
            "$absent" => value == true,
            // Filled in before it is compared.
            "$repeat" => true,
            _ => return Err(format!("a pattern cannot ask for `{key}`")),
        };
        if !fits {
            return Err(format!("`{key}` cannot be {value}"));
        }
    }
    match pattern {
        Value::Array(all) => all.iter().try_for_each(check),
        Value::Object(map) => map.values().try_for_each(check),
        _ => Ok(()),
    }
}

/// Where a value does not fit, in words; nothing where it fits.
#[must_use]
pub fn misfit(pattern: &Value, value: &Value) -> Option<String> {
    misfit_at("", pattern, Some(value))
}

fn misfit_at(path: &str, pattern: &Value, value: Option<&Value>) -> Option<String> {
    let null = Value::Null;
    let given = value.unwrap_or(&null);
    let wrong = || {
        let place = if path.is_empty() { String::new() } else { format!("`{path}`: ") };
        let got = value.map_or_else(|| "nothing".to_owned(), quoted);
        Some(format!("{place}wanted {}, got {got}", quoted(pattern)))
    };
    if let Some((key, asked)) = ask(pattern) {
        let fits = match key {
            "$has" => {
                let text = given.as_str().map_or_else(|| given.to_string(), str::to_owned);
                asked.as_str().is_some_and(|part| text.contains(part))
            }
            "$one_of" => asked.as_array().is_some_and(|all| all.iter().any(|one| misfit(one, given).is_none())),
            "$not" => misfit(asked, given).is_some(),
            "$type" => asked == kind(given),
            "$absent" => given.is_null(),
            _ => false,
        };
        return if fits { None } else { wrong() };
    }
    match (pattern, given) {
        (Value::Object(wanted), Value::Object(given)) => fields(path, wanted, given),
        (Value::Array(wanted), Value::Array(given)) if wanted.len() == given.len() => {
            let pairs = wanted.iter().zip(given).enumerate();
            pairs.into_iter().find_map(|(at, (one, it))| misfit_at(&format!("{path}[{at}]"), one, Some(it)))
        }
        _ if value == Some(pattern) => None,
        _ => wrong(),
    }
}

fn fields(path: &str, wanted: &Map<String, Value>, given: &Map<String, Value>) -> Option<String> {
    let dot = if path.is_empty() { "" } else { "." };
    wanted.iter().find_map(|(key, one)| misfit_at(&format!("{path}{dot}{key}"), one, given.get(key)))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The beginning of a value, for people.
#[must_use]
pub fn quoted(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fits(pattern: Value, value: Value) {
        assert_eq!(check(&pattern), Ok(()));
        assert_eq!(misfit(&pattern, &value), None, "{pattern} {value}");
    }

    fn does_not(pattern: Value, value: Value, words: &str) {
        assert_eq!(check(&pattern), Ok(()));
        assert_eq!(misfit(&pattern, &value).as_deref(), Some(words), "{pattern} {value}");
    }

    #[test]
    fn a_pattern_is_contained() {
        fits(json!({}), json!({ "a": 1 }));
        fits(json!({ "a": { "b": [1, { "c": null }] } }), json!({ "a": { "b": [1, { "c": null, "d": 2 }] }, "e": 3 }));
        fits(json!({ "a": { "$has": "mid" } }), json!({ "a": "amidst" }));
        fits(json!({ "$has": "[1,2]" }), json!({ "a": [1, 2] }));
        fits(json!({ "$one_of": [1, { "$type": "string" }] }), json!("x"));
        fits(json!({ "a": { "$absent": true }, "b": { "$not": 1 } }), json!({ "a": null }));
        does_not(json!({ "a": { "b": 1 } }), json!({ "a": { "b": 2 } }), "`a.b`: wanted 1, got 2");
        does_not(json!({ "a": 1 }), json!({}), "`a`: wanted 1, got nothing");
        does_not(json!([1, 2]), json!([1]), "wanted [1,2], got [1]");
        does_not(json!({ "a": [1, 2] }), json!({ "a": [1, 3] }), "`a[1]`: wanted 2, got 3");
        does_not(json!({ "$absent": true }), json!(0), "wanted {\"$absent\":true}, got 0");
        does_not(json!("1"), json!(1), "wanted \"1\", got 1");
    }

    #[test]
    fn a_pattern_that_asks_for_something_unknown_is_told() {
        assert_eq!(check(&json!([{ "$hass": "x" }])), Err("a pattern cannot ask for `$hass`".to_owned()));
        assert_eq!(check(&json!({ "a": { "$type": "list" } })), Err("`$type` cannot be \"list\"".to_owned()));
    }
}
