//! How well the search finds what people want, on collections of real queries, and what it makes of nonsense.

use std::collections::HashMap;
use std::fs;

use super::tests::registry;
use super::*;
use crate::testing::{corpus, say};

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

/// Figures of a set of queries, summed up.
#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    queries: f64,
    ndcg: f64,
    mrr: f64,
    recall: f64,
    first: f64,
    /// Queries whose document is among the first ten, by the least score that refuses it.
    refused: [f64; LEAST.len()],
}

/// The least scores that are tried.
const LEAST: [f32; 5] = [0.1, 0.15, MIN_SCORE, 0.25, 0.3];

impl Figures {
    fn add(&mut self, other: &Self) {
        self.queries += other.queries;
        self.ndcg += other.ndcg;
        self.mrr += other.mrr;
        self.recall += other.recall;
        self.first += other.first;
        self.refused.iter_mut().zip(other.refused).for_each(|(sum, own)| *sum += own);
    }

    /// As parts of the queries; `refused` of those that were found.
    fn mean(&self) -> Self {
        let part = |sum: f64| sum / self.queries;
        Self {
            queries: self.queries,
            ndcg: part(self.ndcg),
            mrr: part(self.mrr),
            recall: part(self.recall),
            first: part(self.first),
            refused: self.refused.map(|refused| refused / self.recall),
        }
    }
}

/// Runs the queries, and prints the figures of all, of each kind, and of two halves.
fn measure(name: &str) -> Option<(SearchIndex, Figures)> {
    let collection = collection(&corpus()?.join("ir").join(name));
    let index = SearchIndex::in_memory(&collection.registry).expect("an index");
    let everything = Filter { min_score: 0.0, ..Filter::default() };
    let mut groups: std::collections::BTreeMap<String, Figures> = Default::default();
    for (n, (query, kind, text)) in collection.queries.iter().enumerate() {
        let found = index.search(text, &everything, 10).expect("no query is an error");
        let grade = |hit: &Hit| collection.grades.get(&(query.clone(), collection.docs[hit.id.as_str()].clone()));
        let grades: Vec<u32> = found.hits.iter().map(|hit| grade(hit).copied().unwrap_or(0)).collect();
        let mut ideal = collection.relevant[query].clone();
        ideal.sort_unstable_by(|a, b| b.cmp(a));
        let own = grades.iter().position(|grade| *grade == 2);
        let refuses = |min_score: f32| {
            let filter = Filter { min_score, ..Filter::default() };
            let kept = index.search(text, &filter, 10).expect("a search").hits;
            f64::from(u8::from(own.is_some() && kept.iter().all(|hit| grade(hit) != Some(&2))))
        };
        let one = Figures {
            queries: 1.0,
            ndcg: dcg(grades.iter().copied()) / dcg(ideal.into_iter().take(10)),
            mrr: own.map_or(0.0, |rank| 1.0 / (rank as f64 + 1.0)),
            recall: f64::from(u8::from(own.is_some())),
            first: f64::from(u8::from(own == Some(0))),
            refused: LEAST.map(refuses),
        };
        for group in ["all".to_owned(), kind.clone(), format!("half {}", n % 2)] {
            groups.entry(group).or_default().add(&one);
        }
    }
    for (group, figures) in &groups {
        let Figures { queries, ndcg, mrr, recall, first, refused } = figures.mean();
        say(&format!(
            "{name} {group}: {queries} queries, nDCG@10 {ndcg:.4}, MRR@10 {mrr:.4}, R@10 {recall:.4}, P@1 {first:.4}; \
             refused of those found, at {LEAST:?}: {refused:.4?}"
        ));
    }
    let all = groups["all"].mean();
    Some((index, all))
}

/// The parts of `texts` for which something is found, by the least score.
fn found(index: &SearchIndex, what: &str, texts: &[String]) -> [f64; LEAST.len()] {
    let found = LEAST.map(|min_score| {
        let filter = Filter { min_score, ..Filter::default() };
        let hits = texts.iter().filter(|text| index.search(text, &filter, 1).expect("a search").total > 0);
        hits.count() as f64 / texts.len() as f64
    });
    say(&format!("{what}, found at {LEAST:?}: {found:.3?}"));
    found
}

/// Numbers that look random and are the same in each run.
fn numbers() -> impl FnMut(usize) -> usize {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % below as u64) as usize
    }
}

fn letters() -> Vec<String> {
    let mut number = numbers();
    let mut word = || (0..3 + number(6)).map(|_| char::from(b'a' + number(26) as u8)).collect::<String>();
    (0..200).map(|n| (0..1 + n % 5).map(|_| word()).collect::<Vec<_>>().join(" ")).collect()
}

fn common_words() -> Vec<String> {
    let mut number = numbers();
    let words: Vec<&str> = COMMON.split_whitespace().collect();
    (0..300).map(|n| (0..2 + n % 5).map(|_| words[number(words.len())]).collect::<Vec<_>>().join(" ")).collect()
}

fn subjects() -> Vec<String> {
    SUBJECTS.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn quality_on_the_corpus() {
    let Some((index, all)) = measure("public") else { return };
    assert!(all.ndcg > 0.79 && all.mrr > 0.708 && all.recall > 0.929, "below what was measured before: {all:?}");
    assert!(all.refused[2] < 0.01, "queries of real people are refused: {:?}", all.refused);
    let found = [
        found(&index, "random letters", &letters()),
        found(&index, "random common words", &common_words()),
        found(&index, "subjects that no assistant has", &subjects()),
    ];
    assert!(found[0][2] < 0.05, "letters are found");
    assert!(found[1][2] < 0.86 && found[2][2] < 0.86, "more nonsense is found than when this was measured");
}

#[test]
fn quality_on_short_descriptions() {
    let Some((index, all)) = measure("metatool") else { return };
    assert!(all.ndcg > 0.61 && all.recall > 0.72, "below what was measured before: {all:?}");
    assert!(all.refused[2] < 0.12, "queries of real people are refused: {:?}", all.refused);
    assert!(found(&index, "random letters", &letters())[2] < 0.05, "letters are found");
    found(&index, "random common words", &common_words());
    found(&index, "subjects that hardly a tool has", &subjects());
}

/// Words of everyday life.
const COMMON: &str = "\
    banana river purple tuesday sofa cloud window dance sugar mountain winter blanket candle garden horse pillow \
    ocean bread lemon guitar dragon rocket castle puppy tiger summer carpet hammer onion spoon bicycle lamp \
    curtain forest butter cousin grandmother umbrella snow thunder elephant violin shoe jacket bottle kitchen \
    dinner holiday uncle piano chair breakfast mirror tomato cheese island desert pencil birthday hat nose \
    finger elbow knee shoulder rain sand star moon sun tree leaf flower grass bird fish cow sheep pig chicken \
    egg milk coffee tea juice wine beer soup rice meat salt pepper plate cup fork knife table bed door wall \
    floor roof street road bridge train bus car boat ship plane wheel engine ticket map clock watch money coin \
    bag box key letter book paper pen song music film game ball team player winner race goal run walk jump swim \
    sleep eat drink cook wash clean cut open close push pull throw catch laugh cry smile sing red blue green \
    yellow black white big small hot cold old young happy sad fast slow loud quiet dry wet heavy light early \
    late north south \
    ";

/// Tasks that are none for an assistant of a programmer.
const SUBJECTS: &[&str] = &[
    "How long should I roast a chicken with lemon and potatoes",
    "My tomato plants have yellow leaves and brown spots on the lower stems",
    "Teach my puppy not to bite the sofa when we leave the house",
    "Which saddle fits a pony with a short back",
    "Knit a scarf with two colours of wool for my grandmother",
    "The bathroom tap is dripping and the washer is worn out",
    "Plan a wedding dinner for sixty guests with a vegetarian menu",
    "What is the best bait for trout in a cold river",
    "Sharpen a kitchen knife on a wet stone",
    "Tune an old piano whose keys stick in winter",
    "Choose running shoes for flat feet and a long marathon",
    "Remove red wine from a white carpet",
    "How do bees survive the frost in a wooden hive",
    "Train for climbing a mountain of five thousand metres with a heavy backpack",
    "Bake sourdough bread with rye flour and no yeast",
    "Pick curtains that match a green velvet armchair",
    "My baby wakes up four times a night and cries",
    "Which exercises strengthen the knee after a torn ligament",
    "Compose a lullaby for violin and harp",
    "Prune the apple trees in the orchard before spring",
    "Explain the offside rule of football to a child",
    "Carve a pumpkin with a scary face",
    "Sail a small boat around the island in strong wind",
    "Restore the leather seats of a vintage motorcycle",
    "Make candles that smell of lavender and honey",
    "Paint the ceiling of a bedroom without stripes",
    "Catch a mouse in the pantry without hurting it",
    "Groom a poodle for the dog show on Sunday",
    "Fold a paper crane from a square sheet",
    "Learn the steps of the tango before the holiday",
    "Pitch a tent on rocky ground in heavy rain",
    "Grow mushrooms in the cellar on straw",
    "Feed a stray kitten that refuses milk",
    "Fix the zipper of a winter jacket",
    "Mix a cocktail with gin, cucumber and mint",
    "Which telescope shows the rings of Saturn best",
    "Repair a wooden chair with a wobbly leg",
    "Pickle cabbage and carrots in a clay jar",
    "Remember the names of all the guests at the party",
    "Translate a love poem of my grandfather from Latin",
    "Shear a sheep and spin the wool",
    "Polish silver spoons that turned black",
    "Teach a parrot to say good morning",
    "Cure hiccups after eating spicy soup",
    "Breed goldfish in a garden pond",
    "Build a snowman that lasts a week",
    "Dye eggs with onion skins for Easter",
    "Which hat suits a round face",
    "Ride a horse across the desert",
    "Whistle with two fingers",
];
