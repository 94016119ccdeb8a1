//! The host program, built with the tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    assistant_host::cli::main()
}
