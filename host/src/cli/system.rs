//! What a program that is a host asks of the system, for the whole process. The library leaves that alone.

/// Files that a runner needs open in the host: its three pipes, and what tells its end.
pub(super) const FILES_PER_RUNNER: u64 = 4;
/// Files that the host needs for all else: the store, the index, clients.
pub(super) const FILES_BESIDE: u64 = 128;
/// The most files that are asked for: each runner inherits the limit, and some programs go through all numbers below it.
const FILES_MAX: u64 = 65_536;

/// Raises the limit of open files, and takes on the orphans of what is started from here on. Returns whether it does.
pub(super) fn prepare() -> bool {
    platform::raise_files();
    platform::adopt_orphans()
}

/// How many files a host of this user may have open; none where that is not limited.
pub(super) fn files() -> Option<u64> {
    platform::files()
}

#[cfg(unix)]
mod platform {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::FILES_MAX;

    pub(super) fn files() -> Option<u64> {
        getrlimit(Resource::Nofile).maximum
    }

    pub(super) fn raise_files() {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let wanted = maximum.unwrap_or(FILES_MAX).min(FILES_MAX);
        if current.is_none_or(|current| current >= wanted) {
            return;
        }
        if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
            tracing::warn!(%error, ?current, wanted, "the limit of open files stays as it is");
        }
    }

    #[cfg(target_os = "linux")]
    pub(super) fn adopt_orphans() -> bool {
        let adopting = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        if let Err(error) = &adopting {
            tracing::warn!(%error, "what leaves a runner's group is looked for only where a runner is killed");
        }
        adopting.is_ok()
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn adopt_orphans() -> bool {
        false
    }
}

#[cfg(not(unix))]
mod platform {
    pub(super) fn files() -> Option<u64> {
        None
    }

    pub(super) fn raise_files() {}

    pub(super) fn adopt_orphans() -> bool {
        false
    }
}
