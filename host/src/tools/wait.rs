//! Waiting for something in the tables: look, and look again at each piece of news, until there is something or the
//! time is up. A process that waits is `waiting` and holds no slot.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use super::{Call, ToolError};
use crate::caller::Caller;
use crate::host::Host;
use crate::message_box::questions;
use crate::process_table;
use crate::store::StoreError;

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

/// How long a call may wait: what the caller asks for, but for an MCP client at most what clients bear.
pub(super) fn bound(call: &Call, wait_ms: u64) -> Bound {
    let limits = call.host.limits();
    let most = match call.caller {
        Caller::Session(_) => limits.client_wait_ms,
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
    let deadline = Instant::now() + wait;
    let mut waiters: Vec<_> = on.iter().map(|id| call.host.store().waiter(*id)).collect();
    if let Some(found) = look().await? {
        return Ok(Some(found));
    }
    if wait.is_zero() || asked(call, on).await? {
        return Ok(None);
    }
    if let Some(waits) = &call.waits {
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
        if asked(call, on).await? {
            break None;
        }
    };
    waiting.end().await?;
    Ok(found)
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
async fn asked(call: &Call, on: &[Uuid]) -> Result<bool, ToolError> {
    let (caller, on) = (call.caller, on.to_vec());
    let now = call.host.now();
    let asked = move |db: &rusqlite::Connection| questions::ends_waits(db, caller, &on, now);
    Ok(call.host.store().read(asked).await?)
}

/// A blocking wait of a process in flight. Dropped, it ends too.
struct Waiting(Option<(Host, assistant_protocol::ids::ProcessId)>);

impl Waiting {
    async fn begin(call: &Call) -> Result<Self, StoreError> {
        let Caller::Process(process) = call.caller else { return Ok(Self(None)) };
        let host = call.host.clone();
        // In a task of its own: a call that is given up meanwhile leaves a wait that ends when this is dropped.
        let begun = tokio::spawn(async move {
            host.store().write(move |tx| process_table::wait_begins(tx, process)).await?;
            Ok::<_, StoreError>(Self(Some((host, process))))
        });
        begun.await.map_err(|error| StoreError::Damaged(format!("a wait panicked: {error}")))?
    }

    async fn end(mut self) -> Result<(), StoreError> {
        let Some((host, process)) = self.0.take() else { return Ok(()) };
        host.store().write(move |tx| process_table::wait_ends(tx, process)).await
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some((host, process)) = self.0.take() {
            tokio::spawn(async move {
                let ended = host.store().write_later(move |tx| process_table::wait_ends(tx, process)).await;
                if let Err(error) = ended {
                    tracing::debug!(%error, %process, "a wait was given up while the store closed");
                }
            });
        }
    }
}
