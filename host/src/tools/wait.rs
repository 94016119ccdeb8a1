//! Waiting for something in the tables: look, and look again at each piece of news, until there is something or the
//! time is up. A process that waits is `waiting` and holds no slot.

use std::sync::Arc;
use std::time::Duration;

use assistant_protocol::ids::ProcessId;
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use super::{Call, ToolError};
use crate::caller::Caller;
use crate::host::Host;
use crate::message_box::waits;
use crate::process_table;
use crate::store::{StoreError, Tx};

/// Where a call tells what it waits for, for whoever tells its caller of progress.
pub(crate) type Waits = watch::Sender<Vec<Uuid>>;

/// How long a call waits, and what it tells where that is less than was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bound {
    /// The longest wait.
    pub(super) wait: Duration,
    /// The same in milliseconds, where more was asked for.
    pub(super) clamped_to_ms: Option<u64>,
}

/// How long a call may wait: what the caller asks for, but for an MCP client at most what clients bear, or what its
/// profile has it bear.
pub(super) fn bound(call: &Call, wait_ms: u64) -> Bound {
    let limits = call.host.limits();
    let most = match call.caller {
        Caller::Session(_) => call.along.client_wait_ms.unwrap_or(limits.client_wait_ms),
        Caller::Process(_) => limits.wall_ms,
    };
    Bound { wait: Duration::from_millis(wait_ms.min(most)), clamped_to_ms: (wait_ms > most).then_some(most) }
}

/// Calls `look` until it gives something, at most for `wait`. News of any of `on` is a reason to look again.
///
/// # Errors
/// What `look` says.
pub(super) async fn until<T, F, Fut>(call: &Call, on: &[Uuid], wait: Duration, look: F) -> Result<Option<T>, ToolError>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<Option<T>, ToolError>>,
{
    until_woken(call, on, on, wait, look).await
}

/// The same where only news under the keys `woken_by` is a reason to look again.
///
/// # Errors
/// What `look` says.
pub(super) async fn until_woken<T, F, Fut>(
    call: &Call,
    on: &[Uuid],
    woken_by: &[Uuid],
    wait: Duration,
    look: F,
) -> Result<Option<T>, ToolError>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<Option<T>, ToolError>>,
{
    let deadline = Instant::now() + wait;
    let mut waiters: Vec<_> = woken_by.iter().map(|id| call.host.store().waiter(*id)).collect();
    if let Some(found) = look().await? {
        return Ok(Some(found));
    }
    if wait.is_zero() || asked(call, on)? {
        return Ok(None);
    }
    if let Some(waits) = &call.along.waits {
        waits.send_replace(on.to_vec());
    }
    let waiting = Waiting::begin(call).await?;
    let found = loop {
        let news = waiters.iter_mut().map(|waiter| Box::pin(waiter.news()));
        tokio::select! {
            _ = futures::future::select_all(news) => {}
            () = tokio::time::sleep_until(deadline) => break look().await?,
        }
        if let Some(found) = look().await? {
            break Some(found);
        }
        if asked(call, on)? {
            break None;
        }
    };
    waiting.end().await?;
    Ok(found)
}

/// Whether a calling process may still act, asked in each job that hands something to it. Sessions may read their mail
/// after their end.
///
/// # Errors
/// The caller has ended or is cancelled.
pub(super) fn still_acts(tx: &Tx<'_>, caller: Caller) -> Result<(), ToolError> {
    match caller {
        Caller::Process(_) if !process_table::may_act(tx.db, caller)? => Err(ToolError::caller_ended()),
        Caller::Process(_) | Caller::Session(_) => Ok(()),
    }
}

/// Waits for something outside of the tables; a process that waits holds no slot meanwhile.
///
/// # Errors
/// The store's.
pub(super) async fn while_waiting<T>(call: &Call, work: impl Future<Output = T>) -> Result<T, ToolError> {
    let waiting = Waiting::begin(call).await?;
    let done = work.await;
    waiting.end().await?;
    Ok(done)
}

/// Whether someone asks the waiter something: every wait ends then, lest two wait for each other.
fn asked(call: &Call, on: &[Uuid]) -> Result<bool, ToolError> {
    let now = call.host.now();
    Ok(call.host.store().look(|db| waits::ends_waits(db, call.caller, on, now))?)
}

/// A blocking wait of a process in flight. Dropped, it ends too. Its beginning and its end are carried out whatever
/// becomes of the call, and the process is not settled in between: so they are always counted in pairs.
struct Waiting(Option<Begun>);

/// A wait that is counted.
struct Begun {
    host: Host,
    process: ProcessId,
    at_work: Option<AtWork>,
}

type AtWork = Arc<tokio::sync::OwnedRwLockReadGuard<()>>;

impl Waiting {
    async fn begin(call: &Call) -> Result<Self, StoreError> {
        let Caller::Process(process) = call.caller else { return Ok(Self(None)) };
        if let Some(turn) = &call.along.turn {
            turn.pass();
        }
        let (host, at_work) = (call.host.clone(), call.along.at_work.clone());
        // In a task of its own: a call that is given up meanwhile leaves a wait that ends when this is dropped.
        let begun = tokio::spawn(async move {
            host.store().write_later(move |tx| process_table::wait_begins(tx, process)).await?;
            Ok::<_, StoreError>(Self(Some(Begun { host, process, at_work })))
        });
        begun.await.map_err(StoreError::panicked("a wait"))?
    }

    async fn end(mut self) -> Result<(), StoreError> {
        let Some(begun) = self.0.take() else { return Ok(()) };
        let ended = tokio::spawn(begun.end());
        ended.await.map_err(StoreError::panicked("a wait"))?
    }
}

impl Begun {
    async fn end(self) -> Result<(), StoreError> {
        let process = self.process;
        // Recorded before whatever the process does next, as all its jobs are.
        let ended = self.host.store().write_later(move |tx| process_table::wait_ends(tx, process)).await;
        drop(self.at_work);
        ended
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(begun) = self.0.take() {
            let process = begun.process;
            tokio::spawn(async move {
                if let Err(error) = begun.end().await {
                    tracing::debug!(%error, %process, "a wait that was given up did not end in order");
                }
            });
        }
    }
}
