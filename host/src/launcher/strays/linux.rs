//! Strays on Linux: found in /proc, killed by a descriptor of the process, reaped where they are children.

use std::collections::HashSet;
use std::fs::{read_dir, read_to_string};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, pidfd_send_signal, waitpid};
use tokio::net::unix::pipe;
use tokio::time::{Instant, timeout_at};

use super::{Due, Reach};
use crate::launcher::started;

/// How often it is looked whether those that were killed have left others.
const ROUNDS_MAX: usize = 16;
/// How often the list of children is read for two that are the same.
const READS_MAX: usize = 8;
/// How long the killed of one round are waited for.
const GONE_WITHIN: Duration = Duration::from_secs(2);
/// Of the environment of a process that is read, bytes.
const ENVIRONMENT_BYTES_MAX: u64 = 256 * 1024;

/// A stray that was sent the kill signal.
struct Killed {
    pid: Pid,
    fd: OwnedFd,
}

/// Ends the strays of these processes, and reaps what else has ended and was adopted.
pub(super) async fn end(due: Vec<Due>, adopts: bool) {
    let reach = due.iter().map(|one| one.reach).max().unwrap_or(Reach::Adopted);
    for _ in 0..ROUNDS_MAX {
        let due = due.clone();
        let looked = tokio::task::spawn_blocking(move || {
            if adopts {
                reap();
            }
            kill(&due, reach)
        });
        match looked.await {
            Ok(killed) if killed.is_empty() => return,
            Ok(killed) => gone(killed).await,
            Err(error) => return tracing::error!(%error, "looking for strays panicked"),
        }
    }
    tracing::warn!(rounds = ROUNDS_MAX, "what a runner has started starts itself anew faster than it is killed");
}

/// Kills the strays that there are now.
fn kill(due: &[Due], reach: Reach) -> Vec<Killed> {
    let marks: HashSet<String> = due.iter().map(|one| one.mark.clone()).collect();
    let groups: HashSet<u32> = due.iter().filter_map(|one| one.group).collect();
    let pids = match reach {
        Reach::Adopted => children(),
        Reach::Everywhere => everyone(),
    };
    let me = getpid();
    // Runners and hooks of this program are ended by whoever has started them.
    let others: Vec<u32> = started::with(|started| pids.into_iter().filter(|pid| !started.contains(pid)).collect());
    let stray = |pid: u32| {
        marked(pid, &marks)
            || Stat::read(pid).is_some_and(|stat| stat.parent == me.as_raw_pid() && groups.contains(&stat.group))
    };
    let mut killed = Vec::new();
    for number in others.into_iter().filter(|pid| stray(*pid)) {
        let Some(pid) = pid(number).filter(|pid| *pid != me) else { continue };
        // It may end at any time, and its number may be another's then: the descriptor is not.
        let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        if stray(number) && pidfd_send_signal(&fd, Signal::KILL).is_ok() {
            killed.push(Killed { pid, fd });
        }
    }
    killed
}

/// Waits until they have ended, and reaps those that are children.
async fn gone(killed: Vec<Killed>) {
    let until = Instant::now() + GONE_WITHIN;
    tracing::debug!(count = killed.len(), "killed what runners have left");
    for Killed { pid, fd } in killed {
        // The descriptor is readable when the process has ended; it is watched as a pipe is, for want of another type.
        let ended = async { pipe::Receiver::from_owned_fd_unchecked(fd)?.readable().await };
        match timeout_at(until, ended).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the end of a stray cannot be waited for"),
            Err(_) => tracing::warn!(pid = pid.as_raw_pid(), "a stray was killed and does not end"),
        }
        if let Err(error) = waitpid(Some(pid), WaitOptions::NOHANG) {
            tracing::trace!(%error, "a stray was no child of this program");
        }
    }
}

/// Reaps adopted children that have ended. Those that this program has started have its session, and its group or an
/// entry among the started. In a container both may be those of a process outside: the kernel tells them as 0.
fn reap() {
    let me = getpid().as_raw_pid();
    let Some(Stat { group, session, .. }) = Stat::read(me.unsigned_abs()) else { return };
    let foreign = |stat: &Stat| stat.parent == me && (stat.group != group || stat.session != session);
    for number in children() {
        let ended = |number| Stat::read(number).filter(|stat| stat.ended).is_some_and(|stat| foreign(&stat));
        if !ended(number) {
            continue;
        }
        started::with(|started| {
            if !started.contains(&number)
                && ended(number)
                && let Some(pid) = pid(number)
                && let Err(error) = waitpid(Some(pid), WaitOptions::NOHANG)
            {
                tracing::debug!(%error, number, "an adopted child is not reaped");
            }
        });
    }
}

fn pid(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

/// The children of this program. A list that is read while one of it is reaped may lack others: it is taken where it
/// comes twice the same; else all processes are looked at, as where the kernel has no such lists.
fn children() -> Vec<u32> {
    let mut last = None;
    for _ in 0..READS_MAX {
        let listed = listed();
        if listed.is_none() {
            break;
        }
        if listed == last {
            return listed.unwrap_or_default();
        }
        last = listed;
    }
    let me = getpid().as_raw_pid();
    everyone().into_iter().filter(|pid| Stat::read(*pid).is_some_and(|stat| stat.parent == me)).collect()
}

/// The children of all threads, as the kernel lists them; none where it does not.
fn listed() -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for thread in read_dir("/proc/self/task").ok()?.flatten() {
        match read_to_string(thread.path().join("children")) {
            Ok(list) => found.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok())),
            // A thread that has ended has none.
            Err(_) if Path::new("/proc/thread-self/children").exists() => {}
            Err(_) => return None,
        }
    }
    Some(found)
}

/// All processes.
fn everyone() -> Vec<u32> {
    let entries = read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok())).collect()
}

/// Whether the environment that a process was started with has one of these marks. That of others cannot be read.
fn marked(pid: u32, marks: &HashSet<String>) -> bool {
    let mut environment = Vec::new();
    let Ok(file) = std::fs::File::open(format!("/proc/{pid}/environ")) else { return false };
    if file.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut environment).is_err() {
        return false;
    }
    environment
        .split(|byte| *byte == 0)
        .any(|variable| std::str::from_utf8(variable).is_ok_and(|variable| marks.contains(variable)))
}

/// What /proc tells of a process.
struct Stat {
    /// It has ended, and waits to be reaped.
    ended: bool,
    parent: i32,
    /// 0: of a process outside of this program's namespace, as is a session of 0.
    group: u32,
    session: i32,
}

impl Stat {
    fn read(pid: u32) -> Option<Self> {
        let text = read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may have any sign in it; it ends at the last parenthesis.
        let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
        let ended = matches!(fields.next()?, "Z" | "X");
        let mut number = || fields.next()?.parse::<i32>().ok();
        let (parent, group, session) = (number()?, number()?, number()?);
        Some(Self { ended, parent, group: u32::try_from(group).ok()?, session })
    }
}
