//! From a runner to its host and back over two pipes: our link beside what it cannot be faster than, in one run.
//!
//! The asking side is a process of its own, this program with [`ARGUMENT`], which measures and tells the figures on its
//! stderr. The floors: [`raw`], as many bytes as the text has and nothing else, and [`bare`], the same lines of JSON read
//! and written as the same types, without a runtime, without ids to look up, without bounds. [`peer`] is ours: the host
//! on a runtime of many threads, the runner on one of a single thread, as they are.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use assistant_protocol::methods::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Goal;
use crate::timing::{p50, tell};

pub mod bare;
pub mod peer;
pub mod raw;

mod window;

/// The argument that makes a program the asking side.
pub const ARGUMENT: &str = "--asks";
/// How often each way is measured, the three of them in turn; the middle one is told.
const ROUNDS: usize = 7;
/// Calls before those that count: one to this many.
const FIRST_SHARE: usize = 10;

/// The method: gives back what it is given.
#[derive(Debug, Clone, Copy)]
pub struct Echo;

/// What is sent, and sent back.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Payload {
    /// Any text.
    pub text: String,
}

impl Payload {
    /// Letters, none of which has to be escaped.
    #[must_use]
    pub fn of(bytes: usize) -> Self {
        Self { text: ('a'..='z').cycle().take(bytes).collect() }
    }
}

impl Method for Echo {
    const NAME: &'static str = "echo";
    type Params = Payload;
    type Result = Payload;
}

/// What two processes say to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Raw,
    Bare,
    Peer,
}

impl Way {
    const ALL: [Self; 3] = [Self::Raw, Self::Bare, Self::Peer];

    fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Bare => "bare",
            Self::Peer => "peer",
        }
    }
}

/// How much they say.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Of each text.
    pub bytes: usize,
    /// Calls under way at once.
    pub in_flight: usize,
    /// Calls that are counted.
    pub calls: usize,
}

/// One line of what is told.
struct Case {
    load: Load,
    /// Both processes share one CPU.
    pinned: bool,
    /// Of the time of the bare lines, at most.
    time: Option<f64>,
    /// Of the rate of the bare lines, at least.
    rate: Option<f64>,
}

const fn case(bytes: usize, in_flight: usize, calls: usize) -> Case {
    Case { load: Load { bytes, in_flight, calls }, pinned: false, time: None, rate: None }
}

const CASES: [Case; 8] = [
    Case { pinned: true, time: Some(2.0), ..case(200, 1, 20_000) },
    Case { pinned: true, ..case(200, 64, 100_000) },
    case(200, 1, 20_000),
    Case { rate: Some(0.45), ..case(200, 64, 100_000) },
    case(64 << 10, 1, 2_000),
    case(64 << 10, 64, 4_000),
    Case { time: Some(1.3), ..case(8 << 20, 1, 20) },
    case(8 << 20, 8, 32),
];

/// What the asking side saw.
#[derive(Debug, Clone, Copy)]
struct Figures {
    p50_us: f64,
    per_second: f64,
}

/// Measures each load.
///
/// # Errors
/// In words: the system's, and where an answer is not what was asked.
pub fn measure() -> Result<(), String> {
    for case in &CASES {
        if case.pinned && !cfg!(target_os = "linux") {
            tell("link with both processes on one CPU: left out, as this system does not bind a process to one");
            continue;
        }
        let mut seen: [Vec<Figures>; 3] = Default::default();
        for _ in 0..ROUNDS {
            for (way, seen) in Way::ALL.into_iter().zip(&mut seen) {
                seen.push(run(way, case).map_err(|error| format!("{} at {:?}: {error}", way.name(), case.load))?);
            }
        }
        told(case, seen.map(|all| middle(&all)));
    }
    Ok(())
}

fn middle(all: &[Figures]) -> Figures {
    let of = |figure: fn(&Figures) -> f64| {
        let mut all: Vec<f64> = all.iter().map(figure).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    Figures { p50_us: of(|one| one.p50_us), per_second: of(|one| one.per_second) }
}

/// Of many calls only the rates compare: how long one of them waits is how many the floors let under way.
fn told(case: &Case, [raw, bare, peer]: [Figures; 3]) {
    let Load { bytes, in_flight, .. } = case.load;
    let place = if case.pinned { ", one CPU" } else { "" };
    let (time, rate) = (peer.p50_us / bare.p50_us, peer.per_second / bare.per_second);
    let mut words = format!("link, {}, {in_flight} in flight{place}: ", size(bytes));
    if in_flight == 1 {
        let against = peer.p50_us / raw.p50_us;
        let [peer, bare, raw] = [peer, bare, raw].map(|one| micros(one.p50_us));
        words += &format!("p50 {peer}, {time:.2} × bare lines ({bare}), {against:.1} × raw bytes ({raw}); ");
    }
    let against = peer.per_second / raw.per_second;
    let [peer, bare, raw] = [peer, bare, raw].map(|one| one.per_second);
    words += &format!("{peer:.0} /s, {rate:.2} × bare ({bare:.0} /s), {against:.2} × raw ({raw:.0} /s)");
    words += &case.time.map_or_else(String::new, |most| Goal::AtMost(most, " × bare").judge(time));
    words += &case.rate.map_or_else(String::new, |least| Goal::AtLeast(least, " × bare").judge(rate));
    tell(&words);
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

fn micros(us: f64) -> String {
    if us < 1_000.0 { format!("{us:.1} µs") } else { format!("{:.2} ms", us / 1_000.0) }
}

/// One run, in a thread of its own: what is bound to a CPU stays so, and what it starts is too.
fn run(way: Way, case: &Case) -> Result<Figures, String> {
    let (load, pinned) = (case.load, case.pinned);
    let run = move || {
        if pinned {
            pin()?;
        }
        let me = std::env::current_exe()?;
        let mut asks = Command::new(me)
            .arg(ARGUMENT)
            .arg(way.name())
            .args([load.bytes, load.in_flight, load.calls].map(|number| number.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (Some(to), Some(from), Some(mut told)) = (asks.stdin.take(), asks.stdout.take(), asks.stderr.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        match way {
            Way::Raw => raw::answers(from, to, load.bytes),
            Way::Bare => bare::answers(from, to),
            Way::Peer => peer::answers(from, to),
        }?;
        let mut words = String::new();
        told.read_to_string(&mut words)?;
        Ok((asks.wait()?, words))
    };
    let done: io::Result<_> = std::thread::spawn(run).join().map_err(|_| "it panicked".to_owned())?;
    let (status, words) = done.map_err(|error| error.to_string())?;
    let figures: Vec<f64> = words.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match figures[..] {
        [p50_us, per_second] if status.success() => Ok(Figures { p50_us, per_second }),
        _ => Err(format!("the asking side ended with {status}: {words}")),
    }
}

#[cfg(target_os = "linux")]
fn pin() -> io::Result<()> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let may = sched_getaffinity(None)?;
    let mut one = CpuSet::new();
    // The last of them: the first often has the work of devices.
    (0..CpuSet::MAX_CPU).rev().find(|cpu| may.is_set(*cpu)).into_iter().for_each(|cpu| one.set(cpu));
    Ok(sched_setaffinity(None, &one)?)
}

#[cfg(not(target_os = "linux"))]
fn pin() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The asking side: `WAY BYTES IN_FLIGHT CALLS`.
///
/// # Errors
/// In words: what is wrong with the arguments, the pipes', an answer that does not fit.
pub fn asks(arguments: &[String]) -> Result<(), String> {
    let wrong = || format!("{ARGUMENT} takes WAY BYTES IN_FLIGHT CALLS, not `{}`", arguments.join(" "));
    let [way, numbers @ ..] = arguments else { return Err(wrong()) };
    let way = Way::ALL.into_iter().find(|one| one.name() == way).ok_or_else(wrong)?;
    let numbers: Vec<usize> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
    let &[bytes, in_flight, calls] = numbers.as_slice() else { return Err(wrong()) };
    if in_flight == 0 || calls == 0 {
        return Err(wrong());
    }
    let load = Load { bytes, in_flight, calls };
    let first = Load { calls: calls.div_ceil(FIRST_SHARE), ..load };
    let pipe = |end: io::Result<_>| end.map(File::from).map_err(|error| error.to_string());
    let from = pipe(io::stdin().as_fd().try_clone_to_owned())?;
    let pipes = (from, pipe(io::stdout().as_fd().try_clone_to_owned())?);
    let (times, took) = match way {
        Way::Raw => raw::asks(pipes, [first, load]),
        Way::Bare => bare::asks(pipes, [first, load]),
        Way::Peer => peer::asks(pipes, [first, load]),
    }
    .map_err(|error| error.to_string())?;
    let figures = format!("{} {}", p50(times) * 1_000.0, calls as f64 / took.as_secs_f64());
    io::stderr().write_all(figures.as_bytes()).map_err(|error| error.to_string())
}

/// How long each of the calls that count took, and all of them.
pub type Times = (Vec<Duration>, Duration);

fn differs() -> io::Error {
    io::Error::other("the answer is not what was sent")
}
