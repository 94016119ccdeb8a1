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
pub fn p50(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1_000.0
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
