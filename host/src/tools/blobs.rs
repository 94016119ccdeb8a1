//! `read_blob`: pictures, files and long texts that a handle stands for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Audience, Call, Hints, Output, Tool, ToolError, as_text, row};
use crate::blobs::{self, Described, Handle};
use crate::store::StoreError;
use assistant_protocol::types::Part;

/// The tool that every process has, and is offered as soon as it has a blob.
pub(crate) const READ_BLOB: &str = "read_blob";

pub(super) fn rows() -> Vec<Tool> {
    let look = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    vec![row::<_, Read, _, _>(READ_BLOB, "Read a blob", Audience::Runners, look, read_blob)]
}

/// Arguments of `read_blob`.
#[derive(Debug, Deserialize, JsonSchema)]
struct ReadBlob {
    /// Its handle, as blob:0123456789abcdef.
    blob: String,
    /// Of a text: the first character to read, from 0. Default 0.
    from: Option<u64>,
    /// Of a text: at most this many characters. Default: as many as fit.
    length: Option<u64>,
}

/// Result of `read_blob`.
#[derive(Debug, Serialize, JsonSchema)]
struct Read {
    blob: String,
    mime_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    bytes: u64,
    /// Of a text: what was asked for. A picture is shown; of anything else this is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// Where to go on; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_from: Option<u64>,
}

async fn read_blob(call: Call, params: ReadBlob) -> Result<Output, ToolError> {
    let handle: Handle = params.blob.parse().map_err(|error: blobs::NoHandle| {
        ToolError::bad_argument(error.to_string(), "Give a handle as it stands in a result or a message.")
    })?;
    let chars_max = u64::from(call.host.limits().answer_chars);
    let (caller, asked) = (call.caller, handle.clone());
    let read = call.host.store().read(move |db| {
        let Some(found) = blobs::find(db, caller, &asked)? else { return Ok(None) };
        let Some(bytes) = blobs::bytes(db, &found)? else { return Ok(None) };
        let from = params.from.unwrap_or(0);
        let length = params.length.unwrap_or(chars_max).clamp(1, chars_max);
        let text = blobs::as_text(&bytes).filter(|_| !blobs::is_picture(&found.mime_type));
        Ok::<_, StoreError>(Some(told(found, text.map(|text| piece(text, from, length)))))
    });
    let read = read.await?.ok_or_else(|| {
        let hint = "Use a handle that stands in your own conversation; ask whoever named it to send it in a message.";
        ToolError::new("unknown_blob", format!("no blob of yours has the handle {handle}"), hint)
    })?;
    let mut output = Output::new(&read)?;
    if blobs::is_picture(&read.mime_type) {
        let picture = Part::Image { mime_type: read.mime_type, data: None, blob: Some(read.blob) };
        output.content = Some(vec![Part::text(as_text(&output.value)), picture]);
    }
    Ok(output)
}

fn told(found: Described, piece: Option<(String, Option<u64>)>) -> Read {
    let (content, next_from) = piece.map_or((None, None), |(text, next)| (Some(text), next));
    let (mime_type, name, bytes) = (found.mime_type, found.name, found.bytes);
    Read { blob: found.handle.to_string(), mime_type, name, bytes, content, next_from }
}

/// `length` characters of a text from the character `from` on, and where to go on.
fn piece(text: &str, from: u64, length: u64) -> (String, Option<u64>) {
    let place = |at: u64| usize::try_from(at).ok().and_then(|at| text.char_indices().nth(at));
    let Some((begin, _)) = place(from) else { return (String::new(), None) };
    let rest = &text[begin..];
    let end = usize::try_from(length).ok().and_then(|at| rest.char_indices().nth(at));
    match end {
        Some((end, _)) => (rest[..end].to_owned(), Some(from + length)),
        None => (rest.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_in_pieces() {
        let check = |text: &str, from: u64, length: u64, want: (&str, Option<u64>)| {
            assert_eq!(piece(text, from, length), (want.0.to_owned(), want.1), "{text} {from} {length}");
        };
        check("abcdef", 0, 4, ("abcd", Some(4)));
        check("abcdef", 4, 4, ("ef", None));
        check("abcdef", 2, 4, ("cdef", None));
        check("abcdef", 6, 4, ("", None));
        check("abcdef", u64::MAX, 4, ("", None));
        check("äöü€", 1, 2, ("öü", Some(3)));
        check("", 0, 4, ("", None));
    }
}
