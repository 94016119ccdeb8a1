//! How a runner is started: locally, in a process group of its own, with an empty environment but for an allow-list.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

/// Variables that a runner gets from the host's environment. None of them can hold a key.
const ENVIRONMENT: &[&str] = &["LANG", "LC_ALL", "TMPDIR", "TZ", "SystemRoot", "TEMP", "RUST_BACKTRACE"];

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
    let mut command = CommandWrap::from(command);
    #[cfg(unix)]
    command.wrap(process_wrap::tokio::ProcessGroup::leader());
    #[cfg(windows)]
    command.wrap(process_wrap::tokio::JobObject);
    command.wrap(KillOnDrop);
    let mut child = command.spawn().map_err(|error| format!("cannot start {}: {error}", runner.program.display()))?;
    match (child.stdin().take(), child.stdout().take(), child.stderr().take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok(Launched { child, stdin, stdout, stderr }),
        _ => Err(format!("{} was started without pipes", runner.program.display())),
    }
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
