//! Systems without guards: the agent is the child, in a group of its own.

use std::process::{Command, ExitStatus};

use tokio::process::Child;

use super::{Launch, Own};

pub(super) fn command(_: &Own, launch: &Launch) -> Command {
    let mut command = Command::new(&launch.program);
    command.args(&launch.args);
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
}

fn tell(agent: &Child, signal: rustix::process::Signal) {
    let group = agent.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        // It may be gone.
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

pub(super) fn interrupt(agent: &Child) {
    tell(agent, rustix::process::Signal::INT);
}

pub(super) fn kill(agent: &mut Child) {
    tell(agent, rustix::process::Signal::KILL);
    // It may be gone.
    let _ = agent.start_kill();
}

pub(super) async fn sweep(_: &Own, _: ExitStatus) {}

pub(super) fn code(status: ExitStatus) -> (Option<i32>, Option<i32>) {
    super::plain_code(status)
}
