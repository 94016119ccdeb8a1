//! Finds the assistant for a task that is described in ordinary words.
//!
//! Three fields are searched, `head` (name, description, tags), `lead` (the first line of the system prompt) and `body`
//! (all of it), with the same analyzer for index and query. How documents are ordered, and what the score says, stands
//! in `scoring`; ties are broken by name and id. A word that no document has weighs most in the score, so a threshold on
//! it refuses what fits in common words only. An exact id or name comes first, with score 1.
//!
//! The index is derived from the registry: delete it and it is rebuilt.

mod analyzer;
mod changes;
mod corpus;
mod document;
mod exact;
mod explain;
mod files;
mod index;
mod query;
mod scoring;
mod segment;
mod vocabulary;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::{Index, TantivyError};

use crate::registry::{AssistantId, Definition, Registry, Source};
use changes::Update;
use corpus::{Answer, Corpus};
use exact::Exact;
use query::{Matched, QueryTerm, Weighed};

pub use explain::{Explanation, InField, Verdict, Word};
pub use query::{QUERY_BYTES_MAX, QUERY_TERMS_MAX};
use segment::Before;

/// The least score of a hit, unless the caller says otherwise.
pub const MIN_SCORE: f32 = 0.2;

/// The assistants of one registry, to be searched.
pub struct SearchIndex {
    assistants: Vec<Arc<Definition>>,
    exact: Exact,
    corpus: Corpus,
    /// Where the next update is written.
    index: Index,
    /// Where it is kept; none where it is in memory only.
    folder: Option<PathBuf>,
}

/// Which assistants may be found.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    /// Only those from here.
    pub source: Option<Source>,
    /// Only those that have all of these, in any case.
    pub tags: Vec<String>,
    /// Only those with at least this score.
    pub min_score: f32,
}

/// The answer to a query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// The best, best first.
    pub hits: Vec<Hit>,
    /// How many there are in all.
    pub total: usize,
}

/// An assistant that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Which.
    pub id: AssistantId,
    /// The part of the query that it answers, from 0 to 1.
    pub score: f32,
    /// The words of the query that it has, as the caller wrote them.
    pub matched_terms: Vec<String>,
}

/// The index could not be built or read; never because of a query's text.
#[derive(Debug, thiserror::Error)]
#[error("the search index failed: {0}")]
pub struct SearchError(#[from] tantivy::TantivyError);

impl Default for Filter {
    fn default() -> Self {
        Self { source: None, tags: Vec::new(), min_score: MIN_SCORE }
    }
}

impl Filter {
    fn takes(&self, definition: &Definition) -> bool {
        definition.fits(self.source, &self.tags)
    }
}

impl SearchIndex {
    /// An index in memory.
    ///
    /// # Errors
    /// Those of tantivy, which has no reason for one here.
    pub fn in_memory(registry: &Registry) -> Result<Self, SearchError> {
        Ok(Self::over(index::in_memory(registry)?, registry, None)?)
    }

    /// The index in `folder`, brought up to date with `registry`; built anew where it is missing, damaged, made by
    /// another version, or mostly of other assistants.
    ///
    /// Where it cannot be (another program writes it, nothing may be written there), the index is in memory, and the
    /// log says so.
    ///
    /// # Errors
    /// As [`SearchIndex::in_memory`].
    pub fn open(folder: &Path, registry: &Registry) -> Result<Self, SearchError> {
        match Self::on_disk(folder, registry) {
            Ok(index) => Ok(index),
            Err(error) => {
                tracing::warn!(folder = %folder.display(), %error, "the search index is kept in memory");
                Self::in_memory(registry)
            }
        }
    }

    /// The index of `registry`, which comes after the registry of this one; in the same place. What differs is written,
    /// and this one stays as it is.
    ///
    /// # Errors
    /// As [`SearchIndex::in_memory`].
    pub fn follow(&self, registry: &Registry) -> Result<Self, SearchError> {
        match (self.next(registry), &self.folder) {
            (Ok(next), folder) => Ok(Self { folder: folder.clone(), ..next }),
            (Err(error), Some(folder)) => {
                tracing::warn!(folder = %folder.display(), %error, "the search index was not brought up to date; it is opened anew");
                Self::open(folder, registry)
            }
            (Err(error), None) => {
                tracing::warn!(%error, "the search index was not brought up to date; it is built anew");
                Self::in_memory(registry)
            }
        }
    }

    fn on_disk(folder: &Path, registry: &Registry) -> tantivy::Result<Self> {
        let opened =
            index::open(folder).and_then(|index| index.map(|index| Self::caught_up(index, registry)).transpose());
        let index = match opened {
            Ok(Some(index)) => index,
            Ok(None) => {
                tracing::debug!(folder = %folder.display(), "there is no search index of this version yet");
                Self::over(index::build(folder, registry)?, registry, None)?
            }
            Err(error) => {
                tracing::info!(folder = %folder.display(), %error, "the search index is damaged, and built anew");
                Self::over(index::build(folder, registry)?, registry, None)?
            }
        };
        Ok(Self { folder: Some(folder.to_owned()), ..index })
    }

    /// `index`, whatever it is of, made that of `registry`.
    fn caught_up(index: Index, registry: &Registry) -> tantivy::Result<Self> {
        let labels = segment::all_labels(&index)?;
        let update = Update::of_labels(&labels, registry);
        write(&index, &update, registry)?;
        Self::over(index, registry, None)
    }

    fn next(&self, registry: &Registry) -> tantivy::Result<Self> {
        let (update, moves) = Update::between(&self.assistants, registry.assistants());
        write(&self.index, &update, registry)?;
        let before = Before { corpus: &self.corpus, assistants: &self.assistants, exact: &self.exact, moves: &moves };
        Self::over(self.index.clone(), registry, Some(&before))
    }

    fn over(index: Index, registry: &Registry, before: Option<&Before<'_>>) -> tantivy::Result<Self> {
        let assistants = registry.assistants().to_vec();
        let exact = Exact::new(&assistants, before.map(|before| (before.exact, before.moves)));
        let corpus = Corpus::read(&index, registry, before)?;
        let places = |segment: &segment::Segment| segment.places.iter().flatten().count();
        let placed: usize = corpus.segments.iter().map(places).sum();
        if placed != assistants.len() || corpus.documents != placed as u64 {
            let (has, of) = (corpus.documents, assistants.len());
            return Err(TantivyError::SystemError(format!(
                "{placed} of its {has} documents are those of {of} assistants"
            )));
        }
        Ok(Self { assistants, exact, corpus, index, folder: None })
    }

    /// The assistants for a task, best first, at most `limit`.
    ///
    /// Every text is a query: its signs mean nothing, and what is past [`QUERY_BYTES_MAX`] or [`QUERY_TERMS_MAX`] is not
    /// read. A text without any word that says something gives all assistants in the order of their names, with score 0.
    ///
    /// # Errors
    /// Those of reading the index, never of the text.
    pub fn search(&self, text: &str, filter: &Filter, limit: usize) -> Result<Found, SearchError> {
        let terms = query::terms(text);
        let pinned = self.pinned(text, filter);
        let weighed = query::weigh(&self.corpus, &terms)?;
        let mut ranked = self.rank(&weighed, filter).map_err(tantivy::TantivyError::from)?;
        ranked.retain(|found| !pinned.contains(&found.place));
        let total = pinned.len() + ranked.len();
        sort_first(&mut ranked, limit.saturating_sub(pinned.len()));
        let hits = pinned.into_iter().map(|place| self.hit(place, 1.0, &terms, Matched::MAX));
        // The totals order; what is told beside them never rises down the list, so that it does not speak against it.
        let mut told = 1.0_f32;
        let hits = hits.chain(ranked.into_iter().map(|found| {
            told = told.min(found.score);
            self.hit(found.place, told, &terms, found.matched)
        }));
        Ok(Found { hits: hits.take(limit).collect(), total })
    }

    /// The places of those whose id or name is the whole text.
    fn pinned(&self, text: &str, filter: &Filter) -> Vec<usize> {
        let mut pinned = self.exact.find(&self.assistants, text);
        pinned.retain(|place| filter.takes(&self.assistants[*place]));
        pinned
    }

    fn hit(&self, place: usize, score: f32, terms: &[QueryTerm], matched: Matched) -> Hit {
        let has = terms.iter().enumerate().filter(|(n, _)| matched >> n & 1 == 1);
        let matched_terms = has.map(|(_, term)| term.written.clone()).collect();
        Hit { id: self.assistants[place].id.clone(), score, matched_terms }
    }

    /// All that pass the filter, in no order.
    fn rank(&self, terms: &[Weighed], filter: &Filter) -> std::io::Result<Vec<Ranked>> {
        let enough = scoring::enough(self.corpus.documents, terms.iter().map(|term| term.idf).sum());
        let mut ranked = Vec::new();
        for segment in &self.corpus.segments {
            for (doc, answer) in self.corpus.answers(segment, terms)?.into_iter().enumerate() {
                let Some(place) = segment.places[doc].filter(|_| answer.matched != 0) else { continue };
                let score = (answer.weight / enough).clamp(0.0, 1.0);
                if score >= filter.min_score && filter.takes(&self.assistants[place]) {
                    ranked.push(Ranked { place, total: answer.total, score, matched: answer.matched });
                }
            }
        }
        Ok(ranked)
    }
}

/// Writes what makes `index` that of `registry`.
fn write(index: &Index, update: &Update<'_>, registry: &Registry) -> tantivy::Result<()> {
    if update.is_empty() {
        return Ok(());
    }
    if update.is_all(registry) { index::fill(index, registry) } else { index::apply(index, update) }
}

/// Keeps the best `count`, best first.
fn sort_first(ranked: &mut Vec<Ranked>, count: usize) {
    // The assistants are in the order of name and id, so their places break ties.
    let order = |a: &Ranked, b: &Ranked| b.total.total_cmp(&a.total).then(a.place.cmp(&b.place));
    if count < ranked.len() {
        ranked.select_nth_unstable_by(count, order);
        ranked.truncate(count);
    }
    ranked.sort_unstable_by(order);
}

/// A document with its scores.
struct Ranked {
    place: usize,
    total: f32,
    score: f32,
    matched: Matched,
}

#[cfg(test)]
mod anything;
#[cfg(test)]
mod quality;
#[cfg(test)]
mod tests;
