//! Where the servers of one file keep what they do: numbered state directories in a folder of the file. Each server that
//! runs takes the first whose lock is free, so that any number of clients can use one file at once; what another left
//! behind, or has not ended, is read without a lock.

use std::path::{Path, PathBuf};

use assistant_protocol::ids::ProcessId;

use crate::events::{self, Event};
use crate::host;
use crate::process_table::{self, Process, Reason, Status};
use crate::store::{self, StoreError};

/// Servers of one file that run at the same time.
pub const PLACES_MAX: usize = 64;

/// The state directories in the folder of a file, the first to be taken first.
pub fn all(folder: &Path) -> impl Iterator<Item = PathBuf> {
    (0..PLACES_MAX).map(move |number| folder.join(number.to_string()))
}

/// A run, in whatever place of the folder it is.
#[must_use]
pub fn run(folder: &Path, id: ProcessId) -> Option<Process> {
    there(folder).find_map(|place| {
        let looked = store::peek(&place, |db| Ok(process_table::find(db, id)));
        read(&place, looked).flatten().map(|run| as_it_is(&place, run))
    })
}

/// The newest runs of all places, the newest first, at most `most`.
#[must_use]
pub fn runs(folder: &Path, most: u32) -> Vec<Process> {
    let of_place = |place: PathBuf| -> Vec<Process> {
        let looked = store::peek(&place, |db| Ok(process_table::newest(db, most)));
        read(&place, looked).unwrap_or_default().into_iter().map(|run| as_it_is(&place, run)).collect()
    };
    let mut found: Vec<Process> = there(folder).flat_map(of_place).collect();
    found.sort_by_key(|run| std::cmp::Reverse((run.created_at, run.id)));
    found.truncate(most as usize);
    found
}

/// Up to `limit` events of a run after `after`, oldest first.
#[must_use]
pub fn trace(folder: &Path, id: ProcessId, after: i64, limit: u32) -> Vec<Event> {
    let of_place = |place: PathBuf| {
        let looked = store::peek(&place, |db| Ok(events::read(db, id, after, limit)));
        read(&place, looked).filter(|events| !events.is_empty())
    };
    there(folder).find_map(of_place).unwrap_or_default()
}

/// A run whose server was killed has ended with it, though nobody has written that down yet.
fn as_it_is(place: &Path, run: Process) -> Process {
    match run.status.is_end() || host::is_held(place) {
        true => run,
        false => Process { status: Status::Failed, reason: Some(Reason::HostLost), ..run },
    }
}

fn there(folder: &Path) -> impl Iterator<Item = PathBuf> {
    all(folder).filter(|place| place.is_dir())
}

/// What a look gave; what cannot be read is left out, and told in the log.
fn read<T>(place: &Path, looked: Result<Option<Result<T, StoreError>>, StoreError>) -> Option<T> {
    looked.and_then(Option::transpose).unwrap_or_else(|error| {
        tracing::warn!(%error, place = %place.display(), "the runs of a state directory are left out");
        None
    })
}
