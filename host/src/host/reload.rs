//! The assistants read anew: the files of the sources, what the database keeps, the mirror and the search index.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::SystemTime;

use tokio::sync::Mutex;

use super::{Host, OpenError, Options};
use crate::registry::{Files, Registry, mirror};
use crate::search::SearchIndex;
use crate::store::{Store, StoreError};

/// One at a time. Who asks while one runs gets the next one, and shares it with all others that asked meanwhile.
pub(super) struct Reloads {
    asked: AtomicU64,
    read: Mutex<Read>,
}

/// What was read last.
struct Read {
    /// The last request that is served.
    served: u64,
    files: Arc<Files>,
}

/// What comes in the place of what there is.
type Next = (Arc<Registry>, Arc<SearchIndex>);

impl Reloads {
    /// Goes on from `files`.
    pub(super) fn after(files: Files) -> Self {
        Self { asked: AtomicU64::new(0), read: Mutex::new(Read { served: 0, files: Arc::new(files) }) }
    }
}

/// Opens the store, and reads the files while that waits for the disk.
pub(super) fn open(options: &Options) -> Result<(Arc<Store>, Files), OpenError> {
    let (store, files) = std::thread::scope(|scope| {
        let reading = scope.spawn(|| Files::default().again(&options.sources, SystemTime::now()));
        (Store::open(&options.state, options.clock.clone()), reading.join())
    });
    let files = files.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    Ok((Arc::new(store?), files))
}

impl Host {
    /// Reads the assistants anew, and puts them in place of those that there were where anything is another. Returns
    /// whether it is. Running processes keep the definition that they started with. Files that did not change are not
    /// opened.
    ///
    /// # Errors
    /// The store's and the index's; the assistants stay as they were then.
    pub async fn reload(&self) -> Result<bool, OpenError> {
        let mine = self.0.reloads.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let mut read = self.0.reloads.read.lock().await;
        if read.served >= mine {
            return Ok(false);
        }
        let asked = self.0.reloads.asked.load(Ordering::Relaxed);
        let (host, known) = (self.clone(), read.files.clone());
        let reading = tokio::task::spawn_blocking(move || known.again(&host.0.options.sources, SystemTime::now()));
        let files = Arc::new(reading.await.map_err(|error| panicked(&error))?);
        let changed = self.put_in_place(files.clone()).await?;
        *read = Read { served: asked, files };
        Ok(changed)
    }

    /// Takes on what changed in the database; the files are those that were read last.
    ///
    /// # Errors
    /// As [`Host::reload`].
    pub(super) async fn rejoin(&self) -> Result<bool, OpenError> {
        let read = self.0.reloads.read.lock().await;
        self.put_in_place(read.files.clone()).await
    }

    /// Joins `files` with what the database keeps, and puts that in place of what there is where it is another.
    async fn put_in_place(&self, files: Arc<Files>) -> Result<bool, OpenError> {
        let host = self.clone();
        let joining = tokio::task::spawn_blocking(move || host.next(&files));
        let Some((registry, index)) = joining.await.map_err(|error| panicked(&error))?? else { return Ok(false) };
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

    /// The registry and its index after those that there are; none where nothing is another.
    fn next(&self, files: &Files) -> Result<Option<Next>, OpenError> {
        let old = self.registry();
        let stored = self.store().look(|db| Ok::<_, StoreError>(mirror::stored(db)?))?;
        let registry = files.registry().join(stored.into_iter().map(|one| old.same_or(one)));
        if registry == *old {
            return Ok(None);
        }
        let index = match registry.fingerprint() == old.fingerprint() {
            true => self.search(),
            false => Arc::new(self.search().follow(&registry)?),
        };
        Ok(Some((Arc::new(registry), index)))
    }
}

fn panicked(error: &tokio::task::JoinError) -> StoreError {
    StoreError::Damaged(format!("reading the assistants panicked: {error}"))
}
