//! Which words an index has, roughly and at once: most words that it has not are told without a look into it.

use std::io;

use tantivy::InvertedIndexReader;

/// Bits for each word: of the words that are not there, about one in 70 is taken for one that is.
const BITS_OF_A_WORD: usize = 16;

/// A set of words that may take a word for one of its own, and misses none of them.
pub(super) struct Vocabulary {
    /// Two bits for each word.
    bits: Vec<u64>,
}

impl Vocabulary {
    /// The words of all these fields.
    pub(super) fn of(fields: &[&InvertedIndexReader]) -> io::Result<Self> {
        let words: usize = fields.iter().map(|field| field.terms().num_terms()).sum();
        let blocks = (words * BITS_OF_A_WORD).div_ceil(64).next_power_of_two();
        let mut vocabulary = Self { bits: vec![0; blocks] };
        for field in fields {
            let mut words = field.terms().stream()?;
            while words.advance() {
                vocabulary.places(words.key()).into_iter().for_each(|(block, bit)| vocabulary.bits[block] |= bit);
            }
        }
        Ok(vocabulary)
    }

    /// False where no field has `word`.
    pub(super) fn may_have(&self, word: &[u8]) -> bool {
        self.places(word).into_iter().all(|(block, bit)| self.bits[block] & bit != 0)
    }

    /// The two bits of a word, each with its block.
    fn places(&self, word: &[u8]) -> [(usize, u64); 2] {
        // FNV-1a, then mixed so that all of its bits are as good.
        let hash = word.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The number of blocks is a power of two.
        let last = self.bits.len() - 1;
        [hash, hash.rotate_left(32)].map(|half| ((half as usize >> 6) & last, 1 << (half & 63)))
    }
}

#[cfg(test)]
mod tests {
    use tantivy::schema::{STRING, Schema};
    use tantivy::{Index, IndexWriter, TantivyDocument};

    use super::*;

    #[test]
    fn it_misses_no_word_and_takes_few_for_one() {
        let mut schema = Schema::builder();
        let field = schema.add_text_field("field", STRING);
        let index = Index::create_in_ram(schema.build());
        let mut writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).expect("a writer");
        for n in 0..2_000 {
            let mut document = TantivyDocument::new();
            document.add_text(field, format!("word{n}"));
            writer.add_document(document).expect("a document");
        }
        writer.commit().expect("a commit");
        let searcher = index.reader().expect("a reader").searcher();
        let readers: Vec<_> =
            searcher.segment_readers().iter().map(|segment| segment.inverted_index(field).expect("a field")).collect();
        let vocabulary = Vocabulary::of(&readers.iter().map(AsRef::as_ref).collect::<Vec<_>>()).expect("words");
        assert!((0..2_000).all(|n| vocabulary.may_have(format!("word{n}").as_bytes())));
        let wrong = (0..10_000).filter(|n| vocabulary.may_have(format!("other{n}").as_bytes())).count();
        assert!(wrong < 300, "{wrong} of 10000");
        let none = Vocabulary::of(&[]).expect("no words");
        assert!(!none.may_have(b"word"));
    }
}
