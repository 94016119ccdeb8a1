//! YAML for people that reads as exactly what it was written from.

use std::fmt::Write;

use serde_json::{Map, Value};

/// Characters up to which a list of texts stands on one line.
const LINE_CHARS: usize = 100;
/// Words that some version of YAML takes for something else than a text.
const TYPED: &[&str] = &["true", "false", "yes", "no", "on", "off", "y", "n", "null", "inf", "nan", "infinity"];

/// `key: value` at the top of a document, with the end of its line.
pub(super) fn entry(key: &str, value: &Value) -> String {
    let mut text = String::new();
    put_entry(&mut text, key, value, 0);
    text
}

/// `key` with a map from each name to `true`, which keeps names that no list can hold.
pub(super) fn switches(key: &str, names: &[String]) -> String {
    let mut text = format!("{}:\n", scalar(key, false));
    names.iter().for_each(|name| text.extend(["  ", &scalar(name, false), ": true\n"]));
    text
}

fn put_entry(text: &mut String, key: &str, value: &Value, indent: usize) {
    text.extend([&" ".repeat(indent), &scalar(key, false), ":"]);
    match value {
        Value::Object(map) if !map.is_empty() => {
            text.push('\n');
            put_map(text, map, indent + 2);
        }
        Value::Array(items) if !items.is_empty() && flow(items).is_none() => {
            text.push('\n');
            put_list(text, items, indent + 2);
        }
        value => text.extend([" ", &inline(value, indent), "\n"]),
    }
}

fn put_map(text: &mut String, map: &Map<String, Value>, indent: usize) {
    map.iter().for_each(|(key, value)| put_entry(text, key, value, indent));
}

fn put_list(text: &mut String, items: &[Value], indent: usize) {
    for item in items {
        let mut inner = String::new();
        match item {
            Value::Object(map) if !map.is_empty() => put_map(&mut inner, map, indent + 2),
            Value::Array(items) if !items.is_empty() && flow(items).is_none() => {
                put_list(&mut inner, items, indent + 2);
            }
            value => {
                let _ = writeln!(inner, "{}{}", " ".repeat(indent + 2), inline(value, indent));
            }
        }
        // The dash takes the place of the first line's indent.
        text.extend([&" ".repeat(indent), "- ", &inner[indent + 2..]]);
    }
}

/// A value that begins on the line of its key or dash, which stands behind `indent` blanks.
fn inline(value: &Value, indent: usize) -> String {
    match value {
        Value::String(text) => block(text, indent).unwrap_or_else(|| scalar(text, false)),
        Value::Array(items) => flow(items).unwrap_or_else(|| "[]".to_owned()),
        Value::Object(_) => "{}".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// A list of short texts on one line.
fn flow(items: &[Value]) -> Option<String> {
    let items: Vec<_> = items.iter().map(|item| item.as_str().map(|text| scalar(text, true))).collect::<Option<_>>()?;
    let line = format!("[{}]", items.join(", "));
    line.chars().nth(LINE_CHARS).is_none().then_some(line)
}

/// A text of several lines as a literal block; none where a block would not keep it.
fn block(text: &str, indent: usize) -> Option<String> {
    let (body, mark) = match text.strip_suffix('\n') {
        Some(body) => (body, "|"),
        None => (text, "|-"),
    };
    // Blanks at the start would need an indent that is told, more ends of lines another mark.
    let blank = body.starts_with(char::is_whitespace) || body.ends_with('\n') || body.is_empty();
    let plain = |c: char| matches!(c, '\n') || !escaped(c);
    if blank || !text.contains('\n') || !body.chars().all(plain) || body.lines().any(|line| line.starts_with('\t')) {
        return None;
    }
    let prefix = " ".repeat(indent + 2);
    let lines = body.split('\n').map(|line| if line.is_empty() { String::new() } else { format!("{prefix}{line}") });
    Some(format!("{mark}\n{}", lines.collect::<Vec<_>>().join("\n")))
}

/// A text on one line: as it is where every reader takes it for that text, else in double quotes.
fn scalar(text: &str, in_flow: bool) -> String {
    let typed = TYPED.iter().any(|word| text.eq_ignore_ascii_case(word));
    let begins = text.starts_with(char::is_alphabetic) && !text.ends_with([' ', ':']);
    let special = |c: char| escaped(c) || c == '\n' || c.is_whitespace() && c != ' ';
    let flow = in_flow && text.contains([',', '[', ']', '{', '}', ':', '#']);
    if begins && !typed && !flow && !text.contains(special) && !text.contains(": ") && !text.contains(" #") {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if escaped(c) => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Characters that stand in no YAML as they are, or that some reader takes for the end of a line. All are of four hex
/// digits.
fn escaped(c: char) -> bool {
    c.is_control() && c != '\n' || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_well() {
        let check = |value: Value, expected: &str| assert_eq!(entry("key", &value), expected);
        check(json!("Reviews changes, and says so."), "key: Reviews changes, and says so.\n");
        check(json!("Use it: always"), "key: \"Use it: always\"\n");
        check(json!("yes"), "key: \"yes\"\n");
        check(json!("3000"), "key: \"3000\"\n");
        check(json!("a\u{7}\u{2028}\"\\"), "key: \"a\\u0007\\u2028\\\"\\\\\"\n");
        check(json!("one\n\ntwo: three"), "key: |-\n  one\n\n  two: three\n");
        check(json!("one\ntwo\n"), "key: |\n  one\n  two\n");
        check(json!(" one\ntwo"), "key: \" one\\ntwo\"\n");
        check(json!(["Read", "Bash(git log:*)"]), "key: [Read, \"Bash(git log:*)\"]\n");
        check(json!([]), "key: []\n");
        check(json!({}), "key: {}\n");
        check(
            json!({ "a": [{ "b": 1, "c": null }, [true, "x\ny"]], "d e": 1.5 }),
            "key:\n  a:\n    - b: 1\n      c: null\n    - - true\n      - |-\n        x\n        y\n  d e: 1.5\n",
        );
        assert_eq!(switches("tools", &["a, b".to_owned(), "c".to_owned()]), "tools:\n  a, b: true\n  c: true\n");
    }
}
