//! How this very program is started again: as the guard of an agent, and by the agent as its way back.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// This program, with the arguments that make it a runner.
#[derive(Debug, Clone)]
pub(crate) struct Own {
    /// The program.
    pub(crate) program: PathBuf,
    /// Arguments before those of a runner: a program that can act as a runner has some.
    pub(crate) leading: Vec<OsString>,
    /// It takes on the orphans of its children, and has no children but agents.
    #[cfg(target_os = "linux")]
    pub(crate) adopts: bool,
}

impl Own {
    /// This program, as `all` its arguments (its name included) and those of them that a runner was given tell.
    ///
    /// # Errors
    /// The system does not tell where the program is.
    pub(crate) fn new(all: impl IntoIterator<Item = OsString>, given: &[OsString]) -> std::io::Result<Self> {
        let mut leading: Vec<OsString> = all.into_iter().skip(1).collect();
        leading.truncate(leading.len().saturating_sub(given.len()));
        Ok(Self {
            program: program()?,
            leading,
            #[cfg(target_os = "linux")]
            adopts: false,
        })
    }

    /// A command that starts it.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.leading);
        command
    }
}

/// Where this program is. One that was replaced while it runs is still to be had by its process (Linux).
fn program() -> std::io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let own = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    Ok(if !program.is_file() && own.is_file() { own } else { program })
}
