//! What a launcher has started ends with its process, and with a host that is killed.

use rmcp::ServiceExt;
use rmcp::transport::TokioChildProcess;
use tokio::io::{AsyncBufReadExt, BufReader};

use super::*;
use crate::crash::{McpClient, call, mcp};

/// A host in a process of its own, with a launcher `there`.
pub(super) fn host(bed: &Bed, steps: &Value, launcher: &str) -> tokio::process::Command {
    let command = mcp(bed, steps);
    let config = bed.dir.path().join("config.toml");
    let text = std::fs::read_to_string(&config).expect("a configuration");
    std::fs::write(&config, format!("{text}\n[launchers.there]\n{launcher}\n")).expect("a file");
    command
}

/// A program under a launcher that heeds neither the end of its stdin nor a request.
const DEAF: &str = "#!/bin/sh\ntrap '' HUP INT TERM\nwhile :; do sleep 1000; done\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_dies_with_its_host_whatever_is_in_it() {
    if !can(&["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]) {
        return;
    }
    let steps = script(&[("x", json!([{ "hang": true }])), ("deaf", json!([{ "hang": true }]))]);
    let deaf = assistant("deaf", "").replace("\ntools:", "\nrunner: deaf\ntools:");
    let bed = Bed::new(RUNNER, &[("x.md", &assistant("x", "")), ("deaf.md", &deaf)], &steps);
    let script_file = bed.dir.path().join("deaf.sh");
    std::fs::write(&script_file, DEAF).expect("a file");
    let runner = format!("preset = \"bwrap\"\n[runners.deaf]\ncommand = [\"/bin/sh\", {}]", json!(script_file));
    let transport = TokioChildProcess::new(host(&bed, &steps, &runner)).expect("a process");
    let pid = transport.id().expect("a pid");
    let client: McpClient = ().serve(transport).await.expect("a client");
    let mut marks = Vec::new();
    for (id, status) in [("x", "running"), ("deaf", "starting")] {
        let spawned = call(&client, "spawn_assistant", json!({ "assistant_id": id, "query": "go" })).await;
        let process = spawned["process_id"].as_str().expect("an id").to_owned();
        let begun = Instant::now();
        loop {
            let now = call(&client, "poll_assistant", json!({ "process_id": process })).await;
            if now["process"]["status"] == status && with_environment(&process).len() >= 3 {
                break;
            }
            assert!(begun.elapsed() < SOON && now["process"]["done"] == false, "{now}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        marks.push(process);
    }
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill");
    assert!(killed.success());
    for process in &marks {
        until_none("processes in a sandbox", || with_environment(process)).await;
    }
    drop(client);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_process_has_elsewhere_is_ended_by_its_kill() {
    // It gets away, as a pod does, and is known by its name only.
    let bin = Bin::new(&[
        (
            "far",
            "setsid sh -c 'echo $$ > \"$0\"; exec sleep 1000' \"$1.pid\" >/dev/null 2>&1 </dev/null & shift; exec \"$@\"",
        ),
        ("kill-far", "echo \"$1\" >> \"$0.log\"; kill -9 $(cat \"$1.pid\")"),
    ]);
    let dir = bin.0.path().display();
    let launcher = format!(
        "argv = [\"{dir}/far\", \"{dir}/{{name}}\", \"env\", \"{{env}}\", \"{{runner}}\"]\nkill = [\"{dir}/kill-far\", \"{dir}/{{name}}\"]"
    );
    let mut bed = bed(&launcher, "", json!([{ "hang": true }]));
    bed.limits.shutdown_ms = 100;
    // One that stays: what has left its group by then is not killed with it.
    let stays = ("sleep".into(), vec!["1000".into()]);
    bed.runner = assistant_host::launcher::RunnerCommand { program: stays.0, args: stays.1 };
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    let process = spawned["process_id"].as_str().expect("an id").to_owned();
    let pid_file = bin.path(&format!("assistant-{process}.pid"));
    let begun = Instant::now();
    while !pid_file.exists() {
        let now = client.call("poll_assistant", json!({ "process_id": process })).await;
        assert!(begun.elapsed() < SOON && now["process"]["done"] == false, "it starts: {now}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    client.call("cancel_assistant", json!({ "process_id": process })).await;
    client.end(&spawned).await;
    client.host.close().await;
    let ended = std::fs::read_to_string(bin.path("kill-far.log")).expect("it was ended");
    assert_eq!(ended.lines().count(), 1, "{ended}");
    until_none("what it had elsewhere", || conformance::bed::running(&pid_file)).await;
}

/// Three processes under a launcher that notes what it is told to end, whose host was killed; and the names that they have there.
async fn left_by_a_dead_host() -> (Bed, Bin, String, Vec<String>) {
    let bin = Bin::new(&[("far", "exec \"$@\""), ("kill-far", "echo \"$1\" >> \"$0.log\"")]);
    let dir = bin.0.path().display();
    let launcher =
        format!("argv = [\"{dir}/far\", \"{{runner}}\"]\nkill = [\"{dir}/kill-far\", \"{{name}}\"]\nlaunch_ms = 20000");
    let steps = script(&[("x", json!([{ "hang": true }]))]);
    let bed = Bed::new(RUNNER, &[("x.md", &assistant("x", ""))], &steps);
    let transport = TokioChildProcess::new(host(&bed, &steps, &launcher)).expect("a process");
    let pid = transport.id().expect("a pid");
    let client: McpClient = ().serve(transport).await.expect("a client");
    let mut spawned = Vec::new();
    for _ in 0..3 {
        let one = call(&client, "spawn_assistant", json!({ "assistant_id": "x", "query": "go" })).await;
        spawned.push(format!("assistant-{}", one["process_id"].as_str().expect("an id")));
    }
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill").success());
    until_none("runners", || crate::crash::runners_of(&bed.state().canonicalize().expect("the state"))).await;
    drop(client);
    assert!(!bin.path("kill-far.log").exists(), "nobody was there to do it");
    spawned.sort_unstable();
    (bed, bin, launcher, spawned)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_host_has_elsewhere_is_ended_by_the_next() {
    let (mut bed, bin, launcher, spawned) = left_by_a_dead_host().await;
    bed.launchers = launchers(&format!("[launchers.there]\n{launcher}"));
    let client = bed.open().await;
    // It waits for what it ends.
    client.host.close().await;
    let told = std::fs::read_to_string(bin.path("kill-far.log")).expect("they were ended");
    let mut ended: Vec<&str> = told.lines().collect();
    ended.sort_unstable();
    assert_eq!(ended, spawned);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_next_host_cannot_end_is_told() {
    let (bed, _bin, _, spawned) = left_by_a_dead_host().await;
    // Its launcher is not configured any more.
    let mut next = mcp(&bed, &script(&[("x", json!([{ "hang": true }]))]));
    next.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut next = next.spawn().expect("a process");
    let mut lines = BufReader::new(next.stderr.take().expect("piped")).lines();
    let (mut told, mut other) = (Vec::new(), String::new());
    while told.len() < spawned.len() {
        let line = tokio::time::timeout(SOON, lines.next_line()).await.expect("in time").expect("read");
        let line = line.unwrap_or_else(|| panic!("no more behind {other}"));
        if line.contains("what a killed runner has left elsewhere may live on") {
            assert!(line.contains("there"), "{line}");
            let of = spawned.iter().find(|name| line.contains(name.trim_start_matches("assistant-")));
            told.push(of.expect("one of them").clone());
        } else {
            other += &line;
        }
    }
    told.sort_unstable();
    assert_eq!(told, spawned);
}
