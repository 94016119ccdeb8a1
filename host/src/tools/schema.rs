//! Schemas that every client takes: no `$ref`, no null in inputs, no formats that validators do not know.

use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value};

/// The schema of a tool's arguments.
pub(crate) fn input<T: JsonSchema>() -> Value {
    portable::<T>(true)
}

/// The schema of a tool's result. Its parts have names and types and no more: every client loads the list of tools into
/// each conversation.
pub(crate) fn output<T: JsonSchema>() -> Value {
    let mut schema = portable::<T>(false);
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            let described = property.remove("description");
            let choices = property.remove("enum");
            bare(property);
            property.extend(described.map(|text| ("description".to_owned(), text)));
            property.extend(choices.map(|choices| ("enum".to_owned(), choices)));
        }
    }
    schema
}

/// Takes all but names and types out of a schema; a property of such a name stays.
fn bare(schema: &mut Map<String, Value>) {
    for key in ["description", "enum", "required", "minimum"] {
        // A schema under such a name is that of a property.
        if schema.get(key).is_some_and(|value| !value.is_object()) {
            schema.remove(key);
        }
    }
    for part in schema.values_mut() {
        match part {
            Value::Object(part) => bare(part),
            Value::Array(all) => all.iter_mut().filter_map(Value::as_object_mut).for_each(bare),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

fn portable<T: JsonSchema>(input: bool) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
        settings.contract = if input { Contract::Deserialize } else { Contract::Serialize };
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    clean(&mut schema, input);
    if let Some(map) = schema.as_object_mut() {
        map.remove("description");
        map.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    schema
}

fn clean(schema: &mut Value, input: bool) {
    match schema {
        Value::Object(map) => {
            map.remove("title");
            map.remove("format");
            // Counts and times are not negative: their texts say so already.
            if map.get("minimum").is_some_and(|least| least.as_f64() == Some(0.0)) {
                map.remove("minimum");
            }
            if map
                .get("default")
                .is_some_and(|default| default.is_null() || *default == Value::Bool(false) || default == "")
            {
                map.remove("default");
            }
            if map.get("additionalProperties") == Some(&Value::Bool(true)) {
                map.remove("additionalProperties");
            }
            one_enum(map);
            if input {
                without_null(map);
            } else {
                without_null_where_absent(map);
                with_null_apart(map);
            }
            for (name, value) in map.iter_mut() {
                if name != "enum" && name != "default" && name != "required" {
                    clean(value, input);
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|one| clean(one, input)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Names with a text each are a choice of constants to schemars; a plain list of names serves every client.
fn one_enum(map: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = map.get("oneOf") else { return };
    let names: Option<Vec<Value>> = choices.iter().map(|choice| choice.get("const").cloned()).collect();
    if let Some(names) = names {
        map.remove("oneOf");
        map.insert("type".to_owned(), "string".into());
        map.insert("enum".to_owned(), names.into());
    }
}

/// An optional argument is one that may be left out; that null means the same is for us to know.
fn without_null(map: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|one| one != "null");
        if let Some(Value::Array(values)) = map.get_mut("enum") {
            values.retain(|one| !one.is_null());
        }
        let Some(Value::Array(types)) = map.get("type") else { return };
        if let [one] = types.as_slice() {
            let one = one.clone();
            map.insert("type".to_owned(), one);
        }
    }
    let null = serde_json::json!({ "type": "null" });
    if let Some(Value::Array(any)) = map.get("anyOf")
        && any.contains(&null)
        && let [one] = any.iter().filter(|one| **one != null).collect::<Vec<_>>().as_slice()
        && let Value::Object(inner) = (*one).clone()
    {
        map.remove("anyOf");
        for (name, value) in inner {
            map.entry(name).or_insert(value);
        }
    }
}

/// A field of a result that may be left out is never null.
fn without_null_where_absent(map: &mut Map<String, Value>) {
    let required = map.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (name, property) in properties.iter_mut() {
        if let Value::Object(property) = property
            && !required.iter().any(|one| one == name)
        {
            without_null(property);
        }
    }
}

/// `type: [T, null]` as two branches, which more clients understand.
fn with_null_apart(map: &mut Map<String, Value>) {
    let is_union = map.get("type").and_then(Value::as_array).is_some_and(|types| types.iter().any(|one| one == "null"));
    if !is_union {
        return;
    }
    let description = map.remove("description");
    let mut inner = std::mem::take(map);
    without_null(&mut inner);
    if let Some(description) = description {
        map.insert("description".to_owned(), description);
    }
    map.insert("anyOf".to_owned(), serde_json::json!([inner, { "type": "null" }]));
}
