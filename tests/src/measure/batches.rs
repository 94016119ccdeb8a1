//! How many jobs of the store shared each COMMIT: counted by hearing what the writer traces.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Jobs of each COMMIT since [`take`].
static COUNTED: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Hears the writer, and nothing else.
struct Counting;

impl Subscriber for Counting {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target() == "assistant_host::store::writer"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Jobs);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Jobs;

impl Visit for Jobs {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "committed" {
            COUNTED.lock().unwrap_or_else(PoisonError::into_inner).push(value);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

/// Counts from now on, for the whole program.
///
/// # Errors
/// In words, where something else hears already.
pub fn count() -> Result<(), String> {
    tracing::subscriber::set_global_default(Counting).map_err(|error| error.to_string())
}

/// The jobs of each COMMIT since the last call.
#[must_use]
pub fn take() -> Vec<u64> {
    std::mem::take(&mut *COUNTED.lock().unwrap_or_else(PoisonError::into_inner))
}
