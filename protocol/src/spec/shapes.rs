//! The shapes of params, results and what they are made of, in the notation of TypeScript: short enough to be read.

use std::fmt::Write as _;

use serde_json::Value;

use super::openrpc;

/// The longest line, characters.
const WIDTH: usize = 116;

/// All methods as functions, then all types: of the members, those with `?` may be absent or null.
#[must_use]
pub fn text() -> String {
    let document = openrpc::document();
    let mut text = String::from("```ts\n");
    for method in list(&document["methods"]) {
        let members = list(&method["params"]).iter();
        let members = members.map(|one| member(&one["name"], one["required"] == true, &one["schema"]));
        let end = format!("): {}", shape(&method["result"]["schema"]));
        text.push_str(&listed(&format!("{}(", word(&method["name"])), &members.collect::<Vec<_>>(), &end));
    }
    text.push('\n');
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        // The params of a method stand with it.
        if name.ends_with("Params") {
            continue;
        }
        let start = format!("type {name} = ");
        text.push_str(&match alternatives(schema) {
            Some(all) => one_of(&start, &all.iter().map(shape).collect::<Vec<_>>()),
            None if schema["properties"].is_object() => listed(&format!("{start}{{ "), &members(schema), " }"),
            None => format!("{start}{}\n", shape(schema)),
        });
    }
    text.push_str("```\n");
    text
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn alternatives(schema: &Value) -> Option<&[Value]> {
    ["anyOf", "oneOf"].iter().find_map(|key| schema[key].as_array()).map(Vec::as_slice)
}

fn members(schema: &Value) -> Vec<String> {
    let required = list(&schema["required"]);
    let all = schema["properties"].as_object().into_iter().flatten();
    all.map(|(name, schema)| {
        let name = Value::from(name.as_str());
        member(&name, required.contains(&name), schema)
    })
    .collect()
}

fn member(name: &Value, required: bool, schema: &Value) -> String {
    format!("{}{}: {}", word(name), if required { "" } else { "?" }, shape(schema))
}

/// The type of a value. That an optional one may be null is told by its `?`.
fn shape(schema: &Value) -> String {
    if let Some(path) = schema["$ref"].as_str() {
        return path.rsplit('/').next().unwrap_or(path).to_owned();
    }
    if let Some(only) = list(&schema["allOf"]).first() {
        return shape(only);
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if let Some(all) = alternatives(schema) {
        let shapes: Vec<String> = all.iter().filter(|one| one["type"] != "null").map(shape).collect();
        return shapes.join(" | ");
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(all) => all.iter().map(word).filter(|name| *name != "null").collect(),
        one => one.as_str().into_iter().collect(),
    };
    match types[..] {
        ["array"] => format!("{}[]", shape(&schema["items"])),
        ["object"] if schema["properties"].is_object() => format!("{{ {} }}", members(schema).join(", ")),
        [name] => name.to_owned(),
        _ => "any".to_owned(),
    }
}

/// `start`, the members with commas between them, and `end`: broken where it gets too long.
fn listed(start: &str, members: &[String], end: &str) -> String {
    let mut text = start.to_owned();
    let mut column = text.chars().count();
    for (at, member) in members.iter().enumerate() {
        let comma = if at + 1 < members.len() { "," } else { "" };
        let wide = member.chars().count() + comma.len();
        if at > 0 && column + wide >= WIDTH {
            text.push_str("\n   ");
            column = 3;
        }
        if at > 0 {
            text.push(' ');
        }
        column += wide + 1;
        let _ = write!(text, "{member}{comma}");
    }
    text + end + "\n"
}

/// One of several: in one line, or each in its own.
fn one_of(start: &str, all: &[String]) -> String {
    let line = format!("{start}{}\n", all.join(" | "));
    if line.chars().count() <= WIDTH {
        return line;
    }
    format!("{}\n    | {}\n", start.trim_end(), all.join("\n    | "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, expected: &str) {
        assert_eq!(shape(schema), expected);
    }

    #[test]
    fn schemas_become_types() {
        check(&json!({ "type": ["integer", "null"], "format": "uint64" }), "integer");
        check(&json!({ "anyOf": [{ "$ref": "#/components/schemas/Usage" }, { "type": "null" }] }), "Usage");
        check(&json!({ "type": "array", "items": { "$ref": "#/x/Part" } }), "Part[]");
        check(&json!({ "description": "anything" }), "any");
        check(
            &json!({ "type": "object", "properties": { "a": { "const": "x" }, "b": true }, "required": ["a"] }),
            r#"{ a: "x", b?: any }"#,
        );
    }

    #[test]
    fn long_lists_are_broken() {
        let members = vec!["member: integer".to_owned(); 10];
        let told = listed("f(", &members, "): any");
        assert!(told.lines().count() == 2 && told.lines().all(|line| line.len() <= WIDTH + 8), "{told}");
        assert_eq!(told.replace("\n   ", ""), format!("f({}): any\n", members.join(", ")));
    }
}
