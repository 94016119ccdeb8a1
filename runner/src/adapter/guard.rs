//! The guard of an agent (Linux): a small process between the adapter and the agent, so that nothing of the agent is left,
//! whoever is killed.
//!
//! * The adapter dies: the guard is told by the system, and kills all that the agent has started.
//! * The agent ends: the guard kills what it has left, and exits with its code.
//! * The guard dies: the agent dies with it, as the system is told to, and the adapter takes on and kills what it has left.
//!
//! The agent is started by a second step of this program, which asks the system to end it with the guard and then becomes
//! the agent. The death of a parent is that of the thread that started the child, so both have one thread.
//!
//! SIGINT to the guard is passed on to the agent's group; SIGTERM kills everything.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process_group, set_parent_process_death_signal, wait,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use tokio::process::Child;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use super::own::Own;
use super::sweep;

/// The mode of this program that is a guard: `guard PARENT PROGRAM ARGS…`.
pub(crate) const GUARD: &str = "guard";
/// The mode of this program that becomes the agent: `guarded PARENT PROGRAM ARGS…`.
pub(crate) const GUARDED: &str = "guarded";
/// The exit code where the parent is gone already.
const NOBODY: u8 = 125;
/// The exit code where the agent cannot be started.
pub(crate) const NOT_STARTED: u8 = 126;
/// What is added to the number of a signal that ended the agent.
pub(crate) const SIGNALLED: i32 = 128;

/// Guards an agent until it has ended.
pub(crate) fn guard(own: &Own, args: &[OsString]) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&error),
    };
    match runtime.block_on(watch(own, args)) {
        Ok(code) => code,
        Err(error) => refuse(&error),
    }
}

async fn watch(own: &Own, args: &[OsString]) -> io::Result<ExitCode> {
    // First what is done at a signal, then who sends it.
    let (mut end, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    sweep::adopt();
    if !die_with(args.first(), Signal::TERM)? {
        return Ok(ExitCode::from(NOBODY));
    }
    let mut command = own.command();
    command.arg(GUARDED).arg(getpid().as_raw_nonzero().to_string()).args(args.iter().skip(1)).process_group(0);
    let mut agent = tokio::process::Command::from(command).spawn()?;
    let group = agent.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let_go_of_pipes()?;
    let status = loop {
        tokio::select! {
            biased;
            _ = end.recv() => break None,
            status = agent.wait() => break Some(status?),
            _ = interrupt.recv() => tell(group, Signal::INT),
        }
    };
    tell(group, Signal::KILL);
    Ok(ExitCode::from(ended(status, agent)))
}

/// Ends what is left, and tells how the agent ended.
fn ended(status: Option<ExitStatus>, agent: Child) -> u8 {
    // Its own end is waited for below, too.
    drop(agent);
    sweep::end_all_below();
    let killed = SIGNALLED + Signal::KILL.as_raw();
    u8::try_from(status.map_or(killed, code)).unwrap_or(u8::MAX)
}

/// Ends what a killed guard has left to this program, within so long: what the system has not ended by then is left alone, and
/// with it what is started later. So it is where the future is dropped.
///
/// # Errors
/// The system does not tell of ends.
pub(crate) async fn sweep_behind(within: Duration) -> io::Result<()> {
    let mut ends = signal(SignalKind::child())?;
    let sweep = async {
        loop {
            sweep::kill_all_below();
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => _ = ends.recv().await,
                // No child is left.
                Err(_) => return,
            }
        }
    };
    // What is left is left.
    let _ = timeout(within, sweep).await;
    Ok(())
}

fn code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().or_else(|| status.signal().map(|signal| SIGNALLED + signal)).unwrap_or(1)
}

fn tell(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // It may be gone.
        let _ = kill_process_group(group, signal);
    }
}

/// The agent alone holds its pipes: whoever reads them sees its end.
fn let_go_of_pipes() -> io::Result<()> {
    let nothing = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    dup2_stdin(nothing.as_fd())?;
    dup2_stdout(nothing.as_fd())?;
    Ok(dup2_stderr(nothing.as_fd())?)
}

/// Has the system send `signal` when the parent dies; false where it is dead already.
fn die_with(parent: Option<&OsString>, signal: Signal) -> io::Result<bool> {
    set_parent_process_death_signal(Some(signal))?;
    let told = parent.and_then(|parent| parent.to_str()?.parse().ok()).and_then(Pid::from_raw);
    Ok(told.is_some() && getppid() == told)
}

/// Becomes the agent, which ends when its guard does.
pub(crate) fn guarded(args: &[OsString]) -> ExitCode {
    let [parent, program, args @ ..] = args else {
        return refuse(&io::Error::new(io::ErrorKind::InvalidInput, "no program to start"));
    };
    match die_with(Some(parent), Signal::KILL) {
        Ok(true) => refuse(&Command::new(program).args(args).exec()),
        Ok(false) => ExitCode::from(NOBODY),
        Err(error) => refuse(&error),
    }
}

fn refuse(error: &io::Error) -> ExitCode {
    crate::complain(&format!("the agent cannot be started: {error}"));
    ExitCode::from(NOT_STARTED)
}
