//! A task as it is said to a model: its context, its files and its prompt in one message, each in a marker that nothing
//! within can end. Whoever asks a model and whoever keeps what it was asked write it the same way.

use crate::types::{Content, Input, Message, Part, Role};

/// The markers that a conversation has: those of a task, those of the host's messages, and that of a record.
const MARKERS: [&str; 4] = ["context", "file", "message", "earlier"];

/// What a `run` brings, as one message; none where it brings nothing.
#[must_use]
pub fn message(query: Option<String>, context: Option<String>, inputs: Option<Vec<Input>>) -> Option<Message> {
    let context = context.map(|text| (format!("<context>\n{}\n</context>", inside(&text)), None));
    let inputs = inputs.into_iter().flatten().map(|input| (file(&input), input.picture));
    one_message(context.into_iter().chain(inputs).chain(query.map(|text| (text, None))))
}

/// Text that cannot end the marker that it stands in, nor pass for another one.
#[must_use]
pub fn inside(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let is_marker = |behind: &str| {
        let name = behind.strip_prefix('/').unwrap_or(behind);
        MARKERS.iter().any(|marker| name.starts_with(marker))
    };
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (at, _) in lower.match_indices('<').filter(|(at, _)| is_marker(&lower[at + 1..])) {
        out.push_str(&text[from..at]);
        out.push_str("&lt;");
        from = at + 1;
    }
    out.push_str(&text[from..]);
    out
}

/// A name as it can stand in quotes, on one line.
#[must_use]
pub fn in_quotes(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A file of a task, in its marker.
fn file(Input { path, content, picture: _ }: &Input) -> String {
    let path = in_quotes(path);
    match content.as_str() {
        "" => format!("<file path=\"{path}\" empty=\"true\"></file>"),
        content => format!("<file path=\"{path}\">\n{}\n</file>", inside(content)),
    }
}

/// Several pieces, with a blank line between them, as one message; none where there is no piece. A picture stands behind
/// the text that tells of it.
fn one_message(pieces: impl Iterator<Item = (String, Option<Part>)>) -> Option<Message> {
    let (mut parts, mut text, mut between) = (Vec::new(), String::new(), "");
    for (piece, picture) in pieces {
        text.push_str(std::mem::replace(&mut between, "\n\n"));
        text.push_str(&piece);
        if let Some(picture) = picture {
            parts.extend([Part::text(std::mem::take(&mut text)), picture]);
        }
    }
    let content = match (parts.is_empty(), between.is_empty()) {
        (true, true) => return None,
        (true, false) => Content::Text(text),
        (false, _) => {
            parts.extend((!text.is_empty()).then(|| Part::text(text)));
            Content::Parts(parts)
        }
    };
    Some(Message { role: Role::User, content })
}
