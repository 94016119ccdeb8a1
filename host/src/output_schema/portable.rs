//! A schema as the arguments of a tool: without references, which not every provider follows, and an object at its top. It
//! may allow more than the schema itself, by which the result is checked.

use std::ptr;

use serde_json::{Map, Value, json};

use super::ANSWER;
use super::refer::{Place, Within, place, reference};

/// Schemas that one has when its references are written out; the rest of a larger one is left open.
const PARTS_MAX: usize = 2_000;
/// What only readers of schemas use.
const LEFT_OUT: [&str; 11] = [
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$vocabulary",
    "$dynamicRef",
    "$recursiveRef",
];

/// The schema of the arguments, and whether the result is wrapped into one of them.
pub(super) fn tool_schema(within: &Within<'_>) -> (Value, bool) {
    let mut left = PARTS_MAX;
    let mut schema = written_out(within, within.root, &mut Vec::new(), &mut left);
    let bare = schema.as_object_mut().filter(|map| is_plain_object(map));
    match bare {
        Some(map) => {
            map.insert("type".to_owned(), "object".into());
            map.entry("properties").or_insert_with(|| json!({}));
            (schema, false)
        }
        None => {
            if schema.is_boolean() {
                schema = json!({});
            }
            (json!({ "type": "object", "properties": { ANSWER: schema }, "required": [ANSWER] }), true)
        }
    }
}

/// Whether every provider takes it as the arguments of a tool.
fn is_plain_object(map: &Map<String, Value>) -> bool {
    let union = ["anyOf", "oneOf", "allOf", "not", "enum", "const", "if"].iter().any(|key| map.contains_key(*key));
    let object = match map.get("type") {
        Some(kind) => kind == "object",
        None => map.contains_key("properties"),
    };
    object && !union
}

fn written_out<'a>(within: &Within<'a>, schema: &'a Value, above: &mut Vec<*const Value>, left: &mut usize) -> Value {
    let Value::Object(map) = schema else { return schema.clone() };
    // What is within itself, or too large, is left open here.
    if *left == 0 || above.contains(&ptr::from_ref(schema)) {
        return json!({});
    }
    *left -= 1;
    above.push(ptr::from_ref(schema));
    let mut out = Map::new();
    if let Some(target) = reference(map).and_then(|to| within.target(to))
        && let Value::Object(found) = written_out(within, target, above, left)
    {
        out = found;
    }
    for (keyword, part) in map {
        if keyword == "$ref" || LEFT_OUT.contains(&keyword.as_str()) {
            continue;
        }
        let mut inner = |part: &'a Value| written_out(within, part, above, left);
        let part = match (place(keyword), part) {
            (Place::One | Place::OneOrList, Value::Object(_)) => inner(part),
            (Place::List | Place::OneOrList, Value::Array(all)) => all.iter().map(inner).collect(),
            (Place::Named, Value::Object(named)) => {
                named.iter().map(|(name, part)| (name.clone(), inner(part))).collect::<Map<_, _>>().into()
            }
            _ => part.clone(),
        };
        out.insert(keyword.clone(), part);
    }
    above.pop();
    Value::Object(out)
}
