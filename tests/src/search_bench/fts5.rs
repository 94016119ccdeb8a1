//! SQLite's FTS5, two ways: as a plain full-text search, and as fairly as it can be asked.

use std::path::Path;

use rusqlite::{Connection, params};

use super::collection::Doc;

/// Words that the fair way leaves out of a query.
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "before", "being", "but",
    "by", "can", "could", "did", "do", "does", "doing", "for", "from", "had", "has", "have", "having", "he", "her",
    "here", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "me", "more", "most", "my",
    "need", "no", "not", "of", "on", "once", "only", "or", "other", "our", "out", "over", "own", "please", "s", "same",
    "she", "should", "so", "some", "such", "t", "than", "that", "the", "their", "them", "then", "there", "these",
    "they", "this", "those", "to", "too", "us", "very", "want", "was", "we", "were", "what", "when", "where", "which",
    "while", "who", "whom", "why", "will", "with", "would", "you", "your",
];

/// How FTS5 is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `fts5(id, name, description)`, and the caller's text is the MATCH expression: a plain full-text search.
    Raw,
    /// Name, description and body with the Porter stemmer, and any of the quoted words of the text but stop words.
    Fair,
}

/// An index in a file.
pub struct Fts5 {
    db: Connection,
    way: Way,
}

impl Fts5 {
    /// Indexes `docs` in a new file at `path`.
    ///
    /// # Errors
    /// SQLite's.
    pub fn build<'a>(path: &Path, way: Way, docs: impl IntoIterator<Item = &'a Doc>) -> rusqlite::Result<Self> {
        let mut index = Self::open(path, way)?;
        index.db.execute_batch(match way {
            Way::Raw => "CREATE VIRTUAL TABLE docs USING fts5(id, name, description)",
            Way::Fair => "CREATE VIRTUAL TABLE docs USING fts5(name, description, body, tokenize = 'porter unicode61')",
        })?;
        let all = index.db.transaction()?;
        for (place, doc) in docs.into_iter().enumerate() {
            put(&all, way, place, doc)?;
        }
        all.commit()?;
        index.db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
        Ok(index)
    }

    /// The index in the file at `path`.
    ///
    /// # Errors
    /// SQLite's.
    pub fn open(path: &Path, way: Way) -> rusqlite::Result<Self> {
        let db = Connection::open(path)?;
        db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA mmap_size = 268435456;")?;
        Ok(Self { db, way })
    }

    /// Puts a document in place of the one at `place`, durably.
    ///
    /// # Errors
    /// SQLite's.
    pub fn replace(&mut self, place: usize, doc: &Doc) -> rusqlite::Result<()> {
        let one = self.db.transaction()?;
        one.execute("DELETE FROM docs WHERE rowid = ?1", [place])?;
        put(&one, self.way, place, doc)?;
        one.commit()
    }

    /// The places of the best `limit` documents.
    ///
    /// # Errors
    /// SQLite's; those of the text's syntax, where it is the expression.
    pub fn ask(&self, text: &str, limit: usize) -> rusqlite::Result<Vec<usize>> {
        let expression = match self.way {
            Way::Raw => text.to_owned(),
            Way::Fair => any_word(text),
        };
        if expression.is_empty() {
            return Ok(Vec::new());
        }
        let sql = "SELECT rowid FROM docs WHERE docs MATCH ?1 ORDER BY rank LIMIT ?2";
        let mut select = self.db.prepare_cached(sql)?;
        select.query_map(params![expression, limit], |row| row.get(0))?.collect()
    }
}

fn put(db: &Connection, way: Way, place: usize, doc: &Doc) -> rusqlite::Result<()> {
    let (sql, columns) = match way {
        Way::Raw => (
            "INSERT INTO docs (rowid, id, name, description) VALUES (?1, ?2, ?3, ?4)",
            [&doc.id, &doc.name, &doc.description],
        ),
        Way::Fair => (
            "INSERT INTO docs (rowid, name, description, body) VALUES (?1, ?2, ?3, ?4)",
            [&doc.name, &doc.description, &doc.body],
        ),
    };
    db.prepare_cached(sql)?.execute(params![place, columns[0], columns[1], columns[2]])?;
    Ok(())
}

/// An expression for any word of `text`; stop words only where there are no others.
fn any_word(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let word = word.to_lowercase();
        if !words.contains(&word) {
            words.push(word);
        }
    }
    let telling = |word: &String| !STOP_WORDS.contains(&word.as_str());
    if words.iter().any(telling) {
        words.retain(telling);
    }
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    quoted.join(" OR ")
}
