//! Events and conversations as lines for people.

use assistant_protocol::types::{Content, Part};
use serde::Deserialize;
use serde_json::Value;

use crate::text::{cut, one_line};

/// Characters of the arguments or the result of a tool call on a line.
const CALL_CHARS: usize = 300;

/// What an event of a log tells, on one line; none where it is nothing to people.
pub(super) fn event(kind: &str, data: &Value) -> Option<String> {
    let text = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
    let line = match kind {
        "status" => match (data["status"].as_str(), data["cancel_requested"].as_str()) {
            (Some(status), _) => {
                let why = data["reason"].as_str().or(data["cause"].as_str());
                let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
                let error = data["error"].as_str().map(|error| format!(": {error}")).unwrap_or_default();
                format!("{status}{why}{error}")
            }
            (None, Some(cause)) => format!("is to be cancelled ({cause})"),
            (None, None) => format!("cancelled because: {}", data["cancel_reason"].as_str()?),
        },
        "model_call" => format!("asks {}", text("model")),
        "model_retry" => {
            format!("again in {} ms ({} of {}): {}", data["wait_ms"], data["retry"], data["of"], text("error"))
        }
        "model_answer" if data["error"].is_string() => format!("the model failed: {}", text("error")),
        "model_answer" => {
            let usage = &data["usage"];
            format!("answered ({} in, {} out)", tokens(&usage["input_tokens"]), tokens(&usage["output_tokens"]))
        }
        "tool_call" => format!("calls {}", text("tool")),
        "tool_result" if data["is_error"] == true => format!("{} failed", text("tool")),
        "tool_result" => return None,
        "message" => format!("{}: {} to {}", text("kind"), text("from"), text("to")),
        "progress" => text("text"),
        "stderr" => format!("stderr: {}", text("line")),
        "link" => format!("odd lines on its pipe: {data}"),
        _ => data.to_string(),
    };
    Some(one_line(&line))
}

fn tokens(value: &Value) -> String {
    value.as_u64().map_or_else(|| "?".to_owned(), |count| format!("{count} tokens"))
}

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
    fn events_are_lines() {
        let check = |kind: &str, data: Value, want: &str| assert_eq!(event(kind, &data).unwrap_or_default(), want);
        check("status", json!({ "status": "running" }), "running");
        check(
            "status",
            json!({ "status": "failed", "reason": "timed_out", "error": "too\nlong" }),
            "failed (timed_out): too long",
        );
        check("status", json!({ "status": "cancelled", "cause": "requested", "error": null }), "cancelled (requested)");
        check("status", json!({ "cancel_requested": "requested" }), "is to be cancelled (requested)");
        check("model_answer", json!({ "usage": { "input_tokens": 5 } }), "answered (5 tokens in, ? out)");
        check("progress", json!({ "text": "\u{1b}[2J" }), "\u{fffd}[2J");
        check("tool_result", json!({ "tool": "x", "is_error": false }), "");
    }

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
