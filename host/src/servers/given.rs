//! What a server gave, as parts of a message.

use assistant_protocol::types::Part;
use serde_json::Value;

use super::Given;
use crate::blobs::file;
use crate::text::cut;

/// Characters of an address, a name or a type that are told.
const NAME_CHARS_MAX: usize = 500;

/// The result of a call as a server sends it. Whoever records it puts away what is long, pictures and files.
pub(super) fn parts(result: &Value) -> Given {
    let blocks = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut content: Vec<Part> = blocks.iter().flat_map(part).collect();
    let structured = result.get("structuredContent").filter(|value| !value.is_null());
    if content.is_empty() {
        content.push(Part::text(structured.map_or("(the tool gave nothing back)".to_owned(), Value::to_string)));
    }
    Given { content, structured: structured.cloned(), is_error: result.get("isError") == Some(&Value::Bool(true)) }
}

fn part(block: &Value) -> Vec<Part> {
    let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "text" => vec![Part::text(text("text"))],
        "image" => vec![image(text("mimeType"), text("data"))],
        "audio" => vec![file(&cut(text("mimeType"), NAME_CHARS_MAX), None, text("data"))],
        "resource" => resource(block.get("resource").unwrap_or(&Value::Null)),
        "resource_link" => {
            let told = ["uri", "name", "description", "mimeType"].map(text);
            let told = told.into_iter().filter(|text| !text.is_empty()).map(|text| cut(text, NAME_CHARS_MAX));
            vec![Part::text(format!("[resource {}]", told.collect::<Vec<_>>().join(", ")))]
        }
        _ => vec![Part::text(block.to_string())],
    }
}

fn resource(resource: &Value) -> Vec<Part> {
    let text = |key: &str| resource.get(key).and_then(Value::as_str);
    let (uri, kind) = (text("uri").unwrap_or_default(), text("mimeType").unwrap_or_default());
    let head = [uri, kind].into_iter().filter(|text| !text.is_empty()).map(|text| cut(text, NAME_CHARS_MAX));
    let head = head.collect::<Vec<_>>().join(", ");
    match (text("text"), text("blob")) {
        (Some(inner), _) => vec![Part::text(format!("[resource {head}]\n{inner}"))],
        (None, Some(blob)) => {
            let name = uri.rsplit('/').next().filter(|name| !name.is_empty());
            let (kind, name) = (cut(kind, NAME_CHARS_MAX), name.map(|name| cut(name, NAME_CHARS_MAX)));
            vec![Part::text(format!("[resource {head}]")), file(&kind, name.as_deref(), blob)]
        }
        (None, None) => vec![Part::text(resource.to_string())],
    }
}

fn image(mime_type: &str, data: &str) -> Part {
    Part::Image { mime_type: cut(mime_type, NAME_CHARS_MAX), data: Some(data.to_owned()), blob: None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(result: Value, want: &Given) {
        assert_eq!(&parts(&result), want, "{result}");
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
        check(json!({ "content": [image] }), &Given { content: vec![picture], ..text("") });
        let blob =
            json!({ "type": "resource", "resource": { "uri": "a://b", "mimeType": "image/png", "blob": "AAAA" } });
        check(
            json!({ "content": [blob] }),
            &Given {
                content: vec![Part::text("[resource a://b, image/png]"), file("image/png", Some("b"), "AAAA")],
                ..text("")
            },
        );
        check(
            json!({ "content": [{ "type": "resource", "resource": { "uri": "a://b", "text": "c" } }] }),
            &text("[resource a://b]\nc"),
        );
        check(
            json!({ "content": [{ "type": "resource", "resource": { "uri": "a://b", "blob": "AAAAAA==" } }] }),
            &Given { content: vec![Part::text("[resource a://b]"), file("", Some("b"), "AAAAAA==")], ..text("") },
        );
        check(
            json!({ "content": [{ "type": "resource_link", "uri": "a://b", "name": "n" }] }),
            &text("[resource a://b, n]"),
        );
        check(
            json!({ "content": [{ "type": "audio", "data": "AAAA", "mimeType": "audio/wav" }] }),
            &Given { content: vec![file("audio/wav", None, "AAAA")], ..text("") },
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
}
