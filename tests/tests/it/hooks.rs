//! Hooks of a background host: what they are told and given, and that nothing of them outlives its time.

use std::path::PathBuf;

use conformance::doors::{Doors, signal, until};
use serde_json::{Value, json};

use crate::HOST;

/// A background host that runs `script` when a process ends.
fn doors(script: &str, limits: &str) -> Doors {
    let argv = json!(["sh", "-c", script]);
    let doors = Doors::new(HOST, &format!("[hooks]\non_end = {argv}\n{limits}"));
    // Hooks run in the state directory.
    assert_eq!(doors.run(&["spawn", "--wait", "--assistant", "quick", "the task"]).0, Some(0));
    doors
}

fn file(doors: &Doors, name: &str) -> Option<String> {
    std::fs::read_to_string(doors.state().join(name)).ok().filter(|text| text.ends_with('\n'))
}

/// Whether a process lives; one that nobody has waited for yet does not.
fn lives(pid: &str) -> bool {
    let status = std::fs::read_to_string(PathBuf::from("/proc").join(pid.trim()).join("status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

#[test]
fn a_hook_gets_the_event_and_no_key() {
    let doors = Doors::new(HOST, "[hooks]\non_end = [\"sh\", \"-c\", \"(cat; echo) >> ends; env > env.txt\"]");
    let mut spawn = doors.command(&["spawn", "--json", "--wait", "--assistant", "quick", "the task"]);
    let ran = spawn.env("OPENAI_API_KEY", "secret").env("PATH", "/usr/bin:/bin").output().expect("it runs");
    assert!(ran.status.success(), "{ran:?}");
    let spawned: Value = serde_json::from_slice(ran.stdout.split(|byte| *byte == b'\n').next().expect("a line"))
        .expect("what was spawned");
    let env = until("the environment", || file(&doors, "env.txt"));
    assert!(env.contains("PATH=/usr/bin:/bin") && env.contains("HOME=") && !env.contains("secret"), "{env}");
    // One that ends with its host is told when there is one again.
    let hang: Value =
        serde_json::from_str(doors.run(&["spawn", "--json", "--assistant", "hang", "go"]).1.trim()).expect("JSON");
    let host = doors.host_pid().expect("a host");
    signal("9", host.into());
    assert_eq!(doors.run(&["ps"]).0, Some(0), "another host");
    let ends: Vec<Value> = until("two ends", || {
        let ends: Vec<Value> =
            file(&doors, "ends")?.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        (ends.len() > 1).then_some(ends)
    });
    let told: Vec<Value> = ends
        .iter()
        .map(|end| json!([end["event"], end["process_id"], end["status"], end["reason"], end["result"], end["query"]]))
        .collect();
    let want = [
        json!(["end", spawned["process_id"], "finished", null, "the quick result", "the task"]),
        json!(["end", hang["process_id"], "failed", "host_lost", null, "go"]),
    ];
    assert_eq!(told, want);
}

#[test]
fn a_hook_that_takes_too_long_is_killed_with_all_that_it_started() {
    let doors = doors("sleep 600 & echo $! > pid; echo $$ >> pid; wait", "[limits]\nhook_ms = 5000\n");
    let pids = until("it runs", || file(&doors, "pid").filter(|text| text.lines().count() == 2));
    until("it is killed", || pids.lines().all(|pid| !lives(pid)).then_some(()));
    let log = until("the log tells it", || {
        let log = std::fs::read_to_string(doors.state().join("host.log")).ok()?;
        log.contains("limit hook_ms").then_some(log)
    });
    assert!(log.contains("a hook failed"), "{log}");
}

#[test]
fn a_hook_ends_with_its_host() {
    let doors = doors("sleep 600 & echo $! > pid; echo $$ >> pid; wait", "[limits]\nhook_ms = 600000\n");
    let pids = until("it runs", || file(&doors, "pid").filter(|text| text.lines().count() == 2));
    assert!(pids.lines().all(lives), "{pids}");
    assert_eq!(doors.run(&["stop"]).0, Some(0));
    // What is killed may take a moment to be gone.
    until("nothing of it is left when the host has gone", || (!pids.lines().any(lives)).then_some(()));
}

#[test]
fn a_hook_may_say_much_and_need_not_listen() {
    let doors = doors("exec <&-; head -c 1000000 /dev/zero >&2 && head -c 1000000 /dev/zero && echo > done", "");
    until("it comes to its end", || file(&doors, "done"));
}
