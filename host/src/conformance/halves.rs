//! Half characters: JSON may have escapes of them, texts of Rust may not. A runner whose texts may can give back what it
//! was given, so what it writes is read all the same.

use serde_json::Value;

/// Reads JSON, with U+FFFD for each half of a character; null where it is none.
pub(super) fn read(json: &str) -> Value {
    serde_json::from_str(json).or_else(|_| serde_json::from_str(&whole(json))).unwrap_or(Value::Null)
}

fn whole(json: &str) -> String {
    let (mut whole, mut rest) = (String::with_capacity(json.len()), json);
    while let Some(at) = rest.find('\\') {
        whole.push_str(&rest[..at]);
        rest = &rest[at..];
        let (written, taken) = match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (&rest[..12], 12),
            (Some(0xd800..=0xdfff), _) => ("\\ufffd", 6),
            _ => {
                let taken = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                (&rest[..taken], taken)
            }
        };
        whole.push_str(written);
        rest = &rest[taken..];
    }
    whole + rest
}

/// The number of the escape that a text begins with, as `\u00e4`.
fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn halves_are_replaced_and_nothing_else() {
        let check = |text: &str, expected: Value| assert_eq!(read(text), expected, "{text}");
        check(r#"["\ud800", "a\udc00b", "\ud800\ud83d\ude00"]"#, json!(["\u{fffd}", "a\u{fffd}b", "\u{fffd}😀"]));
        check(r#"{"\ud800": "\\ud800 \" ä \u00e4"}"#, json!({ "\u{fffd}": "\\ud800 \" ä ä" }));
        check(r#""\ud8"#, Value::Null);
        check("\\", Value::Null);
    }
}
