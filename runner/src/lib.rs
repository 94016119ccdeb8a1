//! One running assistant, which speaks with the host that started it in JSON lines over stdin and stdout (see
//! `assistant_protocol`). Without arguments it is a loop that holds no key and opens no file: every model call and every tool
//! call goes to the host. With the name of an agent it runs that, which has its own login, model and tools and works with the
//! files of its folder; the calls that are not its own go to the host all the same. In reading order:
//!
//! * [`main`]: what the program does with its arguments and its pipes;
//! * `stdio`: the pipes, kept clean, before anything else;
//! * [`agent`]: the loop: ask the model, run tools, until there is an answer;
//! * `conversation`: what was said so far, always in a shape that a model can be asked with;
//! * `calls`: the tool calls of one answer of the model;
//! * [`adapter`] (feature `adapters`): runs an agent that has its own model and tools, in place of that loop; `modes`: the
//!   arguments for it; `cli`: command-line agents; `acp`: agents of the Agent Client Protocol;
//! * `bridge`: what such an agent starts to get the tools of its assistant.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use assistant_protocol::peer::{LinkEnd, LinkReport};

mod stdio;

pub mod agent;

mod conversation;

mod calls;

#[cfg(all(feature = "adapters", unix))]
pub mod adapter;

#[cfg(all(feature = "adapters", unix))]
mod cli;

#[cfg(all(feature = "adapters", unix))]
mod acp;

#[cfg(all(feature = "adapters", unix))]
mod modes;

#[cfg(feature = "adapters")]
mod bridge;

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
        #[cfg(feature = "adapters")]
        [one] if one == bridge::ARGUMENT => return bridge::main(&bridge_place()),
        [one] if one == "--version" => return say(concat!("assistant-runner ", env!("CARGO_PKG_VERSION"))),
        #[cfg(all(feature = "adapters", unix))]
        [mode, rest @ ..] if modes::is_one(mode) => return modes::main(mode, rest, &args),
        [first] | [_, first, ..] => {
            complain(&format!("assistant-runner takes {TAKES} or nothing, not `{}`", first.display()));
            return ExitCode::from(2);
        }
    }
    ended(serve(agent::serve))
}

/// What the program takes.
#[cfg(all(feature = "adapters", unix))]
const TAKES: &str = "`cli`, `acp`, `bridge`, `--build-id`, `--version`";
#[cfg(not(all(feature = "adapters", unix)))]
const TAKES: &str = "`--build-id`, `--version`";

/// How the program ends, by how its link ended.
fn ended(report: io::Result<LinkReport>) -> ExitCode {
    match report {
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

/// Serves the host over stdin and stdout by `service`.
fn serve<F>(service: impl FnOnce(stdio::Reader, stdio::Writer) -> F) -> io::Result<LinkReport>
where
    F: Future<Output = LinkReport>,
{
    let kept = stdio::keep()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(async {
        let pipes = stdio::open(kept)?;
        let report = service(pipes.reader, pipes.writer).await;
        pipes.written.wait().await;
        Ok(report)
    });
    // Nobody waits for a thread that waits for stdin, where that is no pipe.
    runtime.shutdown_background();
    report
}

/// Where the adapter is, as it told the agent that has started this program.
#[cfg(feature = "adapters")]
fn bridge_place() -> bridge::Place {
    bridge::Place { socket: std::env::var_os(bridge::SOCKET), token: std::env::var_os(bridge::TOKEN) }
}

/// Writes to stdout, which is not the protocol's then.
fn say(line: &str) -> ExitCode {
    match writeln!(io::stdout(), "{line}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Writes to stderr. Where that is closed there is nobody to tell, and the exit code tells the same.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
