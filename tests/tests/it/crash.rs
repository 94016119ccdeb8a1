//! A host that is killed loses nothing that it answered, and leaves nothing running.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use conformance::bed::{Bed, SOON, assistant, running, script};
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::{HOST, RUNNER};

/// The command line of `assistant-host mcp` on a bed, with the script as its model.
pub(crate) fn mcp(bed: &Bed, steps: &Value) -> Command {
    let config = bed.dir.path().join("config.toml");
    let script_file = bed.dir.path().join("script.json");
    std::fs::write(&script_file, steps.to_string()).expect("a file");
    std::fs::write(&config, "default_model = \"s\"\n[models.s]\nprovider = \"scripted\"\nscript = \"script.json\"\n")
        .expect("a file");
    let mut command = Command::new(HOST);
    command.args(["mcp", "--embedded"]).arg("--state").arg(bed.state()).arg("--config").arg(config);
    command.arg("--assistants").arg(bed.dir.path().join("assistants")).arg("--project").arg(bed.project());
    command.stderr(Stdio::inherit()).kill_on_drop(true);
    command
}

pub(crate) type McpClient = RunningService<RoleClient, ()>;

pub(crate) async fn call(client: &McpClient, tool: &'static str, arguments: Value) -> Value {
    let arguments = arguments.as_object().cloned().expect("an object");
    let result = client.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await.expect("an answer");
    result.structured_content.expect("structured content")
}

/// Runners and hosts that have the state directory in their command line or as their folder.
pub(crate) fn runners_of(state: &Path) -> Vec<u32> {
    let mut found = running(state);
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let (Some(pid), Ok(cwd)) = (pid, std::fs::read_link(entry.path().join("cwd")))
            && cwd == state
        {
            found.push(pid);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_9_loses_nothing_and_leaves_nothing() {
    let steps = script(&[("x", json!([{ "hang": true }]))]);
    let bed = Bed::new(RUNNER, &[("x.md", &assistant("x", ""))], &steps);
    let transport = TokioChildProcess::new(mcp(&bed, &steps)).expect("a process");
    let pid = transport.id().expect("a pid");
    let client: McpClient = ().serve(transport).await.expect("a client");
    let mut spawned = Vec::new();
    for number in 0..3 {
        spawned
            .push(call(&client, "spawn_assistant", json!({ "assistant_id": "x", "query": format!("{number}") })).await);
    }
    let mut sent = Vec::new();
    for number in 0..20 {
        let to = &spawned[number % 3]["thread_id"];
        let answer = call(&client, "send_message", json!({ "thread_id": to, "message": format!("m{number}") })).await;
        assert_eq!(answer["success"], true);
        sent.push(answer["message_id"].clone());
    }
    let state = bed.state().canonicalize().expect("the state");
    let begun = Instant::now();
    while runners_of(&state).len() < 4 {
        assert!(begun.elapsed() < SOON, "a host and three runners: {:?}", runners_of(&state));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    let second = bed.try_open().await.err().expect("the state is held").to_string();
    assert!(second.contains(&format!("process {pid}")), "{second}");

    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill");
    assert!(killed.success());
    let begun = Instant::now();
    while !runners_of(&state).is_empty() {
        assert!(begun.elapsed() < SOON, "runners live on: {:?}", runners_of(&state));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(client);

    let client: McpClient =
        ().serve(TokioChildProcess::new(mcp(&bed, &steps)).expect("a process")).await.expect("a client");
    let mut kept = Vec::new();
    for one in &spawned {
        let polled = call(&client, "poll_assistant", json!({ "process_id": one["process_id"] })).await;
        assert_eq!(
            (&polled["process"]["status"], &polled["process"]["reason"]),
            (&json!("failed"), &json!("host_lost")),
            "{polled}"
        );
        let read = call(&client, "recv_message", json!({ "thread_id": one["thread_id"], "last_n": 200 })).await;
        kept.extend(read["messages"].as_array().into_iter().flatten().map(|one| one["id"].clone()));
    }
    assert!(sent.iter().all(|id| kept.contains(id)), "every message that was answered is there");
    client.cancel().await.expect("it ends");
}

/// The kernel tells the session and the group of a program that was put into a container from outside as 0.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stderr, reason = "who runs the tests is told what was left out")]
async fn a_host_whose_session_is_outside_of_its_container_looks_for_strays_without_fault() {
    let contained = || {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--pid", "--fork", "--mount-proc"]).stdin(Stdio::null());
        command
    };
    if !contained().arg("true").status().await.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: no namespace can be made here");
    }
    let steps = script(&[("x", json!([{ "text": "y" }]))]);
    let bed = Bed::new(RUNNER, &[("x.md", &assistant("x", ""))], &steps);
    let host = mcp(&bed, &steps);
    let said = bed.dir.path().join("said");
    let mut command = contained();
    command.arg(host.as_std().get_program()).args(host.as_std().get_args()).kill_on_drop(true);
    let stderr = std::fs::File::create(&said).expect("a file");
    let (transport, _) = TokioChildProcess::builder(command).stderr(stderr).spawn().expect("a process");
    let client: McpClient = ().serve(transport).await.expect("a client");
    let asked = json!({ "assistant_id": "x", "query": "go", "run_mode": "sync" });
    assert_eq!(call(&client, "spawn_assistant", asked).await["status"], "finished");
    client.cancel().await.expect("it ends");
    let said = std::fs::read_to_string(said).expect("what it said");
    assert!(!said.contains("panicked"), "{said}");
}
