//! Assistants of an app: made, changed and removed in the database, found by search when the call returns.

use assistant_protocol::ids::ProcessId;

use super::{Host, OpenError};
use crate::registry::{AssistantId, Definition, Source, mirror};
use crate::store::StoreError;

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
    /// It is stored, and the host could not read its assistants anew.
    #[error(transparent)]
    Reload(#[from] OpenError),
}

impl Host {
    /// Stores a new assistant.
    ///
    /// # Errors
    /// [`NotStored::Exists`] where there is one of this id, in the database or in a file.
    pub async fn create_assistant(&self, definition: Definition) -> Result<(), NotStored> {
        if self.registry().get(&definition.id).is_some() {
            return Err(NotStored::Exists(definition.id));
        }
        self.put(definition).await
    }

    /// Stores an assistant in place of the one of its id. Running processes keep the definition that they started with.
    ///
    /// # Errors
    /// [`NotStored::Unknown`] and [`NotStored::OfAFile`].
    pub async fn update_assistant(&self, definition: Definition) -> Result<(), NotStored> {
        self.own(&definition.id)?;
        self.put(definition).await
    }

    /// Removes an assistant. Its row stays, so that old processes can be read.
    ///
    /// # Errors
    /// [`NotStored::Unknown`] and [`NotStored::OfAFile`].
    pub async fn remove_assistant(&self, id: &AssistantId) -> Result<(), NotStored> {
        self.own(id)?;
        let removed = id.clone();
        let gone = self.store().write(move |tx| Ok::<_, StoreError>(mirror::delete(tx.db, &removed, tx.now)?)).await?;
        if !gone {
            return Err(NotStored::Unknown(id.clone()));
        }
        self.reload().await?;
        Ok(())
    }

    /// The definition that a process started with.
    ///
    /// # Errors
    /// The store's.
    pub async fn definition_of(&self, process: ProcessId) -> Result<Option<Definition>, StoreError> {
        let look = self.store().read(move |db| {
            let Some(row) = crate::process_table::find(db, process)? else { return Ok(None) };
            let json = crate::process_table::snapshot(db, &row.snapshot)?;
            serde_json::from_str(&json).map(Some).map_err(|error| StoreError::Damaged(error.to_string()))
        });
        look.await
    }

    /// Whether an assistant is one of the database.
    fn own(&self, id: &AssistantId) -> Result<(), NotStored> {
        match self.registry().get(id) {
            Some(known) if known.source == Source::Database => Ok(()),
            Some(_) => Err(NotStored::OfAFile(id.clone())),
            None => Err(NotStored::Unknown(id.clone())),
        }
    }

    async fn put(&self, definition: Definition) -> Result<(), NotStored> {
        self.store().write(move |tx| Ok::<_, StoreError>(mirror::put(tx.db, &definition, tx.now)?)).await?;
        self.reload().await?;
        Ok(())
    }
}
