//! The runner program.

use std::process::ExitCode;

fn main() -> ExitCode {
    assistant_runner::main()
}
