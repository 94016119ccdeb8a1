//! Times, sizes, counts and paths, as they are told to people.

use std::path::Path;

/// The time of the machine, Unix milliseconds.
pub(super) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// How long ago a time is, for people.
pub(super) fn ago(at: i64) -> String {
    crate::text::duration(now_ms() - at)
}

/// A size in bytes, for people.
pub(super) fn size(bytes: u64) -> String {
    const MIB: u64 = 1024 * 1024;
    match bytes {
        ..MIB => format!("{} KiB", bytes.div_ceil(1024)),
        MIB.. => format!("{}.{} MiB", bytes / MIB, bytes % MIB * 10 / MIB),
    }
}

/// So many of something.
pub(super) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A path as JSON has it, which has no place for bytes that are no text.
pub(super) fn shown(path: &Path) -> String {
    path.display().to_string()
}
