//! The order of requests: what one of them does before it passes is done before what later ones do when they have come.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The places of the requests of one link that have not passed.
#[derive(Debug)]
pub(super) struct Turns {
    open: Mutex<Open>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    places: BTreeSet<u64>,
}

impl Default for Turns {
    fn default() -> Self {
        Self { open: Mutex::default(), changed: watch::Sender::new(()) }
    }
}

impl Turns {
    /// The place of a request that comes now. Called by the reader, in the order of the lines.
    pub(super) fn take(self: &Arc<Self>) -> Turn {
        let mut open = self.open();
        let number = open.next;
        open.next += 1;
        open.places.insert(number);
        drop(open);
        Turn(Arc::new(Place { turns: self.clone(), number }))
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a request among those of its link. It passes when it says so, or when its last clone is dropped.
#[derive(Debug, Clone)]
pub struct Turn(Arc<Place>);

#[derive(Debug)]
struct Place {
    turns: Arc<Turns>,
    number: u64,
}

impl Turn {
    /// Waits until all requests that came before this one have passed.
    pub async fn come(&self) {
        let mut changed = self.0.turns.changed.subscribe();
        while self.0.turns.open().places.first().is_some_and(|first| *first < self.0.number) {
            if changed.changed().await.is_err() {
                // The sender lives as long as this place.
                return;
            }
        }
    }

    /// Lets those go ahead that came later.
    pub fn pass(&self) {
        self.0.pass();
    }
}

impl Place {
    fn pass(&self) {
        if self.turns.open().places.remove(&self.number) {
            self.turns.changed.send_replace(());
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.pass();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn later_ones_wait_until_all_before_have_passed() {
        let turns = Arc::new(Turns::default());
        let (first, second, third) = (turns.take(), turns.take(), turns.take());
        let may = |turn: &Turn| turn.come().now_or_never().is_some();
        assert_eq!([may(&first), may(&second), may(&third)], [true, false, false]);
        second.pass();
        assert_eq!([may(&third), may(&second)], [false, false], "the first has not passed");
        drop(first.clone());
        assert!(!may(&third), "a clone is left");
        drop(first);
        assert_eq!([may(&second), may(&third)], [true, true]);
        second.pass();
        drop((second, third));
        assert!(turns.open().places.is_empty());
    }
}
