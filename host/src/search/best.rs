//! The first hits of many, without keeping the many.

use super::query::Matched;

/// A document with its scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ranked {
    pub(super) place: usize,
    pub(super) total: f32,
    pub(super) score: f32,
    pub(super) matched: Matched,
}

/// The best of those that were added, by total; the assistants are in the order of name and id, so their places break
/// ties.
pub(super) struct Best {
    limit: usize,
    /// At most twice `limit` of them.
    found: Vec<Ranked>,
    /// What is below this is none of the best.
    least: f32,
}

impl Best {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, found: Vec::new(), least: f32::NEG_INFINITY }
    }

    /// Whether one with this total may still be one of the best.
    pub(super) fn may_take(&self, total: f32) -> bool {
        total >= self.least && self.limit > 0
    }

    pub(super) fn add(&mut self, ranked: Ranked) {
        if !self.may_take(ranked.total) {
            return;
        }
        self.found.push(ranked);
        if self.found.len() >= self.limit.saturating_mul(2) {
            self.found.select_nth_unstable_by(self.limit, order);
            self.found.truncate(self.limit);
            self.least = self.found.iter().map(|found| found.total).fold(f32::INFINITY, f32::min);
        }
    }

    /// The best, best first.
    pub(super) fn sorted(mut self) -> Vec<Ranked> {
        self.found.sort_unstable_by(order);
        self.found.truncate(self.limit);
        self.found
    }
}

fn order(a: &Ranked, b: &Ranked) -> std::cmp::Ordering {
    b.total.total_cmp(&a.total).then(a.place.cmp(&b.place))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_best_are_the_first_of_all(totals in prop::collection::vec(0_u8..20, 0..200), limit in 0_usize..60) {
            let all = totals.iter().enumerate().map(|(place, total)| {
                // In another order than that of the places.
                let place = (place * 77) % 211;
                Ranked { place, total: f32::from(*total), score: 0.5, matched: 1 }
            });
            let mut best = Best::new(limit);
            all.clone().for_each(|ranked| best.add(ranked));
            let mut sorted: Vec<_> = all.collect();
            sorted.sort_by(order);
            sorted.truncate(limit);
            prop_assert_eq!(best.sorted(), sorted);
        }
    }
}
