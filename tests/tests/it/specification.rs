//! The specification of the runner protocol is that of the code: the OpenRPC document, and the page for those who write
//! runners. `UPDATE_SCHEMAS=1 cargo test -p conformance specification` writes both anew.

use std::collections::HashMap;
use std::path::Path;

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::methods::{self, Asks};
use assistant_protocol::spec::{examples, openrpc, page};
use assistant_protocol::types::{Message, Part};
use assistant_protocol::wire::{self, Incoming};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::schemas::{check_file, pretty};

const PAGE: &str = "protocol/README.md";

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    std::fs::read_to_string(path).expect(name)
}

fn read_json(name: &str) -> Value {
    serde_json::from_str(&read(name)).expect(name)
}

fn complaints(schema: &jsonschema::Validator, value: &Value) -> Vec<String> {
    schema.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn openrpc_json() {
    check_file("schema/runner-protocol.openrpc.json", &pretty(&openrpc::document()));
}

#[test]
fn the_document_is_one_of_openrpc() {
    let of_schemas = read_json("tests/data/openrpc/json-schema.json");
    let resource = || jsonschema::Draft::Draft7.create_resource(of_schemas.clone());
    // It is referred to by both.
    let registry = jsonschema::Registry::new()
        .add("https://meta.json-schema.tools", resource())
        .and_then(|registry| registry.add("https://meta.json-schema.tools/", resource()))
        .and_then(|registry| registry.prepare())
        .expect("a schema of schemas");
    let mut of_openrpc = read_json("tests/data/openrpc/openrpc-1.3.json");
    // It names itself by a draft of its own, which is draft 7.
    of_openrpc.as_object_mut().expect("an object").remove("$schema");
    let schema = jsonschema::options()
        .with_draft(jsonschema::Draft::Draft7)
        .with_registry(&registry)
        .build(&of_openrpc)
        .expect("a schema");
    let mut document = openrpc::document();
    assert_eq!(complaints(&schema, &document), Vec::<String>::new());
    document["methods"][0]["errors"][0] = json!({ "code": "none" });
    assert!(!schema.is_valid(&document), "it finds what is wrong");
    let mut document = openrpc::document();
    document["methods"][0]["params"][0]["schema"] = json!({ "type": "nothing" });
    assert!(!schema.is_valid(&document), "it looks into schemas");
}

/// A schema of the document that stands by itself.
fn schema_of(document: &Value, mut schema: Value) -> jsonschema::Validator {
    // Draft 7 ignores what stands beside `$ref`.
    schema = json!({ "allOf": [schema], "components": document["components"] });
    jsonschema::options().with_draft(jsonschema::Draft::Draft7).build(&schema).expect("a schema")
}

/// The schema of the params of a method, from its content descriptors.
fn params_of(document: &Value, method: &Value) -> jsonschema::Validator {
    let params = method["params"].as_array().expect("params");
    let named = |param: &Value| param["name"].as_str().expect("a name").to_owned();
    let properties: serde_json::Map<_, _> =
        params.iter().map(|param| (named(param), param["schema"].clone())).collect();
    let required: Vec<String> = params.iter().filter(|param| param["required"] == true).map(named).collect();
    schema_of(document, json!({ "type": "object", "properties": properties, "required": required }))
}

#[test]
fn examples_fit_the_schemas_of_the_document() {
    let document = openrpc::document();
    let methods = document["methods"].as_array().expect("methods");
    assert_eq!(methods.len(), methods::all().count());
    for (method, (_, info)) in methods.iter().zip(methods::all()) {
        let params = params_of(&document, method);
        let result = schema_of(&document, method["result"]["schema"].clone());
        for (pairing, example) in method["examples"].as_array().expect("examples").iter().zip(examples::of(info)) {
            assert_eq!(complaints(&params, &example.params()), Vec::<String>::new(), "{}", info.name);
            assert_eq!(complaints(&result, &example.result()), Vec::<String>::new(), "{}", info.name);
            let shown = pairing["params"].as_array().expect("params").iter();
            let shown = shown.map(|one| (one["name"].as_str().expect("a name").to_owned(), one["value"].clone()));
            assert_eq!(Value::Object(shown.collect()), example.params(), "{}: all params are described", info.name);
        }
    }
}

#[test]
fn schemas_of_the_document_take_null_and_what_is_new_and_refuse_what_is_wrong() {
    let document = openrpc::document();
    let check = |name: &str, value: Value, fits: bool| {
        let schema = schema_of(&document, json!({ "$ref": format!("#/components/schemas/{name}") }));
        assert_eq!(schema.is_valid(&value), fits, "{name}: {value}");
    };
    let brief = json!({ "id": "a", "name": "A", "system_prompt": "" });
    check("RunParams", json!({ "assistant": brief, "query": null, "tools": null, "history": null, "new": 1 }), true);
    check("RunParams", json!({ "assistant": brief, "tools": {} }), false);
    check("RunParams", json!({ "assistant": null }), false);
    check(
        "InitializeResult",
        json!({ "protocol_version": 1, "runner": { "name": "r", "version": null },
        "max_frame_bytes": 4096, "capabilities": null }),
        true,
    );
    check("InitializeResult", json!({ "protocol_version": 1, "runner": { "name": "r" } }), false);
    check("Message", json!({ "role": "user", "content": [{ "type": "hologram", "of": "a cat" }] }), true);
    check("Message", json!({ "role": "user", "content": [{ "type": "text" }] }), false);
    check("Message", json!({ "role": "nobody", "content": "" }), false);
    check("RunResult", json!({ "stop_reason": "finished", "content": "x", "structured": null }), true);
    check("RunResult", json!({ "stop_reason": "bored", "content": "x" }), false);
}

#[test]
fn the_page_has_what_the_tables_say() {
    let renewed = page::renew(&read(PAGE)).unwrap_or_else(|name| panic!("{PAGE} has no markers for `{name}`"));
    check_file(PAGE, &renewed);
}

/// A value that comes back the same from its type.
fn comes_back<T: Serialize + DeserializeOwned>(value: &Value) -> bool {
    serde_json::from_value::<T>(value.clone()).and_then(serde_json::to_value).ok().as_ref() == Some(value)
}

/// What is wrong with a line of a conversation; `asked` are the requests that are not answered, by side and id.
fn complaint(from_host: bool, line: &str, asked: &mut HashMap<(bool, wire::Id), String>) -> Option<String> {
    let value: Value = match serde_json::from_str(line) {
        Ok(value) => value,
        Err(error) => return Some(error.to_string()),
    };
    match wire::classify(line.as_bytes()) {
        Incoming::Request { id, method, .. } => {
            let Some((asks, info)) = methods::find(&method) else { return Some("no method".to_owned()) };
            if matches!((asks, from_host), (Asks::Host, false) | (Asks::Runner, true)) {
                return Some("the other side asks this".to_owned());
            }
            let again = (info.params_again)(value["params"].clone());
            asked.insert((from_host, id), method.into_owned());
            (again.ok().as_ref() != Some(&value["params"])).then(|| "the params do not come back the same".to_owned())
        }
        Incoming::Response { id, outcome } => {
            let Some(method) = asked.remove(&(!from_host, id)) else { return Some("answers nothing".to_owned()) };
            let (_, info) = methods::find(&method)?;
            let fits = match outcome {
                Ok(_) => (info.result_again)(value["result"].clone()).ok().as_ref() == Some(&value["result"]),
                Err(error) => {
                    let may = info.errors.iter().chain(methods::ANY_METHOD).map(|one| one.kind);
                    is_error(&error) && may.into_iter().any(|kind| Some(kind) == error.kind())
                }
            };
            (!fits).then(|| format!("no answer of {method}"))
        }
        Incoming::NoId | Incoming::Unparsable => {
            let known = comes_back::<Message>(&value) || comes_back::<Part>(&value);
            (!known).then(|| "neither a line of the protocol, nor a message or a part".to_owned())
        }
    }
}

/// Whether number and kind of an error belong together.
fn is_error(error: &RpcError) -> bool {
    error.kind().is_some_and(|kind: Kind| kind.code() == error.code && error.data["kind"] == kind.name())
}

/// Lines of a page that are JSON: from the host (`> `), from the runner (`< `) or of neither.
fn json_lines(page: &str) -> impl Iterator<Item = (usize, bool, &str)> {
    page.lines().zip(1..).filter_map(|(line, number)| {
        let line = line.trim_start();
        let said = line.strip_prefix("> ").or_else(|| line.strip_prefix("< ")).unwrap_or(line);
        said.starts_with('{').then_some((number, line.starts_with('>'), said))
    })
}

#[test]
fn every_line_of_json_on_the_page_is_one_of_the_protocol() {
    let page = read(PAGE);
    let mut asked = HashMap::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    for (number, from_host, line) in json_lines(&page) {
        count += 1;
        wrong.extend(complaint(from_host, line, &mut asked).map(|what| format!("line {number}: {what}: {line}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 60, "{count} lines are found");
    assert!(asked.is_empty(), "every request on the page is answered: {asked:?}");
}

#[test]
fn lines_that_are_none_are_found() {
    let check = |from_host: bool, line: &str, what: &str| {
        let mut asked = HashMap::from([((true, wire::Id::Number(1)), "ping".to_owned())]);
        assert!(complaint(from_host, line, &mut asked).is_some_and(|told| told.starts_with(what)), "{line}");
    };
    check(true, r#"{"jsonrpc":"2.0","id":2,"method":"pong","params":{}}"#, "no method");
    check(false, r#"{"jsonrpc":"2.0","id":2,"method":"ping","params":{}}"#, "the other side");
    check(true, r#"{"jsonrpc":"2.0","id":2,"method":"cancel","params":{"why":""}}"#, "the params");
    check(true, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "answers nothing");
    check(false, r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#, "no answer of ping");
    check(
        false,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":4000,"message":"m","data":{"kind":"cancelled"}}}"#,
        "no answer",
    );
    check(false, r#"{"role":"user"}"#, "neither");
    check(false, r#"{"role":"#, "EOF");
}
