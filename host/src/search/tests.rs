use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use super::*;
use crate::registry::read_markdown;
use crate::testing::{Folder, corpus, say};

/// Assistants, each as `name | description | prompt`.
fn registry(lines: &[&str]) -> Registry {
    Registry::from_definitions(lines.iter().map(|line| {
        let mut parts = line.split(" | ");
        let mut part = || parts.next().unwrap_or_default();
        let text = format!("---\nname: '{}'\ndescription: '{}'\ntags: {}\n---\n{}", part(), part(), "[x]", part());
        read_markdown(text.as_bytes(), std::path::Path::new("x.md"), Source::Project).expect("a definition")
    }))
}

fn ids(index: &SearchIndex, query: &str) -> Vec<String> {
    let found = index.search(query, &Filter::default(), 50).expect("a search");
    found.hits.iter().map(|hit| hit.id.to_string()).collect()
}

const STAFF: &[&str] = &[
    "code-reviewer | Reviews code for quality | You find mistakes in Python and Rust.",
    "cpp-pro | Writes modern C++ | You know templates.",
    "c-pro | Writes C | You know pointers.",
    "C# Expert | Writes C# and .NET services | You know LINQ.",
    "fsharp-expert | Writes F# | You know types.",
    "发票核对 | 核对发票与采购订单 | 你核对发票。",
    "resume-writer | Writes a résumé | You make a CV.",
    "VerifactuExpert | Spanish invoices | You know the tax office.",
    "kubernetes-architect | Designs clusters | You know kubernetes and helm.",
];

#[test]
fn finds() {
    let index = SearchIndex::in_memory(&registry(STAFF)).expect("an index");
    let check = |query: &str, first: &[&str]| {
        let found = ids(&index, query);
        assert_eq!(
            found.iter().map(String::as_str).take(first.len()).collect::<Vec<_>>(),
            first,
            "{query:?}: {found:?}"
        );
        assert!(!first.is_empty() || found.is_empty(), "{query:?}: {found:?}");
    };
    check("reviewing the code", &["code-reviewer"]);
    check("C++", &["cpp-pro"]);
    check("c#", &["csharp-expert"]);
    check("dotnet", &["csharp-expert"]);
    check(".NET", &["csharp-expert"]);
    check("F#", &["fsharp-expert"]);
    check("write some C", &["c-pro"]);
    check("发票", &["发票核对"]);
    check("请核对采购", &["发票核对"]);
    check("resume", &["resume-writer"]);
    check("RÉSUMÉ", &["resume-writer"]);
    check("re\u{301}sume\u{301}", &["resume-writer"]);
    check("verifactu", &["verifactuexpert"]);
    check("tax office", &["verifactuexpert"]);
    check("kubernets", &["kubernetes-architect"]);
    check("kubernetes-architcet", &["kubernetes-architect"]);
    check("code-reviwer", &["code-reviewer"]);
    check("mistkaes in python", &["code-reviewer"]);
    check("asdf qwer", &[]);
    check("zzzzzz", &[]);
}

#[test]
fn no_text_is_an_error() {
    let index = SearchIndex::in_memory(&registry(STAFF)).expect("an index");
    let huge = ["code ".repeat(20_000), "x".repeat(100_000), "票".repeat(40_000), "\" AND ".repeat(15_000)];
    let odd = [
        "\"unbalanced",
        "a AND",
        "AND OR NOT",
        "head:code",
        "name:",
        "*",
        "code*",
        "-code",
        "+code",
        "(code",
        "[a TO b]",
        "code~2",
        "code^3",
        "\\",
        "🧾",
        "🧾 code",
        "it's John's",
        "\0",
        "\u{feff}",
        "{}",
        "/re/",
        "a:b:c",
        "||",
        "%%%",
    ];
    for query in odd.into_iter().chain(huge.iter().map(String::as_str)) {
        let start = Instant::now();
        let found = index.search(query, &Filter::default(), 10);
        let shown: String = query.chars().take(20).collect();
        let found = found.unwrap_or_else(|error| panic!("{shown:?}: {error}"));
        assert!(found.hits.iter().all(|hit| (0.0..=1.0).contains(&hit.score)), "{shown:?}");
        say(&format!("{shown:?}: {} hits in {:?}", found.total, start.elapsed()));
    }
}

#[test]
fn a_query_without_words_finds_nothing() {
    let index = SearchIndex::in_memory(&registry(STAFF)).expect("an index");
    for query in ["", "   ", "the of and", "?!", "🧾"] {
        let found = index.search(query, &Filter::default(), 3).expect("a search");
        assert_eq!(found, Found::default(), "{query:?}");
    }
    let none = SearchIndex::in_memory(&Registry::default()).expect("an index");
    assert_eq!(none.search("code", &Filter::default(), 5).expect("a search"), Found::default());
    assert_eq!(none.search("", &Filter::default(), 5).expect("a search"), Found::default());
}

#[test]
fn an_exact_name_comes_first() {
    let staff = ["api | Documents | api api", "api-tester | Tests an API of the api team, api, api | api api api api"];
    let index = SearchIndex::in_memory(&registry(&staff)).expect("an index");
    for query in ["api", "API", " Api "] {
        let hit = index.search(query, &Filter::default(), 1).expect("a search").hits.remove(0);
        assert_eq!((hit.id.as_str(), hit.score, hit.matched_terms.len()), ("api", 1.0, 1));
    }
    let index = SearchIndex::in_memory(&registry(STAFF)).expect("an index");
    let hit = index.search("c# expert", &Filter::default(), 1).expect("a search").hits.remove(0);
    assert_eq!((hit.id.as_str(), hit.score), ("csharp-expert", 1.0));
}

#[test]
fn ties_are_broken_by_name_then_id() {
    let staff = ["delta | Counts beans", "alpha | Counts beans", "carol | Counts beans", "bravo | Counts beans"];
    let index = SearchIndex::in_memory(&registry(&staff)).expect("an index");
    for _ in 0..3 {
        assert_eq!(ids(&index, "count beans"), ["alpha", "bravo", "carol", "delta"]);
    }
}

#[test]
fn scores_are_shares_and_terms_are_told_as_written() {
    let index = SearchIndex::in_memory(&registry(STAFF)).expect("an index");
    let found = index.search("Reviewing Python, unheardof", &Filter::default(), 1).expect("a search");
    let hit = &found.hits[0];
    assert_eq!(hit.matched_terms, ["Reviewing", "Python"]);
    assert!((0.5..0.7).contains(&hit.score), "two of three rare words: {}", hit.score);
    let whole = index.search("Python mistakes", &Filter::default(), 1).expect("a search");
    assert_eq!(whole.hits[0].score, 1.0);
}

#[test]
fn filters() {
    let mut staff: Vec<Definition> = registry(&["a | Counts beans", "b | Counts beans"])
        .assistants()
        .iter()
        .map(|found| found.as_ref().clone())
        .collect();
    staff[0].tags = vec!["Food".to_owned(), "math".to_owned()];
    staff[1].source = Source::User;
    let index = SearchIndex::in_memory(&Registry::from_definitions(staff)).expect("an index");
    let check = |query: &str, source: Option<Source>, tags: &[&str], min_score: f32, expected: &[&str]| {
        let filter = Filter { source, tags: tags.iter().map(|tag| (*tag).to_owned()).collect(), min_score };
        let found = index.search(query, &filter, 10).expect("a search");
        let ids: Vec<_> = found.hits.iter().map(|hit| hit.id.as_str()).collect();
        assert_eq!((ids.as_slice(), found.total), (expected, expected.len()));
    };
    check("beans", None, &[], 0.2, &["a", "b"]);
    check("beans", Some(Source::User), &[], 0.2, &["b"]);
    check("beans", None, &["food", "MATH"], 0.2, &["a"]);
    check("beans", None, &["food", "x"], 0.2, &[]);
    check("math", None, &[], 0.2, &["a"]);
    check("", None, &["food"], 0.2, &[]);
    check("a", Some(Source::User), &[], 0.2, &[]);
    check("beans unheardof unseen", None, &[], 0.2, &[]);
    check("beans unheardof unseen", None, &[], 0.0, &["a", "b"]);
}

/// The files of an index, by size, largest first.
fn files(folder: &Folder) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| !path.to_string_lossy().ends_with(".lock"));
    files.sort_by_key(|path| std::cmp::Reverse((fs::metadata(path).expect("a file").len(), path.clone())));
    files
}

fn open_on_disk(folder: &Folder, registry: &Registry) -> SearchIndex {
    index::on_disk(folder.path(), registry).and_then(|index| SearchIndex::over(&index, registry)).expect("on disk")
}

#[test]
fn an_index_on_disk_is_used_again() {
    let folder = Folder::new();
    let staff = registry(STAFF);
    assert_eq!(ids(&open_on_disk(&folder, &staff), "C++")[0], "cpp-pro");
    let before = files(&folder);
    assert_eq!(ids(&open_on_disk(&folder, &staff), "C++")[0], "cpp-pro");
    assert_eq!(files(&folder), before, "nothing was written");
    let fewer = registry(&STAFF[2..]);
    assert_eq!(ids(&open_on_disk(&folder, &fewer), "C++"), [""; 0], "other assistants, another index");
    let changed = registry(&["cpp-pro | Cooks | You cook."]);
    assert_eq!(ids(&open_on_disk(&folder, &changed), "cook"), ["cpp-pro"]);
    assert!(files(&folder).len() < 2 * before.len(), "the old files are gone");
}

#[test]
fn a_damaged_index_is_built_anew() {
    let staff = registry(STAFF);
    let count = {
        let folder = Folder::new();
        open_on_disk(&folder, &staff);
        files(&folder).len()
    };
    let check = |what: &str, damage: &dyn Fn(&std::path::Path)| {
        for n in 0..count {
            let folder = Folder::new();
            drop(open_on_disk(&folder, &staff));
            let file = files(&folder).remove(n);
            damage(&file);
            let index = open_on_disk(&folder, &staff);
            assert_eq!(ids(&index, "发票"), ["发票核对"], "{what} {}", file.display());
            assert_eq!(ids(&index, "mistakes"), ["code-reviewer"], "{what} {}", file.display());
        }
    };
    for at in [0.0, 0.3, 0.6, 0.99] {
        check("a flipped byte", &|file| {
            let mut bytes = fs::read(file).expect("a file");
            let place = (bytes.len() as f64 * at) as usize;
            bytes[place] ^= 1;
            fs::write(file, bytes).expect("written");
        });
    }
    check("cut", &|file| {
        let bytes = fs::read(file).expect("a file");
        fs::write(file, &bytes[..bytes.len() / 2]).expect("written");
    });
    check("gone", &|file| fs::remove_file(file).expect("removed"));
}

#[test]
fn another_version_is_built_anew() {
    let folder = Folder::new();
    let staff = registry(STAFF);
    drop(open_on_disk(&folder, &staff));
    let meta = folder.path().join("meta.json");
    let text = fs::read_to_string(&meta).expect("meta.json");
    let version = analyzer::ANALYZER_VERSION;
    let old = text.replace(&format!("\"payload\": \"{version} "), &format!("\"payload\": \"{} ", version + 1));
    let old = old.replace(&format!("\"payload\":\"{version} "), &format!("\"payload\":\"{} ", version + 1));
    assert_ne!(old, text);
    fs::write(&meta, &old).expect("written");
    assert_eq!(ids(&open_on_disk(&folder, &staff), "C++")[0], "cpp-pro");
    assert_ne!(fs::read_to_string(&meta).expect("meta.json"), old);
}

#[test]
fn what_cannot_be_on_disk_is_in_memory() {
    let staff = registry(STAFF);
    let folder = Folder::new();
    drop(open_on_disk(&folder, &staff));
    let index = Index::open_in_dir(folder.path()).expect("an index");
    let writer: tantivy::IndexWriter = index.writer_with_num_threads(1, 15_000_000).expect("a writer");
    let fewer = registry(&STAFF[..1]);
    index::on_disk(folder.path(), &fewer).expect_err("the lock is held");
    assert_eq!(ids(&SearchIndex::open(folder.path(), &fewer).expect("in memory"), "code"), ["code-reviewer"]);
    drop(writer);
    index::on_disk(folder.path(), &staff).expect("untouched by the failure");
    folder.write("file", "");
    let no_folder = folder.path().join("file");
    assert_eq!(ids(&SearchIndex::open(&no_folder, &staff).expect("in memory"), "C++")[0], "cpp-pro");
}

#[test]
fn other_files_in_the_folder_stay() {
    let folder = Folder::new();
    folder.write("mine.txt", "mine");
    drop(open_on_disk(&folder, &registry(STAFF)));
    drop(open_on_disk(&folder, &registry(&STAFF[1..])));
    assert_eq!(fs::read_to_string(folder.path().join("mine.txt")).expect("kept"), "mine");
}

/// The collection of the corpus: documents as definitions, and the grades of each query's documents.
struct Collection {
    registry: Registry,
    queries: Vec<(String, String, String)>,
    grades: HashMap<(String, String), u32>,
    relevant: HashMap<String, Vec<u32>>,
    docs: HashMap<String, String>,
}

fn collection(folder: &std::path::Path) -> Collection {
    let text = |name: &str| fs::read_to_string(folder.join(name)).expect("a file of the collection");
    let mut docs = HashMap::new();
    let (lines, questions) = (text("docs.jsonl"), text("queries.tsv"));
    let definitions = lines.lines().enumerate().map(|(n, line)| {
        let doc: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let field = |name: &str| doc[name].as_str().unwrap_or_default().to_owned();
        let staff = registry(&["x"]);
        let id: AssistantId = format!("document{n}").parse().expect("an id");
        docs.insert(id.to_string(), field("id"));
        let (name, description, system_prompt) = (field("name"), field("description"), field("body"));
        Definition { id, name, description, system_prompt, tags: Vec::new(), ..staff.assistants()[0].as_ref().clone() }
    });
    let registry = Registry::from_definitions(definitions.collect::<Vec<_>>());
    let mut grades = HashMap::new();
    let mut relevant: HashMap<String, Vec<u32>> = HashMap::new();
    for line in text("qrels.tsv").lines() {
        let [query, _, doc, grade] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("four columns: {line}") };
        let grade = grade.parse().expect("a grade");
        grades.insert((query.to_owned(), doc.to_owned()), grade);
        relevant.entry(query.to_owned()).or_default().push(grade);
    }
    let queries = questions.lines().map(|line| {
        let mut columns = line.splitn(3, '\t').map(str::to_owned);
        let mut column = || columns.next().expect("three columns");
        (column(), column(), column())
    });
    Collection { registry, queries: queries.collect(), grades, relevant, docs }
}

fn dcg(grades: impl Iterator<Item = u32>) -> f64 {
    grades.enumerate().map(|(rank, grade)| f64::from(2_u32.pow(grade) - 1) / (rank as f64 + 2.0).log2()).sum()
}

#[test]
fn quality_on_the_corpus() {
    let Some(corpus) = corpus() else { return };
    let collection = collection(&corpus.join("ir/public"));
    let start = Instant::now();
    let index = SearchIndex::in_memory(&collection.registry).expect("an index");
    say(&format!("indexed {} documents in {:?}", collection.registry.assistants().len(), start.elapsed()));
    let everything = Filter { min_score: 0.0, ..Filter::default() };
    let (mut ndcg, mut mrr, mut recall, mut refused) = (0.0, 0.0, 0.0, 0);
    let start = Instant::now();
    for (query, _, text) in &collection.queries {
        let found = index.search(text, &everything, 10).expect("no query is an error");
        let grade = |hit: &Hit| {
            let doc = collection.docs[hit.id.as_str()].clone();
            collection.grades.get(&(query.clone(), doc)).copied().unwrap_or(0)
        };
        let grades: Vec<u32> = found.hits.iter().map(grade).collect();
        let mut ideal = collection.relevant[query].clone();
        ideal.sort_unstable_by(|a, b| b.cmp(a));
        ndcg += dcg(grades.iter().copied()) / dcg(ideal.into_iter().take(10));
        mrr += grades.iter().position(|grade| *grade == 2).map_or(0.0, |rank| 1.0 / (rank as f64 + 1.0));
        recall += f64::from(u8::from(grades.contains(&2)));
        let best = found.hits.first().map_or(0.0, |hit| hit.score);
        let own = found.hits.iter().find(|hit| grade(hit) == 2).map_or(1.0, |hit| hit.score);
        refused += u32::from(best < MIN_SCORE || own < MIN_SCORE);
    }
    let count = collection.queries.len() as f64;
    let (ndcg, mrr, recall) = (ndcg / count, mrr / count, recall / count);
    say(&format!(
        "nDCG@10 {ndcg:.3} MRR@10 {mrr:.3} R@10 {recall:.3}; refused {refused} of {count}; {:?}",
        start.elapsed()
    ));
    assert!(ndcg > 0.755 && mrr > 0.67 && recall > 0.905, "below what was measured before");
    assert!(f64::from(refused) < 0.02 * count, "{refused} queries of real people are refused");
    assert!(ids(&index, "asdf qwer").is_empty());
}

#[test]
fn the_agents_of_the_corpus() {
    let Some(corpus) = corpus() else { return };
    let sources = crate::registry::sources(None, None, None, &[corpus.join("agents")]);
    let registry = Registry::read(&sources);
    let folder = Folder::new();
    for what in ["built", "opened"] {
        let start = Instant::now();
        let index = SearchIndex::open(folder.path(), &registry).expect("an index");
        say(&format!("{what} in {:?}", start.elapsed()));
        let found = index.search("find security holes in a python web service", &Filter::default(), 5).expect("found");
        assert!(found.hits.iter().any(|hit| hit.id.as_str().contains("security")));
        found.hits.iter().for_each(|hit| say(&format!("  {:.2} {} {:?}", hit.score, hit.id, hit.matched_terms)));
        assert!(ids(&index, "asdf qwer").is_empty());
    }
}
