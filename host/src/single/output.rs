//! The schema that results must fit, and how it is told to MCP clients, which want objects.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::text_of;
use crate::output_schema::OutputSchema;

/// Under what a result that is no object stands in the object that MCP wants.
const WRAP: &str = "result";

/// What results have to fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// The schema, as its file has it.
    pub written: Value,
    /// The schema of the tool's structured result: always one of an object.
    pub declared: Value,
    wrapped: bool,
}

impl Form {
    /// Reads the schema in `file`.
    ///
    /// # Errors
    /// In words, to stand behind the name of the setting.
    pub(super) fn read(file: &Path) -> Result<Self, String> {
        let shown = file.display();
        let text = text_of(file).map_err(|why| format!("names {shown}, which cannot be read: {why}"))?;
        let written: Value = serde_json::from_str(text.trim_start_matches('\u{feff}'))
            .map_err(|error| format!("names {shown}, which is no JSON: {error}"))?;
        if !written.is_object() {
            return Err(format!("names {shown}, which is no JSON schema: it has to be an object"));
        }
        OutputSchema::compile(&written).map_err(|why| format!("names {shown}, which {why}"))?;
        Self::of(written).map_err(|why| format!("names {shown}: {why}"))
    }

    fn of(written: Value) -> Result<Self, String> {
        if written["type"] == "object" {
            return Ok(Self { declared: written.clone(), written, wrapped: false });
        }
        if written.get("type").is_none() && written.get("properties").is_some() {
            let mut written = written;
            written["type"] = "object".into();
            return Ok(Self { declared: written.clone(), written, wrapped: false });
        }
        let mut inner = written.clone();
        let mut declared = Map::new();
        if let Some(map) = inner.as_object_mut() {
            // What is referred to from the root stays there.
            for key in ["$schema", "$defs", "definitions"] {
                declared.extend(map.remove(key).map(|value| (key.to_owned(), value)));
            }
        }
        if refers_to_the_root(&inner) {
            return Err("a schema that is none of an object can refer only to its `$defs`".to_owned());
        }
        declared.insert("type".into(), "object".into());
        declared.insert("properties".into(), json!({ WRAP: inner }));
        declared.insert("required".into(), json!([WRAP]));
        Ok(Self { written, declared: Value::Object(declared), wrapped: true })
    }

    /// A result as structured content.
    #[must_use]
    pub fn content(&self, result: Value) -> Value {
        if self.wrapped { json!({ WRAP: result }) } else { result }
    }
}

fn refers_to_the_root(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.iter().any(|(key, value)| match (key.as_str(), value) {
            ("$ref", Value::String(to)) => !to.starts_with("#/$defs/") && !to.starts_with("#/definitions/"),
            (_, value) => refers_to_the_root(value),
        }),
        Value::Array(all) => all.iter().any(refers_to_the_root),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_object_is_wrapped() {
        let check = |written: Value, declared: Value, result: Value, content: Value| {
            let form = Form::of(written).expect("a form");
            assert_eq!((form.declared.clone(), form.content(result)), (declared, content));
        };
        let object = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        check(object.clone(), object.clone(), json!({ "a": "b" }), json!({ "a": "b" }));
        check(json!({ "properties": { "a": { "type": "string" } } }), object, json!({}), json!({}));
        check(
            json!({ "$defs": { "n": { "type": "number" } }, "type": "array", "items": { "$ref": "#/$defs/n" } }),
            json!({
                "$defs": { "n": { "type": "number" } }, "type": "object", "required": ["result"],
                "properties": { "result": { "type": "array", "items": { "$ref": "#/$defs/n" } } },
            }),
            json!([1]),
            json!({ "result": [1] }),
        );
        let error = Form::of(json!({ "type": "array", "items": { "$ref": "#" } })).expect_err("refused");
        assert_eq!(error, "a schema that is none of an object can refer only to its `$defs`");
    }
}
