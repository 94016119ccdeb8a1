//! The ids by which calls are told: each stands for one call of this runner's life.
//!
//! The host takes a second call of the same id for the first, the answers to what it was asked included; but agents count as
//! they like, and some begin anew with each turn.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

/// The longest id that is told as it is, in bytes.
pub(crate) const ID_BYTES_MAX: usize = 256;
/// Ids that are remembered; beyond them each is taken for one that was there before.
const KNOWN_MAX: usize = 100_000;

/// Ids that were told. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ids(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    ids: HashSet<u64>,
    number: u64,
}

impl Ids {
    /// An id that was not told before: `wish` where that is free, else one that begins so.
    pub(crate) fn new_id(&self, wish: &str) -> String {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_good = !wish.is_empty() && wish.len() <= ID_BYTES_MAX && known.ids.len() < KNOWN_MAX;
        if is_good && known.ids.insert(hash(wish)) {
            return wish.to_owned();
        }
        let begin = if wish.is_empty() { "call" } else { cut(wish, ID_BYTES_MAX) };
        loop {
            known.number += 1;
            let id = format!("{begin}#{}", known.number);
            // Where no more are remembered, the number makes it new.
            if known.ids.len() >= KNOWN_MAX || known.ids.insert(hash(&id)) {
                return id;
            }
        }
    }
}

/// Ids of an agent's own that are remembered for a while, as much of them as there is room for.
#[derive(Debug, Default)]
pub(crate) struct Seen(HashSet<u64>);

impl Seen {
    /// Remembers an id; false where it is remembered already. Without room it counts as new.
    pub(crate) fn insert(&mut self, id: &str) -> bool {
        let id = hash(id);
        if self.0.len() >= KNOWN_MAX { !self.0.contains(&id) } else { self.0.insert(id) }
    }

    /// Forgets an id; false where it is not remembered.
    pub(crate) fn remove(&mut self, id: &str) -> bool {
        self.0.remove(&hash(id))
    }

    /// Whether an id is remembered.
    pub(crate) fn contains(&self, id: &str) -> bool {
        self.0.contains(&hash(id))
    }

    /// Whether none is remembered.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// At most `bytes` bytes of a text, whole letters.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// A number for a text.
pub(crate) fn hash(text: &str) -> u64 {
    let mut hash = DefaultHasher::new();
    text.hash(&mut hash);
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_is_given_twice() {
        let ids = Ids::default();
        let got = ["c1", "c1", "c1#2", "", "c1"].map(|wish| ids.new_id(wish));
        assert_eq!(got, ["c1", "c1#1", "c1#2", "call#2", "c1#3"]);
        assert!(ids.new_id(&"x".repeat(5_000)).len() < 300);
        let all: HashSet<String> = (0..KNOWN_MAX + 1_000).map(|at| ids.new_id(&format!("d{}", at % 70_000))).collect();
        assert_eq!(all.len(), KNOWN_MAX + 1_000);
    }
}
