//! The process of an agent: started with a guard, read without ever hanging, ended with all that it has started.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

use super::own::Own;
use super::stderr::Stderr;

#[cfg(target_os = "linux")]
#[path = "process/guarded.rs"]
mod platform;

#[cfg(not(target_os = "linux"))]
#[path = "process/plain.rs"]
mod platform;

/// How long a killed agent may take to be gone, in milliseconds.
const KILLED_MS: u64 = 1_000;

/// How an agent is started.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    /// The program.
    pub(crate) program: PathBuf,
    /// Its arguments. No prompt is ever in them.
    pub(crate) args: Vec<OsString>,
    /// Its whole environment.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Where it works.
    pub(crate) dir: PathBuf,
}

/// A running agent. Dropped, it is killed with all that it has started.
pub(crate) struct Process {
    child: Child,
    own: Own,
    /// What it reads; to be taken.
    pub(crate) stdin: Option<ChildStdin>,
    /// What it writes; to be taken.
    pub(crate) stdout: Option<ChildStdout>,
    stderr: Stderr,
    exit: Option<Exit>,
}

/// How an agent ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exit {
    /// Its code; none where a signal ended it.
    pub(crate) code: Option<i32>,
    /// The signal that ended it.
    pub(crate) signal: Option<i32>,
    /// The last of what it wrote to stderr.
    pub(crate) stderr: String,
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exited with code {code}")?,
            (None, Some(signal)) => write!(f, "was ended by signal {signal}")?,
            (None, None) => write!(f, "was ended")?,
        }
        if self.stderr.is_empty() { Ok(()) } else { write!(f, "; the last of its stderr:\n{}", self.stderr) }
    }
}

impl Process {
    /// Starts an agent.
    ///
    /// # Errors
    /// Those of the system, and a folder that is none.
    pub(crate) fn start(own: &Own, launch: &Launch) -> io::Result<Self> {
        if !launch.dir.is_dir() {
            let text = format!("there is no folder {}", launch.dir.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        let mut command = tokio::process::Command::from(platform::command(own, launch));
        command.env_clear().envs(launch.env.iter().map(|(name, value)| (name, value))).current_dir(&launch.dir);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let stderr = Stderr::read(child.stderr.take());
        Ok(Self { child, own: own.clone(), stdin, stdout, stderr, exit: None })
    }

    /// Whether it has ended by now.
    pub(crate) fn has_exited(&mut self) -> bool {
        self.exit.is_some() || self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Waits until it has ended, with all that it has started. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// The system does not tell.
    pub(crate) async fn exited(&mut self) -> io::Result<Exit> {
        if let Some(exit) = &self.exit {
            return Ok(exit.clone());
        }
        let status = self.child.wait().await?;
        platform::sweep(&self.own, status).await;
        let (code, signal) = platform::code(status);
        let exit = Exit { code, signal, stderr: self.stderr.last().await };
        self.exit = Some(exit.clone());
        Ok(exit)
    }

    /// The last line that it has written to stderr so far.
    pub(crate) fn last_line(&self) -> Option<String> {
        self.stderr.last_line()
    }

    /// Ends it: by SIGINT, and by force where it is still there after `grace`.
    pub(crate) async fn end(&mut self, grace: Duration) {
        if self.exit.is_some() {
            return;
        }
        if !grace.is_zero() {
            platform::interrupt(&self.child);
            if timeout(grace, self.exited()).await.is_ok() {
                return;
            }
        }
        platform::kill(&mut self.child);
        if timeout(Duration::from_millis(KILLED_MS), self.exited()).await.is_err() {
            // The guard does not answer: the agent dies with it.
            let _ = self.child.start_kill();
            let _ = timeout(Duration::from_millis(KILLED_MS), self.exited()).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.exit.is_none() {
            platform::kill(&mut self.child);
        }
    }
}

/// A code or a signal, of a status.
fn plain_code(status: ExitStatus) -> (Option<i32>, Option<i32>) {
    (status.code(), std::os::unix::process::ExitStatusExt::signal(&status))
}
