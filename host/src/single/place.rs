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
    there(folder)
        .find_map(|place| find(&place, id).map(|run| as_it_is(run, || host::is_held(&place), || find(&place, id))))
}

fn find(place: &Path, id: ProcessId) -> Option<Process> {
    read(place, store::peek(place, |db| Ok(process_table::find(db, id)))).flatten()
}

/// The newest runs of all places, the newest first, at most `most`.
#[must_use]
pub fn runs(folder: &Path, most: u32) -> Vec<Process> {
    let of_place = |place: PathBuf| -> Vec<Process> {
        let looked = store::peek(&place, |db| Ok(process_table::newest(db, most)));
        let as_it_is = |run: Process| {
            let id = run.id;
            as_it_is(run, || host::is_held(&place), || find(&place, id))
        };
        read(&place, looked).unwrap_or_default().into_iter().map(as_it_is).collect()
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

/// A run whose server was killed has ended with it, though nobody has written that down yet. `is_held` tells whether a
/// server has the place, `again` reads the run once more: a server may write the end and go after `run` was read.
fn as_it_is(run: Process, is_held: impl FnOnce() -> bool, again: impl FnOnce() -> Option<Process>) -> Process {
    if run.status.is_end() || is_held() {
        return run;
    }
    match again() {
        Some(ended) if ended.status.is_end() => ended,
        Some(_) | None => Process { status: Status::Failed, reason: Some(Reason::HostLost), ..run },
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use assistant_protocol::ids::{SessionId, ThreadId};
    use assistant_protocol::types::Usage;

    use super::*;

    fn run(status: Status) -> Process {
        let id = ProcessId::mint();
        Process {
            id,
            assistant_id: "a".to_owned(),
            snapshot: String::new(),
            parent: None,
            parent_assistant_id: "main".to_owned(),
            root: id,
            session: SessionId::mint(),
            thread: ThreadId::mint(),
            depth: 1,
            detached: false,
            resumed_from: None,
            label: None,
            status,
            reason: None,
            cause: None,
            error: None,
            marked: false,
            query: "go".to_owned(),
            context: None,
            working_dir: None,
            tools: Vec::new(),
            unavailable_tools: "[]".to_owned(),
            model: "m".to_owned(),
            worktree: None,
            runner: None,
            agent: false,
            launcher: None,
            turns: 0,
            tool_calls: 0,
            usage: Usage::default(),
            unknown_calls: 0,
            result: None,
            structured: None,
            created_at: 0,
            started_at: None,
            finished_at: None,
            exit_code: None,
        }
    }

    #[test]
    fn a_run_is_lost_only_where_its_end_is_still_not_written_when_its_server_has_gone() {
        // What is written in the end, by a server that goes at the moment when it is looked for.
        let check = |read: Status, held: bool, written: Option<Status>, want: (Status, Option<Reason>)| {
            let gone = Cell::new(false);
            let is_held = || {
                gone.set(!held);
                held
            };
            let again = || {
                assert!(gone.get(), "it is read again after its server has gone");
                written.map(run)
            };
            let told = as_it_is(run(read), is_held, again);
            assert_eq!((told.status, told.reason), want, "{read} {held} {written:?}");
        };
        let lost = (Status::Failed, Some(Reason::HostLost));
        check(Status::Finished, false, None, (Status::Finished, None));
        check(Status::Running, true, None, (Status::Running, None));
        check(Status::Running, false, Some(Status::Finished), (Status::Finished, None));
        check(Status::Running, false, Some(Status::Cancelled), (Status::Cancelled, None));
        check(Status::Running, false, Some(Status::Running), lost);
        check(Status::Queued, false, None, lost);
    }
}
