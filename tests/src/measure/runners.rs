//! Runners by themselves: memory while they wait for the model, and how fast they start, beside a static C program that
//! says as much; and what a large heap of whoever starts them costs.
//!
//! They are started as the host starts them: in a group of their own, without an environment, on pipes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Goal, runs};
use crate::timing::{p50, pss_kib, tell};

const CROWDS: [usize; 3] = [1, 100, 1_000];
/// Launches whose middle is told.
const ROUNDS: usize = 200;
/// How often a host is opened with a small and with a large heap.
const HOST_ROUNDS: usize = 3;
/// Threads that start a crowd.
const THREADS: usize = 8;
/// Of the large heap.
const HEAP_BYTES: usize = 1 << 30;
/// Two pipes each, and some to spare.
const FILES: u64 = 2 * 1_000 + 100;
/// The floor: reads, asks, reads on.
const C_SOURCE: &str = r#"
#include <unistd.h>
static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"on_llm_request\",\"params\":{}}\n";
int main(void) {
    static char bytes[4096];
    if (read(0, bytes, sizeof bytes) <= 0 || write(1, line, sizeof line - 1) < 0) return 1;
    while (read(0, bytes, sizeof bytes) > 0) {}
    return 0;
}
"#;

struct Program {
    name: &'static str,
    path: PathBuf,
    /// Whether the goals are for it.
    ours: bool,
}

/// How a process is made.
#[derive(Clone, Copy)]
enum By {
    /// As the host does it: the child shares the memory until it is another program.
    Spawn,
    /// The child gets a copy of the page tables first.
    Fork,
}

/// A runner that waits for the model.
struct Idle {
    child: Child,
    /// Open, so that the runner can write.
    _stdout: BufReader<ChildStdout>,
}

/// Measures `runner`, the small build of it where it is there, and the floor.
///
/// # Errors
/// In words: the system's.
pub async fn measure(runner: &Path) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut programs = Vec::new();
    match floor(folder.path()) {
        Ok(path) => programs.push(Program { name: "static C", path, ours: false }),
        Err(why) => tell(&format!("the floor, a static C program, is left out: {why}")),
    }
    programs.push(Program { name: "runner-under-test", path: runner.to_owned(), ours: true });
    let small = runner.ancestors().nth(2).map(|target| target.join("runner").join("assistant-runner"));
    match small.filter(|small| small.is_file()) {
        Some(path) => programs.push(Program { name: "assistant-runner, small", path, ours: true }),
        None => tell("the small runner is left out: cargo build -p assistant-runner --profile runner"),
    }
    raise_files()?;
    let fails = |error: io::Error| error.to_string();
    crowds(&programs).map_err(fails)?;
    let alone = starts(&programs, By::Spawn).map_err(fails)?;
    let heap = large_heap()?;
    let beside = starts(&programs, By::Spawn).map_err(fails)?;
    let forked = starts(&programs, By::Fork).map_err(fails)?;
    for (at, program) in programs.iter().enumerate() {
        let goal = if program.ours { Goal::AtMost(1.0, " ms").judge(alone[at]) } else { String::new() };
        tell(&format!(
            "{}: launch to its first request, p50: {:.2} ms, {:.1} × {}{goal}; with 1 GiB on the heap of whoever starts \
             it: {:.2} ms, by fork {:.2} ms",
            program.name,
            alone[at],
            alone[at] / alone[0],
            programs[0].name,
            beside[at],
            forked[at]
        ));
    }
    drop(heap);
    through_a_host(runner).await
}

/// With a large heap and without, in turn, as a row of the store takes longer at times.
async fn through_a_host(runner: &Path) -> Result<(), String> {
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for _ in 0..HOST_ROUNDS {
        small.extend(runs::first_requests(runner).await.1);
        let heap = large_heap()?;
        large.extend(runs::first_requests(runner).await.1);
        drop(heap);
    }
    let [small, large] = [small, large].map(p50);
    tell(&format!(
        "spawn_assistant to the first model request, p50: {small:.2} ms; with 1 GiB on the heap of the host: {large:.2} ms"
    ));
    Ok(())
}

/// Memory that was written to, page by page.
fn large_heap() -> Result<Vec<u8>, String> {
    let mut heap = Vec::new();
    heap.try_reserve_exact(HEAP_BYTES).map_err(|error| error.to_string())?;
    heap.resize(HEAP_BYTES, 1);
    Ok(heap)
}

/// Compiles the floor.
fn floor(folder: &Path) -> Result<PathBuf, String> {
    let (source, program) = (folder.join("floor.c"), folder.join("floor"));
    std::fs::write(&source, C_SOURCE).map_err(|error| error.to_string())?;
    let compiled = Command::new("cc").args(["-O2", "-static", "-s", "-o"]).arg(&program).arg(&source).output();
    let compiled = compiled.map_err(|error| format!("cc: {error}"))?;
    if !compiled.status.success() {
        return Err(format!("cc: {}", String::from_utf8_lossy(&compiled.stderr)));
    }
    // Its pages are clean only once they are written.
    File::open(&program).and_then(|file| file.sync_all()).map_err(|error| error.to_string())?;
    Ok(program)
}

fn raise_files() -> Result<(), String> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= FILES) {
        return Ok(());
    }
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(FILES), maximum });
    raised.map_err(|error| format!("{FILES} files have to be open at once (`ulimit -n`): {error}"))
}

/// What a host says first, all at once.
fn greeting() -> String {
    let id = "0193a5c0-7c1a-7b52-9d3e-4f1f0a6b7c01";
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocol_version": 1, "process_id": id, "thread_id": id, "host": { "name": "measure", "version": "1" },
        "max_frame_bytes": 1 << 26, "capabilities": {}, "limits": { "turns": 50, "tool_calls": 500, "wall_ms": 1_800_000 },
    } });
    let run = json!({ "jsonrpc": "2.0", "id": 2, "method": "run", "params": {
        "assistant": { "id": "x", "name": "x", "system_prompt": "You are x." }, "query": "q", "tools": [],
    } });
    format!("{initialize}\n{run}\n")
}

/// Starts a runner and waits until it asks the model.
fn launch(program: &Program, by: By) -> io::Result<Idle> {
    let mut command = Command::new(&program.path);
    command.env_clear().process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    if matches!(by, By::Fork) {
        // Its own: but a process with another user is made by fork.
        command.uid(rustix::process::getuid().as_raw());
    }
    let mut child = command.spawn()?;
    let (Some(stdin), Some(stdout)) = (child.stdin.as_mut(), child.stdout.take()) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    stdin.write_all(greeting().as_bytes())?;
    let mut stdout = BufReader::with_capacity(1 << 10, stdout);
    let mut line = String::new();
    while !line.contains("\"on_llm_request\"") {
        line.clear();
        if stdout.read_line(&mut line)? == 0 {
            let status = child.wait()?;
            return Err(io::Error::other(format!("{} ended before it asked the model: {status}", program.name)));
        }
    }
    Ok(Idle { child, _stdout: stdout })
}

impl Idle {
    fn end(mut self) -> io::Result<()> {
        drop(self.child.stdin.take());
        self.child.wait().map(drop)
    }
}

/// The middle time from a launch to the first request of each program, milliseconds, in turn.
fn starts(programs: &[Program], by: By) -> io::Result<Vec<f64>> {
    let mut times: Vec<Vec<Duration>> = programs.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for (program, times) in programs.iter().zip(&mut times) {
            let start = Instant::now();
            let idle = launch(program, by)?;
            times.push(start.elapsed());
            idle.end()?;
        }
    }
    Ok(times.into_iter().map(p50).collect())
}

/// Memory of each crowd of each program, and how fast it was there.
fn crowds(programs: &[Program]) -> io::Result<()> {
    for count in CROWDS {
        let mut floor = None;
        for program in programs {
            let start = Instant::now();
            let all = crowd(program, count)?;
            let rate = count as f64 / start.elapsed().as_secs_f64();
            let kib: u64 = all.iter().map(|one| pss_kib(one.child.id())).sum();
            for one in all {
                one.end()?;
            }
            told(program, count, (kib as f64, rate), *floor.get_or_insert((kib as f64, rate)), programs[0].name);
        }
    }
    Ok(())
}

fn crowd(program: &Program, count: usize) -> io::Result<Vec<Idle>> {
    let share = |thread: usize| count / THREADS + usize::from(thread < count % THREADS);
    thread::scope(|scope| {
        let start =
            |thread| move || (0..share(thread)).map(|_| launch(program, By::Spawn)).collect::<io::Result<Vec<_>>>();
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(start(thread))).collect();
        let mut all = Vec::new();
        for thread in threads {
            all.extend(thread.join().map_err(|_| io::Error::other("a thread that starts runners panicked"))??);
        }
        Ok(all)
    })
}

fn told(program: &Program, count: usize, (kib, rate): (f64, f64), (floor_kib, floor_rate): (f64, f64), floor: &str) {
    let (mut memory_goal, mut rate_goal) = (String::new(), String::new());
    if program.ours && count == 1_000 {
        memory_goal = Goal::AtMost(200.0, " MB").judge(kib / 1_024.0);
        rate_goal = Goal::AtLeast(900.0, "/s").judge(rate);
    }
    let started = if count == 1 {
        String::new()
    } else {
        format!("; {rate:.0} started a second, {:.2} × ({floor_rate:.0} /s){rate_goal}", rate / floor_rate)
    };
    tell(&format!(
        "{}, {count} waiting for the model: {:.1} MB (PSS), {:.0} KiB each, {:.1} × {floor} ({:.1} MB){memory_goal}{started}",
        program.name,
        kib / 1_024.0,
        kib / count as f64,
        kib / floor_kib,
        floor_kib / 1_024.0
    ));
}
