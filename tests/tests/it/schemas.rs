//! The committed schemas are those of the code. `UPDATE_SCHEMAS=1 cargo test -p conformance schemas` writes them anew.

use std::path::Path;

use assistant_host::limits::Limits;
use assistant_host::tools::{self, Audience};
use assistant_protocol::methods::{BOTH_ASK, HOST_ASKS, MethodInfo, RUNNER_ASKS};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

fn check(name: &str, now: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schema").join(name);
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, now).expect("written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == now, "schema/{name} is out of date: UPDATE_SCHEMAS=1 cargo test -p conformance schemas");
}

fn pretty(value: &Value) -> String {
    format!("{}\n", serde_json::to_string_pretty(value).expect("JSON"))
}

#[test]
fn tools_json() {
    let of = |audience| {
        let table = tools::table(&Limits::default());
        table.iter().filter(|tool| tool.audience == audience).map(tools::listed).collect::<Vec<_>>()
    };
    check("tools.json", &pretty(&json!({ "tools": of(Audience::Everyone), "runner_tools": of(Audience::Runners) })));
}

#[test]
fn single_config_json() {
    check("single-config.json", &pretty(&assistant_host::single::json_schema()));
}

#[test]
fn store_sql() {
    check("store.sql", &assistant_host::store::schema());
}

#[test]
fn runner_protocol_json() {
    let mut schemas = SchemaSettings::draft2020_12().into_generator();
    let mut table = |rows: &[MethodInfo]| {
        let row = |row: &MethodInfo| {
            json!({
                "name": row.name,
                "description": row.doc.trim(),
                "params": (row.params)(&mut schemas),
                "result": (row.result)(&mut schemas),
            })
        };
        rows.iter().map(row).collect::<Vec<_>>()
    };
    let (host, runner, both) = (table(HOST_ASKS), table(RUNNER_ASKS), table(BOTH_ASK));
    let errors: Vec<Value> = assistant_protocol::error::Kind::ALL
        .iter()
        .map(|kind| json!({ "kind": kind.name(), "code": kind.code() }))
        .collect();
    let document = json!({
        "protocol_version": assistant_protocol::types::PROTOCOL_VERSION,
        "host_asks": host, "runner_asks": runner, "both_ask": both, "errors": errors,
        "$defs": schemas.take_definitions(true),
    });
    check("runner-protocol.json", &pretty(&document));
}
