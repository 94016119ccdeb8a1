//! Many clients at once over the real door: each sends, polls and waits again and again, and nothing may fail.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::doors::{Doors, Wire, socket};
use crate::timing::{longest, p50, p99};

/// What each client does in turn.
pub const KINDS: [&str; 4] = ["send_message", "poll_assistant", "recv_message", "wait_assistant"];

/// What the clients found.
#[derive(Debug, Default)]
pub struct Found {
    /// How long each call took, by kind.
    pub times: [Vec<Duration>; KINDS.len()],
    /// What went wrong, in words.
    pub errors: Vec<String>,
}

impl Found {
    /// A line for each kind: how many calls there were, and how long they took.
    #[must_use]
    pub fn told(&self) -> Vec<String> {
        let line = |(kind, times): (&&str, &Vec<Duration>)| {
            if times.is_empty() {
                return format!("{kind}: no call");
            }
            let (p50, p99, longest) = (p50(times.clone()), p99(times.clone()), longest(times));
            format!("{kind}: {} calls, p50 {p50:.2} ms, p99 {p99:.2} ms, longest {longest:.1} ms", times.len())
        };
        KINDS.iter().zip(&self.times).map(line).collect()
    }
}

/// A client of the socket of a host that runs.
///
/// # Panics
/// Where there is none, or it does not serve.
#[must_use]
pub fn over_socket(doors: &Doors) -> Wire {
    let status: Value = serde_json::from_str(&doors.run(&["status", "--json"]).1).expect("JSON");
    let mut stream = UnixStream::connect(socket(&doors.state())).expect("a door");
    let hello =
        json!({ "want": "mcp", "version": status["host"]["version"], "build": status["host"]["build"], "pid": 1 });
    stream.write_all(format!("{hello}\n").as_bytes()).expect("written");
    let mut reply = String::new();
    BufReader::new(&stream).read_line(&mut reply).expect("a reply");
    assert!(reply.contains("welcome"), "{reply}");
    let mut wire = Wire::new(stream.try_clone().expect("a stream"), stream);
    assert!(wire.shake(), "served");
    wire
}

/// Serves `clients` clients by the program `host` for `span`. Each has a process of its own that reads what it sends.
///
/// # Panics
/// Where the host cannot be started.
#[must_use]
pub fn run(host: PathBuf, clients: usize, span: Duration) -> Found {
    let limits = format!(
        "[limits]\nrunning_per_host = {clients}\nmodel_calls = {clients}\ntool_calls = 1000000\nturns = 1000000\n"
    );
    let doors = Doors::new(host, &limits);
    let listen = json!({ "thread_id": "{{id_after.thread_id}}", "wait_ms": 600_000, "unread_only": true });
    let again = json!({ "tool_calls": [{ "tool_name": "recv_message", "arguments": listen }] });
    let script = crate::bed::script(&[("waits", json!(vec![again; STEPS]))]);
    std::fs::write(doors.dir.path().join("script.json"), script.to_string()).expect("a file");
    let mut first = doors.client();
    assert!(first.shake(), "served");
    let wires: Vec<Wire> = (0..clients).map(|_| over_socket(&doors)).collect();
    let until = Instant::now() + span;
    let at_work: Vec<_> = wires.into_iter().map(|wire| std::thread::spawn(move || client(wire, until))).collect();
    let mut all = Found::default();
    for one in at_work {
        match one.join() {
            Ok(found) => {
                all.errors.extend(found.errors);
                all.times.iter_mut().zip(found.times).for_each(|(all, times)| all.extend(times));
            }
            Err(_) => all.errors.push("a client was never answered".to_owned()),
        }
    }
    let log = std::fs::read_to_string(doors.state().join("host.log")).unwrap_or_default();
    all.errors.extend(log.lines().filter(|line| line.contains("locked")).map(str::to_owned));
    all
}

/// Messages that a process reads before its script is over; then its client spawns another one.
const STEPS: usize = 200;

fn client(mut wire: Wire, until: Instant) -> Found {
    let mut found = Found::default();
    let mut process = Value::Null;
    let mut round = 0;
    while Instant::now() < until && found.errors.is_empty() {
        if round % (STEPS / 2) == 0 {
            let spawn = json!({ "assistant_id": "waits", "query": "go" });
            match wire.call("spawn_assistant", &spawn) {
                Some(Ok(spawned)) => {
                    if !process.is_null() {
                        let old = json!({ "process_id": process["process_id"] });
                        if let Some(Err(error)) = wire.call("cancel_assistant", &old) {
                            found.errors.push(format!("cancel_assistant: {error}"));
                        }
                    }
                    process = spawned;
                }
                other => found.errors.push(format!("spawn_assistant: {other:?}")),
            }
        }
        round += 1;
        let (id, thread) = (&process["process_id"], &process["thread_id"]);
        let calls = [
            json!({ "thread_id": thread, "message": format!("message {round}") }),
            json!({ "process_id": id }),
            json!({ "thread_id": thread, "last_n": 5 }),
            json!({ "process_ids": [id], "wait_ms": 20 }),
        ];
        for (at, (kind, arguments)) in KINDS.iter().zip(calls).enumerate() {
            let start = Instant::now();
            match wire.call(kind, &arguments) {
                Some(Ok(_)) => found.times[at].push(start.elapsed()),
                Some(Err(error)) => found.errors.push(format!("{kind}: {error}")),
                None => found.errors.push(format!("{kind}: the host has gone")),
            }
        }
    }
    found
}
