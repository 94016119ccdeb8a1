//! What a word is worth, for the order of the hits and for the score that is told.
//!
//! **The order** is by the sum, over the words of the query and the [fields](FIELDS), of `weight · idf · gain`: `idf`
//! falls with the number of documents that have the word in that field, and `gain = ln(1 + times / length)` grows with
//! the times that it stands there, for a field of average length. It is BM25 with a logarithm in place of the
//! saturation, since a prompt that keeps coming back to a subject is about it.
//!
//! **The score** is the part of the query that a document answers. A word counts by its `idf`, in full once its gains
//! reach [`SURE`], and is measured against the whole query — but against no more than [`ENOUGH`] words that only one
//! document has, because a long text about a task has many words that no assistant needs. A word whose typo is repaired
//! counts by half: everyday words often are one letter away from a word of the index.
//!
//! Of the documents among the first ten, a least score of 0.2 refuses 0.3 % of the agents and 9 % of the tools below; of
//! texts in everyday words, which are no task for either, it lets 77 % and 38 % through, of random letters 2 %. At 0.15
//! that is 0 % and 2 % against 91 % and 47 %, at 0.25 it is 1 % and 22 % against 57 % and 22 %. The plain share of the
//! matched weight refused 0.3 % and 42 % at 0.2, and let 84 % and 32 % through.
//!
//! Measured on two collections that share nothing (1,048 assistants with 749 queries, 199 tools of one sentence with
//! 747), each in two halves, nDCG@10; kept is what gains on both or on one at no loss of the other:
//!
//! | kept | agents | tools |
//! | --- | --- | --- |
//! | BM25 (k1 1.2, b 0.75), `head` + `body` | .771 | .601 |
//! | logarithm of the times instead of BM25's saturation | +.016 | +.004 |
//! | the first line of the prompt as a field of weight 0.3 | +.006 | none has one |
//! | words of asking left out (query only) | +.001 | +.006 |
//!
//! The logarithm is a trade: of the agents' queries, the 106 natural task texts lose by it (MRR@10 .420 to .384, their
//! assistant is first for 11 % in place of 16 %, though among the first ten for 89 % in place of 87 %), since in a long text
//! a word that is beside the point may stand often in some prompt; the 643 others gain (.741 to .766). A saturation between
//! the two gives and takes in between, on the same line. One that depends on the length of the query would be made for
//! these 106, as the tools have no such texts.
//!
//! Not kept, for what it costs or because one collection or one half lost: higher k1 (+.011 and +.004, less than the
//! logarithm), BM25F (−.010), PL2 (+.012, +.001), DPH (−.003, −.044), a language model (+.007, −.018), weight for
//! headings (−.011), the first 50 or 200 words (+.002), one `idf` for all fields (−.013), a power of `idf` (−.010),
//! the share of the query as a factor (−.009 to −.070), a word's number of times in the query (.000, −.003), the best
//! line of the prompt (.000, +.002), words from the first hits (+.002, +.001), neighbouring words as pairs (+.005,
//! +.001, at three times the index), the unstemmed form beside the stem (+.003, +.009, at twice the postings), a weaker
//! stemmer (−.008 to −.013), neighbours of the query written as one word (−.001, +.004), a typo looked for in the word as
//! it is written where there is none in its stem (.000, −.002, at six times the work).

use tantivy::fieldnorm::FieldNormReader;

/// How many fields are searched.
pub(super) const FIELDS: usize = 3;
/// What a field adds, in the order of `document::NAMES`: head, lead, body.
pub(super) const WEIGHTS: [f32; FIELDS] = [1.0, 0.3, 1.0];
/// The part of a field's length that counts; 0: all fields are as long, 1: twice as long is half as much.
const LENGTH_SHARE: f32 = 0.75;
/// The gain, over all fields, at which a document surely has a word: that of once in a field of average length.
const SURE: f32 = std::f32::consts::LN_2;
/// Words that only one document has, which are enough for score 1.
const ENOUGH: f32 = 4.0;
/// The part of a word's weight that counts where the word is one typo away from what was written.
pub(super) const DOUBT: f32 = 0.5;
/// Times whose gain is looked up, not computed.
const TIMES: usize = 16;

/// The weight of a word that `count` of `documents` have.
pub(super) fn idf(documents: u64, count: u64) -> f32 {
    let (documents, count) = (documents as f32, count as f32);
    // Deleted documents count in neither. Only files that are damaged while they are open say that more have it than
    // there are.
    (1.0 + (documents - count).max(0.0) / (count + 0.5) + 0.5 / (count + 0.5)).ln()
}

/// The weight of matched words that is score 1, for a query whose words weigh `whole`.
pub(super) fn enough(documents: u64, whole: f32) -> f32 {
    whole.min(ENOUGH * idf(documents, 1))
}

/// The score of a document whose matched words weigh `weight`, from 0 to 1.
pub(super) fn score(weight: f32, enough: f32) -> f32 {
    (weight / enough).clamp(0.0, 1.0)
}

/// What a word with these gains adds to the score, as a part of its `idf`.
pub(super) fn strength(gains: f32) -> f32 {
    (gains / SURE).min(1.0)
}

/// The gains of one field, by length and times.
pub(super) struct Gains {
    /// By the id of the length, which tantivy rounds to 256 steps.
    steps: Vec<Step>,
}

struct Step {
    /// One over the length, as a part of the average.
    part: f32,
    by_times: [f32; TIMES],
}

impl Gains {
    /// The gains of a field whose documents have `average` words.
    pub(super) fn new(average: f32) -> Self {
        let step = |id: u8| {
            let length = FieldNormReader::id_to_fieldnorm(id) as f32 / average.max(1.0);
            let part = 1.0 / (1.0 - LENGTH_SHARE + LENGTH_SHARE * length);
            Step { part, by_times: std::array::from_fn(|times| (times as f32 * part).ln_1p()) }
        };
        Self { steps: (0..=u8::MAX).map(step).collect() }
    }

    /// The gain of a word that stands `times` in a field whose length has this id.
    pub(super) fn of(&self, length: u8, times: u32) -> f32 {
        let step = &self.steps[usize::from(length)];
        step.by_times.get(times as usize).copied().unwrap_or_else(|| (times as f32 * step.part).ln_1p())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_grow_with_the_times_and_fall_with_the_length() {
        let gains = Gains::new(20.0);
        let average = FieldNormReader::fieldnorm_to_id(20);
        assert_eq!(gains.of(average, 1), 2.0_f32.ln());
        assert!((gains.of(average, 15) - 16.0_f32.ln()).abs() < 1e-6, "looked up");
        assert!((gains.of(average, 16) - 17.0_f32.ln()).abs() < 1e-6, "computed");
        assert!(gains.of(FieldNormReader::fieldnorm_to_id(40), 1) < gains.of(average, 1));
        assert!(Gains::new(0.0).of(0, 1).is_finite());
    }

    #[test]
    fn weights_stay_in_bounds() {
        assert!(idf(10, 1) > idf(10, 2));
        assert!(idf(0, 0) > 0.0 && idf(3, 5) > 0.0);
        assert_eq!(enough(10, 0.5), 0.5);
        assert_eq!(enough(10, 1e6), ENOUGH * idf(10, 1));
        assert_eq!((strength(SURE / 2.0), strength(7.0)), (0.5, 1.0));
        assert_eq!((score(0.0, 4.0), score(1.0, 4.0), score(9.0, 4.0)), (0.0, 0.25, 1.0));
    }
}
