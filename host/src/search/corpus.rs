//! What a search reads of the index: the postings, lengths and places of every segment.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::Postings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, Index, InvertedIndexReader, ReloadPolicy, TERMINATED, Term};

use super::document::{self, Fields};
use super::query::{Matched, Weighed};

/// What the search reads of the index.
pub(super) struct Corpus {
    pub(super) fields: Fields,
    pub(super) segments: Vec<Segment>,
    pub(super) documents: u64,
    pub(super) head_average: f32,
    pub(super) body_average: f32,
}

/// A part of the index.
pub(super) struct Segment {
    pub(super) head: Arc<InvertedIndexReader>,
    pub(super) body: Arc<InvertedIndexReader>,
    pub(super) head_norms: FieldNormReader,
    pub(super) body_norms: FieldNormReader,
    /// The place in `assistants` of each document; none where it is deleted.
    pub(super) places: Vec<Option<usize>>,
}

impl Corpus {
    /// Reads `index`, whose assistants have their `places` by id.
    pub(super) fn read(index: &Index, places: &HashMap<&str, usize>) -> tantivy::Result<Self> {
        let (_, fields) = document::schema();
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let searcher = reader.searcher();
        let mut segments = Vec::new();
        let (mut documents, mut head_tokens, mut body_tokens) = (0, 0, 0);
        for segment in searcher.segment_readers() {
            let (head, body) = (segment.inverted_index(fields.head)?, segment.inverted_index(fields.body)?);
            documents += u64::from(segment.max_doc());
            head_tokens += head.total_num_tokens();
            body_tokens += body.total_num_tokens();
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
            segments.push(Segment {
                head,
                body,
                head_norms: segment.get_fieldnorms_reader(fields.head)?,
                body_norms: segment.get_fieldnorms_reader(fields.body)?,
                places: own,
            });
        }
        let average = |tokens: u64| if documents == 0 { 1.0 } else { tokens as f32 / documents as f32 };
        let (head_average, body_average) = (average(head_tokens), average(body_tokens));
        Ok(Self { fields, segments, documents, head_average, body_average })
    }
}

impl Segment {
    /// The BM25 of each document, and the terms that it has.
    pub(super) fn scores(&self, fields: Fields, terms: &[Weighed]) -> std::io::Result<Vec<(f32, Matched)>> {
        let mut scores = vec![(0.0, 0); self.places.len()];
        for (n, term) in terms.iter().enumerate() {
            let parts = [
                (&self.head, &self.head_norms, fields.head, &term.head),
                (&self.body, &self.body_norms, fields.body, &term.body),
            ];
            for (inverted, norms, field, weight) in parts {
                let Some(weight) = weight else { continue };
                let key = Term::from_field_text(field, &term.term);
                let Some(mut postings) = inverted.read_postings(&key, IndexRecordOption::WithFreqs)? else { continue };
                let mut doc = postings.doc();
                while doc != TERMINATED {
                    let (bm25, matched) = &mut scores[doc as usize];
                    *bm25 += weight.score(norms.fieldnorm_id(doc), postings.term_freq());
                    *matched |= 1 << n;
                    doc = postings.advance();
                }
            }
        }
        Ok(scores)
    }
}
