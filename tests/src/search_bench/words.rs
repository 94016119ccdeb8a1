//! The words of generated assistants: some real ones, which are frequent, and a long tail of made ones, which are not.

use std::sync::LazyLock;

use crate::dice::Dice;

/// Words of the made language, frequent ones first: as many as a hundred thousand real prompts have, about.
pub const WORDS: u64 = 60_000;

/// A list of words, in the order of how frequent they are to be.
pub type List = LazyLock<Vec<&'static str>>;

/// What assistants are.
pub static ROLES: List = LazyLock::new(|| include_str!("words/roles.txt").split_whitespace().collect());
/// What they work on.
pub static SUBJECTS: List = LazyLock::new(|| include_str!("words/subjects.txt").split_whitespace().collect());
/// What they do.
pub static VERBS: List = LazyLock::new(|| include_str!("words/verbs.txt").split_whitespace().collect());
/// Other words that every prompt has.
pub static THINGS: List = LazyLock::new(|| include_str!("words/things.txt").split_whitespace().collect());
/// Words between the others.
pub static GLUE: List = LazyLock::new(|| include_str!("words/glue.txt").split_whitespace().collect());

const HEADS: &[&str] = &[
    "b", "br", "c", "ch", "cl", "d", "dr", "f", "fl", "g", "gr", "h", "j", "k", "kr", "l", "m", "n", "p", "pl", "pr",
    "qu", "r", "s", "sc", "sh", "sl", "st", "t", "th", "tr", "v", "w", "z",
];
const MIDDLES: &[&str] = &["a", "e", "i", "o", "u", "ai", "ea", "ee", "io", "ou"];
const TAILS: &[&str] = &["", "", "", "l", "m", "n", "nd", "r", "rt", "s", "st", "t", "x"];

/// A word, as frequent as Zipf says: the word of rank r comes 1 / r as often as the first.
pub fn any(dice: &mut Dice) -> String {
    // The share of words up to rank r is log r / log WORDS, about.
    let share = dice.below(1 << 32) as f64 / (1_u64 << 32) as f64;
    of_rank((WORDS as f64).powf(share) as u64)
}

/// The word of a rank, from 1.
#[must_use]
pub fn of_rank(rank: u64) -> String {
    let mut place = usize::try_from(rank.saturating_sub(1)).unwrap_or(0);
    for list in [&THINGS, &VERBS, &SUBJECTS, &ROLES] {
        if let Some(word) = list.get(place) {
            return (*word).to_owned();
        }
        place -= list.len();
    }
    made(place as u64)
}

/// A made word: two or three syllables, the same for the same number.
fn made(number: u64) -> String {
    let mut dice = Dice::new(number, 77);
    let syllables = dice.between(2, 3);
    (0..syllables).map(|_| [dice.one(HEADS), dice.one(MIDDLES), dice.one(TAILS)].concat()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_as_frequent_as_zipf_says() {
        let mut dice = Dice::new(1, 0);
        let drawn: Vec<String> = (0..50_000).map(|_| any(&mut dice)).collect();
        let count = |word: &str| drawn.iter().filter(|drawn| *drawn == word).count();
        let (first, tenth) = (count(&of_rank(1)), count(&of_rank(10)));
        assert!(first > 4 * tenth && tenth > 100, "{first} {tenth}");
        let different: std::collections::HashSet<_> = drawn.iter().collect();
        assert!((5_000..40_000).contains(&different.len()), "{}", different.len());
    }
}
