//! How a tool server is started: with what finds programs and folders, what is listed for it, and no more.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

use assistant_protocol::ids::ProcessId;
use tokio::process::Command;

use super::{
    Child, DEPTH, Launched, MARK, RunnerCommand, SERVER_OF, Site, is_found, passed_on, site, started, started_in, words,
};

/// Variables that a tool server gets from the host's environment: to find programs, folders and words in the user's
/// language. None of them can hold a key.
#[cfg(not(windows))]
const SERVER_ENVIRONMENT: &[&str] =
    &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];
#[cfg(windows)]
const SERVER_ENVIRONMENT: &[&str] = &[
    "PATH",
    "PATHEXT",
    "COMSPEC",
    "HOME",
    "HOMEDRIVE",
    "HOMEPATH",
    "USERPROFILE",
    "USERNAME",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SystemRoot",
    "PROCESSOR_ARCHITECTURE",
    "TEMP",
    "TMP",
    "LANG",
    "TZ",
];

/// What is started.
pub(crate) struct ServerProgram<'a> {
    pub(crate) command: &'a str,
    pub(crate) args: &'a [String],
    /// What is listed for it.
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) folder: &'a Path,
    /// What it and all that it starts are known by.
    pub(crate) id: ProcessId,
    /// The depth of whoever uses it.
    pub(crate) depth: u32,
    /// The state directory of the host: whoever holds it next ends what an earlier host has left.
    pub(crate) state: &'a Path,
}

/// Starts a server where its process runs, by the launcher of that. It is killed with its whole group when the child is
/// dropped.
///
/// # Errors
/// In words, with the program named.
pub(crate) fn launch_server_inside(program: &ServerProgram<'_>, site: &Site<'_>) -> Result<Launched, String> {
    let Some(launcher) = site.by else { return launch_server(program) };
    let id = program.id.to_string();
    let mut told: Vec<(String, OsString)> = Vec::new();
    if !launcher.tells_variables() {
        told.extend(passed_on(SERVER_ENVIRONMENT).map(|(name, value)| (name.to_owned(), value)));
    }
    told.extend(program.env.iter().map(|(name, value)| (name.clone(), value.into())));
    told.push((MARK.to_owned(), id.clone().into()));
    told.push((DEPTH.to_owned(), program.depth.to_string().into()));
    told.push((SERVER_OF.to_owned(), program.state.into()));
    let command =
        RunnerCommand { program: found(program.command), args: program.args.iter().map(Into::into).collect() };
    // The state directory is where those without a folder begin here; nobody who is fenced in sees it.
    let folder = Some(program.folder).filter(|folder| *folder != program.state);
    let order = site::Order { command: &command, folder, id, told };
    let command = site::command_of(launcher, site, order)?;
    if launcher.program().is_some_and(|program| !is_found(program)) {
        return Err(launcher.not_installed());
    }
    started_in(Path::new(launcher.program().unwrap_or(program.command)), command, started::start_lasting)
}

/// Starts a server. It is killed with its whole group when the child is dropped.
///
/// # Errors
/// In words, with the program named.
pub(crate) fn launch_server(program: &ServerProgram<'_>) -> Result<Launched, String> {
    if !program.folder.is_dir() {
        return Err(format!("cannot start {}: there is no folder {}", program.command, program.folder.display()));
    }
    let mut command = Command::new(found(program.command));
    command.args(program.args).current_dir(program.folder).env_clear();
    command.envs(passed_on(SERVER_ENVIRONMENT)).envs(program.env);
    command.env(MARK, program.id.to_string()).env(DEPTH, program.depth.to_string()).env(SERVER_OF, program.state);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            format!("cannot start {}: there is no such program; install it, or name its whole path", program.command)
        }
        _ => format!("cannot start {}: {}", program.command, words(&error)),
    };
    let (mut group, started) = started::start(command).map_err(failed)?;
    let pipes = (group.stdin().take(), group.stdout().take(), group.stderr().take());
    let child = Child::keep(group, started);
    match pipes {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok(Launched { child, stdin, stdout, stderr }),
        _ => Err(format!("{} was started without pipes", program.command)),
    }
}

#[cfg(not(windows))]
fn found(command: &str) -> std::path::PathBuf {
    command.into()
}

/// What `npx` and the like are on Windows: a file with another ending than that of programs, which the system looks for
/// only where it is named.
#[cfg(windows)]
fn found(command: &str) -> std::path::PathBuf {
    let plain = std::path::PathBuf::from(command);
    if plain.extension().is_some() || plain.components().count() > 1 {
        return plain;
    }
    let path = passed_on(&["PATH"]).next().map(|(_, value)| value).unwrap_or_default();
    let candidates = std::env::split_paths(&path)
        .flat_map(|folder| ["exe", "cmd", "bat"].map(|ending| folder.join(command).with_extension(ending)))
        .find(|candidate| candidate.is_file());
    candidates.unwrap_or(plain)
}
