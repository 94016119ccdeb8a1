//! What people are told of launchers before anything is spawned: by `doctor`, by `check`, and where a program is not there.

use super::*;
use crate::HOST;

/// The program in a folder with this configuration.
fn ran(config: &str, args: &[&str]) -> (String, String) {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("config.toml"), config).expect("a file");
    std::fs::create_dir(dir.path().join("home")).expect("a folder");
    let mut command = Command::new(HOST);
    command.args(args).current_dir(dir.path()).env("HOME", dir.path().join("home")).stdin(Stdio::null());
    command.env("XDG_STATE_HOME", dir.path().join("state")).env("XDG_CONFIG_HOME", dir.path().join("home"));
    let told = command.output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&told.stdout), text(&told.stderr))
}

const CONFIG: &str = "default_launcher = \"plain\"\n[launchers.plain]\npreset = \"local\"\n[launchers.gone]\n\
                      argv = [\"no-such-engine\", \"{runner}\"]\n[launchers.deaf]\nargv = [\"sleep\", \"1000\", \"{runner}\"]\n\
                      launch_ms = 10000\n[launchers.broken]\nargv = [\"sh\", \"-c\", \"echo no luck >&2; exit 3\", \"{runner}\"]\n";

#[test]
fn doctor_starts_a_runner_by_each() {
    let (out, err) = ran(CONFIG, &["doctor", "--json", "--config", "config.toml"]);
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out} {err}"));
    let of = |name: &str| {
        let found = report["launchers"].as_array().and_then(|all| all.iter().find(|one| one["name"] == name));
        found.cloned().unwrap_or_else(|| panic!("{name}: {report}"))
    };
    let check = |name: &str, started: bool, words: &str| {
        let one = of(name);
        let error = one["error"].as_str().unwrap_or_default();
        assert!(one["started_ms"].is_u64() == started && error.contains(words), "{name}: {one}");
    };
    check("plain", true, "");
    check("gone", false, "there is no program no-such-engine here; install it, or name its whole path");
    check("deaf", true, "invalid time interval");
    check("broken", true, "no luck");
    assert_eq!((&of("plain")["error"], &of("plain")["default"]), (&Value::Null, &json!(true)));
    let problems = report["problems"].to_string();
    assert!(problems.contains("the launcher gone: ") && problems.contains("the launcher broken: "), "{problems}");
    let (out, _) = ran(CONFIG, &["doctor", "--config", "config.toml", "--no-calls"]);
    for line in ["plain (default) (local): not started", "gone (no-such-engine): is not here"] {
        assert!(out.contains(line), "{line}: {out}");
    }
}

#[test]
fn doctor_tells_what_of_the_hosts_own_lies_in_the_project() {
    let config = "[models.m]\nprovider = \"openai\"\nmodel = \"x\"\napi_key_file = \"keys/m.key\"\n";
    let notes = |project: &str| {
        let (out, err) =
            ran(config, &["doctor", "--json", "--no-calls", "--config", "config.toml", "--project", project]);
        let report: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out} {err}"));
        let notes = report["notes"].as_array().cloned().unwrap_or_default();
        let first = |one: &Value| one["message"].as_str().and_then(|text| text.split(" /").next()).map(str::to_owned);
        assert!(!out.contains("config.toml/"), "a file that is shown as a folder: {out}");
        notes.iter().filter_map(first).collect::<Vec<_>>()
    };
    assert_eq!(notes("."), ["the configuration", "the state directory", "the key file"]);
    assert_eq!(notes("home"), [""; 0]);
}

#[test]
fn doctor_starts_them_where_only_this_user_may_enter() {
    let config =
        "[launchers.where]\nargv = [\"sh\", \"-c\", \"stat -c '%a %n' \\\"$PWD\\\" >&2; exit 3\", \"{runner}\"]\n";
    let (out, err) = ran(config, &["doctor", "--json", "--config", "config.toml"]);
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out} {err}"));
    let error = report["launchers"][0]["error"].as_str().unwrap_or_default();
    assert!(error.contains("700 ") && error.contains("/state/assistant-host/"), "{report}");
}

#[test]
fn check_tells_what_a_configuration_lacks() {
    let config = format!(
        "{CONFIG}[launchers.box]\npreset = \"bwrap\"\nbind = [\"/no/such\"]\n[launchers.odd]\npreset = \"ssh\"\n\
         [runners.agent]\nagent = \"claude\"\n"
    );
    let (out, err) = ran(&config, &["config", "lint", "--config", "config.toml"]);
    let told = format!("{out}{err}");
    for part in [
        "there is no program no-such-engine here",
        "names /no/such, which is not there",
        "has no `host`, which its preset needs",
        "the agent of [runners.agent] does not reach its model",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_there_fails_the_start_with_what_to_do() {
    let bed = bed("argv = [\"no-such-engine\", \"{runner}\"]", "", json!([{ "text": "done" }]));
    let client = bed.open().await;
    let (_, seen) = run(&client).await;
    let expected =
        "the launcher `there`: there is no program no-such-engine here; install it, or name its whole path in `argv`";
    assert_eq!((&seen["reason"], &seen["error"]), (&json!("launch_failed"), &json!(expected)), "{seen}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_too_slow_is_told_with_what_it_said() {
    let launcher =
        "argv = [\"sh\", \"-c\", \"echo waiting for a node >&2; exec sleep 1000\", \"{runner}\"]\nlaunch_ms = 3000";
    let bed = bed(launcher, "", json!([{ "text": "done" }]));
    let client = bed.open().await;
    let (_, seen) = run(&client).await;
    let error = seen["error"].as_str().unwrap_or_default();
    for part in ["within 3000 ms", "raise `launch_ms` of [launchers.there]", "it said: waiting for a node"] {
        assert!(error.contains(part), "{part}: {seen}");
    }
    client.host.close().await;
}
