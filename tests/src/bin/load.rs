//! Many clients at once: `cargo build --release -p conformance --bins && target/release/load [SECONDS]`, 60 if left out.
//!
//! 64 clients of one background host send, poll and wait as fast as they are answered. It tells how long each kind of call
//! took, and what went wrong: nothing may.

use std::process::ExitCode;
use std::time::Duration;

use conformance::load;
use conformance::measure::beside;
use conformance::timing::tell;

const CLIENTS: usize = 64;
const SECONDS: u64 = 60;

fn main() -> ExitCode {
    let seconds = match std::env::args().nth(1).map(|text| text.parse()) {
        None => SECONDS,
        Some(Ok(seconds)) => seconds,
        Some(Err(_)) => {
            tell("load takes a number of seconds");
            return ExitCode::from(2);
        }
    };
    let host = match beside("host-under-test") {
        Ok(host) => host,
        Err(error) => {
            tell(&error);
            return ExitCode::FAILURE;
        }
    };
    let found = load::run(host, CLIENTS, Duration::from_secs(seconds));
    for line in found.told().iter().chain(found.errors.iter().take(20)) {
        tell(line);
    }
    tell(&format!("{CLIENTS} clients, {seconds} s, {} errors", found.errors.len()));
    if found.errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
