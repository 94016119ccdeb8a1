//! What the kit tells of runners that are odd as a whole: adapters, silent ones, those that leave something behind; and
//! what a terminal is shown.

use serde_json::Value;

use super::kit;
use crate::{FAKE_RUNNER, HOST};

/// An adapter by the words of the page: it says `messages`, and does its task without the host's model.
const ADAPTER: &str = concat!(
    r#"{"serve":{"initialize":{"protocol_version":1,"runner":{"name":"adapter","version":"1"},"#,
    r#""max_frame_bytes":67108864,"capabilities":{"messages":true}},"ping":{},"shutdown":{},"#,
    r#""run":{"stop_reason":"finished","content":"done"}}}"#,
    "\n",
    r#"{"wait_eof":true}"#,
    "\n",
);

/// Tries these cases, and gives the verdict of each, with why; and the count.
fn verdicts(cases: &[&str], command: &[&str]) -> (Vec<(String, String)>, Value) {
    let cases = cases.iter().flat_map(|case| ["--case", case]);
    let arguments: Vec<&str> = ["--json", "--wait-ms", "4000"].into_iter().chain(cases).chain(["--"]).collect();
    let (_, mut lines) = kit(&[&arguments, command].concat());
    let count = lines.pop().expect("a last line");
    let told = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
    let verdicts = lines.iter().map(|line| match line["verdict"].as_str() {
        Some("failed") => ("failed".to_owned(), told(&line["fault"], "seen")),
        _ => (told(line, "verdict"), told(line, "why")),
    });
    (verdicts.collect(), count)
}

fn is(verdict: &str, why: &str) -> (String, String) {
    (verdict.to_owned(), why.to_owned())
}

#[test]
fn an_adapter_is_not_blamed_for_model_calls_that_it_does_not_make() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("adapter.jsonl");
    let cases = ["initialize", "ping", "run", "several-runs", "the-hosts-bound"];
    let none = is("not_offered", "it makes no model calls");
    let check = |says: &str, expected: Vec<(String, String)>, conforms: bool| {
        std::fs::write(&script, ADAPTER.replace("true}}", says)).expect("a file");
        let (verdicts, count) = verdicts(&cases, &[FAKE_RUNNER, script.to_str().expect("UTF-8")]);
        assert_eq!((verdicts, &count["conforms"]), (expected, &Value::Bool(conforms)), "{count}");
    };
    let kept = is("passed", "");
    check("true}}", vec![kept.clone(), none.clone(), none.clone(), none.clone(), none], true);
    // One that does not say `messages` is no adapter.
    let lost = is("failed", "no run goes on: `run` was answered");
    let result = is("failed", r#"the result {"stop_reason":"finished","content":"done"}"#);
    check("false}}", vec![kept, lost.clone(), lost.clone(), lost, result], false);
}

#[cfg(unix)]
#[test]
fn one_that_does_not_answer_initialize_is_asked_once() {
    let (verdicts, count) = verdicts(&[], &["sh", "-c", "cat > /dev/null"]);
    assert_eq!(verdicts[0], is("failed", "nothing, for 4000 ms"));
    assert!(
        verdicts[1..].iter().all(|told| *told == is("not_tried", "it does not answer `initialize`")),
        "{verdicts:?}"
    );
    let count = &count["count"];
    let failed = ["required_failed", "optional_failed"].map(|name| count[name].as_u64().expect("a number"));
    assert_eq!(failed.iter().sum::<u64>(), verdicts.len() as u64, "{count}");
}

#[cfg(target_os = "linux")]
#[test]
fn what_holds_the_stdout_of_one_that_has_exited_is_told_once() {
    // What stays is in its own session before the runner begins.
    let script = "setsid sh -c 'sleep 20 &'; exec \"$0\" agent";
    let (verdicts, _) = verdicts(&["initialize", "ping", "shutdown"], &["sh", "-c", script, FAKE_RUNNER]);
    let held = "it has exited with 0, but something that it started holds its stdout open";
    assert_eq!(verdicts, [is("failed", held), is("passed", ""), is("passed", "")]);
}

#[cfg(unix)]
#[test]
fn what_a_terminal_would_obey_is_shown_as_an_escape() {
    // What it says first is why it is ended: stderr before that.
    let script = r"printf '\033]0;x\007\r\n' >&2; printf '\033[2Jhello\007\n'; cat > /dev/null";
    let (output, _) = kit(&["--case", "silent-before-initialize", "--wait-ms", "2000", "--", "sh", "-c", script]);
    let shown = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown:?}");
    for words in [r"seen: \u{1b}[2Jhello\u{7}", r"< \u{1b}[2Jhello\u{7}", r"stderr: \u{1b}]0;x\u{7}"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[cfg(unix)]
#[test]
fn a_command_that_is_none_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("runner");
    conformance::programs::write(&script, "print('hello')\n");
    let check = |program: &str, words: &str| {
        let output = std::process::Command::new(HOST).args(["conformance", "--", program]).output().expect("it runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{program}: {told}");
        assert!(told.contains(words), "{program}: {told}");
    };
    check("", "name its program");
    check(script.to_str().expect("UTF-8"), "a script needs `#!`");
    let (help, _) = kit(&["--help"]);
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(["0 ", "1 ", "2 ", "130 "].iter().all(|code| help.contains(&format!("\n  {code}"))), "{help}");
}

#[test]
fn what_differs_is_told_as_json_with_its_place() {
    let check = |fault: &str, case: &str, expected: &str, seen: &str| {
        let (_, lines) = kit(&["--json", "--wait-ms", "4000", "--case", case, "--", FAKE_RUNNER, "agent", fault]);
        let told = &lines[0]["fault"];
        let ends = |name: &str, end: &str| told[name].as_str().is_some_and(|told| told.ends_with(end));
        assert!(ends("expected", expected) && ends("seen", seen), "{told}");
    };
    check("loses-structured", "end-run", "as `structured`: {\"n\":5}", "nothing");
    check("drops-opaque", "verbatim", "(message 2), at /content/1/type: \"opaque\"", "\"never_heard_of\"");
}
