//! What a definition says of servers and commands, without the values of variables, headers and keys: they may be secrets.

use serde_json::{Map, Value};

use super::wanted::{HEADERS, VARIABLES};
use crate::registry::fold;

/// What stands for a value that is not shown.
const SET: &str = "(set)";
/// Ends of keys, folded, that hold a secret wherever they stand.
const SECRETS: &[&str] = &["apikey", "authorization", "credential", "passphrase", "password", "secret", "token"];
/// Keys of variables, folded, whose values are names of others.
const OF_NAMES: &[&str] = &["bearertokenenvvar", "envfile", "envhttpheaders"];

/// `value` as it may be shown: names stay, and so do references such as `${TOKEN}`.
pub(crate) fn masked(value: &Value) -> Value {
    match value {
        Value::Array(list) => list.iter().map(masked).collect(),
        Value::Object(map) => map_masked(map).into(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The same of a map.
pub(crate) fn map_masked(map: &Map<String, Value>) -> Map<String, Value> {
    let one = |(key, value): (&String, &Value)| {
        let folded = fold(key);
        let shown = match folded.as_str() {
            key if OF_NAMES.contains(&key) => value.clone(),
            key if VARIABLES.contains(&key) => pairs(value, '='),
            key if HEADERS.contains(&key) => pairs(value, ':'),
            key if SECRETS.iter().any(|end| key.ends_with(end)) && value.is_string() => hidden(value),
            _ => masked(value),
        };
        (key.clone(), shown)
    };
    map.iter().map(one).collect()
}

/// A line of a file as it may be shown: what stands behind a key of variables, headers or a secret is left out.
pub(crate) fn line_masked(line: &str) -> String {
    let hides = |key: &str| {
        let key = fold(key);
        let listed = VARIABLES.contains(&key.as_str()) || HEADERS.contains(&key.as_str());
        !OF_NAMES.contains(&key.as_str()) && (listed || SECRETS.iter().any(|end| key.ends_with(end)))
    };
    let key_before = |at: usize| {
        let before = line[..at].trim_end().trim_end_matches(['"', '\'']);
        before.rsplit(|c: char| !c.is_alphanumeric() && !"-_".contains(c)).next().unwrap_or_default()
    };
    match line.match_indices([':', '=']).find(|(at, _)| hides(key_before(*at))) {
        Some((at, sign)) if !line[at + sign.len()..].trim().is_empty() => format!("{} {SET}", &line[..at + sign.len()]),
        _ => line.to_owned(),
    }
}

/// Names and their values: a map, or texts with `sign` between the two. A text without it is a name.
fn pairs(value: &Value, sign: char) -> Value {
    match value {
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), hidden(value))).collect(),
        Value::Array(list) => list.iter().map(|one| pairs(one, sign)).collect(),
        Value::String(text) => {
            let line = |line: &str| match line.split_once(sign) {
                Some((name, value)) => format!("{name}{sign}{}", without_literals(value)),
                None => line.to_owned(),
            };
            text.lines().map(line).collect::<Vec<_>>().join("\n").into()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// `value` with nothing but its references.
fn hidden(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Array(list) => list.iter().map(hidden).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), hidden(value))).collect(),
        Value::String(text) => without_literals(text).into(),
        Value::Bool(_) | Value::Number(_) => SET.into(),
    }
}

/// The references in `text`, in their order, and one word for whatever else stands before, between or behind them.
fn without_literals(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        if let Some(length) = reference(rest) {
            shown.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        let next = rest.char_indices().skip(1).map(|(at, _)| at).find(|at| reference(&rest[*at..]).is_some());
        if !rest[..next.unwrap_or(rest.len())].trim().is_empty() {
            shown.push_str(SET);
        }
        rest = &rest[next.unwrap_or(rest.len())..];
    }
    shown
}

/// The length of the reference with which `text` begins, bytes: `${NAME}`, `${{ secrets.NAME }}`, `{env:NAME}` or `$NAME`.
/// One with a value to take in its place is none.
fn reference(text: &str) -> Option<usize> {
    let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for (open, close) in [("${{", "}}"), ("${env:", "}"), ("${input:", "}"), ("${", "}"), ("{env:", "}")] {
        if let Some((inner, _)) = text.strip_prefix(open).and_then(|rest| rest.split_once(close))
            && !inner.trim().is_empty()
            && inner.trim().chars().all(|c| name(c) || c == '.')
        {
            return Some(open.len() + inner.len() + close.len());
        }
    }
    let bare = text.strip_prefix('$').filter(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase() || c == '_'))?;
    Some(1 + bare.find(|c| !name(c)).unwrap_or(bare.len()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_variables_and_headers_are_not_shown() {
        let check = |value: Value, expected: Value| assert_eq!(masked(&value), expected, "{value}");
        check(
            json!({ "s": { "command": "x", "args": ["--a"], "env": { "A": "one", "B": "${B}", "C": 7, "D": null } } }),
            json!({ "s": { "command": "x", "args": ["--a"], "env": { "A": "(set)", "B": "${B}", "C": "(set)", "D": null } } }),
        );
        check(
            json!([{ "name": "s", "url": "https://x", "HTTP-Headers": { "Authorization": "Bearer abc", "X": "Bearer ${X}" } }]),
            json!([{ "name": "s", "url": "https://x", "HTTP-Headers": { "Authorization": "(set)", "X": "(set)${X}" } }]),
        );
        check(json!({ "envs": ["A=one", "B", "C=$C"] }), json!({ "envs": ["A=(set)", "B", "C=$C"] }));
        check(json!({ "env": "A=one\nB=two" }), json!({ "env": "A=(set)\nB=(set)" }));
        check(json!({ "headers": ["X-Key: abc"] }), json!({ "headers": ["X-Key:(set)"] }));
        check(
            json!({ "env": { "A": { "b": "c", "d": ["e"] } } }),
            json!({ "env": { "A": { "b": "(set)", "d": ["(set)"] } } }),
        );
        check(
            json!({ "apiKey": "abc", "api_key": "$KEY", "max_tokens": 9 }),
            json!({ "apiKey": "(set)", "api_key": "$KEY", "max_tokens": 9 }),
        );
        check(json!({ "bearer_token_env_var": "TOKEN" }), json!({ "bearer_token_env_var": "TOKEN" }));
        check(
            json!({ "auth": { "type": "x", "password": "p" } }),
            json!({ "auth": { "type": "x", "password": "(set)" } }),
        );
        check(json!(["orders"]), json!(["orders"]));
        check(json!("orders"), json!("orders"));
    }

    #[test]
    fn lines_end_where_a_secret_begins() {
        let check = |line: &str, expected: &str| assert_eq!(line_masked(line), expected, "{line}");
        check("mcpServers: {s: {command: x, env: {A: abc}}}", "mcpServers: {s: {command: x, env: (set)");
        check("  \"API_KEY\" : \"abc\"", "  \"API_KEY\" : (set)");
        check("http_headers = { X = \"abc\" }", "http_headers = (set)");
        check("GITHUB_TOKEN: abc", "GITHUB_TOKEN: (set)");
        for line in ["env:", "tools: [Read]", "bearer_token_env_var: X", "max_tokens: 9", "no key", "", "é: token"] {
            check(line, line);
        }
    }

    #[test]
    fn only_references_are_left_of_a_text() {
        let check = |text: &str, expected: &str| assert_eq!(without_literals(text), expected, "{text}");
        check("", "");
        check("abc", "(set)");
        check("${A}", "${A}");
        check("${A}${B}", "${A}${B}");
        check("x ${A} y", "(set)${A}(set)");
        check("${{ secrets.A }}", "${{ secrets.A }}");
        check("{env:A}", "{env:A}");
        check("${env:A}", "${env:A}");
        check("$A_B/x", "$A_B(set)");
        // A value to take where there is none.
        check("${A:-abc}", "(set)");
        check("${A-b}", "(set)");
        check("${A", "(set)");
        check("pa$word", "(set)");
        check("é${A}", "(set)${A}");
    }
}
