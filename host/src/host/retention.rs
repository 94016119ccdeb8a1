//! Retention: what was kept for long enough is removed, a while after the start and then once an hour; and `vacuum`, which
//! gives the space back.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::{Host, OpenError, lock};
use crate::limits::Limits;
use crate::process_table::retention::{self, Removal};
use crate::store::{Clock, Store, StoreError, Vacuumed};

/// From the start of a host to its first look: until then it has better things to do.
const FIRST: Duration = Duration::from_secs(60);
/// From one look to the next.
const EVERY: Duration = Duration::from_secs(60 * 60);

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// Trees of processes.
    pub trees: u64,
    /// Processes.
    pub processes: u64,
}

/// What `vacuum` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleaned {
    /// What was kept for long enough, and is gone.
    #[serde(flatten)]
    pub removed: Removed,
    /// What that gave back.
    #[serde(flatten)]
    pub space: Vacuumed,
}

impl Host {
    /// Removes the trees that ended more than `limits.retention_days` ago, and the oldest ones while the database is
    /// larger than `limits.retention_bytes`. Never what lives. The host does this by itself once an hour.
    ///
    /// # Errors
    /// The store's; what was removed until then is removed.
    pub async fn retain(&self) -> Result<Removed, StoreError> {
        retain(self.store(), self.limits(), self.now(), self.closing()).await
    }

    /// The same, and gives the space back to the system. Calls wait meanwhile.
    ///
    /// # Errors
    /// The store's.
    pub async fn vacuum(&self) -> Result<Cleaned, StoreError> {
        let removed = self.retain().await?;
        Ok(Cleaned { removed, space: self.store().vacuum().await? })
    }
}

/// [`Host::vacuum`] on the state directory of no running host, which is held meanwhile.
///
/// # Errors
/// [`OpenError::Held`] where a host has it; the store's.
pub async fn vacuum(state: &Path, limits: Limits, clock: Clock) -> Result<Cleaned, OpenError> {
    let (state, now) = (state.to_owned(), clock());
    let opening = tokio::task::spawn_blocking(move || {
        let lock = lock::hold(&state, Duration::ZERO)?;
        Ok::<_, OpenError>((lock, Arc::new(Store::open(&state, clock)?)))
    });
    let (_lock, store) = opening.await.map_err(|_| StoreError::Panicked)??;
    let removed = retain(&store, &limits, now, &CancellationToken::new()).await?;
    Ok(Cleaned { removed, space: store.vacuum().await? })
}

/// Looks for what is to be removed until the host closes.
pub(super) async fn run(host: Host) {
    let mut wait = FIRST;
    loop {
        tokio::select! {
            () = host.closing().cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
        wait = EVERY;
        match host.retain().await {
            Ok(Removed { trees: 0, .. }) => tracing::debug!("nothing was kept for too long"),
            Ok(removed) => tracing::info!(?removed, "what was kept for long enough is removed"),
            Err(error) => tracing::error!(%error, "what was kept for long enough could not be removed"),
        }
    }
}

/// Small jobs, so that others come in between.
async fn retain(
    store: &Arc<Store>,
    limits: &Limits,
    now: i64,
    closing: &CancellationToken,
) -> Result<Removed, StoreError> {
    let (limits, mut removed) = (*limits, Removed::default());
    loop {
        let due = store.read(move |db| retention::due(db, &limits, now)).await?;
        let before = removed.trees;
        for root in due {
            while !closing.is_cancelled() {
                let tree = root.clone();
                match store.write(move |tx| retention::remove(tx, &tree, &limits)).await {
                    Ok(Removal::More) => continue,
                    Ok(Removal::Gone(processes)) => {
                        removed.trees += 1;
                        removed.processes += processes;
                    }
                    Ok(Removal::Kept) => {}
                    Err(error) if error.passes() => return Err(error),
                    // It stays; the others go.
                    Err(error) => tracing::error!(%error, root, "a tree that was kept for long enough stays"),
                }
                break;
            }
        }
        if removed.trees == before || closing.is_cancelled() {
            break;
        }
    }
    while !closing.is_cancelled() && store.write(move |tx| retention::sweep(tx, &limits)).await? {}
    Ok(removed)
}

#[cfg(test)]
mod tests;
