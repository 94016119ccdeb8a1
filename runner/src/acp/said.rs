//! A prompt in the protocol's words.

use agent_client_protocol::v1::schema::{ContentBlock, ImageContent, TextContent};
use assistant_protocol::types::Part;

use crate::adapter::literal::{Mentions, literal};

/// A block of text.
pub(super) fn text_block(text: impl Into<String>) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}

/// The blocks of a prompt, of which the agent takes nothing for a command or a file of its own; and how many of its pictures the agent does not get: it takes none, or their bytes are not
/// here. Such are told in words.
pub(super) fn blocks<'a>(
    parts: impl IntoIterator<Item = &'a Part>,
    takes_images: bool,
    mentions: Mentions,
) -> (Vec<ContentBlock>, usize) {
    let (mut blocks, mut left_out) = (Vec::new(), 0);
    for part in parts {
        match part {
            Part::Text { text } if text.is_empty() => {}
            Part::Text { text } => blocks.push(text_block(literal(text, mentions))),
            Part::Image { mime_type, data: Some(data), .. } if takes_images => {
                blocks.push(ContentBlock::Image(ImageContent::new(data, mime_type)));
            }
            Part::Image { mime_type, .. } => {
                left_out += 1;
                blocks.push(text_block(format!("[a picture, {mime_type}, that you cannot be shown]")));
            }
            Part::Reasoning { .. }
            | Part::ToolCall { .. }
            | Part::ToolResult { .. }
            | Part::Opaque { .. }
            | Part::Unknown(_) => {}
        }
    }
    (blocks, left_out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pictures_go_to_agents_that_take_them() {
        let parts: Vec<Part> = serde_json::from_value(json!([
            { "type": "text", "text": "/Look @here" },
            { "type": "image", "mime_type": "image/png", "data": "AA==" },
            { "type": "image", "mime_type": "image/gif", "blob": "b1" },
        ]))
        .expect("parts");
        let check = |takes_images, blocks_wanted: serde_json::Value, left_out_wanted| {
            let (blocks, left_out) = blocks(&parts, takes_images, Mentions::BehindBlanks);
            assert_eq!((serde_json::to_value(blocks).expect("JSON"), left_out), (blocks_wanted, left_out_wanted));
        };
        let (look, png) = (
            json!({ "type": "text", "text": r"Task: /Look \@here" }),
            "[a picture, image/png, that you cannot be shown]",
        );
        let gif = json!({ "type": "text", "text": "[a picture, image/gif, that you cannot be shown]" });
        check(false, json!([look, { "type": "text", "text": png }, gif]), 2);
        check(true, json!([look, { "type": "image", "mimeType": "image/png", "data": "AA==" }, gif]), 1);
    }
}
