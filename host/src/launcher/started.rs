//! What this program has started and waits for itself. Each child with a group of its own is started here.

use std::collections::HashSet;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use tokio::process::Command;

/// The ids of those that are not waited for yet: of the whole program, as children are.
static STARTED: Mutex<Option<HashSet<u32>>> = Mutex::new(None);
/// Held for reading from before a start until it is noted, so that nobody takes a new child for an adopted one.
static STARTING: RwLock<()> = RwLock::new(());

/// Starts that wait for the thread below.
const STARTS_MAX: usize = 64;
/// Where starts go that a thread is to make which does not end before this program.
static LASTING: OnceLock<Result<SyncSender<Job>, String>> = OnceLock::new();

type Job = Box<dyn FnOnce() + Send>;

/// That a child is this program's own. Dropped when it was waited for.
pub(super) struct Started(Option<u32>);

impl Started {
    /// The child's id, which is its group's too.
    pub(super) fn pid(&self) -> Option<u32> {
        self.0
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let (Some(pid), Some(all)) = (self.0, STARTED.lock().unwrap_or_else(PoisonError::into_inner).as_mut()) {
            all.remove(&pid);
        }
    }
}

/// Starts a command as the leader of a group of its own; the leader is killed when the child is dropped.
///
/// # Errors
/// The system's.
pub(super) fn start(command: Command) -> io::Result<(Box<dyn ChildWrapper>, Started)> {
    let mut command = CommandWrap::from(command);
    #[cfg(unix)]
    command.wrap(process_wrap::tokio::ProcessGroup::leader());
    #[cfg(windows)]
    command.wrap(process_wrap::tokio::JobObject);
    command.wrap(KillOnDrop);
    let _starting = STARTING.read().unwrap_or_else(PoisonError::into_inner);
    let child = command.spawn()?;
    let pid = child.id();
    if let Some(pid) = pid {
        STARTED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(pid);
    }
    Ok((child, Started(pid)))
}

/// The same by a thread that lasts as long as this program. A child that asks the kernel to end with whoever has started
/// it ends with that thread, and those of a runtime come and go.
///
/// # Errors
/// The system's.
pub(super) fn start_lasting(command: Command) -> io::Result<(Box<dyn ChildWrapper>, Started)> {
    let lasting = LASTING.get_or_init(|| {
        let (starts, jobs) = sync_channel::<Job>(STARTS_MAX);
        let thread = std::thread::Builder::new().name("starts".into()).spawn(move || jobs.iter().for_each(|job| job()));
        thread.map(|_| starts).map_err(|error| error.to_string())
    });
    let starts = lasting.as_ref().map_err(|error| io::Error::other(error.clone()))?;
    let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
    let (done, answer) = sync_channel(1);
    let job = move || {
        let _entered = runtime.enter();
        // Nobody waits any more where the receiver is gone; the child is killed with what was to be handed over.
        drop(done.send(start(command)));
    };
    starts.send(Box::new(job)).map_err(|_| io::Error::other("the thread that starts programs has ended"))?;
    answer.recv().map_err(|_| io::Error::other("the thread that starts programs has panicked"))?
}

/// Does something with the ids of the started, while no start is under way.
#[cfg(target_os = "linux")]
pub(super) fn with<T>(look: impl FnOnce(&HashSet<u32>) -> T) -> T {
    let _no_start = STARTING.write().unwrap_or_else(PoisonError::into_inner);
    look(STARTED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}
