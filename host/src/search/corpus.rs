//! What a search reads of the index: the postings, lengths and places of every segment.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet, Index, InvertedIndexReader, ReloadPolicy, TERMINATED, Term};

use super::document;
use super::explain::InField;
use super::query::{Matched, Weighed};
use super::scoring::{self, FIELDS, Gains, WEIGHTS};

/// What the search reads of the index.
pub(super) struct Corpus {
    pub(super) segments: Vec<Segment>,
    pub(super) documents: u64,
    /// Of each field.
    pub(super) gains: [Gains; FIELDS],
}

/// A part of the index.
pub(super) struct Segment {
    /// In the order of `document::NAMES`.
    pub(super) texts: [Text; FIELDS],
    /// The place in `assistants` of each document; none where it is deleted.
    pub(super) places: Vec<Option<usize>>,
}

/// A field of a segment.
pub(super) struct Text {
    field: Field,
    inverted: Arc<InvertedIndexReader>,
    lengths: FieldNormReader,
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

/// The documents of a field that have a term, from the first on.
struct Cursor<'a> {
    postings: SegmentPostings,
    lengths: &'a FieldNormReader,
    gains: &'a Gains,
    weight: f32,
    idf: f32,
}

impl Corpus {
    /// Reads `index`, whose assistants have their `places` by id.
    pub(super) fn read(index: &Index, places: &HashMap<&str, usize>) -> tantivy::Result<Self> {
        let (_, fields) = document::schema();
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let searcher = reader.searcher();
        let mut segments = Vec::new();
        let (mut documents, mut words) = (0, [0; FIELDS]);
        for segment in searcher.segment_readers() {
            documents += u64::from(segment.max_doc());
            let ids = segment.fast_fields().str(document::ID)?;
            let mut id = String::new();
            let mut own = vec![None; segment.max_doc() as usize];
            for doc in segment.doc_ids_alive() {
                if let Some(ids) = &ids
                    && let Some(ordinal) = ids.term_ords(doc).next()
                    && ids.ord_to_str(ordinal, &mut id)?
                {
                    own[doc as usize] = places.get(id.as_str()).copied();
                }
            }
            let text = |field| -> tantivy::Result<Text> {
                let (inverted, lengths) = (segment.inverted_index(field)?, segment.get_fieldnorms_reader(field)?);
                Ok(Text { field, inverted, lengths })
            };
            let [head, lead, body] = fields.texts;
            let texts = [text(head)?, text(lead)?, text(body)?];
            for (words, text) in words.iter_mut().zip(&texts) {
                *words += text.inverted.total_num_tokens();
            }
            segments.push(Segment { texts, places: own });
        }
        let gains = words.map(|words| Gains::new(words as f32 / documents.max(1) as f32));
        Ok(Self { segments, documents, gains })
    }

    /// How the documents of `segment` answer a query of these `terms`.
    pub(super) fn answers(&self, segment: &Segment, terms: &[Weighed]) -> std::io::Result<Vec<Answer>> {
        let mut answers = vec![Answer::default(); segment.places.len()];
        for (n, term) in terms.iter().enumerate() {
            let mut cursors = Vec::with_capacity(FIELDS);
            for (at, text) in segment.texts.iter().enumerate() {
                if term.counts[at] > 0
                    && let Some(postings) = text.postings(&term.term)?
                {
                    let (gains, weight, idf) = (&self.gains[at], WEIGHTS[at], term.idfs[at]);
                    cursors.push(Cursor { postings, lengths: &text.lengths, gains, weight, idf });
                }
            }
            while let Some(doc) =
                cursors.iter().map(|cursor| cursor.postings.doc()).min().filter(|doc| *doc != TERMINATED)
            {
                let mut gains = 0.0;
                let answer = &mut answers[doc as usize];
                for cursor in cursors.iter_mut().filter(|cursor| cursor.postings.doc() == doc) {
                    let gain =
                        cursor.weight * cursor.gains.of(cursor.lengths.fieldnorm_id(doc), cursor.postings.term_freq());
                    answer.total += cursor.idf * gain;
                    gains += gain;
                    cursor.postings.advance();
                }
                answer.weight += term.worth * scoring::strength(gains);
                answer.matched |= 1 << n;
            }
        }
        Ok(answers)
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

    /// In how many documents a term is, by field.
    pub(super) fn counts(&self, term: &str) -> tantivy::Result<[u64; FIELDS]> {
        let mut counts = [0; FIELDS];
        for segment in &self.segments {
            for (count, text) in counts.iter_mut().zip(&segment.texts) {
                *count += u64::from(text.inverted.doc_freq(&Term::from_field_text(text.field, term))?);
            }
        }
        Ok(counts)
    }
}

impl Text {
    fn postings(&self, term: &str) -> std::io::Result<Option<SegmentPostings>> {
        self.inverted.read_postings(&Term::from_field_text(self.field, term), IndexRecordOption::WithFreqs)
    }
}
