//! Whether each configured runner starts and speaks the protocol.

use std::sync::Arc;
use std::time::{Duration, Instant};

use assistant_protocol::ids::{ProcessId, ThreadId};
use assistant_protocol::methods::{Initialize, Shutdown};
use assistant_protocol::peer::{CallError, PeerLimits, connect};
use assistant_protocol::service::Service;
use assistant_protocol::types::{
    Empty, HostCapabilities, InitializeParams, MAX_FRAME_BYTES, PROTOCOL_VERSION, Program, RunLimits,
};
use serde::Serialize;
use tokio::io::{AsyncReadExt, copy, sink};
use tokio::process::ChildStderr;
use tokio::time::timeout;

use super::Report;
use crate::cli::open::env;
use crate::config::Config;
use crate::launcher::{self, Launched, RunnerCommand};
use crate::text::{cut, one_line};
use crate::trust;

/// How long a runner that is told to end may take.
const END_WITHIN: Duration = Duration::from_secs(2);
/// What is read of the words of a runner that does not work, bytes.
const SAID_BYTES_MAX: u64 = 4 * 1024;
/// What is told of them, characters.
const SAID_CHARS_MAX: usize = 300;

/// A configured runner.
#[derive(Serialize)]
pub(super) struct Known {
    pub(super) name: String,
    /// Its program and arguments, without secrets.
    pub(super) command: String,
    /// Whether it is that of assistants which name none.
    pub(super) default: bool,
    /// What it says that it is; none where it was not started, or does not work.
    pub(super) told: Option<Program>,
    /// How long it took to answer, milliseconds.
    pub(super) started_ms: Option<u64>,
    pub(super) error: Option<String>,
}

/// Starts each configured runner where `calls`, and ends it.
pub(super) async fn look(report: &mut Report, config: &Config, calls: bool) {
    let runners = match config.runners(&env) {
        Ok(runners) => runners,
        Err(error) => return report.problem(error, "mend the configuration"),
    };
    let within = Duration::from_millis(config.limits.launch_ms);
    for (name, command) in runners {
        let began = Instant::now();
        let tried = if calls { Some(try_out(&command, within).await) } else { None };
        let started_ms = tried.as_ref().map(|_| u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
        let error = tried.as_ref().and_then(|tried| tried.as_ref().err().cloned());
        if let Some(error) = &error {
            let hint = "mend its entry in the configuration, or take it out: assistants that name it do not start";
            report.problem_here(format!("the runner {name}: {error}"), hint);
        }
        report.runners.push(Known {
            default: config.default_runner.as_ref() == Some(&name),
            command: shown(&command),
            told: tried.and_then(Result::ok),
            started_ms,
            error,
            name,
        });
    }
}

fn shown(command: &RunnerCommand) -> String {
    let program = command.program.display().to_string();
    let args = command.args.iter().map(|arg| arg.to_string_lossy().into_owned());
    let words: Vec<String> = std::iter::once(program).chain(args).collect();
    trust::arguments_masked(&words).join(" ")
}

/// Starts a runner, shakes hands, and ends it. Gives what it says that it is.
async fn try_out(command: &RunnerCommand, within: Duration) -> Result<Program, String> {
    let Launched { child, stdin, stdout, stderr } = launcher::launch_apart(command, &std::env::temp_dir())?;
    let said = tokio::spawn(beginning(stderr));
    let service = Service::new(Arc::new(()));
    let (peer, link) = connect(stdout, stdin, service, PeerLimits::for_frames(MAX_FRAME_BYTES));
    let link = tokio::spawn(link);
    let params = InitializeParams {
        protocol_version: PROTOCOL_VERSION,
        process_id: ProcessId::mint(),
        thread_id: ThreadId::mint(),
        host: Program { name: "assistant-host".into(), version: env!("CARGO_PKG_VERSION").into() },
        max_frame_bytes: MAX_FRAME_BYTES,
        capabilities: HostCapabilities::default(),
        limits: RunLimits::default(),
    };
    let answered = timeout(within, peer.call::<Initialize>(&params)).await;
    let asked = if matches!(answered, Ok(Ok(_))) {
        timeout(END_WITHIN, peer.call::<Shutdown>(&Empty {})).await.ok()
    } else {
        None
    };
    peer.close();
    // Its end closes the pipe; that it is killed is the same to it.
    let ended = timeout(END_WITHIN, async { (link.await, child.exited().await) }).await;
    drop(child);
    match answered {
        Ok(Ok(told)) if told.protocol_version != PROTOCOL_VERSION => {
            Err(format!("it speaks version {} of the protocol, this program {PROTOCOL_VERSION}", told.protocol_version))
        }
        Ok(Ok(told)) => match (asked, ended) {
            (Some(Ok(_)), Ok(_)) => Ok(told.runner),
            (Some(Ok(_)), Err(_)) => Err(format!("it does not end within {} s of `shutdown`", END_WITHIN.as_secs())),
            (Some(Err(error)), _) => Err(format!("it answered `shutdown` with an error: {error}")),
            (None, _) => Err(format!("it did not answer `shutdown` within {} s", END_WITHIN.as_secs())),
        },
        Ok(Err(CallError::Closed)) => {
            let said = timeout(END_WITHIN, said).await.ok().and_then(Result::ok).unwrap_or_default();
            let said = if said.is_empty() { String::new() } else { format!("; it said: {said}") };
            Err(format!("it ended before it answered `initialize`{said}"))
        }
        Ok(Err(error)) => Err(format!("it refused `initialize`: {error}")),
        Err(_) => Err(format!("it did not answer `initialize` within {} ms (limit launch_ms)", within.as_millis())),
    }
}

/// The beginning of what a runner says; the rest is read and dropped, so that it never waits for a reader.
async fn beginning(mut stderr: ChildStderr) -> String {
    let mut said = Vec::new();
    // What cannot be read was not said.
    let _ = (&mut stderr).take(SAID_BYTES_MAX).read_to_end(&mut said).await;
    let _ = copy(&mut stderr, &mut sink()).await;
    cut(&one_line(String::from_utf8_lossy(&said).trim()), SAID_CHARS_MAX)
}
