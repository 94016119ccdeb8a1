//! Conversations as lines for people; events are, where they are.

use assistant_protocol::types::{Content, Part};
use serde::Deserialize;
use serde_json::Value;

pub(super) use crate::events::in_words as event;
use crate::text::{cut, one_line};

/// Characters of the arguments or the result of a tool call on a line.
const CALL_CHARS: usize = 300;

/// A message of a conversation: its text as it stands, and a line for everything else in it.
pub(super) fn said(content: &Value) -> String {
    let Ok(content) = Content::deserialize(content) else { return safe(&content.to_string()) };
    let parts = content.parts();
    let told = parts.iter().filter_map(part);
    told.collect::<Vec<_>>().join("\n")
}

fn part(part: &Part) -> Option<String> {
    let line = |value: &Value| cut(&one_line(&value.to_string()), CALL_CHARS);
    match part {
        Part::Text { text } => Some(safe(text)),
        Part::Reasoning { text } => text.as_ref().map(|text| format!("[thinks] {}", safe(text))),
        Part::ToolCall { tool_name, arguments, .. } => {
            let arguments = match arguments {
                Ok(arguments) => line(arguments),
                Err(text) => cut(&one_line(text), CALL_CHARS),
            };
            Some(format!("[calls {}] {arguments}", one_line(tool_name)))
        }
        Part::ToolResult { content, is_error, .. } => {
            let text: Vec<String> = content.iter().filter_map(self::part).collect();
            let failed = if *is_error { "[failed] " } else { "" };
            Some(format!("{failed}{}", cut(&text.join("\n"), 10 * CALL_CHARS)))
        }
        other => serde_json::to_value(other).ok().map(|value| format!("[{}]", line(&value["type"]))),
    }
}

/// A text with its lines, without what a terminal would obey.
fn safe(text: &str) -> String {
    text.lines().map(one_line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_told_with_what_is_in_them() {
        let check = |content: Value, want: &str| assert_eq!(said(&content), want);
        check(json!("one\ntwo\u{7}"), "one\ntwo\u{fffd}");
        check(
            json!([
                { "type": "text", "text": "I look" },
                { "type": "tool_call", "call_id": "1", "tool_name": "read_file", "arguments": { "path": "a" } },
            ]),
            "I look\n[calls read_file] {\"path\":\"a\"}",
        );
        check(
            json!([{ "type": "tool_result", "call_id": "1", "is_error": true, "content": [{ "type": "text", "text": "no" }] }]),
            "[failed] no",
        );
    }
}
