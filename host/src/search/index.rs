//! The index: in memory, or on disk where it is checked before it is believed.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::Path;

use tantivy::directory::{Directory, INDEX_WRITER_LOCK, RamDirectory, TerminatingWrite};
use tantivy::index::SegmentId;
use tantivy::{Index, IndexSettings, TantivyError};

use super::analyzer::{ANALYZER_VERSION, analyzer};
use super::document::{ANALYZER, schema};
use super::files::{Files, LISTS, clear};
use super::writing::fill;
use crate::registry::{READER_VERSION, Registry};

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

/// A copy in memory of the index in `folder`, as [`open`]. Another program may be writing that one, which
/// stays as it is: no lock is taken that it may wait for.
///
/// # Errors
/// What the lists name is gone already, besides those of [`open`].
pub(super) fn copy(folder: &Path) -> tantivy::Result<Option<Index>> {
    if !LISTS.iter().all(|list| folder.join(list).exists()) {
        return Ok(None);
    }
    let files = Files::open(folder)?;
    let copied = RamDirectory::create();
    for list in LISTS.iter().map(Path::new) {
        copied.atomic_write(list, &files.atomic_read(list)?)?;
    }
    let segments = Index::open(copied.clone())?.searchable_segment_ids()?;
    let segments: HashSet<String> = segments.iter().map(SegmentId::uuid_string).collect();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str().filter(|name| name.split('.').next().is_some_and(|id| segments.contains(id)))
        else {
            continue;
        };
        let mut copy = copied.open_write(Path::new(name))?;
        copy.write_all(&files.open_read(Path::new(name))?.read_bytes()?)?;
        copy.terminate()?;
    }
    open_in(copied)
}

/// The same as [`open`] in any directory.
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

fn with_analyzer(index: Index) -> Index {
    index.tokenizers().register(ANALYZER, analyzer());
    index
}

/// How the documents of an index are made. Kept in the commit itself, so it is never half true; of what they are made
/// stands in each of them.
pub(super) fn stamp() -> String {
    format!("analyzer {ANALYZER_VERSION} reader {READER_VERSION}")
}
