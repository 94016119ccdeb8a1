//! One host in the background, many doors: clients and hosts come, go and are killed, and nothing that was answered is
//! lost.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use conformance::doors::{Doors, RawClient, signal, socket, until};
use serde_json::{Value, json};

use crate::HOST;

fn doors() -> Doors {
    Doors::new(HOST, "")
}

fn shaken(doors: &Doors) -> RawClient {
    let mut client = doors.client();
    assert!(client.shake(), "the client is served");
    client
}

fn poll(client: &mut RawClient, spawned: &Value, wait_ms: u32) -> Value {
    let arguments = json!({ "process_id": spawned["process_id"], "wait_ms": wait_ms });
    client.must("poll_assistant", &arguments)["process"].clone()
}

fn until_done(client: &mut RawClient, spawned: &Value) -> Value {
    loop {
        let seen = poll(client, spawned, 5_000);
        if seen["done"] == true {
            return seen;
        }
    }
}

#[test]
fn twenty_clients_at_once_get_one_host() {
    let doors = doors();
    let clients: Vec<RawClient> = (0..20).map(|_| doors.client()).collect();
    let served: Vec<_> = clients
        .into_iter()
        .map(|mut client| {
            std::thread::spawn(move || {
                assert!(client.shake(), "served");
                let result = client.must("spawn_assistant", &json!({ "assistant_id": "quick", "query": "go" }));
                assert!(result["process_id"].is_string());
                client
            })
        })
        .collect();
    let clients: Vec<RawClient> = served.into_iter().map(|one| one.join().expect("a client")).collect();
    // A runner that is being started looks like its host for a moment.
    until("one host", || (doors.hosts().len() == 1).then_some(()));
    let status: Value = serde_json::from_str(&doors.run(&["status", "--json"]).1).expect("JSON");
    assert_eq!(status["host"]["clients"], 20);
    assert!(clients.into_iter().all(|client| client.close() == Some(0)), "all ends are in order");
}

#[test]
fn a_client_finds_the_host_that_was_started_at_the_same_moment() {
    for _ in 0..3 {
        let doors = doors();
        let mut serve = doors.command(&["serve"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
        let mut client = shaken(&doors);
        client.must("list_assistant", &json!({}));
        assert_eq!(client.close(), Some(0));
        // It is the host, or waits to be it.
        serve.kill().expect("killed");
        serve.wait().expect("it ends");
    }
}

#[test]
fn a_run_outlives_its_client_and_its_result_outlives_the_host() {
    let doors = doors();
    let mut first = shaken(&doors);
    let spawned = first.must("spawn_assistant", &json!({ "assistant_id": "waits", "query": "go" }));
    first.kill();
    let mut second = shaken(&doors);
    assert_eq!(poll(&mut second, &spawned, 0)["done"], false, "it runs on without its client");
    second.must("send_message", &json!({ "thread_id": spawned["thread_id"], "message": "go on" }));
    assert_eq!(until_done(&mut second, &spawned)["status"], "finished");
    let host = doors.host_pid().expect("a host");
    signal("9", host.into());
    // The same connection: it finds another host.
    let arguments = json!({ "thread_id": spawned["thread_id"] });
    let read = match second.call("recv_message", &arguments) {
        Some(Err(error)) if error["code"] == "host_lost" => second.must("recv_message", &arguments),
        Some(Ok(read)) => read,
        other => panic!("{other:?}"),
    };
    let last = read["messages"].as_array().and_then(|all| all.last()).expect("a message");
    assert_eq!(last["content"], "it went on", "{read}");
    assert_ne!(doors.host_pid(), Some(host));
}

#[cfg(target_os = "linux")]
#[test]
fn a_host_in_the_background_leaves_little_memory_to_threads_that_ended() {
    let check = |told: Option<&str>, expected: &str| {
        let doors = doors();
        let mut command = doors.command(&["mcp"]);
        told.iter().for_each(|arenas| _ = command.env("MALLOC_ARENA_MAX", arenas));
        let mut client = RawClient::start(command);
        assert!(client.shake());
        let host = doors.host_pid().expect("a host");
        let environment = std::fs::read_to_string(format!("/proc/{host}/environ")).expect("its environment");
        let found = environment.split('\0').find_map(|one| one.strip_prefix("MALLOC_ARENA_MAX="));
        assert_eq!(found, Some(expected), "told {told:?}");
    };
    check(None, "2");
    check(Some("5"), "5");
}

#[test]
fn a_call_in_flight_is_told_when_the_host_is_killed_and_the_client_goes_on() {
    let doors = doors();
    let mut client = shaken(&doors);
    let spawned = client.must("spawn_assistant", &json!({ "assistant_id": "hang", "query": "go" }));
    let arguments = json!({ "process_id": spawned["process_id"], "wait_ms": 20_000, "include_summary": false });
    while poll(&mut client, &spawned, 1_000)["status"] != "running" {}
    let waiting = client.send_call("poll_assistant", &arguments).expect("written");
    // Answered after it was begun: calls are served side by side.
    client.must("list_assistant", &json!({}));
    signal("9", doors.host_pid().expect("a host").into());
    let told = client.called(waiting).expect("an answer").expect_err("an error");
    assert_eq!((&told["code"], &told["retryable"]), (&json!("host_lost"), &json!(true)), "{told}");
    let seen = poll(&mut client, &spawned, 0);
    assert_eq!((&seen["status"], &seen["reason"]), (&json!("failed"), &json!("host_lost")));
    until("no runner is left", || doors.runners().is_empty().then_some(()));
    assert_eq!(client.close(), Some(0));
}

#[test]
fn a_run_that_was_lost_with_its_host_is_resumed_where_it_was() {
    let doors = doors();
    let mut client = shaken(&doors);
    let spawned = client.must("spawn_assistant", &json!({ "assistant_id": "waits", "query": "go" }));
    while poll(&mut client, &spawned, 1_000)["status"] != "waiting" {}
    signal("9", doors.host_pid().expect("a host").into());
    let resume = json!({ "resume_process_id": spawned["process_id"], "run_mode": "sync" });
    let resumed = match client.call("spawn_assistant", &resume) {
        Some(Err(error)) if error["code"] == "host_lost" => client.must("spawn_assistant", &resume),
        Some(Ok(resumed)) => resumed,
        other => panic!("{other:?}"),
    };
    assert_eq!(resumed["result"]["content"], "it went on", "{resumed}");
    let log = client.must("read_log", &json!({ "process_id": resumed["process_id"], "transcript": true })).to_string();
    assert!(log.contains("interrupted: the run ended before this call had a result"), "{log}");
}

#[test]
fn the_host_is_none_of_the_clients_processes() {
    let doors = doors();
    let mut command = doors.command(&["mcp"]);
    command.process_group(0);
    let mut client = RawClient::start(command);
    assert!(client.shake());
    let host = doors.host_pid().expect("a host");
    let stat = std::fs::read_to_string(format!("/proc/{host}/stat")).expect("a process");
    let fields: Vec<&str> = stat.rsplit_once(')').expect("a name").1.split_whitespace().collect();
    let (parent, group, terminal) = (fields[1], fields[2], fields[4]);
    assert_ne!(group, client.child.id().to_string());
    assert_eq!((parent, terminal), ("1", "0"), "no child of the client, and no terminal");
    signal("9", -i64::from(client.child.id()));
    client.child.wait().expect("it ends");
    assert_eq!(doors.host_pid(), Some(host), "it lives on");
}

#[test]
fn the_socket_is_for_its_owner_only_and_a_stale_one_does_no_harm() {
    let doors = doors();
    drop(shaken(&doors));
    let mode = |path: &std::path::Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&socket(&doors.state())), mode(&doors.state().join("door"))), (0o600, 0o700));
    signal("9", doors.host_pid().expect("a host").into());
    assert!(socket(&doors.state()).exists(), "what a killed host leaves");
    drop(shaken(&doors));
    let (code, _, _) = doors.run(&["stop"]);
    assert_eq!(code, Some(0));
    assert!(!socket(&doors.state()).exists(), "what a host that ends in order leaves");
}

#[test]
fn a_path_that_is_too_long_for_a_socket_is_no_hindrance() {
    let doors = doors();
    let state = doors.dir.path().join("a-long-name-".repeat(12));
    let mut command = doors.command(&["mcp"]);
    command.arg("--state").arg(&state);
    // The last one counts.
    let args: Vec<_> = command.get_args().map(std::ffi::OsStr::to_owned).collect();
    let mut long = std::process::Command::new(HOST);
    let at = args.iter().position(|arg| *arg == "--state").expect("named");
    long.args(args.iter().enumerate().filter(|(index, _)| *index != at && *index != at + 1).map(|(_, arg)| arg));
    long.env_clear().env("HOME", doors.dir.path()).env("XDG_RUNTIME_DIR", doors.dir.path());
    let mut client = RawClient::start(long);
    assert!(client.shake(), "served");

    assert_eq!(client.close(), Some(0));
    let mut stop = std::process::Command::new(HOST);
    stop.args(["stop", "--force", "--no-project", "--state"]).arg(&state).env_clear().env("HOME", doors.dir.path());
    assert!(stop.status().expect("it runs").success());
}

/// Says a line to the host's socket and hears one.
fn hello(doors: &Doors, line: &str) -> (UnixStream, String) {
    let mut stream = UnixStream::connect(socket(&doors.state())).expect("a door");
    stream.write_all(line.as_bytes()).expect("written");
    let mut heard = String::new();
    BufReader::new(&stream).read_line(&mut heard).expect("heard");
    (stream, heard)
}

#[test]
fn a_host_of_another_build_is_replaced_when_idle_and_refuses_else() {
    let doors = doors();
    let client = shaken(&doors);
    let other = "{\"want\":\"mcp\",\"version\":\"9.9.9\",\"build\":\"other\",\"pid\":1}\n";
    let (_, refused) = hello(&doors, other);
    assert!(refused.contains("refused") && refused.contains("has version 0.1.0, and this client 9.9.9"), "{refused}");
    let host = doors.host_pid().expect("a host");
    assert_eq!(client.close(), Some(0));
    until("no client is left", || {
        let status: Value = serde_json::from_str(&doors.run(&["status", "--json"]).1).expect("JSON");
        (status["host"]["clients"] == 0).then_some(())
    });
    let (_, ending) = hello(&doors, other);
    assert_eq!(ending, format!("{{\"ending\":{{\"pid\":{host}}}}}\n"));
    until("it has ended", || doors.hosts().is_empty().then_some(()));
}

#[test]
fn strange_greetings_are_refused_and_hurt_nobody() {
    let doors = doors();
    let mut client = shaken(&doors);
    let long = format!("{}\n", "x".repeat(100_000));
    for line in ["GET / HTTP/1.1\r\n", "{}\n", "[]\n", "\n", "{\"want\":\"dance\"}\n", "\u{0}\u{1}\n", &long] {
        let mut stream = UnixStream::connect(socket(&doors.state())).expect("a door");
        // A host that hangs up early is one that refused.
        drop(stream.write_all(line.as_bytes()));
        let mut heard = String::new();
        drop(BufReader::new(&stream).read_line(&mut heard));
        assert_eq!(heard, "", "{line:.20}");
    }
    // Half a line, and gone.
    let mut stream = UnixStream::connect(socket(&doors.state())).expect("a door");
    stream.write_all(b"{\"want\":").expect("written");
    drop(stream);
    client.must("list_assistant", &json!({}));
}

#[test]
fn half_a_line_of_a_client_is_nothing() {
    let doors = doors();
    let mut client = shaken(&doors);
    let line = json!({
        "jsonrpc": "2.0", "id": 77, "method": "tools/call",
        "params": { "name": "spawn_assistant", "arguments": { "assistant_id": "hang", "query": "go" } },
    })
    .to_string();
    assert!(client.write(&line.as_bytes()[..line.len() / 2]));
    assert_eq!(client.close(), Some(0));
    let mut other = shaken(&doors);
    let status: Value = serde_json::from_str(&doors.run(&["status", "--json"]).1).expect("JSON");
    assert_eq!(status["host"]["living"], 0, "nothing was spawned");
    other.must("list_assistant", &json!({}));
}

#[test]
fn a_line_that_is_too_long_is_told_and_the_next_one_served() {
    let doors = doors();
    let mut client = shaken(&doors);
    let line =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\",\"x\":\"{}\"}}\n", "x".repeat(17 * 1024 * 1024));
    assert!(client.write(line.as_bytes()));
    client.must("list_assistant", &json!({}));
}

#[test]
fn an_embedded_host_is_told_and_stop_does_not_reach_it() {
    let doors = doors();
    let mut client = RawClient::start(doors.command(&["mcp", "--embedded"]));
    assert!(client.shake());
    let pid = client.child.id().to_string();
    for (args, words) in [
        (["status"].as_slice(), format!("held by process {pid}, which has no door")),
        (&["stop"], format!("held by process {pid}, which has no door")),
        (&["mcp"], format!("held by another host (process {pid})")),
    ] {
        let (code, stdout, stderr) = doors.run(args);
        assert!(code != Some(0) && stderr.contains(&words) && stdout.is_empty(), "{args:?}: {code:?} {stderr}");
    }
    assert_eq!(client.close(), Some(0));
    drop(shaken(&doors));
}

#[test]
fn a_host_that_nobody_needs_ends_and_one_at_work_stays() {
    let doors = Doors::new(HOST, "[limits]\nhost_idle_ms = 100\nsession_grace_ms = 600000");
    let mut client = shaken(&doors);
    client.must("spawn_assistant", &json!({ "assistant_id": "slow", "query": "go" }));
    assert!(!doors.hosts().is_empty());
    client.kill();
    // It ends, and not before the work is done: what a closing host cuts short is not `finished`.
    until("the host has ended", || doors.hosts().is_empty().then_some(()));
    let log = std::fs::read_to_string(doors.state().join("host.log")).expect("a log");
    // A client that is slow to begin may find that the first one has ended, and starts another.
    let at = |words: &str| log.rfind(words).unwrap_or_else(|| panic!("no `{words}` in {log}"));
    assert!(at("status=finished") < at("the host is closed"), "{log}");
    at("nobody has needed the host");
}

#[test]
fn stop_spares_work_unless_it_is_forced() {
    let doors = doors();
    let mut client = shaken(&doors);
    let spawned = client.must("spawn_assistant", &json!({ "assistant_id": "hang", "query": "go" }));
    let detached = client.must("spawn_assistant", &json!({ "assistant_id": "hang", "query": "go", "detached": true }));
    while poll(&mut client, &detached, 1_000)["status"] != "running" {}
    let (code, _, stderr) = doors.run(&["stop"]);
    assert!(code == Some(1) && stderr.contains("2 assistants are at work"), "{code:?} {stderr}");
    let (code, _, _) = doors.run(&["stop", "--force"]);
    assert_eq!(code, Some(0));
    until("all has ended", || (doors.hosts().is_empty() && doors.runners().is_empty()).then_some(()));
    for (ended, cause) in [(&spawned, "session_ended"), (&detached, "host_closed")] {
        let seen = poll(&mut client, ended, 0);
        assert_eq!((&seen["status"], &seen["cause"]), (&json!("cancelled"), &json!(cause)));
    }
}

#[test]
fn a_key_that_only_the_client_has_is_told_and_no_key_is_ever_logged() {
    let doors = doors();
    let config = "[models.m]\nprovider = \"openai\"\nmodel = \"m\"\napi_key_env = \"THE_KEY\"\n";
    std::fs::write(doors.dir.path().join("config.toml"), config).expect("a file");
    drop(shaken(&doors));
    let host = doors.host_pid();
    let (_first, mut command) = (shaken(&doors), doors.command(&["mcp"]));
    command.env("THE_KEY", "sk-very-secret").stderr(std::process::Stdio::piped());
    let mut client = RawClient::start(command);
    assert!(client.shake());
    assert_eq!(doors.host_pid(), host, "the host stays");
    let asked = json!({ "assistant_id": "quick", "query": "the-query-is-private" });
    let refused = client.call("spawn_assistant", &asked).expect("an answer").expect_err("no model");
    let message = refused["message"].as_str().expect("a message");
    assert_eq!(refused["code"], "no_model");
    for words in ["THE_KEY is set where the client runs", "api_key_file", "host.log"] {
        assert!(message.contains(words), "no `{words}` in {message}");
    }
    drop(client.stdin.take());
    let mut told = String::new();
    std::io::Read::read_to_string(&mut client.child.stderr.take().expect("stderr"), &mut told).expect("text");
    assert!(told.contains("THE_KEY is set here, but the host was started without it"), "{told}");
    let log = std::fs::read_to_string(doors.state().join("host.log")).expect("a log");
    assert!(
        !log.contains("very-secret") && !log.contains("query-is-private") && log.contains("a client came"),
        "{log}"
    );
}

#[test]
fn a_configuration_that_is_wrong_is_told_by_the_client() {
    let doors = doors();
    doors.configure("nonsense = 1");
    let (code, stdout, stderr) = doors.run(&["mcp"]);
    assert!(code == Some(2) && stdout.is_empty() && stderr.contains("unknown field `nonsense`"), "{code:?} {stderr}");
    until("none runs", || doors.hosts().is_empty().then_some(()));
}

/// A short run of the chaos program; `chaos-doors 1000` is the long one.
#[test]
fn chaos_loses_nothing() {
    let chaos = env!("CARGO_BIN_EXE_chaos-doors");
    let output = std::process::Command::new(chaos).args(["60", "1"]).output().expect("it runs");
    let (told, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && told.contains("that were answered are there"), "{told}{said}");
}
