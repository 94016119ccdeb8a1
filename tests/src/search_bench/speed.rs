//! How fast and how large the search is over so many generated assistants: the index alone beside FTS5, then a host over
//! as many files, each figure beside a floor of the same run.

use std::path::Path;
use std::time::{Duration, Instant};

use assistant_host::search::SearchIndex;
use serde::Serialize;

use super::asks;
use super::collection::Doc;
use super::cpu::took;
use super::engine::{self, Engine, Ours, bytes_of};
use super::fts5::{Fts5, Way};
use super::generate::{self, Assistants};
use super::host::{self, Figures, Memory, Task, Times, Work};
use super::metrics::RANKS;
use crate::measure::{Goal, floor};

/// Sizes where none is told.
pub const SIZES: [usize; 3] = [1_500, 10_000, 100_000];
/// Usual queries.
const QUERIES: usize = 300;
/// Openings with nothing changed, of which the middle one is told.
const STARTS: usize = 3;
/// Upserts, and changes of files, of an open host.
const UPSERTS: usize = 50;
/// Upserts of FTS5.
const FTS5_UPSERTS: usize = 200;

/// The goals of issue 5, milliseconds, each up to so many assistants.
mod goals {
    /// A query, of the thread's work, p99.
    pub(super) const QUERY_MS_MAX: f64 = 1.0;
    /// The same at 100,000.
    pub(super) const QUERY_MS_MAX_OF_MANY: f64 = 8.0;
    /// The most assistants that the first of these, and the next, are for.
    pub(super) const ASSISTANTS: usize = 10_000;
    /// An assistant stored until it is found, p99.
    pub(super) const UPSERT_MS_MAX: f64 = 50.0;
    /// A host opened with nothing changed.
    pub(super) const START_MS_MAX: f64 = 150.0;
    /// The most assistants that this is for.
    pub(super) const START_ASSISTANTS: usize = 1_500;
}

/// What was measured at one size.
#[derive(Debug, Serialize)]
pub struct Size {
    /// How many assistants.
    pub assistants: usize,
    /// Bytes of their files.
    pub bytes: u64,
    /// What the bare parts of the same work take.
    pub floor: Floor,
    /// The host's index.
    pub ours: Index,
    /// FTS5, asked for any word.
    pub fts5: Index,
    /// A host over the files; none where only the index is measured.
    pub host: Option<Hosts>,
}

/// Hosts over the same files and the same state, one after the other.
#[derive(Debug, Serialize)]
pub struct Hosts {
    /// The first opening: files read, mirrored, indexed.
    pub first: Figures,
    /// An opening with nothing changed, by its time the middle one of a few.
    pub again: Figures,
    /// Another such opening, then queries, upserts and changes.
    pub worked: Figures,
}

/// What the bare parts of the same work take, milliseconds.
#[derive(Debug, Serialize)]
pub struct Floor {
    /// All texts split at blanks, and their letters made small.
    pub split_ms: f64,
    /// A sum over one number for each assistant.
    pub sum_ms: f64,
    /// One durable row of SQLite.
    pub row_ms: f64,
}

/// An index.
#[derive(Debug, Serialize)]
pub struct Index {
    /// Making it.
    pub build_ms: f64,
    /// Opening it again with nothing changed.
    pub open_ms: f64,
    /// Its files.
    pub bytes: u64,
    /// A usual query, of the thread's work.
    pub query: Times,
    /// The worst queries, by kind.
    pub worst: Vec<Worst>,
    /// A document replaced until a query has found it; the host's is in its own figures.
    pub upsert: Option<Times>,
}

/// Queries of a bad kind.
#[derive(Debug, Serialize)]
pub struct Worst {
    /// Which.
    pub kind: &'static str,
    /// The longest of a few, of the thread's work.
    pub cpu_ms: f64,
}

/// Measures one size; `assistants` makes them. A host over them is measured too `with_host`.
///
/// # Errors
/// In words: what failed.
pub fn measure(size: usize, seed: u64, assistants: Assistants, with_host: bool) -> Result<Size, String> {
    let told = |error: std::io::Error| error.to_string();
    let docs: Vec<Doc> = assistants.take(size).collect();
    let folder = tempfile::tempdir().map_err(told)?;
    let files = folder.path().join("assistants");
    let bytes = generate::write(&files, &docs)?;
    let floor = Floor {
        split_ms: split(&docs),
        sum_ms: sum(size),
        row_ms: floor::row(folder.path()).map_err(|error| error.to_string())?,
    };
    let queries = asks::usual(&docs, seed, QUERIES);
    let ours = ours(&docs, seed, &queries)?;
    let fts5 = fts5(&docs, seed, &queries)?;
    let host = if with_host { Some(hosts(&files, &folder.path().join("state"), queries)?) } else { None };
    Ok(Size { assistants: size, bytes, floor, ours, fts5, host })
}

fn hosts(files: &Path, state: &Path, queries: Vec<String>) -> Result<Hosts, String> {
    let task = |work| Task { assistants: files.to_owned(), state: state.to_owned(), work };
    let first = host::apart(&task(None))?;
    let mut again = (0..STARTS).map(|_| host::apart(&task(None))).collect::<Result<Vec<_>, _>>()?;
    again.sort_by(|a, b| a.open_ms.total_cmp(&b.open_ms));
    let again = again.swap_remove(STARTS / 2);
    let worked = host::apart(&task(Some(Work { queries, upserts: UPSERTS, changes: UPSERTS })))?;
    Ok(Hosts { first, again, worked })
}

fn ours(docs: &[Doc], seed: u64, queries: &[String]) -> Result<Index, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let registry = engine::registry(docs);
    let open = || SearchIndex::open(folder.path(), &registry).map_err(|error| error.to_string());
    let (built, build) = took(open);
    drop(built?);
    let bytes = bytes_of(folder.path()).map_err(|error| error.to_string())?;
    let (index, opened) = took(open);
    let ours = Ours::new(index?, docs);
    let (query, worst) = ask(&ours, docs, seed, queries)?;
    Ok(Index { build_ms: ms(build.wall), open_ms: ms(opened.wall), bytes, query, worst, upsert: None })
}

fn fts5(docs: &[Doc], seed: u64, queries: &[String]) -> Result<Index, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("fts5.db");
    let told = |error: rusqlite::Error| error.to_string();
    let (built, build) = took(|| Fts5::build(&path, Way::Fair, docs));
    drop(built.map_err(told)?);
    let bytes = bytes_of(folder.path()).map_err(|error| error.to_string())?;
    let (index, opened) = took(|| Fts5::open(&path, Way::Fair));
    let mut index = index.map_err(told)?;
    let (query, worst) = ask(&index, docs, seed, queries)?;
    let mut upserts = Vec::new();
    for (place, doc) in docs.iter().enumerate().take(FTS5_UPSERTS) {
        let word = format!("zq{place}xv");
        let doc = Doc { description: format!("Looks into {word}."), ..doc.clone() };
        let start = Instant::now();
        index.replace(place, &doc).map_err(told)?;
        if index.ask(&word, RANKS).map_err(told)? != [place] {
            return Err(format!("FTS5 did not find `{word}`"));
        }
        upserts.push(start.elapsed());
    }
    Ok(Index { build_ms: ms(build.wall), open_ms: ms(opened.wall), bytes, query, worst, upsert: Times::of(upserts) })
}

fn ask(engine: &impl Engine, docs: &[Doc], seed: u64, queries: &[String]) -> Result<(Times, Vec<Worst>), String> {
    let mut times = Vec::new();
    // Once to warm up, as an index that has been asked before.
    for _ in 0..2 {
        times.clear();
        for query in queries {
            let (answer, took) = took(|| engine.ask(query, RANKS));
            answer?;
            times.push(took.cpu);
        }
    }
    let mut worst = Vec::new();
    for (kind, queries) in asks::worst(docs, seed) {
        let mut longest = Duration::ZERO;
        for query in queries {
            let (answer, took) = took(|| engine.ask(&query, RANKS));
            answer?;
            longest = longest.max(took.cpu);
        }
        worst.push(Worst { kind, cpu_ms: ms(longest) });
    }
    Ok((Times::of(times).ok_or("no query")?, worst))
}

fn split(docs: &[Doc]) -> f64 {
    let words = |text: &str| text.split_whitespace().map(|word| word.to_lowercase().len()).sum::<usize>();
    let (letters, took) = took(|| docs.iter().map(|doc| words(&doc.description) + words(&doc.body)).sum::<usize>());
    std::hint::black_box(letters);
    ms(took.wall)
}

fn sum(count: usize) -> f64 {
    let numbers = vec![1.0_f32; count];
    crate::timing::timed(50, || _ = std::hint::black_box(std::hint::black_box(&numbers).iter().sum::<f32>()))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

impl Size {
    /// The figures, for people.
    #[must_use]
    pub fn told(&self) -> Vec<String> {
        let Self { assistants, floor, ours, fts5, .. } = self;
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let many = *assistants > goals::ASSISTANTS;
        let goal = Goal::AtMost(if many { goals::QUERY_MS_MAX_OF_MANY } else { goals::QUERY_MS_MAX }, " ms");
        let mut lines = vec![
            format!("{assistants} assistants, {:.1} MB of files", mb(self.bytes)),
            format!(
                "  floor: all text split at blanks {:.0} ms, a sum over all {:.4} ms, a durable row {:.2} ms",
                floor.split_ms, floor.sum_ms, floor.row_ms
            ),
            format!(
                "  index made: {:.0} ms, {:.1} × the split; FTS5 {:.0} ms",
                ours.build_ms,
                ours.build_ms / floor.split_ms,
                fts5.build_ms
            ),
            format!("  index on disk: {:.1} MB; FTS5 {:.1} MB", mb(ours.bytes), mb(fts5.bytes)),
            format!("  index opened, nothing changed: {:.1} ms", ours.open_ms),
            format!(
                "  query, CPU: p50 {:.3} ms, p99 {:.3} ms; FTS5 {:.3} and {:.3} ms ({:.0} and {:.0} × ours){}",
                ours.query.p50_ms,
                ours.query.p99_ms,
                fts5.query.p50_ms,
                fts5.query.p99_ms,
                fts5.query.p50_ms / ours.query.p50_ms,
                fts5.query.p99_ms / ours.query.p99_ms,
                goal.judge(ours.query.p99_ms)
            ),
        ];
        for (ours, fts5) in ours.worst.iter().zip(&fts5.worst) {
            lines.push(format!("  query of {}: CPU {:.2} ms; FTS5 {:.2} ms", ours.kind, ours.cpu_ms, fts5.cpu_ms));
        }
        lines.extend(self.host.iter().flat_map(|host| host.told(self)));
        lines
    }
}

impl Hosts {
    fn told(&self, size: &Size) -> Vec<String> {
        let Self { first, again, worked } = self;
        let judge = |goal: Goal, most: usize, figure| {
            if size.assistants <= most { goal.judge(figure) } else { String::new() }
        };
        let start = judge(Goal::AtMost(goals::START_MS_MAX, " ms"), goals::START_ASSISTANTS, again.open_ms);
        let fts5 = size.fts5.upsert.map_or_else(String::new, |upsert| format!("; FTS5 {}", times(Some(upsert))));
        let stored = worked.upsert.map_or_else(String::new, |upsert| {
            let judged = judge(Goal::AtMost(goals::UPSERT_MS_MAX, " ms"), goals::ASSISTANTS, upsert.p99_ms);
            format!("; p50 {:.1} × a durable row{judged}", upsert.p50_ms / size.floor.row_ms)
        });
        let memory =
            |memory: &Memory| format!("{:.1} MB PSS, {:.1} MB without pages of files", memory.pss_mb, memory.own_mb);
        let after =
            worked.worked.as_ref().map_or_else(String::new, |after| format!("; after all this {}", memory(after)));
        vec![
            format!("  host opened first: {:.0} ms", first.open_ms),
            format!(
                "  host opened, nothing changed: {:.0} ms, {:.1} × all files read ({:.0} ms){start}",
                again.open_ms,
                again.open_ms / again.read_ms,
                again.read_ms
            ),
            format!("  search_assistant: {}", times(worked.search)),
            format!("  assistant stored until found: {}{stored}{fts5}", times(worked.upsert)),
            format!("  file written until found: {}", times(worked.change)),
            format!(
                "  host's memory: open {}{after}; before it is open {:.1} MB",
                memory(&again.open),
                again.empty.pss_mb
            ),
        ]
    }
}

fn times(times: Option<Times>) -> String {
    times.map_or_else(
        || "not seen".to_owned(),
        |Times { count, p50_ms, p99_ms }| format!("p50 {p50_ms:.2} ms, p99 {p99_ms:.2} ms ({count} times)"),
    )
}
