//! From a caller's text to weighted terms. The text is never parsed as a query: every sign in it is just no letter.

use tantivy::Term;
use tantivy::query::Bm25Weight;

use super::analyzer::analyzer;
use super::corpus::{Corpus, Segment};

/// Bytes of a query that are read.
pub const QUERY_BYTES_MAX: usize = 8 * 1024;
/// Different terms of a query that count; each is a bit of what matched.
pub const QUERY_TERMS_MAX: usize = 64;
/// Fewest letters of a word whose typo is repaired.
const REPAIR_CHARS_MIN: usize = 5;

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
    pub(super) head: Option<Bm25Weight>,
    pub(super) body: Option<Bm25Weight>,
}

/// The different terms of `text`, in order.
pub(super) fn terms(text: &str) -> Vec<QueryTerm> {
    let end = (0..=QUERY_BYTES_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let text = &text[..end];
    let mut analyzer = analyzer();
    let mut stream = analyzer.token_stream(text);
    let mut terms: Vec<QueryTerm> = Vec::new();
    while terms.len() < QUERY_TERMS_MAX
        && let Some(token) = stream.next()
    {
        if terms.iter().all(|term| term.term != token.text) {
            let written = text[token.offset_from..token.offset_to].to_owned();
            terms.push(QueryTerm { term: token.text.clone(), written });
        }
    }
    terms
}

/// Weighs a term: a word that no document has is taken for the most frequent word one typo away, if there is one.
pub(super) fn weigh(corpus: &Corpus, term: &QueryTerm) -> tantivy::Result<Weighed> {
    let exact = frequencies(corpus, &term.term)?;
    if exact != (0, 0) || !is_repairable(&term.term) {
        return Ok(weighed(corpus, term.term.clone(), exact));
    }
    let mut best: Option<(u64, String, (u64, u64))> = None;
    for candidate in one_typo_away(&term.term) {
        let found = frequencies(corpus, &candidate)?;
        let count = found.0.max(found.1);
        // Of two that are as frequent, the first in the alphabet, so that the same query has the same answer.
        if count > 0 && best.as_ref().is_none_or(|(most, text, _)| (count, text) > (*most, &candidate)) {
            best = Some((count, candidate, found));
        }
    }
    Ok(match best {
        Some((_, candidate, found)) => weighed(corpus, candidate, found),
        None => weighed(corpus, term.term.clone(), exact),
    })
}

fn weighed(corpus: &Corpus, term: String, (head, body): (u64, u64)) -> Weighed {
    let documents = corpus.documents;
    let weight = |count: u64, average: f32| {
        (count > 0).then(|| Bm25Weight::for_one_term_without_explain(count, documents, average))
    };
    let count = head.max(body) as f32;
    let idf = (1.0 + (documents as f32 - count + 0.5) / (count + 0.5)).ln();
    Weighed { term, idf, head: weight(head, corpus.head_average), body: weight(body, corpus.body_average) }
}

/// In how many documents a term is: in the head, in the body.
fn frequencies(corpus: &Corpus, term: &str) -> tantivy::Result<(u64, u64)> {
    let head = Term::from_field_text(corpus.fields.head, term);
    let body = Term::from_field_text(corpus.fields.body, term);
    let mut found = (0, 0);
    for Segment { head: heads, body: bodies, .. } in &corpus.segments {
        found.0 += u64::from(heads.doc_freq(&head)?);
        found.1 += u64::from(bodies.doc_freq(&body)?);
    }
    Ok(found)
}

fn is_repairable(term: &str) -> bool {
    term.len() >= REPAIR_CHARS_MIN && term.len() <= 32 && term.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Every text that differs from `word`, which is ASCII, by a letter too many, too few, or wrong, or by two swapped.
fn one_typo_away(word: &str) -> Vec<String> {
    let letters = b'a'..=b'z';
    let bytes = word.as_bytes();
    let join = |parts: [&[u8]; 3]| String::from_utf8_lossy(&parts.concat()).into_owned();
    let mut found = Vec::with_capacity(54 * bytes.len() + 26);
    for at in 0..=bytes.len() {
        let (before, rest) = bytes.split_at(at);
        found.extend(letters.clone().map(|letter| join([before, &[letter], rest])));
        if let Some((first, after)) = rest.split_first() {
            found.push(join([before, &[], after]));
            found.extend(
                letters.clone().filter(|letter| letter != first).map(|letter| join([before, &[letter], after])),
            );
            if let Some((second, after)) = after.split_first() {
                found.push(join([before, &[*second, *first], after]));
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
        assert_eq!(terms(&(0..1_000).map(|n| format!("w{n} ")).collect::<String>()).len(), QUERY_TERMS_MAX);
        assert_eq!(terms(&"ü".repeat(100_000)).len(), 0, "one word that is too long");
        assert_eq!(terms(&format!("{}last", "x ".repeat(50_000))).len(), 1, "what is past the bound is not read");
    }

    #[test]
    fn typos() {
        let found = one_typo_away("review");
        for typo in ["eview", "rview", "reviews", "areview", "raview", "reveiw", "erview"] {
            assert!(found.iter().any(|found| found == typo), "{typo}");
        }
        assert!(!found.iter().any(|found| found == "review" || found.len() > 7));
    }
}
