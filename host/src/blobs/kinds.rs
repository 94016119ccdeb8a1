//! What bytes are: a picture goes by its first bytes, a text by being one; the rest by what was told.

use crate::text::{cut, one_line};

/// The type of bytes of which nothing is known.
const BYTES: &str = "application/octet-stream";
/// Characters of a type, and of a name.
const TYPE_CHARS_MAX: usize = 100;
const NAME_CHARS_MAX: usize = 120;

/// The type of bytes that are a picture of a kind that models take.
fn picture(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Whether a type is one of the pictures that models take. Blobs have such a type only where their bytes are one.
pub(crate) fn is_picture(mime_type: &str) -> bool {
    matches!(mime_type, "image/png" | "image/jpeg" | "image/gif" | "image/webp")
}

/// The type of bytes for which another one was told. What claims to be a picture and is none would be refused by a model,
/// with all else that was said.
pub(super) fn mime_type(bytes: &[u8], told: &str) -> String {
    if let Some(picture) = picture(bytes) {
        return picture.to_owned();
    }
    let told = told.trim().to_ascii_lowercase();
    let may_be = |c: char| c.is_ascii_alphanumeric() || "/.+-_;= ".contains(c);
    let is_type = told.contains('/') && told.len() <= TYPE_CHARS_MAX && told.chars().all(may_be);
    if is_type && !is_picture(&told) { told } else { BYTES.to_owned() }
}

/// A name as it is shown; none where nothing is left of it.
pub(super) fn file_name(told: &str) -> Option<String> {
    let name = cut(one_line(told).trim(), NAME_CHARS_MAX);
    (!name.is_empty()).then_some(name)
}

/// Bytes that are a text.
pub(crate) fn as_text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_what_its_bytes_say() {
        let check = |bytes: &[u8], told: &str, want: &str| assert_eq!(mime_type(bytes, told), want, "{told}");
        check(b"\x89PNG\r\n\x1a\n1234", "image/jpeg", "image/png");
        check(b"\xff\xd8\xff\xe0", "application/pdf", "image/jpeg");
        check(b"GIF89a", "", "image/gif");
        check(b"RIFF\0\0\0\0WEBPVP8 ", "image/webp", "image/webp");
        check(b"no picture", "image/png", BYTES);
        check(b"", "image/png", BYTES);
        check(b"<svg/>", "image/svg+xml", "image/svg+xml");
        check(b"%PDF", " Application/PDF ", "application/pdf");
        check(b"x", "text/plain; charset=utf-8", "text/plain; charset=utf-8");
        check(b"x", "no type", BYTES);
        check(b"x", "a/b\n[c]", BYTES);
        check(b"x", &format!("a/{}", "x".repeat(100)), BYTES);
    }

    #[test]
    fn a_name_is_one_line() {
        let check = |told: &str, want: Option<&str>| assert_eq!(file_name(told).as_deref(), want);
        check("report.pdf", Some("report.pdf"));
        check(" a\nb ", Some("a b"));
        check(" ", None);
        assert!(file_name(&"x".repeat(500)).is_some_and(|name| name.chars().count() <= NAME_CHARS_MAX));
    }
}
