//! What the clients of a round were answered, kept outside of the host.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use super::line::held;

/// What happened in all rounds together.
#[derive(Debug, Default)]
pub struct Totals {
    counts: Mutex<BTreeMap<&'static str, u64>>,
}

impl Totals {
    /// Counts one more.
    pub fn count(&self, what: &'static str) {
        self.add(what, 1);
    }

    /// Counts several more.
    pub fn add(&self, what: &'static str, more: u64) {
        *held(&self.counts).entry(what).or_default() += more;
    }

    /// All counts, by name.
    #[must_use]
    pub fn told(&self) -> String {
        let counts = held(&self.counts);
        let told: Vec<String> = counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
        told.join(", ")
    }
}

/// A spawn, by the label that it was made with.
#[derive(Debug, Clone, Default)]
pub(super) struct Spawned {
    /// Process and thread as answered; none where every answer was lost.
    pub(super) answered: Option<(String, String)>,
    /// The process that it goes on with.
    pub(super) resumes: Option<String>,
}

/// A message, by its text.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) thread: String,
    pub(super) worker: u64,
    /// As answered.
    pub(super) id: Option<String>,
}

/// An answer to a question, by its text.
#[derive(Debug, Clone)]
pub(super) struct Replied {
    pub(super) question: String,
    /// The answer's message as answered.
    pub(super) id: Option<String>,
}

/// Everything that was asked for and answered in a round.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) spawned: BTreeMap<String, Spawned>,
    pub(super) sent: BTreeMap<String, Sent>,
    /// The texts of messages that were answered, in the order of the answers.
    pub(super) sent_in_order: Vec<String>,
    pub(super) replied: BTreeMap<String, Replied>,
    /// Processes that a cancel was answered with.
    pub(super) cancelled: BTreeSet<String>,
    /// Ends as a poll told them: status, reason, cause, time.
    pub(super) ends: BTreeMap<String, Value>,
    /// Statuses of ends as waits and spawns told them.
    pub(super) end_statuses: BTreeMap<String, String>,
    /// Results as they were read.
    pub(super) results: BTreeMap<String, String>,
    /// Messages that a read has marked; one can be marked once.
    pub(super) marked: BTreeSet<String>,
    pub(super) violations: Vec<String>,
    last: u64,
}

impl Ledger {
    /// A text that no other thing of this round has.
    pub(super) fn token(&mut self, what: &str, worker: u64) -> String {
        self.last += 1;
        format!("{what} {} of worker {worker}", self.last)
    }

    pub(super) fn violation(&mut self, what: String) {
        if !self.violations.contains(&what) {
            self.violations.push(what);
        }
    }

    /// A process is told to have ended in this way, now and for ever.
    pub(super) fn ended(&mut self, process: &str, end: Value) {
        match self.ends.get(process) {
            Some(before) if *before != end => {
                self.violation(format!("process {process} ended as {before}, and later as {end}"));
            }
            Some(_) => {}
            None => drop(self.ends.insert(process.to_owned(), end)),
        }
    }

    pub(super) fn ended_as(&mut self, process: &str, status: &str) {
        let before = self.end_statuses.insert(process.to_owned(), status.to_owned());
        if let Some(before) = before.filter(|before| before != status) {
            self.violation(format!("process {process} was told to be {before}, and later {status}"));
        }
    }
}

/// A process that clients know.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) process: String,
    pub(super) thread: String,
}

/// Counts up to a number, once.
#[derive(Debug, Default)]
pub(super) struct Budget(AtomicU64);

impl Budget {
    pub(super) fn new(most: u64) -> Self {
        Self(AtomicU64::new(most))
    }

    /// Whether there was one left.
    pub(super) fn take(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}
