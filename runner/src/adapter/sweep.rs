//! Ends everything below this program: also what has left its group, by a session of its own or a double fork.
//!
//! A program that takes on orphans (a child subreaper, Linux) finds all that its children leave behind among its own
//! children. Whoever calls this must have no child that is to live on.

use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};

/// Rounds of killing what is there and waiting for one to end.
const ROUNDS_MAX: usize = 100_000;

/// Makes this program take on orphans; false where the system does not let it.
pub(crate) fn adopt() -> bool {
    set_child_subreaper(Some(getpid())).is_ok()
}

/// Kills what is below this program, and waits until it is gone: for ever where the system does not end one.
pub(crate) fn end_all_below() {
    for _ in 0..ROUNDS_MAX {
        kill_all_below();
        if wait(WaitOptions::empty()).is_err_and(|error| error != Errno::INTR) {
            // No child is left.
            return;
        }
    }
}

/// Kills what is below this program now.
pub(super) fn kill_all_below() {
    for pid in below(getpid()) {
        // It may have ended meanwhile.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// The descendants of a process.
fn below(top: Pid) -> Vec<Pid> {
    let processes: Vec<(Pid, Pid)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name stands in brackets, and may have any characters.
            let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok().and_then(Pid::from_raw)?;
            Some((pid, parent))
        })
        .collect();
    let mut found = vec![top];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(processes.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}
