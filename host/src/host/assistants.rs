//! Assistants of an app: made, changed and removed in the database, found by search when the call returns.

use assistant_protocol::ids::ProcessId;

use super::{Host, OpenError};
use crate::registry::{AssistantId, Definition, Source, mirror};
use crate::store::{StoreError, Tx};

pub mod stored;

/// Why an assistant was not stored.
#[derive(Debug, thiserror::Error)]
pub enum NotStored {
    /// There is one of this id.
    #[error("there is an assistant `{0}` already")]
    Exists(AssistantId),
    /// There is none of this id in the database.
    #[error("no assistant of the database has the id `{0}`")]
    Unknown(AssistantId),
    /// A file defines it: it is changed and removed there.
    #[error("`{0}` is defined in a file; change that")]
    OfAFile(AssistantId),
    /// The store's.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It is stored, and not taken on yet: the next change or reading of the assistants does that.
    #[error(
        "the assistant is stored and cannot be found yet, the next change of an assistant or the next start sees to it: {0}"
    )]
    Reload(#[from] OpenError),
}

impl Host {
    /// Stores a new assistant.
    ///
    /// # Errors
    /// [`NotStored::Exists`] where there is one of this id, in the database or in a file.
    pub async fn create_assistant(&self, definition: Definition) -> Result<(), NotStored> {
        self.put(definition, |found, id| match found {
            None => Ok(()),
            Some(_) => Err(NotStored::Exists(id)),
        })
        .await
    }

    /// Stores an assistant in place of the one of its id. Running processes keep the definition that they started with.
    ///
    /// # Errors
    /// [`NotStored::Unknown`] and [`NotStored::OfAFile`].
    pub async fn update_assistant(&self, definition: Definition) -> Result<(), NotStored> {
        self.put(definition, own).await
    }

    /// Removes an assistant. Its row stays, so that old processes can be read.
    ///
    /// # Errors
    /// [`NotStored::Unknown`] and [`NotStored::OfAFile`].
    pub async fn remove_assistant(&self, id: &AssistantId) -> Result<(), NotStored> {
        let (host, id) = (self.clone(), id.clone());
        self.change(move |tx| {
            own(host.found(tx, &id)?, id.clone())?;
            mirror::delete(tx.db, &id, tx.now).map_err(StoreError::from)?;
            Ok(((), vec![id]))
        })
        .await
    }

    /// The definition that a process started with.
    ///
    /// # Errors
    /// The store's.
    pub async fn definition_of(&self, process: ProcessId) -> Result<Option<Definition>, StoreError> {
        let look = self.store().read(move |db| {
            let Some(row) = crate::process_table::find(db, process)? else { return Ok(None) };
            crate::process_table::definition(db, &row).map(Some)
        });
        look.await
    }

    /// Where the assistant of this id comes from, if there is one: a file hides one of the database.
    fn found(&self, tx: &Tx<'_>, id: &AssistantId) -> Result<Option<Source>, StoreError> {
        let of_a_file = self.registry().get(id).map(|known| known.source).filter(|source| *source != Source::Database);
        let stored = mirror::is_stored(tx.db, id)?.then_some(Source::Database);
        Ok(of_a_file.or(stored))
    }

    /// Stores a definition where `may` has nothing against it. Both are one job, so that of two who create the same one
    /// only one does.
    async fn put(
        &self,
        definition: Definition,
        may: impl FnOnce(Option<Source>, AssistantId) -> Result<(), NotStored> + Send + 'static,
    ) -> Result<(), NotStored> {
        let host = self.clone();
        self.change(move |tx| {
            may(host.found(tx, &definition.id)?, definition.id.clone())?;
            mirror::put(tx.db, &definition, tx.now).map_err(StoreError::from)?;
            Ok(((), vec![definition.id]))
        })
        .await
    }

    /// Does `job`, which tells the ids of the database's assistants that it has changed, and takes those on. Whoever gives
    /// up waiting does not stop it half way.
    async fn change<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Tx<'_>) -> Result<(T, Vec<AssistantId>), NotStored> + Send + 'static,
    ) -> Result<T, NotStored> {
        let host = self.clone();
        let changing = self.0.runners.spawn(async move {
            let (done, changed) = host.store().write(job).await?;
            host.rejoin(changed).await?;
            Ok(done)
        });
        changing.await.unwrap_or(Err(StoreError::Panicked.into()))
    }
}

/// What is changed and removed has to be one of the database.
fn own(found: Option<Source>, id: AssistantId) -> Result<(), NotStored> {
    match found {
        Some(Source::Database) => Ok(()),
        Some(Source::Project | Source::User | Source::Dir) => Err(NotStored::OfAFile(id)),
        None => Err(NotStored::Unknown(id)),
    }
}
