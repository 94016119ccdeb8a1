//! The index: in memory, or on disk where it is checked before it is believed.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tantivy::directory::{Directory, INDEX_WRITER_LOCK, MmapDirectory};
use tantivy::schema::{FAST, Field, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Index, IndexWriter, TantivyDocument, TantivyError};

use super::analyzer::{ANALYZER_VERSION, analyzer, split_camel};
use crate::registry::{Definition, Registry, slug};

/// Bytes that the writer may use before it writes a segment; the least that tantivy takes.
const WRITER_BYTES: usize = 15_000_000;
const ANALYZER: &str = "assistants";

/// The fields of a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    pub(super) id: Field,
    /// Name, description and tags, as one text.
    pub(super) head: Field,
    /// The system prompt.
    pub(super) body: Field,
}

pub(super) const ID: &str = "id";

pub(super) fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default().set_tokenizer(ANALYZER).set_index_option(IndexRecordOption::WithFreqs);
    let text = TextOptions::default().set_indexing_options(indexing);
    let fields = Fields {
        id: schema.add_text_field(ID, STRING | FAST),
        head: schema.add_text_field("head", text.clone()),
        body: schema.add_text_field("body", text),
    };
    (schema.build(), fields)
}

/// An index that lives as long as the program.
pub(super) fn in_memory(registry: &Registry) -> tantivy::Result<Index> {
    let index = Index::create_in_ram(schema().0);
    fill(&index, registry)?;
    Ok(index)
}

/// The index in `folder`: the one that is there, if it is whole and of these assistants; else a new one.
pub(super) fn on_disk(folder: &Path, registry: &Registry) -> tantivy::Result<Index> {
    match usable(folder, registry) {
        Ok(Some(index)) => return Ok(index),
        Ok(None) => tracing::debug!(folder = %folder.display(), "the search index is of other assistants"),
        Err(error) => tracing::info!(folder = %folder.display(), %error, "the search index is damaged"),
    }
    fs::create_dir_all(folder)?;
    let directory = MmapDirectory::open(folder)?;
    // Nobody else may be writing while the old files go.
    let lock = directory.acquire_lock(&INDEX_WRITER_LOCK).map_err(|error| TantivyError::LockFailure(error, None))?;
    clear(folder)?;
    drop(lock);
    let index = Index::create(directory, schema().0, tantivy::IndexSettings::default())?;
    fill(&index, registry)?;
    Ok(index)
}

/// The index in `folder`, if there is one that was made of these assistants by this analyzer; its checksums are right.
fn usable(folder: &Path, registry: &Registry) -> tantivy::Result<Option<Index>> {
    if !folder.join("meta.json").exists() {
        return Ok(None);
    }
    let index = Index::open_in_dir(folder)?;
    let meta = index.load_metas()?;
    let documents: u64 = meta.segments.iter().map(|segment| u64::from(segment.num_docs())).sum();
    let same = meta.payload.as_deref() == Some(stamp(registry).as_str())
        && index.schema() == schema().0
        && documents == registry.assistants().len() as u64;
    if !same {
        return Ok(None);
    }
    // Flipped bytes in postings give wrong answers, not errors.
    if let Some(file) = index.validate_checksum()?.into_iter().next() {
        return Err(TantivyError::SystemError(format!("the checksum of {} is wrong", file.display())));
    }
    Ok(Some(index))
}

/// What an index is made of: the analyzer and all definitions. Kept in the commit itself, so it is never half true.
fn stamp(registry: &Registry) -> String {
    format!("{ANALYZER_VERSION} {}", registry.fingerprint())
}

/// Removes tantivy's files, and nothing else, from `folder`.
fn clear(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let segment =
            name.split('.').next().is_some_and(|id| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()));
        if (segment || matches!(name.as_str(), "meta.json" | ".managed.json")) && entry.file_type()?.is_file() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn fill(index: &Index, registry: &Registry) -> tantivy::Result<()> {
    index.tokenizers().register(ANALYZER, analyzer());
    let (_, fields) = schema();
    let mut writer: IndexWriter = index.writer_with_num_threads(1, WRITER_BYTES)?;
    for definition in registry.assistants() {
        writer.add_document(document(fields, definition))?;
    }
    let mut commit = writer.prepare_commit()?;
    commit.set_payload(&stamp(registry));
    commit.commit()?;
    writer.wait_merging_threads()
}

fn document(fields: Fields, definition: &Arc<Definition>) -> TantivyDocument {
    let mut head = definition.name.clone();
    let mut add = |text: &str| head.extend(["\n", text]);
    split_camel(&definition.name).iter().for_each(|split| add(split));
    if slug(&definition.name).as_deref() != Some(definition.id.as_str()) {
        add(definition.id.as_str());
    }
    add(&definition.description);
    definition.tags.iter().for_each(|tag| add(tag));
    let mut document = TantivyDocument::new();
    document.add_text(fields.id, definition.id.as_str());
    document.add_text(fields.head, head);
    document.add_text(fields.body, &definition.system_prompt);
    document
}
