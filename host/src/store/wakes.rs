//! Who waits for news of a process or a session, and how they are woken.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;
use uuid::Uuid;

/// The supervisor waits under this id for anything that starts or ends a runner.
pub(crate) const SUPERVISOR: Uuid = Uuid::nil();

/// Whoever expires questions waits under this id: it is woken when one is asked.
pub(crate) const QUESTIONS: Uuid = Uuid::from_u128(1);

/// Whoever waits for tokens or money that model calls in flight hold waits under this id.
pub(crate) const BUDGETS: Uuid = Uuid::from_u128(2);

/// Whoever looks after worktrees waits under this id: it is woken when a process ends that works in one.
pub(crate) const WORKTREES: Uuid = Uuid::from_u128(3);

/// Whoever follows all changes waits under this id: it is woken after each COMMIT.
pub(crate) const CHANGES: Uuid = Uuid::max();

/// Waiters by what they wait for. Entries go when nobody waits any more.
#[derive(Default)]
pub(crate) struct Wakes(Mutex<HashMap<Uuid, watch::Sender<()>>>);

/// Sees all news since it was made: look at the tables, then wait.
pub(crate) struct Waiter(watch::Receiver<()>);

impl Wakes {
    pub(super) fn waiter(&self, id: Uuid) -> Waiter {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Waiter(map.entry(id).or_insert_with(|| watch::channel(()).0).subscribe())
    }

    pub(super) fn wake(&self, ids: impl IntoIterator<Item = Uuid>) {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for id in ids {
            if let Some(sender) = map.get(&id)
                && sender.send(()).is_err()
            {
                map.remove(&id);
            }
        }
        if map.len() > 64 && map.len() > 4 * map.values().filter(|sender| sender.receiver_count() > 0).count() {
            map.retain(|_, sender| sender.receiver_count() > 0);
        }
    }
}

impl Waiter {
    /// Waits for the next news; returns at once where there was some since the last call.
    pub(crate) async fn news(&mut self) {
        if self.0.changed().await.is_err() {
            // The sender is only dropped while nobody listens, so this cannot be; never spin on it.
            std::future::pending::<()>().await;
        }
    }
}
