//! What the tables of a host say, read without it. Whether they agree with each other is for [`crate::oracle`].

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use super::ledger::Totals;

/// Statuses of ends.
pub(super) const ENDS: [&str; 3] = ["finished", "failed", "cancelled"];

/// The tables, to be read only. They may be written by a host meanwhile.
pub(super) fn open(db: &Path) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags(db, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.pragma_update(None, "busy_timeout", 5_000)?;
    Ok(db)
}

/// The rows of a query, each as its columns' texts; null is empty.
pub(super) fn rows(db: &Connection, sql: &str) -> rusqlite::Result<Vec<Vec<String>>> {
    let mut look = db.prepare(sql)?;
    let columns = look.column_count();
    let rows = look.query_map([], |row| {
        (0..columns)
            .map(|at| {
                Ok(match row.get_ref(at)? {
                    rusqlite::types::ValueRef::Null => String::new(),
                    rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                    rusqlite::types::ValueRef::Real(number) => number.to_string(),
                    rusqlite::types::ValueRef::Text(text) | rusqlite::types::ValueRef::Blob(text) => {
                        String::from_utf8_lossy(text).into_owned()
                    }
                })
            })
            .collect()
    })?;
    rows.collect()
}

/// Processes that have not ended, each with its status.
pub(super) fn living(db: &Path) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT process_id || ' (' || assistant_id || ') is ' || status FROM assistant_processes
               WHERE status IN ('queued', 'starting', 'running', 'waiting')";
    Ok(rows(&open(db)?, sql)?.into_iter().map(|mut row| row.swap_remove(0)).collect())
}

/// How each process ended: status, reason, cause, time, result.
pub(super) fn ends(db: &Path) -> rusqlite::Result<BTreeMap<String, Vec<String>>> {
    let sql = "SELECT process_id, status, reason, cause, finished_at, result FROM assistant_processes";
    Ok(rows(&open(db)?, sql)?.into_iter().map(|mut row| (row.remove(0), row)).collect())
}

/// The events of an answer of a wait that came more than `late_ms` ago, in words.
pub(super) fn late(db: &Path, events: &Value, late_ms: i64) -> Vec<String> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    let Ok(db) = open(db) else { return Vec::new() };
    let mut late = Vec::new();
    for event in events.as_array().into_iter().flatten() {
        let (process, kind) =
            (event["process_id"].as_str().unwrap_or_default(), event["kind"].as_str().unwrap_or_default());
        let sql = if ENDS.contains(&kind) {
            "SELECT max(finished_at) FROM assistant_processes WHERE process_id = ?1"
        } else {
            "SELECT max(created_at) FROM assistant_messages WHERE from_process_id = ?1 AND to_process_id IS NULL"
        };
        let at: rusqlite::Result<Option<i64>> = db.query_row(sql, [process], |row| row.get(0));
        if let Ok(Some(at)) = at
            && now - at > late_ms
        {
            late.push(format!(
                "a wait ended by its time limit and told {kind} of {process}, which was {} ms ago",
                now - at
            ));
        }
    }
    late
}

/// Adds what a round has made, by clients and assistants, to the totals.
pub(super) fn count(db: &Path, totals: &Totals) -> rusqlite::Result<()> {
    let db = open(db)?;
    for (what, sql) in [
        ("messages stored", "SELECT count(*) FROM assistant_messages"),
        ("processes", "SELECT count(*) FROM assistant_processes"),
        ("questions asked", "SELECT count(*) FROM questions"),
        ("messages inserted or handed over", "SELECT count(*) FROM assistant_messages WHERE delivered_at IS NOT NULL"),
    ] {
        totals.add(what, db.query_row(sql, [], |row| row.get(0))?);
    }
    Ok(())
}
