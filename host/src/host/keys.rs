//! Keys of models that this host has not, and a client has.

use std::sync::PoisonError;

use super::Host;

impl Host {
    /// Variables with keys that clients have told and this host has not.
    pub(crate) fn keys_elsewhere(&self) -> Vec<String> {
        self.0.keys_elsewhere.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes variables with keys that a client has and this host has not.
    #[cfg(feature = "socket")]
    pub(crate) fn note_keys(&self, names: Vec<String>) {
        let mut known = self.0.keys_elsewhere.write().unwrap_or_else(PoisonError::into_inner);
        for name in names {
            if !known.contains(&name) {
                known.push(name);
            }
        }
    }
}
