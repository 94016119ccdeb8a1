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
use crate::runners::Runner;
use crate::text::{cut, one_line};
use crate::trust;

/// How long a runner that is told to end may take.
const END_WITHIN: Duration = Duration::from_secs(2);
/// What is read of the words of a runner that does not work, bytes.
const SAID_BYTES_MAX: u64 = 4 * 1024;
/// What is told of them, characters.
const SAID_CHARS_MAX: usize = 300;
/// What is told of an agent that has no such argument.
const NO_VERSION: &str = "tells no version";
/// How long the program of an agent may take to tell its version.
const VERSION_WITHIN: Duration = Duration::from_secs(15);

/// A configured runner.
#[derive(Serialize)]
pub(super) struct Known {
    pub(super) name: String,
    /// Its program and arguments, without secrets.
    pub(super) command: String,
    /// Whether it is that of assistants which name none.
    pub(super) default: bool,
    /// What the program of its agent says of its version; none where it was not asked, or has no agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<String>,
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
    let own = crate::cli::open::runner().await.ok();
    for (name, runner) in runners {
        let agent = if calls && runner.is_agent() { Some(program_of(&runner).await) } else { None };
        if let Some(Err(error)) = &agent {
            let hint =
                "install it, or name its program in the configuration: assistants that name this runner do not start";
            report.problem_here(format!("the agent of the runner {name}: {error}"), hint);
        }
        let began = Instant::now();
        let tried = if calls { Some(tried(&runner, own.as_ref(), within).await) } else { None };
        let started_ms = tried.as_ref().map(|_| u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
        let error = tried.as_ref().and_then(|tried| tried.as_ref().err().cloned());
        if let Some(error) = &error {
            let hint = "mend its entry in the configuration, or take it out: assistants that name it do not start";
            report.problem_here(format!("the runner {name}: {error}"), hint);
        }
        report.runners.push(Known {
            default: config.default_runner.as_ref() == Some(&name),
            command: shown(&runner),
            agent: agent.and_then(Result::ok),
            told: tried.and_then(Result::ok),
            started_ms,
            error,
            name,
        });
    }
}

fn shown(runner: &Runner) -> String {
    // An adapter is told by what it adapts.
    let command = runner.command(&RunnerCommand::new(crate::runners::OWN));
    let program = command.program.display().to_string();
    let args = command.args.iter().map(|arg| arg.to_string_lossy().into_owned());
    let words: Vec<String> = std::iter::once(program).chain(args).collect();
    trust::arguments_masked(&words).join(" ")
}

/// Asks the program of an agent for its version: one line, cut.
async fn program_of(runner: &Runner) -> Result<String, String> {
    let program = runner.program();
    let command = RunnerCommand { program: program.to_owned(), args: vec!["--version".into()] };
    let Launched { child, stdin, mut stdout, stderr } =
        launcher::launch_passing(&command, &runner.passes(), &std::env::temp_dir())?;
    drop((stdin, stderr));
    let said = async {
        let mut said = Vec::new();
        let read = (&mut stdout).take(SAID_BYTES_MAX).read_to_end(&mut said).await;
        // What it says beyond that is not waited for.
        drop(stdout);
        read.map(|_| String::from_utf8_lossy(&said).trim().to_owned())
    };
    let (said, ended) = timeout(VERSION_WITHIN, async { (said.await, child.exited().await) })
        .await
        .map_err(|_| format!("{} --version took longer than {} s", program.display(), VERSION_WITHIN.as_secs()))?;
    let said = said.map_err(|error| format!("{} --version cannot be read: {error}", program.display()))?;
    match ended {
        Ok(status) if status.success() && !said.is_empty() => {
            Ok(cut(&one_line(said.lines().next().unwrap_or_default()), SAID_CHARS_MAX))
        }
        // The protocol knows no such argument: it has started, and that is all that can be said.
        Ok(_) if runner.is_acp() => Ok(NO_VERSION.to_owned()),
        Ok(status) => {
            Err(format!("{} --version tells none, and exits with {}", program.display(), launcher::code(status)))
        }
        Err(error) => Err(format!("{} --version: {error}", program.display())),
    }
}

/// Starts a runner, and tries it out.
async fn tried(runner: &Runner, own: Option<&RunnerCommand>, within: Duration) -> Result<Program, String> {
    let own = own.ok_or("there is no runner of this program's own")?;
    let (command, passes) = (runner.command(own), runner.passes());
    try_out(launcher::launch_passing(&command, &passes, &std::env::temp_dir())?, within).await
}

/// Shakes hands with a runner, and ends it. Gives what it says that it is.
pub(super) async fn try_out(launched: Launched, within: Duration) -> Result<Program, String> {
    let Launched { child, stdin, stdout, stderr } = launched;
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
