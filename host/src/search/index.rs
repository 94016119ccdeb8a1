//! The index: in memory, or on disk where it is checked before it is believed.
//!
//! A writer is there only while something is written: it takes [`WRITER_BYTES`], threads, and the lock of the folder.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tantivy::directory::{Directory, INDEX_WRITER_LOCK};
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy};
use tantivy::{Index, IndexSettings, IndexWriter, TantivyError, Term};

use super::analyzer::{ANALYZER_VERSION, analyzer};
use super::changes::Update;
use super::document::{ANALYZER, document, schema};
use super::files::{Files, LISTS, clear};
use crate::registry::{Definition, READER_VERSION, Registry};

/// Bytes that a thread of the writer may use before it writes a segment; the least that tantivy takes.
const WRITER_BYTES: usize = 15_000_000;
/// Threads that build an index.
const THREADS_MAX: usize = 4;
/// Assistants that another thread is worth.
const ASSISTANTS_A_THREAD: usize = 1_000;
/// Segments of about one size that become one.
const SEGMENTS_MERGED: usize = 8;
/// Segments below this are of one size, documents.
const SMALL_SEGMENT: u32 = 64;
/// By how much segments of one size may differ: as the power of two.
const SIZE_POWER: f64 = 3.0;
/// The share of a segment that may be deleted before it is written anew.
const DELETED_SHARE_MAX: f32 = 0.2;

/// An index that lives as long as the program.
pub(super) fn in_memory(registry: &Registry) -> tantivy::Result<Index> {
    let index = with_analyzer(Index::create_in_ram(schema().0));
    fill(&index, registry)?;
    Ok(index)
}

/// An index in `folder` of `registry`, in place of whatever is there.
pub(super) fn build(folder: &Path, registry: &Registry) -> tantivy::Result<Index> {
    fs::create_dir_all(folder)?;
    let files = Files::open(folder)?;
    // Nobody else may be writing while the old files go.
    let lock = files.acquire_lock(&INDEX_WRITER_LOCK).map_err(|error| TantivyError::LockFailure(error, None))?;
    clear(folder)?;
    drop(lock);
    let index = with_analyzer(Index::create(files, schema().0, IndexSettings::default())?);
    fill(&index, registry)?;
    Ok(index)
}

/// The index in `folder`, of whichever assistants, if there is one that this program has made; its checksums are right.
pub(super) fn open(folder: &Path) -> tantivy::Result<Option<Index>> {
    // Checksums are looked at of what the other list names.
    match LISTS.iter().all(|list| folder.join(list).exists()) {
        true => open_in(Files::open(folder)?),
        false => Ok(None),
    }
}

/// The same in any directory.
pub(super) fn open_in(files: impl Into<Box<dyn Directory>>) -> tantivy::Result<Option<Index>> {
    let index = Index::open(files)?;
    if index.load_metas()?.payload != Some(stamp()) || index.schema() != schema().0 {
        return Ok(None);
    }
    // Flipped bytes in postings give wrong answers, not errors.
    if let Some(file) = index.validate_checksum()?.into_iter().next() {
        return Err(TantivyError::SystemError(format!("the checksum of {} is wrong", file.display())));
    }
    Ok(Some(with_analyzer(index)))
}

/// Makes `update` one commit.
pub(super) fn apply(index: &Index, update: &Update<'_>) -> tantivy::Result<()> {
    let (_, fields) = schema();
    let mut writer = writer(index, update.new.len())?;
    // What is new goes too: an update before this one may have been written and given up.
    for id in update.gone.iter().copied().chain(update.new.iter().map(|new| new.id.as_str())) {
        writer.delete_term(Term::from_field_text(fields.id, id));
    }
    add(&mut writer, &update.new)?;
    commit(writer)
}

/// Makes the index that of `registry`, whatever it was of, as one commit.
pub(super) fn fill(index: &Index, registry: &Registry) -> tantivy::Result<()> {
    let mut writer = writer(index, registry.assistants().len())?;
    writer.delete_all_documents()?;
    add(&mut writer, &registry.assistants().iter().collect::<Vec<_>>())?;
    commit(writer)
}

fn with_analyzer(index: Index) -> Index {
    index.tokenizers().register(ANALYZER, analyzer());
    index
}

/// How the documents of an index are made. Kept in the commit itself, so it is never half true; of what they are made
/// stands in each of them.
fn stamp() -> String {
    format!("analyzer {ANALYZER_VERSION} reader {READER_VERSION}")
}

fn writer(index: &Index, documents: usize) -> tantivy::Result<IndexWriter> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let options = IndexWriterOptions::builder()
        .memory_budget_per_thread(WRITER_BYTES)
        .num_worker_threads((documents / ASSISTANTS_A_THREAD).clamp(1, cores))
        .num_merge_threads(1)
        .build();
    let writer = index.writer_with_options(options)?;
    let mut merging = LogMergePolicy::default();
    merging.set_min_num_segments(SEGMENTS_MERGED);
    merging.set_min_layer_size(SMALL_SEGMENT);
    merging.set_level_log_size(SIZE_POWER);
    merging.set_del_docs_ratio_before_merge(DELETED_SHARE_MAX);
    writer.set_merge_policy(Box::new(merging));
    Ok(writer)
}

fn add(writer: &mut IndexWriter, definitions: &[&Arc<Definition>]) -> tantivy::Result<()> {
    let (_, fields) = schema();
    for definition in definitions {
        writer.add_document(document(fields, definition))?;
    }
    Ok(())
}

/// Commits, and waits for the merges that come of it.
fn commit(mut writer: IndexWriter) -> tantivy::Result<()> {
    let mut commit = writer.prepare_commit()?;
    commit.set_payload(&stamp());
    commit.commit()?;
    writer.wait_merging_threads()
}
