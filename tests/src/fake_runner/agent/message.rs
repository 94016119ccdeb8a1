//! What a line says, and the errors that the agent answers with.

use serde_json::{Value, json};

/// What a line is.
pub(super) enum Message {
    /// A request of the host.
    Request { id: Value, method: String, params: Value },
    /// The answer to a request of ours.
    Answer { id: Value, outcome: Result<Value, Value> },
    /// A message without id, which this protocol does not have.
    Notification,
    /// No message.
    Junk,
}

/// Reads a line. Half a character, which JSON allows and no text has, is read as U+FFFD.
pub(super) fn read(line: &[u8]) -> Message {
    let Ok(text) = std::str::from_utf8(line) else { return Message::Junk };
    let read = serde_json::from_str(text).or_else(|_| serde_json::from_str(&whole(text)));
    let Ok(Value::Object(mut map)) = read else { return Message::Junk };
    if map.get("jsonrpc") != Some(&json!("2.0")) {
        return Message::Junk;
    }
    let id = map.remove("id").filter(|id| !id.is_null());
    match (map.remove("method"), map.remove("error"), map.remove("result"), id) {
        (Some(Value::String(_)), None, None, None) => Message::Notification,
        (Some(Value::String(method)), None, None, Some(id)) => {
            Message::Request { id, method, params: map.remove("params").unwrap_or_else(|| json!({})) }
        }
        (None, Some(error), _, Some(id)) => Message::Answer { id, outcome: Err(error) },
        (None, None, Some(result), Some(id)) => Message::Answer { id, outcome: Ok(result) },
        _ => Message::Junk,
    }
}

/// Whether a line has half a character.
pub(super) fn has_halves(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok_and(|text| whole(text) != text)
}

/// The text with U+FFFD for escapes of half a character.
fn whole(text: &str) -> String {
    let (mut whole, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('\\') {
        whole.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                whole.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
            (Some(_), _) => 6,
            // A backslash and what it stands before, whatever that is.
            (None, _) => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        whole.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    whole + rest
}

/// The number of an escape like `\u00e4` that a text begins with.
fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

/// An error of a kind, with its number.
pub(super) fn error(kind: &str, message: &str) -> Value {
    let code = match kind {
        "method_not_found" => -32601,
        "invalid_params" => -32602,
        "invalid_request" => -32600,
        "cancelled" => 4001,
        "frame_too_large" => 4010,
        "unsupported_protocol" => 4011,
        _ => -32603,
    };
    json!({ "code": code, "message": message, "data": { "kind": kind } })
}

/// What does not fit in the params of a `run`.
pub(super) fn run_fits(params: &Value) -> Result<(), &'static str> {
    let text_or_null = |value: &Value| value.is_null() || value.is_string();
    let list_or_null = |value: &Value, is: fn(&Value) -> bool| match value {
        Value::Null => true,
        Value::Array(all) => all.iter().all(is),
        _ => false,
    };
    let checks = [
        (["id", "name", "system_prompt"].iter().all(|name| params["assistant"][*name].is_string()), "assistant"),
        (text_or_null(&params["query"]), "query"),
        (text_or_null(&params["context"]), "context"),
        (list_or_null(&params["inputs"], |one| one["path"].is_string() && one["content"].is_string()), "inputs"),
        (list_or_null(&params["tools"], |one| one["name"].is_string()), "tools"),
        (list_or_null(&params["history"], |one| one["role"].is_string()), "history"),
    ];
    checks.into_iter().find(|(fits, _)| !fits).map_or(Ok(()), |(_, name)| Err(name))
}

/// The value with its whole numbers as doubles have them.
pub(super) fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            // What a double holds exactly is written as it was.
            Some(near) if number.is_f64() || near.abs() < 9_007_199_254_740_992.0 => value.clone(),
            Some(near) => json!(near),
            None => value.clone(),
        },
        Value::Array(all) => all.iter().map(rounded).collect(),
        Value::Object(all) => all.iter().map(|(key, value)| (key.clone(), rounded(value))).collect(),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

/// How deep a value is nested.
pub(super) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(all) => 1 + all.iter().map(depth).max().unwrap_or(0),
        Value::Object(all) => 1 + all.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_characters_are_replaced_and_nothing_else() {
        let check = |text: &str, expected: &str| assert_eq!(whole(text), expected, "{text}");
        check(r#""\ud800""#, r#""\ufffd""#);
        check(r#""\udc00 \ud800\ud800\udc00""#, r#""\ufffd \ufffd\ud800\udc00""#);
        check(r#""\\ud800 \" ä \n \u00e4""#, r#""\\ud800 \" ä \n \u00e4""#);
        check(r"\", r"\");
        check(r"\ud8", r"\ud8");
    }
}
