//! Pictures on their way to a model: what it takes goes there, and what it does not take is told in words, because a
//! request with one wrong picture is refused whole, and so is every later one of the conversation.

use assistant_protocol::types::{Content, Message, Part};

/// What a provider takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Takes {
    /// Types, as `image/png`.
    pub(super) types: &'static [&'static str],
    /// The longest in base64, bytes.
    pub(super) base64_bytes_max: usize,
}

/// What most take.
pub(super) const USUAL: Takes =
    Takes { types: &["image/png", "image/jpeg", "image/gif", "image/webp"], base64_bytes_max: 20 * 1024 * 1024 };

/// A picture, or the words that stand in for it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Picture<'a> {
    /// Its type and its bytes in base64.
    Data { mime_type: &'a str, data: &'a str },
    /// Why it cannot be shown.
    Words(String),
}

/// The picture that a part is; none where it is something else.
pub(super) fn of(part: &Part, takes: Takes) -> Option<Picture<'_>> {
    let Part::Image { mime_type, data, blob } = part else { return None };
    let words = |words: String| Some(Picture::Words(words));
    let data = match (data, blob) {
        (Some(data), _) => data.as_str(),
        (None, Some(blob)) => return words(format!("[a picture, kept as {blob}]")),
        (None, None) => return words("[a picture that is not kept]".to_owned()),
    };
    let mime_type = if mime_type == "image/jpg" { "image/jpeg" } else { mime_type.as_str() };
    if !takes.types.contains(&mime_type) {
        return words(format!("[a picture of the type {mime_type}, which this model does not take]"));
    }
    if data.len() > takes.base64_bytes_max {
        let (size, most) = (data.len(), takes.base64_bytes_max);
        return words(format!("[a picture of {size} bytes in base64; this model takes {most} at most]"));
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    if data.is_empty() || !data.len().is_multiple_of(4) || !data.bytes().all(plain) {
        return words("[a picture whose bytes are no base64]".to_owned());
    }
    Some(Picture::Data { mime_type, data })
}

/// The pictures of a list of parts.
pub(super) fn among(parts: &[Part]) -> impl Iterator<Item = &Part> {
    parts.iter().filter(|part| matches!(part, Part::Image { .. }))
}

/// The pictures that a message of an assistant holds, which formats take from users only, and the words before them.
pub(super) fn made(content: &Content) -> Option<(String, Vec<Part>)> {
    let pictures: Vec<_> = among(&content.parts()).cloned().collect();
    (!pictures.is_empty()).then(|| ("Pictures that you made:".to_owned(), pictures))
}

/// The pictures of a result of a tool, which some formats take from users only, and the words before them.
pub(super) fn of_result(call_id: &str, content: &[Part]) -> Option<(String, Vec<Part>)> {
    let pictures: Vec<_> = among(content).cloned().collect();
    (!pictures.is_empty()).then(|| (format!("Pictures of the result of {call_id}:"), pictures))
}

/// Puts words with the reason in the place of all pictures. Whether there were any.
pub(super) fn in_words(messages: &mut [Message], why: &str) -> bool {
    fn replace(parts: &mut [Part], why: &str) -> bool {
        parts.iter_mut().fold(false, |any, part| match part {
            Part::Image { mime_type, .. } => {
                *part = Part::text(format!("[a picture of the type {mime_type}; {why}]"));
                true
            }
            Part::ToolResult { content, .. } => replace(content, why) || any,
            _ => any,
        })
    }
    messages.iter_mut().fold(false, |any, message| match &mut message.content {
        Content::Parts(parts) => replace(parts, why) || any,
        Content::Text(_) => any,
    })
}

/// The picture of a `data:` address.
pub(super) fn from_url(url: &str) -> Option<Part> {
    let (mime_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    mime_type.starts_with("image/").then(|| Part::Image {
        mime_type: mime_type.to_owned(),
        data: Some(data.to_owned()),
        blob: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_goes_there_or_is_told_in_words() {
        let takes = Takes { types: &["image/png", "image/jpeg"], base64_bytes_max: 8 };
        let check = |mime_type: &str, data: Option<&str>, blob: Option<&str>, want: &str| {
            let part = Part::Image {
                mime_type: mime_type.into(),
                data: data.map(str::to_owned),
                blob: blob.map(str::to_owned),
            };
            let got = match of(&part, takes).expect("a picture") {
                Picture::Data { mime_type, data } => format!("{mime_type} {data}"),
                Picture::Words(words) => words,
            };
            assert_eq!(got, want);
        };
        check("image/png", Some("AA=="), None, "image/png AA==");
        check("image/png", Some("AA=="), Some("b1"), "image/png AA==");
        check("image/jpg", Some("AAAA"), None, "image/jpeg AAAA");
        check("image/png", None, Some("b1"), "[a picture, kept as b1]");
        check("image/png", None, None, "[a picture that is not kept]");
        let svg = "[a picture of the type image/svg+xml, which this model does not take]";
        check("image/svg+xml", Some("AA=="), None, svg);
        let large = "[a picture of 12 bytes in base64; this model takes 8 at most]";
        check("image/png", Some("AAAAAAAAAAAA"), None, large);
        for broken in ["", "A", "AA=\n", "A A="] {
            check("image/png", Some(broken), None, "[a picture whose bytes are no base64]");
        }
        assert_eq!(of(&Part::text("x"), takes), None);
    }

    #[test]
    fn a_data_address_is_a_picture() {
        let image = Part::Image { mime_type: "image/png".into(), data: Some("AA==".into()), blob: None };
        assert_eq!(from_url("data:image/png;base64,AA=="), Some(image));
        for other in ["https://h/x.png", "data:text/plain;base64,AA==", "data:image/png,x", ""] {
            assert_eq!(from_url(other), None);
        }
    }
}
