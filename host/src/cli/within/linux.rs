//! Linux tells of each program of the same user what it was started with.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use crate::caller::Within;

/// Programs above this one that are looked at.
const ABOVE_MAX: usize = 64;

/// What the nearest program above tells that was started within an assistant.
pub(super) fn told() -> Option<Within> {
    let mut pid = parent("self")?;
    for _ in 0..ABOVE_MAX {
        if let Some(within) = environment(&pid).and_then(|all| super::told(|name| variable(&all, name))) {
            return Some(within);
        }
        pid = parent(&pid).filter(|parent| parent != "0")?;
    }
    None
}

fn environment(pid: &str) -> Option<Vec<u8>> {
    std::fs::read(format!("/proc/{pid}/environ")).ok()
}

fn variable(all: &[u8], name: &str) -> Option<OsString> {
    let value = |one: &&[u8]| one.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="));
    let found = all.split(|byte| *byte == 0).find(value)?;
    Some(OsStr::from_bytes(&found[name.len() + 1..]).to_owned())
}

fn parent(pid: &str) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may have any sign in it; it ends at the last parenthesis. Behind it is the state.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1).map(str::to_owned)
}
