//! Chaos for doors: clients, pipes and hosts of one state directory are killed at random while they spawn, send and
//! read; then everything that was answered must be there.
//!
//! `cargo build --release -p conformance --bins && target/release/chaos-doors [KILLS] [SEED]`

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use conformance::doors::{Doors, RawClient, signal, until};
use serde_json::{Value, json};

/// Clients that come and go at once.
const WORKERS: u64 = 6;
/// Messages that one thread gets; `recv_message` reads 200 at once.
const MESSAGES_MAX: usize = 150;
/// Between two kills of a host, milliseconds, at most.
const HOST_LIVES_MS: u64 = 400;
/// How often it is looked whether there are two hosts.
const LOOK_EVERY: Duration = Duration::from_millis(10);

fn tell(text: &str) {
    // Nobody reads any more where this fails.
    drop(writeln!(std::io::stdout(), "{text}"));
}

/// A small generator: the same seed gives the same choices.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// What was answered and must be kept.
#[derive(Default)]
struct Ledger {
    /// Spawned processes with their threads.
    spawned: BTreeMap<String, String>,
    /// Messages by thread.
    sent: BTreeMap<String, Vec<String>>,
    /// How a process had ended when it was last looked at.
    ended: BTreeMap<String, Value>,
}

struct Chaos {
    doors: Doors,
    ledger: Mutex<Ledger>,
    kills: AtomicUsize,
    kinds: Mutex<BTreeMap<&'static str, usize>>,
    kills_wanted: usize,
    lost_calls: AtomicU64,
    slowest_ms: AtomicU64,
    done: AtomicBool,
}

impl Chaos {
    fn ledger(&self) -> std::sync::MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn killed(&self, kind: &'static str) {
        self.kills.fetch_add(1, Ordering::Relaxed);
        *self.kinds.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
    }

    fn goes_on(&self) -> bool {
        self.kills.load(Ordering::Relaxed) < self.kills_wanted
    }

    /// A client calls a tool. A call that was lost with its host is no answer.
    fn call(&self, client: &mut RawClient, tool: &str, arguments: &Value) -> Option<Value> {
        let begun = Instant::now();
        let called = client.call(tool, arguments)?;
        self.slowest_ms.fetch_max(u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        match called {
            Ok(value) => Some(value),
            Err(error) => {
                let code = error["code"].as_str().unwrap_or_default();
                // A thread whose process was lost with its host takes no more.
                assert!(["host_lost", "process_ended", "cancelled"].contains(&code), "{tool} {arguments}: {error}");
                self.lost_calls.fetch_add(u64::from(code == "host_lost"), Ordering::Relaxed);
                None
            }
        }
    }

    fn spawn(&self, client: &mut RawClient, assistant: &str) -> Option<(String, String)> {
        let spawned = self.call(client, "spawn_assistant", &json!({ "assistant_id": assistant, "query": "go" }))?;
        let text = |key: &str| spawned[key].as_str().map(str::to_owned);
        let (process, thread) = (text("process_id")?, text("thread_id")?);
        self.ledger().spawned.insert(process.clone(), thread.clone());
        Some((process, thread))
    }

    fn send(&self, client: &mut RawClient, thread: &str) -> Option<()> {
        let sent = self.call(client, "send_message", &json!({ "thread_id": thread, "message": "hear me" }))?;
        let id = sent["message_id"].as_str()?.to_owned();
        self.ledger().sent.entry(thread.to_owned()).or_default().push(id);
        Some(())
    }

    fn look(&self, client: &mut RawClient, process: &str) -> Option<()> {
        let seen = self.call(client, "poll_assistant", &json!({ "process_id": process }))?;
        let seen = &seen["process"];
        if seen["done"] == true {
            let end = json!([seen["status"], seen["reason"], seen["cause"]]);
            let before = self.ledger().ended.insert(process.to_owned(), end.clone());
            assert!(before.is_none_or(|before| before == end), "{process} ended twice");
        }
        Some(())
    }

    /// One client's life: some calls, and a violent end.
    fn live(&self, dice: &mut Dice) {
        let mut client = self.doors.client();
        let hanging = if client.shake() { self.work(&mut client, dice) } else { None };
        match dice.below(6) {
            0 => {
                client.kill();
                self.killed("client killed");
            }
            1 => {
                signal("TERM", client.child.id().into());
                self.killed("client told to end");
            }
            2 => {
                drop(client.stdin.take());
                self.killed("stdin closed");
            }
            3 => {
                // In the middle of a call.
                client.send_call("poll_assistant", &json!({ "process_id": hanging, "wait_ms": 10_000 }));
                client.kill();
                self.killed("client killed in a call");
            }
            4 => {
                client.write(b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/ca");
                client.kill();
                self.killed("client killed in a line");
            }
            _ => {
                let mut command = self.doors.command(&["mcp"]);
                let deaf = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
                let mut deaf = deaf.expect("a client");
                drop(deaf.stdout.take());
                let mut stdin = deaf.stdin.take().expect("stdin");
                // It may be gone before it reads all.
                drop(stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"));
                drop(stdin);
                deaf.wait().expect("it ends");
                self.killed("stdout closed");
            }
        }
    }

    fn work(&self, client: &mut RawClient, dice: &mut Dice) -> Option<String> {
        let (hanging, thread) = self.spawn(client, "hang")?;
        for _ in 0..dice.below(12) {
            match dice.below(4) {
                0 => drop(self.spawn(client, "quick")),
                1 => self.look(client, &hanging).unwrap_or_default(),
                2 => {
                    let some = self.ledger().spawned.keys().next_back().cloned();
                    some.and_then(|process| self.look(client, &process));
                }
                _ => {
                    let sent = self.ledger().sent.get(&thread).map_or(0, Vec::len);
                    if sent < MESSAGES_MAX {
                        self.send(client, &thread);
                    }
                }
            }
        }
        Some(hanging)
    }

    fn kill_hosts(&self, dice: &mut Dice) {
        while self.goes_on() {
            std::thread::park_timeout(Duration::from_millis(20 + dice.below(HOST_LIVES_MS)));
            let Some(pid) = self.doors.host_pid() else { continue };
            let (name, kind) = if dice.below(2) == 0 { ("9", "host killed") } else { ("TERM", "host told to end") };
            signal(name, pid.into());
            self.killed(kind);
        }
    }

    /// Never two processes that have the store open. A look takes a while, in which one may go and another come: two
    /// that are seen in two looks one after the other were there at once.
    fn watch(&self) -> usize {
        let db = self.doors.state().join("assistant-host.db");
        let (mut looks, mut before) = (0, Vec::new());
        while !self.done.load(Ordering::Relaxed) {
            let open = holders(&db);
            let stayed = open.iter().filter(|pid| before.contains(*pid)).count();
            assert!(stayed <= 1, "two hosts have the store open: {open:?}");
            before = open;
            looks += 1;
            std::thread::park_timeout(LOOK_EVERY);
        }
        looks
    }

    /// Everything that was answered is there, as a new client sees it.
    fn check(&self) {
        let mut client = self.doors.client();
        assert!(client.shake(), "the last client is served");
        let ledger = self.ledger();
        for (process, thread) in &ledger.spawned {
            let seen = client.must("poll_assistant", &json!({ "process_id": process }))["process"].clone();
            assert_eq!(seen["thread_id"], **thread);
            if let Some(end) = ledger.ended.get(process) {
                assert_eq!(*end, json!([seen["status"], seen["reason"], seen["cause"]]), "{process} changed its end");
            }
        }
        for (thread, sent) in &ledger.sent {
            let read = client.must("recv_message", &json!({ "thread_id": thread, "last_n": 200 }));
            let ids: Vec<&str> =
                read["messages"].as_array().expect("a list").iter().filter_map(|one| one["id"].as_str()).collect();
            for id in sent {
                assert_eq!(ids.iter().filter(|known| *known == id).count(), 1, "message {id} of {thread} is lost");
            }
        }
    }
}

/// Processes that have a file open.
fn holders(file: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let open = std::fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten();
        if open.filter_map(|fd| std::fs::read_link(fd.path()).ok()).any(|path| path == file) {
            found.push(name);
        }
    }
    // A child that is being started has all that its parent has, for a moment.
    let parents: Vec<Option<String>> = found.iter().map(|pid| parent(pid)).collect();
    let is_child = |at: usize| parents[at].as_ref().is_some_and(|parent| found.contains(parent));
    (0..found.len()).filter(|at| !is_child(*at)).map(|at| found[at].clone()).collect()
}

fn parent(pid: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")).map(|parent| parent.trim().to_owned())
}

fn main() {
    let mut args = std::env::args().skip(1);
    let mut number = |default: u64| args.next().and_then(|arg| arg.parse().ok()).unwrap_or(default);
    let (kills, seed) = (number(1_000), number(u64::from(std::process::id())));
    let host = std::env::current_exe().expect("a program").with_file_name("host-under-test");
    let chaos = Chaos {
        doors: Doors::new(host, "[limits]\nrunning_per_host = 500\n"),
        ledger: Mutex::default(),
        kills: AtomicUsize::new(0),
        kinds: Mutex::default(),
        kills_wanted: usize::try_from(kills).unwrap_or(usize::MAX),
        lost_calls: AtomicU64::new(0),
        slowest_ms: AtomicU64::new(0),
        done: AtomicBool::new(false),
    };
    tell(&format!("{kills} kills, seed {seed}"));
    let begun = Instant::now();
    let looks = std::thread::scope(|scope| {
        let watching = scope.spawn(|| chaos.watch());
        let workers: Vec<_> = (1..=WORKERS)
            .map(|worker| {
                let chaos = &chaos;
                scope.spawn(move || {
                    let mut dice = Dice(seed.wrapping_mul(2).wrapping_add(worker) | 1 << 40);
                    while chaos.goes_on() {
                        chaos.live(&mut dice);
                    }
                })
            })
            .collect();
        chaos.kill_hosts(&mut Dice(seed | 1 << 50));
        workers.into_iter().for_each(|worker| worker.join().expect("a worker goes on"));
        chaos.check();
        let last = chaos.doors.host_pid().expect("a host");
        signal("9", last.into());
        until("no host is left", || chaos.doors.hosts().is_empty().then_some(()));
        until("no runner is left without a host", || chaos.doors.runners().is_empty().then_some(()));
        chaos.done.store(true, Ordering::Relaxed);
        watching.join().expect("never two hosts")
    });
    let (ledger, kinds) = (chaos.ledger(), chaos.kinds.lock().unwrap_or_else(PoisonError::into_inner));
    let sent: usize = ledger.sent.values().map(Vec::len).sum();
    for (kind, count) in kinds.iter() {
        tell(&format!("  {kind}: {count}"));
    }
    tell(&format!(
        "{} kills in {:.0} s: {} spawns and {sent} messages that were answered are there, {} ends stayed as they were told; \
         {} calls were told as lost, the slowest call took {} ms; {looks} looks saw never two hosts; no runner is left",
        chaos.kills.load(Ordering::Relaxed),
        begun.elapsed().as_secs_f64(),
        ledger.spawned.len(),
        ledger.ended.len(),
        chaos.lost_calls.load(Ordering::Relaxed),
        chaos.slowest_ms.load(Ordering::Relaxed),
    ));
}
