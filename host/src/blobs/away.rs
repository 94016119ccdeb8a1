//! Putting away: what a tool or a model gave becomes parts that name blobs, and the blobs.

use std::sync::Arc;

use assistant_protocol::types::{Content, Part};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_PAD_INDIFFERENT;
use serde_json::json;

use super::{Blob, Handle};
use crate::limits::Limits;
use crate::text::{WORD_SHOWN_CHARS_MAX, cut, one_line};

/// Parts of one result; what is behind them is told by its number.
const PARTS_MAX: usize = 100;
/// Characters of the beginning and of the end of a text that is put away.
const HEAD_CHARS: usize = 6_000;
const TAIL_CHARS: usize = 2_000;
/// The type of a part that is a file, which is one only between whoever gives it and here.
const FILE: &str = "file";
/// Bytes from which on the work is done on a thread of its own.
const MUCH_BYTES: usize = 64 * 1024;

/// What is given, before anything of it is put away.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    parts: Arc<Vec<Part>>,
    /// Characters of texts that stay; none are all.
    chars: Option<usize>,
    /// The largest blob, bytes.
    bytes: u64,
}

/// What is given, put away.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Away {
    /// Texts and handles.
    pub(crate) parts: Vec<Part>,
    /// What they name.
    pub(crate) blobs: Arc<Vec<Blob>>,
}

/// A file as a part, for tools that give one: `data` is base64.
#[must_use]
pub fn file(mime_type: &str, name: Option<&str>, data: &str) -> Part {
    Part::Unknown(json!({ "type": FILE, "mime_type": mime_type, "name": name, "data": data }))
}

impl Given {
    /// The result of a tool: its texts are cut to what an answer may have.
    pub(crate) fn of_tool(parts: Vec<Part>, limits: &Limits) -> Self {
        Self { parts: Arc::new(parts), chars: Some(limits.answer_chars as usize), bytes: limits.blob_bytes }
    }

    /// What a model or a runner said: only its pictures are put away. None where it has none.
    pub(crate) fn of_content(content: &Content, limits: &Limits) -> Option<Self> {
        let Content::Parts(parts) = content else { return None };
        let has = parts.iter().any(|part| matches!(part, Part::Image { data: Some(_), .. }));
        has.then(|| Self { parts: Arc::new(parts.clone()), chars: None, bytes: limits.blob_bytes })
    }

    /// Puts away what is to be; with `lost` nothing is kept, and that is why.
    pub(crate) async fn put_away(&self, lost: Option<&str>) -> Away {
        let size = |part: &Part| match part {
            Part::Text { text } => text.len(),
            Part::Image { data, .. } => data.as_ref().map_or(0, String::len),
            Part::Unknown(value) => value["data"].as_str().map_or(0, str::len),
            Part::Reasoning { .. } | Part::ToolCall { .. } | Part::ToolResult { .. } | Part::Opaque { .. } => 0,
        };
        if self.parts.iter().map(size).sum::<usize>() < MUCH_BYTES {
            return put_away(self, lost);
        }
        let (given, lost) = (self.clone(), lost.map(str::to_owned));
        let working = tokio::task::spawn_blocking(move || put_away(&given, lost.as_deref()));
        working.await.unwrap_or_else(|error| Away {
            parts: vec![Part::text(format!("[what it gave cannot be shown: {error}]"))],
            blobs: Arc::default(),
        })
    }
}

/// See [`Given::put_away`].
fn put_away(given: &Given, lost: Option<&str>) -> Away {
    let mut to = Putting { given, lost, left: given.chars.unwrap_or(usize::MAX), parts: Vec::new(), blobs: Vec::new() };
    let most = if given.chars.is_some() { PARTS_MAX } else { usize::MAX };
    given.parts.iter().take(most).for_each(|part| to.put(part));
    let behind = given.parts.len().saturating_sub(most);
    if behind > 0 {
        to.parts.push(Part::text(format!("[{behind} more parts are left out: a result has {PARTS_MAX} at most]")));
    }
    Away { parts: to.parts, blobs: Arc::new(to.blobs) }
}

struct Putting<'a> {
    given: &'a Given,
    lost: Option<&'a str>,
    /// Characters of texts that still stay.
    left: usize,
    parts: Vec<Part>,
    blobs: Vec<Blob>,
}

impl Putting<'_> {
    fn put(&mut self, part: &Part) {
        match part {
            Part::Text { text } => self.text(text),
            Part::Image { mime_type, data: Some(data), .. } => self.base64(data, mime_type, None, "picture"),
            Part::Unknown(value) if value["type"] == FILE && value["data"].is_string() => {
                let data = value["data"].as_str().unwrap_or_default();
                let mime_type = value["mime_type"].as_str().unwrap_or_default();
                self.base64(data, mime_type, value["name"].as_str(), FILE);
            }
            Part::Unknown(value) if self.given.chars.is_some() => self.text(&value.to_string()),
            Part::Image { data: None, .. }
            | Part::Unknown(_)
            | Part::Reasoning { .. }
            | Part::ToolCall { .. }
            | Part::ToolResult { .. }
            | Part::Opaque { .. } => self.parts.push(part.clone()),
        }
    }

    /// A text that is longer than what is left is put away; its beginning and its end stay.
    fn text(&mut self, text: &str) {
        let chars = text.chars().count();
        if chars <= self.left {
            self.left -= chars;
            self.parts.push(Part::text(text));
            return;
        }
        let (head, tail) = (HEAD_CHARS.min(self.left / 4 * 3), TAIL_CHARS.min(self.left / 4));
        self.left -= head + tail;
        let place = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(place, _)| place);
        let (begin, end) = (&text[..place(head)], &text[place(chars - tail)..]);
        let how = match self.keep(Blob::new(text.as_bytes().to_vec(), "text/plain", None)) {
            Ok(handle) => format!("kept as {handle}, which read_blob reads from character {head} on"),
            Err(why) => format!("not kept: {why}"),
        };
        self.parts.push(Part::text(format!(
            "{begin}\n[{} of {chars} characters are left out here; the whole is {how}]\n{end}",
            chars - head - tail
        )));
    }

    /// Bytes that came as base64.
    fn base64(&mut self, data: &str, mime_type: &str, name: Option<&str>, what: &str) {
        let told = cut(&one_line(mime_type), WORD_SHOWN_CHARS_MAX);
        let named = name.map_or_else(String::new, |name| format!(" {}", cut(&one_line(name), WORD_SHOWN_CHARS_MAX)));
        let bytes = match decode(data) {
            Some(bytes) if bytes.is_empty() => {
                return self.parts.push(Part::text(format!("[a {what}{named} ({told}) without a byte]")));
            }
            Some(bytes) => bytes,
            None => {
                return self.parts.push(Part::text(format!(
                    "[a {what}{named} ({told}) that cannot be read: its data is no base64]"
                )));
            }
        };
        let blob = Blob::new(bytes, mime_type, name);
        let (parts, told) = (blob.parts(what), blob.told(what));
        match self.keep(blob) {
            Ok(_) => self.parts.extend(parts),
            Err(why) => self.parts.push(Part::text(format!("[{told}, not kept: {why}]"))),
        }
    }

    /// Keeps a blob, if that may be, and gives its handle.
    fn keep(&mut self, blob: Blob) -> Result<Handle, String> {
        if let Some(why) = self.lost {
            return Err(why.to_owned());
        }
        let bytes = blob.bytes.len() as u64;
        if bytes > self.given.bytes {
            return Err(format!("limit blob_bytes: it has {bytes} bytes, the most is {}", self.given.bytes));
        }
        let handle = blob.handle();
        if !self.blobs.iter().any(|known| known.hash == blob.hash) {
            self.blobs.push(blob);
        }
        Ok(handle)
    }
}

/// The bytes of base64, however its lines are broken and its end is padded.
fn decode(data: &str) -> Option<Vec<u8>> {
    match STANDARD_PAD_INDIFFERENT.decode(data) {
        Ok(bytes) => Some(bytes),
        Err(_) => {
            let together: String = data.split_ascii_whitespace().collect();
            STANDARD_PAD_INDIFFERENT.decode(together).ok()
        }
    }
}

#[cfg(test)]
mod tests;
