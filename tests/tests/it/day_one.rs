//! The commands of the first day: `doctor`, `completions`.

use std::path::Path;
use std::process::{Output, Stdio};

use conformance::bed::{SOON, assistant};
use conformance::model_server::{ModelServer, Reply};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::HOST;

/// A folder with an assistant, a file that is none, and a configuration.
fn folder(config: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("assistants")).expect("a folder");
    std::fs::write(dir.path().join("assistants/poet.md"), assistant("poet", "")).expect("a file");
    std::fs::write(dir.path().join("assistants/README.md"), "not one\n").expect("a file");
    std::fs::write(dir.path().join("config.toml"), config).expect("a file");
    dir
}

/// The program with the places of a folder, and nothing of the environment but the given variables.
async fn run(dir: &Path, args: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let mut command = Command::new(HOST);
    command.args(args).args(["--state", "state", "--config", "config.toml", "--assistants", "assistants"]);
    command.arg("--no-project").current_dir(dir).env_clear().env("HOME", dir).envs(variables.iter().copied());
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output: Output = tokio::time::timeout(SOON, command.output()).await.expect("it ends").expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_asks_every_model_and_says_what_to_do() {
    let (good, bad) = (ModelServer::start().await.expect("starts"), ModelServer::start().await.expect("starts"));
    good.push(Reply::text("ok"));
    bad.push(Reply::error(401, &json!({ "error": { "message": "no such key" } })));
    let model =
        |name: &str, more: &str| format!("[models.{name}]\nprovider = \"openai\"\nmodel = \"m-{name}\"\n{more}\n");
    let at = |server: &ModelServer| format!("base_url = \"{}\"\napi_key_env = \"MY_KEY\"", server.base_url());
    let config = format!(
        "default_model = \"good\"\n{}{}{}",
        model("good", &at(&good)),
        model("bad", &at(&bad)),
        model("unset", "api_key_env = \"OTHER_KEY\""),
    );
    let dir = folder(&config);
    let variables = [("MY_KEY", "sk-secret-7")];
    let (code, out, _) = run(dir.path(), &["doctor", "--json"], &variables).await;
    assert_eq!(code, Some(1), "{out}");
    assert!(!out.contains("secret"), "no key is shown: {out}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    let states: Vec<_> = report["models"].as_array().expect("a list").iter().map(|one| &one["state"]).collect();
    assert_eq!(states, ["fails", "answers", "unusable"], "by name: bad, good, unset");
    assert_eq!((good.requests().len(), bad.requests().len()), (1, 1), "one call each");
    assert_eq!(good.requests()[0].body["model"], "m-good");
    let problems: Vec<_> = report["problems"].as_array().expect("a list").iter().map(|one| &one["message"]).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[1].as_str().is_some_and(|text| text.contains("OTHER_KEY")), "{problems:?}");
    assert_eq!(
        report["keys"],
        json!([
            { "variable": "ANTHROPIC_API_KEY", "set": false }, { "variable": "MY_KEY", "set": true },
            { "variable": "OPENAI_API_KEY", "set": false }, { "variable": "OTHER_KEY", "set": false },
        ])
    );
    let source = json!({
        "source": "dir", "path": "assistants", "there": true, "assistants": 1, "shadowed": 0, "skipped": 1, "warnings": 0,
    });
    assert_eq!(report["assistants"]["sources"], json!([source]));
    let (code, out, _) = run(dir.path(), &["doctor", "--no-calls"], &variables).await;
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("good (default), openai m-good: not asked"), "{out}");
    assert!(out.contains("what to do     set it, or name a file in `api_key_file`"), "{out}");
    assert_eq!(good.requests().len(), 1, "no call");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_tells_all_is_well_and_starts_nothing() {
    let dir = folder("[models.s]\nprovider = \"scripted\"\nscript = \"script.json\"\n");
    std::fs::write(dir.path().join("script.json"), r#"{"assistants":[{"steps":[{"text":"x"}]}]}"#).expect("a file");
    let (code, out, err) = run(dir.path(), &["doctor"], &[]).await;
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("host           none runs") && out.ends_with("all is well\n"), "{out}");
    assert!(!dir.path().join("state").exists(), "nothing was made");
    for (config, message) in [
        ("nonsense = 1", "line 1: unknown field `nonsense`"),
        ("", "there is no model"),
        ("default_model = \"x\"", "`default_model` is `x`, which is no [models.NAME]"),
    ] {
        std::fs::write(dir.path().join("config.toml"), config).expect("a file");
        let (code, out, _) = run(dir.path(), &["doctor"], &[]).await;
        assert!(code == Some(1) && out.contains(message) && out.contains("what to do"), "{config}: {out}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_are_there_for_each_shell() {
    let dir = folder("");
    for (shell, part) in [
        ("bash", "complete -F _assistant__host"),
        ("zsh", "#compdef assistant-host"),
        ("fish", "complete -c assistant-host"),
        ("elvish", "edit:completion:arg-completer[assistant-host]"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let (code, out, err) = run(dir.path(), &["completions", shell], &[]).await;
        assert_eq!((code, err.as_str()), (Some(0), ""));
        assert!(out.contains(part) && out.contains("doctor"), "{shell}: {out}");
    }
    let (code, _, err) = run(dir.path(), &["completions", "csh"], &[]).await;
    assert!(code == Some(2) && err.contains("powershell"), "{err}");
}
