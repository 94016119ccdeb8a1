//! YAML files: lines are put between the lines that are there. Whoever asks reads the result again, so that what this
//! does not understand (flow style, anchors) is refused and never damaged.

use std::ops::Range;

use serde_json::{Map, Value};

/// Words that some reader takes for something else than a text.
const NO_TEXTS: [&str; 11] = ["true", "false", "yes", "no", "y", "n", "on", "off", "null", "inf", "nan"];

/// Reads a file's text; an empty one holds nothing.
pub(super) fn read(text: &str) -> Result<Value, String> {
    let read: Option<Value> = serde_saphyr::from_str(text).map_err(|error| {
        let error = error.to_string();
        format!("is no YAML: {}", error.lines().next().unwrap_or_default())
    })?;
    Ok(read.unwrap_or_else(|| Value::Object(Map::new())))
}

/// The text with the fields in the entry.
pub(super) fn put(text: &str, under: &str, name: &str, fields: &super::edit::Fields) -> Option<String> {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let field = |indent: usize, key: &str, value: &Value| Some(format!("{:indent$}{key}: {}", "", written(value)?));
    let fields_at = |indent: usize| fields.iter().map(|(key, value)| field(indent, key, value)).collect();
    let entry = |indent: usize, step: usize| {
        let fields: Option<Vec<String>> = fields_at(indent + step);
        Some(std::iter::once(format!("{:indent$}{name}:", "")).chain(fields?).collect::<Vec<_>>())
    };
    let Some(servers) = block(&lines, 0..lines.len(), 0, under) else {
        lines.push(format!("{under}:"));
        lines.extend(entry(2, 2)?);
        return Some(joined(&lines, end));
    };
    let head = lines.get_mut(servers.start)?;
    match rest(head) {
        "" => {}
        // Nothing but the key may stay before its children.
        "{}" | "~" | "null" => *head = format!("{under}:"),
        _ => return None,
    }
    let Some(indent) = indent_within(&lines, &servers) else {
        lines.splice(servers.end..servers.end, entry(2, 2)?);
        return Some(joined(&lines, end));
    };
    let Some(ours) = block(&lines, servers.start + 1..servers.end, indent, name) else {
        lines.splice(servers.end..servers.end, entry(indent, indent)?);
        return Some(joined(&lines, end));
    };
    let inside = indent_within(&lines, &ours).filter(|_| rest(&lines[ours.start]).is_empty())?;
    let mut last = ours.end;
    for (key, value) in fields {
        let old = block(&lines, ours.start + 1..last, inside, key).unwrap_or(last..last);
        last = last + 1 - old.len();
        lines.splice(old, [field(inside, key, value)?]);
    }
    Some(joined(&lines, end))
}

/// The lines of a key at a depth: its own and all that belong to it, without what stands behind for its follower.
fn block(lines: &[String], within: Range<usize>, indent: usize, key: &str) -> Option<Range<usize>> {
    let start = within.clone().find(|at| indent_of(&lines[*at]) == Some(indent) && key_of(&lines[*at]) == Some(key))?;
    let mut end = start + 1;
    for (at, line) in lines.iter().enumerate().take(within.end).skip(start + 1) {
        match indent_of(line) {
            // A list may stand as deep as its key.
            Some(found) if found > indent || (found == indent && line.trim_start().starts_with("- ")) => end = at + 1,
            Some(_) => break,
            None => {}
        }
    }
    Some(start..end)
}

/// How deep a line stands; none for a line that says nothing.
fn indent_of(line: &str) -> Option<usize> {
    let text = line.trim_start_matches(' ');
    (!text.is_empty() && !text.starts_with(['#', '\t'])).then(|| line.len() - text.len())
}

/// How deep the first line inside a block stands.
fn indent_within(lines: &[String], block: &Range<usize>) -> Option<usize> {
    lines[block.start + 1..block.end].iter().find_map(|line| indent_of(line))
}

fn key_of(line: &str) -> Option<&str> {
    let (key, rest) = line.trim().split_once(':')?;
    let quoted = |quote: char| key.strip_prefix(quote).and_then(|key| key.strip_suffix(quote));
    (rest.is_empty() || rest.starts_with(' ')).then(|| quoted('"').or_else(|| quoted('\'')).unwrap_or(key))
}

/// What stands behind the colon, without a comment.
fn rest(line: &str) -> &str {
    let rest = line.split_once(':').map_or("", |(_, rest)| rest.trim());
    if rest.starts_with('#') { "" } else { rest.split(" #").next().unwrap_or_default().trim() }
}

/// A value on one line: plain where every reader takes it for a text, else in quotes as JSON has them.
fn written(value: &Value) -> Option<String> {
    match value {
        Value::Bool(value) => Some(value.to_string()),
        Value::String(text) => {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
            let begins = text.starts_with(|c: char| c == '/' || c.is_ascii_alphabetic());
            let word = NO_TEXTS.iter().any(|word| text.eq_ignore_ascii_case(word));
            Some(if begins && !word && text.chars().all(plain) { text.clone() } else { value.to_string() })
        }
        Value::Array(values) => {
            let written: Option<Vec<String>> = values.iter().map(written).collect();
            Some(format!("[{}]", written?.join(", ")))
        }
        Value::Null | Value::Number(_) | Value::Object(_) => None,
    }
}

fn joined(lines: &[String], end: &str) -> String {
    lines.iter().flat_map(|line| [line.as_str(), end]).collect()
}
