//! How many tokens a request may have, without its provider's tokenizer: an upper bound for ordinary text.

use assistant_protocol::types::{Message, Part, ToolSpec};

/// Bytes of a token, at least, in ordinary text. Words have four to five, source code and CJK about three.
const TOKEN_BYTES: u64 = 3;
/// Tokens of a picture, about, at the sizes that providers take.
const IMAGE_TOKENS: u64 = 2_000;
/// Tokens that stand around a message or a tool.
const AROUND_TOKENS: u64 = 8;

/// Tokens of a text.
#[must_use]
pub fn text(text: &str) -> u64 {
    (text.len() as u64).div_ceil(TOKEN_BYTES)
}

/// Tokens of a message.
#[must_use]
pub fn message(message: &Message) -> u64 {
    AROUND_TOKENS + message.content.parts().iter().map(part).sum::<u64>()
}

/// Tokens of what a model is told of a tool.
#[must_use]
pub fn tool(tool: &ToolSpec) -> u64 {
    AROUND_TOKENS + text(&tool.name) + text(&tool.description) + text(&tool.input_schema.to_string())
}

fn part(one: &Part) -> u64 {
    match one {
        Part::Text { text: said } => text(said),
        Part::Image { .. } => IMAGE_TOKENS,
        Part::Reasoning { text: said } => said.as_deref().map_or(0, text),
        Part::ToolCall { tool_name, arguments, .. } => {
            let arguments = match arguments {
                Ok(value) => text(&value.to_string()),
                Err(broken) => text(broken),
            };
            AROUND_TOKENS + text(tool_name) + arguments
        }
        Part::ToolResult { content, .. } => AROUND_TOKENS + content.iter().map(part).sum::<u64>(),
        Part::Opaque { data, .. } => text(&data.to_string()),
        other => serde_json::to_string(other).map_or(0, |json| text(&json)),
    }
}

#[cfg(test)]
mod tests {
    use assistant_protocol::types::Role;

    use super::*;

    #[test]
    fn a_picture_is_not_counted_by_its_bytes() {
        let picture = Part::Image { mime_type: "image/png".into(), data: Some("A".repeat(1_000_000)), blob: None };
        assert_eq!(part(&picture), IMAGE_TOKENS);
        let said = Message::text(Role::User, "abcdefg");
        assert_eq!(message(&said), AROUND_TOKENS + 3);
        assert_eq!((text(""), text("a"), text("abc"), text("abcd")), (0, 1, 1, 2));
    }
}
