//! What the measuring programs share: times of one piece of work, and where they are told.

use std::io::Write;
use std::time::{Duration, Instant};

/// Writes a line to stdout.
pub fn tell(text: &str) {
    // Nobody reads any more where this fails.
    drop(writeln!(std::io::stdout(), "{text}"));
}

/// The middle one of some times, milliseconds.
///
/// # Panics
/// Where there are none.
#[must_use]
pub fn p50(times: Vec<Duration>) -> f64 {
    percentile(times, 50)
}

/// The time that 99 of 100 do not pass, milliseconds.
///
/// # Panics
/// Where there are none.
#[must_use]
pub fn p99(times: Vec<Duration>) -> f64 {
    percentile(times, 99)
}

/// The longest of some times, milliseconds; 0 where there are none.
#[must_use]
pub fn longest(times: &[Duration]) -> f64 {
    times.iter().max().map_or(0.0, |time| time.as_secs_f64() * 1_000.0)
}

fn percentile(mut times: Vec<Duration>, percent: usize) -> f64 {
    times.sort();
    times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1_000.0
}

/// The memory of a process, its share of what it has in common with others (PSS), in KiB; 0 where it cannot be told.
#[must_use]
pub fn pss_kib(pid: u32) -> u64 {
    rollup_kib(pid, "Pss:")
}

/// The same without what are pages of files, which the system takes back where it needs them.
#[must_use]
pub fn own_kib(pid: u32) -> u64 {
    rollup_kib(pid, "Pss_Anon:")
}

fn rollup_kib(pid: u32, line: &str) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find_map(|text| text.strip_prefix(line));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// The middle time of work that is done again and again, milliseconds.
pub fn timed(rounds: usize, mut work: impl FnMut()) -> f64 {
    let one = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    p50((0..rounds).map(one).collect())
}

/// Writes a line to stderr.
pub fn complain(text: &str) {
    // Nobody reads any more where this fails.
    drop(writeln!(std::io::stderr(), "{text}"));
}
