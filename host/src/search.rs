//! Finds the assistant for a task that is described in ordinary words.
//!
//! Three fields are searched, `head` (name, description, tags), `lead` (the first line of the system prompt) and `body`
//! (all of it), with the same analyzer for index and query. How documents are ordered, and what the score says, stands
//! in `scoring`; ties are broken by name and id. A word that no document has weighs most in the score, so a threshold on
//! it refuses what fits in common words only; but beside a name, all such words of other letters are half a word. An exact id or name comes first, with score 1.
//!
//! The index is derived from the registry: delete it and it is rebuilt.

mod analyzer;
mod best;
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
mod stop;
mod vocabulary;
mod writing;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::TantivyError;
use tantivy::directory::{Directory, META_LOCK};

use crate::registry::{AssistantId, Definition, Registry, Source};
use best::{Best, Ranked};
use changes::Update;
use corpus::{Answer, Corpus};
use exact::Exact;
use files::Lengths;
use query::{Matched, QueryTerm, Weighed};
use segment::Earlier;
use writing::Writing;

pub use explain::{Explanation, InField, Verdict, Word};
pub use query::{QUERY_BYTES_MAX, QUERY_TERMS_MAX};

/// The folder of the index in a state directory.
pub const FOLDER: &str = "search";
/// The least score of a hit, unless the caller says otherwise.
pub const MIN_SCORE: f32 = 0.2;

/// The assistants of one registry, to be searched.
pub struct SearchIndex {
    assistants: Vec<Arc<Definition>>,
    exact: Exact,
    corpus: Corpus,
    /// Where the next update is written.
    writing: Arc<Writing>,
    /// Where it is kept; none where it is in memory only.
    folder: Option<PathBuf>,
    /// Of its files, where it is in a folder.
    lengths: Lengths,
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
pub enum SearchError {
    /// Tantivy's.
    #[error("the search index failed: {0}")]
    Failed(#[from] TantivyError),
    /// Another program has made a file of it shorter or longer.
    #[error("the search index failed: {} was changed while it was open", .0.display())]
    Changed(PathBuf),
    /// After [`SearchIndex::stop`].
    #[error("the search index is written no more, as the host closes; the next start brings it up to date")]
    Stopped,
}

impl Default for Filter {
    fn default() -> Self {
        Self { source: None, tags: Vec::new(), min_score: MIN_SCORE }
    }
}

impl Filter {
    /// Whether it leaves out nothing but what has too low a score.
    fn takes_all(&self) -> bool {
        self.source.is_none() && self.tags.is_empty()
    }

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

    /// An index in memory of `registry`, made from the one in `folder`, if there is one: that stays as it is, whoever is
    /// writing it.
    ///
    /// # Errors
    /// As [`SearchIndex::in_memory`].
    pub fn copied(folder: &Path, registry: &Registry) -> Result<Self, SearchError> {
        let copied =
            index::copy(folder).and_then(|index| index.map(|index| Self::caught_up(index, registry)).transpose());
        match copied {
            Ok(Some(index)) => Ok(index),
            Ok(None) => Self::in_memory(registry),
            Err(error) => {
                tracing::debug!(folder = %folder.display(), %error, "the search index could not be copied");
                Self::in_memory(registry)
            }
        }
    }

    /// The index of `registry`, which comes after the registry of this one; in the same place. What differs is written,
    /// and this one stays as it is. Each time adds a part: [`SearchIndex::merge`] keeps them few.
    ///
    /// # Errors
    /// [`SearchError::Stopped`], besides those of [`SearchIndex::in_memory`].
    pub fn follow(&self, registry: &Registry) -> Result<Self, SearchError> {
        match self.next(registry) {
            Ok(next) => Ok(next),
            Err(error) if self.writing.is_stopped() => {
                tracing::debug!(%error, "the search index was not brought up to date: it is written no more");
                Err(SearchError::Stopped)
            }
            Err(error) => {
                tracing::warn!(%error, "the search index was not brought up to date; it is opened anew");
                self.anew(registry)
            }
        }
    }

    /// Whether its files are as they were written; reads all of them.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let checked = self.unchanged().and_then(|()| Ok(index::check(&self.writing.index)?));
        match checked {
            Ok(()) => true,
            Err(error) => {
                tracing::info!(%error, "files of the search index are damaged");
                false
            }
        }
    }

    /// Nothing is written any more, so that nobody waits for a merge; searches go on.
    pub fn stop(&self) {
        self.writing.stop();
    }

    /// The index of `registry` in the place of this one, read and checked anew, and built anew where it is damaged. This
    /// one writes nothing any more.
    ///
    /// # Errors
    /// As [`SearchIndex::in_memory`].
    pub fn anew(&self, registry: &Registry) -> Result<Self, SearchError> {
        let Some(folder) = &self.folder else { return Self::in_memory(registry) };
        if let Err(error) = self.writing.end() {
            tracing::warn!(folder = %folder.display(), %error, "the writer of the search index did not end well");
        }
        Self::open(folder, registry)
    }

    /// Makes one of parts that have become many; it takes the longer the larger they are, and searches and
    /// [`SearchIndex::follow`] go on meanwhile. What is merged is read with the next update.
    ///
    /// # Errors
    /// Those of writing; the parts stay as they are then.
    pub fn merge(&self) -> Result<(), SearchError> {
        self.unchanged()?;
        Ok(self.writing.merge()?)
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
        index.kept_in(folder, &Lengths::default())
    }

    /// The same, known to be in `folder`, where lengths of some of its files are `known`.
    fn kept_in(self, folder: &Path, known: &Lengths) -> tantivy::Result<Self> {
        let segments = self.corpus.segments.iter().map(|segment| segment.id.uuid_string()).collect();
        Ok(Self { lengths: Lengths::of(folder, &segments, known)?, folder: Some(folder.to_owned()), ..self })
    }

    /// Fails where what is mapped of a file may be no more: to read that would end the program.
    fn unchanged(&self) -> Result<(), SearchError> {
        self.lengths.changed().map_or(Ok(()), |path| Err(SearchError::Changed(path.to_owned())))
    }

    /// `index`, whatever it is of, made that of `registry`.
    fn caught_up(writing: Arc<Writing>, registry: &Registry) -> tantivy::Result<Self> {
        let labels = segment::all_labels(&writing.index)?;
        write(&writing, &Update::of_labels(&labels, registry), registry)?;
        Self::over(writing, registry, None)
    }

    fn next(&self, registry: &Registry) -> Result<Self, SearchError> {
        self.unchanged()?;
        let (update, moves) = Update::between(&self.assistants, registry.assistants());
        write(&self.writing, &update, registry)?;
        let before = Earlier { corpus: &self.corpus, assistants: &self.assistants, exact: &self.exact, moves: &moves };
        let next = Self::over(self.writing.clone(), registry, Some(&before))?;
        Ok(match &self.folder {
            Some(folder) => next.kept_in(folder, &self.lengths)?,
            None => next,
        })
    }

    fn over(writing: Arc<Writing>, registry: &Registry, before: Option<&Earlier<'_>>) -> tantivy::Result<Self> {
        let assistants = registry.assistants().to_vec();
        let exact = Exact::new(&assistants, before.map(|before| (before.exact, before.moves)));
        // A merge that ends meanwhile must not remove what is being opened.
        let opening = writing.index.directory().acquire_lock(&META_LOCK);
        let opening = opening.map_err(|error| TantivyError::LockFailure(error, None))?;
        let corpus = Corpus::read(&writing.index, registry, before)?;
        drop(opening);
        let places = |segment: &segment::Segment| segment.places.iter().flatten().count();
        let placed: usize = corpus.segments.iter().map(places).sum();
        if placed != assistants.len() || corpus.documents != placed as u64 {
            let (has, of) = (corpus.documents, assistants.len());
            return Err(TantivyError::SystemError(format!(
                "{placed} of its {has} documents are those of {of} assistants"
            )));
        }
        Ok(Self { assistants, exact, corpus, writing, folder: None, lengths: Lengths::default() })
    }

    /// The assistants for a task, best first, at most `limit`.
    ///
    /// Every text is a query: its signs mean nothing, and what is past [`QUERY_BYTES_MAX`] or [`QUERY_TERMS_MAX`] is not
    /// read. A text without any word that says something finds nothing, unless it is the name of an assistant.
    ///
    /// # Errors
    /// Those of reading the index, never of the text.
    pub fn search(&self, text: &str, filter: &Filter, limit: usize) -> Result<Found, SearchError> {
        self.unchanged()?;
        let terms = query::terms(text);
        let pinned = self.pinned(text, filter);
        let weighed = query::weigh(&self.corpus, &terms)?;
        let (ranked, others) = self
            .rank(&weighed, filter, &pinned, limit.saturating_sub(pinned.len()))
            .map_err(tantivy::TantivyError::from)?;
        let total = pinned.len() + others;
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

    /// The first `limit` of those that pass the filter and are not `pinned`, and how many there are.
    fn rank(
        &self,
        terms: &[Weighed],
        filter: &Filter,
        pinned: &[usize],
        limit: usize,
    ) -> std::io::Result<(Vec<Ranked>, usize)> {
        let enough = scoring::enough(self.corpus.documents, terms.iter().map(|term| term.idf).sum());
        let (mut best, mut count) = (Best::new(limit), 0);
        for (number, segment) in self.corpus.segments.iter().enumerate() {
            // Most queries take all: of most documents it is not asked which assistant it is.
            let takes_all = pinned.is_empty() && filter.takes_all() && segment.deleted == 0;
            self.corpus.answers(number, terms, |doc, answer| {
                let score = scoring::score(answer.weight, enough);
                if score < filter.min_score {
                    return;
                }
                if takes_all && !best.may_take(answer.total) {
                    count += 1;
                    return;
                }
                let taken = |place: &usize| !pinned.contains(place) && filter.takes(&self.assistants[*place]);
                if let Some(place) = segment.places[doc].filter(taken) {
                    count += 1;
                    best.add(Ranked { place, total: answer.total, score, matched: answer.matched });
                }
            })?;
        }
        Ok((best.sorted(), count))
    }
}

/// Writes what makes the index that of `registry`.
fn write(writing: &Writing, update: &Update<'_>, registry: &Registry) -> tantivy::Result<()> {
    if update.is_empty() {
        return Ok(());
    }
    if update.is_all(registry) { writing.fill(registry) } else { writing.apply(update) }
}

#[cfg(test)]
mod anything;
#[cfg(test)]
mod tests;
