//! How well the search finds what people want, on collections of real queries, and what it makes of nonsense.

use std::path::{Path, PathBuf};

use assistant_host::search::{Filter, MIN_SCORE, SearchIndex};
use conformance::search_bench::collection::{self, Collection};
use conformance::search_bench::engine::{self, Kind};
use conformance::search_bench::metrics::Worth;
use conformance::search_bench::quality;
use conformance::timing::complain;

/// The least scores that are tried.
const LEAST: [f32; 5] = [0.1, 0.15, MIN_SCORE, 0.25, 0.3];

/// The collection `name` of the corpus: `ASSISTANT_CORPUS`, else beside the workspace. None, and said, where it is absent.
fn collection(name: &str) -> Option<Collection> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let folder = std::env::var_os("ASSISTANT_CORPUS").map_or_else(beside, PathBuf::from).join("ir").join(name);
    if !folder.is_dir() {
        complain("skipped: no corpus; set ASSISTANT_CORPUS to its folder");
        return None;
    }
    Some(collection::read(&folder).expect("a collection"))
}

/// What the host's search finds: no figure is below that of `least`, no query is an error, and the least score refuses the
/// best document of fewer than the share `refused` of the queries.
fn check(collection: &Collection, least: Worth, refused: f64) -> SearchIndex {
    let found = quality::measure(collection, &[Kind::Ours]).expect("figures");
    found.told().iter().for_each(|line| complain(line));
    let ours = found.engines.iter().find(|of| of.engine == Kind::Ours).expect("the host's").all;
    let is = ours.worth;
    let enough = is.ndcg > least.ndcg && is.mrr > least.mrr && is.recall > least.recall && is.first > least.first;
    assert!(enough, "{ours:?} is below what was measured before: {least:?}");
    assert_eq!(ours.errors, 0);
    assert!(found.refused.best_lost < refused, "queries of real people are refused: {:?}", found.refused);
    SearchIndex::in_memory(&engine::registry(&collection.docs)).expect("an index")
}

/// The share of `texts` for which something is found with the default least score; that with others is told.
fn found(index: &SearchIndex, what: &str, texts: &[String]) -> f64 {
    let found = LEAST.map(|min_score| {
        let filter = Filter { min_score, ..Filter::default() };
        let hits = texts.iter().filter(|text| index.search(text, &filter, 1).expect("a search").total > 0);
        hits.count() as f64 / texts.len() as f64
    });
    complain(&format!("{what}, found at {LEAST:?}: {found:.3?}"));
    found[2]
}

#[test]
fn assistants_are_found() {
    let Some(collection) = collection("public") else { return };
    let index = check(&collection, Worth { ndcg: 0.79, mrr: 0.708, recall: 0.929, first: 0.585 }, 0.01);
    assert!(found(&index, "random letters", &letters()) < 0.05, "letters are found");
    let common = found(&index, "random common words", &common_words());
    let subjects = found(&index, "subjects that no assistant has", &texts(SUBJECTS));
    assert!(common < 0.86 && subjects < 0.86, "more nonsense is found than when this was measured");
    let named = found(&index, "names among words of other letters", &texts(NAMED));
    let foreign = found(&index, "numbers among words of other letters", &texts(FOREIGN));
    assert!(named == 1.0 && foreign == 0.0, "{named} of the names, {foreign} of the numbers");
}

#[test]
fn tools_of_one_sentence_are_found() {
    let Some(collection) = collection("metatool") else { return };
    let index = check(&collection, Worth { ndcg: 0.61, mrr: 0.575, recall: 0.72, first: 0.5 }, 0.12);
    assert!(found(&index, "random letters", &letters()) < 0.05, "letters are found");
    found(&index, "random common words", &common_words());
    found(&index, "subjects that hardly a tool has", &texts(SUBJECTS));
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

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
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

/// Tasks in languages that no assistant is written in, each with a name that some have.
const NAMED: &[&str] = &[
    "Напиши программу для Python 3",
    "Настрой кластер Kubernetes с нуля, чтобы он сам рос, в 2024 году",
    "Kubernetesのクラスタを設計してください",
    "用 React 写一个登录页面",
    "请帮我优化 PostgreSQL 的查询速度",
    "Docker 이미지를 더 작게 만들어 주세요",
    "ช่วยเขียนการทดสอบให้โค้ด Rust ของฉันหน่อย",
    "ช่วยออกแบบระบบที่รองรับผู้ใช้งานจำนวนมากและปรับขนาดได้เองโดยอัตโนมัติบนคลาวด์ด้วย kubernetes",
    "اكتب لي تطبيقا بلغة Flutter",
    "Γράψε μου ένα σενάριο Terraform",
    "כתוב לי שירות עם GraphQL",
];

/// Tasks in such languages that are none for an assistant of a programmer, with a number in them.
const FOREIGN: &[&str] = &[
    "как приготовить борщ в 2024 году",
    "Сколько стоит билет на поезд 12 мая",
    "Πόσες ώρες ψήνεται το ψωμί στους 180 βαθμούς",
    "كم ساعة أطبخ 2 كيلو من اللحم",
    "איך מכינים עוגה ל 20 אורחים",
    "2024年の桜はいつ咲きますか",
    "鶏肉を30分焼けばいいですか",
    "2024年春节去哪里旅行最好",
    "3岁的孩子晚上不睡觉怎么办",
    "김치찌개 4인분 끓이는 방법",
    "วิธีทำแกงเขียวหวานสำหรับ 4 คน",
    "ວິທີເຮັດຕຳໝາກຫຸ່ງ 2 ຄົນ",
    "100 ဒေါ်လာ ဘယ်လောက်လဲ",
    "តម្លៃសំបុត្ររថភ្លើង 10 ដុល្លារ",
];
