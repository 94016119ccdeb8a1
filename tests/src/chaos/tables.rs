//! What the tables of a host say, read without it: whether they agree with each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

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

/// Everything in which the tables do not agree. All is quiet: nothing lives.
pub(super) fn check(db: &Path) -> rusqlite::Result<Vec<String>> {
    let db = open(db)?;
    let mut found = Vec::new();
    for (what, sql) in AGREE {
        for row in rows(&db, sql)? {
            found.push(format!("{what}: {}", row.join(" ")));
        }
    }
    found.extend(lives(&db)?);
    found.extend(conversations(&db)?);
    Ok(found)
}

/// What no table may hold, each with the query that finds it.
const AGREE: &[(&str, &str)] = &[
    (
        "it has not ended",
        "SELECT process_id, status FROM assistant_processes WHERE status NOT IN ('finished', 'failed', 'cancelled')",
    ),
    (
        "it ended without saying why, when or with what",
        "SELECT process_id, status FROM assistant_processes
         WHERE finished_at IS NULL OR status = 'failed' AND (reason IS NULL OR coalesce(error, '') = '')
           OR status = 'cancelled' AND cause IS NULL OR status = 'finished' AND coalesce(trim(result), '') = ''",
    ),
    (
        "it was to be cancelled and ended otherwise",
        "SELECT process_id, status, reason FROM assistant_processes
         WHERE cancel_requested_at IS NOT NULL AND status <> 'cancelled'",
    ),
    (
        "it waits, and has ended",
        "SELECT process_id, waits FROM assistant_processes WHERE waits <> 0",
    ),
    (
        "its end is not told once",
        "SELECT p.process_id, count(m.id) FROM assistant_processes p
         LEFT JOIN assistant_messages m ON m.kind = 'final' AND m.from_process_id = p.process_id
         GROUP BY p.process_id HAVING count(m.id) <> 1",
    ),
    (
        "it finished while messages waited for it",
        "SELECT p.process_id, m.id FROM assistant_processes p JOIN assistant_messages m ON m.to_process_id = p.process_id
         WHERE p.status = 'finished' AND m.kind <> 'answer' AND m.delivered_at IS NULL",
    ),
    (
        "mail waits for one whose resumption will never see it",
        "SELECT m.id, m.kind, m.to_process_id FROM assistant_messages m
         JOIN assistant_processes n ON n.resumed_from = m.to_process_id
         WHERE m.delivered_at IS NULL AND m.kind <> 'question'",
    ),
    (
        "a process has two resumptions",
        "SELECT resumed_from, count(*) FROM assistant_processes WHERE resumed_from IS NOT NULL
         GROUP BY resumed_from HAVING count(*) > 1",
    ),
    (
        "a question is open and its process has ended",
        "SELECT q.message_id FROM questions q JOIN assistant_processes p ON p.process_id = q.process_id
         WHERE q.state = 'PENDING' AND p.finished_at IS NOT NULL",
    ),
    (
        "a question and its answer do not agree",
        "SELECT q.message_id, q.state FROM questions q LEFT JOIN assistant_messages a ON a.id = q.answer_message_id
         WHERE (q.state IN ('ANSWERED', 'RETRIEVED')) <> (a.id IS NOT NULL)",
    ),
    (
        "a message has no event",
        "SELECT m.id, m.kind FROM assistant_messages m WHERE NOT EXISTS (SELECT 1 FROM events e
           WHERE e.kind = 'message' AND json_extract(e.data, '$.message_id') = m.id)",
    ),
    (
        "an event has no message",
        "SELECT e.seq, e.data FROM events e WHERE e.kind = 'message' AND NOT EXISTS (SELECT 1 FROM assistant_messages m
           WHERE m.id = json_extract(e.data, '$.message_id'))",
    ),
    (
        "a tree is larger than its limit",
        "SELECT root_process_id, count(*) FROM assistant_processes GROUP BY root_process_id
         HAVING count(*) > min(json_extract(limits, '$.spawns_per_tree'))",
    ),
    (
        "it lies deeper than its limit",
        "SELECT process_id, depth FROM assistant_processes WHERE depth > json_extract(limits, '$.depth')",
    ),
];

/// Each process went from status to status as the life of one goes, and ended once, as its row says.
fn lives(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let legal = |from: &str, to: &str| match from {
        "" => to == "queued" || to == "starting",
        "queued" => to == "starting",
        "starting" => to == "running",
        "running" => to == "waiting",
        "waiting" => to == "running",
        _ => false,
    };
    let statuses = rows(
        db,
        "SELECT process_id, json_extract(data, '$.status'), json_extract(data, '$.reason'), json_extract(data, '$.cause')
         FROM events WHERE kind = 'status' AND json_extract(data, '$.status') IS NOT NULL ORDER BY seq",
    )?;
    let mut last: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut found = Vec::new();
    for mut row in statuses {
        let process = row.remove(0);
        let before = last.get(&process).map_or("", |row| row[0].as_str());
        let over = ENDS.contains(&before);
        if over || !(legal(before, &row[0]) || ENDS.contains(&row[0].as_str())) {
            found.push(format!("process {process} went from `{before}` to `{}`", row[0]));
        }
        last.insert(process, row);
    }
    for row in rows(db, "SELECT process_id, status, reason, cause FROM assistant_processes")? {
        let told = last.get(&row[0]).map(Vec::as_slice).unwrap_or_default();
        if told != &row[1..] {
            found.push(format!("process {} is {:?}, and its log ends with {told:?}", row[0], &row[1..]));
        }
    }
    Ok(found)
}

/// What was handed over is in the receiver's conversation, once, and in the order of each pair.
fn conversations(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut record: BTreeMap<String, Vec<Said>> = BTreeMap::new();
    let current = "SELECT c.process_id, c.message_id, c.message FROM conversations c
         JOIN assistant_processes p ON p.process_id = c.process_id
         WHERE c.position < p.conversation_length AND c.seq = (SELECT max(seq) FROM conversations
           WHERE process_id = c.process_id AND position = c.position) ORDER BY c.process_id, c.position";
    for mut row in rows(db, current)? {
        let mut said = Said { inserts: std::mem::take(&mut row[1]), ..Said::default() };
        said.read(&serde_json::from_str(&row[2]).unwrap_or(Value::Null));
        record.entry(row.swap_remove(0)).or_default().push(said);
    }
    let mail = rows(
        db,
        "SELECT id, to_process_id, from_process_id, kind, trim(content), seq FROM assistant_messages
         WHERE to_process_id IS NOT NULL AND delivered_at IS NOT NULL AND kind <> 'answer' ORDER BY seq",
    )?;
    let known: BTreeSet<&str> = mail.iter().map(|row| row[0].as_str()).collect();
    let mut order: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for row in &mail {
        let [id, to, from, kind, content, _] = row.as_slice() else { continue };
        let said = record.get(to).map(Vec::as_slice).unwrap_or_default();
        let inserted: Vec<usize> = (0..said.len()).filter(|at| said[*at].inserts == *id).collect();
        let told = || (0..said.len()).find(|at| said[*at].tells(id, from, kind, content));
        let places: Vec<usize> = inserted.into_iter().chain(told()).collect();
        match places.as_slice() {
            [] => found.push(format!("{kind} {id} is delivered and not in the conversation of {to}")),
            [at] => {
                let last = order.entry((to, from)).or_default();
                if at < last {
                    found.push(format!(
                        "{kind} {id} of {from} stands before an earlier one in the conversation of {to}"
                    ));
                }
                *last = *at;
            }
            _ => found.push(format!("{kind} {id} is more than once in the conversation of {to}")),
        }
    }
    for (process, said) in &record {
        for id in said.iter().map(|one| one.inserts.as_str()).filter(|id| !id.is_empty() && !known.contains(id)) {
            found.push(format!("message {id} is in the conversation of {process} and not marked as delivered"));
        }
    }
    Ok(found)
}

/// One message of a conversation.
#[derive(Default)]
struct Said {
    /// The message of the box that it is.
    inserts: String,
    /// All texts in it, those within JSON in texts too.
    texts: BTreeSet<String>,
    /// Processes of whose end a tool told in it.
    ended: BTreeSet<String>,
}

impl Said {
    fn read(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.texts.insert(text.trim().to_owned());
                if text.starts_with(['{', '[']) {
                    self.read(&serde_json::from_str(text).unwrap_or(Value::Null));
                }
            }
            Value::Array(all) => all.iter().for_each(|one| self.read(one)),
            Value::Object(map) => {
                let is_end = |key: &str| map.get(key).and_then(Value::as_str).is_some_and(|word| ENDS.contains(&word));
                if let Some(process) = map.get("process_id").and_then(Value::as_str)
                    && (is_end("status") || is_end("kind"))
                {
                    self.ended.insert(process.to_owned());
                }
                map.values().for_each(|one| self.read(one));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Whether a tool handed this message over in it.
    fn tells(&self, id: &str, from: &str, kind: &str, content: &str) -> bool {
        let in_words = self.texts.contains(content) && (from.is_empty() || self.texts.contains(from));
        self.inserts.is_empty() && (self.texts.contains(id) || in_words || kind == "final" && self.ended.contains(from))
    }
}
