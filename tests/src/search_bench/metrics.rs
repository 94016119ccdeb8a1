//! What an answer is worth.
//!
//! * **nDCG@10**: a document of grade g at rank r (from 1) is worth (2^g − 1) / log2(r + 1); the sum of the first ten, as
//!   a share of the most that an order of the judged documents can have.
//! * The other three count only **best** documents: those of the highest grade that the query has. **MRR@10** is 1 / rank
//!   of the first of them, 0 behind rank 10; **recall@10** the share of them (of ten, where there are more) that is among
//!   the first ten; **P@1** whether the first is one.
//!
//! All are means over the queries; an error or an empty answer is worth 0.

use std::collections::HashMap;

use serde::Serialize;

/// Ranks that count.
pub const RANKS: usize = 10;

/// What one answer is worth, or the mean of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Worth {
    /// nDCG@10.
    pub ndcg: f64,
    /// MRR@10.
    pub mrr: f64,
    /// Recall@10.
    pub recall: f64,
    /// P@1.
    pub first: f64,
}

/// What `ranking` (documents, best first, none twice) is worth where documents have these `grades`.
#[must_use]
pub fn worth(ranking: &[usize], grades: &HashMap<usize, u32>) -> Worth {
    let found: Vec<u32> = ranking.iter().take(RANKS).map(|doc| grades.get(doc).copied().unwrap_or(0)).collect();
    let mut ideal: Vec<u32> = grades.values().copied().collect();
    ideal.sort_unstable_by(|a, b| b.cmp(a));
    let Some(best) = ideal.first().copied().filter(|best| *best > 0) else { return Worth::default() };
    let all = ideal.iter().filter(|grade| **grade == best).count().min(RANKS);
    ideal.truncate(RANKS);
    let first = found.iter().position(|grade| *grade == best);
    Worth {
        ndcg: gain(&found) / gain(&ideal),
        mrr: first.map_or(0.0, |rank| 1.0 / (rank as f64 + 1.0)),
        recall: found.iter().filter(|grade| **grade == best).count() as f64 / all as f64,
        first: f64::from(u8::from(first == Some(0))),
    }
}

/// The mean; nothing is worth nothing.
#[must_use]
pub fn mean(of: &[Worth]) -> Worth {
    let count = of.len().max(1) as f64;
    let mean = |field: fn(&Worth) -> f64| of.iter().map(field).fold(0.0, |sum, one| sum + one) / count;
    Worth {
        ndcg: mean(|one| one.ndcg),
        mrr: mean(|one| one.mrr),
        recall: mean(|one| one.recall),
        first: mean(|one| one.first),
    }
}

fn gain(grades: &[u32]) -> f64 {
    let at = |(rank, grade): (usize, &u32)| {
        (2_f64.powi(i32::try_from(*grade).unwrap_or(i32::MAX)) - 1.0) / (rank as f64 + 2.0).log2()
    };
    grades.iter().enumerate().map(at).fold(0.0, |sum, one| sum + one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worth_by_hand() {
        let check = |ranking: &[usize], grades: &[(usize, u32)], expected: [f64; 4]| {
            let found = worth(ranking, &grades.iter().copied().collect());
            let found = [found.ndcg, found.mrr, found.recall, found.first];
            let same = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9);
            assert!(same, "{ranking:?} {grades:?}: {found:?}, not {expected:?}");
        };
        check(&[7], &[(7, 2)], [1.0, 1.0, 1.0, 1.0]);
        check(&[], &[(7, 2)], [0.0; 4]);
        check(&[7], &[(7, 0)], [0.0; 4]);
        // 3 / log2(3) of 3.
        check(&[1, 7], &[(7, 2)], [0.630_929_753_571, 0.5, 1.0, 0.0]);
        // 1 + 3 / log2(3) of 3 + 1 / log2(3): the lesser one comes first.
        check(&[1, 7], &[(7, 2), (1, 1)], [0.796_707_580_991, 0.5, 1.0, 0.0]);
        // Two best, one found at rank 3: 3 / 2 of 3 + 3 / log2(3).
        check(&[1, 2, 7], &[(7, 2), (8, 2)], [0.306_573_596_385, 1.0 / 3.0, 0.5, 0.0]);
        // Rank 11 does not count.
        check(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], &[(10, 2)], [0.0; 4]);
        // Grade 1 is best where there is nothing better.
        check(&[4], &[(4, 1)], [1.0; 4]);
    }
}
