//! Many assistants stored or removed in one commit: by a running host, or in the state directory of none.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::NotStored;
use crate::host::{Host, OpenError, lock};
use crate::registry::{AssistantId, Definition, Source, mirror};
use crate::store::{Clock, Store, StoreError, Tx};

/// What became of each of many assistants that were to be stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// There was none of these ids.
    pub added: Vec<AssistantId>,
    /// They are in place of others of their ids.
    pub replaced: Vec<AssistantId>,
    /// They were there already, just so.
    pub unchanged: Vec<AssistantId>,
    /// Others of these ids are there and were not to be replaced.
    pub kept: Vec<AssistantId>,
    /// Files define these ids, and come first.
    pub of_files: Vec<AssistantId>,
}

/// How assistants are stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct How {
    /// In place of others of their ids.
    pub replace: bool,
    /// Nothing is stored, it is only told what would be.
    pub dry_run: bool,
}

impl Host {
    /// Stores assistants in the database: all that can be, or after an error none. They are found by search when this
    /// returns.
    ///
    /// # Errors
    /// The store's, and [`NotStored::Reload`] where they are stored and could not be read anew.
    pub async fn store_assistants(&self, definitions: Vec<Definition>, how: How) -> Result<Stored, NotStored> {
        let host = self.clone();
        self.change(move |tx| {
            let registry = host.registry();
            let of_file = |id: &AssistantId| registry.get(id).is_some_and(|known| known.source != Source::Database);
            let stored = store(tx, &definitions, how, of_file)?;
            let changed = if how.dry_run { Vec::new() } else { [&stored.added[..], &stored.replaced].concat() };
            Ok((stored, changed))
        })
        .await
    }
}

/// [`Host::store_assistants`] in the state directory of no running host, which is held meanwhile; `of_files` are the ids
/// that files define. Waits up to `wait` for whoever holds it.
///
/// # Errors
/// [`OpenError::Held`] where a host has it; the store's.
pub async fn store_assistants(
    state: &Path,
    wait: Duration,
    clock: Clock,
    of_files: HashSet<AssistantId>,
    definitions: Vec<Definition>,
    how: How,
) -> Result<Stored, OpenError> {
    let job = move |tx: &mut Tx<'_>| store(tx, &definitions, how, |id| of_files.contains(id));
    alone(state, wait, clock, job).await
}

/// [`Host::remove_assistant`] in the state directory of no running host; false where the database has none of this id.
///
/// # Errors
/// [`OpenError::Held`] where a host has it; the store's.
pub async fn remove_assistant(state: &Path, wait: Duration, clock: Clock, id: AssistantId) -> Result<bool, OpenError> {
    alone(state, wait, clock, move |tx| Ok::<_, StoreError>(mirror::delete(tx.db, &id, tx.now)?)).await
}

/// Does one job in the store of a state directory that is held meanwhile.
async fn alone<T: Send + 'static>(
    state: &Path,
    wait: Duration,
    clock: Clock,
    job: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, OpenError> {
    let state = state.to_owned();
    let opening = tokio::task::spawn_blocking(move || {
        let lock = lock::hold(&state, wait)?;
        Ok::<_, OpenError>((lock, Arc::new(Store::open(&state, clock)?)))
    });
    let (_lock, store) = opening.await.map_err(|_| StoreError::Panicked)??;
    Ok(store.write(job).await?)
}

fn store(
    tx: &Tx<'_>,
    definitions: &[Definition],
    how: How,
    of_file: impl Fn(&AssistantId) -> bool,
) -> Result<Stored, StoreError> {
    let mut stored = Stored::default();
    for definition in definitions {
        let id = &definition.id;
        let list = if of_file(id) {
            &mut stored.of_files
        } else {
            match mirror::compare(tx.db, definition)? {
                None => &mut stored.added,
                Some(true) => &mut stored.unchanged,
                Some(false) if how.replace => &mut stored.replaced,
                Some(false) => &mut stored.kept,
            }
        };
        list.push(id.clone());
    }
    if !how.dry_run {
        let news: HashSet<&AssistantId> = stored.added.iter().chain(&stored.replaced).collect();
        for definition in definitions.iter().filter(|one| news.contains(&one.id)) {
            mirror::put(tx.db, definition, tx.now)?;
        }
    }
    Ok(stored)
}
