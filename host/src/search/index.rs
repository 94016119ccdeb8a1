//! The index: in memory, or on disk where it is checked before it is believed.

use std::fs;
use std::path::Path;

use tantivy::directory::{Directory, INDEX_WRITER_LOCK, MmapDirectory};
use tantivy::{Index, IndexWriter, TantivyError};

use super::analyzer::{ANALYZER_VERSION, analyzer};
use super::document::{ANALYZER, document, schema};
use crate::registry::Registry;

/// Bytes that the writer may use before it writes a segment; the least that tantivy takes.
const WRITER_BYTES: usize = 15_000_000;

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
