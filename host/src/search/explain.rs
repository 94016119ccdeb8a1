//! Why an assistant has its place among the hits of a query, word by word.

use serde::Serialize;

use super::query::{self, Weighed};
use super::scoring::{self, FIELDS};
use super::{Answer, Filter, SearchError, SearchIndex};
use crate::registry::AssistantId;

/// Why an assistant has its place among the hits of a query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// Which assistant.
    pub id: AssistantId,
    /// What became of it.
    pub verdict: Verdict,
    /// Its place among the hits, from 1; none where it is no hit.
    pub rank: Option<usize>,
    /// How many hits there are.
    pub hits: usize,
    /// The score that the hit has: [`Explanation::own_score`], or less where a hit before it has less, or 1 where it is
    /// pinned. None where it is no hit.
    pub score: Option<f32>,
    /// `weight / enough`, at most 1.
    pub own_score: f32,
    /// The sum of all contributions, which orders the hits.
    pub total: f32,
    /// The weight of the words that it has.
    pub weight: f32,
    /// The weight that is score 1.
    pub enough: f32,
    /// The least score of a hit.
    pub min_score: f32,
    /// The words of the query, in order.
    pub words: Vec<Word>,
}

/// What became of an assistant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The query is its id or name: it comes first.
    Pinned,
    /// It is a hit.
    Hit,
    /// It has no word of the query.
    NoWord,
    /// Its score is below the least.
    ScoreTooLow,
    /// The filter leaves it out.
    FilteredOut,
}

/// A word of the query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Word {
    /// As the caller wrote it.
    pub written: String,
    /// As it is looked up: folded, stemmed, and repaired if it is.
    pub term: String,
    /// No assistant has the word, and `term` is one that some have, one typo away.
    pub repaired: bool,
    /// In how many assistants it is, in the field where most have it.
    pub documents: u64,
    /// What it weighs in the query.
    pub idf: f32,
    /// What it is worth for the score, if the assistant surely has it: `idf`, or less where it is repaired.
    pub worth: f32,
    /// How surely the assistant has it, from 0 to 1.
    pub strength: f32,
    /// What it adds to [`Explanation::total`].
    pub contribution: f32,
    /// Where the assistant has it.
    pub fields: Vec<InField>,
}

/// A word in a field.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InField {
    /// `head`, `lead` or `body`.
    pub field: &'static str,
    /// How often it stands there.
    pub times: u32,
    /// Words of the field, rounded as the index keeps them.
    pub length: u32,
    /// How many assistants have the word in this field.
    pub documents: u64,
    /// The weight of the word in this field.
    pub idf: f32,
    /// The weight of the field times `ln(1 + times / length)`, for a field of average length.
    pub gain: f32,
    /// `idf · gain`.
    pub contribution: f32,
}

impl SearchIndex {
    /// Why the assistant `id` has its place among the hits of [`SearchIndex::search`]; none where there is no such one.
    ///
    /// # Errors
    /// Those of reading the index.
    pub fn explain(&self, text: &str, filter: &Filter, id: &AssistantId) -> Result<Option<Explanation>, SearchError> {
        self.unchanged()?;
        let Some(place) = self.assistants.iter().position(|found| found.id == *id) else { return Ok(None) };
        let terms = query::terms(text);
        let weighed = query::weigh(&self.corpus, &terms)?;
        let (answer, words) = self.parts(place, &terms, &weighed).map_err(tantivy::TantivyError::from)?;
        let enough = scoring::enough(self.corpus.documents, weighed.iter().map(|term| term.idf).sum());
        let own_score = if answer.matched == 0 { 0.0 } else { scoring::score(answer.weight, enough) };
        let found = self.search(text, filter, usize::MAX)?;
        let at = found.hits.iter().position(|hit| hit.id == *id);
        let verdict = match at {
            Some(at) if at < self.pinned(text, filter).len() => Verdict::Pinned,
            Some(_) => Verdict::Hit,
            None if !filter.takes(&self.assistants[place]) => Verdict::FilteredOut,
            None if answer.matched == 0 => Verdict::NoWord,
            None => Verdict::ScoreTooLow,
        };
        Ok(Some(Explanation {
            id: id.clone(),
            verdict,
            rank: at.map(|at| at + 1),
            hits: found.total,
            score: at.map(|at| found.hits[at].score),
            own_score,
            total: answer.total,
            weight: answer.weight,
            enough,
            min_score: filter.min_score,
            words,
        }))
    }

    /// What the search makes of the document of `place`, and of what parts.
    fn parts(
        &self,
        place: usize,
        terms: &[query::QueryTerm],
        weighed: &[Weighed],
    ) -> std::io::Result<(Answer, Vec<Word>)> {
        let own = self.corpus.segments.iter().enumerate().find_map(|(number, segment)| {
            let doc = segment.places.iter().position(|found| *found == Some(place))?;
            Some((number, segment, doc))
        });
        let mut answer = Answer::default();
        let Some((number, segment, doc)) = own else { return Ok((answer, Vec::new())) };
        self.corpus.answers(number, weighed, |of, found| {
            if of == doc {
                answer = found;
            }
        })?;
        let words = terms.iter().zip(weighed).map(|(term, weighed)| -> std::io::Result<Word> {
            let mut fields = Vec::with_capacity(FIELDS);
            for at in 0..FIELDS {
                fields.extend(self.corpus.part(segment, doc, weighed, at)?);
            }
            let strength = scoring::strength(fields.iter().map(|part| part.gain).sum());
            Ok(Word {
                written: term.written.clone(),
                term: weighed.term.clone(),
                repaired: term.term != weighed.term,
                documents: weighed.lists.documents(),
                idf: weighed.idf,
                worth: weighed.worth,
                strength,
                contribution: fields.iter().map(|part| part.contribution).sum(),
                fields,
            })
        });
        Ok((answer, words.collect::<std::io::Result<_>>()?))
    }
}

#[cfg(test)]
mod tests;
