//! An index that follows its registry: the same as one that is built at once.

use proptest::prelude::*;

use super::*;

/// What an index says to many queries: ids, scores and order, to the last bit.
pub(super) fn answers(index: &SearchIndex) -> Vec<Found> {
    let queries = [
        "code",
        "writes C++",
        "c",
        "quality mistakes in Python",
        "发票",
        "tax office templates",
        "kubernets",
        "pointers",
        "know",
        "you",
        "apples and pears",
        "pears",
        "cooks plums daily",
        "plums plums quinces",
        "quince",
        "melons",
        "",
        "a1",
        "b2 cooks",
    ];
    let filters = [Filter::default(), Filter { min_score: 0.0, ..Filter::default() }];
    let ask = |filter| queries.map(|query| index.search(query, filter, 20).expect("a search"));
    filters.iter().flat_map(ask).collect()
}

/// Fruit that makes up the texts.
const FRUIT: &[&str] = &["apples", "pears", "plums", "quinces", "melons", "cherries"];

/// An assistant with a text of these fruit.
fn cook(name: &str, fruit: &[usize]) -> String {
    let words: Vec<_> = fruit.iter().map(|n| FRUIT[n % FRUIT.len()]).collect();
    format!("{name} | Cooks {} | {}", words.first().unwrap_or(&"nothing"), words.join(" daily "))
}

#[test]
fn keeps_the_documents_that_stay() {
    let folder = Folder::new();
    let index = SearchIndex::open(folder.path(), &registry(STAFF)).expect("an index");
    let parts = |index: &SearchIndex| index.writing.index.searchable_segment_ids().expect("segments");
    let before = parts(&index);
    let same = index.follow(&registry(STAFF)).expect("followed");
    assert_eq!(parts(&same), before, "nothing is written where nothing differs");
    let mut more = STAFF.to_vec();
    more.push("baker | Bakes bread | You know flour.");
    let next = same.follow(&registry(&more)).expect("followed");
    assert_eq!(parts(&next).len(), 2);
    assert!(before.iter().all(|part| parts(&next).contains(part)));
    assert_eq!(ids(&next, "flour"), ["baker"]);
    assert_eq!(ids(&index, "flour"), [""; 0], "the old one stays as it is");
    let fewer = next.follow(&registry(&more[1..])).expect("followed");
    assert_eq!(ids(&fewer, "code quality"), [""; 0]);
    assert_eq!(ids(&index, "code quality"), ["code-reviewer"], "also where its documents are deleted");
}

/// What was written and never taken on: the registry that came after could not be put in place.
#[test]
fn an_update_that_was_given_up_is_not_seen() {
    let check = |index: &SearchIndex, next: &[&str]| {
        let registry = registry(next);
        let followed = index.follow(&registry).expect("followed");
        assert_eq!(answers(&followed), answers(&SearchIndex::in_memory(&registry).expect("an index")));
        followed
    };
    let others =
        ["code-reviewer | Cooks plums | Plums daily.", STAFF[1], STAFF[2], "baker | Bakes bread | You know flour."];
    for on_disk in [false, true] {
        let folder = Folder::new();
        let open = || match on_disk {
            true => SearchIndex::open(folder.path(), &registry(&STAFF[..4])).expect("an index"),
            false => SearchIndex::in_memory(&registry(&STAFF[..4])).expect("an index"),
        };
        for given_up in [&others[..], &others[1..], &STAFF[..3], &STAFF[1..6], &[]] {
            for next in [&STAFF[..4], &others[..], &STAFF[..5], &others[2..]] {
                let index = open();
                drop(index.follow(&registry(given_up)).expect("followed"));
                check(&check(&index, next), &STAFF[..4]);
            }
        }
    }
}

#[test]
fn its_parts_are_bounded() {
    let lines: Vec<_> = (0..400).map(|n| cook(&format!("cook{n}"), &[n, n / 7])).collect();
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let mut index = SearchIndex::in_memory(&registry(&lines[..100])).expect("an index");
    let mut most = 0;
    for end in 101..=lines.len() {
        index = index.follow(&registry(&lines[end - 100..end])).expect("followed");
        index.merge().expect("merged");
        let metas = index.writing.index.searchable_segment_metas().expect("segments");
        let (all, deleted) =
            metas.iter().fold((0, 0), |(all, deleted), meta| (all + meta.max_doc(), deleted + meta.num_deleted_docs()));
        assert!(deleted <= all / 3, "{deleted} of {all} are deleted");
        most = most.max(metas.len());
    }
    assert!((2..24).contains(&most), "{most} parts at most");
}

#[test]
fn many_changes_at_once_build_it_anew() {
    let lines: Vec<_> = (0..200).map(|n| cook(&format!("cook{n}"), &[n])).collect();
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let index = SearchIndex::in_memory(&registry(&lines[..20])).expect("an index");
    let all = index.follow(&registry(&lines)).expect("followed");
    assert_eq!(answers(&all), answers(&SearchIndex::in_memory(&registry(&lines)).expect("an index")));
    let none = all.follow(&Registry::default()).expect("followed");
    assert_eq!(ids(&none, "apples"), [""; 0]);
    let again = none.follow(&registry(&lines[..1])).expect("followed");
    assert_eq!(ids(&again, "apples"), ["cook0"]);
}

/// A step: who is hired, with which text, or goes where there is none.
type Step = Vec<(u8, Option<Vec<usize>>)>;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let text = prop::option::weighted(0.7, prop::collection::vec(0..FRUIT.len(), 0..12));
    prop::collection::vec(prop::collection::vec((0_u8..40, text), 1..12), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// However an index came about, in memory, on disk, and opened again, its scores are those of a fresh one.
    #[test]
    fn is_the_same_as_a_fresh_one(steps in steps(), reopen in 0..12_usize, merge in 1..4_usize) {
        let folder = Folder::new();
        let mut staff = std::collections::BTreeMap::new();
        let mut memory = SearchIndex::in_memory(&Registry::default()).expect("an index");
        let mut disk = SearchIndex::open(folder.path(), &Registry::default()).expect("an index");
        for (n, step) in steps.iter().enumerate() {
            for (who, text) in step {
                let name = format!("a{who}");
                match text {
                    Some(text) => _ = staff.insert(name.clone(), cook(&name, text)),
                    None => _ = staff.remove(&name),
                }
            }
            let lines: Vec<_> = staff.values().map(String::as_str).collect();
            let registry = registry(&lines);
            let fresh = answers(&SearchIndex::in_memory(&registry).expect("an index"));
            memory = memory.follow(&registry).expect("followed");
            disk = match n == reopen {
                true => SearchIndex::open(folder.path(), &registry).expect("an index"),
                false => disk.follow(&registry).expect("followed"),
            };
            if n % merge == 0 {
                memory.merge().expect("merged");
                disk.merge().expect("merged");
            }
            prop_assert_eq!(&answers(&memory), &fresh);
            prop_assert_eq!(&answers(&disk), &fresh);
            prop_assert!(disk.folder.is_some());
        }
        let lines: Vec<_> = staff.values().map(String::as_str).collect();
        let opened = SearchIndex::open(folder.path(), &registry(&lines)).expect("an index");
        prop_assert_eq!(answers(&opened), answers(&memory));
    }
}
