//! What a search reads of the index: the postings, lengths and places of every segment.

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{BlockSegmentPostings, Postings, TermInfo};
use tantivy::{DocSet, Index, TERMINATED, Term};

use super::document;
use super::explain::InField;
use super::query::{Matched, Weighed};
use super::scoring::{self, FIELDS, Gains, WEIGHTS};
use super::segment::{Earlier, Segment};
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

/// Documents that are answered for at a time: few enough that all sums stay next to the processor.
const WINDOW: usize = 2_048;

/// Where a term is found.
pub(super) struct Lists {
    /// In how many documents it is, by field.
    pub(super) counts: [u64; FIELDS],
    /// By segment and field.
    found: Vec<[Option<TermInfo>; FIELDS]>,
}

impl Lists {
    /// The most documents that have it in one field.
    pub(super) fn documents(&self) -> u64 {
        self.counts.into_iter().max().unwrap_or(0)
    }

    fn of(&self, segment: usize, field: usize) -> Option<&TermInfo> {
        self.found[segment][field].as_ref()
    }
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

/// The documents of a field that have a term, in order, as far as they are read.
struct InOneField<'a> {
    postings: BlockSegmentPostings,
    /// How many of the block of postings are read.
    read: usize,
    lengths: &'a FieldNormReader,
    gains: &'a Gains,
    weight: f32,
    idf: f32,
}

impl InOneField<'_> {
    /// Reads on up to the document `end`, and tells what each gets of this field and of those `before` it, which are in
    /// order, as these are.
    fn add_to(&mut self, end: u32, before: &[Added], mut tell: impl FnMut(Added)) {
        let mut before = before.iter().copied().peekable();
        loop {
            let (docs, times) = (&self.postings.docs()[self.read..], &self.postings.freqs()[self.read..]);
            let below = docs.partition_point(|doc| *doc < end);
            for (&doc, &times) in docs[..below].iter().zip(times) {
                while let Some(added) = before.next_if(|added| added.doc < doc) {
                    tell(added);
                }
                let added = before.next_if(|added| added.doc == doc);
                let mut added = added.unwrap_or(Added { doc, total: 0.0, gains: 0.0 });
                let gain = self.weight * self.gains.of(self.lengths.fieldnorm_id(doc), times);
                added.total += self.idf * gain;
                added.gains += gain;
                tell(added);
            }
            self.read += below;
            if below < docs.len() || self.postings.docs().is_empty() {
                return before.for_each(tell);
            }
            self.postings.advance();
            self.read = 0;
        }
    }
}

/// The documents that have a term, in order, as far as they are read.
struct WithTerm<'a> {
    /// The bit of the term.
    matched: Matched,
    worth: f32,
    /// The longest list by far is that of the body.
    body: Option<InOneField<'a>>,
    others: Vec<InOneField<'a>>,
}

impl WithTerm<'_> {
    /// Reads on up to the document `end`, and adds to the answers of a window that begins with the document `start`.
    /// `so_far` and `merged` are room to work in.
    fn add_to(&mut self, window: &mut [Answer], start: u32, end: u32, [so_far, merged]: &mut [Vec<Added>; 2]) {
        so_far.clear();
        for field in &mut self.others {
            merged.clear();
            field.add_to(end, so_far, |added| merged.push(added));
            std::mem::swap(so_far, merged);
        }
        let mut take = |added: Added| {
            let answer = &mut window[(added.doc - start) as usize];
            answer.total += added.total;
            answer.weight += self.worth * scoring::strength(added.gains);
            answer.matched |= self.matched;
        };
        match &mut self.body {
            Some(body) => body.add_to(end, so_far, take),
            None => so_far.iter().copied().for_each(&mut take),
        }
    }
}

impl Corpus {
    /// Reads `index`, which is that of `registry`. What `before` has read of it already is not read again.
    pub(super) fn read(index: &Index, registry: &Registry, before: Option<&Earlier<'_>>) -> tantivy::Result<Self> {
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

    /// Tells how the documents of the segment number `number` answer a query of these `terms`; each that has any of them,
    /// in order.
    pub(super) fn answers(
        &self,
        number: usize,
        terms: &[Weighed],
        mut tell: impl FnMut(usize, Answer),
    ) -> std::io::Result<()> {
        let segment = &self.segments[number];
        let mut lists = Vec::with_capacity(terms.len());
        for (n, term) in terms.iter().enumerate() {
            let mut fields = [const { None }; FIELDS];
            for (at, field) in fields.iter_mut().enumerate() {
                *field = self.postings(number, term, at)?;
            }
            let [head, lead, body] = fields;
            let others = [head, lead].into_iter().flatten().collect();
            lists.push(WithTerm { matched: 1 << n, worth: term.worth, body, others });
        }
        lists.retain(|list| list.body.is_some() || !list.others.is_empty());
        let documents = if lists.is_empty() { 0 } else { segment.places.len() };
        let mut window = vec![Answer::default(); WINDOW.min(documents)];
        let mut room = [Vec::new(), Vec::new()];
        for start in (0..documents).step_by(WINDOW) {
            let end = (start + WINDOW).min(documents);
            let (first, last) = (number_of(start), number_of(end));
            lists.iter_mut().for_each(|list| list.add_to(&mut window, first, last, &mut room));
            for (doc, answer) in (start..end).zip(&mut window) {
                if answer.matched != 0 {
                    tell(doc, std::mem::take(answer));
                }
            }
        }
        Ok(())
    }

    /// The documents that have a term in the field number `at`.
    fn postings<'a>(&'a self, number: usize, term: &Weighed, at: usize) -> std::io::Result<Option<InOneField<'a>>> {
        let text = &self.segments[number].texts[at];
        let Some(found) = term.lists.of(number, at).filter(|_| term.lists.counts[at] > 0) else { return Ok(None) };
        Ok(Some(InOneField {
            postings: text.block_postings(found)?,
            read: 0,
            lengths: &text.lengths,
            gains: &self.gains[at],
            weight: WEIGHTS[at],
            idf: term.idfs[at],
        }))
    }

    /// What the field number `at` of a document adds for a term, as [`Corpus::answers`] sums it up.
    pub(super) fn part(
        &self,
        segment: &Segment,
        doc: usize,
        term: &Weighed,
        at: usize,
    ) -> std::io::Result<Option<InField>> {
        let (text, doc) = (&segment.texts[at], number_of(doc));
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
            documents: term.lists.counts[at],
            idf: term.idfs[at],
            gain,
            contribution: term.idfs[at] * gain,
        }))
    }

    /// The words of each segment, roughly.
    pub(super) fn vocabularies(&self) -> std::io::Result<Vec<&Vocabulary>> {
        self.segments.iter().map(Segment::vocabulary).collect()
    }

    /// Looks a term up.
    pub(super) fn lists(&self, term: &str) -> std::io::Result<Lists> {
        let terms = document::schema().1.texts.map(|field| Term::from_field_text(field, term));
        let mut lists = Lists { counts: [0; FIELDS], found: Vec::with_capacity(self.segments.len()) };
        for segment in &self.segments {
            let mut found = [const { None }; FIELDS];
            for (at, found) in found.iter_mut().enumerate() {
                let (info, count) = segment.look_up(at, &terms[at])?;
                lists.counts[at] += count;
                *found = info;
            }
            lists.found.push(found);
        }
        Ok(lists)
    }
}

/// A document's number as tantivy has it.
fn number_of(doc: usize) -> u32 {
    u32::try_from(doc).unwrap_or(TERMINATED)
}
