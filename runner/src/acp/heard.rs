//! What an agent says, in the words of our own protocol.

use agent_client_protocol::v1::schema::{
    ContentBlock, EmbeddedResourceResource, Plan, PlanEntryStatus, ToolCallContent,
};
use assistant_protocol::types::Part;
use serde_json::Value;

use crate::adapter::ids::cut;

/// Bytes of the text of a tool's result; the rest is left out, and told so.
const RESULT_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a picture in base64; a larger one is told in words.
const PICTURE_BYTES_MAX: usize = 1024 * 1024;

/// How far a plan is: what is done now, and how much of it.
pub(super) fn progress(plan: &Plan) -> Option<(String, f64)> {
    let all = plan.entries.len();
    let done = plan.entries.iter().filter(|entry| entry.status == PlanEntryStatus::Completed).count();
    let now = plan.entries.iter().find(|entry| entry.status == PlanEntryStatus::InProgress);
    let now = now.or_else(|| plan.entries.iter().find(|entry| entry.status == PlanEntryStatus::Pending));
    let text = match now {
        Some(entry) => format!("{done} of {all} done: {}", cut(&entry.content, 500)),
        None => format!("{done} of {all} done"),
    };
    let fraction = (done as f64) / (all as f64);
    (all > 0).then_some((text, fraction))
}

/// The result of a call in parts: what the agent shows of it, else what its tool gave.
pub(super) fn result(content: &[ToolCallContent], output: Option<&Value>) -> Vec<Part> {
    let mut parts: Vec<Part> = content.iter().filter_map(part).collect();
    if parts.is_empty() {
        let text = match output {
            None | Some(Value::Null) => return parts,
            Some(Value::String(text)) => text.clone(),
            Some(Value::Object(map)) if map.get("output").is_some_and(Value::is_string) => {
                map["output"].as_str().unwrap_or_default().to_owned()
            }
            Some(other) => other.to_string(),
        };
        parts.push(Part::text(text));
    }
    let mut room = RESULT_BYTES_MAX;
    for part in &mut parts {
        if let Part::Text { text } = part {
            if text.len() > room {
                let kept = cut(text, room);
                let left_out = text.len() - kept.len();
                *text = format!("{kept}\n[{left_out} bytes are left out]");
            }
            room = room.saturating_sub(text.len());
        }
    }
    parts
}

fn part(content: &ToolCallContent) -> Option<Part> {
    match content {
        ToolCallContent::Content(content) => match &content.content {
            ContentBlock::Image(image) if image.data.len() <= PICTURE_BYTES_MAX => {
                Some(Part::Image { mime_type: image.mime_type.clone(), data: Some(image.data.clone()), blob: None })
            }
            other => Some(text_of(other)).filter(|text| !text.is_empty()).map(Part::text),
        },
        ToolCallContent::Diff(diff) => {
            let what = if diff.old_text.is_none() { "wrote" } else { "changed" };
            Some(Part::text(format!("{what} {}", diff.path.display())))
        }
        ToolCallContent::Terminal(terminal) => Some(Part::text(format!("terminal {}", terminal.terminal_id))),
        _ => None,
    }
}

/// What a block says, in words.
pub(super) fn text_of(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[a picture, {}]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[a sound, {}]", audio.mime_type),
        ContentBlock::ResourceLink(link) => format!("[{}]({})", link.name, link.uri),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            EmbeddedResourceResource::TextResourceContents(text) => text.text.clone(),
            EmbeddedResourceResource::BlobResourceContents(blob) => format!("[a file, {}]", blob.uri),
            _ => String::new(),
        },
        _ => String::new(),
    }
}

/// What a value takes of memory, about, in bytes.
pub(super) fn bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 32,
        Value::String(text) => 32 + text.len(),
        Value::Array(all) => all.iter().map(bytes).sum::<usize>() + 32,
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + bytes(value) + 32).sum::<usize>() + 32,
    }
}

/// The same of what a call shows.
pub(super) fn content_bytes(content: &ToolCallContent) -> usize {
    let text = match content {
        ToolCallContent::Content(content) => match &content.content {
            ContentBlock::Text(text) => text.text.len(),
            ContentBlock::Image(image) => image.data.len(),
            ContentBlock::Audio(audio) => audio.data.len(),
            ContentBlock::Resource(embedded) => match &embedded.resource {
                EmbeddedResourceResource::TextResourceContents(text) => text.text.len(),
                EmbeddedResourceResource::BlobResourceContents(blob) => blob.blob.len(),
                _ => 0,
            },
            _ => 0,
        },
        ToolCallContent::Diff(diff) => diff.new_text.len() + diff.old_text.as_ref().map_or(0, String::len),
        _ => 0,
    };
    256 + text
}
