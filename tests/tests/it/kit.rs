//! The conformance kit by the built program: our runner keeps every rule, and one that does not is told by its fault.

use std::process::{Command, Output};

use serde_json::Value;

use crate::{FAKE_RUNNER, HOST, RUNNER, runners};

mod mutants;
mod told;

fn kit(arguments: &[&str]) -> (Output, Vec<Value>) {
    let output = Command::new(HOST).arg("conformance").args(arguments).output().expect("the program runs");
    let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap_or(Value::Null)).collect();
    (output, lines)
}

/// Plays all cases with a runner, which has to keep every rule, but for what its language cannot.
fn check(command: &[&str], cannot: &[&str]) {
    let (output, lines) = kit(&[&["--json", "--"], command].concat());
    let bears = |line: &Value| line["level"] == "should" && cannot.iter().any(|case| line["case"] == *case);
    let failed: Vec<_> = lines.iter().filter(|line| line["verdict"] == "failed" && !bears(line)).collect();
    assert!(failed.is_empty(), "{command:?}: {failed:#?}");
    let count = &lines.last().expect("a last line")["count"];
    assert!(output.status.success() && count["required_passed"].as_u64() >= Some(70), "{command:?}: {count}");
    assert_eq!(count["required_failed"], 0, "{command:?}: {count}");
}

#[test]
fn our_runner_keeps_every_rule() {
    check(&[RUNNER], &[]);
}

#[test]
fn the_examples_keep_every_rule() {
    for (file, runner) in runners::examples() {
        let words = std::iter::once(runner.program.as_os_str()).chain(runner.args.iter().map(AsRef::as_ref));
        let words: Vec<&str> = words.map(|word| word.to_str().expect("UTF-8")).collect();
        // Node reads numbers as doubles, and tells how they were written from version 22 on.
        check(&words, if file == "runner.mjs" { &["exact-numbers"] } else { &[] });
        // What is said of it in the page of the protocol.
        let lines = std::fs::read_to_string(words[1]).expect("a file").lines().count();
        assert!(file != "runner.py" || lines < 100, "{file} has {lines} lines");
    }
}

#[test]
fn a_fault_is_told_with_its_rule_and_what_was_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("talks-first.jsonl");
    std::fs::write(&script, "{\"raw\":\"hello\"}\n{\"wait\":\"initialize\"}\n{\"wait_eof\":true}\n").expect("a file");
    let script = script.to_str().expect("UTF-8");
    let (output, lines) = kit(&["--json", "--case", "initialize", "--wait-ms", "2000", "--", FAKE_RUNNER, script]);
    assert_eq!(output.status.code(), Some(1), "{lines:?}");
    let (told, last) = (&lines[0], &lines[1]);
    assert_eq!(told["verdict"], "failed", "{told}");
    assert!(["stdout-is-pure", "silent-first"].iter().any(|rule| told["fault"]["rule"] == *rule), "{told}");
    assert_eq!((&last["conforms"], &last["count"]["required_failed"]), (&false.into(), &1.into()), "{last}");
    let shown = told["transcript"].to_string();
    assert!(shown.contains("< hello"), "{shown}");
}

#[test]
fn what_cannot_be_tried_is_wrong_usage() {
    let (unknown, _) = kit(&["--case", "never-heard-of", "--", RUNNER]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("never-heard-of"));
    let (missing, _) = kit(&["--", "/nowhere/at/all"]);
    assert_eq!(missing.status.code(), Some(2));
    let (listed, lines) = kit(&["--list", "--json"]);
    assert!(listed.status.success() && lines.len() > 60 && lines.iter().all(|line| line["rule"].is_string()));
}
