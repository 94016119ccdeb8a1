//! The committed schemas are those of the code. `UPDATE_SCHEMAS=1 cargo test -p conformance schemas` writes them anew.

use std::path::Path;

use assistant_host::limits::Limits;
use assistant_host::tools::{self, Audience};
use serde_json::{Value, json};

fn check(name: &str, now: &str) {
    check_file(&format!("schema/{name}"), now);
}

/// The same of any file of the workspace.
pub(crate) fn check_file(name: &str, now: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, now).expect("written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == now, "{name} is out of date: UPDATE_SCHEMAS=1 cargo test -p conformance schemas");
}

pub(crate) fn pretty(value: &Value) -> String {
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
