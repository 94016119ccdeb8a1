//! What is asked where only the time counts: queries as people write them, and the worst that a text can be.

use std::collections::HashMap;

use assistant_host::search::{QUERY_BYTES_MAX, QUERY_TERMS_MAX};

use super::collection::Doc;
use crate::dice::Dice;

/// Documents whose words are counted for the worst queries.
const DOCS_COUNTED: usize = 2_000;
/// Fewest letters of a word that a query takes.
const LETTERS_MIN: usize = 4;
/// Queries of the worst kinds take so long that a few are enough.
const WORST_OF_A_KIND: u64 = 5;

/// `count` queries of 3 to 11 words that some document has, 7 on average; one in ten has a typo.
#[must_use]
pub fn usual(docs: &[Doc], seed: u64, count: usize) -> Vec<String> {
    let mut dice = Dice::new(seed, u64::MAX);
    let mut one = |_| {
        let doc = &docs[dice.place(docs.len())];
        let words: Vec<&str> = words(&doc.description).chain(words(&doc.body).take(60)).collect();
        let mut query: Vec<String> = (0..dice.between(3, 11))
            .map(|_| words.get(dice.place(words.len())).copied().unwrap_or("x").to_owned())
            .collect();
        if dice.percent(10) {
            let at = dice.place(query.len());
            query[at] = typo(&mut dice, &query[at]);
        }
        query.join(" ")
    };
    (0..count).map(&mut one).collect()
}

/// The worst, by kind.
#[must_use]
pub fn worst(docs: &[Doc], seed: u64) -> Vec<(&'static str, Vec<String>)> {
    let mut dice = Dice::new(seed, u64::MAX - 1);
    let mut counts: HashMap<&str, u32> = HashMap::new();
    for doc in docs.iter().take(DOCS_COUNTED) {
        words(&doc.body).for_each(|word| *counts.entry(word).or_default() += 1);
    }
    let mut frequent: Vec<(&str, u32)> = counts.into_iter().collect();
    frequent.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let frequent: Vec<&str> = frequent.iter().map(|(word, _)| *word).take(2 * QUERY_TERMS_MAX).collect();
    let mut some =
        |mut make: Box<dyn FnMut(&mut Dice) -> String>| (0..WORST_OF_A_KIND).map(|_| make(&mut dice)).collect();
    let (first, all) = (frequent[..frequent.len().min(5)].to_vec(), frequent.clone());
    let bodies: Vec<String> = docs.iter().take(100).map(|doc| doc.body.clone()).collect();
    vec![
        ("the 5 most frequent words", some(Box::new(move |_| first.join(" ")))),
        ("the 64 most frequent words", some(Box::new(move |_| frequent.join(" ")))),
        (
            "64 words with a typo each",
            some(Box::new(move |dice| all.iter().map(|word| typo(dice, word)).collect::<Vec<_>>().join(" "))),
        ),
        (
            "64 unknown words of 30 letters",
            some(Box::new(|dice| (0..QUERY_TERMS_MAX).map(|_| letters(dice, 30)).collect::<Vec<_>>().join(" "))),
        ),
        (
            "a whole prompt",
            some(Box::new(move |dice| bodies[dice.place(bodies.len())].chars().take(QUERY_BYTES_MAX).collect())),
        ),
        ("one word that is nowhere", some(Box::new(|dice| letters(dice, 12)))),
        ("8 KiB without a blank", some(Box::new(|dice| letters(dice, QUERY_BYTES_MAX)))),
    ]
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() >= LETTERS_MIN)
}

/// `word` with two letters swapped.
fn typo(dice: &mut Dice, word: &str) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let at = dice.place(letters.len().saturating_sub(1));
    if at + 1 < letters.len() {
        letters.swap(at, at + 1);
    }
    letters.into_iter().collect()
}

fn letters(dice: &mut Dice, count: usize) -> String {
    (0..count).map(|_| char::from(b'a' + u8::try_from(dice.below(26)).unwrap_or(0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search_bench::generate::Assistants;

    #[test]
    fn queries_are_as_long_as_real_ones_and_the_same_for_the_same_seed() {
        let docs: Vec<Doc> = Assistants::new(1).take(50).collect();
        let asked = usual(&docs, 1, 200);
        assert_eq!(asked, usual(&docs, 1, 200));
        let terms = asked.iter().map(|query| query.split(' ').count()).sum::<usize>() as f64 / 200.0;
        assert!((6.0..8.0).contains(&terms), "{terms}");
        let worst = worst(&docs, 1);
        assert!(worst.iter().all(|(_, queries)| queries.len() == 5 && queries.iter().all(|query| !query.is_empty())));
    }
}
