//! What a definition says of servers and commands, without the values of variables, headers and keys: they may be secrets.

use serde_json::{Map, Value};

use super::wanted::{HEADERS, VARIABLES};
use crate::registry::{fold, is_secret};

/// What stands for a value that is not shown.
pub(crate) const SET: &str = "(set)";
/// Keys of variables, folded, whose values are names of others.
const OF_NAMES: &[&str] = &["bearertokenenvvar", "envfile", "envhttpheaders"];

/// `value` as it may be shown: names stay, and so do references such as `${TOKEN}`.
pub(crate) fn masked(value: &Value) -> Value {
    match value {
        Value::Array(list) => arguments(list),
        Value::Object(map) => map_masked(map).into(),
        Value::String(text) => lines_masked(text).into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// A text without what its lines hide; one of a single line may be an address.
fn lines_masked(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    match lines.as_slice() {
        [] | [_] if text.contains("://") && !text.contains(char::is_whitespace) => url(text),
        _ => (0..lines.len()).map(|at| line_masked(&lines, at)).collect::<Vec<_>>().join("\n"),
    }
}

/// A list that may be the arguments of a command: what an option of a secret name is given is not shown.
fn arguments(list: &[Value]) -> Value {
    let mut after_option = false;
    let one = |value: &Value| {
        let Some(text) = value.as_str() else {
            after_option = false;
            return masked(value);
        };
        let option = text.strip_prefix('-').map(|rest| rest.trim_start_matches('-'));
        if std::mem::take(&mut after_option) && option.is_none() {
            return hidden(value);
        }
        match option.map(|option| option.split_once('=')) {
            Some(Some((name, value))) if is_secret(&fold(name)) => {
                format!("{}={}", &text[..text.len() - value.len() - 1], without_literals(value)).into()
            }
            Some(None) => {
                after_option = is_secret(&fold(text));
                value.clone()
            }
            Some(Some(_)) | None => masked(value),
        }
    };
    list.iter().map(one).collect()
}

/// The same of the words of a command; each is a text again.
pub(crate) fn arguments_masked(words: &[String]) -> Vec<String> {
    let words: Vec<Value> = words.iter().map(|word| word.as_str().into()).collect();
    let shown = arguments(&words);
    shown.as_array().into_iter().flatten().map(|word| word.as_str().unwrap_or(SET).to_owned()).collect()
}

/// An address without its password and what its query gives to secret names; any other text as it is.
fn url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
    let host = place.find('/').unwrap_or(place.len());
    let place = match place[..host].rsplit_once('@').and_then(|(user, _)| user.split_once(':')) {
        Some((name, password)) => {
            format!("{name}:{}{}", without_literals(password), &place[name.len() + 1 + password.len()..])
        }
        None => place.to_owned(),
    };
    let given = |pair: &str| match pair.split_once('=') {
        Some((name, value)) if is_secret(&fold(name)) => format!("{name}={}", without_literals(value)),
        _ => pair.to_owned(),
    };
    let query = query.map(|query| format!("?{}", query.split('&').map(given).collect::<Vec<_>>().join("&")));
    format!("{scheme}://{place}{}", query.unwrap_or_default())
}

/// The same of a map.
pub(crate) fn map_masked(map: &Map<String, Value>) -> Map<String, Value> {
    let one = |(key, value): (&String, &Value)| {
        let folded = fold(key);
        let shown = match folded.as_str() {
            key if OF_NAMES.contains(&key) => value.clone(),
            key if VARIABLES.contains(&key) => pairs(value, '='),
            key if HEADERS.contains(&key) => pairs(value, ':'),
            key if is_secret(key) => hidden(value),
            _ => masked(value),
        };
        (key.clone(), shown)
    };
    map.iter().map(one).collect()
}

/// The line with the index `at` as it may be shown: what stands behind a key of variables, headers or a secret, in it or
/// in a line that it lies below, is left out.
pub(crate) fn line_masked(lines: &[&str], at: usize) -> String {
    let line = lines.get(at).copied().unwrap_or_default();
    if let Some(below) = below_hidden(lines, at) {
        let sign = line.find([':', '=']).filter(|at| below == Below::Names && !line[at + 1..].trim().is_empty());
        return match sign {
            Some(sign) => format!("{} {SET}", &line[..=sign]),
            None if line.trim().is_empty() => String::new(),
            None => format!("{}{SET}", &line[..indent(line)]),
        };
    }
    match line.match_indices([':', '=']).find(|(at, _)| hides(key_before(&line[..*at]))) {
        Some((at, sign)) if !line[at + sign.len()..].trim().is_empty() => format!("{} {SET}", &line[..at + sign.len()]),
        _ => line.to_owned(),
    }
}

/// Whether what stands behind this key is not shown.
fn hides(key: &str) -> bool {
    let key = fold(key);
    let key = key.as_str();
    !OF_NAMES.contains(&key) && (VARIABLES.contains(&key) || HEADERS.contains(&key) || is_secret(key))
}

/// The key at the end of what stands before its sign.
fn key_before(text: &str) -> &str {
    let text = text.trim_end().trim_end_matches(['"', '\'']);
    text.rsplit(|c: char| !c.is_alphanumeric() && !"-_".contains(c)).next().unwrap_or_default()
}

/// Blanks before a line, bytes.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// What a line that is not shown lies below.
#[derive(PartialEq, Eq)]
enum Below {
    /// Variables or headers: it begins with a name.
    Names,
    /// A secret, or the value of a name: it may be a part of it.
    Value,
}

/// What is looked for among the lines that a line lies below by its indent, and in the head of its table of TOML: a key that
/// hides what is below it.
fn below_hidden(lines: &[&str], at: usize) -> Option<Below> {
    let line = lines.get(at)?;
    let is_item = |line: &str| line.trim_start().starts_with("- ");
    let (mut inner, mut item, mut below) = (indent(line), is_item(line), Below::Names);
    for above in lines[..at].iter().rev().filter(|line| !line.trim().is_empty()) {
        if above.starts_with('[') {
            let mut parts = above.trim_matches(['[', ']']).split('.').map(|part| part.trim().trim_matches(['"', '\'']));
            return parts.any(hides).then_some(below);
        }
        let outer = indent(above);
        if outer < inner || (outer == inner && item && !is_item(above)) {
            // The key of an item stands behind its dash: what stands below the key itself is beside it.
            let column = above.len() - above.trim_start_matches([' ', '\t', '-']).len();
            let key = above.rfind([':', '=']).map(|sign| key_before(&above[..sign])).filter(|key| hides(key));
            if let Some(key) = key.filter(|_| column < inner || item) {
                return Some(if is_secret(&fold(key)) { Below::Value } else { below });
            }
            (inner, item, below) = (outer, is_item(above), Below::Value);
        }
    }
    None
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
        let Some(rest) = text.strip_prefix(open) else { continue };
        let inner = &rest[..rest.find(|c| !name(c) && c != '.' && c != ' ').unwrap_or(rest.len())];
        if !inner.trim().is_empty() && rest[inner.len()..].starts_with(close) {
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
        check(
            json!({ "password": 7, "private_key": ["a"], "AWS_SECRET_ACCESS_KEY": { "x": true }, "passwd": null }),
            json!({ "password": "(set)", "private_key": ["(set)"], "AWS_SECRET_ACCESS_KEY": { "x": "(set)" }, "passwd": null }),
        );
        check(
            json!({ "args": ["run", "--api-key", "abc", "--token=abc", "--token", "--port", "9", "-e=1", "--secret", "$S"] }),
            json!({ "args": ["run", "--api-key", "(set)", "--token=(set)", "--token", "--port", "9", "-e=1", "--secret", "$S"] }),
        );
        check(
            json!({ "url": "https://me:abc@x.org:8/y@z?a=1&token=abc&api_key=${K}&b" }),
            json!({ "url": "https://me:(set)@x.org:8/y@z?a=1&token=(set)&api_key=${K}&b" }),
        );
        check(json!("https://me@x.org/a:b@c?token"), json!("https://me@x.org/a:b@c?token"));
        check(
            json!("a:\n  env:\n    K: one\n    URL: \"x\nb: {headers: {Authorization: Bearer abc: z}}"),
            json!("a:\n  env:\n    K: (set)\n    URL: (set)\nb: {headers: (set)"),
        );
        check(json!("{headers: {Authorization: Bearer abc: z}}"), json!("{headers: (set)"));
        check(json!(["orders"]), json!(["orders"]));
        check(json!("orders"), json!("orders"));
    }

    #[test]
    fn lines_end_where_a_secret_begins() {
        let check = |line: &str, expected: &str| assert_eq!(line_masked(&[line], 0), expected, "{line}");
        check("mcpServers: {s: {command: x, env: {A: abc}}}", "mcpServers: {s: {command: x, env: (set)");
        check("  \"API_KEY\" : \"abc\"", "  \"API_KEY\" : (set)");
        check("http_headers = { X = \"abc\" }", "http_headers = (set)");
        check("GITHUB_TOKEN: abc", "GITHUB_TOKEN: (set)");
        for line in ["env:", "tools: [Read]", "bearer_token_env_var: X", "max_tokens: 9", "no key", "", "é: token"] {
            check(line, line);
        }
    }

    #[test]
    fn lines_below_a_secret_are_not_shown() {
        let check = |text: &str, expected: &str| {
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(line_masked(&lines, lines.len() - 1), expected, "{text}");
        };
        check("env:\n  DB: postgres://u:abc@h: 5", "  DB: (set)");
        check("servers:\n  s:\n    env:\n\n      A: one\n      B: two", "      B: (set)");
        check("env:\n  - A=one", "  - A= (set)");
        check("env:\n- A=one\n- B=two", "- B= (set)");
        check("- env:\n    A: x", "    A: (set)");
        check("private_key: |\n  abc: d", "  (set)");
        check("env:\n  A: |\n    abc: d", "    (set)");
        check("\"headers\": {\n  \"X\": \"abc\"", "  \"X\": (set)");
        check("[mcp_servers.s.env]\nA = 1\nDB = abc", "DB = (set)");
        check("[mcp_servers.s.env]\n  DB = abc", "  DB = (set)");
        check("[mcp_servers.s]\nDB = abc", "DB = abc");
        check("env:\n  A: x\nname: y", "name: y");
        check("- env:\n    A: x\n  name: y", "  name: y");
        check("tools:\n  - Read", "  - Read");
        check("env:\n  A:", "  (set)");
        assert_eq!(line_masked(&[], 3), "");
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
