//! How a launcher is named: by a definition, by whoever spawns, by the default; and what is said where there is none.

use super::*;

fn named_bed() -> Bed {
    let plain = |name: &str| conformance::bed::assistant(name, "spawn_assistant, read_file");
    let with = |name: &str, launcher: &str| {
        plain(name).replace("\ntools:", &format!("\nlauncher: {launcher}\nallowed_callers: [all]\ntools:"))
    };
    let files = [
        ("plain.md", plain("plain")),
        ("fenced.md", with("fenced", "one")),
        ("open.md", with("open", "open")),
        ("out.md", with("out", "local")),
        ("none.md", with("none", "nowhere")),
        ("far.md", with("far", "far")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let child = json!({ "assistant_id": "{{task}}", "query": "child", "run_mode": "sync" });
    let spawns = json!([
        { "tool_calls": [{ "tool_name": "spawn_assistant", "arguments": child }] },
        { "text": "{{result}}" },
    ]);
    let model = json!({ "assistants": [
        { "when": { "last_user": "child" }, "steps": [{ "text": "done" }] },
        { "when": { "last_user": "go" }, "steps": [{ "text": "done" }] },
        { "steps": spawns },
    ] });
    let mut bed = Bed::new(RUNNER, &files, &model);
    bed.launchers = launchers(
        "[launchers.one]\nargv = ['env', '{runner}']\n[launchers.open]\npreset = 'local'\n\
         [launchers.far]\nargv = ['env', '{runner}']\nfiles = 'elsewhere'\nrunner = '/no/such/runner'\ndir = '/far'",
    );
    bed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_has_the_launcher_that_is_named_and_a_resumed_one_keeps_it() {
    let mut bed = named_bed();
    let check = async |client: &Client, arguments: Value, expected: Value| {
        let spawned = client.call("spawn_assistant", arguments.clone()).await;
        let seen = client.end(&spawned).await;
        assert_eq!((&seen["status"], &seen["launcher"]), (&json!("finished"), &expected), "{arguments}: {seen}");
        spawned["process_id"].clone()
    };
    let of = |id: &str| json!({ "assistant_id": id, "query": "go" });
    let again = |process: &Value| json!({ "resume_process_id": process, "query": "go" });
    let client = bed.open().await;
    check(&client, of("plain"), Value::Null).await;
    check(&client, of("out"), Value::Null).await;
    let fenced = check(&client, of("fenced"), json!("one")).await;
    check(&client, again(&fenced), json!("one")).await;
    client.host.close().await;
    drop(client);
    bed.default_launcher = Some("one".to_owned());
    let client = bed.open().await;
    let plain = check(&client, of("plain"), json!("one")).await;
    check(&client, of("open"), json!("open")).await;
    client.host.close().await;
    drop(client);
    bed.default_launcher = None;
    let client = bed.open().await;
    check(&client, again(&plain), json!("one")).await;
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_fenced_in_spawns_inside_its_fence() {
    let bed = named_bed();
    let client = bed.open().await;
    for (child, expected) in [("plain", json!("one")), ("fenced", json!("one")), ("open", json!("open"))] {
        let spawned = client.spawn("fenced", child).await;
        let seen = client.end(&spawned).await;
        assert_eq!(seen["status"], "finished", "{child}: {seen}");
        let listed = client.call("list_process", json!({})).await;
        let items = listed["items"].as_array().expect("a list");
        let found = items.iter().find(|one| one["parent_process_id"] == spawned["process_id"]);
        assert_eq!(found.map(|one| &one["launcher"]), Some(&expected), "{child}: {listed}");
    }
    // It cannot take itself out.
    let spawned = client.spawn("fenced", "out").await;
    let seen = client.end(&spawned).await;
    let told = client.mail(&spawned).await.concat();
    assert!(told.contains("no_launcher") && told.contains("take it out of the launcher `one`"), "{seen}: {told}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_name_is_told_with_those_that_there_are() {
    let mut bed = named_bed();
    let check = async |client: &Client, arguments: Value, message: &str| {
        let error = client.try_call("spawn_assistant", arguments.clone()).await.expect_err("refused");
        let said = error["message"].as_str().unwrap_or_default();
        assert!(error["code"] == "no_launcher" && said.contains(message), "{arguments}: {error}");
    };
    let client = bed.open().await;
    let of = |id: &str| json!({ "assistant_id": id, "query": "go" });
    check(&client, of("none"), "none.md): no launcher is called `nowhere`; there are: local, far, one, open").await;
    let spawned = client.spawn("fenced", "go").await;
    client.end(&spawned).await;
    client.host.close().await;
    drop(client);
    // It was configured when it ran.
    let one = bed.launchers.remove("one");
    let client = bed.open().await;
    check(&client, json!({ "resume_process_id": spawned["process_id"], "query": "go" }), "no launcher is called `one`")
        .await;
    client.host.close().await;
    drop(client);
    bed.launchers.extend(one.map(|one| ("one".to_owned(), one)));
    bed.default_launcher = Some("one".to_owned());
    let client = bed.open().await;
    check(&client, of("out"), "`local` would take it out of the launcher `one`").await;
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_works_elsewhere_has_no_tools_that_read_here() {
    let bed = named_bed();
    let client = bed.open().await;
    let asked = json!({ "assistant_id": "far", "query": "go", "working_dir": "a b/c" });
    let spawned = client.call("spawn_assistant", asked).await;
    let lacks = spawned["unavailable_tools"].to_string();
    assert!(lacks.contains("read_file") && lacks.contains("the files of another machine"), "{spawned}");
    let seen = client.end(&spawned).await;
    let error = seen["error"].as_str().unwrap_or_default();
    // Its runner is started where that is over there.
    assert!(seen["reason"] == "launch_failed" && error.contains("/no/such/runner"), "{seen}");
    let process = client.host.process(spawned["process_id"].as_str().expect("an id").parse().expect("an id")).await;
    let row = process.expect("the store").expect("a process");
    assert_eq!((row.working_dir.as_deref(), row.tools.contains(&"read_file".to_owned())), (Some("/far/a b/c"), false));
    let error = client
        .try_call("spawn_assistant", json!({ "assistant_id": "far", "query": "go", "working_dir": "/etc" }))
        .await
        .expect_err("refused");
    assert!(error["code"] == "bad_argument" && error.to_string().contains("lies outside"), "{error}");
    client.host.close().await;
}
