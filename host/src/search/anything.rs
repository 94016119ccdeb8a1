//! Any text is a query: it ends, it is no error, and what is told of the hits fits together.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::tests::{STAFF, registry};
use super::*;

static INDEX: LazyLock<SearchIndex> = LazyLock::new(|| SearchIndex::in_memory(&registry(STAFF)).expect("an index"));

fn check(text: &str, least: f32) {
    let filter = Filter { min_score: least, ..Filter::default() };
    let found = INDEX.search(text, &filter, 50).expect("no text is an error");
    assert_eq!(INDEX.search(text, &filter, 50).expect("a search"), found, "the same answer again");
    assert_eq!(found.total, found.hits.len());
    let scores: Vec<f32> = found.hits.iter().map(|hit| hit.score).collect();
    assert!(scores.iter().all(|score| (least..=1.0).contains(score)), "{scores:?}");
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    let ids: std::collections::HashSet<_> = found.hits.iter().map(|hit| &hit.id).collect();
    assert_eq!(ids.len(), found.hits.len(), "each once");
    for hit in &found.hits {
        assert!(hit.matched_terms.len() <= QUERY_TERMS_MAX);
        assert!(hit.matched_terms.iter().all(|term| text.contains(term)), "as the caller wrote them: {hit:?}");
    }
    let few = INDEX.search(text, &filter, 2).expect("a search");
    assert_eq!((few.total, &few.hits[..]), (found.total, &found.hits[..found.hits.len().min(2)]), "the first of all");
    for (at, hit) in found.hits.iter().enumerate().take(3) {
        let one = INDEX.explain(text, &filter, &hit.id).expect("read").expect("known");
        assert_eq!((one.rank, one.score), (Some(at + 1), Some(hit.score)));
    }
}

/// Words of the index, typos of them, signs, and what else is near a border.
fn near() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z]{1,9}",
        "(code|review|python|pointer|kubernetes|发票|résumé|c\\+\\+|C#|\\.NET){1,2}",
        "(reviwer|kubernets|pythno|mistkae|tempaltes)",
        "[-+:\"'()~^*?.#/ ]{1,3}",
        "(help|find|the|of|AND|NOT)",
        "\\PC{1,4}",
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.join(" "))
}

proptest! {
    #[test]
    fn any_string_is_a_query(text in any::<String>(), least in 0.0_f32..0.5) {
        check(&text, least);
    }

    #[test]
    fn words_and_signs_are_a_query(text in near(), least in 0.0_f32..0.5) {
        check(&text, least);
    }

    #[test]
    fn a_long_text_is_a_query(text in near(), times in 1_usize..2_000) {
        check(&text.repeat(times), MIN_SCORE);
    }
}
