//! Irregular files, one kind each, below `tests/data/quirks`: what the reader makes of them is compared with what each
//! case's `expected.json` says a tolerant reader should. Where ours differs, a line of [`different`] says why.

use std::fs;
use std::path::{Path, PathBuf};

use assistant_host::registry::{Definition, Layout, Registry, Source, SourceDir};
use serde_json::{Value, json};

/// Case, fields that replace those of `expected`, and why.
fn different(case: &str) -> (Value, &'static str) {
    match case {
        "20-empty-file" => {
            (json!({ "load": "error", "error": "empty_file" }), "an empty file is a mistake, no document")
        }
        "27-name-colon" => (
            json!({ "load": "ok", "name": "finance-invoice", "warnings": ["name_reserved_character"] }),
            "the id is a slug, so the name is harmless; real agents have such names",
        ),
        "28-name-leading-dash" => {
            (json!({ "load": "ok", "name": "invoice", "warnings": ["name_leading_dash"] }), "as 27")
        }
        "29-name-path" => {
            (json!({ "load": "ok", "name": "etc-invoice", "warnings": ["name_reserved_character"] }), "as 27")
        }
        "32-name-long" => (
            json!({ "load": "ok", "name": "a".repeat(64), "warnings": ["name_too_long"] }),
            "a file is never refused for what can be repaired",
        ),
        "34-duplicate-name" => (json!({ "warnings": [] }), "the file that is hidden is told beside it, as `shadowed`"),
        "38d-tools" | "38e-tools" => (json!({ "tools": ["*"] }), "`*` is one entry of the list"),
        "38l-tools" => (
            json!({ "tools": null, "disallowed_tools": ["write"] }),
            "a map switches single tools: what is on is a rule beside the others, what is off is denied",
        ),
        "38m-tools" => (json!({ "warnings": [] }), "which tools there are is known at the spawn, not on reading"),
        "39d-model" | "39e-model" => (json!({ "warnings": [] }), "which models there are is known at the spawn"),
        "39g-model" => (
            json!({ "warnings": ["model_list"], "model": ["GPT-4.1", "gpt-5", "Claude Sonnet 4.5"] }),
            "it reads as a list of preferences, so it is one",
        ),
        "49-unknown-keys" => {
            (json!({ "extra": ["emoji", "vibe", "color", "handoffs"], "max_turns": 15 }), "`max_turns` is known")
        }
        "50-snake-kebab-camel" => (
            json!({ "mcp_servers": { "orders": { "command": "x" } }, "tools": ["Read"] }),
            "servers are kept as written",
        ),
        "58-goose-recipe" => (
            json!({ "parameters": [{ "key": "invoice", "input_type": "string", "requirement": "required",
                                     "description": "number" }] }),
            "parameters are kept as written",
        ),
        "60-env-in-values" => (
            json!({ "mcp_servers": [{ "name": "orders", "command": "npx", "env": { "KEY": "${ORDERS_KEY}" } }] }),
            "servers are kept as written",
        ),
        _ => (json!({}), ""),
    }
}

/// Codes that are told beside those that a case expects: they are of severity info, or follow from the case's text.
const BESIDE: &[&str] = &["name_normalised", "name_from_file", "key_unused", "key_unknown"];

/// Writes the cases that are too large to keep, or that no archive keeps, below `root`.
fn made(root: &Path) -> Vec<PathBuf> {
    let write = |case: &str, expected: Value, bytes: usize| {
        let folder = root.join(case);
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("expected.json"), json!({ "expected": expected }).to_string()).expect("a file");
        if bytes > 0 {
            let line = "You check invoices against purchase orders and list every difference.\n";
            let head = "---\nname: invoice-checker\ndescription: Checks invoices against purchase orders\n---\n\n";
            let text = [head, &line.repeat(bytes / line.len())].concat();
            fs::write(folder.join("invoice-checker.md"), text).expect("a file");
        }
        folder
    };
    let huge = json!({ "load": "ok", "name": "invoice-checker", "warnings": ["body_long"], "body_len": 131_949,
                       "description": "Checks invoices against purchase orders" });
    let mut cases = vec![
        write("42-body-huge", huge, 132_000),
        write("43-file-too-big", json!({ "load": "error", "error": "file_too_big" }), 1_100_000),
    ];
    #[cfg(unix)]
    {
        let expected = json!({ "load": "dir", "loaded": [], "warnings": ["dangling_link", "link_inside"] });
        let case = write("59-symlink-loop", expected, 0);
        std::os::unix::fs::symlink("missing.md", case.join("invoice-checker.md")).expect("a link");
        std::os::unix::fs::symlink("loop-b", case.join("loop-a")).expect("a link");
        std::os::unix::fs::symlink("loop-a", case.join("loop-b")).expect("a link");
        std::os::unix::fs::symlink(".", case.join("round")).expect("a link");
        cases.push(case);
    }
    cases.iter_mut().for_each(|case| *case = fs::canonicalize(&case).expect("a folder"));
    cases
}

#[test]
fn every_case() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/quirks");
    let mut cases: Vec<_> =
        fs::read_dir(&root).expect("the cases").map(|entry| entry.expect("an entry").path()).collect();
    let folder = tempfile::tempdir().expect("a folder");
    cases.extend(made(folder.path()));
    cases.sort();
    assert_eq!(cases.len(), if cfg!(unix) { 93 } else { 92 }, "cases are missing");
    let failures: Vec<String> = cases.iter().flat_map(|case| check(case)).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

fn check(folder: &Path) -> Vec<String> {
    let case = folder.file_name().expect("a name").to_string_lossy().into_owned();
    let text = fs::read_to_string(folder.join("expected.json")).expect("expected.json");
    let mut expected: Value = serde_json::from_str::<Value>(&text).expect("JSON")["expected"].take();
    let (replaced, why) = different(&case);
    for (key, value) in replaced.as_object().expect("an object") {
        assert!(!why.is_empty(), "{case}: a difference needs a reason");
        expected[key] = value.clone();
    }
    let layout = if case == "57-folder-agent-md" { Layout::Folders } else { Layout::Files };
    let dir = SourceDir { source: Source::Dir, path: folder.to_owned(), layout, required: true };
    let registry = Registry::read(&[dir]);
    let skipped: Vec<_> = registry.skipped().iter().filter(|reason| !reason.file.ends_with("expected.json")).collect();
    let mut failures = Vec::new();
    let mut same = |what: &str, found: Value, wanted: &Value| {
        if found != *wanted {
            failures.push(format!("{case}: {what}: found {found}, expected {wanted}"));
        }
    };
    match expected["load"].as_str().expect("load") {
        "ok" | "ok_or_error" => match registry.assistants() {
            [found] => fields(found, &expected, &mut same),
            found => same("assistants", json!(found.len()), &json!(1)),
        },
        "skip" => same("skipped", json!(skipped.first().map(|reason| reason.code.as_str())), &expected["reason"]),
        "error" => same("error", json!(skipped.first().map(|reason| reason.code.as_str())), &expected["error"]),
        "dir" => {
            let loaded: Vec<_> = registry.assistants().iter().map(|found| found.id.as_str()).collect();
            same("loaded", json!(loaded), &expected["loaded"]);
            for (file, code) in expected["skipped"].as_object().into_iter().flatten() {
                let reason = skipped.iter().find(|reason| Path::new(&reason.file) == folder.join(file));
                same(file, json!(reason.map(|reason| reason.code.as_str())), code);
            }
            for code in expected["warnings"].as_array().into_iter().flatten() {
                let told = skipped.iter().any(|reason| json!(reason.code.as_str()) == *code);
                same(code.as_str().expect("a code"), json!(told), &json!(true));
            }
            if let Some(winner) = expected["winner"].as_str() {
                let [hidden] = registry.shadowed() else { panic!("{case}: one is hidden") };
                same("winner", json!(hidden.by.as_ref().expect("a path")), &json!(folder.join(winner)));
            }
        }
        other => panic!("{case}: {other}"),
    }
    failures
}

fn fields(found: &Definition, expected: &Value, same: &mut impl FnMut(&str, Value, &Value)) {
    let whole = serde_json::to_value(found).expect("JSON");
    for (key, wanted) in expected.as_object().expect("an object") {
        let value = match key.as_str() {
            "name" => json!(found.id),
            "display_name" => json!(found.name),
            // The case's own body or description stands for one that is long.
            "description" if expected.get("description_starts_with").is_some() => continue,
            "description" if expected.get("description_len").is_some() => continue,
            "description_len" => json!(found.description.chars().count() > 11_000),
            "description_starts_with" | "short_description" => {
                let start = wanted.as_str().expect("text");
                same(key, json!(found.description.starts_with(start)), &json!(true));
                continue;
            }
            "body" if expected.get("body_contains").is_some() => continue,
            "body_len" => json!(found.system_prompt.chars().count()),
            "parameters" => found.extra["parameters"].clone(),
            "body" => json!(found.system_prompt),
            "body_contains" => {
                same(key, json!(found.system_prompt.contains(wanted.as_str().expect("text"))), &json!(true));
                continue;
            }
            "model" if wanted.is_array() => json!(found.model),
            "model" => json!(found.model.first()),
            "extra" => {
                let mut keys: Vec<&str> = found.extra.keys().map(String::as_str).collect();
                let mut wanted: Vec<&str> =
                    wanted.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
                keys.sort_unstable();
                wanted.sort_unstable();
                same(key, json!(keys), &json!(wanted));
                continue;
            }
            "warnings" => {
                let codes = found.warnings.iter().map(|warning| warning.code.as_str());
                let expects = |code: &&str| wanted.as_array().expect("a list").contains(&json!(code));
                let mut codes: Vec<_> = codes.filter(|code| expects(code) || !BESIDE.contains(code)).collect();
                codes.dedup();
                json!(codes)
            }
            "error" => {
                same(
                    "too complex",
                    json!(found.warnings.iter().any(|w| w.code.as_str() == wanted.as_str().expect("text"))),
                    &json!(true),
                );
                continue;
            }
            "load" | "max_ms" | "max_mb" | "no_crash" => continue,
            key => whole[key].clone(),
        };
        let wanted = if key == "description_len" { &json!(true) } else { wanted };
        same(key, value, wanted);
    }
}
