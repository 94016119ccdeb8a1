//! The host of a round: how clients get to it, and how it is killed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::line::{Line, held};

/// Attempts at a connection, where hosts are killed meanwhile.
const OPEN_ATTEMPTS: u32 = 20;
/// Between two of them.
const OPEN_AGAIN: Duration = Duration::from_millis(20);

/// How a round's host is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It runs on its own, and each client has a pipe to its socket.
    Background,
    /// It is within the one client, that all workers share.
    Embedded,
}

/// The folder of a round and its host.
pub(super) struct Door {
    pub(super) kind: Kind,
    dir: PathBuf,
    host: PathBuf,
    shared: Mutex<Option<Arc<Line>>>,
    /// The process id of a background host, as it was last seen; 0 is none.
    seen: AtomicU32,
}

impl Door {
    pub(super) fn new(kind: Kind, dir: &Path, host: &Path) -> Self {
        let (dir, host) = (dir.to_owned(), host.to_owned());
        Self { kind, dir, host, shared: Mutex::default(), seen: AtomicU32::new(0) }
    }

    pub(super) fn state(&self) -> PathBuf {
        self.dir.join("state")
    }

    pub(super) fn db(&self) -> PathBuf {
        self.state().join("assistant-host.db")
    }

    /// Where runners leave their process ids.
    fn pids(&self) -> PathBuf {
        self.dir.join("runners")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.host);
        command.args(args).arg("--state").arg(self.state()).arg("--no-project");
        command.arg("--config").arg(self.dir.join("config.toml"));
        command.arg("--assistants").arg(self.dir.join("assistants"));
        command.env_clear().env("HOME", &self.dir).current_dir(&self.dir);
        command
    }

    /// A connection: the worker's own while it lives, else another one. None where there was none to be had.
    pub(super) fn line(&self, own: &mut Option<Arc<Line>>) -> Option<Arc<Line>> {
        if let Some(line) = own.as_ref().filter(|line| line.lives()) {
            return Some(line.clone());
        }
        *own = None;
        for _ in 0..OPEN_ATTEMPTS {
            let opened = match self.kind {
                Kind::Background => Line::open(self.command(&["mcp"])).ok().flatten(),
                Kind::Embedded => self.open_shared(),
            };
            if let Some(line) = opened {
                *own = Some(line.clone());
                self.look_for_host();
                return Some(line);
            }
            std::thread::park_timeout(OPEN_AGAIN);
        }
        None
    }

    fn open_shared(&self) -> Option<Arc<Line>> {
        let mut shared = held(&self.shared);
        if let Some(line) = shared.as_ref().filter(|line| line.lives()) {
            return Some(line.clone());
        }
        *shared = None;
        *shared = Line::open(self.command(&["mcp", "--embedded"])).ok().flatten();
        shared.clone()
    }

    /// Remembers which process is the host.
    pub(super) fn look_for_host(&self) {
        if self.kind == Kind::Background && !self.is_host(self.seen.load(Ordering::Relaxed)) {
            let found = crate::bed::running(&self.state()).into_iter().find(|pid| self.is_host(*pid));
            self.seen.store(found.unwrap_or(0), Ordering::Relaxed);
        }
    }

    fn is_host(&self, pid: u32) -> bool {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        pid != 0
            && line.contains("--background")
            && !line.contains("--detach")
            && line.contains(&*self.state().to_string_lossy())
    }

    /// Kills the host with -9. Whether there was one.
    pub(super) fn kill_host(&self) -> bool {
        match self.kind {
            Kind::Background => {
                self.look_for_host();
                let pid = self.seen.swap(0, Ordering::Relaxed);
                self.is_host(pid) && kill(pid)
            }
            Kind::Embedded => held(&self.shared).as_ref().is_some_and(|line| {
                let lived = line.lives();
                line.kill();
                lived
            }),
        }
    }

    /// Ends the host in order.
    pub(super) fn stop_host(&self) {
        match self.kind {
            Kind::Background => {
                let stopped = self.command(&["stop", "--force"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
                // Without a program there is no host either.
                drop(stopped);
            }
            Kind::Embedded => {
                if let Some(line) = held(&self.shared).take() {
                    line.close();
                    line.wait();
                }
            }
        }
    }

    /// The process ids of the runners of this round that still run.
    pub(super) fn runners(&self) -> Vec<u32> {
        let state = self.state();
        let state = state.canonicalize().unwrap_or(state);
        let told = std::fs::read_dir(self.pids()).into_iter().flatten().flatten();
        let pids = told.filter_map(|file| std::fs::read_to_string(file.path()).ok()?.parse::<u32>().ok());
        pids.filter(|pid| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == state)).collect()
    }

    /// Whether a host of this round runs.
    pub(super) fn has_host(&self) -> bool {
        match self.kind {
            Kind::Background => crate::bed::running(&self.state()).into_iter().any(|pid| self.is_host(pid)),
            Kind::Embedded => held(&self.shared).as_ref().is_some_and(|line| line.lives()),
        }
    }
}

/// Kills a process with -9; whether it was there.
pub(super) fn kill(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
}
