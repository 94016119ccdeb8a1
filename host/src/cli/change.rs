//! Changes of the assistants that the database keeps: by its host where one runs, else on the state directory itself.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use super::open::Setting;
use super::place::Place;
use super::{FAILED, Failure, Places, USAGE, serve, start};
use crate::door::hello::{PAYLOAD_BYTES_MAX, Reply, Want};
use crate::host::OpenError;
use crate::host::stored::{self, How, Stored};
use crate::registry::{AssistantId, Definition, Registry};

/// How long a host may take: it stores all of them, and reads all of its assistants anew.
const WITHIN: Duration = Duration::from_secs(5 * 60);
/// How long whoever holds the state directory is waited for: another command like this one, or a host that ends.
const HELD_WITHIN: Duration = Duration::from_secs(5);

/// Stores assistants in the database: all that can be, in one commit.
pub(super) async fn store(
    places: &Places,
    setting: &Setting,
    definitions: Vec<Definition>,
    how: How,
) -> Result<Stored, Failure> {
    let place = Place::find(places)?;
    let payload = serde_json::to_vec(&definitions).map_err(|error| Failure::new(FAILED, error))?;
    let bytes = payload.len() as u64;
    if bytes > PAYLOAD_BYTES_MAX {
        let message = format!("{bytes} bytes are to be stored, the most at once is {PAYLOAD_BYTES_MAX}; take fewer");
        return Err(Failure::new(USAGE, message));
    }
    match start::ask(&place, &place.hello(Want::Store { bytes, how }, "store")) {
        Ok((stream, Reply::Welcome { .. })) => match start::send(&stream, &payload, WITHIN) {
            Ok(Reply::Stored(stored)) => return Ok(stored),
            Ok(Reply::Refused { message }) => return Err(Failure::new(FAILED, message)),
            Ok(_) => return Err(not_understood()),
            Err(error) => return Err(unheard(&error, "stored")),
        },
        other => sorted(other, "stored")?,
    }
    serve::outlive_file_size_limits();
    let registry = Registry::read(&setting.sources);
    let of_files: HashSet<AssistantId> = registry.assistants().iter().map(|one| one.id.clone()).collect();
    let clock = Arc::new(super::now_ms);
    let stored = stored::store_assistants(&place.state, HELD_WITHIN, clock, of_files, definitions, how);
    stored.await.map_err(|error| refused(&error))
}

/// Removes an assistant of the database; false where it has none of this id.
pub(super) async fn remove(places: &Places, id: &AssistantId) -> Result<bool, Failure> {
    let place = Place::find(places)?;
    match start::ask_within(&place, &place.hello(Want::Remove { id: id.clone() }, "remove"), WITHIN) {
        Ok((_, Reply::Removed(there))) => return Ok(there),
        other => sorted(other, "removed")?,
    }
    serve::outlive_file_size_limits();
    let removed = stored::remove_assistant(&place.state, HELD_WITHIN, Arc::new(super::now_ms), id.clone());
    removed.await.map_err(|error| refused(&error))
}

/// Goes on where there is no host, or one that is about to end; `done` is what it was asked to do.
fn sorted<T>(answer: std::io::Result<(T, Reply)>, done: &str) -> Result<(), Failure> {
    match answer {
        Ok((_, Reply::Ending { .. })) => Ok(()),
        Ok((_, Reply::Refused { message })) => Err(Failure::new(FAILED, message)),
        Ok(_) => Err(not_understood()),
        Err(error) if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => Err(unheard(&error, done)),
        // Whether somebody holds the state directory all the same shows when it is to be locked.
        Err(error) => {
            tracing::debug!(%error, "no host answers");
            Ok(())
        }
    }
}

fn not_understood() -> Failure {
    Failure::new(FAILED, "the host answered something else than was asked; `assistant-host stop`, then try again")
}

fn unheard(error: &std::io::Error, done: &str) -> Failure {
    let message = format!(
        "what became of it was not heard ({error}): either all of it is {done} or nothing; the same command again tells"
    );
    Failure::new(FAILED, message)
}

fn refused(error: &OpenError) -> Failure {
    match error {
        OpenError::Held { state, pid } => {
            let message = format!(
                "{} is held by process {pid}, which has no door or is of an older version: end that one, then try again",
                state.display()
            );
            Failure::new(FAILED, message)
        }
        error => serve::refused(error),
    }
}
