//! The index: in memory, or on disk where it is checked before it is believed.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use tantivy::directory::error::OpenReadError;
use tantivy::directory::{Directory, INDEX_WRITER_LOCK, RamDirectory, TerminatingWrite};
use tantivy::index::SegmentId;
use tantivy::{Index, IndexSettings, TantivyError};

use super::analyzer::{ANALYZER_VERSION, analyzer};
use super::document::{ANALYZER, schema};
use super::files::{Files, LISTS, clear, segment_of};
use super::stop::{Stop, Stoppable};
use super::writing::{Writing, fill};
use crate::registry::{READER_VERSION, Registry};

/// An index that lives as long as the program.
pub(super) fn in_memory(registry: &Registry) -> tantivy::Result<Arc<Writing>> {
    create(RamDirectory::create(), registry)
}

/// An index in `folder` of `registry`, in place of whatever is there.
pub(super) fn build(folder: &Path, registry: &Registry) -> tantivy::Result<Arc<Writing>> {
    fs::create_dir_all(folder)?;
    let files = Files::open(folder)?;
    // Nobody else may be writing while the old files go.
    let lock = files.acquire_lock(&INDEX_WRITER_LOCK).map_err(|error| TantivyError::LockFailure(error, None))?;
    clear(folder)?;
    drop(lock);
    create(files, registry)
}

/// An index of `registry` in files where there is none.
fn create(files: impl Into<Box<dyn Directory>>, registry: &Registry) -> tantivy::Result<Arc<Writing>> {
    let stop = Stop::default();
    let files = Stoppable::new(files, stop.clone());
    let index = with_analyzer(Index::create(files, schema().0, IndexSettings::default())?);
    fill(&index, registry)?;
    Ok(Writing::new(index, stop))
}

/// The index in `folder`, of whichever assistants, if there is one that this program has made; its checksums are right.
pub(super) fn open(folder: &Path) -> tantivy::Result<Option<Arc<Writing>>> {
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
pub(super) fn copy(folder: &Path) -> tantivy::Result<Option<Arc<Writing>>> {
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
        if !segment_of(&name).is_some_and(|id| segments.contains(id)) {
            continue;
        }
        let mut copy = copied.open_write(Path::new(&name))?;
        copy.write_all(&files.open_read(Path::new(&name))?.read_bytes()?)?;
        copy.terminate()?;
    }
    open_in(copied)
}

/// The same as [`open`] in any directory.
pub(super) fn open_in(files: impl Into<Box<dyn Directory>>) -> tantivy::Result<Option<Arc<Writing>>> {
    let stop = Stop::default();
    let index = Index::open(Stoppable::new(files, stop.clone()))?;
    if index.load_metas()?.payload != Some(stamp()) || index.schema() != schema().0 {
        return Ok(None);
    }
    // Flipped bytes in postings give wrong answers, not errors.
    check(&index)?;
    Ok(Some(Writing::new(with_analyzer(index), stop)))
}

/// Reads all files of `index`. A merge that ends meanwhile may remove some, and others are listed then: where one is gone,
/// it looks once more.
///
/// # Errors
/// A checksum is wrong, besides those of reading.
pub(super) fn check(index: &Index) -> tantivy::Result<()> {
    let wrong = match index.validate_checksum() {
        Err(TantivyError::OpenReadError(OpenReadError::FileDoesNotExist(_))) => index.validate_checksum(),
        checked => checked,
    };
    match wrong?.into_iter().next() {
        Some(file) => Err(TantivyError::SystemError(format!("the checksum of {} is wrong", file.display()))),
        None => Ok(()),
    }
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
