//! What is compared: each is built from the same documents in a folder of its own, and asked the same.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use assistant_host::registry::{AssistantId, Definition, Registry, sha256_hex};
use assistant_host::search::{Filter, SearchIndex};
use serde::Serialize;
use serde_json::json;

use super::collection::Doc;
use super::cpu::{Took, took};
use super::fts5::{Fts5, Way};

/// Something that searches.
pub trait Engine {
    /// The places of the best `limit` documents, best first.
    ///
    /// # Errors
    /// In words.
    fn ask(&self, text: &str, limit: usize) -> Result<Vec<usize>, String>;
}

/// What there is to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The host's search.
    Ours,
    /// FTS5 as a plain full-text search: the caller's text is the expression.
    Fts5Raw,
    /// FTS5 as fairly as it can be asked.
    Fts5Fair,
}

impl Kind {
    /// All, in the order in which they are told.
    pub const ALL: [Self; 3] = [Self::Ours, Self::Fts5Raw, Self::Fts5Fair];

    /// The name, for people.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Ours => "assistant-host",
            Self::Fts5Raw => "FTS5, text as MATCH",
            Self::Fts5Fair => "FTS5, any word",
        }
    }
}

/// An engine with its index.
pub struct Built {
    /// It.
    pub engine: Box<dyn Engine>,
    /// How long indexing took.
    pub took: Took,
    /// Bytes of its files.
    pub bytes: u64,
}

/// Builds an index over `docs` in `folder`, which is empty.
///
/// # Errors
/// In words.
pub fn build(kind: Kind, docs: &[Doc], folder: &Path) -> Result<Built, String> {
    let fts5 = |way| {
        let (built, took) = took(|| Fts5::build(&folder.join("fts5.db"), way, docs));
        Ok::<_, String>((Box::new(built.map_err(|error| error.to_string())?) as Box<dyn Engine>, took))
    };
    let (engine, took) = match kind {
        Kind::Ours => {
            let registry = registry(docs);
            let (built, took) = took(|| SearchIndex::open(folder, &registry));
            let ours = Ours::new(built.map_err(|error| error.to_string())?, docs);
            (Box::new(ours) as Box<dyn Engine>, took)
        }
        Kind::Fts5Raw => fts5(Way::Raw)?,
        Kind::Fts5Fair => fts5(Way::Fair)?,
    };
    Ok(Built { engine, took, bytes: bytes_of(folder).map_err(|error| error.to_string())? })
}

/// The host's search over a collection.
pub struct Ours {
    index: SearchIndex,
    places: HashMap<AssistantId, usize>,
}

impl Ours {
    /// Over an index of these documents.
    #[must_use]
    pub fn new(index: SearchIndex, docs: &[Doc]) -> Self {
        Self { index, places: ids(docs).into_iter().zip(0..).collect() }
    }

    /// As [`Engine::ask`], of those that have a score of `min_score` at least.
    ///
    /// # Errors
    /// The index's, in words.
    pub fn ask_with(&self, text: &str, limit: usize, filter: &Filter) -> Result<Vec<usize>, String> {
        let found = self.index.search(text, filter, limit).map_err(|error| error.to_string())?;
        Ok(found.hits.iter().filter_map(|hit| self.places.get(&hit.id).copied()).collect())
    }
}

impl Engine for Ours {
    fn ask(&self, text: &str, limit: usize) -> Result<Vec<usize>, String> {
        self.ask_with(text, limit, &Filter { min_score: 0.0, ..Filter::default() })
    }
}

impl Engine for Fts5 {
    fn ask(&self, text: &str, limit: usize) -> Result<Vec<usize>, String> {
        Self::ask(self, text, limit).map_err(|error| error.to_string())
    }
}

/// The documents as assistants.
#[must_use]
pub fn registry(docs: &[Doc]) -> Registry {
    let definition = |(id, doc): (AssistantId, &Doc)| {
        let text = format!("{}\n{}\n{}", doc.name, doc.description, doc.body);
        let definition: Definition = serde_json::from_value(json!({
            "id": id, "name": doc.name, "description": doc.description, "system_prompt": doc.body, "source": "dir",
            "content_hash": sha256_hex(text.as_bytes()),
        }))
        .expect("a definition needs no more");
        definition
    };
    Registry::from_definitions(ids(docs).into_iter().zip(docs).map(definition))
}

/// An id for each: the slug of its name; its number where that is taken, which adds no word that a query has.
fn ids(docs: &[Doc]) -> Vec<AssistantId> {
    let mut taken = HashSet::new();
    let mut id = |(place, doc): (usize, &Doc)| {
        let first = AssistantId::from_name(&doc.name, &doc.id);
        if taken.insert(first.clone()) {
            return first;
        }
        AssistantId::from_name(&format!("document{place}of{}", docs.len()), &doc.id)
    };
    docs.iter().enumerate().map(&mut id).collect()
}

/// Bytes of all files below `folder`.
///
/// # Errors
/// The system's.
pub fn bytes_of(folder: &Path) -> std::io::Result<u64> {
    let (mut bytes, mut folders) = (0, vec![PathBuf::from(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                bytes += entry.metadata()?.len();
            }
        }
    }
    Ok(bytes)
}
