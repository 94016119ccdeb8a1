//! A folder with documents, queries and judgements, as at TREC.
//!
//! * `docs.jsonl`: a JSON object a line with `id` and `name`, and `description` and `body` where there are any;
//! * `queries.tsv`: id, kind and text, between tabs; the kind may be left out with its tab;
//! * `qrels.tsv`: query, anything, document and grade, between blanks or tabs; 0 is not relevant, more is better.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Longest line, bytes.
const LINE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Most lines of a file.
const LINES_MAX: usize = 2_000_000;
/// The highest grade; what it is worth doubles with each.
const GRADE_MAX: u32 = 20;
/// The kind of a query that tells none.
const NO_KIND: &str = "query";

/// Documents and queries.
#[derive(Debug, Default)]
pub struct Collection {
    /// What is searched.
    pub docs: Vec<Doc>,
    /// What is asked, and judged.
    pub queries: Vec<Query>,
    /// Queries that no judgement gives a document to; they are in no figure.
    pub unjudged: usize,
}

/// A document.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Doc {
    /// As the judgements call it.
    pub id: String,
    /// The assistant's name.
    pub name: String,
    /// When to use it.
    #[serde(default)]
    pub description: String,
    /// Its prompt.
    #[serde(default)]
    pub body: String,
}

/// A query.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// As the judgements call it.
    pub id: String,
    /// Where it comes from.
    pub kind: String,
    /// What is asked.
    pub text: String,
    /// How relevant a document is, by its place in `docs`; the others are not.
    pub grades: HashMap<usize, u32>,
}

/// A file of a collection that cannot be read, or is not as it should be.
#[derive(Debug)]
pub struct Malformed {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; none where the file itself is the trouble.
    pub line: Option<usize>,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.line.map_or_else(String::new, |line| format!("{line}: "));
        write!(f, "{}:{line}{}{}", self.file.display(), if line.is_empty() { " " } else { "" }, self.what)
    }
}

impl std::error::Error for Malformed {}

/// Reads the collection in `folder`.
///
/// # Errors
/// The file and the line that cannot be taken.
pub fn read(folder: &Path) -> Result<Collection, Malformed> {
    let (mut docs, mut doc_places) = (Vec::new(), HashMap::new());
    lines(folder, "docs.jsonl", |line| {
        let doc: Doc = serde_json::from_str(line).map_err(|error| format!("no document: {error}"))?;
        if doc.id.is_empty() || doc.name.trim().is_empty() {
            return Err("a document needs an `id` and a `name` that are not empty".to_owned());
        }
        new(&mut doc_places, &doc.id, docs.len(), "document")?;
        docs.push(doc);
        Ok(())
    })?;
    let (mut queries, mut query_places) = (Vec::new(), HashMap::new());
    lines(folder, "queries.tsv", |line| {
        let query = query(line)?;
        new(&mut query_places, &query.id, queries.len(), "query")?;
        queries.push(query);
        Ok(())
    })?;
    lines(folder, "qrels.tsv", |line| {
        let (query, doc, grade) = judgement(line)?;
        let place = *query_places.get(query).ok_or_else(|| format!("queries.tsv has no query `{query}`"))?;
        let doc_place = *doc_places.get(doc).ok_or_else(|| format!("docs.jsonl has no document `{doc}`"))?;
        match queries[place].grades.entry(doc_place) {
            Entry::Vacant(free) => _ = free.insert(grade),
            Entry::Occupied(_) => return Err(format!("`{doc}` is judged for `{query}` twice")),
        }
        Ok(())
    })?;
    let asked = queries.len();
    queries.retain(|query| query.grades.values().any(|grade| *grade > 0));
    let unjudged = asked - queries.len();
    if queries.is_empty() {
        let what = "no query has a document that is relevant to it".to_owned();
        return Err(Malformed { file: folder.join("qrels.tsv"), line: None, what });
    }
    Ok(Collection { docs, queries, unjudged })
}

fn query(line: &str) -> Result<Query, String> {
    let mut columns = line.splitn(3, '\t');
    let (id, kind, text) = match (columns.next(), columns.next(), columns.next()) {
        (Some(id), Some(kind), Some(text)) => (id, kind, text),
        (Some(id), Some(text), None) => (id, NO_KIND, text),
        _ => return Err("a query is an id, a kind and a text, with tabs between".to_owned()),
    };
    if id.is_empty() || text.trim().is_empty() {
        return Err("a query needs an id and a text that are not empty".to_owned());
    }
    Ok(Query { id: id.to_owned(), kind: kind.to_owned(), text: text.to_owned(), grades: HashMap::new() })
}

/// The query, the document and the grade of a line. A document's id may have blanks where tabs part the columns.
fn judgement(line: &str) -> Result<(&str, &str, u32), String> {
    let columns: Vec<&str> =
        if line.contains('\t') { line.split('\t').collect() } else { line.split_whitespace().collect() };
    let [query, _, doc, grade] = columns[..] else {
        return Err(format!("a judgement has four columns (query, 0, document, grade), not {}", columns.len()));
    };
    match grade.trim().parse::<i64>().map(|grade| u32::try_from(grade.max(0))) {
        Ok(Ok(grade)) if grade <= GRADE_MAX => Ok((query, doc, grade)),
        _ => Err(format!("`{grade}` is no grade: a whole number up to {GRADE_MAX}")),
    }
}

fn new(places: &mut HashMap<String, usize>, id: &str, place: usize, what: &str) -> Result<(), String> {
    match places.entry(id.to_owned()) {
        Entry::Vacant(free) => _ = free.insert(place),
        Entry::Occupied(_) => return Err(format!("there is a {what} `{id}` already")),
    }
    Ok(())
}

/// Gives each line of a file that is not empty to `take`.
fn lines(folder: &Path, name: &str, mut take: impl FnMut(&str) -> Result<(), String>) -> Result<(), Malformed> {
    let path = folder.join(name);
    let wrong = |line, what| Malformed { file: path.clone(), line, what };
    let mut file = BufReader::new(File::open(&path).map_err(|error| wrong(None, error.to_string()))?);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let wrong = |what| wrong(Some(number), what);
        (&mut file).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).map_err(|error| wrong(error.to_string()))?;
        if line.is_empty() {
            break;
        }
        if line.len() as u64 == LINE_BYTES_MAX {
            return Err(wrong(format!("longer than {LINE_BYTES_MAX} bytes")));
        }
        if number > LINES_MAX {
            return Err(wrong(format!("more than {LINES_MAX} lines")));
        }
        let text = std::str::from_utf8(&line).map_err(|error| wrong(format!("no UTF-8: {error}")))?;
        let text = text.trim_start_matches('\u{feff}').trim_end_matches(['\n', '\r']);
        if !text.trim().is_empty() {
            take(text).map_err(wrong)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOC: &str = r#"{"id": "a", "name": "a", "more": 1}"#;

    fn check(docs: &str, queries: &str, qrels: &str, expected: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [("docs.jsonl", docs), ("queries.tsv", queries), ("qrels.tsv", qrels)] {
            std::fs::write(folder.path().join(name), text).expect("a file");
        }
        let found = match read(folder.path()) {
            Ok(found) => format!("{found:?}"),
            Err(error) => error.to_string().replace(&*folder.path().to_string_lossy(), "").replace('\\', "/"),
        };
        assert!(found.starts_with(expected), "{found}, not {expected}");
    }

    #[test]
    fn what_is_taken() {
        let expected = "Collection { docs: [Doc { id: \"a\", name: \"a\", description: \"\", body: \"\" }], queries: \
                        [Query { id: \"q\", kind: \"k\", text: \"x\\ty\", grades: {0: 1} }], unjudged: 1 }";
        check(&format!("\u{feff}{DOC}\r\n\n"), "q\tk\tx\ty\nr\tk\tz", "q 0 a 1\nr 0 a -1\n", expected);
        let kindless = "Collection { docs: [Doc { id: \"a\", name: \"a\", description: \"\", body: \"\" }], queries: \
                        [Query { id: \"q\", kind: \"query\", text: \"x y\", grades: {0: 2} }], unjudged: 0 }";
        check(DOC, "q\tx y", "q\t0\ta\t2", kindless);
    }

    #[test]
    fn what_is_not() {
        check("{}", "", "", "/docs.jsonl:1: no document: missing field `id`");
        check(&format!("{DOC}\n\nx"), "", "", "/docs.jsonl:3: no document: expected value");
        check(&format!("{DOC}\n{DOC}"), "", "", "/docs.jsonl:2: there is a document `a` already");
        check(r#"{"id": "a", "name": " "}"#, "", "", "/docs.jsonl:1: a document needs an `id` and a `name`");
        check(DOC, "q", "", "/queries.tsv:1: a query is an id, a kind and a text");
        check(DOC, "q\tk\tx\nq\tk\ty", "", "/queries.tsv:2: there is a query `q` already");
        check(DOC, "q\tk\t ", "", "/queries.tsv:1: a query needs an id and a text");
        check(DOC, "q\tx", "q 0 a", "/qrels.tsv:1: a judgement has four columns (query, 0, document, grade), not 3");
        check(DOC, "q\tx", "q 0 a good", "/qrels.tsv:1: `good` is no grade");
        check(DOC, "q\tx", "q 0 a 21", "/qrels.tsv:1: `21` is no grade");
        check(DOC, "q\tx", "q 0 b 1", "/qrels.tsv:1: docs.jsonl has no document `b`");
        check(DOC, "q\tx", "r 0 a 1", "/qrels.tsv:1: queries.tsv has no query `r`");
        check(DOC, "q\tx", "q 0 a 1\nq 0 a 1", "/qrels.tsv:2: `a` is judged for `q` twice");
        check(DOC, "q\tx", "", "/qrels.tsv: no query has a document that is relevant to it");
        let folder = tempfile::tempdir().expect("a folder");
        let error = read(folder.path()).expect_err("no files").to_string();
        assert!(error.contains("docs.jsonl: "), "{error}");
        std::fs::write(folder.path().join("docs.jsonl"), b"\xff\xfe").expect("a file");
        let error = read(folder.path()).expect_err("no text").to_string();
        assert!(error.contains("docs.jsonl:1: no UTF-8"), "{error}");
    }
}
