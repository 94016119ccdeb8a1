//! One host a state directory: the lock that says so.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use super::OpenError;

/// Takes the exclusive lock on a state directory, which lasts as long as the file is open. Waits up to `wait` for one
/// that is about to be given up.
pub(super) fn hold(state: &Path, wait: Duration) -> Result<File, OpenError> {
    let failed = |error| OpenError::State { state: state.to_owned(), error };
    make_private(state).map_err(failed)?;
    let lock = File::options().create(true).truncate(false).write(true).open(state.join("lock")).map_err(failed)?;
    let pid_file = state.join("pid");
    let held = match lock.try_lock() {
        Ok(()) => Some(lock),
        Err(TryLockError::WouldBlock) if wait.is_zero() => None,
        Err(TryLockError::WouldBlock) => wait_for(lock, wait).map_err(failed)?,
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    };
    let Some(lock) = held else {
        let pid = std::fs::read_to_string(pid_file).unwrap_or_else(|_| "unknown".to_owned());
        return Err(OpenError::Held { state: state.to_owned(), pid: pid.trim().to_owned() });
    };
    std::fs::write(pid_file, format!("{}\n", std::process::id())).map_err(failed)?;
    Ok(lock)
}

/// Whether a host holds a state directory; where nobody can tell, one does.
pub(crate) fn is_held(state: &Path) -> bool {
    match File::open(state.join("lock")) {
        // Given back at once: a host that starts just now waits that long, or takes another place.
        Ok(lock) => lock.try_lock_shared().is_err(),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

/// The system wakes whoever waits for a lock, but knows no bound: a thread waits, and gives the lock back where nobody
/// waits for the thread any more.
fn wait_for(lock: File, wait: Duration) -> std::io::Result<Option<File>> {
    let (taken, waiting) = mpsc::sync_channel(1);
    std::thread::Builder::new().name("state-lock".into()).spawn(move || {
        let locked = lock.lock().map(|()| lock);
        // Dropped where the wait is over: the file closes, and the lock with it.
        drop(taken.send(locked));
    })?;
    waiting.recv_timeout(wait).ok().transpose()
}

/// Makes a folder that only its owner may enter; one that is there is left as it is.
pub(crate) fn make_private(dir: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}
