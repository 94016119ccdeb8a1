//! Linux: the child is the guard, which has the agent below it.

use std::process::{Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, kill_process};
use tokio::process::Child;

use super::super::guard::{GUARD, SIGNALLED, sweep_behind};
use super::{Launch, Own};

/// How long what a killed guard has left may take to be gone, in milliseconds.
const SWEPT_MS: u64 = 1_000;
/// The largest number of a signal.
const SIGNAL_MAX: i32 = 64;

/// The guard is in a group of its own: who ends the group of the adapter does not end the guard.
pub(super) fn command(own: &Own, launch: &Launch) -> Command {
    use std::os::unix::process::CommandExt;
    let mut command = own.command();
    command.arg(GUARD).arg(getpid().as_raw_nonzero().to_string()).arg(&launch.program).args(&launch.args);
    command.process_group(0);
    command
}

pub(super) fn interrupt(guard: &Child) {
    tell(guard, Signal::INT);
}

pub(super) fn kill(guard: &mut Child) {
    tell(guard, Signal::TERM);
}

fn tell(guard: &Child, signal: Signal) {
    let pid = guard.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // It is not waited for yet, so the number is still its own.
        let _ = kill_process(pid, signal);
    }
}

/// A guard that was killed has left what it guarded: it is below this program now.
pub(super) async fn sweep(own: &Own, status: ExitStatus) {
    if own.adopts && status.code().is_none() {
        // An error tells that the system has no more signals to give: the next sweep may find what is left.
        let _ = sweep_behind(Duration::from_millis(SWEPT_MS)).await;
    }
}

/// How the agent ended, as its guard tells.
pub(super) fn code(status: ExitStatus) -> (Option<i32>, Option<i32>) {
    match super::plain_code(status) {
        (Some(code), _) if (SIGNALLED + 1..=SIGNALLED + SIGNAL_MAX).contains(&code) => (None, Some(code - SIGNALLED)),
        other => other,
    }
}
