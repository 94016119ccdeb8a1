//! How a runner is named: in the configuration, in a definition, by a spawn and by a command; and names that there are not.

use assistant_host::runners::Runner;

use super::*;

const SAID: &str = "said";

/// Two names for our own runner, which is told by its process.
fn named_bed() -> Bed {
    let files = [
        ("plain.md", assistant("plain", "")),
        ("own.md", assistant("own", "").replace("\ntools:", "\nrunner: assistant-runner\ntools:")),
        ("first.md", assistant("first", "").replace("\ntools:", "\nrunner: one\ntools:")),
        ("none.md", assistant("none", "").replace("\ntools:", "\nrunner: nowhere\ntools:")),
        ("gone.md", assistant("gone", "").replace("\ntools:", "\nrunner: gone\ntools:")),
        ("line.md", assistant("line", "").replace("\ntools:", "\nsession: true\ntools:")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let mut bed = Bed::new(RUNNER, &files, &json!({ "assistants": [{ "steps": [{ "text": "{{task}}" }] }] }));
    for name in ["one", "two"] {
        bed.runners.insert(name.to_owned(), RunnerCommand::new(RUNNER).into());
    }
    bed.runners.insert("gone".to_owned(), RunnerCommand::new("no-such-program").into());
    bed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_has_the_runner_that_is_named_first() {
    let bed = named_bed();
    let client = bed.open().await;
    let check = async |arguments: Value, expected: Value| {
        let spawned = client.call("spawn_assistant", arguments.clone()).await;
        let seen = client.end(&spawned).await;
        assert_eq!((&seen["status"], &seen["runner"]), (&json!("finished"), &expected), "{arguments}: {seen}");
        spawned["process_id"].clone()
    };
    let of = |id: &str| json!({ "assistant_id": id, "query": "go" });
    let by = |id: &str, runner: &str| json!({ "assistant_id": id, "query": "go", "runner": runner });
    check(of("plain"), Value::Null).await;
    check(of("own"), Value::Null).await;
    let first = check(of("first"), json!("one")).await;
    let second = check(by("first", "two"), json!("two")).await;
    let own = check(by("first", "assistant-runner"), Value::Null).await;
    check(by("none", "one"), json!("one")).await;
    let again = |process: &Value| json!({ "resume_process_id": process, "query": "more" });
    check(again(&first), json!("one")).await;
    check(again(&own), Value::Null).await;
    let mut other = again(&second);
    other["runner"] = json!("one");
    check(other, json!("one")).await;
    // One that goes on by itself keeps it too.
    check(by("line", "two"), json!("two")).await;
    check(of("line"), json!("two")).await;
    check(by("line", "assistant-runner"), Value::Null).await;
    check(of("line"), Value::Null).await;
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_name_is_told_with_those_that_there_are() {
    let bed = named_bed();
    let client = bed.open().await;
    let check = async |arguments: Value, message: &str, hint: &str| {
        let error = client.try_call("spawn_assistant", arguments.clone()).await.expect_err("refused");
        let said = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
        assert_eq!(said("code"), "no_runner", "{arguments}: {error}");
        assert!(said("message").contains(message) && said("hint").contains(hint), "{arguments}: {error}");
    };
    let known = "there are: assistant-runner, gone, one, two";
    check(
        json!({ "assistant_id": "plain", "query": "go", "runner": "three" }),
        &format!("no runner is called `three`; {known}"),
        "leave `runner` out",
    )
    .await;
    // A command is a name that there is not.
    check(
        json!({ "assistant_id": "plain", "query": "go", "runner": "/bin/sh -c id" }),
        "no runner is called `/bin/sh -c id`",
        "",
    )
    .await;
    check(
        json!({ "assistant_id": "none", "query": "go" }),
        &format!("none.md): no runner is called `nowhere`; {known}"),
        "[runners.NAME]",
    )
    .await;
    let spawned = client.spawn("first", "go").await;
    client.end(&spawned).await;
    client.host.close().await;
    drop(client);
    // It was configured when it ran.
    let mut bed = bed;
    bed.runners.remove("one");
    let client = bed.open().await;
    let again = json!({ "resume_process_id": spawned["process_id"], "query": "more" });
    let error = client.try_call("spawn_assistant", again).await.expect_err("refused");
    assert_eq!(error["code"], "no_runner", "{error}");
    client.host.close().await;
}

/// Answers the first line with an error.
const REFUSES: &str =
    r#"s/^.*"id":([0-9]+),.*$/{"jsonrpc":"2.0","id":\1,"error":{"code":4011,"message":"only version 9"}}/"#;

#[tokio::test(flavor = "multi_thread")]
async fn one_that_does_not_come_up_fails_its_process_and_another_one_goes_on_with_it() {
    let mut bed = named_bed();
    bed.limits.launch_ms = 10_000;
    let shell = |script: &str| {
        Runner::from(RunnerCommand { program: "/bin/sh".into(), args: vec!["-c".into(), script.into()] })
    };
    bed.runners.insert("mute".to_owned(), shell("echo no luck >&2; exit 3"));
    bed.runners.insert("deaf".to_owned(), shell("exec sleep 1000"));
    bed.runners.insert("loud".to_owned(), shell("while echo hello; do :; done"));
    bed.runners.insert("other".to_owned(), shell(&format!("exec sed -u -E '{REFUSES}'")));
    let client = bed.open().await;
    let check = async |runner: &str, reason: &str, words: &[&str]| {
        let asked = json!({ "assistant_id": "plain", "query": "count", "runner": runner });
        let spawned = client.call("spawn_assistant", asked).await;
        let seen = client.end(&spawned).await;
        assert_eq!((&seen["status"], &seen["reason"]), (&json!("failed"), &json!(reason)), "{runner}: {seen}");
        let error = seen["error"].as_str().unwrap_or_default();
        assert!(words.iter().all(|part| error.contains(part)), "{runner}: {error}");
        let again = json!({ "resume_process_id": spawned["process_id"], "runner": "one" });
        let resumed = client.call("spawn_assistant", again).await;
        assert_eq!(client.end(&resumed).await["status"], "finished", "{runner}");
        assert!(told(&client, &resumed).await.contains("count"), "{runner}");
    };
    check("gone", "launch_failed", &["the runner `gone`: cannot start no-such-program: No such file"]).await;
    check("mute", "launch_failed", &["the runner `mute`: ", "no luck"]).await;
    check("deaf", "launch_failed", &["the runner `deaf`: ", "did not answer `initialize` within 10000 ms"]).await;
    check("other", "launch_failed", &["the runner `other`: ", "refused `initialize`: only version 9"]).await;
    check("loud", "launch_failed", &["the runner `loud`: ", "100 lines that are no messages; the first: hello"]).await;
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_has_its_own_runner_and_not_its_parents() {
    let steps = json!([
        { "tool_calls": [tool("spawn_assistant", json!({ "assistant_id": "child", "query": "go", "run_mode": "sync" }))] },
        { "text": "done" },
    ]);
    let parent = assistant("parent", "spawn_assistant").replace("\ntools:", "\nrunner: one\ntools:");
    let files = [("parent.md", parent.as_str()), ("child.md", &assistant("child", ""))];
    let mut bed = Bed::new(RUNNER, &files, &script(&[("parent", steps), ("child", json!([{ "text": SAID }]))]));
    for (default, expected) in [(None, Value::Null), (Some("two"), json!("two"))] {
        for name in ["one", "two"] {
            bed.runners.insert(name.to_owned(), RunnerCommand::new(RUNNER).into());
        }
        bed.default_runner = default.map(str::to_owned);
        let client = bed.open().await;
        let spawned = client.spawn("parent", "go").await;
        assert_eq!(client.end(&spawned).await["runner"], "one");
        let listed = client.call("list_process", json!({ "process_id": spawned["process_id"] })).await;
        let child =
            listed["items"].as_array().and_then(|items| items.iter().find(|one| one["assistant_id"] == "child"));
        assert_eq!(child.map(|child| child["runner"].clone()), Some(expected), "{listed}");
        client.host.close().await;
        drop(client);
    }
}

/// What the built program says: its exit code, stdout and stderr.
async fn program(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = tokio::process::Command::new(HOST);
    command.args(args);
    if args[0] != "config" {
        command.args(["--assistants", "assistants", "--state", "state", "--config", "config.toml"]);
    }
    command.current_dir(folder).env_clear().env("HOME", folder).env("PATH", folder.join("bin")).stdin(Stdio::null());
    let output =
        tokio::time::timeout(SOON, command.kill_on_drop(true).output()).await.expect("it ends").expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_takes_names_from_its_configuration() {
    let bed = named_bed();
    let folder = bed.dir.path();
    std::fs::create_dir(folder.join("bin")).expect("a folder");
    std::os::unix::fs::symlink(RUNNER, folder.join("bin/a-runner")).expect("a link");
    let models = "[models.s]\nprovider = 'scripted'\nscript = 'script.json'\n";
    let configure =
        |text: &str| std::fs::write(folder.join("config.toml"), format!("{text}\n{models}")).expect("a file");
    std::fs::write(folder.join("script.json"), r#"{"assistants":[{"steps":[{"text":"said"}]}]}"#).expect("a file");
    let check = async |args: &[&str], code: i32, expected: &[&str]| {
        let (got, out, err) = program(folder, args).await;
        assert_eq!(got, Some(code), "{args:?}: {out} {err}");
        for part in expected {
            assert!(out.contains(part) || err.contains(part), "{args:?}, {part}: {out} {err}");
        }
    };
    // By its name in PATH, and by its place beside the configuration.
    configure(
        "default_runner = 'path'\n[runners.path]\ncommand = ['a-runner']\n[runners.one]\ncommand = ['./bin/a-runner']",
    );
    check(&["run", "go", "--assistant", "plain"], 0, &["said"]).await;
    check(&["run", "go", "--assistant", "first", "--json"], 0, &["finished"]).await;
    check(&["run", "go", "--assistant", "own", "--runner", "one"], 0, &["said"]).await;
    check(
        &["run", "go", "--assistant", "own", "--runner", "two"],
        2,
        &["no runner is called `two`; there are: assistant-runner, one, path"],
    )
    .await;
    check(&["run", "go", "--assistant", "none"], 2, &["no runner is called `nowhere`"]).await;
    check(&["spawn", "go", "--assistant", "own", "--runner", "one", "--wait"], 0, &["finished"]).await;
    check(&["ps"], 0, &["[path] go", "[one] go"]).await;
    let listed: Value = serde_json::from_str(&program(folder, &["ps", "--json"]).await.1).expect("JSON");
    let newest = listed["items"][0]["process_id"].as_str().expect("an id").to_owned();
    check(&["logs", &newest], 0, &["starting by the runner one"]).await;
    check(&["resume", &newest, "--query", "more", "--runner", "nope"], 1, &["no runner is called `nope`"]).await;
    check(&["resume", &newest, "--query", "more", "--runner", "path"], 0, &["own"]).await;
    check(&["show", "first"], 0, &["runner          one"]).await;
    let cannot = "these assistants name a runner or a launcher that is not there, and cannot start: gone, none";
    check(&["doctor"], 1, &["path (default) (a-runner): assistant-runner", "one (", "started in", cannot]).await;
    check(&["config", "lint", "--config", "config.toml"], 0, &["0 errors, 0 warnings"]).await;
    check(&["stop", "--force"], 0, &[]).await;
    // What is wrong is told.
    configure(
        "[runners.mute]\ncommand = ['/bin/sh', '-c', 'echo no luck >&2']\n[runners.gone]\ncommand = ['no-such-program']",
    );
    check(
        &["doctor"],
        1,
        &["it ended before it answered `initialize`; it said: no luck", "cannot start no-such-program"],
    )
    .await;
    check(
        &["config", "lint", "--strict", "--config", "config.toml"],
        1,
        &["names no-such-program, and there is no such program here"],
    )
    .await;
    configure("[defaults]\nrunner = 'c'\n[runners.c]\nagent = 'claude'\nprogram = 'no-such-agent'");
    check(
        &["config", "lint", "--strict", "--config", "config.toml"],
        1,
        &["`runners.c.program` names no-such-agent, and there is no such program here"],
    )
    .await;
    check(&["doctor"], 1, &["the agent of the runner c: cannot start no-such-agent"]).await;
    let agent = folder.join("bin/agent");
    conformance::programs::write(&agent, "#!/bin/sh\necho '9.9 (Stand-in)'\n");
    configure("[defaults]\nrunner = 'c'\n[runners.c]\nagent = 'claude'\nprogram = 'agent'\nenv = ['A_KEY']");
    check(&["doctor"], 1, &["c (default) (assistant-runner cli claude --program agent --env A_KEY, 9.9 (Stand-in)): "])
        .await;
    check(&["config", "lint", "--config", "config.toml"], 0, &["0 errors, 0 warnings"]).await;
    configure("default_runner = 'nope'\n[runners.a]\ncommand = []\n[runners.b]\ncommand = ['a-runner']");
    check(&["config", "lint", "--config", "config.toml"], 2, &["`runners.a.command`", "names no program"]).await;
    check(&["list"], 2, &["`runners.a.command` names no program"]).await;
    configure("default_runner = 'nope'\n[runners.b]\ncommand = ['a-runner']");
    check(&["list"], 2, &["no runner is called `nope`; there are: assistant-runner, b"]).await;
}
