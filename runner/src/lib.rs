//! One running assistant. It holds no key and opens no file: every model call and every tool call goes to the host
//! that started it, as JSON lines over stdin and stdout (see `assistant_protocol`). In reading order:
//!
//! * [`main`]: what the program does with its arguments and its pipes;
//! * `stdio`: the pipes, kept clean, before anything else;
//! * [`agent`]: the loop: ask the model, run tools, until there is an answer;
//! * `conversation`: what was said so far, always in a shape that a model can be asked with;
//! * `calls`: the tool calls of one answer of the model.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use assistant_protocol::peer::{LinkEnd, LinkReport};

mod stdio;

pub mod agent;

mod conversation;

mod calls;

/// The program: serves the host that started it until stdin ends or the host has asked for `shutdown`.
///
/// Exit codes: 0 where the link ended in order, 1 where it broke, 2 for arguments that it does not know.
pub fn main() -> ExitCode {
    main_with(std::env::args_os().skip(1))
}

/// The same with arguments given, program name left out: for programs that can act as the runner.
///
/// To be called before the process has other threads, as it moves the descriptors of stdin and stdout.
pub fn main_with(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    match args.as_slice() {
        [] => {}
        [one] if one == "--build-id" => return say(assistant_protocol::BUILD_ID),
        [one] if one == "--version" => return say(concat!("assistant-runner ", env!("CARGO_PKG_VERSION"))),
        [first] | [_, first, ..] => {
            complain(&format!(
                "assistant-runner takes `--build-id`, `--version` or nothing, not `{}`",
                first.display()
            ));
            return ExitCode::from(2);
        }
    }
    match serve() {
        Ok(LinkReport { end: LinkEnd::Eof | LinkEnd::Closed, .. }) => ExitCode::SUCCESS,
        Ok(LinkReport { end, .. }) => {
            complain(&format!("the link to the host broke: {end:?}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            complain(&format!("assistant-runner cannot use its pipes: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<LinkReport> {
    let kept = stdio::keep()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let report = runtime.block_on(async {
        let pipes = stdio::open(kept)?;
        let report = agent::serve(pipes.reader, pipes.writer).await;
        pipes.written.wait().await;
        Ok(report)
    });
    // Nobody waits for a thread that waits for stdin, where that is no pipe.
    runtime.shutdown_background();
    report
}

/// Writes to stdout, which is not the protocol's then.
fn say(line: &str) -> ExitCode {
    match writeln!(io::stdout(), "{line}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Writes to stderr. Where that is closed there is nobody to tell, and the exit code tells the same.
fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
