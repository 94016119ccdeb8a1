//! The oracle: what was answered against what the tables and a fresh client say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::followed::Followed;
use super::ledger::Ledger;
use super::line::{Answer, Line};
use super::tables::{ends, open, rows};

/// Pages that a chain of waits needs at most to come to its end.
const PAGES_MAX: usize = 100;

/// The ledger against the tables.
pub(super) fn against_tables(ledger: &Ledger, db: &Path) -> rusqlite::Result<Vec<String>> {
    let mut found = Vec::new();
    let ends = ends(db)?;
    let db = open(db)?;
    let mut labelled: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    let processes = "SELECT label, process_id, thread_id, coalesce(resumed_from, '') FROM assistant_processes
         WHERE label IS NOT NULL";
    for mut row in rows(&db, processes)? {
        labelled.entry(row.remove(0)).or_default().push(row);
    }
    for (label, spawned) in &ledger.spawned {
        // A resumption without a label of its own would have its predecessor's.
        let made = labelled.get(label).map(Vec::as_slice).unwrap_or_default();
        let of_it: Vec<_> =
            made.iter().filter(|row| row[2] == *spawned.resumes.as_deref().unwrap_or_default()).collect();
        match (&spawned.answered, of_it.as_slice()) {
            (_, [_, _, ..]) => found.push(format!("`{label}` was made {} times", of_it.len())),
            (Some((process, _)), []) => {
                found.push(format!("process {process} (`{label}`) was answered and is missing"))
            }
            (Some((process, thread)), [row]) if row[0] != *process || row[1] != *thread => {
                found.push(format!("`{label}` was answered as {process}, and is {}", row[0]));
            }
            _ => {}
        }
    }
    let mut messages: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    for mut row in rows(&db, "SELECT content, id, thread_id, seq, kind FROM assistant_messages")? {
        messages.entry(row.remove(0)).or_default().push(row);
    }
    let resumed = resumed(&db)?;
    let none = Vec::new();
    for (text, sent) in &ledger.sent {
        match (&sent.id, messages.get(text).unwrap_or(&none).as_slice()) {
            (_, [_, _, ..]) => found.push(format!("`{text}` is there more than once")),
            (Some(id), []) => found.push(format!("message {id} (`{text}`) was answered and is missing")),
            // A resumption takes queued messages along.
            (Some(id), [row]) if row[0] != *id || row[1] != sent.thread && !resumed.contains(&sent.thread) => {
                found.push(format!("message {id} (`{text}`) of thread {} is {} of {}", sent.thread, row[0], row[1]));
            }
            _ => {}
        }
    }
    let mut last: BTreeMap<(&str, u64), i64> = BTreeMap::new();
    for text in &ledger.sent_in_order {
        let (Some(sent), Some([row])) = (ledger.sent.get(text), messages.get(text).map(Vec::as_slice)) else {
            continue;
        };
        let seq = row[2].parse().unwrap_or(0);
        let before = last.insert((&sent.thread, sent.worker), seq);
        if before.is_some_and(|before| before > seq) {
            found.push(format!("message {} stands before one that was answered earlier", row[0]));
        }
    }
    let questions: BTreeMap<String, Vec<String>> =
        rows(&db, "SELECT message_id, state, answer_message_id FROM questions")?
            .into_iter()
            .map(|mut row| (row.remove(0), row))
            .collect();
    for (text, replied) in &ledger.replied {
        let count = messages.get(text).map_or(0, Vec::len);
        let Some(id) = &replied.id else {
            if count > 1 {
                found.push(format!("`{text}` is there more than once"));
            }
            continue;
        };
        let question = questions.get(&replied.question).map(Vec::as_slice).unwrap_or_default();
        if count != 1 || question.get(1) != Some(id) || !["ANSWERED", "RETRIEVED"].contains(&question[0].as_str()) {
            found.push(format!("answer {id} to {} was accepted, and the question is {question:?}", replied.question));
        }
    }
    for process in &ledger.cancelled {
        if ends.get(process).is_none_or(|end| end[0] != "cancelled") {
            found.push(format!("process {process} was told as cancelled, and is {:?}", ends.get(process)));
        }
    }
    for (process, status) in &ledger.end_statuses {
        if ends.get(process).is_none_or(|end| end[0] != *status) {
            found.push(format!("process {process} was told as {status}, and is {:?}", ends.get(process)));
        }
    }
    for (process, end) in &ledger.ends {
        let text = |value: &Value| {
            value.as_str().map_or_else(|| value.as_i64().map(|at| at.to_string()), |text| Some(text.to_owned()))
        };
        let told: Vec<String> = end.as_array().into_iter().flatten().map(|one| text(one).unwrap_or_default()).collect();
        if ends.get(process).is_none_or(|end| end[..4] != told[..]) {
            found.push(format!("process {process} was told to have ended as {told:?}, and is {:?}", ends.get(process)));
        }
    }
    for (process, result) in &ledger.results {
        if ends.get(process).is_none_or(|end| end[4] != *result) {
            found.push(format!("the result of {process} was read as `{result}`, and is {:?}", ends.get(process)));
        }
    }
    Ok(found)
}

/// Threads of processes that were gone on with.
fn resumed(db: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let sql = "SELECT thread_id FROM assistant_processes
               WHERE process_id IN (SELECT resumed_from FROM assistant_processes)";
    Ok(rows(db, sql)?.into_iter().map(|mut row| row.swap_remove(0)).collect())
}

/// The ledger against what a fresh client is told.
pub(super) fn against_client(ledger: &Ledger, client: &Line) -> Vec<String> {
    let mut found = Vec::new();
    for (process, thread) in ledger.spawned.values().filter_map(|spawned| spawned.answered.as_ref()) {
        match client.call("poll_assistant", &json!({ "process_id": process })) {
            Answer::Done(told) if told["process"]["thread_id"] == **thread && told["process"]["done"] == true => {}
            other => found.push(format!("process {process} was answered; a fresh client is told {other:?}")),
        }
    }
    found
}

/// What each worker followed is complete: its chain of waits tells all ends, and its reading of a thread skipped nothing.
pub(super) fn followed(
    workers: &mut [Followed],
    ledger: &mut Ledger,
    client: &Line,
    db: &Path,
) -> rusqlite::Result<()> {
    for worker in workers {
        for _ in 0..PAGES_MAX {
            let Some(cursor) = &worker.cursor else { break };
            match client.call("wait_assistant", &json!({ "cursor": cursor, "wait_ms": 0 })) {
                Answer::Done(told) if told["events"].as_array().is_some_and(|events| !events.is_empty()) => {
                    worker.follow(&told, ledger);
                }
                Answer::Done(_) => break,
                other => {
                    ledger.violation(format!("a chain of waits cannot be gone on with: {other:?}"));
                    break;
                }
            }
        }
        for process in worker.expected.iter().filter(|process| !worker.told.contains(*process)) {
            ledger.violation(format!("a chain of waits never told the end of {process}"));
        }
        let db = open(db)?;
        let resumed = resumed(&db)?;
        for (thread, reading) in &worker.readings {
            let sql = format!(
                "SELECT id FROM assistant_messages WHERE thread_id = '{thread}' AND created_at <= {} ORDER BY seq",
                reading.since
            );
            let there: Vec<String> = rows(&db, &sql)?.into_iter().map(|mut row| row.swap_remove(0)).collect();
            let mut read: Vec<&String> = reading.ids.iter().collect();
            if resumed.contains(thread) {
                // A resumption took what was queued along.
                read.retain(|id| there.contains(id));
            }
            if there.iter().ne(read) {
                ledger.violation(format!("thread {thread} was read as {:?}, and is {there:?}", reading.ids));
            }
        }
    }
    Ok(())
}
