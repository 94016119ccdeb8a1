//! From a caller's text to weighted terms. The text is never parsed as a query: every sign in it is just no letter.

use super::analyzer::{analyzer, split_camel};
use super::corpus::{Corpus, Lists};
use super::scoring::{self, FIELDS};

/// Bytes of a query that are read.
pub const QUERY_BYTES_MAX: usize = 8 * 1024;
/// Different terms of a query that count; each is a bit of what matched.
pub const QUERY_TERMS_MAX: usize = 64;
/// Of the terms that count, how many places are kept for those in Latin letters and digits, and how many for all others,
/// where there are as many: a sentence without blanks is full of pairs, and the name that it is about may stand behind.
const TERMS_OF_A_KIND_MIN: usize = QUERY_TERMS_MAX / 2;
/// What all words together weigh that are not in Latin letters and that no document has, beside a name that some have: as a
/// part of one such word.
const FOREIGN_WEIGHT_MAX: f32 = 0.5;
/// Words of a query whose typo is looked for; each costs more than a thousand looks into the vocabulary.
const REPAIRS_MAX: usize = 8;
/// What makes `C++`, `F#` or `.NET` of a letter or two: no typo.
const SIGNS: [char; 3] = ['+', '#', '.'];
/// Fewest letters of a word whose typo is repaired.
const REPAIR_LETTERS_MIN: usize = 5;
/// Most letters of a word whose typo is repaired.
const REPAIR_LETTERS_MAX: usize = 24;

/// Words of people who ask, not of what they ask for.
const ASKING_WORDS: &[&str] = &[
    "able",
    "certainly",
    "find",
    "give",
    "hello",
    "help",
    "hey",
    "hi",
    "know",
    "let",
    "like",
    "look",
    "looking",
    "make",
    "possible",
    "provide",
    "recommend",
    "see",
    "show",
    "suggest",
    "sure",
    "tell",
    "thank",
    "thanks",
    "think",
    "try",
    "trying",
    "use",
    "used",
    "using",
];

/// Which terms of a query a document has; bit n is the term n.
pub(super) type Matched = u64;

/// A term of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QueryTerm {
    /// As in the index.
    pub(super) term: String,
    /// As the caller wrote it first.
    pub(super) written: String,
}

/// A term, and what it weighs.
pub(super) struct Weighed {
    pub(super) term: String,
    /// The part of the query that it is.
    pub(super) idf: f32,
    /// What a document gets that has it; less than `idf` where it is repaired.
    pub(super) worth: f32,
    /// Where it is found.
    pub(super) lists: Lists,
    /// Its weight for the order, by field.
    pub(super) idfs: [f32; FIELDS],
}

/// The part of a query that is read.
pub(super) fn start(text: &str) -> &str {
    &text[..text.floor_char_boundary(QUERY_BYTES_MAX)]
}

/// The different terms of `text`, in order. Words of asking are none, unless there is nothing else.
pub(super) fn terms(text: &str) -> Vec<QueryTerm> {
    let text = start(text);
    let mut analyzer = analyzer();
    let mut stream = analyzer.token_stream(text);
    let (mut terms, mut asking): (Vec<QueryTerm>, Vec<QueryTerm>) = Default::default();
    // Of those that are ASCII, and of the others.
    let mut counts = [0; 2];
    while counts.iter().any(|count| *count < QUERY_TERMS_MAX)
        && let Some(token) = stream.next()
    {
        let written = &text[token.offset_from..token.offset_to];
        let asks = ASKING_WORDS.iter().any(|word| written.eq_ignore_ascii_case(word));
        let count = &mut counts[usize::from(!token.text.is_ascii())];
        let list = if asks { &mut asking } else { &mut terms };
        if (asks || *count < QUERY_TERMS_MAX) && list.iter().all(|term| term.term != token.text) {
            *count += usize::from(!asks);
            list.push(QueryTerm { term: token.text.clone(), written: written.to_owned() });
        }
    }
    let [ascii, others] = counts.map(|count| count.min(TERMS_OF_A_KIND_MIN));
    let mut left = [QUERY_TERMS_MAX - others, QUERY_TERMS_MAX - ascii];
    terms.retain(|term| {
        let left = &mut left[usize::from(!term.term.is_ascii())];
        let stays = *left > 0;
        *left -= usize::from(stays);
        stays
    });
    if terms.is_empty() { asking } else { terms }
}

/// Weighs the terms: a word that no document has is taken for the words that it is written of in `camelCase`, or
/// for the most frequent word one typo away, if there is one. Beside
/// a name in Latin letters that some document has, the words that are not in Latin letters and that no document has weigh
/// little, however many they are: no assistant has that language, and what can be found is the name. A number is no name.
pub(super) fn weigh(corpus: &Corpus, terms: &[QueryTerm]) -> tantivy::Result<Vec<Weighed>> {
    let mut repairs = 0;
    let mut all = Vec::with_capacity(terms.len());
    for QueryTerm { term, written } in terms {
        let mut weighed = Weighed::new(corpus, term.clone(), corpus.lists(term)?);
        if weighed.lists.documents() == 0
            && let Some(within) = within(corpus, written)?
        {
            let new = |one: &Weighed| terms.iter().all(|term| term.term != one.term);
            all.extend(within.into_iter().filter(new).take(QUERY_TERMS_MAX.saturating_sub(all.len())));
            continue;
        }
        if weighed.lists.documents() == 0 && is_repairable(term) && !written.contains(SIGNS) && repairs < REPAIRS_MAX {
            repairs += 1;
            if let Some((repaired, lists)) = repaired(corpus, term)? {
                let found = Weighed::new(corpus, repaired, lists);
                // It may just be another word, so whoever has it gets half.
                weighed = Weighed { worth: found.idf * scoring::DOUBT, ..found };
            }
        }
        all.push(weighed);
    }
    if all.iter().any(Weighed::is_name) {
        let foreign = |weighed: &&mut Weighed| !weighed.term.is_ascii() && weighed.lists.documents() == 0;
        let mut foreign: Vec<_> = all.iter_mut().filter(foreign).collect();
        let most = FOREIGN_WEIGHT_MAX / foreign.len().max(1) as f32;
        foreign.iter_mut().for_each(|weighed| (weighed.idf, weighed.worth) = (weighed.idf * most, 0.0));
    }
    Ok(all)
}

/// The words of `camelCase`, if some document has one of them.
fn within(corpus: &Corpus, written: &str) -> tantivy::Result<Option<Vec<Weighed>>> {
    let Some(split) = split_camel(written) else { return Ok(None) };
    let words = terms(&split).into_iter();
    let words = words.map(|word| Ok(Weighed::new(corpus, word.term.clone(), corpus.lists(&word.term)?)));
    let words = words.collect::<tantivy::Result<Vec<_>>>()?;
    Ok(words.iter().any(|word| word.lists.documents() > 0).then_some(words))
}

impl Weighed {
    fn new(corpus: &Corpus, term: String, lists: Lists) -> Self {
        let idf = |count| scoring::idf(corpus.documents, count);
        let (whole, idfs) = (idf(lists.documents()), lists.counts.map(idf));
        Self { term, idf: whole, worth: whole, lists, idfs }
    }

    /// Whether some document has it, and it is of Latin letters, with digits or without.
    fn is_name(&self) -> bool {
        self.term.is_ascii() && self.term.contains(|c: char| c.is_ascii_alphabetic()) && self.lists.documents() > 0
    }
}

/// The word of the index that most documents have, of those one typo away from `term`.
fn repaired(corpus: &Corpus, term: &str) -> tantivy::Result<Option<(String, Lists)>> {
    let mut best: Option<(String, Lists)> = None;
    let vocabularies = corpus.vocabularies()?;
    for candidate in one_typo_away(term, |text| vocabularies.iter().any(|words| words.may_have(text))) {
        let lists = corpus.lists(&candidate)?;
        let rank = (lists.documents(), &candidate);
        // Of two that are as frequent, the last in the alphabet, so that the same query has the same answer.
        if rank.0 > 0 && best.as_ref().is_none_or(|(word, lists)| (lists.documents(), word) < rank) {
            best = Some((candidate, lists));
        }
    }
    Ok(best)
}

fn is_repairable(term: &str) -> bool {
    (REPAIR_LETTERS_MIN..=REPAIR_LETTERS_MAX).contains(&term.len())
        && term.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// The texts that differ from `word`, which is ASCII, by a letter too many, too few, or wrong, or by two swapped, and that
/// `may_be`. Each is looked at in the same buffer: there are more than a thousand.
fn one_typo_away(word: &str, may_be: impl Fn(&[u8]) -> bool) -> Vec<String> {
    let bytes = word.as_bytes();
    let (mut found, mut text) = (Vec::new(), Vec::with_capacity(bytes.len() + 1));
    let mut look = |parts: [&[u8]; 3]| {
        text.clear();
        parts.iter().for_each(|part| text.extend_from_slice(part));
        if may_be(&text) {
            found.push(String::from_utf8_lossy(&text).into_owned());
        }
    };
    for at in 0..=bytes.len() {
        let (before, rest) = bytes.split_at(at);
        (b'a'..=b'z').for_each(|letter| look([before, &[letter], rest]));
        if let Some((first, after)) = rest.split_first() {
            look([before, &[], after]);
            (b'a'..=b'z').filter(|letter| letter != first).for_each(|letter| look([before, &[letter], after]));
            if let Some((second, after)) = after.split_first() {
                look([before, &[*second, *first], after]);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_bounded() {
        let check = |text: &str, expected: &[&str]| {
            let found: Vec<_> = terms(text).into_iter().map(|term| term.written).collect();
            assert_eq!(found, expected, "{text:?}");
        };
        check("Review reviews REVIEWING the tests", &["Review", "tests"]);
        check("", &[]);
        check("the \" AND : *", &[]);
        check("Please help me find typos", &["typos"]);
        check("Help!", &["Help"]);
        assert_eq!(terms(&(0..1_000).map(|n| format!("w{n} ")).collect::<String>()).len(), QUERY_TERMS_MAX);
        // Neither Latin letters nor others leave no place to the others, on whichever side they stand.
        let letter = |from: char, n: u32| char::from_u32(u32::from(from) + n).expect("a letter");
        let thai: String = (0..200).map(|n| letter('ก', n * (n / 46 + 1) % 46)).collect();
        let cyrillic: String = (0..200).flat_map(|n| [letter('а', n % 32), letter('а', n / 32), ' ']).collect();
        let latin: String = (0..100).map(|n| format!("w{n} ")).collect();
        for (text, last) in [(thai, "kubernetes"), (cyrillic, "kubernetes"), (latin, "发票")] {
            for text in [format!("{text} {last}"), format!("{last} {text}")] {
                let found = terms(&text);
                assert_eq!(found.len(), QUERY_TERMS_MAX, "{text}");
                assert!(found.iter().any(|term| term.written == last), "{text}");
            }
        }
        let both: String = (0..100).map(|n| format!("w{n} {}{} ", letter('а', n % 32), letter('а', n / 32))).collect();
        let latin = terms(&both).iter().filter(|term| term.term.is_ascii()).count();
        assert_eq!((latin, terms(&both).len()), (TERMS_OF_A_KIND_MIN, QUERY_TERMS_MAX));
        assert_eq!(terms(&"ü".repeat(100_000)).len(), 0, "one word that is too long");
        assert_eq!(terms(&format!("{}last", "x ".repeat(50_000))).len(), 1, "what is past the bound is not read");
    }

    #[test]
    fn typos() {
        let found = one_typo_away("review", |_| true);
        for typo in ["eview", "rview", "reviews", "areview", "raview", "reveiw", "erview"] {
            assert!(found.iter().any(|found| found == typo), "{typo}");
        }
        assert!(!found.iter().any(|found| found == "review" || found.len() > 7));
        assert_eq!(one_typo_away("review", |text| text == b"reviews"), ["reviews"]);
    }
}
