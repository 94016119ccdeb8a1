//! A runner that plays a transcript, against any host: `fake-runner FILE`. `--help` tells the steps, and
//! `tests/transcripts/README.md` how a host is tested with it.

use std::process::ExitCode;

fn main() -> ExitCode {
    conformance::fake_runner::main(std::env::args_os().skip(1).collect())
}
