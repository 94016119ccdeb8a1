//! What changes, for a user interface that keeps a copy: a snapshot with its revision, and all changes since.
//!
//! The revision is the place of an event in the host's log: it grows with every commit that is told, and survives a
//! restart. Nothing is skipped, however slow a reader is; what was committed is told, and nothing else. Pieces of a
//! model's answer are transient: they have no revision, and a slow reader misses some.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use assistant_protocol::ids::ProcessId;
use tokio::sync::broadcast;

use crate::events::{self, Event, Kind};
use crate::host::Host;
use crate::process_table::{self, Process};
use crate::registry::{AssistantId, Definition, Registry};
use crate::store::{CHANGES, StoreError, Waiter};

/// Events that are read at once.
const EVENTS: u32 = 100;
/// Pieces of answers that wait for a reader; a slower one misses the oldest.
pub(crate) const DELTAS_MAX: usize = 1_024;
/// Registries that wait for a reader; a slower one sees several changes as one.
pub(crate) const REGISTRIES_MAX: usize = 64;
/// Processes of a snapshot, the newest ones; all that live are among them as long as there are fewer.
pub const SNAPSHOT_PROCESSES_MAX: u32 = 1_000;

/// What there is, at one time.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The place in the host's log up to which it tells all.
    pub revision: i64,
    /// The newest processes, the newest first.
    pub processes: Vec<Process>,
    /// The assistants.
    pub assistants: Arc<Registry>,
}

/// One change.
#[derive(Debug, Clone)]
pub enum Change {
    /// A process is new, or another than before: its row as it is now.
    Process {
        /// The place in the host's log.
        revision: i64,
        /// The row.
        process: Box<Process>,
    },
    /// An event of a process: a message, a model call, a tool call, …
    Event {
        /// The place in the host's log.
        revision: i64,
        /// Whose.
        process: ProcessId,
        /// The event.
        event: Event,
    },
    /// There is a new assistant, or it is another than before.
    Assistant(Arc<Definition>),
    /// An assistant is gone.
    AssistantRemoved(AssistantId),
    /// A piece of a model's answer. Transient: nothing keeps it.
    Delta(Delta),
}

/// A piece of a model's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// For whom the model answers.
    pub process: ProcessId,
    /// The next piece of its text; empty where the answer begins anew after a failure.
    pub text: String,
}

/// All changes since a snapshot, in order.
pub struct Changes {
    host: Host,
    after: i64,
    known: Arc<Registry>,
    ready: VecDeque<Change>,
    news: Waiter,
    registry: broadcast::Receiver<Arc<Registry>>,
    deltas: broadcast::Receiver<Delta>,
}

impl Host {
    /// What there is now.
    ///
    /// # Errors
    /// The store's.
    pub async fn snapshot(&self) -> Result<Snapshot, StoreError> {
        let assistants = self.registry();
        let look = self.store().read(|db| {
            // The revision first: what changes in between is told once more, which changes nothing.
            let revision = events::newest(db)?;
            Ok::<_, StoreError>((revision, process_table::newest(db, SNAPSHOT_PROCESSES_MAX)?))
        });
        let (revision, processes) = look.await?;
        Ok(Snapshot { revision, processes, assistants })
    }

    /// All changes since a snapshot.
    #[must_use]
    pub fn changes(&self, since: &Snapshot) -> Changes {
        // Subscribed first: what changes in between is told by the comparison or by the channel.
        let registry = self.registry_changed().subscribe();
        let mut changes = Changes {
            host: self.clone(),
            after: since.revision,
            known: since.assistants.clone(),
            ready: VecDeque::new(),
            news: self.store().waiter(CHANGES),
            registry,
            deltas: self.deltas().subscribe(),
        };
        changes.compare(self.registry());
        changes
    }
}

impl Changes {
    /// Waits for the next change.
    ///
    /// # Errors
    /// The store's; [`StoreError::Closed`] when the host is closed.
    pub async fn next(&mut self) -> Result<Change, StoreError> {
        loop {
            if let Some(change) = self.ready.pop_front() {
                return Ok(change);
            }
            self.read().await?;
            if !self.ready.is_empty() {
                continue;
            }
            let closing = self.host.closing().clone();
            tokio::select! {
                biased;
                changed = self.registry.recv() => match changed {
                    Ok(registry) => self.compare(registry),
                    Err(broadcast::error::RecvError::Lagged(_)) => self.compare(self.host.registry()),
                    Err(broadcast::error::RecvError::Closed) => return Err(StoreError::Closed),
                },
                () = self.news.news() => {}
                delta = self.deltas.recv() => match delta {
                    Ok(delta) => self.ready.push_back(Change::Delta(delta)),
                    Err(broadcast::error::RecvError::Lagged(missed)) => tracing::debug!(missed, "a reader is slow"),
                    Err(broadcast::error::RecvError::Closed) => return Err(StoreError::Closed),
                },
                () = closing.cancelled() => {
                    // What ends with the host is told too, as long as the store is open.
                    self.read().await?;
                    if self.ready.is_empty() {
                        self.news.news().await;
                    }
                }
            }
        }
    }

    /// Reads what was committed since.
    async fn read(&mut self) -> Result<(), StoreError> {
        let after = self.after;
        let look = self.host.store().read(move |db| {
            let mut changes = Vec::new();
            for (process, event) in events::all(db, after, EVENTS)? {
                changes.push(match event.kind {
                    Kind::Status => {
                        Change::Process { revision: event.seq, process: Box::new(process_table::get(db, process)?) }
                    }
                    _ => Change::Event { revision: event.seq, process, event },
                });
            }
            Ok::<_, StoreError>(changes)
        });
        self.ready.extend(look.await?);
        if let Some(Change::Process { revision, .. } | Change::Event { revision, .. }) = self.ready.back() {
            self.after = *revision;
        }
        Ok(())
    }

    /// Tells in which assistants the registry is another than it was.
    fn compare(&mut self, now: Arc<Registry>) {
        let before: HashMap<&AssistantId, &Arc<Definition>> =
            self.known.assistants().iter().map(|known| (&known.id, known)).collect();
        for assistant in now.assistants() {
            if before.get(&assistant.id).is_none_or(|known| known.content_hash != assistant.content_hash) {
                self.ready.push_back(Change::Assistant(assistant.clone()));
            }
        }
        let gone = self.known.assistants().iter().filter(|known| now.get(&known.id).is_none());
        self.ready.extend(gone.map(|known| Change::AssistantRemoved(known.id.clone())));
        self.known = now;
    }
}
