//! Finds things by a key without a copy of the keys: made in no time, for many things.

use std::hash::{DefaultHasher, Hash, Hasher};

/// The places of things, by a hash of their keys.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lookup {
    /// In order.
    places: Vec<(u64, u32)>,
}

impl Lookup {
    /// Of things with these keys, which stay at their places.
    pub(crate) fn of(keys: impl Iterator<Item = impl AsRef<str>>) -> Self {
        Self::default().with(keys.zip(0..))
    }

    /// The same with more keys, each of the thing at that place.
    pub(crate) fn with(mut self, keys: impl Iterator<Item = (impl AsRef<str>, u32)>) -> Self {
        self.places.extend(keys.map(|(key, place)| (hash(key.as_ref()), place)));
        // Stable: what was in order mostly is so still.
        self.places.sort();
        self.places.dedup();
        self
    }

    /// The same things at other places: where each is now stands at its place in `moves`. Those that are nowhere are left
    /// out.
    pub(crate) fn moved(&self, moves: &[Option<usize>]) -> Self {
        let moves: Vec<_> = moves.iter().map(|place| place.and_then(|place| u32::try_from(place).ok())).collect();
        let moved = self.places.iter().filter_map(|(hash, place)| Some((*hash, moves[*place as usize]?)));
        let mut places: Vec<_> = moved.collect();
        places.sort();
        Self { places }
    }

    /// The places where `key` may be, in order; two keys may have one hash.
    pub(crate) fn all(&self, key: &str) -> impl Iterator<Item = usize> {
        let hash = hash(key);
        let from = self.places.partition_point(|(other, _)| *other < hash);
        let same = self.places[from..].iter().take_while(move |(other, _)| *other == hash);
        same.map(|(_, place)| *place as usize)
    }

    /// The first place with this `key`; `is` tells whether a place has it.
    pub(super) fn find(&self, key: &str, is: impl Fn(usize) -> bool) -> Option<usize> {
        self.all(key).find(|place| is(*place))
    }
}

fn hash(key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_key_is_found() {
        let keys = ["pear", "plum", "pear", "", "plum", "quince"];
        let lookup = Lookup::of(keys.iter());
        let check = |key: &str, expected: Option<usize>| {
            assert_eq!(lookup.find(key, |place| keys[place] == key), expected, "{key:?}");
        };
        check("pear", Some(0));
        check("plum", Some(1));
        check("quince", Some(5));
        check("", Some(3));
        check("melon", None);
        assert_eq!(lookup.find("pear", |_| false), None);
        assert_eq!(Lookup::default().find("", |_| true), None);
    }

    #[test]
    fn things_move_and_more_come() {
        let lookup = Lookup::of(["pear", "plum", "pear"].iter());
        let next = lookup.moved(&[Some(3), None, Some(0)]).with([("fig", 1), ("pear", 2), ("pear", 2)].into_iter());
        let check = |key: &str, expected: &[usize]| assert_eq!(next.all(key).collect::<Vec<_>>(), expected, "{key}");
        check("pear", &[0, 2, 3]);
        check("plum", &[]);
        check("fig", &[1]);
    }
}
