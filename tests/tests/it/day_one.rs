//! The commands of the first day: `doctor`, `setup`, `completions`.

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
            { "variable": "ANTHROPIC_API_KEY", "set": false }, { "variable": "GEMINI_API_KEY", "set": false },
            { "variable": "GOOGLE_API_KEY", "set": false }, { "variable": "MY_KEY", "set": true },
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

/// `setup` with the places of a folder: its exit code and what it says.
async fn setup(dir: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let args: Vec<&str> = std::iter::once("setup").chain(args.iter().copied()).collect();
    run(dir, &args, &[]).await
}

/// The entry that a client's file has, as JSON.
fn entry(file: &Path) -> Value {
    let text = std::fs::read_to_string(file).expect("a file");
    serde_json::from_str::<Value>(&text).expect("JSON")["mcpServers"]["assistants"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_prints_and_writes_an_entry_that_works_from_anywhere() {
    let dir = folder("");
    let (home, file) = (dir.path(), dir.path().join(".cursor/mcp.json"));
    let (code, printed, err) = setup(home, &["cursor"]).await;
    assert!(code == Some(0) && err.contains("it goes into") && err.contains("--write"), "{err}");
    assert!(!file.exists(), "printing writes nothing");
    let (code, _, err) = setup(home, &["cursor", "--write"]).await;
    assert!(code == Some(0) && err.starts_with("added `assistants` to "), "{err}");
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), printed, "as printed");
    let at = |name: &str| home.join(name).canonicalize().unwrap_or_else(|_| home.join(name)).display().to_string();
    let (state, config, assistants) = (at("state"), at("config.toml"), at("assistants"));
    let args = json!(["mcp", "--state", state, "--config", config, "--assistants", assistants, "--no-project",]);
    let program = Path::new(HOST).canonicalize().expect("the program");
    assert_eq!(entry(&file), json!({ "command": program, "args": args }));
    let (code, _, err) = setup(home, &["cursor", "--write"]).await;
    assert!(code == Some(0) && err.starts_with("unchanged"), "{err}");
    let (code, out, _) = setup(home, &["--list", "--json"]).await;
    let listed: Value = serde_json::from_str(&out).expect("JSON");
    let states: Vec<_> = listed["clients"].as_array().expect("a list").iter().map(|one| &one["state"]).collect();
    let none = "no file";
    assert_eq!(
        (code, states),
        (
            Some(0),
            vec![
                &json!(none),
                &json!(none),
                &json!(none),
                &json!("there"),
                &json!(none),
                &json!(none),
                &json!(none),
                &json!(none),
                &json!(none)
            ]
        )
    );
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn setup_changes_a_file_whole_or_not_at_all() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let dir = folder("");
    let (home, file) = (dir.path(), dir.path().join(".claude.json"));
    let (kept, backup) = (home.join("dotfiles/claude.json"), home.join("dotfiles/claude.json.bak"));
    std::fs::create_dir(home.join("dotfiles")).expect("a folder");
    let mode = |file: &Path| std::fs::metadata(file).expect("a file").permissions().mode() & 0o777;
    let old = "{\n  \"mcpServers\": {} // none\n}\n";
    std::fs::write(&kept, old).expect("a file");
    std::fs::set_permissions(&kept, PermissionsExt::from_mode(0o640)).expect("a mode");
    symlink(&kept, &file).expect("a link");

    let (code, _, err) = setup(home, &["claude-code", "--write", "--name", "one"]).await;
    assert!(code == Some(0) && err.contains("claude.json.bak"), "{err}");
    assert!(std::fs::symlink_metadata(&file).expect("a file").is_symlink(), "the link stays");
    assert_eq!((mode(&kept), mode(&backup)), (0o640, 0o640));
    assert_eq!(std::fs::read_to_string(&backup).expect("a file"), old);
    let (code, out, err) = setup(home, &["claude-code", "--write", "--name", "two", "--json"]).await;
    let told: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, &told["change"], &told["backup"]), (Some(0), &json!("added"), &Value::Null), "{err}");
    assert_eq!(std::fs::read_to_string(&backup).expect("a file"), old, "the first state is kept");
    let text = std::fs::read_to_string(&kept).expect("a file");
    assert!(text.contains("\"one\"") && text.contains("\"two\"") && text.contains("// none"), "{text}");

    let broken = "{ \"mcpServers\": ";
    std::fs::write(&kept, broken).expect("a file");
    let (code, _, err) = setup(home, &["claude-code", "--write"]).await;
    assert!(code == Some(1) && err.contains("is no JSON") && err.contains("nothing was written"), "{err}");
    assert_eq!(std::fs::read_to_string(&kept).expect("a file"), broken);
    let (code, _, err) = setup(home, &["claude-code"]).await;
    assert!(code == Some(0) && err.contains("is no JSON"), "{err}");
    std::fs::remove_file(&kept).expect("removed");
    let (code, _, err) = setup(home, &["claude-code", "--write"]).await;
    assert!(code == Some(1) && err.contains("cannot be read"), "a link to nothing: {err}");
    let files: Vec<_> = std::fs::read_dir(home.join("dotfiles")).expect("a folder").flatten().collect();
    assert_eq!(files.len(), 1, "nothing is left beside: {files:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_writes_for_a_project_where_the_client_has_such_files() {
    let dir = folder("");
    std::fs::create_dir(dir.path().join("p")).expect("a folder");
    let project = dir.path().join("p").canonicalize().expect("a folder");
    let setup = async |args: &[&str]| {
        let mut command = Command::new(HOST);
        command.arg("setup").args(args).current_dir(&project).env_clear().env("HOME", dir.path());
        let output = tokio::time::timeout(SOON, command.output()).await.expect("it ends").expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let named = ["--project", ".", "--write", "--project-scope"];
    let with = |client: &'static str| [client].into_iter().chain(named).collect::<Vec<_>>();
    let (code, err) = setup(&with("claude-code")).await;
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(entry(&project.join(".mcp.json"))["args"], json!(["mcp", "--project", project]));
    for client in ["codex", "cursor", "gemini", "opencode", "vscode", "zed"] {
        assert_eq!(setup(&with(client)).await.0, Some(0), "{client}");
    }
    for file in
        [".codex/config.toml", ".gemini/settings.json", "opencode.json", ".vscode/mcp.json", ".zed/settings.json"]
    {
        assert!(project.join(file).is_file(), "{file}");
    }
    for (args, why) in [
        (with("goose"), "no file of a project"),
        (vec!["goose", "--project-scope"], "there is no project here"),
        (vec!["emacs"], "[possible values: claude-code, claude-desktop, codex,"),
        (vec!["zed", "--name", "a b"], "a name has 1 to 32 letters"),
        (vec![], "required"),
    ] {
        let (code, err) = setup(&args).await;
        assert!(code == Some(2) && err.contains(why), "{args:?}: {err}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn doctor_tells_of_the_host_that_runs() {
    let doors = conformance::doors::Doors::new(HOST, "");
    let mut client = doors.client();
    assert!(client.shake());
    let (code, out, err) = doors.run(&["doctor", "--json"]);
    assert_eq!(code, Some(0), "{out}{err}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(report["host"]["status"]["pid"].as_u64(), doors.host_pid().map(u64::from), "{out}");
    assert_eq!((&report["host"]["same_build"], &report["host"]["status"]["clients"]), (&json!(true), &json!(1)));
    for place in ["configuration", "state", "database", "log", "socket"] {
        assert_eq!(report[place]["there"], true, "{place}: {out}");
    }
    let pid = doors.host_pid().expect("a host");
    let whose =
        format!("that of this command; the host that runs (process {pid}) has that of the client that started it");
    assert_eq!(report["environment"], json!(whose));
    // What is missing here may be there for the host.
    doors.configure("[mcp_servers.s]\ncommand = \"x\"\nargs = [\"${NOT_HERE}\"]\n");
    let (code, out, _) = doors.run(&["doctor", "--json"]);
    let report: Value = serde_json::from_str(&out).expect("JSON");
    let problem = &report["problems"][0];
    assert!(problem["message"].as_str().is_some_and(|text| text.contains("NOT_HERE is not set")), "{out}");
    assert!(code == Some(1) && problem["hint"].as_str().is_some_and(|text| text.ends_with(&whose)), "{out}");
    assert!(doors.run(&["doctor"]).1.contains(&format!("environment    {whose}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_tells_where_too_few_files_may_be_open() {
    for (running, told) in [(4_000_000_000_u32, true), (1, false)] {
        let dir = folder(&format!("[limits]\nrunning_per_host = {running}\n"));
        let (_, out, _) = run(dir.path(), &["doctor", "--json", "--no-calls"], &[]).await;
        let report: Value = serde_json::from_str(&out).expect("JSON");
        let about_files = |one: &Value| one["message"].as_str().is_some_and(|text| text.contains("open files"));
        assert_eq!(report["problems"].as_array().is_some_and(|all| all.iter().any(about_files)), told, "{out}");
    }
}
