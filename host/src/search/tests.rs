mod disk;
mod merges;
mod updates;
mod watched;

use std::time::Instant;

use super::*;
use crate::registry::read_markdown;
use crate::testing::{Folder, corpus, say};

/// Assistants, each as `name | description | prompt`.
pub(super) fn registry(lines: &[&str]) -> Registry {
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

pub(super) const STAFF: &[&str] = &[
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
    check("kuber\u{ad}netes", &["kubernetes-architect"]);
    check("Напиши программу для Python", &["code-reviewer"]);
    check("Kubernetesのクラスタを設計してください", &["kubernetes-architect"]);
    check("напиши программу", &[]);
    check("ช่วยออกแบบระบบที่รองรับผู้ใช้งานจำนวนมากและปรับขนาดได้เองโดยอัตโนมัติบนคลาวด์ด้วย kubernetes", &["kubernetes-architect"]);
    check("发\u{200d}票", &["发票核对"]);
    check("python 发票", &["发票核对"]);
    check("asdf qwer", &[]);
    check("zzzzzz", &[]);
}

/// Words of a language that hardly an assistant is written in hide no name that many have, and make none of a number.
#[test]
fn finds_names_among_words_of_other_letters() {
    let others = [
        "shepherd | Counts sheep | You know Python and the year 2024.",
        "miller | Grinds rye | You know Python and the year 2024.",
        "sailor | Reads maps | You know Python and the year 2024.",
        "設計係 | 図面を設計する | あなたは図面を引く。",
    ];
    let index = SearchIndex::in_memory(&registry(&[STAFF, &others].concat())).expect("an index");
    let python = ["code-reviewer", "miller", "sailor", "shepherd"];
    let check = |query: &str, expected: &[&str]| {
        let mut found = ids(&index, query);
        found.sort();
        assert_eq!(found, expected, "{query:?}");
    };
    check("Python", &python);
    check("напиши программу для Python", &python);
    check("Pythonで設計してください", &[&python[..], &["設計係"]].concat());
    check("как приготовить борщ в 2024 году", &[]);
    check("2024年の桜はいつ咲きますか", &[]);
    check("как приготовить борщ", &[]);
    let best = |query: &str| index.search(query, &Filter::default(), 1).expect("a search").hits[0].score;
    assert!(best("Python") > best("напиши программу для Python"), "what nobody has counts");
    let more = best("напиши хорошую программу для Python");
    assert!((best("напиши программу для Python") - more).abs() < 1e-6, "and has a bound");
}

/// Names and words that are written in their own way.
const ODD: &[&str] = &[
    "node-pro | Writes Node.js services | You know npm.",
    "pipelines | Keeps CI/CD going | You know GitLab.",
    "k8s-ops | Runs k8s clusters | You know pods.",
    "dotnet-pro | Writes .NET and ASP.NET | You know Blazor.",
    "請求書係 | 請求書を確認する | あなたは請求書と注文書を照合します。",
    "송장검토 | 송장을 확인합니다 | 당신은 세금 계산서를 검토합니다.",
    "Übersetzer | Übersetzt Verträge | Du kennst große Häuser.",
    "naïve-bayes | Classifies texts | Façade and coöperation.",
    "reactNativeGuide | Builds mobile screens | You know Expo.",
    "objective-c-pro | Writes Objective-C | You know Cocoa.",
];

#[test]
fn finds_what_is_written_in_its_own_way() {
    let index = SearchIndex::in_memory(&registry(ODD)).expect("an index");
    let check = |query: &str, first: Option<&str>| {
        assert_eq!(ids(&index, query).first().map(String::as_str), first, "{query:?}");
    };
    for query in ["node.js", "NodeJS node", "a Node service", "npm"] {
        check(query, Some("node-pro"));
    }
    for query in ["CI/CD", "ci cd", "set up CI", "ci-cd pipeline"] {
        check(query, Some("pipelines"));
    }
    for query in ["k8s", "K8S cluster", "pods"] {
        check(query, Some("k8s-ops"));
    }
    for query in [".NET", "dotnet", "ASP.NET", "a .net service", "blazor"] {
        check(query, Some("dotnet-pro"));
    }
    for query in ["請求書", "請求書の確認をお願いします", "注文書", "照合"] {
        check(query, Some("請求書係"));
    }
    for query in ["송장", "송장을", "세금계산서 검토", "계산서"] {
        check(query, Some("송장검토"));
    }
    for query in ["ubersetzer", "Übersetzer", "vertrage", "VERTRÄGE", "hauser"] {
        check(query, Some("übersetzer"));
    }
    for query in ["naive bayes", "facade", "cooperation", "coo\u{308}peration"] {
        check(query, Some("naïve-bayes"));
    }
    for query in ["react native", "reactnativeguide", "ReactNativeGuide", "native screens", "ｅｘｐｏ"] {
        check(query, Some("reactnativeguide"));
    }
    for query in ["ObjectiveCPro", "objectiveC", "ObjectiveCocoa"] {
        check(query, Some("objective-c-pro"));
    }
    for query in ["objective-c", "Objective C", "cocoa"] {
        check(query, Some("objective-c-pro"));
    }
    for query in ["票", "の", "가나", "zq", "C#", "F#", "zqXyWv"] {
        check(query, None);
    }
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
fn scores_are_parts_and_terms_are_told_as_written() {
    let index = SearchIndex::in_memory(&registry(STAFF)).expect("an index");
    let found = index.search("Reviewing Python, unheardof", &Filter::default(), 1).expect("a search");
    let hit = &found.hits[0];
    assert_eq!(hit.matched_terms, ["Reviewing", "Python"]);
    assert!((0.4..0.7).contains(&hit.score), "two of three rare words: {}", hit.score);
    let whole = index.search("Python mistakes", &Filter::default(), 1).expect("a search");
    assert!(whole.hits[0].score > 0.6, "both words: {}", whole.hits[0].score);
    let task = "It is Friday, my boss waits, and before the weekend somebody careful ought to read four hundred lines of \
                Python and Rust that our trainee changed yesterday";
    let hit = index.search(task, &Filter::default(), 1).expect("a search").hits.remove(0);
    assert_eq!(hit.id.as_str(), "code-reviewer", "two words that only one has are enough in a long text");
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
