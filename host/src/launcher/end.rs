//! What ends a process over there that was killed here.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::by::Launcher;
use super::fill::{World, fill};
use super::{CLIENT_ENVIRONMENT, ENVIRONMENT, RunnerCommand, named, passed_on, started, words};

/// How long the command may take.
const KILL_WITHIN: Duration = Duration::from_secs(10);

/// Runs the `kill` of a launcher for what has this id; does nothing where it has none.
///
/// # Errors
/// In words: it did not start, or took too long. One that fails is told in the log: there may have been nothing to end.
pub(crate) async fn end_there(launcher: &Launcher, id: &str, state: &Path) -> Result<(), String> {
    if launcher.kill.is_empty() {
        return Ok(());
    }
    let nothing = RunnerCommand::new("");
    let world = World {
        command: &nothing,
        dir: None,
        id: id.to_owned(),
        told: &[],
        mounts: &[],
        private: super::private::folder(state),
    };
    let argv = fill(launcher.kill.iter(), &world)?;
    let Some((program, args)) = argv.split_first() else { return Ok(()) };
    let shown = format!("`kill` of the launcher {} ({})", launcher.name, program.display());
    let mut command = Command::new(program);
    command.args(args).current_dir(state).env_clear();
    command.envs(passed_on(ENVIRONMENT)).envs(passed_on(CLIENT_ENVIRONMENT)).envs(named(&launcher.env));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (mut child, _started) =
        started::start(command).map_err(|error| format!("cannot start the {shown}: {}", words(&error)))?;
    if let Ok(ended) = timeout(KILL_WITHIN, child.inner_mut().wait()).await {
        let status = ended.map_err(|error| error.to_string())?;
        if status.success() {
            tracing::debug!(kill = shown, id, "ended what may have been left over there");
        } else {
            tracing::warn!(kill = shown, id, %status, "what a killed process has left over there may live on");
        }
        return Ok(());
    }
    let killed = child.start_kill();
    let waited = child.inner_mut().wait().await;
    killed.and(waited.map(|_| ())).map_err(|error| format!("the {shown} cannot be killed: {error}"))?;
    Err(format!("the {shown} took longer than {} s", KILL_WITHIN.as_secs()))
}
