//! What the doors cost: `cargo build --release -p conformance --bins && target/release/measure-doors`.
//!
//! The same call of the same tool through each door, as a multiple of the call without any; the start of a client with
//! and without a host, as a multiple of the bare start of the same program; memory.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use conformance::bed::{Bed, assistant, script};
use conformance::doors::{Doors, RawClient, Wire, signal, until};
use conformance::load::over_socket;
use conformance::timing::{p50, pss_kib, tell, timed};
use rmcp::model::CallToolRequestParams;
use serde_json::{Value, json};

const ROUNDS: usize = 1_000;
const STARTS: usize = 20;
const CLIENTS_AT_ONCE: usize = 20;

/// A process that has ended, to be polled.
fn ended(client: &mut Wire) -> Value {
    let spawned =
        client.must("spawn_assistant", &json!({ "assistant_id": "quick", "query": "go", "run_mode": "sync" }));
    json!({ "process_id": spawned["process_id"] })
}

fn polls(client: &mut Wire) -> f64 {
    let process = ended(client);
    timed(ROUNDS, || drop(client.must("poll_assistant", &process)))
}

/// Poll in this process: without a door, and through the typed channel.
async fn in_process(runner: PathBuf) -> (f64, f64) {
    let bed = Bed::new(runner, &[("x.md", &assistant("x", ""))], &script(&[("x", json!([{ "text": "done" }]))]));
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    client.end(&spawned).await;
    let process = json!({ "process_id": spawned["process_id"] });
    let (mut bare, mut typed) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        client.call("poll_assistant", process.clone()).await;
        bare.push(start.elapsed());
    }
    let door = client.host.connect_in_process("local").await.expect("a client");
    for _ in 0..ROUNDS {
        let arguments = process.as_object().cloned().unwrap_or_default();
        let start = Instant::now();
        door.call_tool(CallToolRequestParams::new("poll_assistant").with_arguments(arguments)).await.expect("polled");
        typed.push(start.elapsed());
    }
    door.cancel().await.expect("it ends");
    client.host.close().await;
    (p50(bare), p50(typed))
}

/// A client started, and its handshake answered, milliseconds; it is ended afterwards.
fn first_answer(doors: &Doors) -> Duration {
    let start = Instant::now();
    let mut client = doors.client();
    assert!(client.shake(), "served");
    start.elapsed()
}

fn end_the_host(doors: &Doors) {
    assert_eq!(doors.run(&["stop", "--force"]).0, Some(0));
}

fn beside(name: &str) -> PathBuf {
    let me = std::env::current_exe().expect("a program");
    me.with_file_name(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

fn bare_start(program: &Path) -> f64 {
    timed(STARTS, || {
        let mut command = std::process::Command::new(program);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).env_clear();
        assert!(command.status().expect("it runs").success());
    })
}

fn main() {
    let host = beside("host-under-test");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let (bare, typed) = runtime.block_on(in_process(beside("runner-under-test")));
    let doors = Doors::new(&host, "");
    let mut embedded = RawClient::start(doors.command(&["mcp", "--embedded"]));
    assert!(embedded.shake(), "served");
    let stdio = polls(&mut embedded);
    assert_eq!(embedded.close(), Some(0));
    let mut client = doors.client();
    assert!(client.shake(), "served");
    let pipe = polls(&mut client);
    let over_socket = polls(&mut over_socket(&doors));
    tell(&format!("poll_assistant without a door: p50 {bare:.3} ms"));
    for (door, time) in [
        ("in-process", typed),
        ("stdio, embedded", stdio),
        ("socket", over_socket),
        ("stdio, pipe to the socket", pipe),
    ] {
        tell(&format!("  {door}: {time:.3} ms, {:.1} times that", time / bare));
    }
    let (pipe_kib, host_kib) = (pss_kib(client.child.id()), pss_kib(doors.host_pid().expect("a host")));
    tell(&format!(
        "memory (PSS): pipe {pipe_kib} KiB, host with one client that has done {ROUNDS} calls {host_kib} KiB"
    ));
    drop(client);
    end_the_host(&doors);

    let floor = bare_start(&host);
    first_answer(&doors);
    let idle = doors.host_pid().expect("a host");
    until("it is idle", || (!doors.run(&["status"]).1.contains("clients  1")).then_some(()));
    tell(&format!("memory (PSS) of the idle host: {} KiB", pss_kib(idle)));
    let warm = p50((0..STARTS).map(|_| first_answer(&doors)).collect());
    let cold = p50((0..STARTS)
        .map(|_| {
            end_the_host(&doors);
            first_answer(&doors)
        })
        .collect());
    let killed = p50((0..STARTS)
        .map(|_| {
            signal("9", doors.host_pid().expect("a host").into());
            first_answer(&doors)
        })
        .collect());
    tell(&format!("start of the program alone: p50 {floor:.2} ms"));
    for (what, time) in [
        ("mcp to its first answer, host running", warm),
        ("mcp to its first answer, no host", cold),
        ("mcp to its first answer, host just killed", killed),
    ] {
        tell(&format!("  {what}: {time:.1} ms, {:.1} times that", time / floor));
    }
    end_the_host(&doors);

    let fresh = Doors::new(&host, "");
    let start = Instant::now();
    let clients: Vec<RawClient> = (0..CLIENTS_AT_ONCE).map(|_| fresh.client()).collect();
    let served: Vec<_> = clients
        .into_iter()
        .map(|mut client| {
            std::thread::spawn(move || {
                assert!(client.shake(), "served");
                (start.elapsed(), client)
            })
        })
        .collect();
    let served: Vec<(Duration, RawClient)> = served.into_iter().map(|one| one.join().expect("served")).collect();
    let slowest = served.iter().map(|(time, _)| *time).max().unwrap_or_default();
    tell(&format!(
        "{CLIENTS_AT_ONCE} clients at once on an empty state directory: {} host, the slowest first answer after {:.0} ms",
        fresh.hosts().len(),
        slowest.as_secs_f64() * 1_000.0
    ));
}
