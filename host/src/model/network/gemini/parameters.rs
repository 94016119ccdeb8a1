//! The schema of a tool as Gemini takes it: a subset of what OpenAPI 3 has, in which one unknown word refuses the whole
//! request. What the subset cannot say is left out: arguments are checked where the tool is called.

use std::cell::Cell;

use assistant_protocol::types::ToolSpec;
use serde_json::{Map, Value, json};

/// How deep a schema goes; what is deeper, and what contains itself, is anything.
const DEPTH_MAX: usize = 12;

/// How many schemas one tool's may consist of, with what they refer to written out; the rest is anything.
const SCHEMAS_MAX: u32 = 2_000;

/// Words that mean the same in both.
const SAME: [&str; 11] = [
    "title",
    "description",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "minProperties",
    "maxProperties",
];

/// What is told of a tool. One without parameters has no field for them: an object without properties is refused.
pub(super) fn declaration(tool: &ToolSpec) -> Value {
    let mut declaration = json!({ "name": tool.name, "description": tool.description });
    let root = Root { schema: &tool.input_schema, left: Cell::new(SCHEMAS_MAX) };
    let parameters = convert(root.schema, &root, 0);
    if parameters.get("properties").and_then(Value::as_object).is_some_and(|properties| !properties.is_empty()) {
        let mut parameters = parameters;
        parameters["type"] = json!("object");
        declaration["parameters"] = parameters;
    }
    declaration
}

/// The schema that references lead into.
struct Root<'a> {
    schema: &'a Value,
    /// So many more may be written out.
    left: Cell<u32>,
}

impl Root<'_> {
    /// Whether one more may be written out, so deep.
    fn takes(&self, depth: usize) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0 && depth < DEPTH_MAX
    }
}

fn convert(schema: &Value, root: &Root<'_>, depth: usize) -> Value {
    let Some(schema) = schema.as_object().filter(|_| root.takes(depth)) else { return json!({ "type": "object" }) };
    let schema = &resolved(schema, root, depth);
    let types = types(schema);
    let nullable = types.iter().any(|of| of == "null") || schema.get("nullable") == Some(&json!(true));
    let types: Vec<&str> = types.iter().map(String::as_str).filter(|of| *of != "null").collect();
    let mut converted = match types.as_slice() {
        [] => union(schema, root, depth),
        [of] => of_type(of, schema, root, depth),
        several => {
            let each = several.iter().map(|of| Value::Object(of_type(of, schema, root, depth)));
            Map::from_iter([("anyOf".to_owned(), each.collect())])
        }
    };
    if nullable {
        converted.insert("nullable".to_owned(), json!(true));
    }
    for word in ["title", "description"] {
        if let Some(text) = schema.get(word).filter(|text| text.is_string()) {
            converted.insert(word.to_owned(), text.clone());
        }
    }
    Value::Object(converted)
}

/// A schema with what it refers to, and with all that it has to fit at once, in itself.
fn resolved(schema: &Map<String, Value>, root: &Root<'_>, depth: usize) -> Map<String, Value> {
    let mut whole = schema.clone();
    let pointer = whole.remove("$ref").and_then(|pointer| pointer.as_str()?.strip_prefix('#').map(str::to_owned));
    let target = pointer.and_then(|pointer| root.schema.pointer(&pointer)?.as_object().cloned());
    let all = whole.remove("allOf").and_then(|all| all.as_array().cloned()).unwrap_or_default();
    for more in target.into_iter().chain(all.into_iter().filter_map(|more| more.as_object().cloned())) {
        if !root.takes(depth) {
            break;
        }
        for (word, value) in resolved(&more, root, depth + 1) {
            match (whole.get_mut(&word), value) {
                (Some(Value::Object(here)), Value::Object(more)) if word == "properties" => here.extend(more),
                (Some(Value::Array(here)), Value::Array(more)) if word == "required" => here.extend(more),
                // What stands beside a reference says more than what is referred to.
                (Some(_), _) => {}
                (None, value) => drop(whole.insert(word, value)),
            }
        }
    }
    whole
}

/// The types that a schema says, or that its other words mean.
fn types(schema: &Map<String, Value>) -> Vec<String> {
    let known = |of: &&str| ["object", "array", "string", "integer", "number", "boolean", "null"].contains(of);
    let text = |of: &Value| of.as_str().map(str::to_lowercase).filter(|of| known(&of.as_str()));
    let means = |words: &[&str]| words.iter().any(|word| schema.contains_key(*word));
    let values =
        || schema.get("enum").and_then(Value::as_array).cloned().or_else(|| Some(vec![schema.get("const")?.clone()]));
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().filter_map(text).collect(),
        Some(of) => text(of).into_iter().collect(),
        None if means(&["properties", "additionalProperties"]) => vec!["object".to_owned()],
        None if means(&["items"]) => vec!["array".to_owned()],
        None => {
            let values = values().unwrap_or_default();
            let texts = !values.is_empty() && values.iter().all(|value| value.is_string() || value.is_null());
            let null = values.iter().any(Value::is_null).then(|| "null".to_owned());
            texts.then(|| "string".to_owned()).into_iter().chain(null).collect()
        }
    }
}

/// A schema without a type: one of several, or anything.
fn union(schema: &Map<String, Value>, root: &Root<'_>, depth: usize) -> Map<String, Value> {
    let list = ["anyOf", "oneOf"].iter().find_map(|word| schema.get(*word)?.as_array());
    let is_null = |one: &&Value| one.get("type").is_some_and(|of| of == "null");
    let nullable = list.is_some_and(|list| list.iter().any(|one| is_null(&one)));
    let list = list.into_iter().flatten().filter(|one| !is_null(one));
    let mut each: Vec<_> = list.map(|one| convert(one, root, depth + 1)).collect();
    let mut union = match (each.len(), each.pop()) {
        (1, Some(Value::Object(only))) => only,
        // Anything is said by a type that any value can be written as.
        (0, _) | (_, None) => Map::from_iter([("type".to_owned(), json!("string"))]),
        (_, Some(last)) => {
            each.push(last);
            Map::from_iter([("anyOf".to_owned(), Value::Array(each))])
        }
    };
    if nullable {
        union.insert("nullable".to_owned(), json!(true));
    }
    union
}

fn of_type(of: &str, schema: &Map<String, Value>, root: &Root<'_>, depth: usize) -> Map<String, Value> {
    let mut converted = Map::from_iter([("type".to_owned(), json!(of))]);
    let fits = |word: &str| match word {
        "minItems" | "maxItems" => of == "array",
        "minLength" | "maxLength" | "pattern" => of == "string",
        "minimum" | "maximum" => matches!(of, "integer" | "number"),
        "minProperties" | "maxProperties" => of == "object",
        _ => false,
    };
    for word in SAME.iter().filter(|word| fits(word)) {
        if let Some(value) = schema.get(*word).filter(|value| value.is_number() || value.is_string()) {
            converted.insert((*word).to_owned(), value.clone());
        }
    }
    match of {
        "string" => {
            let values = schema.get("enum").and_then(Value::as_array).cloned();
            let values = values.or_else(|| Some(vec![schema.get("const")?.clone()])).unwrap_or_default();
            let values: Vec<_> = values.into_iter().filter(|value| value.is_string() && value != "").collect();
            if !values.is_empty() {
                converted.insert("enum".to_owned(), values.into());
            } else if schema.get("format").is_some_and(|format| format == "date-time") {
                converted.insert("format".to_owned(), json!("date-time"));
            }
        }
        "array" => {
            let items = schema
                .get("items")
                .map_or_else(|| json!({ "type": "string" }), |items| convert(items, root, depth + 1));
            converted.insert("items".to_owned(), items);
        }
        "object" => {
            let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
            let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            let is_there = |name: &Value| name.as_str().is_some_and(|name| properties.contains_key(name));
            let mut names: Vec<Value> = Vec::new();
            for name in required.into_iter().filter(is_there) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            if !names.is_empty() {
                converted.insert("required".to_owned(), names.into());
            }
            if !properties.is_empty() {
                let each = properties.iter().map(|(name, schema)| (name.clone(), convert(schema, root, depth + 1)));
                converted.insert("properties".to_owned(), Value::Object(each.collect()));
            }
        }
        _ => {}
    }
    converted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A property's schema as it is told.
    fn check(schema: Value, want: Value) {
        let root = json!({ "type": "object", "properties": { "p": schema }, "$defs": {
            "Side": { "type": "string", "enum": ["left", "right"], "description": "Which." },
            "Tree": { "type": "object", "properties": { "kids": { "type": "array", "items": { "$ref": "#/$defs/Tree" } } } },
        } });
        let tool = ToolSpec { name: "t".into(), description: "T.".into(), input_schema: root };
        let told = declaration(&tool);
        assert_eq!(told["parameters"]["type"], "object");
        assert_eq!(told["parameters"]["properties"]["p"], want);
    }

    #[test]
    fn schemas_are_told_in_the_subset() {
        check(
            json!({ "type": "string", "format": "uri", "minLength": 1, "$comment": "x" }),
            json!({ "type": "string", "minLength": 1 }),
        );
        check(json!({ "type": "string", "format": "date-time" }), json!({ "type": "string", "format": "date-time" }));
        check(json!({ "type": ["string", "null"], "default": null }), json!({ "type": "string", "nullable": true }));
        check(json!({ "const": "a" }), json!({ "type": "string", "enum": ["a"] }));
        check(json!({ "enum": ["a", "b", ""] }), json!({ "type": "string", "enum": ["a", "b"] }));
        check(
            json!({ "type": "integer", "enum": [1, 2], "exclusiveMinimum": 0, "maximum": 9 }),
            json!({ "type": "integer", "maximum": 9 }),
        );
        check(json!({ "type": "array" }), json!({ "type": "array", "items": { "type": "string" } }));
        check(
            json!({ "type": "array", "items": {}, "uniqueItems": true }),
            json!({ "type": "array", "items": { "type": "string" } }),
        );
        check(json!({ "type": "object", "additionalProperties": { "type": "string" } }), json!({ "type": "object" }));
        check(json!({ "type": "string", "properties": { "x": {} }, "required": ["x"] }), json!({ "type": "string" }));
        check(json!({}), json!({ "type": "string" }));
        check(json!(true), json!({ "type": "object" }));
        check(
            json!({ "type": "object", "properties": { "a": { "type": "boolean" } }, "required": ["a", "a", "gone"] }),
            json!({ "type": "object", "properties": { "a": { "type": "boolean" } }, "required": ["a"] }),
        );
        check(
            json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }], "title": "N" }),
            json!({ "type": "integer", "nullable": true, "title": "N" }),
        );
        check(
            json!({ "oneOf": [{ "type": "integer" }, { "$ref": "#/$defs/Side" }] }),
            json!({ "anyOf": [{ "type": "integer" }, { "type": "string", "enum": ["left", "right"], "description": "Which." }] }),
        );
        check(
            json!({ "type": ["object", "string"], "properties": { "a": { "type": "string" } } }),
            json!({ "anyOf": [{ "type": "object", "properties": { "a": { "type": "string" } } }, { "type": "string" }] }),
        );
        check(
            json!({ "$ref": "#/$defs/Side", "description": "Mine." }),
            json!({ "type": "string", "enum": ["left", "right"], "description": "Mine." }),
        );
        check(
            json!({ "allOf": [{ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] },
            { "properties": { "b": { "type": "number" } }, "required": ["b"] }] }),
            json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "number" } }, "required": ["a", "b"] }),
        );
        check(json!({ "$ref": "#/$defs/Gone" }), json!({ "type": "string" }));
        check(json!({ "$ref": "https://elsewhere/schema" }), json!({ "type": "string" }));
    }

    #[test]
    fn what_contains_itself_ends() {
        let tree = |schema: Value| {
            let wide = json!({ "$ref": "#/$defs/Wide" });
            let defs = json!({ "Tree": { "type": "object", "properties": { "kids": { "type": "array", "items": { "$ref": "#/$defs/Tree" } } } },
                "Loop": { "$ref": "#/$defs/Loop" }, "Both": { "allOf": [{ "$ref": "#/$defs/Both" }, { "$ref": "#/$defs/Both" }] },
                "Wide": { "type": "object", "properties": { "a": wide, "b": wide, "c": wide, "d": wide } } });
            let root = json!({ "type": "object", "properties": { "p": schema }, "$defs": defs });
            declaration(&ToolSpec { name: "t".into(), description: String::new(), input_schema: root }).to_string()
        };
        assert!(tree(json!({ "$ref": "#/$defs/Tree" })).len() < 2_000);
        assert!(tree(json!({ "$ref": "#/$defs/Loop" })).len() < 2_000);
        assert!(tree(json!({ "$ref": "#/$defs/Both" })).len() < 2_000);
        assert!(tree(json!({ "$ref": "#/$defs/Wide" })).len() < 500_000);
    }

    #[test]
    fn a_tool_without_parameters_has_none() {
        for schema in [json!({ "type": "object" }), json!({ "type": "object", "properties": {} }), json!({})] {
            let tool = ToolSpec { name: "t".into(), description: "T.".into(), input_schema: schema };
            assert_eq!(declaration(&tool), json!({ "name": "t", "description": "T." }));
        }
    }
}
