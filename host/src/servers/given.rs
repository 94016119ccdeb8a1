//! What a server gave, as parts of a message.

use assistant_protocol::types::Part;
use serde_json::Value;

use super::Given;
use crate::text::cut;

/// Characters of an address, a name or a type that are told.
const NAME_CHARS_MAX: usize = 500;

/// The result of a call as a server sends it; `chars_max` is the most of its text, and of its data as JSON.
pub(super) fn parts(result: &Value, chars_max: usize) -> Given {
    let blocks = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut room = chars_max;
    let mut content: Vec<Part> = blocks.iter().flat_map(|block| part(block, &mut room)).collect();
    let structured = result.get("structuredContent").filter(|value| !value.is_null());
    let text = structured.map(Value::to_string);
    // What is too long as data is cut as text.
    let fits = text.as_ref().is_none_or(|text| text.chars().count() <= chars_max);
    if let Some(text) = text.filter(|_| content.is_empty()) {
        content.push(bounded(&text, &mut room));
    }
    if content.is_empty() {
        content.push(Part::text("(the tool gave nothing back)"));
    }
    Given {
        content,
        structured: structured.filter(|_| fits).cloned(),
        is_error: result.get("isError") == Some(&Value::Bool(true)),
    }
}

fn part(block: &Value, room: &mut usize) -> Vec<Part> {
    let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "text" => vec![bounded(text("text"), room)],
        "image" => vec![image(text("mimeType"), text("data"))],
        "audio" => {
            let (kind, bytes) = (cut(text("mimeType"), NAME_CHARS_MAX), bytes(text("data")));
            vec![Part::text(format!("[a sound, {kind}, {bytes} bytes, which cannot be given here]"))]
        }
        "resource" => resource(block.get("resource").unwrap_or(&Value::Null), room),
        "resource_link" => {
            let told = ["uri", "name", "description", "mimeType"].map(text);
            let told = told.into_iter().filter(|text| !text.is_empty()).map(|text| cut(text, NAME_CHARS_MAX));
            vec![Part::text(format!("[resource {}]", told.collect::<Vec<_>>().join(", ")))]
        }
        _ => vec![bounded(&block.to_string(), room)],
    }
}

fn resource(resource: &Value, room: &mut usize) -> Vec<Part> {
    let text = |key: &str| resource.get(key).and_then(Value::as_str);
    let (uri, kind) = (text("uri").unwrap_or_default(), text("mimeType").unwrap_or_default());
    let head = [uri, kind].into_iter().filter(|text| !text.is_empty()).map(|text| cut(text, NAME_CHARS_MAX));
    let head = head.collect::<Vec<_>>().join(", ");
    match (text("text"), text("blob")) {
        (Some(inner), _) => vec![bounded(&format!("[resource {head}]\n{inner}"), room)],
        (None, Some(blob)) if kind.starts_with("image/") => {
            vec![Part::text(format!("[resource {head}]")), image(kind, blob)]
        }
        (None, Some(blob)) => {
            vec![Part::text(format!("[resource {head}, {} bytes, which cannot be given here]", bytes(blob)))]
        }
        (None, None) => vec![bounded(&resource.to_string(), room)],
    }
}

fn image(mime_type: &str, data: &str) -> Part {
    let mime_type = if mime_type.is_empty() { "image/png" } else { mime_type };
    Part::Image { mime_type: cut(mime_type, NAME_CHARS_MAX), data: Some(data.to_owned()), blob: None }
}

/// Bytes that a text in base64 stands for.
fn bytes(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

/// A text within what is left of the room; what is left out is told.
fn bounded(text: &str, room: &mut usize) -> Part {
    let chars = text.chars().count();
    if chars <= *room {
        *room -= chars;
        return Part::text(text);
    }
    let kept: String = text.chars().take(*room).collect();
    let left_out = chars - *room;
    *room = 0;
    Part::text(format!(
        "{kept}\n[limit answer_chars: {left_out} of {chars} characters are left out here; ask for less of it at once]"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(result: Value, want: &Given) {
        assert_eq!(&parts(&result, 30), want, "{result}");
    }

    fn text(text: &str) -> Given {
        Given { content: vec![Part::text(text)], structured: None, is_error: false }
    }

    #[test]
    fn every_kind_is_passed_on() {
        check(json!({ "content": [{ "type": "text", "text": "a" }] }), &text("a"));
        check(
            json!({ "content": [{ "type": "text", "text": "no" }], "isError": true }),
            &Given { is_error: true, ..text("no") },
        );
        check(
            json!({ "structuredContent": { "a": 1 } }),
            &Given { structured: Some(json!({ "a": 1 })), ..text("{\"a\":1}") },
        );
        let picture = Part::Image { mime_type: "image/png".into(), data: Some("AAAA".into()), blob: None };
        let image = json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" });
        check(json!({ "content": [image] }), &Given { content: vec![picture.clone()], ..text("") });
        let blob =
            json!({ "type": "resource", "resource": { "uri": "a://b", "mimeType": "image/png", "blob": "AAAA" } });
        check(
            json!({ "content": [blob] }),
            &Given { content: vec![Part::text("[resource a://b, image/png]"), picture], ..text("") },
        );
        check(
            json!({ "content": [{ "type": "resource", "resource": { "uri": "a://b", "text": "c" } }] }),
            &text("[resource a://b]\nc"),
        );
        check(
            json!({ "content": [{ "type": "resource", "resource": { "uri": "a://b", "blob": "AAAAAA==" } }] }),
            &text("[resource a://b, 4 bytes, which cannot be given here]"),
        );
        check(
            json!({ "content": [{ "type": "resource_link", "uri": "a://b", "name": "n" }] }),
            &text("[resource a://b, n]"),
        );
        check(
            json!({ "content": [{ "type": "audio", "data": "AAAA", "mimeType": "audio/wav" }] }),
            &text("[a sound, audio/wav, 3 bytes, which cannot be given here]"),
        );
        check(json!({ "content": [{ "type": "new", "a": 1 }] }), &text("{\"type\":\"new\",\"a\":1}"));
    }

    #[test]
    fn nothing_and_nonsense_are_told() {
        for result in [json!({}), json!(null), json!({ "content": [] }), json!({ "content": "text" }), json!(5)] {
            check(result, &text("(the tool gave nothing back)"));
        }
        check(json!({ "content": [5] }), &text("5"));
        check(json!({ "content": [{ "type": "text" }] }), &text(""));
    }

    #[test]
    fn what_is_too_long_is_cut_with_words() {
        let long = "é".repeat(20);
        let given =
            parts(&json!({ "content": [{ "type": "text", "text": long }, { "type": "text", "text": long }] }), 30);
        let want = format!(
            "{}\n[limit answer_chars: 10 of 20 characters are left out here; ask for less of it at once]",
            "é".repeat(10)
        );
        assert_eq!(given.content, [Part::text(long.clone()), Part::text(want)]);
        let given = parts(&json!({ "content": [], "structuredContent": { "a": long.repeat(2) } }), 30);
        assert!(given.structured.is_none() && given.content.len() == 1, "{given:?}");
    }
}
