//! What changes, for a user interface that keeps a copy: a snapshot with its revision, and all changes since.
//!
//! The revision is the place of an event in the host's log: it never falls, and survives a restart. A row is told as it
//! is when it is read, before the event that changed it and under the same revision; a reader that is behind gets it once
//! for several events. Nothing is skipped, however slow a reader is; what was committed is told, and nothing else. Pieces
//! of a model's answer are transient: they have no revision, and a slow reader misses some.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use assistant_protocol::ids::ProcessId;
use serde::{Serialize, Serializer};
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

/// One change. As JSON an object with one member, named as the variant: `{"process": {"revision": 7, "process": …}}`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A process is new, or another than before: its row as it is now. The exit code of a runner that goes after the end
    /// is not told.
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
    #[serde(serialize_with = "plain")]
    Assistant(Arc<Definition>),
    /// An assistant is gone.
    AssistantRemoved(AssistantId),
    /// A piece of a model's answer. Transient: nothing keeps it.
    Delta(Delta),
    /// So many pieces of answers came faster than they were read: a text that is pieced together lacks them. The answer
    /// itself is recorded whole.
    Missed(u64),
}

/// A piece of a model's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Delta {
    /// For whom the model answers.
    pub process: ProcessId,
    /// The next piece of its text; empty where the answer begins anew after a failure.
    pub text: String,
}

fn plain<S: Serializer>(definition: &Arc<Definition>, to: S) -> Result<S::Ok, S::Error> {
    definition.as_ref().serialize(to)
}

/// All changes since a snapshot, in order.
pub struct Changes {
    host: Host,
    after: i64,
    known: Arc<Registry>,
    ready: VecDeque<Change>,
    /// There may be events that are not read.
    unread: bool,
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
            unread: true,
            news: self.store().waiter(CHANGES),
            registry,
            deltas: self.deltas().subscribe(),
        };
        changes.compare(self.registry());
        changes
    }
}

impl Changes {
    /// Waits for the next change. May be dropped and called again.
    ///
    /// # Errors
    /// The store's; [`StoreError::Closed`] when the host is closed and all that ended with it is told.
    pub async fn next(&mut self) -> Result<Change, StoreError> {
        loop {
            if let Some(change) = self.ready.pop_front() {
                return Ok(change);
            }
            // Looked at first: what was committed before is read.
            let closed = self.host.closed().clone();
            let last = closed.is_cancelled();
            if self.unread || last {
                self.read().await?;
                if !self.ready.is_empty() {
                    continue;
                }
            }
            if last {
                return Err(StoreError::Closed);
            }
            tokio::select! {
                biased;
                changed = self.registry.recv() => match changed {
                    Ok(registry) => self.compare(registry),
                    Err(broadcast::error::RecvError::Lagged(_)) => self.compare(self.host.registry()),
                    Err(broadcast::error::RecvError::Closed) => return Err(StoreError::Closed),
                },
                () = self.news.news() => self.unread = true,
                delta = self.deltas.recv() => match delta {
                    Ok(delta) => self.ready.push_back(Change::Delta(delta)),
                    Err(broadcast::error::RecvError::Lagged(missed)) => self.ready.push_back(Change::Missed(missed)),
                    Err(broadcast::error::RecvError::Closed) => return Err(StoreError::Closed),
                },
                () = closed.cancelled() => {}
            }
        }
    }

    /// Reads what was committed since.
    async fn read(&mut self) -> Result<(), StoreError> {
        let after = self.after;
        let look = self.host.store().read(move |db| {
            let (mut changes, mut newest) = (Vec::new(), None);
            let found = events::all(db, after, EVENTS)?;
            let more = found.len() == EVENTS as usize;
            let of_rows = found.iter().filter(|(_, event)| changes_the_row(event.kind));
            let last: HashMap<ProcessId, i64> = of_rows.map(|(process, event)| (*process, event.seq)).collect();
            for (process, event) in found {
                let revision = event.seq;
                newest = Some(revision);
                // The row is the one that there is now, so once is enough.
                if last.get(&process) == Some(&revision) {
                    // None where retention has removed it since.
                    let row = process_table::find(db, process)?.map(Box::new);
                    changes.extend(row.map(|process| Change::Process { revision, process }));
                }
                changes.push(Change::Event { revision, process, event });
            }
            Ok::<_, StoreError>((changes, newest, more))
        });
        let (changes, newest, more) = look.await?;
        self.ready.extend(changes);
        self.after = newest.unwrap_or(self.after);
        self.unread = more;
        Ok(())
    }

    /// Tells in which assistants the registry is another than it was.
    fn compare(&mut self, now: Arc<Registry>) {
        let before: HashMap<&AssistantId, &Arc<Definition>> =
            self.known.assistants().iter().map(|known| (&known.id, known)).collect();
        for assistant in now.assistants() {
            let same = |known: &&Arc<Definition>| Arc::ptr_eq(known, assistant) || *known == assistant;
            if !before.get(&assistant.id).is_some_and(same) {
                self.ready.push_back(Change::Assistant(assistant.clone()));
            }
        }
        let gone = self.known.assistants().iter().filter(|known| now.get(&known.id).is_none());
        self.ready.extend(gone.map(|known| Change::AssistantRemoved(known.id.clone())));
        self.known = now;
    }
}

/// Whether the row of a process is another one after such an event: status, counts, usage, result.
fn changes_the_row(kind: Kind) -> bool {
    match kind {
        Kind::Status | Kind::ModelCall | Kind::ModelAnswer | Kind::ToolCall => true,
        Kind::ModelRetry
        | Kind::ToolResult
        | Kind::Message
        | Kind::Progress
        | Kind::Stderr
        | Kind::Link
        | Kind::Refused
        | Kind::Server
        | Kind::Run
        | Kind::Asked => false,
    }
}
