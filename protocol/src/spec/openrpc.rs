//! The protocol as an OpenRPC document. What OpenRPC has no place for stands in members that begin with `x-`.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::bounds::BOUNDS;
use super::examples::{self, Example};
use super::order::Stage;
use super::rules::RULES;
use crate::error::Kind;
use crate::methods::{self, ANY_METHOD, Asks, MethodInfo};
use crate::types::PROTOCOL_VERSION;

/// The version of OpenRPC that the document is of.
const OPENRPC: &str = "1.3.2";
/// Where its schemas stand.
const SCHEMAS: &str = "/components/schemas";

/// The document.
#[must_use]
pub fn document() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| settings.definitions_path = SCHEMAS.into());
    let mut schemas = settings.into_generator();
    let methods: Vec<Value> = methods::all().map(|(asks, info)| method(&mut schemas, asks, info)).collect();
    let mut definitions = Value::Object(schemas.take_definitions(true));
    null_is_absent(&mut definitions);
    let errors = Kind::ALL.iter().map(|kind| (kind.name().to_owned(), error(*kind)));
    let tags = [Asks::Host, Asks::Runner, Asks::Both].map(|asks| (asks.tag().to_owned(), tag(asks)));
    json!({
        "openrpc": OPENRPC,
        "info": {
            "title": "Runner protocol of Assistant Host",
            "description": "JSON-RPC 2.0 between a host and a running assistant, the runner: one JSON object in UTF-8 a line, both ways \
                on the runner's stdin and stdout. Requests only: each has exactly one answer. For every optional member null \
                means absent, and unknown members are ignored. protocol/README.md tells it in words.",
            "version": PROTOCOL_VERSION.to_string(),
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "methods": methods,
        "components": {
            "schemas": definitions,
            "errors": errors.collect::<Map<_, _>>(),
            "tags": tags.into_iter().collect::<Map<_, _>>(),
        },
        "x-stages": Stage::ALL.map(|stage| json!({ "name": stage.name(), "description": stage.doc() })),
        "x-bounds": BOUNDS.iter().map(|bound| json!({
            "name": bound.name, "value": bound.value, "unit": bound.unit, "description": bound.text, "configured_by": bound.limit,
        })).collect::<Vec<_>>(),
        "x-rules": RULES.iter().map(|rule| json!({
            "name": rule.name, "level": rule.level.word(), "about": rule.about.heading(), "text": rule.text,
        })).collect::<Vec<_>>(),
    })
}

impl Asks {
    fn tag(self) -> &'static str {
        match self {
            Self::Host => "host_asks",
            Self::Runner => "runner_asks",
            Self::Both => "both_ask",
        }
    }

    fn doc(self) -> &'static str {
        match self {
            Self::Host => "The host asks the runner.",
            Self::Runner => "The runner asks the host.",
            Self::Both => "Either side asks the other.",
        }
    }
}

fn tag(asks: Asks) -> Value {
    json!({ "name": asks.tag(), "description": asks.doc() })
}

fn error(kind: Kind) -> Value {
    json!({ "code": kind.code(), "message": kind.doc(), "data": { "kind": kind.name() } })
}

fn method(schemas: &mut SchemaGenerator, asks: Asks, info: &MethodInfo) -> Value {
    let summary = info.doc.split_inclusive(['.', ';']).next().unwrap_or(info.doc).trim_end_matches(['.', ';']);
    let result = (info.result)(schemas).to_value();
    let params = params(schemas, info);
    let names: Vec<String> = params.iter().filter_map(|one| one["name"].as_str().map(str::to_owned)).collect();
    let errors = || info.errors.iter().chain(ANY_METHOD.iter().filter(|any| !told(info, any.kind)));
    json!({
        "name": info.name,
        "summary": summary,
        "description": info.doc,
        "tags": [{ "$ref": format!("#/components/tags/{}", asks.tag()) }],
        "paramStructure": "by-name",
        "params": params,
        "result": { "name": "result", "required": true, "schema": result },
        "errors": errors().map(|one| json!({ "$ref": format!("#/components/errors/{}", one.kind.name()) })).collect::<Vec<_>>(),
        "examples": examples::of(info).iter().map(|one| pairing(one, &names)).collect::<Vec<_>>(),
        "x-errors": errors().map(|one| json!({ "kind": one.kind.name(), "when": one.when })).collect::<Vec<_>>(),
        "x-order": {
            "stages": info.stages.iter().map(|stage| stage.name()).collect::<Vec<_>>(),
            "description": info.order,
        },
    })
}

fn told(info: &MethodInfo, kind: Kind) -> bool {
    info.errors.iter().any(|one| one.kind == kind)
}

/// The params one by one, as OpenRPC wants them.
fn params(schemas: &mut SchemaGenerator, info: &MethodInfo) -> Vec<Value> {
    let schema = (info.params)(schemas).to_value();
    let named = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
    let mut schema = match named {
        Some(name) => schemas.definitions().get(name).cloned().unwrap_or_default(),
        None => schema,
    };
    null_is_absent(&mut schema);
    let is_required =
        |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name));
    let one = |(name, schema): (&String, &Value)| {
        let description = schema.get("description").cloned().unwrap_or_default();
        json!({ "name": name, "description": description, "required": is_required(name), "schema": schema })
    };
    schema["properties"].as_object().into_iter().flatten().map(one).collect()
}

fn pairing(example: &Example, names: &[String]) -> Value {
    let params = example.params();
    let given = names.iter().filter_map(|name| Some(json!({ "name": name, "value": params.get(name)? })));
    json!({
        "name": example.title,
        "params": given.collect::<Vec<_>>(),
        "result": { "name": "result", "value": example.result() },
    })
}

/// Has the schema of every member that is not required take null, too.
fn null_is_absent(schema: &mut Value) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| required.as_array().is_some_and(|names| names.iter().any(|one| one == name));
    match schema {
        Value::Object(members) => {
            if let Some(Value::Object(properties)) = members.get_mut("properties") {
                for (_, property) in properties.iter_mut().filter(|(name, _)| !is_required(name)) {
                    take_null(property);
                }
            }
            members.values_mut().for_each(null_is_absent);
        }
        Value::Array(items) => items.iter_mut().for_each(null_is_absent),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn take_null(schema: &mut Value) {
    let description = schema.get("description").cloned();
    let refers = schema.get("$ref").is_some() || schema.get("allOf").is_some();
    match schema.get_mut("type") {
        Some(Value::String(one)) if one != "null" => schema["type"] = json!([one, "null"]),
        None if refers => {
            let mut either = json!({ "anyOf": [schema.take(), { "type": "null" }] });
            if let Some(description) = description {
                if let Some(Value::Object(referred)) = either.pointer_mut("/anyOf/0") {
                    referred.remove("description");
                }
                either["description"] = description;
            }
            *schema = either;
        }
        Some(_) | None => {}
    }
}
