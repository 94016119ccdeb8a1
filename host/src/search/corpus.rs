//! What a search reads of the index: the postings, lengths and places of every segment.

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::{DocSet, Index, TERMINATED};

use super::document;
use super::explain::InField;
use super::query::{Matched, Weighed};
use super::scoring::{self, FIELDS, Gains, WEIGHTS};
use super::segment::{Before, Segment};
use super::vocabulary::Vocabulary;
use crate::registry::Registry;

/// What the search reads of the index.
pub(super) struct Corpus {
    pub(super) segments: Vec<Segment>,
    /// Those that are not deleted; all numbers here count only them, so that they do not tell how the index came about.
    pub(super) documents: u64,
    /// Of each field.
    pub(super) gains: [Gains; FIELDS],
}

/// How a document answers a query.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Answer {
    /// Orders the hits.
    pub(super) total: f32,
    /// The weight of the words that it has, each as far as it has it.
    pub(super) weight: f32,
    pub(super) matched: Matched,
}

/// What a term adds to a document.
#[derive(Debug, Clone, Copy)]
struct Added {
    doc: u32,
    total: f32,
    gains: f32,
}

/// The documents of a field that have a term.
struct InOneField<'a> {
    postings: SegmentPostings,
    lengths: &'a FieldNormReader,
    gains: &'a Gains,
    weight: f32,
    idf: f32,
}

impl InOneField<'_> {
    fn size_hint(&self) -> u32 {
        self.postings.size_hint()
    }

    /// Tells what each document gets of this field and of those `before` it, which are in order, as these are.
    fn add_to(mut self, before: &[Added], mut tell: impl FnMut(Added)) {
        let mut before = before.iter().copied().peekable();
        let mut doc = self.postings.doc();
        while doc != TERMINATED {
            while let Some(added) = before.next_if(|added| added.doc < doc) {
                tell(added);
            }
            let mut added = before.next_if(|added| added.doc == doc).unwrap_or(Added { doc, total: 0.0, gains: 0.0 });
            let gain = self.weight * self.gains.of(self.lengths.fieldnorm_id(doc), self.postings.term_freq());
            added.total += self.idf * gain;
            added.gains += gain;
            tell(added);
            doc = self.postings.advance();
        }
        before.for_each(tell);
    }
}

impl Corpus {
    /// Reads `index`, which is that of `registry`. What `before` has read of it already is not read again.
    pub(super) fn read(index: &Index, registry: &Registry, before: Option<&Before<'_>>) -> tantivy::Result<Self> {
        let (_, fields) = document::schema();
        let mut segments = Vec::new();
        for segment in index.searchable_segments()? {
            let known = before.and_then(|before| before.segment(&segment));
            segments.push(match (known, before) {
                (Some(known), Some(before)) if known.deleted == segment.meta().num_deleted_docs() => {
                    known.moved(before)
                }
                (Some(known), Some(before)) => known.with_deletes(fields, &segment, before)?,
                _ => Segment::open(fields, &segment, registry)?,
            });
        }
        let (mut documents, mut words) = (0, [0; FIELDS]);
        for segment in &segments {
            documents += segment.documents;
            words.iter_mut().zip(&segment.texts).for_each(|(words, text)| *words += text.words);
        }
        let gains = words.map(|words| Gains::new(words as f32 / documents.max(1) as f32));
        Ok(Self { segments, documents, gains })
    }

    /// How the documents of `segment` answer a query of these `terms`.
    pub(super) fn answers(&self, segment: &Segment, terms: &[Weighed]) -> std::io::Result<Vec<Answer>> {
        let mut answers = vec![Answer::default(); segment.places.len()];
        for (n, term) in terms.iter().enumerate() {
            let mut so_far: Vec<Added> = Vec::new();
            for at in 0..FIELDS - 1 {
                if let Some(postings) = self.postings(segment, term, at)? {
                    let mut merged = Vec::with_capacity(so_far.len() + postings.size_hint() as usize);
                    postings.add_to(&so_far, |added| merged.push(added));
                    so_far = merged;
                }
            }
            let mut take = |added: Added| {
                let answer = &mut answers[added.doc as usize];
                answer.total += added.total;
                answer.weight += term.worth * scoring::strength(added.gains);
                answer.matched |= 1 << n;
            };
            // The body is the longest list by far: what it has is merged where it goes.
            match self.postings(segment, term, FIELDS - 1)? {
                Some(postings) => postings.add_to(&so_far, take),
                None => so_far.into_iter().for_each(&mut take),
            }
        }
        Ok(answers)
    }

    /// The documents that have a term in the field number `at`.
    fn postings<'a>(
        &'a self,
        segment: &'a Segment,
        term: &Weighed,
        at: usize,
    ) -> std::io::Result<Option<InOneField<'a>>> {
        if term.counts[at] == 0 {
            return Ok(None);
        }
        let text = &segment.texts[at];
        let with = |postings| InOneField {
            postings,
            lengths: &text.lengths,
            gains: &self.gains[at],
            weight: WEIGHTS[at],
            idf: term.idfs[at],
        };
        Ok(text.postings(&term.term)?.map(with))
    }

    /// What the field number `at` of a document adds for a term, as [`Corpus::answers`] sums it up.
    pub(super) fn part(
        &self,
        segment: &Segment,
        doc: usize,
        term: &Weighed,
        at: usize,
    ) -> std::io::Result<Option<InField>> {
        let (text, doc) = (&segment.texts[at], u32::try_from(doc).unwrap_or(TERMINATED));
        let Some(mut postings) = text.postings(&term.term)? else { return Ok(None) };
        if postings.doc() < doc {
            postings.seek(doc);
        }
        if postings.doc() != doc {
            return Ok(None);
        }
        let times = postings.term_freq();
        let gain = WEIGHTS[at] * self.gains[at].of(text.lengths.fieldnorm_id(doc), times);
        Ok(Some(InField {
            field: document::NAMES[at],
            times,
            length: text.lengths.fieldnorm(doc),
            documents: term.counts[at],
            idf: term.idfs[at],
            gain,
            contribution: term.idfs[at] * gain,
        }))
    }

    /// The words of each segment, roughly.
    pub(super) fn vocabularies(&self) -> std::io::Result<Vec<&Vocabulary>> {
        self.segments.iter().map(Segment::vocabulary).collect()
    }

    /// In how many documents a term is, by field.
    pub(super) fn counts(&self, term: &str) -> tantivy::Result<[u64; FIELDS]> {
        let mut counts = [0; FIELDS];
        for segment in &self.segments {
            for (count, text) in counts.iter_mut().zip(&segment.texts) {
                *count += segment.count(text, term)?;
            }
        }
        Ok(counts)
    }
}
