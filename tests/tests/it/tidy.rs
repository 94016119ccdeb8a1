//! The rules of the house that a look at the sources can check.

use std::path::{Path, PathBuf};

/// Lines of a file.
const LINES_MAX: usize = 400;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the workspace")
}

/// Every Rust file with its path from the root of the workspace and its text.
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut todo: Vec<PathBuf> = ["host", "runner", "protocol", "tests"].iter().map(|name| root().join(name)).collect();
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() && !path.ends_with("node_modules") && !path.ends_with("target") {
                todo.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let name = path.strip_prefix(root()).expect("below").to_string_lossy().replace('\\', "/");
                found.push((name, std::fs::read_to_string(&path).expect("a text")));
            }
        }
    }
    assert!(found.len() > 50, "the sources are found");
    found
}

/// Lines that contain `what`, in files whose names `outside` does not take.
fn check(what: &str, outside: impl Fn(&str) -> bool) {
    let mut found = Vec::new();
    for (name, text) in sources() {
        if name.ends_with("it/tidy.rs") || outside(&name) {
            continue;
        }
        let hits =
            text.lines().zip(1..).filter(|(line, _)| line.contains(what) && !line.trim_start().starts_with("//"));
        found.extend(hits.map(|(line, number)| format!("{name}:{number}: {}", line.trim())));
    }
    assert!(found.is_empty(), "`{what}` has no place here:\n{}", found.join("\n"));
}

fn in_tests(name: &str) -> bool {
    name.starts_with("tests/") || name.contains("/tests") || name.contains("/examples/") || name.ends_with("testing.rs")
}

#[test]
fn each_package_has_one_room() {
    let memory = [
        "store",
        "process_table",
        "message_box",
        "conversation",
        "events",
        "names",
        "registry/mirror",
        "tools/",
        "blobs",
    ];
    check("rusqlite::", |name| {
        in_tests(name) || memory.iter().any(|room| name.starts_with(&format!("host/src/{room}")))
    });
    check("tantivy::", |name| in_tests(name) || name.starts_with("host/src/search"));
    // The log names it.
    let rmcp = [
        "host/src/mcp",
        "host/src/servers",
        "host/src/cli/serve.rs",
        "host/src/cli/client.rs",
        "host/src/cli/log.rs",
        "runner/src/adapter/bridge/",
    ];
    check("rmcp::", |name| in_tests(name) || rmcp.iter().any(|room| name.starts_with(room)));
    check("agent_client_protocol::", |name| name.starts_with("runner/src/acp"));
    let base64 = ["host/src/blobs", "host/src/mcp", "host/src/cli/client.rs", "host/src/model/"];
    check("base64::", |name| in_tests(name) || base64.iter().any(|room| name.starts_with(room)));
    let socket = ["host/src/door", "host/src/cli/start.rs", "host/src/cli/pipe.rs", "host/src/cli/line.rs"];
    check("interprocess::", |name| in_tests(name) || socket.iter().any(|room| name.starts_with(room)));
    check("jsonrpsee", |name| in_tests(name) || name.starts_with("protocol/"));
    check("clap::", |name| name.starts_with("host/src/cli"));
    let http = ["host/src/model/network", "host/src/servers"];
    check("reqwest::", |name| in_tests(name) || http.iter().any(|room| name.starts_with(room)));
    check("notify::", |name| in_tests(name) || name.starts_with("host/src/host/watch"));
    check("jsonschema::", |name| in_tests(name) || name == "host/src/output_schema.rs");
    check("brush_parser::", |name| name.starts_with("host/src/tools/policy"));
    check("process_wrap::", |name| name.starts_with("host/src/launcher"));
}

#[test]
fn only_the_process_table_changes_a_status() {
    check("SET status", |name| name.starts_with("host/src/process_table"));
    check("launcher::launch(", |name| name == "host/src/session.rs");
}

#[test]
fn nothing_is_left_for_later() {
    for what in ["todo!(", "unimplemented!(", "dbg!(", "#[ignore", "unsafe {", "#[allow("] {
        check(what, |_| false);
    }
    check("pre_exec", |_| false);
    check("thread::sleep", |_| false);
}

/// What this process writes itself cannot always be started: `conformance::programs` says why.
#[test]
fn programs_of_these_tests_are_written_by_others() {
    check("from_mode(0o755)", |name| !name.starts_with("tests/"));
}

#[test]
fn the_library_prints_nothing_and_hears_no_signal() {
    check("tokio::signal", |name| name == "host/src/cli/serve.rs" || name == "runner/src/adapter/guard.rs");
    check("tracing_subscriber", |name| in_tests(name) || name == "host/src/cli/log.rs");
    check("std::env::var", |name| {
        in_tests(name)
            || name.starts_with("host/src/cli")
            || name.starts_with("host/src/launcher")
            || name == "runner/src/lib.rs"
            || name == "runner/src/modes.rs"
            || name.ends_with("build.rs")
    });
}

#[test]
fn files_hold_one_noun() {
    let long: Vec<String> = sources()
        .iter()
        .filter(|(_, text)| text.lines().count() > LINES_MAX)
        .map(|(name, text)| format!("{name}: {}", text.lines().count()))
        .collect();
    assert!(long.is_empty(), "longer than {LINES_MAX} lines:\n{}", long.join("\n"));
}
