//! Whose a connection is: the user, and on Linux the process, which must be this one or below it.

use tokio::net::UnixStream;

use super::Refusal;

/// Lets in this user's processes that are below this one.
pub(super) fn may_connect(stream: &UnixStream) -> Result<(), Refusal> {
    let peer = stream.peer_cred()?;
    if peer.uid() != rustix::process::geteuid().as_raw() {
        return Err(Refusal::OtherUser);
    }
    descends(peer.pid())
}

#[cfg(target_os = "linux")]
fn descends(pid: Option<i32>) -> Result<(), Refusal> {
    let own = std::process::id();
    // Of another process namespace: numbers there mean other processes.
    let proc = std::fs::read_link("/proc/self").map_err(|_| Refusal::Unknowable)?;
    if proc.to_str().and_then(|name| name.parse().ok()) != Some(own) {
        return Err(Refusal::Unknowable);
    }
    let pid = pid.and_then(|pid| u32::try_from(pid).ok()).ok_or(Refusal::Foreign)?;
    if pid == own || is_below(pid, own, parent) { Ok(()) } else { Err(Refusal::Foreign) }
}

/// Other systems do not tell who started a process without unsafe code: user and token have to do.
#[cfg(not(target_os = "linux"))]
fn descends(_: Option<i32>) -> Result<(), Refusal> {
    Ok(())
}

/// Processes between one and another one above it, at most.
#[cfg(target_os = "linux")]
const STEPS_MAX: usize = 256;

/// Whether a process was started by `above`, or by one that was, as far as `parent` tells.
#[cfg(target_os = "linux")]
fn is_below(pid: u32, above: u32, parent: impl Fn(u32) -> Option<u32>) -> bool {
    std::iter::successors(parent(pid), |pid| parent(*pid)).take(STEPS_MAX).any(|pid| pid == above)
}

/// The process that started one, or that took it over.
#[cfg(target_os = "linux")]
fn parent(pid: u32) -> Option<u32> {
    parent_in(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The parent in a line as `12 (any) name) S 1 …`.
#[cfg(target_os = "linux")]
fn parent_in(stat: &str) -> Option<u32> {
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn who_is_below_whom() {
        // 1 started 2 and 5, 2 started 3, 3 started 4; 8 and 9 are each other's, which cannot be.
        let parent = |pid| match pid {
            1 => Some(0),
            2 | 5 => Some(1),
            3 => Some(2),
            4 => Some(3),
            8 => Some(9),
            9 => Some(8),
            _ => None,
        };
        let below = |pid| is_below(pid, 2, parent);
        assert_eq!([1, 2, 3, 4, 5, 6, 8].map(below), [false, false, true, true, false, false, false]);
    }

    #[test]
    fn names_of_programs_do_not_confuse() {
        assert_eq!(parent_in("12 (sh) S 7 12 12"), Some(7));
        assert_eq!(parent_in("12 (a) S 1 (b) R 7 12"), Some(7));
        assert_eq!(parent_in("12 (x\n) Z 9 1"), Some(9));
        assert_eq!(parent_in(""), None);
        assert_eq!(parent(std::process::id()), Some(std::os::unix::process::parent_id()));
    }
}
