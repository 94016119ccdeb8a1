//! Commands of the configuration that are run when something happens.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::{ENVIRONMENT, code, passed_on, started, words};

/// Variables that a hook gets beside those of a runner: to find programs, and to reach the desktop.
const HOOK_ENVIRONMENT: &[&str] =
    &["PATH", "HOME", "USER", "DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"];
/// Bytes of what a hook writes to stderr that are kept.
const HOOK_STDERR_BYTES_MAX: u64 = 4 * 1024;

/// Runs a command with `input` on its stdin, for at most `within` and until `closing`; then its whole group is killed.
///
/// # Errors
/// In words: it did not start, failed, or took too long.
pub(crate) async fn run_hook(
    argv: &[String],
    dir: &Path,
    input: &[u8],
    within: Duration,
    closing: &CancellationToken,
) -> Result<(), String> {
    let Some((program, args)) = argv.split_first() else { return Ok(()) };
    let mut command = Command::new(program);
    command.args(args).current_dir(dir).env_clear();
    command.envs(passed_on(ENVIRONMENT)).envs(passed_on(HOOK_ENVIRONMENT));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let (mut child, _started) =
        started::start(command).map_err(|error| format!("cannot start {program}: {}", words(&error)))?;
    let (stdin, stderr) = (child.stdin().take(), child.stderr().take());
    let working = async {
        let writing = async {
            let Some(mut stdin) = stdin else { return };
            // A hook need not read what it is told.
            drop(stdin.write_all(input).await);
        };
        let reading = async {
            let mut said = Vec::new();
            if let Some(mut stderr) = stderr {
                // What it said is for the log only; what is more than that is read all the same, lest it stop.
                drop((&mut stderr).take(HOOK_STDERR_BYTES_MAX).read_to_end(&mut said).await);
                drop(tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await);
            }
            String::from_utf8_lossy(&said).trim().to_owned()
        };
        let (_, said, ended) = tokio::join!(writing, reading, child.inner_mut().wait());
        match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("it exited with {}: {said}", code(status))),
            Err(error) => Err(error.to_string()),
        }
    };
    let why = tokio::select! {
        done = working => return done,
        () = tokio::time::sleep(within) => format!("limit hook_ms: it ran longer than {} ms", within.as_millis()),
        () = closing.cancelled() => "the host closed before it was done".to_owned(),
    };
    let killed = child.start_kill();
    let waited = child.inner_mut().wait().await;
    killed.and(waited.map(|_| ())).map_err(|error| format!("it cannot be killed: {error}"))?;
    Err(why)
}
