//! What a client follows over many calls: a chain of waits, and its way through threads.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::ledger::Ledger;
use super::tables;

/// One reader's way through a thread by `since`.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) since: i64,
    pub(super) ids: Vec<String>,
}

/// What a worker knows when it is done, to be checked when all is quiet.
#[derive(Default)]
pub(super) struct Followed {
    pub(super) cursor: Option<String>,
    /// Processes whose ends the chain of waits has told.
    pub(super) told: BTreeSet<String>,
    /// Processes that were spawned while the chain went on.
    pub(super) expected: Vec<String>,
    pub(super) readings: BTreeMap<String, Reading>,
}

impl Followed {
    /// Goes on behind an answer of `wait_assistant`: nothing is told twice.
    pub(super) fn follow(&mut self, told: &Value, ledger: &mut Ledger) {
        for event in told["events"].as_array().into_iter().flatten() {
            let text = |key: &str| event[key].as_str().unwrap_or_default();
            let (process, kind) = (text("process_id"), text("kind"));
            if !tables::ENDS.contains(&kind) {
                continue;
            }
            ledger.ended_as(process, kind);
            if kind == "finished" {
                ledger.results.insert(process.to_owned(), text("content").to_owned());
            }
            if !self.told.insert(process.to_owned()) {
                ledger.violation(format!("a chain of waits told the end of {process} twice"));
            }
        }
        if let Some(cursor) = told["next_cursor"].as_str() {
            self.cursor = Some(cursor.to_owned());
        }
    }
}
