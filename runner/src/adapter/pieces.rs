//! Events of any size as such that the host takes: long texts come in pieces, what calls were given and gave is cut.

use assistant_protocol::types::{AgentEvent, Part};
use serde_json::{Value, json};

use super::ids::cut;

/// Bytes of a text that is told at once, and of an answer that is kept.
pub(crate) const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of the arguments of a call that are told, in JSON.
const ARGUMENTS_BYTES_MAX: usize = 4 * TEXT_BYTES_MAX;

/// An event in pieces of a size that the host takes, in order.
pub(crate) fn pieces(event: AgentEvent) -> Vec<AgentEvent> {
    match event {
        AgentEvent::Text { text } => split(&text).map(|text| AgentEvent::Text { text }).collect(),
        AgentEvent::Reasoning { text } => split(&text).map(|text| AgentEvent::Reasoning { text }).collect(),
        AgentEvent::ToolCall { call_id, tool_name, arguments } => {
            let bytes = bytes(&arguments);
            let arguments =
                if bytes > ARGUMENTS_BYTES_MAX { json!({ "left_out": format!("{bytes} bytes") }) } else { arguments };
            vec![AgentEvent::ToolCall { call_id, tool_name, arguments }]
        }
        AgentEvent::ToolResult { call_id, content, is_error } => {
            vec![AgentEvent::ToolResult { call_id, content: shortened(content), is_error }]
        }
        AgentEvent::Session { .. } | AgentEvent::Usage { .. } | AgentEvent::Lacks { .. } | AgentEvent::Other => {
            vec![event]
        }
    }
}

/// The parts of a text, one at least.
fn split(text: &str) -> impl Iterator<Item = String> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let (first, behind) = rest?.split_at(cut(rest?, TEXT_BYTES_MAX).len());
        rest = (!behind.is_empty()).then_some(behind);
        Some(first.to_owned())
    })
}

/// Bytes of a value in JSON, about: as far as it need be known.
fn bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| bytes(item) + 1).sum::<usize>() + 2,
        Value::Object(map) => map.iter().map(|(name, value)| name.len() + 4 + bytes(value)).sum::<usize>() + 2,
    }
}

/// The texts of a result, as much of them as is told.
fn shortened(content: Vec<Part>) -> Vec<Part> {
    let mut left = TEXT_BYTES_MAX;
    let mut shortened = Vec::new();
    for part in content {
        let Part::Text { text } = part else {
            shortened.push(part);
            continue;
        };
        let kept = cut(&text, left);
        left -= kept.len();
        let part = if kept.len() < text.len() { format!("{kept} … ({} bytes)", text.len()) } else { text };
        shortened.push(Part::text(part));
        if left == 0 {
            break;
        }
    }
    shortened
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_come_in_pieces_of_whole_letters() {
        let lengths = |text: String| {
            let told = pieces(AgentEvent::Text { text: text.clone() });
            let texts: Vec<String> = told
                .into_iter()
                .map(|event| match event {
                    AgentEvent::Text { text } => text,
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(texts.concat(), text);
            texts.iter().map(String::len).collect::<Vec<_>>()
        };
        assert_eq!(lengths(String::new()), [0]);
        assert_eq!(lengths("x".repeat(TEXT_BYTES_MAX)), [TEXT_BYTES_MAX]);
        assert_eq!(lengths("x".repeat(2 * TEXT_BYTES_MAX + 1)), [TEXT_BYTES_MAX, TEXT_BYTES_MAX, 1]);
        assert_eq!(lengths("x".repeat(TEXT_BYTES_MAX - 1) + "ä"), [TEXT_BYTES_MAX - 1, 2]);
    }

    #[test]
    fn what_calls_are_given_and_give_is_cut() {
        let call = |arguments: Value| AgentEvent::ToolCall { call_id: "c".into(), tool_name: "t".into(), arguments };
        let small = call(json!({ "content": "x".repeat(ARGUMENTS_BYTES_MAX - 100) }));
        assert_eq!(pieces(small.clone()), [small]);
        let big = json!({ "content": "x".repeat(ARGUMENTS_BYTES_MAX) });
        let bytes = ARGUMENTS_BYTES_MAX + 15;
        assert_eq!(pieces(call(big)), [call(json!({ "left_out": format!("{bytes} bytes") }))]);
        let result = |content| AgentEvent::ToolResult { call_id: "c".into(), content, is_error: false };
        let long = "x".repeat(TEXT_BYTES_MAX);
        let told = pieces(result(vec![Part::text("a"), Part::text(&long), Part::text("lost")]));
        let cut = format!("{} … ({TEXT_BYTES_MAX} bytes)", &long[1..]);
        assert_eq!(told, [result(vec![Part::text("a"), Part::text(cut)])]);
        assert_eq!(pieces(result(Vec::new())), [result(Vec::new())]);
    }
}
