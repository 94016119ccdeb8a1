//! A part of the index, opened for searching. Tantivy counts deleted documents until a merge drops them; here they do
//! not count, so that an index has the same answers however it came about.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, OnceLock};

use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::SegmentId;
use tantivy::postings::{BlockSegmentPostings, SegmentPostings, TermInfo};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet, InvertedIndexReader, SegmentReader, Term};

use super::corpus::Corpus;
use super::document::{self, Fields};
use super::exact::Exact;
use super::scoring::FIELDS;
use super::vocabulary::Vocabulary;
use crate::registry::{Definition, Registry};

/// A part of the index.
pub(super) struct Segment {
    pub(super) id: SegmentId,
    /// In the order of `document::NAMES`.
    pub(super) texts: [Text; FIELDS],
    /// The place in `assistants` of each document; none where it is deleted.
    pub(super) places: Vec<Option<usize>>,
    /// Documents that are not deleted.
    pub(super) documents: u64,
    /// Documents that are deleted.
    pub(super) deleted: u32,
    /// In how many deleted documents a term is.
    gone: Arc<HashMap<Term, u64>>,
    /// Made when a typo is first looked for; the same as long as the segment is.
    vocabulary: Arc<OnceLock<Vocabulary>>,
}

/// A field of a segment.
#[derive(Clone)]
pub(super) struct Text {
    field: Field,
    inverted: Arc<InvertedIndexReader>,
    pub(super) lengths: FieldNormReader,
    /// The sum of the lengths of all documents that are not deleted, as the scores know them: roughly.
    pub(super) words: u64,
}

/// The corpus that comes before another one.
pub(super) struct Earlier<'a> {
    pub(super) corpus: &'a Corpus,
    pub(super) assistants: &'a [Arc<Definition>],
    pub(super) exact: &'a Exact,
    /// The place in the next registry of each assistant that stays as it was.
    pub(super) moves: &'a [Option<usize>],
}

/// The id of a document, and of what it was made.
pub(super) type Label = (String, u64);

impl Earlier<'_> {
    pub(super) fn segment(&self, segment: &tantivy::Segment) -> Option<&Segment> {
        self.corpus.segments.iter().find(|known| known.id == segment.id())
    }
}

impl Segment {
    pub(super) fn open(fields: Fields, segment: &tantivy::Segment, registry: &Registry) -> tantivy::Result<Self> {
        let reader = SegmentReader::open(segment)?;
        let place = |(id, made_of): Label| {
            let made_so = |place: &usize| document::digest(&registry.assistants()[*place]) == made_of;
            registry.place(&id).filter(made_so)
        };
        let places = labels(&reader)?.into_iter().map(|label| label.and_then(place)).collect();
        let gone = if reader.has_deletes() { gone(fields, &reader)? } else { HashMap::new() };
        Self::of(fields, &reader, places, Arc::new(gone), Arc::default())
    }

    /// The same of the next registry.
    pub(super) fn moved(&self, before: &Earlier<'_>) -> Self {
        Self {
            id: self.id,
            texts: self.texts.clone(),
            places: self.places.iter().map(|place| place.and_then(|place| before.moves[place])).collect(),
            documents: self.documents,
            deleted: self.deleted,
            gone: self.gone.clone(),
            vocabulary: self.vocabulary.clone(),
        }
    }

    /// The same of the next registry, where some of it is deleted since.
    pub(super) fn with_deletes(
        &self,
        fields: Fields,
        segment: &tantivy::Segment,
        before: &Earlier<'_>,
    ) -> tantivy::Result<Self> {
        let reader = SegmentReader::open(segment)?;
        let mut places = Vec::with_capacity(self.places.len());
        let mut gone = self.gone.as_ref().clone();
        for (doc, place) in (0..).zip(&self.places) {
            places.push(place.and_then(|place| before.moves[place]).filter(|_| !reader.is_deleted(doc)));
            if let Some(place) = place
                && reader.is_deleted(doc)
            {
                document::terms(fields, &before.assistants[*place])
                    .into_iter()
                    .for_each(|term| *gone.entry(term).or_default() += 1);
            }
        }
        Self::of(fields, &reader, places, Arc::new(gone), self.vocabulary.clone())
    }

    fn of(
        fields: Fields,
        reader: &SegmentReader,
        places: Vec<Option<usize>>,
        gone: Arc<HashMap<Term, u64>>,
        vocabulary: Arc<OnceLock<Vocabulary>>,
    ) -> tantivy::Result<Self> {
        let [head, lead, body] = fields.texts;
        Ok(Self {
            id: reader.segment_id(),
            texts: [Text::open(reader, head)?, Text::open(reader, lead)?, Text::open(reader, body)?],
            places,
            documents: u64::from(reader.num_docs()),
            deleted: reader.num_deleted_docs(),
            gone,
            vocabulary,
        })
    }

    /// The words of all its documents, roughly.
    pub(super) fn vocabulary(&self) -> io::Result<&Vocabulary> {
        if let Some(made) = self.vocabulary.get() {
            return Ok(made);
        }
        let made = Vocabulary::of(&self.texts.each_ref().map(|text| text.inverted.as_ref()))?;
        Ok(self.vocabulary.get_or_init(|| made))
    }

    /// Where `term` of the field number `at` is, and in how many documents.
    pub(super) fn look_up(&self, at: usize, term: &Term) -> io::Result<(Option<TermInfo>, u64)> {
        let found = self.texts[at].inverted.get_term_info(term)?;
        let all = found.as_ref().map_or(0, |found| u64::from(found.doc_freq));
        let count = all.saturating_sub(self.gone.get(term).copied().unwrap_or(0));
        Ok((found, count))
    }
}

impl Text {
    fn open(reader: &SegmentReader, field: Field) -> tantivy::Result<Self> {
        let lengths = reader.get_fieldnorms_reader(field)?;
        let words = reader.doc_ids_alive().map(|doc| u64::from(lengths.fieldnorm(doc))).sum();
        Ok(Self { field, inverted: reader.inverted_index(field)?, lengths, words })
    }

    pub(super) fn block_postings(&self, found: &TermInfo) -> io::Result<BlockSegmentPostings> {
        self.inverted.read_block_postings_from_terminfo(found, IndexRecordOption::WithFreqs)
    }

    pub(super) fn postings(&self, term: &str) -> io::Result<Option<SegmentPostings>> {
        self.inverted.read_postings(&Term::from_field_text(self.field, term), IndexRecordOption::WithFreqs)
    }
}

/// The labels of all documents; none of those that are deleted.
pub(super) fn labels(reader: &SegmentReader) -> tantivy::Result<Vec<Option<Label>>> {
    let mut labels = vec![None; reader.max_doc() as usize];
    let Some(column) = reader.fast_fields().str(document::ID)? else { return Ok(labels) };
    let digests = reader.fast_fields().u64(document::DIGEST)?;
    let mut ids = Vec::with_capacity(column.num_terms());
    let mut stream = column.dictionary().stream()?;
    while stream.advance() {
        ids.push(String::from_utf8_lossy(stream.key()).into_owned());
    }
    for doc in reader.doc_ids_alive() {
        let id = column.term_ords(doc).next().and_then(|ordinal| ids.get(usize::try_from(ordinal).ok()?));
        labels[doc as usize] = id.cloned().zip(digests.first(doc));
    }
    Ok(labels)
}

/// In how many deleted documents each term is.
fn gone(fields: Fields, reader: &SegmentReader) -> tantivy::Result<HashMap<Term, u64>> {
    let mut gone = HashMap::new();
    let deleted: Vec<_> = (0..reader.max_doc()).filter(|doc| reader.is_deleted(*doc)).collect();
    for field in fields.texts {
        let inverted = reader.inverted_index(field)?;
        let mut terms = inverted.terms().stream()?;
        while terms.advance() {
            let mut postings = inverted.read_postings_from_terminfo(terms.value(), IndexRecordOption::Basic)?;
            let mut has = 0;
            for doc in &deleted {
                if postings.doc() < *doc {
                    postings.seek(*doc);
                }
                has += u64::from(postings.doc() == *doc);
            }
            if has > 0 {
                gone.insert(Term::from_field_text(field, &String::from_utf8_lossy(terms.key())), has);
            }
        }
    }
    Ok(gone)
}

/// The labels of all documents of `index`, which are different.
pub(super) fn all_labels(index: &tantivy::Index) -> tantivy::Result<Vec<Label>> {
    let mut all = Vec::new();
    for segment in index.searchable_segments()? {
        all.extend(labels(&SegmentReader::open(&segment)?)?.into_iter().flatten());
    }
    let ids: HashSet<_> = all.iter().map(|(id, _)| id.as_str()).collect();
    match ids.len() == all.len() {
        true => Ok(all),
        false => Err(tantivy::TantivyError::SystemError("an assistant is in it twice".to_owned())),
    }
}
