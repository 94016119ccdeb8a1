//! The modes of the program by which it is the runner of an agent, by their first argument.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use crate::adapter::Agent;
use crate::adapter::own::Own;
#[cfg(target_os = "linux")]
use crate::adapter::{guard, sweep};
use crate::{acp, cli, complain};

/// The mode that runs a command-line agent.
const CLI: &str = "cli";
/// The mode that runs an agent of the Agent Client Protocol.
const ACP: &str = "acp";
/// The exit code for arguments that make no sense.
const USAGE: u8 = 2;

/// What a mode is started with: the edge where the environment is read.
pub(crate) struct Started {
    /// How this program is started again.
    pub(crate) own: Own,
    /// The whole environment.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// The folder for temporary files.
    pub(crate) temporary: std::path::PathBuf,
}

/// Whether an argument is a mode.
pub(crate) fn is_one(mode: &OsStr) -> bool {
    let internal: &[&str] = &[
        #[cfg(target_os = "linux")]
        guard::GUARD,
        #[cfg(target_os = "linux")]
        guard::GUARDED,
    ];
    mode == CLI || mode == ACP || internal.iter().any(|name| mode == *name)
}

/// Runs a mode with its arguments; `given` are all that the runner was given.
pub(crate) fn main(mode: &OsStr, args: &[OsString], given: &[OsString]) -> ExitCode {
    let own = match Own::new(std::env::args_os(), given) {
        Ok(own) => own,
        Err(error) => {
            complain(&format!("assistant-runner does not find itself: {error}"));
            return ExitCode::FAILURE;
        }
    };
    #[cfg(target_os = "linux")]
    {
        if mode == guard::GUARD {
            return guard::guard(&own, args);
        }
        if mode == guard::GUARDED {
            return guard::guarded(args);
        }
    }
    #[cfg(target_os = "linux")]
    let own = Own { adopts: sweep::adopt(), ..own };
    let started = Started { own, env: std::env::vars_os().collect(), temporary: std::env::temp_dir() };
    if mode == ACP { serve(acp::agent(args, started)) } else { serve(cli::agent(args, started)) }
}

/// Serves the host as an agent, by its name; or says why there is none.
fn serve<A: Agent>(agent: Result<(A, String), String>) -> ExitCode {
    match agent {
        Ok((agent, name)) => {
            crate::ended(crate::serve(|reader, writer| crate::adapter::serve(reader, writer, agent, name)))
        }
        Err(message) => {
            complain(&message);
            ExitCode::from(USAGE)
        }
    }
}
