//! How a runner is started: locally, in a process group of its own, with an empty environment but for an allow-list; and
//! how it is ended, with all that it has started.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

use crate::process_table::Process;

mod child;
mod hook;
mod server;
mod started;
mod strays;

pub(crate) use child::Child;
pub(crate) use hook::run_hook;
pub(crate) use server::{ServerProgram, launch_server};
pub(crate) use strays::Strays;
pub use strays::{MARK, SERVER_OF};

/// Variables that a runner gets from the host's environment. None of them can hold a key.
const ENVIRONMENT: &[&str] = &["PATH", "LANG", "LC_ALL", "TMPDIR", "TZ", "SystemRoot", "TEMP", "RUST_BACKTRACE"];

/// The variable by which whatever runs below a runner knows how deep it is: limits of depth cross hosts.
pub const DEPTH: &str = "ASSISTANT_HOST_DEPTH";

/// Files that stay free for the store and for clients when runners are started.
#[cfg(unix)]
const FILES_SPARE: u64 = 32;

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
    pub(crate) child: Child,
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

/// Starts the runner of a process in `dir`. It is killed with its whole group when the child is dropped.
///
/// # Errors
/// In words, with the program named.
pub(crate) fn launch(runner: &RunnerCommand, dir: &Path, process: &Process) -> Result<Launched, String> {
    launch_with(runner, dir, |command| {
        command.env(MARK, process.id.to_string()).env(DEPTH, process.depth.to_string());
    })
}

/// The same for a runner that is no process of a host.
///
/// # Errors
/// In words, with the program named.
pub(crate) fn launch_apart(runner: &RunnerCommand, dir: &Path) -> Result<Launched, String> {
    launch_with(runner, dir, |_| {})
}

fn launch_with(runner: &RunnerCommand, dir: &Path, more: impl FnOnce(&mut Command)) -> Result<Launched, String> {
    let mut command = Command::new(&runner.program);
    command.args(&runner.args).current_dir(dir).env_clear();
    command.envs(passed_on(ENVIRONMENT));
    more(&mut command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |error: io::Error| format!("cannot start {}: {}", runner.program.display(), words(&error));
    let (mut group, started) = started::start(command).map_err(failed)?;
    let pipes = (group.stdin().take(), group.stdout().take(), group.stderr().take());
    let child = Child::keep(group, started);
    match pipes {
        (Some(stdin), Some(stdout), Some(stderr)) => {
            room_for_files(&stdin).map_err(failed)?;
            Ok(Launched { child, stdin, stdout, stderr })
        }
        _ => Err(format!("{} was started without pipes", runner.program.display())),
    }
}

/// Numbers of files are given from the lowest on: a new one tells how many are open.
#[cfg(unix)]
fn room_for_files(newest: &ChildStdin) -> io::Result<()> {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let number = u64::try_from(std::os::fd::AsRawFd::as_raw_fd(newest)).unwrap_or(0);
    if most.is_some_and(|most| number + FILES_SPARE > most) { Err(rustix::io::Errno::MFILE.into()) } else { Ok(()) }
}

#[cfg(not(unix))]
fn room_for_files(_: &ChildStdin) -> io::Result<()> {
    Ok(())
}

/// Variables of the host's environment, with their values.
fn passed_on(names: &'static [&'static str]) -> impl Iterator<Item = (&'static str, OsString)> {
    names.iter().filter_map(|name| std::env::var_os(name).map(|value| (*name, value)))
}

/// Why a child was not started; what only says a number of the system's says what to do.
fn words(error: &io::Error) -> String {
    #[cfg(unix)]
    if let Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE) = rustix::io::Errno::from_io_error(error) {
        return "the host has as many files open as the system lets it; raise the limit (`ulimit -n`), or lower \
                limits.running_per_host"
            .to_owned();
    }
    #[cfg(unix)]
    if let Some(rustix::io::Errno::NOEXEC) = rustix::io::Errno::from_io_error(error) {
        return "it is no program that this system can run; a script needs `#!` and its interpreter as its first line, or \
                that interpreter before it in the command"
            .to_owned();
    }
    error.to_string()
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
