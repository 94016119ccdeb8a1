//! Who may use a thread, and who is meant.

use assistant_protocol::ids::{ProcessId, ThreadId};
use assistant_protocol::types::SendMessageParams;
use rusqlite::Connection;

use super::Refused;
use crate::caller::{Caller, MAIN};
use crate::process_table::{self, Process, session};
use crate::store::StoreError;

/// Someone who takes part in a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Participant {
    /// The process; null is the session above.
    pub process: Option<ProcessId>,
    /// How it is called: an assistant's id, or the session's caller name.
    pub assistant_id: String,
}

/// The process whose thread this is, if `caller` may use it: the process itself, its parent, its siblings, and the
/// session above (whichever connection of its principal that is now).
///
/// # Errors
/// [`Refused::UnknownThread`] and [`Refused::NotPermitted`].
pub fn may_use(db: &Connection, caller: Caller, thread: ThreadId) -> Result<Process, Refused> {
    let row = process_table::find_thread(db, thread)?.ok_or(Refused::UnknownThread(thread))?;
    let permitted = match caller {
        Caller::Session(id) => process_table::reaches(db, id, row.session)?,
        Caller::Process(id) if id == row.id || Some(id) == row.parent => true,
        Caller::Process(id) => {
            let other = process_table::get(db, id)?;
            other.parent == row.parent && (row.parent.is_some() || other.session == row.session)
        }
    };
    if permitted { Ok(row) } else { Err(Refused::NotPermitted(thread)) }
}

/// Everyone who takes part in the thread of `row`: its process first, then its parent, siblings and the session.
///
/// # Errors
/// The store's.
pub fn participants(db: &Connection, row: &Process) -> Result<Vec<Participant>, StoreError> {
    let named = |row: &Process| Participant { process: Some(row.id), assistant_id: row.assistant_id.clone() };
    let mut all = vec![named(row)];
    let siblings = match row.parent {
        Some(parent) => {
            all.push(named(&process_table::get(db, parent)?));
            process_table::children(db, parent, true)?
        }
        None => process_table::roots(db, row.session)?,
    };
    all.extend(siblings.iter().filter(|sibling| sibling.id != row.id).map(named));
    let caller_name = name_of(db, row, None)?;
    all.push(Participant { process: None, assistant_id: caller_name });
    Ok(all)
}

/// How a participant of a thread is called.
pub(super) fn name_of(db: &Connection, row: &Process, who: Option<ProcessId>) -> Result<String, StoreError> {
    match who {
        Some(id) if id == row.id => Ok(row.assistant_id.clone()),
        Some(id) => Ok(process_table::get(db, id)?.assistant_id),
        None => Ok(session(db, row.session)?.map_or_else(|| MAIN.to_owned(), |session| session.caller_name)),
    }
}

/// Whom a message is for. Left out it is the thread's process, or its parent where that process writes.
pub(super) fn addressee(
    db: &Connection,
    from: Caller,
    row: &Process,
    params: &SendMessageParams,
) -> Result<Participant, Refused> {
    let me = from.process();
    if params.to_process_id.is_none() && params.to_assistant_id.is_none() {
        let process = if me == Some(row.id) { row.parent } else { Some(row.id) };
        return Ok(Participant { process, assistant_id: name_of(db, row, process)? });
    }
    let all = participants(db, row)?;
    let list = |some: &[&Participant]| {
        let one = |who: &&Participant| match who.process {
            Some(id) => format!("{} ({id})", who.assistant_id),
            None => format!("{} (the session)", who.assistant_id),
        };
        some.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let others: Vec<&Participant> = all.iter().filter(|who| who.process != me).collect();
    let fits = |who: &&&Participant| {
        params.to_process_id.is_none_or(|id| who.process == Some(id))
            && params.to_assistant_id.as_ref().is_none_or(|id| *id == who.assistant_id)
    };
    let wanted = || {
        let process = params.to_process_id.map(|id| id.to_string());
        [params.to_assistant_id.clone(), process].into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    let found: Vec<&Participant> = others.iter().filter(fits).copied().collect();
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(Refused::NoSuchParticipant { wanted: wanted(), participants: list(&others) }),
        // The thread's own process is meant where its assistant is named by someone else.
        many => match many.iter().find(|who| who.process == Some(row.id)) {
            Some(own) => Ok((**own).clone()),
            None => Err(Refused::Ambiguous { wanted: wanted(), processes: list(many) }),
        },
    }
}
