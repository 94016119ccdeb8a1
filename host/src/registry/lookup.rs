//! Finds things by a key without a copy of the keys: made in no time, for many things.

use std::hash::{DefaultHasher, Hash, Hasher};

/// The places of things, by a hash of their key.
#[derive(Debug, Clone, Default)]
pub(super) struct Lookup {
    /// In order.
    places: Vec<(u64, u32)>,
}

impl Lookup {
    /// Of things with these keys, which stay at their places.
    pub(super) fn of(keys: impl Iterator<Item = impl AsRef<str>>) -> Self {
        let mut places: Vec<_> = (0..).zip(keys).map(|(place, key)| (hash(key.as_ref()), place)).collect();
        places.sort_unstable();
        Self { places }
    }

    /// The first place with this `key`; two keys may have one hash, so `is` tells whether it is that one.
    pub(super) fn find(&self, key: &str, is: impl Fn(usize) -> bool) -> Option<usize> {
        let hash = hash(key);
        let from = self.places.partition_point(|(other, _)| *other < hash);
        let same = self.places[from..].iter().take_while(|(other, _)| *other == hash);
        same.map(|(_, place)| *place as usize).find(|place| is(*place))
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
}
