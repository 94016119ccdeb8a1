//! The program `assistant-host`.

use std::process::ExitCode;

fn main() -> ExitCode {
    assistant_host::cli::main()
}
