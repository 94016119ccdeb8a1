//! What assistants name in their files and may run, by what the user has said until now.

use std::sync::Arc;

use super::Host;
use crate::registry::Definition;
use crate::store::StoreError;
use crate::trust::{self, Book, Ruled};

impl Host {
    /// What the user trusts.
    #[must_use]
    pub fn trust(&self) -> Book {
        Book::at(self.0.options.trust.clone())
    }

    /// What each of these definitions would run, and which of it may. It is looked up anew each time, so that what the
    /// user allows or forbids counts from the next question on.
    ///
    /// # Errors
    /// The look itself failed: nothing may run then.
    pub async fn rule(&self, definitions: Vec<Arc<Definition>>) -> Result<Vec<Vec<Ruled>>, StoreError> {
        let book = self.trust();
        let look = move || definitions.iter().map(|definition| trust::rule(definition, &book)).collect();
        tokio::task::spawn_blocking(look).await.map_err(StoreError::panicked("looking up what is trusted"))
    }
}
