//! How git is asked: without questions, without the hooks of the repository, for a bounded time, and with nothing of the
//! host's environment that could point it elsewhere.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use assistant_protocol::ids::ProcessId;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStdout, Command};

use super::{Child, ENVIRONMENT, MARK, code, passed_on, started, words};

/// Variables that git gets beside those of a runner: where the user's own settings are.
const GIT_ENVIRONMENT: &[&str] = &["HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "USERPROFILE", "APPDATA"];
/// Settings that stand above those of the repository: its hooks and its monitor of files are not run. Filters of files that
/// its settings name are, as files cannot be told otherwise; who could write those settings works as the user anyway. What
/// has settings that others may have written, a submodule's folder, must not be looked into.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=true",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
];
/// Of what git writes that is kept, bytes of each stream.
const SAID_BYTES_MAX: u64 = 64 * 1024;

/// Why git did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GitError {
    /// It is not there, or cannot be started.
    #[error("cannot start git: {0}")]
    NotStarted(String),
    /// It says no.
    #[error("git says: {0}")]
    Refused(String),
    /// It took too long.
    #[error("git did not end within {0} s")]
    TooLong(u64),
}

/// What git answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    /// Its stdout.
    pub(crate) text: String,
    /// There was more than is kept.
    pub(crate) cut: bool,
}

/// Runs git in `dir` for at most `within`; it is killed with all that it has started when this is dropped.
///
/// # Errors
/// [`GitError`].
pub(crate) async fn git(dir: &Path, mark: ProcessId, within: Duration, args: &[&str]) -> Result<Said, GitError> {
    asked(dir, mark, within, args, read).await
}

/// The same for what may be a long list whose entries end with a zero byte: those that begin with one of these, bounded like
/// all that is kept, and whether there are more.
///
/// # Errors
/// [`GitError`].
pub(crate) async fn git_picking(
    dir: &Path,
    mark: ProcessId,
    within: Duration,
    args: &[&str],
    begins: &[&[u8]],
) -> Result<(Vec<Vec<u8>>, bool), GitError> {
    asked(dir, mark, within, args, |stdout| pick(stdout, begins)).await
}

async fn asked<T, F: Future<Output = T>>(
    dir: &Path,
    mark: ProcessId,
    within: Duration,
    args: &[&str],
    reads: impl FnOnce(Option<ChildStdout>) -> F,
) -> Result<T, GitError> {
    let mut command = Command::new("git");
    command.args(SETTINGS.iter().flat_map(|setting| ["-c", setting])).args(args).current_dir(dir).env_clear();
    command.envs(passed_on(ENVIRONMENT)).envs(passed_on(GIT_ENVIRONMENT));
    command.envs([("GIT_TERMINAL_PROMPT", "0"), ("GIT_OPTIONAL_LOCKS", "0"), ("LC_ALL", "C")]);
    command.env(MARK, mark.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound if dir.is_dir() => GitError::NotStarted("there is no such program on PATH".into()),
        std::io::ErrorKind::NotFound => GitError::NotStarted(format!("there is no folder {}", dir.display())),
        _ => GitError::NotStarted(words(&error)),
    };
    let (mut group, started) = started::start(command).map_err(failed)?;
    let (stdout, stderr) = (group.stdout().take(), group.stderr().take());
    let child = Child::keep(group, started);
    let working = async { tokio::join!(reads(stdout), read(stderr), child.exited()) };
    let Ok((said, complaint, exited)) = tokio::time::timeout(within, working).await else {
        child.kill();
        drop(child.exited().await);
        return Err(GitError::TooLong(within.as_secs()));
    };
    match exited {
        Ok(status) if status.success() => Ok(said),
        Ok(status) => {
            let complaint = complaint.text.trim().trim_start_matches("fatal: ").to_owned();
            let complaint =
                if complaint.is_empty() { format!("nothing (it exited with {})", code(status)) } else { complaint };
            Err(GitError::Refused(complaint))
        }
        Err(error) => Err(GitError::NotStarted(error)),
    }
}

async fn read(stream: Option<impl tokio::io::AsyncRead + Unpin>) -> Said {
    let mut bytes = Vec::new();
    let mut more = 0;
    if let Some(mut stream) = stream {
        // A stream that breaks has told what it had; the exit code tells whether that was all.
        drop((&mut stream).take(SAID_BYTES_MAX).read_to_end(&mut bytes).await);
        more = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.unwrap_or(0);
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    Said { text, cut: more > 0 }
}

async fn pick(stdout: Option<ChildStdout>, begins: &[&[u8]]) -> (Vec<Vec<u8>>, bool) {
    let (mut picked, mut bytes, mut cut) = (Vec::new(), 0, false);
    let Some(mut stdout) = stdout.map(BufReader::new) else { return (picked, cut) };
    loop {
        let mut entry = Vec::new();
        // No entry is longer than a path. A stream that breaks has told what it had; the exit code tells whether that was all.
        let read = (&mut stdout).take(SAID_BYTES_MAX).read_until(0, &mut entry).await;
        if read.unwrap_or(0) == 0 {
            return (picked, cut);
        }
        if entry.last() == Some(&0) {
            entry.pop();
        }
        if begins.iter().any(|one| entry.starts_with(one)) {
            bytes += entry.len() as u64;
            cut |= bytes > SAID_BYTES_MAX;
            if !cut {
                picked.push(entry);
            }
        }
    }
}
