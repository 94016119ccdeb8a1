//! Schemas that an answer is held to, as providers take them: each object closed, and nothing that they refuse.

use serde_json::{Map, Value, json};

/// How deep a schema is looked into.
const DEPTH_MAX: usize = 32;

/// Words of a schema that providers know. What else a schema asks for is for whoever checks the answer.
const KNOWN: [&str; 14] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "$ref",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
];

/// A schema whose objects have the named properties and no others.
#[derive(Debug, PartialEq)]
pub(super) struct Closed {
    pub(super) schema: Value,
    /// Each property is required.
    pub(super) whole: bool,
}

/// The schema as a provider takes it; none where it cannot be said so: one whose objects have properties of any name, or
/// that is put together in another way.
pub(super) fn closed(schema: &Value) -> Option<Closed> {
    let mut whole = true;
    let schema = close(schema, &mut whole, 0)?;
    (schema.get("type") == Some(&json!("object"))).then_some(Closed { schema, whole })
}

fn close(schema: &Value, whole: &mut bool, depth: usize) -> Option<Value> {
    let schema = schema.as_object()?;
    let other = ["oneOf", "allOf", "not", "if", "patternProperties", "prefixItems", "dependentSchemas"];
    if depth > DEPTH_MAX || other.iter().any(|word| schema.contains_key(*word)) {
        return None;
    }
    let mut closed = Map::new();
    for (word, value) in schema.iter().filter(|(word, _)| KNOWN.contains(&word.as_str())) {
        let value = match word.as_str() {
            "properties" | "$defs" | "definitions" => {
                let one = |(name, schema): (&String, &Value)| Some((name.clone(), close(schema, whole, depth + 1)?));
                Value::Object(value.as_object()?.iter().map(one).collect::<Option<_>>()?)
            }
            "anyOf" => value.as_array()?.iter().map(|schema| close(schema, whole, depth + 1)).collect::<Option<_>>()?,
            "items" => close(value, whole, depth + 1)?,
            "additionalProperties" if *value != json!(false) => return None,
            _ => value.clone(),
        };
        closed.insert(word.clone(), value);
    }
    let object = match closed.get("type") {
        Some(Value::Array(types)) => types.contains(&json!("object")),
        Some(of) => of == "object",
        None => closed.contains_key("properties"),
    };
    if object {
        let properties = closed.get("properties")?.as_object()?;
        let required = closed.get("required").and_then(Value::as_array);
        let is_required = |name: &String| required.is_some_and(|required| required.contains(&json!(name)));
        *whole &= properties.keys().all(is_required);
        closed.insert("additionalProperties".to_owned(), json!(false));
    }
    Some(Value::Object(closed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_closed_or_left_out() {
        let check = |schema: Value, want: Option<(Value, bool)>| {
            let got = closed(&schema).map(|closed| (closed.schema, closed.whole));
            assert_eq!(got, want, "{schema}");
        };
        let text = || json!({ "type": "string" });
        check(
            json!({ "$schema": "x", "type": "object", "properties": { "a": { "type": "string", "minLength": 2 } }, "required": ["a"] }),
            Some((
                json!({ "type": "object", "properties": { "a": text() }, "required": ["a"], "additionalProperties": false }),
                true,
            )),
        );
        let inner = json!({ "type": ["object", "null"], "properties": { "b": text() } });
        let list = json!({ "type": "array", "items": inner, "maxItems": 3 });
        check(
            json!({ "type": "object", "properties": { "l": list }, "required": ["l"], "additionalProperties": false }),
            Some((
                json!({ "type": "object", "additionalProperties": false, "required": ["l"], "properties": { "l": { "type": "array", "items": {
                    "type": ["object", "null"], "properties": { "b": text() }, "additionalProperties": false } } } }),
                false,
            )),
        );
        check(json!({ "type": "object" }), None);
        check(json!({ "type": "object", "properties": {}, "additionalProperties": true }), None);
        check(json!({ "type": "object", "properties": { "m": { "type": "object" } } }), None);
        check(json!({ "type": "object", "properties": { "m": { "oneOf": [] } } }), None);
        check(json!({ "type": "array", "items": text() }), None);
        check(json!(true), None);
        let deep = (0..40).fold(text(), |inner, _| json!({ "type": "array", "items": inner }));
        check(json!({ "type": "object", "properties": { "d": deep } }), None);
    }
}
