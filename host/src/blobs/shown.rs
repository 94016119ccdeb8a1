//! Pictures for a model: what a conversation names by handle is given to it as bytes.

use std::collections::HashMap;

use assistant_protocol::ids::ProcessId;
use assistant_protocol::types::{Content, Message, Part};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Handle, bytes, find, is_picture};
use crate::caller::Caller;
use crate::host::Host;
use crate::store::StoreError;

/// Pictures of one model call, the newest ones; providers refuse more than about a hundred, and each one costs.
const PICTURES_MAX: usize = 50;
/// Bytes of one picture: base64 of it has 5 MiB, the most that Anthropic takes.
const PICTURE_BYTES_MAX: u64 = 5 * 1024 * 1024 / 4 * 3;
/// Bytes of all pictures of one model call: base64 of them stays below the 20 MiB that a request to Gemini may have.
const CALL_BYTES_MAX: u64 = 14 * 1024 * 1024;

/// Puts the bytes of pictures in the place of their handles. What cannot be shown is told as text.
///
/// # Errors
/// The store's.
pub(crate) async fn show(host: &Host, process: ProcessId, messages: &mut [Message]) -> Result<(), StoreError> {
    let mut wanted: Vec<String> = Vec::new();
    for message in messages.iter().rev() {
        if let Content::Parts(parts) = &message.content {
            collect(parts, &mut wanted);
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let shown = host.store().read(move |db| {
        let (mut shown, mut pictures, mut left) = (HashMap::new(), 0, CALL_BYTES_MAX);
        for text in wanted {
            let found = match text.parse::<Handle>() {
                Ok(handle) => find(db, Caller::Process(process), &handle)?,
                Err(_) => None,
            };
            let part = match found {
                None => Part::text(format!("[the picture {text} is not kept here any more]")),
                Some(found) if !is_picture(&found.mime_type) => {
                    Part::text(format!("[{text} is no picture but {}]", found.mime_type))
                }
                Some(found) if found.bytes > PICTURE_BYTES_MAX => Part::text(format!(
                    "[the picture {text} is too large to be shown: it has {} bytes, the most is {PICTURE_BYTES_MAX}]",
                    found.bytes
                )),
                Some(found) if pictures == PICTURES_MAX || found.bytes > left => {
                    Part::text(format!("[the picture {text} is left out for newer ones; read_blob shows it again]"))
                }
                Some(found) => match bytes(db, &found)? {
                    Some(bytes) => {
                        pictures += 1;
                        left -= found.bytes;
                        Part::Image { mime_type: found.mime_type, data: Some(STANDARD.encode(bytes)), blob: None }
                    }
                    None => Part::text(format!("[the picture {text} is not kept here any more]")),
                },
            };
            shown.insert(text, part);
        }
        Ok::<_, StoreError>(shown)
    });
    let shown = shown.await?;
    for message in messages {
        if let Content::Parts(parts) = &mut message.content {
            replace(parts, &shown);
        }
    }
    Ok(())
}

/// The handles that parts name as pictures, the last one first, each once.
fn collect(parts: &[Part], found: &mut Vec<String>) {
    for part in parts.iter().rev() {
        match part {
            Part::Image { data: None, blob: Some(handle), .. } if !found.contains(handle) => found.push(handle.clone()),
            Part::ToolResult { content, .. } => collect(content, found),
            Part::Image { .. }
            | Part::Text { .. }
            | Part::Reasoning { .. }
            | Part::ToolCall { .. }
            | Part::Opaque { .. }
            | Part::Unknown(_) => {}
        }
    }
}

fn replace(parts: &mut [Part], shown: &HashMap<String, Part>) {
    for part in parts {
        match part {
            Part::Image { data: None, blob: Some(handle), .. } => {
                if let Some(is) = shown.get(handle) {
                    *part = is.clone();
                }
            }
            Part::ToolResult { content, .. } => replace(content, shown),
            Part::Image { .. }
            | Part::Text { .. }
            | Part::Reasoning { .. }
            | Part::ToolCall { .. }
            | Part::Opaque { .. }
            | Part::Unknown(_) => {}
        }
    }
}
