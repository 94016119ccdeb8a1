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

    /// Whether an agent gets the tools of its own that a definition asks for and that do more than look; none where it asks
    /// for no such tool.
    ///
    /// # Errors
    /// The look itself failed: it gets none of them then.
    pub async fn rule_own_tools(&self, definition: Arc<Definition>) -> Result<Option<Ruled>, StoreError> {
        let book = self.trust();
        let host = self.clone();
        let look = move || trust::rule_own_tools(&definition, host.configured_servers(), &book);
        tokio::task::spawn_blocking(look).await.map_err(StoreError::panicked("looking up what is trusted"))
    }

    /// Whether an agent that is to be this assistant has to do without those of its own tools that do more than look, because
    /// the user has not trusted the definition with them. What cannot be looked up is not trusted.
    pub(crate) async fn lacks_own_tools(&self, definition: &Definition) -> bool {
        match self.rule_own_tools(Arc::new(definition.clone())).await {
            Ok(ruled) => ruled.is_some_and(|ruled| ruled.answer.is_missing()),
            Err(error) => {
                tracing::error!(%error, assistant = %definition.id, "nobody knows whether its tools are trusted");
                true
            }
        }
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
