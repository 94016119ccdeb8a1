//! The runner program, built with the tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    assistant_runner::main()
}
