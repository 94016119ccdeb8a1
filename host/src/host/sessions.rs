//! Sessions of the host: opened, left, come back to, ended.
//!
//! A session that is left has a grace time, kept in memory: a host that dies ends its processes anyway.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use assistant_protocol::ids::SessionId;
use serde_json::{Map, Value};
use tokio::sync::Notify;

use super::Host;
use crate::caller::Within;
use crate::process_table::{self, NotOpened};
use crate::store::{StoreError, Tx};
use crate::tools::profile::Profile;

/// How soon the end of a session is stored again where that failed, milliseconds.
const STORE_AGAIN_MS: u64 = 1_000;
/// Arguments by which a call names processes and threads.
const NAMES: [&str; 7] = ["process_id", "processId", "runId", "thread_id", "threadId", "process_ids", "processIds"];
/// Processes of one call that are looked after.
const NAMED_MAX: usize = 100;

/// When a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// At once: its processes are cancelled, but for detached ones.
    Now,
    /// When `limits.session_grace_ms` are over and nobody has come back.
    AfterGrace,
}

/// Sessions that were left, and when they end.
#[derive(Default)]
pub(super) struct Graces {
    /// By the clock of limits, milliseconds.
    left: Mutex<HashMap<SessionId, u64>>,
    changed: Notify,
}

impl Graces {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, u64>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn first(&self) -> Option<u64> {
        self.lock().values().copied().min()
    }

    /// Takes those whose time is over.
    fn due(&self, now: u64) -> Vec<SessionId> {
        let mut left = self.lock();
        let due: Vec<SessionId> =
            left.iter().filter(|(_, ends_at)| **ends_at <= now).map(|(session, _)| *session).collect();
        for session in &due {
            left.remove(session);
        }
        due
    }
}

impl Host {
    /// Opens a connection of a principal. `caller_name` is how assistants see it: `main` usually.
    ///
    /// # Errors
    /// The store's.
    pub async fn open_session(&self, principal: &str, caller_name: &str) -> Result<SessionId, StoreError> {
        self.open_session_with(principal, caller_name, Within::default(), &Profile::Orchestrator).await
    }

    /// The same with the tools of a profile, and for a client that may run within an assistant itself: what it
    /// spawns is one deeper, and it reaches nothing but what clients within the same assistant have spawned.
    ///
    /// # Errors
    /// The store's.
    pub async fn open_session_with(
        &self,
        principal: &str,
        caller_name: &str,
        within: Within,
        profile: &Profile,
    ) -> Result<SessionId, StoreError> {
        let (session, principal, caller) = (SessionId::mint(), principal.to_owned(), caller_name.to_owned());
        let name = profile.name();
        let open = move |tx: &mut Tx<'_>| process_table::open_session(tx, session, &principal, &caller, within, name);
        self.store().write(open).await?;
        Ok(session)
    }

    /// Opens a session under an id of the app's own, or comes back to one that was left or has ended: its processes
    /// that still live go on.
    ///
    /// # Errors
    /// [`NotOpened`]: it is open, or another principal's.
    pub async fn open_session_as(
        &self,
        session: SessionId,
        principal: &str,
        caller_name: &str,
    ) -> Result<(), NotOpened> {
        self.open_session_as_with(session, principal, caller_name, &Profile::Orchestrator).await
    }

    /// The same with the tools of a profile.
    ///
    /// # Errors
    /// [`NotOpened`]: it is open, or another principal's.
    pub async fn open_session_as_with(
        &self,
        session: SessionId,
        principal: &str,
        caller_name: &str,
        profile: &Profile,
    ) -> Result<(), NotOpened> {
        let (principal, caller, name) = (principal.to_owned(), caller_name.to_owned(), profile.name());
        let open = move |tx: &mut Tx<'_>| process_table::open_session_as(tx, session, &principal, &caller, name);
        self.store().write(open).await?;
        self.0.graces.lock().remove(&session);
        Ok(())
    }

    /// Ends a connection. Its processes end `cancelled`, cause `session_ended`, now or after the grace time; detached
    /// ones live on.
    ///
    /// # Errors
    /// The store's.
    pub async fn end_session(&self, session: SessionId, ending: Ending) -> Result<(), StoreError> {
        let grace_ms = self.limits().session_grace_ms;
        if ending == Ending::Now || grace_ms == 0 || self.closing().is_cancelled() {
            self.0.graces.lock().remove(&session);
            return self.store().write(move |tx| process_table::end_session(tx, session)).await;
        }
        if self.store().write(move |tx| process_table::leave_session(tx, session)).await? {
            self.0.graces.lock().insert(session, self.awake().now_ms().saturating_add(grace_ms));
            self.0.graces.changed.notify_one();
        }
        Ok(())
    }

    /// Starts the grace time of sessions anew whose processes another session asks about that reaches them.
    pub(crate) async fn look_after(
        &self,
        caller: SessionId,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<(), StoreError> {
        let left: Vec<SessionId> = self.0.graces.lock().keys().copied().collect();
        if left.is_empty() {
            return Ok(());
        }
        let named: Vec<String> = NAMES.iter().filter_map(|name| arguments.get(*name)).flat_map(texts).collect();
        let everyone = tool == "wait_assistant" && named.is_empty();
        let look = self.store().read(move |db| {
            let above = named.iter().take(NAMED_MAX).map(|name| process_table::session_above(db, name));
            let above = above.collect::<Result<Vec<_>, _>>()?;
            let meant = left.into_iter().filter(|session| everyone || above.contains(&Some(*session)));
            let reached = meant.map(|session| Ok((session, process_table::reaches(db, caller, session)?)));
            reached.collect::<Result<Vec<_>, StoreError>>()
        });
        let looked = look.await?;
        let again_at = self.awake().now_ms().saturating_add(self.limits().session_grace_ms);
        let mut graces = self.0.graces.lock();
        for (session, _) in looked.into_iter().filter(|(_, reached)| *reached) {
            graces.entry(session).and_modify(|ends_at| *ends_at = again_at);
        }
        Ok(())
    }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(all) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// Ends sessions when their grace time is over, until the host closes.
pub(super) async fn end_the_left(host: Host) {
    loop {
        let first = host.0.graces.first();
        tokio::select! {
            () = host.0.graces.changed.notified() => continue,
            () = host.closing().cancelled() => return,
            () = host.awake().sleep_until(first.unwrap_or_default()), if first.is_some() => {}
        }
        for session in host.0.graces.due(host.awake().now_ms()) {
            tracing::info!(%session, "a session was left and nobody came back: its processes are cancelled");
            if let Err(error) = host.store().write(move |tx| process_table::end_left_session(tx, session)).await {
                tracing::error!(%error, %session, "the end of a session is not stored yet");
                host.0.graces.lock().insert(session, host.awake().now_ms() + STORE_AGAIN_MS);
            }
        }
    }
}
