//! How a runner is started: in a process group of its own, with an empty environment but for an allow-list, on this machine
//! as it is or by a launcher of the configuration ([`Launcher`], of the presets in [`presets`]); and how it is ended, with all
//! that it has started.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

use crate::process_table::Process;

mod agent;
mod by;
mod child;
mod end;
mod fill;
mod git;
mod hook;
mod mounts;
pub mod presets;
mod private;
mod server;
mod site;
mod started;
mod strays;

pub use agent::Passes;
pub use by::{Files, Launcher, SLOW_LAUNCH_MS, Servers, Words};
pub(crate) use child::Child;
pub(crate) use end::end_there;
pub(crate) use fill::{fault, placeholders};
pub(crate) use git::{GitError, Said, git, git_picking};
pub(crate) use hook::run_hook;
pub(crate) use mounts::WORKTREES;
pub(crate) use server::{ServerProgram, launch_server, launch_server_inside};
pub(crate) use site::{Inside, Site};
pub(crate) use strays::Strays;
pub use strays::{MARK, SERVER_OF};

/// Variables that a runner gets from the host's environment. None of them can hold a key.
const ENVIRONMENT: &[&str] = &["PATH", "LANG", "LC_ALL", "TMPDIR", "TZ", "SystemRoot", "TEMP", "RUST_BACKTRACE"];

/// Variables that the program of a launcher gets beside those, where it tells its runner's variables one by one: to find its
/// own settings, agents of keys, and daemons.
const CLIENT_ENVIRONMENT: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AUTH_SOCK",
    "CONTAINER_HOST",
    "CONTAINERS_CONF",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
    "KUBECONFIG",
    "NOMAD_ADDR",
    "NOMAD_NAMESPACE",
    "NOMAD_REGION",
    "SLURM_CONF",
];

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

/// Starts the runner of a process. It is killed with its whole group when the child is dropped.
///
/// # Errors
/// In words, with the program named.
pub(crate) fn launch(
    runner: &RunnerCommand,
    passes: &Passes,
    site: &Site<'_>,
    process: &Process,
) -> Result<Launched, String> {
    launch_as(runner, passes, site, &process.id.to_string(), process.depth)
}

/// The same for a runner that is no process of a host.
///
/// # Errors
/// In words, with the program named.
pub(crate) fn launch_apart(runner: &RunnerCommand, dir: &Path) -> Result<Launched, String> {
    started_in(&runner.program, plain(runner, dir), started::start)
}

/// The same with what the runner gets of the host's environment besides.
///
/// # Errors
/// In words, with the program named.
#[cfg(feature = "cli")]
pub(crate) fn launch_passing(runner: &RunnerCommand, passes: &Passes, dir: &Path) -> Result<Launched, String> {
    let mut command = plain(runner, dir);
    command.envs(passes.variables());
    started_in(&runner.program, command, started::start)
}

/// Starts a runner that is known by `id`.
///
/// # Errors
/// In words, with the program named.
pub(crate) fn launch_as(
    runner: &RunnerCommand,
    passes: &Passes,
    site: &Site<'_>,
    id: &str,
    depth: u32,
) -> Result<Launched, String> {
    let mut told = vec![(MARK.to_owned(), id.into()), (DEPTH.to_owned(), depth.to_string().into())];
    told.extend(match site.by {
        None => passes.variables(),
        Some(by) if !by.tells_variables() => passes.variables(),
        // A command line is read by everybody.
        Some(by) if by.shows_values() => Vec::new(),
        // Folders of this machine would mean nothing there.
        Some(_) => passes.named(),
    });
    let Some(launcher) = site.by else {
        let mut command = plain(runner, site.state);
        command.envs(told);
        return started_in(&runner.program, command, started::start);
    };
    let order = site::Order { command: runner, folder: None, id: id.to_owned(), told };
    let command = site::command_of(launcher, site, order)?;
    let program = launcher.program().map_or_else(|| runner.program.clone(), PathBuf::from);
    if launcher.program().is_some_and(|program| !is_found(program)) {
        return Err(launcher.not_installed());
    }
    started_in(&program, command, started::start_lasting)
}

/// A command with the environment of a runner.
fn plain(runner: &RunnerCommand, dir: &Path) -> Command {
    let mut command = Command::new(&runner.program);
    command.args(&runner.args).current_dir(dir).env_clear().envs(passed_on(ENVIRONMENT));
    command
}

type Start = fn(Command) -> io::Result<(Box<dyn process_wrap::tokio::ChildWrapper>, started::Started)>;

fn started_in(program: &Path, mut command: Command, start: Start) -> Result<Launched, String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |error: io::Error| format!("cannot start {}: {}", program.display(), words(&error));
    let (mut group, started) = start(command).map_err(failed)?;
    let pipes = (group.stdin().take(), group.stdout().take(), group.stderr().take());
    let child = Child::keep(group, started);
    match pipes {
        (Some(stdin), Some(stdout), Some(stderr)) => {
            room_for_files(&stdin).map_err(failed)?;
            Ok(Launched { child, stdin, stdout, stderr })
        }
        _ => Err(format!("{} was started without pipes", program.display())),
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

/// Variables of the host's environment that the configuration names, with their values.
fn named(names: &[String]) -> impl Iterator<Item = (String, OsString)> {
    names.iter().filter_map(|name| std::env::var_os(name).map(|value| (name.clone(), value)))
}

/// Variables of the host's environment whose names begin so, with their values.
fn beginning_with(begins: &[&str]) -> impl Iterator<Item = (String, OsString)> {
    let named = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    named.filter(|(name, _)| begins.iter().any(|begin| name.starts_with(begin)))
}

/// Whether a program is there: a name is looked up in `PATH`.
pub(crate) fn is_found(program: &str) -> bool {
    whole_path(program).is_some()
}

/// Where a program is, that of the host's own `PATH` whatever its variables are; none where it is not there.
fn whole_path(program: &str) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return path.is_file().then(|| path.to_path_buf());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let endings: &[&str] = if cfg!(windows) { &[".exe", ".cmd", ".bat", ""] } else { &[""] };
    let all = std::env::split_paths(&folders)
        .flat_map(|folder| endings.iter().map(move |ending| folder.join(format!("{program}{ending}"))));
    all.filter(|path| may_run(path)).find_map(|path| std::path::absolute(path).ok())
}

#[cfg(unix)]
fn may_run(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn may_run(path: &Path) -> bool {
    path.is_file()
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
