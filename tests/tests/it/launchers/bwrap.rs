//! bubblewrap: what is fenced in reaches no network, writes nowhere else, and sees nothing of the host's own.

use std::path::Path;

use super::*;

const BWRAP: &[&str] = &["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"];

/// What the commands of `x` gave, by the configuration of its launcher; and whether its own probes came through.
async fn probed(launcher: &str, probes: impl Fn(&Bed) -> Vec<(&'static str, String)>) -> Vec<String> {
    // The probes name the bed's folders, so the script is made when these are there.
    let text = assistant("x", "mcp__shell__*, read_file");
    let mut bed = Bed::new(RUNNER, &[("x.md", &text)], &json!({ "assistants": [{ "steps": [{ "text": "none" }] }] }));
    let steps = calls(&probes(&bed));
    bed.set_script(&script(&[("x", steps)]));
    bed.launchers = launchers(&format!("[launchers.there]\n{launcher}\n"));
    bed.servers = shell();
    for file in ["config.toml", "key"] {
        let path = bed.dir.path().join(file);
        std::fs::write(&path, "very-secret").expect("a file");
        bed.private.push(path);
    }
    std::fs::write(bed.project().join("a.txt"), "AAA").expect("a file");
    let client = bed.open().await;
    let (spawned, seen) = run(&client).await;
    assert_eq!((&seen["status"], &seen["launcher"]), (&json!("finished"), &json!("there")), "{seen}");
    let given = given(&client, &spawned).await;
    client.host.close().await;
    given
}

#[tokio::test(flavor = "multi_thread")]
async fn it_reaches_no_network() {
    if !can(BWRAP) {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    for (launcher, expected) in [
        ("preset = \"local\"", "connected"),
        ("preset = \"bwrap\"", "not connected"),
        ("preset = \"bwrap\"\nnetwork = true", "connected"),
    ] {
        let given = probed(launcher, |_| vec![("connect", address.clone())]).await;
        assert!(given[0].starts_with(expected), "{launcher}: {given:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_writes_nowhere_else_and_sees_nothing_of_the_hosts_own() {
    if !can(BWRAP) {
        return;
    }
    let outside = tempfile::Builder::new()
        .prefix("launch")
        .tempdir_in("/var")
        .unwrap_or_else(|_| tempfile::tempdir().expect("a folder"));
    let path = outside.path().display().to_string();
    let probes = |bed: &Bed| {
        let (project, state, dir) = (bed.project(), bed.state(), bed.dir.path());
        let command = |text: String| ("run_command", text);
        vec![
            command(format!("cat {}/a.txt", project.display())),
            command("pwd".to_owned()),
            command(format!("echo B > {}/b.txt", project.display())),
            command(format!("echo B > {path}/b.txt")),
            command(format!("head -c 15 {}/{}", state.display(), assistant_host::store::FILE)),
            command(format!("cat {}/config.toml {}/key", dir.display(), dir.display())),
            command("echo x > /tmp/mine && cat /tmp/mine; find /root /home -mindepth 1; echo .".to_owned()),
            command("ls /proc | grep -c '^[0-9]'".to_owned()),
            command(format!(
                "echo \"$ASSISTANT_PROCESS_ID $ASSISTANT_HOST_DEPTH $TMPDIR\"; test ! -e {}",
                state.display()
            )),
        ]
    };
    for (write, wrote) in [("", "exit status: 2"), ("\nwrite = true", "exit status: 0")] {
        let given = probed(&format!("preset = \"bwrap\"{write}"), probes).await;
        let check = |number: usize, begins: &str, has: &str| {
            let one = &given[number];
            assert!(one.starts_with(begins) && one.contains(has), "{number}: {one}\n{given:#?}");
        };
        check(0, "exit status: 0", "AAA");
        check(1, "exit status: 0", "/project");
        check(2, wrote, "");
        check(3, "exit status: 2", "");
        check(4, "exit status: 1", assistant_host::store::FILE);
        check(5, "exit status: 1", "");
        check(6, "exit status: 0", "x\n");
        // Of the homes only the ways to the runner and to the tool server are there, where they lie in one.
        let homes = given[6].lines().filter(|line| line.starts_with("/root") || line.starts_with("/home"));
        let shown = |line: &str| [RUNNER, SERVER].iter().any(|program| Path::new(program).starts_with(line));
        let others: Vec<&str> = homes.filter(|line| !shown(line)).collect();
        assert!(others.is_empty(), "{others:?} are seen");
        check(8, "exit status: 0", " 1 /tmp");
        assert!(!given.concat().contains("very-secret"), "{given:?}");
        let processes: u32 = given[7].rsplit(": ").next().and_then(|n| n.trim().parse().ok()).expect("a number");
        assert!(processes < 10, "{processes} processes are seen: {given:?}");
    }
    assert!(!outside.path().join("b.txt").exists());
    // The same without a fence shows all that.
    let given = probed("preset = \"local\"", probes).await;
    assert!(given[4].contains("SQLite format 3"), "{given:?}");
    assert!(given[5].contains("very-secret") && given[3].starts_with("exit status: 0"), "{given:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_hidden_cannot_be_moved_to_where_it_is_seen() {
    if !can(BWRAP) {
        return;
    }
    let read = |path: &str| json!({ "tool_name": "read_file", "arguments": { "path": path } });
    let text = assistant("x", "mcp__shell__*, read_file");
    let mut bed = Bed::new(RUNNER, &[("x.md", &text)], &json!({ "assistants": [{ "steps": [{ "text": "none" }] }] }));
    let keys = bed.project().join("var/deep/keys");
    std::fs::create_dir_all(&keys).expect("a folder");
    std::fs::write(keys.join("key"), "very-secret").expect("a file");
    std::fs::write(keys.join("other"), "OTHER").expect("a file");
    bed.private = vec![keys.join("key")];
    let project = bed.project().display().to_string();
    let command = |text: String| json!({ "tool_name": "shell__run_command", "arguments": { "text": text } });
    let moved =
        |from: &str, to: &str| command(format!("cd {project}; mv {from} {to}; cat {to}/keys/key {to}/key; ls {to}"));
    let steps: Vec<Value> = [
        moved("var/deep/keys", "var/deep/k"),
        moved("var/deep", "var/d"),
        moved("var", "v"),
        command(format!("cd {project}; cat var/deep/keys/*; mv var/deep/keys/other o && echo new > var/deep/n; ls")),
        // Elsewhere it is copied, which nobody can with what is hidden.
        moved("var/deep/keys", "k"),
        read("var/deep/k/key"),
        read("k/key"),
        read("var/d/keys/key"),
        read("v/deep/keys/key"),
        read("o"),
    ]
    .into_iter()
    .map(|call| json!({ "tool_calls": [call] }))
    .chain([json!({ "text": "done" })])
    .collect();
    bed.set_script(&script(&[("x", Value::Array(steps))]));
    bed.launchers = launchers("[launchers.there]\npreset = \"bwrap\"\nwrite = true\n");
    bed.servers = shell();
    let client = bed.open().await;
    let (spawned, seen) = run(&client).await;
    assert_eq!(seen["status"], "finished", "{seen}");
    let given = given(&client, &spawned).await;
    client.host.close().await;
    assert!(!given.concat().contains("very-secret"), "{given:?}");
    assert!(given[..3].iter().all(|one| one.contains("busy")), "{given:#?}");
    assert!(given[3].contains("OTHER") && given[9].contains("OTHER"), "{given:#?}");
    assert!(keys.join("key").exists() && bed.project().join("var/deep/n").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_for_is_bound() {
    if !can(BWRAP) {
        return;
    }
    let (shown, bound) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    std::fs::write(shown.path().join("a"), "shown-a").expect("a file");
    let (read, write) = (shown.path().display(), bound.path().display());
    let launcher = format!(
        "preset = \"bwrap\"\nbind = [\"{write}\"]\nbind_read = [\"{read}\"]\nenv = [\"PATH\", \"LAUNCH_NONE\"]"
    );
    let probe = format!("cat {read}/a; echo b > {write}/b; echo c > {read}/c || echo refused");
    let given = probed(&launcher, |_| vec![("run_command", probe.clone())]).await;
    assert!(given[0].contains("shown-a") && given[0].contains("refused"), "{given:?}");
    assert_eq!(std::fs::read_to_string(bound.path().join("b")).expect("written"), "b\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_told() {
    if !can(BWRAP) {
        return;
    }
    let check = async |launcher: &str, words: &[&str]| {
        let bed = bed(launcher, "", json!([{ "text": "done" }]));
        let client = bed.open().await;
        let (_, seen) = run(&client).await;
        assert_eq!((&seen["status"], &seen["reason"]), (&json!("failed"), &json!("launch_failed")), "{seen}");
        let error = seen["error"].as_str().unwrap_or_default();
        assert!(words.iter().all(|part| error.contains(part)), "{launcher}: {error}");
        client.host.close().await;
    };
    check(
        "preset = \"bwrap\"\nbind = [\"/no/such\"]",
        &["the launcher `there`: `bind` names /no/such, which is not there"],
    )
    .await;
    check(
        "preset = \"bwrap\"\noptions = [\"--no-such-option\"]",
        &["the launcher `there`: the runner exited with 1", "it said: bwrap: Unknown option --no-such-option"],
    )
    .await;
}
