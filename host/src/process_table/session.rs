//! Sessions: the connections of principals, and the roots of all trees.

use assistant_protocol::ids::SessionId;
use rusqlite::{Connection, OptionalExtension, named_params};
use uuid::Uuid;

use super::{Cause, cancel_marked, end, find, get, id, roots};
use crate::caller::{Caller, Within};
use crate::names::named;
use crate::registry::sha256_hex;
use crate::store::{StoreError, Tx};

named! {
    /// Which list of tools a session is offered.
    pub enum ProfileName {
        /// The host's own tools.
        Orchestrator = "orchestrator",
        /// Assistants as subagents: run, asked, answered.
        Subagents = "subagents",
        /// One assistant as one tool.
        Single = "single",
    }
}

/// A row of the sessions.
#[derive(Debug, Clone)]
pub struct SessionRow {
    /// What it is known by.
    pub id: SessionId,
    /// On whose behalf it is.
    pub principal: String,
    /// How assistants see it.
    pub caller_name: String,
    /// Levels of assistants above its client: 0 unless the client runs within an assistant, of another host maybe.
    pub level: u32,
    /// In whose name it is where its client runs within an assistant: it sees and steers what those of the same name have
    /// spawned, and nothing else of its principal.
    pub within: Option<String>,
    /// Which list of tools it is offered.
    pub profile: ProfileName,
    /// It has ended.
    pub ended: bool,
}

impl SessionRow {
    /// On whose behalf it is, where what is kept for a principal is not for clients within assistants.
    pub(super) fn whose(&self) -> String {
        let within = self.within.as_ref().map(|within| format!(" within:{within}")).unwrap_or_default();
        format!("principal:{}{within}", self.principal)
    }
}

/// Records a new connection of a principal.
///
/// # Errors
/// The store's.
pub fn open_session(
    tx: &Tx<'_>,
    session: SessionId,
    principal: &str,
    caller_name: &str,
    within: Within,
    profile: ProfileName,
) -> Result<(), StoreError> {
    let name = (within.level > 0).then(|| within.process.map_or_else(|| session.into(), Uuid::from));
    tx.db
        .prepare_cached(
            "INSERT INTO sessions (session_id, principal, caller_name, level, within, profile, created_at)
             VALUES (:session, :principal, :caller, :level, :within, :profile, :now)",
        )?
        .execute(named_params! {
            ":session": session.to_string(), ":principal": principal, ":caller": caller_name,
            ":level": within.level, ":within": name.map(|name| name.to_string()), ":profile": profile, ":now": tx.now,
        })?;
    Ok(())
}

/// The row of a session, if there is one.
///
/// # Errors
/// The store's.
pub fn session(db: &Connection, session: SessionId) -> Result<Option<SessionRow>, StoreError> {
    let mut look = db.prepare_cached(
        "SELECT session_id, principal, caller_name, level, within, profile, ended_at FROM sessions WHERE session_id = ?1",
    )?;
    let row = look.query_row([session.to_string()], |row| {
        Ok(SessionRow {
            id: id(row, "session_id")?,
            principal: row.get("principal")?,
            caller_name: row.get("caller_name")?,
            level: row.get("level")?,
            within: row.get("within")?,
            profile: row.get("profile")?,
            ended: row.get::<_, Option<i64>>("ended_at")?.is_some(),
        })
    });
    Ok(row.optional()?)
}

/// Whether a session sees and steers what another one has spawned: both are of one principal; one within an assistant
/// reaches those within the same one only.
///
/// # Errors
/// The store's.
pub fn reaches(db: &Connection, session: SessionId, other: SessionId) -> Result<bool, StoreError> {
    if session == other {
        return Ok(true);
    }
    let mut look = db.prepare_cached("SELECT 1 FROM reach WHERE session_id = ?1 AND reached = ?2")?;
    Ok(look.exists([session.to_string(), other.to_string()])?)
}

/// Whoever waits for news of any session of the principal of this one waits under this key; none where there is no such
/// session.
///
/// # Errors
/// The store's.
pub fn principal_key(db: &Connection, session_id: SessionId) -> Result<Option<Uuid>, StoreError> {
    let Some(row) = session(db, session_id)? else { return Ok(None) };
    Ok(Uuid::parse_str(&sha256_hex(row.principal.as_bytes())[..32]).ok())
}

/// Wakes whoever waits for news of a session, and whoever waits for news of all of its principal.
///
/// # Errors
/// The store's.
pub(crate) fn wake_session(tx: &mut Tx<'_>, session: SessionId) -> Result<(), StoreError> {
    tx.wake(session);
    if let Some(key) = principal_key(tx.db, session)? {
        tx.wake(key);
    }
    Ok(())
}

/// The sessions that have not ended, those included that were left.
///
/// # Errors
/// The store's.
pub fn open_sessions(db: &Connection) -> Result<Vec<SessionId>, StoreError> {
    let mut look = db.prepare_cached("SELECT session_id FROM sessions WHERE ended_at IS NULL OR end_cause = 'left'")?;
    let rows = look.query_map([], |row| id(row, "session_id"))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Whether a caller may still act: a process is neither terminal nor marked cancelled, a session has not ended.
///
/// # Errors
/// The store's.
pub fn may_act(db: &Connection, caller: Caller) -> Result<bool, StoreError> {
    Ok(match caller {
        Caller::Session(id) => session(db, id)?.is_some_and(|row| !row.ended),
        Caller::Process(id) => find(db, id)?.is_some_and(|row| !row.status.is_end() && !row.marked),
    })
}

/// Ends a session: its processes are marked and will end `cancelled`, but for detached ones and what is below them.
/// What only queues ends at once.
///
/// # Errors
/// The store's.
pub fn end_session(tx: &mut Tx<'_>, session: SessionId) -> Result<(), StoreError> {
    tx.db
        .prepare_cached(
            "UPDATE sessions SET ended_at = ?2, end_cause = 'ended'
             WHERE session_id = ?1 AND (ended_at IS NULL OR end_cause = 'left')",
        )?
        .execute((session.to_string(), tx.now))?;
    for root in roots(tx.db, session)? {
        if !root.detached {
            super::end::mark(tx, root.id, Cause::SessionEnded, true)?;
        }
    }
    tx.wake(session);
    Ok(())
}

/// Leaves a session: it makes no more calls, and its processes go on until [`end_left_session`]. Ends it at once where
/// none would go on. Returns whether it is left.
///
/// # Errors
/// The store's.
pub fn leave_session(tx: &mut Tx<'_>, session_id: SessionId) -> Result<bool, StoreError> {
    if session(tx.db, session_id)?.is_none_or(|row| row.ended) {
        return Ok(false);
    }
    if roots(tx.db, session_id)?.iter().all(|root| root.detached) {
        end_session(tx, session_id)?;
        return Ok(false);
    }
    tx.db
        .prepare_cached("UPDATE sessions SET ended_at = ?2, end_cause = 'left' WHERE session_id = ?1")?
        .execute((session_id.to_string(), tx.now))?;
    Ok(true)
}

/// Ends a session that was left, unless it was come back to meanwhile.
///
/// # Errors
/// The store's.
pub fn end_left_session(tx: &mut Tx<'_>, session: SessionId) -> Result<(), StoreError> {
    let left = tx
        .db
        .prepare_cached("SELECT 1 FROM sessions WHERE session_id = ?1 AND end_cause = 'left'")?
        .exists([session.to_string()])?;
    if left { end_session(tx, session) } else { Ok(()) }
}

/// Why a session was not opened under an id.
#[derive(Debug, thiserror::Error)]
pub enum NotOpened {
    /// It is open.
    #[error("the session {0} is open already")]
    Open(SessionId),
    /// It is another principal's.
    #[error("the session {0} belongs to someone else")]
    NotYours(SessionId),
    /// The store's.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<rusqlite::Error> for NotOpened {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Opens a session under an id of the caller's; one that was left or has ended is come back to. It is offered the
/// tools of `profile` from now on.
///
/// # Errors
/// [`NotOpened`].
pub fn open_session_as(
    tx: &Tx<'_>,
    session_id: SessionId,
    principal: &str,
    caller_name: &str,
    profile: ProfileName,
) -> Result<(), NotOpened> {
    match session(tx.db, session_id)? {
        None => Ok(open_session(tx, session_id, principal, caller_name, Within::default(), profile)?),
        Some(row) if row.principal != principal => Err(NotOpened::NotYours(session_id)),
        Some(row) if !row.ended => Err(NotOpened::Open(session_id)),
        Some(_) => {
            tx.db
                .prepare_cached(
                    "UPDATE sessions SET ended_at = NULL, end_cause = NULL, caller_name = ?2, profile = ?3
                     WHERE session_id = ?1",
                )?
                .execute((session_id.to_string(), caller_name, profile))?;
            Ok(())
        }
    }
}

/// The session above a process, by the process or its thread.
///
/// # Errors
/// The store's.
pub fn session_above(db: &Connection, process_or_thread: &str) -> Result<Option<SessionId>, StoreError> {
    let mut look = db
        .prepare_cached("SELECT session_id FROM assistant_processes WHERE process_id = ?1 OR thread_id = ?1 LIMIT 1")?;
    Ok(look.query_row([process_or_thread], |row| id(row, "session_id")).optional()?)
}

/// Ends what is marked and has no runner that could be asked to end.
pub(super) fn end_if_queued(tx: &mut Tx<'_>, process: assistant_protocol::ids::ProcessId) -> Result<(), StoreError> {
    if get(tx.db, process)?.status == super::Status::Queued {
        end(tx, process, cancel_marked())?;
    }
    Ok(())
}
