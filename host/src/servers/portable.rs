//! Schemas of servers' tools as every model takes them. What is sent to the server stays what it asked for.
//!
//! They are made smaller than they are, to be read; the schema of a result (`output_schema::portable`) may only be made
//! wider, because what fits is checked by it, and so the two are not one.

use std::ptr;

use serde_json::{Map, Value, json};

/// How deep a schema is read; below that it says nothing.
const DEPTH_MAX: usize = 24;
/// Parts of one schema with all references filled in, each cycle once.
const PARTS_MAX: usize = 5_000;
/// Keywords that models' providers refuse or that only validators need.
const LEFT_OUT: &[&str] =
    &["$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "examples", "$dynamicRef", "$dynamicAnchor"];
/// Keywords whose value is a map of schemas by name.
const BY_NAME: &[&str] = &["properties", "patternProperties"];
/// Keywords whose values are no schemas.
const DATA: &[&str] = &["enum", "const", "default", "required", "type"];

/// The schema of a tool's arguments: an object, without references, and none of the unions at its top that providers
/// refuse. A schema that is longer than `bytes_max`, or none, loses all but the names of its arguments.
pub(super) fn portable(schema: &Value, bytes_max: usize) -> Value {
    let mut root = Root { schema, parts: PARTS_MAX, above: vec![ptr::from_ref(schema)] };
    let mut found = match part(schema, &mut root, 0) {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    for union in ["allOf", "anyOf", "oneOf"] {
        merge(&mut found, union);
    }
    for key in ["not", "if", "then", "else", "enum", "const", "default"] {
        found.remove(key);
    }
    found.insert("type".to_owned(), json!("object"));
    if !found.get("properties").is_some_and(Value::is_object) {
        found.insert("properties".to_owned(), json!({}));
    }
    keep_named(&mut found);
    let found = Value::Object(found);
    if found.to_string().len() <= bytes_max { found } else { names_only(&found, bytes_max) }
}

/// What is required and not there cannot be given.
fn keep_named(schema: &mut Map<String, Value>) {
    let names: Vec<String> = schema
        .get("properties")
        .and_then(Value::as_object)
        .map(|all| all.keys().cloned().collect())
        .unwrap_or_default();
    if let Some(required) = schema.remove("required") {
        let kept: Vec<Value> = match required {
            Value::Array(all) => all.into_iter().filter(|one| names.iter().any(|name| one == name)).collect(),
            _ => Vec::new(),
        };
        if !kept.is_empty() {
            schema.insert("required".to_owned(), Value::Array(kept));
        }
    }
}

/// Takes the arguments of the branches of a union to the top. What only some branches have is not required.
fn merge(schema: &mut Map<String, Value>, union: &str) {
    let Some(Value::Array(branches)) = schema.remove(union) else { return };
    for branch in branches {
        let Value::Object(mut branch) = branch else { continue };
        for inner in ["allOf", "anyOf", "oneOf"] {
            merge(&mut branch, inner);
        }
        if let Some(Value::Object(properties)) = branch.remove("properties") {
            let all = schema.entry("properties").or_insert_with(|| json!({}));
            if let Some(all) = all.as_object_mut() {
                properties.into_iter().for_each(|(name, property)| {
                    all.entry(name).or_insert(property);
                });
            }
        }
        if let (Some(Value::Array(required)), "allOf") = (branch.remove("required"), union) {
            let all = schema.entry("required").or_insert_with(|| json!([]));
            if let Some(all) = all.as_array_mut() {
                all.extend(required);
            }
        }
        if let Some(text) = branch.remove("description") {
            schema.entry("description").or_insert(text);
        }
    }
}

/// The schema that references lead into.
struct Root<'a> {
    schema: &'a Value,
    /// So many more parts may be written out.
    parts: usize,
    /// What is being written out because something refers to it: within itself it is left open.
    above: Vec<*const Value>,
}

/// What a reference leads to, written out.
fn referred(to: &str, root: &mut Root<'_>, depth: usize) -> Value {
    let Some(there) = resolve(root.schema, to) else { return json!({}) };
    if root.above.contains(&ptr::from_ref(there)) {
        let open = there.get("type").filter(|kind| *kind == "object");
        return open.map_or_else(|| json!({}), |kind| json!({ "type": kind }));
    }
    root.above.push(ptr::from_ref(there));
    let found = part(there, root, depth);
    root.above.pop();
    found
}

/// One schema of a schema.
fn part(schema: &Value, root: &mut Root<'_>, depth: usize) -> Value {
    if depth > DEPTH_MAX || root.parts == 0 {
        return json!({});
    }
    root.parts -= 1;
    let Value::Object(map) = schema else { return json!({}) };
    if let Some(to) = map.get("$ref") {
        let mut found = to.as_str().map_or_else(|| json!({}), |to| referred(to, root, depth + 1));
        // What stands beside a reference describes its use.
        if let (Some(text), Value::Object(found)) = (map.get("description"), &mut found) {
            found.insert("description".to_owned(), text.clone());
        }
        return found;
    }
    let mut out = Map::new();
    for (key, value) in map {
        let key = key.as_str();
        if LEFT_OUT.contains(&key) {
            continue;
        }
        let value = match value {
            value if DATA.contains(&key) => value.clone(),
            Value::Object(all) if BY_NAME.contains(&key) => {
                Value::Object(all.iter().map(|(name, one)| (name.clone(), part(one, root, depth + 1))).collect())
            }
            Value::Object(_) => part(value, root, depth + 1),
            Value::Array(all) => Value::Array(
                all.iter().map(|one| if one.is_object() { part(one, root, depth + 1) } else { one.clone() }).collect(),
            ),
            // `true` is any value.
            Value::Bool(true) if matches!(key, "items" | "contains") => json!({}),
            plain => plain.clone(),
        };
        out.insert(key.to_owned(), value);
    }
    tidy(&mut out);
    Value::Object(out)
}

/// What a reference within the schema names.
fn resolve<'a>(root: &'a Value, to: &str) -> Option<&'a Value> {
    root.pointer(&to.strip_prefix('#')?.replace("%20", " "))
}

fn tidy(schema: &mut Map<String, Value>) {
    // Widths of numbers are known to no validator.
    if schema
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(|format| format.starts_with("uint") || format.starts_with("int"))
    {
        schema.remove("format");
    }
    if let Some(constant) = schema.remove("const") {
        schema.insert("enum".to_owned(), json!([constant]));
    }
    let null = json!("null");
    if let Some(Value::Array(types)) = schema.get("type") {
        let kept: Vec<Value> = types.iter().filter(|one| **one != null).cloned().collect();
        match kept.as_slice() {
            [] => drop(schema.remove("type")),
            [one] => drop(schema.insert("type".to_owned(), one.clone())),
            // A list of types is known to few; the first says at least something.
            [first, ..] => drop(schema.insert("type".to_owned(), first.clone())),
        }
    }
    for union in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = schema.get_mut(union) {
            branches.retain(|branch| branch.get("type") != Some(&null));
            if branches.len() == 1
                && let Some(Value::Object(only)) = branches.pop()
            {
                schema.remove(union);
                for (key, value) in only {
                    schema.entry(key).or_insert(value);
                }
            }
        }
    }
    let is_array = schema.get("type").is_some_and(|kind| kind == "array");
    match schema.get("items") {
        // One schema for each place: all are any of them.
        Some(Value::Array(places)) => {
            let any = match places.as_slice() {
                [one] => one.clone(),
                [] => json!({}),
                all => json!({ "anyOf": all }),
            };
            schema.insert("items".to_owned(), any);
        }
        None if is_array => drop(schema.insert("items".to_owned(), json!({}))),
        _ => {}
    }
}

/// The arguments with their types and no more; none of them where even that is too long.
fn names_only(schema: &Value, bytes_max: usize) -> Value {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let bare = properties.map(|(name, one)| {
        let kind = one.get("type").filter(|kind| kind.is_string()).map(|kind| json!({ "type": kind }));
        let kind =
            kind.map(|kind| if kind["type"] == "array" { json!({ "type": "array", "items": {} }) } else { kind });
        (name.clone(), kind.unwrap_or_else(|| json!({})))
    });
    let bare = json!({ "type": "object", "properties": bare.collect::<Map<_, _>>() });
    if bare.to_string().len() <= bytes_max { bare } else { json!({ "type": "object", "properties": {} }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &Value, want: &Value) {
        assert_eq!(&portable(schema, 1_000), want, "{schema}");
    }

    #[test]
    fn what_models_refuse_is_gone() {
        let empty = json!({ "type": "object", "properties": {} });
        for lie in
            [json!(null), json!("no"), json!([]), json!(true), json!({}), json!({ "type": "string", "enum": ["a"] })]
        {
            check(&lie, &empty);
        }
        check(
            &json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": false,
                "$defs": { "N": { "type": ["integer", "null"], "format": "uint32", "description": "n" } },
                "properties": {
                    "a": { "$ref": "#/$defs/N", "description": "mine" }, "b": { "type": "array" }, "c": { "const": 5 },
                    "d": { "anyOf": [{ "type": "string" }, { "type": "null" }], "default": null },
                    "e": { "type": "array", "items": [{ "type": "string" }, { "type": "integer" }] },
                    "f": true, "g": { "$ref": "https://elsewhere/schema" }, "type": { "type": "string" },
                },
                "required": ["a", "z"],
            }),
            &json!({
                "type": "object", "additionalProperties": false,
                "properties": {
                    "a": { "type": "integer", "description": "mine" }, "b": { "type": "array", "items": {} },
                    "c": { "enum": [5] }, "d": { "type": "string", "default": null },
                    "e": { "type": "array", "items": { "anyOf": [{ "type": "string" }, { "type": "integer" }] } },
                    "f": {}, "g": {}, "type": { "type": "string" },
                },
                "required": ["a"],
            }),
        );
    }

    #[test]
    fn unions_at_the_top_become_one_object() {
        check(
            &json!({
                "properties": { "x": { "type": "string" } },
                "allOf": [{ "properties": { "a": { "type": "string" } }, "required": ["a"] }],
                "oneOf": [
                    { "properties": { "b": { "type": "string" } }, "required": ["b"] },
                    { "anyOf": [{ "properties": { "c": { "type": "string" } } }, true] },
                ],
            }),
            &json!({
                "type": "object", "required": ["a"],
                "properties": { "x": { "type": "string" }, "a": { "type": "string" }, "b": { "type": "string" }, "c": { "type": "string" } },
            }),
        );
    }

    #[test]
    fn a_schema_without_an_end_ends() {
        // A tree of itself, twice in each node.
        let tree = json!({
            "properties": { "root": { "$ref": "#/$defs/T" } },
            "$defs": { "T": { "properties": { "l": { "$ref": "#/$defs/T" }, "r": { "$ref": "#/$defs/T" } } } },
        });
        let within = json!({ "properties": { "l": {}, "r": {} } });
        check(&tree, &json!({ "type": "object", "properties": { "root": within } }));
        // What refers to itself by the way is written out once wherever it stands, with its words.
        let filter = json!({
            "type": "object", "properties": { "where": { "$ref": "#/$defs/F" }, "having": { "$ref": "#/$defs/F" } },
            "$defs": { "F": { "type": "object", "properties": {
                "field": { "type": "string", "description": "A column." },
                "and": { "type": "array", "items": { "$ref": "#/$defs/F" } }, "not": { "$ref": "#/$defs/F" },
            } } },
        });
        let once = json!({ "type": "object", "properties": {
            "field": { "type": "string", "description": "A column." },
            "and": { "type": "array", "items": { "type": "object" } }, "not": { "type": "object" },
        } });
        check(&filter, &json!({ "type": "object", "properties": { "where": once, "having": once } }));
        check(&json!({ "$ref": "#" }), &json!({ "type": "object", "properties": {} }));
        let mut deep = json!({ "type": "string" });
        for _ in 0..200 {
            deep = json!({ "properties": { "a": deep } });
        }
        let found = portable(&deep, usize::MAX);
        assert!(found.to_string().len() < 2_000, "{found}");
        let many: Map<String, Value> =
            (0..200).map(|n| (format!("argument_{n}"), json!({ "type": "string" }))).collect();
        check(&json!({ "properties": many }), &json!({ "type": "object", "properties": {} }));
    }
}
