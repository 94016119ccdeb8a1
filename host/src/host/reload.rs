//! The assistants read anew: the files of the sources, what the database keeps, the mirror and the search index.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use tokio::sync::Mutex;

use super::{Host, OpenError};
use crate::registry::{Registry, mirror};
use crate::store::StoreError;

/// One at a time. Who asks while one runs gets the next one, and shares it with all others that asked meanwhile.
#[derive(Default)]
pub(super) struct Reloads {
    asked: AtomicU64,
    /// The last request that is served.
    served: Mutex<u64>,
}

impl Host {
    /// Reads the assistants anew, and puts them in place of those that there were where anything is another. Returns
    /// whether it is. Running processes keep the definition that they started with.
    ///
    /// # Errors
    /// The store's and the index's; the assistants stay as they were then.
    pub async fn reload(&self) -> Result<bool, OpenError> {
        let mine = self.0.reloads.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let mut served = self.0.reloads.served.lock().await;
        if *served >= mine {
            return Ok(false);
        }
        let asked = self.0.reloads.asked.load(Ordering::Relaxed);
        let changed = self.read_again().await?;
        *served = asked;
        Ok(changed)
    }

    async fn read_again(&self) -> Result<bool, OpenError> {
        let host = self.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let stored = host.store().look(|db| Ok::<_, StoreError>(mirror::stored(db)?))?;
            let registry = Registry::read(&host.0.options.sources).join(stored);
            let old = host.registry();
            let same = registry.fingerprint() == old.fingerprint();
            if same && registry.skipped() == old.skipped() && registry.shadowed() == old.shadowed() {
                return Ok(None);
            }
            let index = match same {
                true => host.search(),
                false => Arc::new(host.search().follow(&registry)?),
            };
            Ok::<_, OpenError>(Some((Arc::new(registry), index)))
        });
        let panicked = |error| StoreError::Damaged(format!("reading the assistants panicked: {error}"));
        let Some((registry, index)) = reading.await.map_err(panicked)?? else { return Ok(false) };
        let mirrored = registry.clone();
        let mirrored =
            self.store().write(move |tx| Ok::<_, StoreError>(mirror::mirror(tx.db, &mirrored, tx.now)?)).await?;
        tracing::info!(?mirrored, "the assistants were read again");
        // The registry first: what the index does not know yet is not found, what the registry did not know would be an
        // error.
        *self.0.registry.write().unwrap_or_else(PoisonError::into_inner) = registry.clone();
        *self.0.search.write().unwrap_or_else(PoisonError::into_inner) = index;
        // Nobody follows the changes, mostly.
        drop(self.0.registry_changed.send(registry));
        Ok(true)
    }
}
