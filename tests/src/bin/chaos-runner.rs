//! A runner of a round of chaos: mostly the real one, and sometimes one that behaves badly. Linked beside the host as
//! `assistant-runner`; which one it is, and how bad, comes from the round's seed in `../chaos.json`.
//!
//! What a bad one does between two steps: lines that are no messages, floods of them, floods on stderr, half a line, an
//! exit, deafness, calls with a foreign thread, calls that it gives up or repeats, answers twice and to nobody.

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    conformance::chaos::runner_main()
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    // Chaos kills with signals.
    ExitCode::from(2)
}
