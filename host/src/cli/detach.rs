//! The program between a client and the host that it starts: leaves the client's session and starts the host.

use std::process::Command;

use super::{FAILED, Failure, Places};

/// Starts `serve --background` with the same places, and does not wait for it.
pub(super) fn detach(places: &Places) -> Result<u8, Failure> {
    let failed = |error: std::io::Error| Failure::new(FAILED, format!("the host cannot be started: {error}"));
    platform::leave().map_err(failed)?;
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.args(["serve", "--background"]).args(super::place::Place::find(places)?.arguments());
    platform::prepare(&mut command);
    // Not waited for: the host outlives this program.
    drop(command.spawn().map_err(failed)?);
    Ok(0)
}

#[cfg(unix)]
mod platform {
    /// A session of our own: no terminal, and no process group of the client.
    pub(super) fn leave() -> std::io::Result<()> {
        Ok(rustix::process::setsid().map(|_| ())?)
    }

    /// Areas of memory that glibc keeps for all threads together.
    const ARENAS_MAX: &str = "2";
    /// How glibc is told that.
    const ARENAS: &str = "MALLOC_ARENA_MAX";

    /// The search index is written by threads that come and go, and by default each leaves what it has freed in an area
    /// of its own: 75 MB more after 100 stored assistants, 15 MB with two.
    pub(super) fn prepare(command: &mut std::process::Command) {
        if std::env::var_os(ARENAS).is_none() {
            command.env(ARENAS, ARENAS_MAX);
        }
    }
}

#[cfg(not(unix))]
mod platform {
    pub(super) fn leave() -> std::io::Result<()> {
        Ok(())
    }

    pub(super) fn prepare(command: &mut std::process::Command) {
        #[cfg(windows)]
        {
            // CREATE_NEW_PROCESS_GROUP and DETACHED_PROCESS.
            std::os::windows::process::CommandExt::creation_flags(command, 0x0000_0200 | 0x0000_0008);
        }
        #[cfg(not(windows))]
        let _ = command;
    }
}
