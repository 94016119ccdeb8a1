//! What a message says: a string, or ordered parts. Parts of an unknown type are kept as they came.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A string, or parts in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Parts, in the order in which they were said.
    Parts(Vec<Part>),
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// Its type, as `image/png`.
        mime_type: String,
        /// Its bytes in base64, or null where `blob` names them.
        data: Option<String>,
        /// The handle of stored bytes.
        blob: Option<String>,
    },
    /// What the model thought, where it tells.
    Reasoning {
        /// The thought.
        text: Option<String>,
    },
    /// A call of a tool.
    ToolCall {
        /// What the call is known by.
        call_id: String,
        /// The tool.
        tool_name: String,
        /// Its arguments, or the text that the model gave where that was no valid JSON.
        arguments: Result<Value, String>,
    },
    /// The result of a call.
    ToolResult {
        /// The call.
        call_id: String,
        /// What came out, in parts.
        content: Vec<Part>,
        /// The call failed.
        is_error: bool,
    },
    /// Something of a provider that must come back to it verbatim and in place.
    Opaque {
        /// The provider.
        provider: String,
        /// The model.
        model: String,
        /// What it is.
        data: Value,
    },
    /// A part of a type that this version does not know, as it came.
    Unknown(Value),
}

/// The known parts as they are on the wire.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schemars(rename = "Part")]
enum Known<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        mime_type: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Cow<'a, str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blob: Option<Cow<'a, str>>,
    },
    Reasoning {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<Cow<'a, str>>,
    },
    ToolCall {
        call_id: Cow<'a, str>,
        tool_name: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Cow<'a, Value>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments_text: Option<Cow<'a, str>>,
    },
    ToolResult {
        call_id: Cow<'a, str>,
        #[serde(default)]
        content: Option<Cow<'a, [Part]>>,
        #[serde(default)]
        is_error: Option<bool>,
    },
    Opaque {
        provider: Cow<'a, str>,
        #[serde(default)]
        model: Cow<'a, str>,
        data: Cow<'a, Value>,
    },
}

const KNOWN_TYPES: [&str; 6] = ["text", "image", "reasoning", "tool_call", "tool_result", "opaque"];

impl Part {
    /// A part of text.
    pub fn text(text: impl Into<String>) -> Self {
        Part::Text { text: text.into() }
    }

    fn known(&self) -> Result<Known<'_>, &Value> {
        let known = match self {
            Part::Text { text } => Known::Text { text: text.into() },
            Part::Image { mime_type, data, blob } => Known::Image {
                mime_type: mime_type.into(),
                data: data.as_ref().map(Into::into),
                blob: blob.as_ref().map(Into::into),
            },
            Part::Reasoning { text } => Known::Reasoning { text: text.as_ref().map(Into::into) },
            Part::ToolCall { call_id, tool_name, arguments } => Known::ToolCall {
                call_id: call_id.into(),
                tool_name: tool_name.into(),
                arguments: arguments.as_ref().ok().map(Cow::Borrowed),
                arguments_text: arguments.as_ref().err().map(Into::into),
            },
            Part::ToolResult { call_id, content, is_error } => {
                Known::ToolResult { call_id: call_id.into(), content: Some(content.into()), is_error: Some(*is_error) }
            }
            Part::Opaque { provider, model, data } => {
                Known::Opaque { provider: provider.into(), model: model.into(), data: Cow::Borrowed(data) }
            }
            Part::Unknown(value) => return Err(value),
        };
        Ok(known)
    }
}

impl From<Known<'_>> for Part {
    fn from(known: Known<'_>) -> Self {
        match known {
            Known::Text { text } => Part::Text { text: text.into_owned() },
            Known::Image { mime_type, data, blob } => Part::Image {
                mime_type: mime_type.into_owned(),
                data: data.map(Cow::into_owned),
                blob: blob.map(Cow::into_owned),
            },
            Known::Reasoning { text } => Part::Reasoning { text: text.map(Cow::into_owned) },
            Known::ToolCall { call_id, tool_name, arguments, arguments_text } => Part::ToolCall {
                call_id: call_id.into_owned(),
                tool_name: tool_name.into_owned(),
                arguments: match (arguments, arguments_text) {
                    (Some(value), _) => Ok(value.into_owned()),
                    (None, Some(text)) => Err(text.into_owned()),
                    (None, None) => Ok(Value::Object(serde_json::Map::new())),
                },
            },
            Known::ToolResult { call_id, content, is_error } => Part::ToolResult {
                call_id: call_id.into_owned(),
                content: content.map(Cow::into_owned).unwrap_or_default(),
                is_error: is_error.unwrap_or(false),
            },
            Known::Opaque { provider, model, data } => {
                Part::Opaque { provider: provider.into_owned(), model: model.into_owned(), data: data.into_owned() }
            }
        }
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.known() {
            Ok(known) => known.serialize(serializer),
            Err(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let Some(kind) = value.get("type").and_then(Value::as_str) else {
            return Err(D::Error::custom("a part is an object with a `type`"));
        };
        if !KNOWN_TYPES.contains(&kind) {
            return Ok(Part::Unknown(value));
        }
        serde_json::from_value::<Known<'static>>(value).map(Part::from).map_err(D::Error::custom)
    }
}

impl JsonSchema for Part {
    fn schema_name() -> Cow<'static, str> {
        "Part".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let mut schema = Known::json_schema(schemas);
        let unknown = json_schema!({
            "description": "A part of a type that this version does not know: kept as it came.",
            "type": "object",
            "properties": { "type": { "type": "string", "not": { "enum": KNOWN_TYPES } } },
            "required": ["type"],
        });
        if let Some(Value::Array(types)) = schema.get_mut("oneOf") {
            types.push(unknown.to_value());
        }
        schema
    }
}

impl Content {
    /// All its text parts, in order, as one string.
    #[must_use]
    pub fn as_text(&self) -> Cow<'_, str> {
        match self {
            Content::Text(text) => text.into(),
            Content::Parts(parts) => {
                let texts = parts.iter().filter_map(|part| match part {
                    Part::Text { text } => Some(text.as_str()),
                    _ => None,
                });
                texts.collect::<Vec<_>>().join("").into()
            }
        }
    }

    /// Its parts; a string is one part of text.
    #[must_use]
    pub fn parts(&self) -> Cow<'_, [Part]> {
        match self {
            Content::Text(text) => vec![Part::text(text)].into(),
            Content::Parts(parts) => parts.into(),
        }
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Content::Text(text) => text.serialize(serializer),
            Content::Parts(parts) => parts.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Content::Text(text)),
            Value::Array(parts) => {
                let parts = parts.into_iter().map(serde_json::from_value).collect::<Result<_, _>>();
                parts.map(Content::Parts).map_err(D::Error::custom)
            }
            Value::Null => Ok(Content::Parts(Vec::new())),
            other => Err(D::Error::custom(format!("content is a string or a list of parts, not {other}"))),
        }
    }
}

impl JsonSchema for Content {
    fn schema_name() -> Cow<'static, str> {
        "Content".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let parts = schemas.subschema_for::<Vec<Part>>();
        json_schema!({ "anyOf": [{ "type": "string" }, parts] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What goes in comes out again.
    fn check(json: &str) {
        let content: Content = serde_json::from_str(json).expect("reads");
        assert_eq!(serde_json::to_string(&content).expect("writes"), json);
    }

    #[test]
    fn parts_come_back_verbatim() {
        check(r#""plain""#);
        check(r#"[{"type":"text","text":"a"},{"type":"reasoning"},{"type":"reasoning","text":"hm"}]"#);
        check(r#"[{"type":"image","mime_type":"image/png","data":"AA=="}]"#);
        check(r#"[{"type":"tool_call","call_id":"1","tool_name":"t","arguments":{"a":[1,2.5,null]}}]"#);
        check(r#"[{"type":"tool_call","call_id":"1","tool_name":"t","arguments_text":"{oops"}]"#);
        check(r#"[{"type":"tool_result","call_id":"1","content":[{"type":"text","text":"r"}],"is_error":false}]"#);
        check(r#"[{"type":"opaque","provider":"p","model":"m","data":{"signature":"x=="}}]"#);
        check(r#"[{"a":{"b":1},"type":"never_heard_of"}]"#);
    }

    #[test]
    fn what_is_no_content_is_refused_in_words() {
        let refused = |json| serde_json::from_str::<Content>(json).expect_err("refused").to_string();
        assert_eq!(refused("7"), "content is a string or a list of parts, not 7");
        assert_eq!(refused(r#"[{"text":"x"}]"#), "a part is an object with a `type`");
        assert_eq!(refused(r#"[{"type":"text"}]"#), "missing field `text`");
    }
}
