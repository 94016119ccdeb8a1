//! Writes the index: what differs at once, so that it is found; parts that have become many are merged beside that.
//!
//! A writer is there only while something is written or merged: it takes [`WRITER_BYTES`], threads, and the lock of the
//! folder. What is on disk is whole after each step: a merge is a commit of its own, and what it has made before that is
//! no part of the index.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tantivy::index::{SegmentId, SegmentMeta};
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy, MergePolicy, NoMergePolicy};
use tantivy::{FutureResult, Index, IndexWriter, TantivyError, Term};

use super::changes::Update;
use super::document::{document, schema};
use super::index::stamp;
use super::stop::Stop;
use crate::registry::{Definition, Registry};

/// Bytes that a thread of the writer may use before it writes a segment; the least that tantivy takes.
const WRITER_BYTES: usize = 15_000_000;
/// Threads that build an index.
const THREADS_MAX: usize = 4;
/// Assistants that another thread is worth.
const ASSISTANTS_A_THREAD: usize = 1_000;
/// Segments of about one size that become one.
const SEGMENTS_MERGED: usize = 8;
/// Segments below this are of one size, documents.
const SEGMENT_DOCUMENTS_MIN: u32 = 64;
/// By how much segments of one size may differ: as the power of two.
const SIZE_POWER: f64 = 3.0;
/// The share of a segment that may be deleted before it is written anew.
const DELETED_SHARE_MAX: f32 = 0.2;

/// Who writes an index: one for all searches that follow one another.
pub(super) struct Writing {
    pub(super) index: Index,
    stop: Stop,
    state: Mutex<State>,
}

enum State {
    /// Nobody writes.
    Idle,
    /// Parts are merged by this writer; updates use it too.
    Merging(Box<IndexWriter>),
    /// Nobody writes any more: another index takes its place.
    Ended,
}

/// A merge that has begun.
struct Merge {
    /// What becomes one.
    parts: Vec<SegmentId>,
    done: FutureResult<Option<SegmentMeta>>,
}

impl Writing {
    /// Of an index whose files `stop` ends.
    pub(super) fn new(index: Index, stop: Stop) -> Arc<Self> {
        Arc::new(Self { index, stop, state: Mutex::new(State::Idle) })
    }

    /// Ends what is being written half way: the merges that have begun fail with the next bytes that they write, and none
    /// begins. What is committed stays.
    pub(super) fn stop(&self) {
        self.stop.tell();
    }

    /// Whether nothing is written any more, and no other index takes the place of this one.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_told() && !matches!(*self.state(), State::Ended)
    }

    /// Makes `update` one commit. Waits for no merge, unless it fails.
    pub(super) fn apply(&self, update: &Update<'_>) -> tantivy::Result<()> {
        let mut state = self.state();
        match &mut *state {
            State::Idle => {
                let mut writer = writer(&self.index, update.new.len())?;
                apply(&mut writer, update)?;
                writer.wait_merging_threads()
            }
            State::Merging(writer) => {
                let applied = apply(writer, update);
                if applied.is_err() {
                    // What it has taken and not committed goes with it.
                    stop(&mut state, State::Idle)?;
                }
                applied
            }
            State::Ended => Err(ended()),
        }
    }

    /// Makes the index that of `registry`, whatever it was of, as one part.
    pub(super) fn fill(&self, registry: &Registry) -> tantivy::Result<()> {
        let mut state = self.state();
        if let State::Ended = *state {
            return Err(ended());
        }
        stop(&mut state, State::Idle)?;
        fill(&self.index, registry)
    }

    /// Merges parts that have become many, until they are few; updates go on meanwhile. Whoever comes while this goes on
    /// returns at once: it sees to what is new, too.
    pub(super) fn merge(&self) -> tantivy::Result<()> {
        let mut begun = false;
        loop {
            let merged = self.begin(begun).and_then(|merges| self.wait(merges));
            match merged {
                Ok(0) => return Ok(()),
                Ok(_) => begun = true,
                Err(error) => {
                    stop(&mut self.state(), State::Idle)?;
                    return Err(error);
                }
            }
        }
    }

    /// Waits for `merges`, and returns how many they are.
    fn wait(&self, merges: Vec<Merge>) -> tantivy::Result<usize> {
        let count = merges.len();
        for Merge { parts, done } in merges {
            let Err(error) = done.wait() else { continue };
            if self.stop.is_told() {
                tracing::debug!(%error, "a merge of parts of the search index was given up");
                continue;
            }
            let there = self.index.searchable_segment_ids()?;
            if parts.iter().all(|part| there.contains(part)) {
                return Err(error);
            }
            // An update has deleted all that was in a part: what is left of them is merged another time.
            tracing::debug!(%error, "parts of the search index were changed while they were merged");
        }
        Ok(count)
    }

    /// Writes nothing any more, so that another index may take this one's place. No merge is waited for.
    pub(super) fn end(&self) -> tantivy::Result<()> {
        self.stop();
        stop(&mut self.state(), State::Ended)
    }

    /// Begins the merges that are due; none where another merges and this one has not `begun`. Where none is due, nobody
    /// writes.
    fn begin(&self, begun: bool) -> tantivy::Result<Vec<Merge>> {
        let mut state = self.state();
        match *state {
            State::Ended => return Ok(Vec::new()),
            State::Merging(_) if !begun => return Ok(Vec::new()),
            State::Merging(_) | State::Idle => {}
        }
        let due = match self.stop.is_told() {
            true => Vec::new(),
            false => merging().compute_merge_candidates(&self.index.searchable_segment_metas()?),
        };
        if due.is_empty() {
            stop(&mut state, State::Idle)?;
            return Ok(Vec::new());
        }
        let mut writer = match std::mem::replace(&mut *state, State::Idle) {
            State::Merging(writer) => writer,
            State::Idle | State::Ended => Box::new(writer(&self.index, 0)?),
        };
        let mut one = |parts: Vec<SegmentId>| Merge { done: writer.merge(&parts), parts };
        let merges = due.into_iter().map(|due| one(due.0)).collect();
        *state = State::Merging(writer);
        Ok(merges)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Goes on as `next` once the merges that have begun are done; with them goes the writer. What has ended stays so.
fn stop(state: &mut State, next: State) -> tantivy::Result<()> {
    if let State::Ended = state {
        return Ok(());
    }
    match std::mem::replace(state, next) {
        State::Idle | State::Ended => Ok(()),
        State::Merging(writer) => writer.wait_merging_threads(),
    }
}

fn ended() -> TantivyError {
    TantivyError::SystemError("another index has taken its place".to_owned())
}

fn apply(writer: &mut IndexWriter, update: &Update<'_>) -> tantivy::Result<()> {
    let (_, fields) = schema();
    // What is new goes too: an update before this one may have been written and given up.
    for id in update.gone.iter().copied().chain(update.new.iter().map(|new| new.id.as_str())) {
        writer.delete_term(Term::from_field_text(fields.id, id));
    }
    add(writer, &update.new)?;
    commit(writer)
}

/// Makes an index that nobody writes that of `registry`, as one part: a query looks its words up in each part anew.
pub(super) fn fill(index: &Index, registry: &Registry) -> tantivy::Result<()> {
    let mut writer = writer(index, registry.assistants().len())?;
    writer.delete_all_documents()?;
    add(&mut writer, &registry.assistants().iter().collect::<Vec<_>>())?;
    commit(&mut writer)?;
    let parts = index.searchable_segment_ids()?;
    if parts.len() > 1 {
        writer.merge(&parts).wait()?;
    }
    writer.wait_merging_threads()
}

/// A writer that merges only what it is told to.
fn writer(index: &Index, documents: usize) -> tantivy::Result<IndexWriter> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let options = IndexWriterOptions::builder()
        .memory_budget_per_thread(WRITER_BYTES)
        .num_worker_threads((documents / ASSISTANTS_A_THREAD).clamp(1, cores))
        .num_merge_threads(1)
        .build();
    let writer = index.writer_with_options(options)?;
    writer.set_merge_policy(Box::new(NoMergePolicy));
    Ok(writer)
}

/// Which parts are to become one.
fn merging() -> LogMergePolicy {
    let mut merging = LogMergePolicy::default();
    merging.set_min_num_segments(SEGMENTS_MERGED);
    merging.set_min_layer_size(SEGMENT_DOCUMENTS_MIN);
    merging.set_level_log_size(SIZE_POWER);
    merging.set_del_docs_ratio_before_merge(DELETED_SHARE_MAX);
    merging
}

fn add(writer: &mut IndexWriter, definitions: &[&Arc<Definition>]) -> tantivy::Result<()> {
    let (_, fields) = schema();
    for definition in definitions {
        writer.add_document(document(fields, definition))?;
    }
    Ok(())
}

fn commit(writer: &mut IndexWriter) -> tantivy::Result<()> {
    let mut commit = writer.prepare_commit()?;
    commit.set_payload(&stamp());
    commit.commit()?;
    Ok(())
}
