use super::*;
use crate::search::tests::{STAFF, registry};

fn explained(query: &str, filter: &Filter, id: &str) -> Explanation {
    let index = SearchIndex::in_memory(&registry(STAFF)).expect("an index");
    let id = id.parse().expect("an id");
    index.explain(query, filter, &id).expect("read").expect("an assistant of this id")
}

#[test]
fn the_parts_sum_up_to_what_the_search_has() {
    let index = SearchIndex::in_memory(&registry(STAFF)).expect("an index");
    let everything = Filter { min_score: 0.0, ..Filter::default() };
    for query in ["Reviewing Python, unheardof", "kubernets clusters you know", "C++", "发票", "expert services", ""]
    {
        let found = index.search(query, &everything, 50).expect("a search");
        for assistant in index.assistants.clone() {
            let one = index.explain(query, &everything, &assistant.id).expect("read").expect("known");
            let at = found.hits.iter().position(|hit| hit.id == assistant.id);
            assert_eq!((one.rank, one.hits), (at.map(|at| at + 1), found.hits.len()), "{query} {}", one.id);
            assert_eq!(one.score, at.map(|at| found.hits[at].score), "{query} {}", one.id);
            let parts: f32 = one.words.iter().flat_map(|word| &word.fields).map(|part| part.contribution).sum();
            assert!((parts - one.total).abs() <= 1e-4 * one.total, "{query} {}: {parts} {}", one.id, one.total);
            let weight: f32 = one.words.iter().map(|word| word.worth * word.strength).sum();
            assert!((weight - one.weight).abs() <= 1e-4 * weight, "{query} {}: {weight} {}", one.id, one.weight);
            let matched: Vec<_> =
                one.words.iter().filter(|word| !word.fields.is_empty()).map(|word| &word.written).collect();
            let hit: Vec<&String> = at.map(|at| found.hits[at].matched_terms.iter().collect()).unwrap_or_default();
            assert!(matched == hit || one.verdict == Verdict::Pinned, "{query} {}: {matched:?} {hit:?}", one.id);
        }
        let totals: Vec<f32> = found
            .hits
            .iter()
            .map(|hit| {
                let one = index.explain(query, &everything, &hit.id).expect("read").expect("known");
                if one.verdict == Verdict::Pinned { f32::MAX } else { one.total }
            })
            .collect();
        assert!(totals.is_sorted_by(|a, b| a >= b), "{query}: {totals:?}");
    }
}

#[test]
fn verdicts() {
    let check = |query: &str, filter: &Filter, id: &str, expected: (Verdict, Option<usize>)| {
        let one = explained(query, filter, id);
        assert_eq!((one.verdict, one.rank), expected, "{query} {id}");
    };
    let filter = Filter::default();
    check("c++ pro", &filter, "cpp-pro", (Verdict::Pinned, Some(1)));
    check("find mistakes in python", &filter, "code-reviewer", (Verdict::Hit, Some(1)));
    check("find mistakes in python", &filter, "cpp-pro", (Verdict::NoWord, None));
    check("writes unheardof unseen unknown untold", &filter, "cpp-pro", (Verdict::ScoreTooLow, None));
    let tagged = Filter { tags: vec!["other".to_owned()], ..Filter::default() };
    check("python", &tagged, "code-reviewer", (Verdict::FilteredOut, None));
    check("", &filter, "code-reviewer", (Verdict::NoWord, None));
}

#[test]
fn words_tell_what_was_made_of_them() {
    let one = explained("Please find mistkaes in Python, unheardof", &Filter::default(), "code-reviewer");
    let words: Vec<_> =
        one.words.iter().map(|word| (&*word.written, &*word.term, word.repaired, word.documents)).collect();
    assert_eq!(
        words,
        [("mistkaes", "mistak", true, 1), ("Python", "python", false, 1), ("unheardof", "unheardof", false, 0)]
    );
    let fields: Vec<_> =
        one.words[1].fields.iter().map(|part| (part.field, part.times, part.length, part.documents)).collect();
    assert_eq!(fields, [("lead", 1, 4, 1), ("body", 1, 4, 1)]);
    let none = SearchIndex::in_memory(&registry(STAFF)).expect("an index");
    assert_eq!(none.explain("x", &Filter::default(), &"nobody".parse().expect("an id")).expect("read"), None);
}
