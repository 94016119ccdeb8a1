//! How a runner is started: locally, in a process group of its own, with an empty environment but for an allow-list.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

/// Variables that a runner gets from the host's environment. None of them can hold a key.
const ENVIRONMENT: &[&str] = &["LANG", "LC_ALL", "TMPDIR", "TZ", "SystemRoot", "TEMP", "RUST_BACKTRACE"];

/// The variable by which whatever runs below a runner knows how deep it is: limits of depth cross hosts.
pub const DEPTH: &str = "ASSISTANT_HOST_DEPTH";

/// The command that starts a runner. No prompt and no key is ever in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

impl RunnerCommand {
    /// A program without arguments.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), args: Vec::new() }
    }
}

/// A started runner.
pub(crate) struct Launched {
    pub(crate) child: Box<dyn ChildWrapper>,
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

/// Starts a runner in `dir`. It is killed with its whole group when the result is dropped.
///
/// # Errors
/// The system's, with the program named.
pub(crate) fn launch(runner: &RunnerCommand, dir: &Path) -> Result<Launched, String> {
    let mut command = Command::new(&runner.program);
    command.args(&runner.args).current_dir(dir).env_clear();
    command.envs(ENVIRONMENT.iter().filter_map(|name| std::env::var_os(name).map(|value| (name, value))));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child =
        in_a_group(command).spawn().map_err(|error| format!("cannot start {}: {error}", runner.program.display()))?;
    match (child.stdin().take(), child.stdout().take(), child.stderr().take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok(Launched { child, stdin, stdout, stderr }),
        _ => Err(format!("{} was started without pipes", runner.program.display())),
    }
}

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
    let names = ENVIRONMENT.iter().chain(HOOK_ENVIRONMENT);
    command.envs(names.filter_map(|name| std::env::var_os(name).map(|value| (name, value))));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = in_a_group(command).spawn().map_err(|error| format!("cannot start {program}: {error}"))?;
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
        let (_, said, ended) = tokio::join!(writing, reading, child.wait());
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
    let waited = child.wait().await;
    killed.and(waited.map(|_| ())).map_err(|error| format!("it cannot be killed: {error}"))?;
    Err(why)
}

/// A command that is killed with its whole group when its child is dropped.
fn in_a_group(command: Command) -> CommandWrap {
    let mut command = CommandWrap::from(command);
    #[cfg(unix)]
    command.wrap(process_wrap::tokio::ProcessGroup::leader());
    #[cfg(windows)]
    command.wrap(process_wrap::tokio::JobObject);
    command.wrap(KillOnDrop);
    command
}

/// The last lines of a runner's stderr, bounded in bytes.
#[derive(Debug)]
pub(crate) struct Tail {
    lines: VecDeque<String>,
    bytes: usize,
    bytes_max: usize,
}

impl Tail {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { lines: VecDeque::new(), bytes: 0, bytes_max }
    }

    pub(crate) fn push(&mut self, line: String) {
        // An empty line takes room too.
        self.bytes += line.len() + 1;
        self.lines.push_back(line);
        while self.bytes > self.bytes_max
            && let Some(first) = self.lines.pop_front()
        {
            self.bytes -= first.len() + 1;
        }
    }

    /// The last `count` lines.
    pub(crate) fn last(&self, count: usize) -> String {
        let skip = self.lines.len().saturating_sub(count);
        self.lines.iter().skip(skip).map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

/// How a child exited, as one number: its code, or the negative signal that ended it.
pub(crate) fn code(status: std::process::ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return -signal;
    }
    status.code().unwrap_or(-1)
}
