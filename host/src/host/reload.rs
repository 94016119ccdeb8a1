//! The assistants read anew: the files of the sources, what the database keeps, the mirror and the search index.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio::sync::Mutex;

use super::{Host, OpenError, Options};
use crate::registry::mirror::{self, Difference};
use crate::registry::{AssistantId, Definition, Files, Registry};
use crate::search::SearchIndex;
use crate::store::{Store, StoreError};

/// What is done here, for the log.
const READING: &str = "reading the assistants";

/// One at a time. Who asks while one runs gets the next one, and shares it with all others that asked meanwhile.
pub(super) struct Reloads {
    asked: AtomicU64,
    /// The database's own that were changed and are not taken on yet, each with the number of its change.
    touched: std::sync::Mutex<HashMap<AssistantId, u64>>,
    /// Held while files are read, so that what the database keeps can be taken on meanwhile.
    reading: Mutex<()>,
    read: Mutex<Read>,
}

/// What was read last.
struct Read {
    /// The last request that is served.
    served: u64,
    files: Arc<Files>,
    /// The database's own.
    stored: BTreeMap<AssistantId, Arc<Definition>>,
}

impl Reloads {
    /// Goes on from `files`, which were read first, joined with what is `stored`.
    pub(super) fn first(files: Files, stored: Vec<Definition>) -> (Self, Registry) {
        let stored: BTreeMap<_, _> = stored.into_iter().map(|one| (one.id.clone(), Arc::new(one))).collect();
        let registry = files.registry().join(stored.values().cloned());
        let read = Read { served: 0, files: Arc::new(files), stored };
        let (asked, touched, reading) = Default::default();
        (Self { asked, touched, reading, read: Mutex::new(read) }, registry)
    }

    fn touched(&self) -> MutexGuard<'_, HashMap<AssistantId, u64>> {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner)
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
        let _reading = self.0.reloads.reading.lock().await;
        let known = {
            let read = self.0.reloads.read.lock().await;
            if read.served >= mine {
                return Ok(false);
            }
            read.files.clone()
        };
        let (host, asked) = (self.clone(), self.0.reloads.asked.load(Ordering::Relaxed));
        let reading = tokio::task::spawn_blocking(move || known.again(&host.0.options.sources, SystemTime::now()));
        let files = Arc::new(reading.await.map_err(StoreError::panicked(READING))?);
        let mut read = self.0.reloads.read.lock().await;
        let changed = self.put_in_place(files.clone(), &mut read).await?;
        (read.served, read.files) = (asked, files);
        Ok(changed)
    }

    /// Takes on what was committed of the database's own assistants `ids`; the files are those that were read last. All
    /// who wait for that share the next one. What could not be taken on is so with the next one, and with each
    /// [`Host::reload`].
    ///
    /// # Errors
    /// As [`Host::reload`].
    pub(super) async fn rejoin(&self, ids: Vec<AssistantId>) -> Result<(), OpenError> {
        let change = self.0.reloads.asked.fetch_add(1, Ordering::Relaxed);
        self.0.reloads.touched().extend(ids.iter().map(|id| (id.clone(), change)));
        let mut read = self.0.reloads.read.lock().await;
        let waits = ids.iter().any(|id| self.0.reloads.touched().contains_key(id));
        if waits {
            let files = read.files.clone();
            self.put_in_place(files, &mut read).await?;
        }
        Ok(())
    }

    /// Puts the index of the assistants, read anew, in place of `failed` if files of that were damaged while it was open;
    /// of all who ask for that one does it. False where they are whole, as another one would fail as well, and where the
    /// host closes: nobody is to wait for it.
    ///
    /// # Errors
    /// The index's.
    pub(crate) async fn search_anew(&self, failed: &Arc<SearchIndex>) -> Result<bool, OpenError> {
        let (host, failed) = (self.clone(), failed.clone());
        // Whoever gives up waiting does not stop it half way.
        let reading = self.0.runners.spawn(async move {
            let _read = host.0.reloads.read.lock().await;
            if !Arc::ptr_eq(&failed, &host.search()) {
                return Ok(true);
            }
            if host.closing().is_cancelled() {
                return Ok(false);
            }
            let registry = host.registry();
            let opening = tokio::task::spawn_blocking(move || match failed.is_whole() {
                true => Ok(None),
                false => failed.anew(&registry).map(Some),
            });
            let Some(index) = opening.await.map_err(StoreError::panicked(READING))?? else { return Ok(false) };
            *host.0.search.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(index);
            host.merge_search();
            Ok(true)
        });
        reading.await.map_err(StoreError::panicked(READING))?
    }

    /// Joins `files` with what the database keeps, and puts that in place of what there is where it is another.
    async fn put_in_place(&self, files: Arc<Files>, read: &mut Read) -> Result<bool, OpenError> {
        let touched = self.0.reloads.touched().clone();
        let (host, ids) = (self.clone(), touched.keys().cloned().collect::<Vec<_>>());
        let looking = tokio::task::spawn_blocking(move || host.own(ids));
        for (id, own) in looking.await.map_err(StoreError::panicked(READING))?? {
            match own {
                Some(definition) => _ = read.stored.insert(id, definition),
                None => _ = read.stored.remove(&id),
            }
        }
        let (host, stored) = (self.clone(), read.stored.values().cloned().collect());
        let joining = tokio::task::spawn_blocking(move || host.next(&files, stored));
        let next = joining.await.map_err(StoreError::panicked(READING))??;
        let changed = next.is_some();
        if let Some(Next { registry, index, difference }) = next {
            if !difference.is_empty() {
                let mirrored = self.store().write(move |tx| {
                    let mirrored = mirror::follow(tx.db, &difference, tx.now);
                    mirrored.map_err(StoreError::from)
                });
                let mirrored = mirrored.await?;
                tracing::info!(?mirrored, "the assistants were read again");
            }
            // The registry first: what the index does not know yet is not found, what the registry did not know would be
            // an error.
            *self.0.registry.write().unwrap_or_else(PoisonError::into_inner) = registry.clone();
            *self.0.search.write().unwrap_or_else(PoisonError::into_inner) = index;
            self.merge_search();
            // Nobody follows the changes, mostly.
            drop(self.0.registry_changed.send(registry));
        }
        // What was changed again meanwhile has another number.
        self.0.reloads.touched().retain(|id, change| touched.get(id) != Some(change));
        Ok(changed)
    }

    /// What the database keeps of its own under each of `ids`.
    fn own(&self, ids: Vec<AssistantId>) -> Result<Vec<Own>, StoreError> {
        let old = self.registry();
        self.store().look(|db| {
            let one = |id: AssistantId| {
                let own = mirror::kept(db, &id)?;
                Ok((id, own.map(|own| old.same_or(own))))
            };
            ids.into_iter().map(one).collect()
        })
    }

    /// Keeps the parts of the search index few, beside all else; [`Host::close`] gives that up.
    pub(super) fn merge_search(&self) {
        let index = self.search();
        // Looked at after the index was taken: one that comes later is stopped by nobody.
        if self.closing().is_cancelled() {
            return;
        }
        self.0.runners.spawn_blocking(move || {
            if let Err(error) = index.merge() {
                tracing::warn!(%error, "parts of the search index were not merged; they are with the next update");
            }
        });
    }

    /// What comes after what there is; none where nothing is another.
    fn next(&self, files: &Files, stored: Vec<Arc<Definition>>) -> Result<Option<Next>, OpenError> {
        let old = self.registry();
        let registry = files.registry().join(stored);
        if registry == *old {
            return Ok(None);
        }
        let index = Arc::new(self.search().follow(&registry)?);
        let difference = Difference::between(&old, &registry);
        Ok(Some(Next { registry: Arc::new(registry), index, difference }))
    }
}

/// What the database keeps of its own under an id.
type Own = (AssistantId, Option<Arc<Definition>>);

/// A registry, its index, and what is another in the rows of its files.
struct Next {
    registry: Arc<Registry>,
    index: Arc<SearchIndex>,
    difference: Difference,
}

#[cfg(test)]
mod tests;
