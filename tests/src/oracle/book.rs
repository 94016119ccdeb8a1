//! The tables as the oracle reads them.

use std::collections::{HashMap, HashSet};

use assistant_host::registry::sha256_hex;
use rusqlite::{Connection, Row};
use serde_json::Value;

/// A row of the process table, with what the log says of it.
pub(super) struct Process {
    pub(super) seq: i64,
    pub(super) id: String,
    pub(super) assistant: String,
    pub(super) parent: Option<String>,
    pub(super) root: String,
    pub(super) session: String,
    pub(super) thread: String,
    pub(super) depth: i64,
    pub(super) detached: bool,
    pub(super) resumed_from: Option<String>,
    pub(super) line: Option<String>,
    pub(super) status: String,
    pub(super) reason: Option<String>,
    pub(super) cause: Option<String>,
    pub(super) marked: bool,
    pub(super) waits: i64,
    pub(super) turns: i64,
    pub(super) tool_calls: i64,
    pub(super) input_tokens: i64,
    pub(super) output_tokens: i64,
    pub(super) reserved: i64,
    pub(super) result: Option<String>,
    pub(super) pictures: Value,
    pub(super) structured: Option<String>,
    pub(super) created_at: i64,
    pub(super) finished_at: Option<i64>,
    pub(super) limits: Value,
    /// Its events, in order.
    pub(super) log: Vec<Event>,
    /// Its recorded conversation, in order, as JSON.
    pub(super) conversation: Vec<Value>,
}

/// An event of a process.
pub(super) struct Event {
    pub(super) seq: i64,
    pub(super) kind: String,
    pub(super) data: Value,
}

/// A message.
#[derive(PartialEq)]
pub(super) struct Message {
    pub(super) seq: i64,
    pub(super) id: String,
    pub(super) thread: String,
    pub(super) kind: String,
    pub(super) from_name: String,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    pub(super) content: String,
    pub(super) delivered: bool,
}

/// A question.
pub(super) struct Question {
    pub(super) id: String,
    pub(super) process: String,
    pub(super) state: String,
    pub(super) answer: Option<String>,
}

/// A session that has ended, and when.
pub(super) struct Session {
    pub(super) id: String,
    pub(super) ended_at: Option<i64>,
}

/// Everything.
pub(super) struct Book {
    /// In the order in which they were spawned.
    pub(super) processes: Vec<Process>,
    pub(super) at: HashMap<String, usize>,
    pub(super) messages: Vec<Message>,
    pub(super) questions: Vec<Question>,
    pub(super) sessions: Vec<Session>,
    /// Results of tool calls by process and call.
    pub(super) results: HashMap<(String, String), Value>,
    /// Tool calls by process: all, and those that have a result.
    pub(super) calls: HashMap<String, (usize, usize)>,
    /// The hashes of blobs, and whether the bytes have them.
    pub(super) blobs: HashMap<String, bool>,
    /// Processes and the hashes of blobs that they use.
    pub(super) uses: HashSet<(String, String)>,
}

impl Process {
    pub(super) fn ended(&self) -> bool {
        ends(&self.status)
    }

    /// Its changes of status: the place in the log, and the status.
    pub(super) fn moves(&self) -> impl Iterator<Item = (i64, &str)> {
        let moves = self.log.iter().filter(|event| event.kind == "status");
        moves.filter_map(|event| Some((event.seq, event.data["status"].as_str()?)))
    }

    /// Where it began, in the log of the host.
    pub(super) fn began(&self) -> Option<i64> {
        self.log.first().map(|event| event.seq)
    }

    /// Where it ended or was marked cancelled.
    pub(super) fn stopped(&self) -> Option<i64> {
        let stop = |event: &&Event| {
            event.kind == "status"
                && (event.data["status"].as_str().is_some_and(ends) || event.data["cancel_requested"].is_string())
        };
        self.log.iter().find(stop).map(|event| event.seq)
    }

    pub(super) fn limit(&self, name: &str) -> i64 {
        self.limits[name].as_i64().unwrap_or(i64::MAX)
    }
}

/// Whether a status is an end.
pub(super) fn ends(status: &str) -> bool {
    matches!(status, "finished" | "failed" | "cancelled")
}

impl Book {
    pub(super) fn process(&self, id: &str) -> Option<&Process> {
        self.at.get(id).map(|at| &self.processes[*at])
    }

    pub(super) fn read(db: &Connection) -> rusqlite::Result<Self> {
        let mut processes = rows(db, "SELECT * FROM assistant_processes ORDER BY seq", process)?;
        let at: HashMap<String, usize> =
            processes.iter().enumerate().map(|(at, process)| (process.id.clone(), at)).collect();
        let events = rows(db, "SELECT process_id, seq, kind, data FROM events ORDER BY seq", |row| {
            let event = Event { seq: row.get(1)?, kind: row.get(2)?, data: json(row.get(3)?) };
            Ok((row.get::<_, String>(0)?, event))
        })?;
        for (process, event) in events {
            if let Some(at) = at.get(&process) {
                processes[*at].log.push(event);
            }
        }
        // The last row of a position counts, up to the length.
        let said = rows(
            db,
            "SELECT c.process_id, c.message FROM conversations c
               JOIN assistant_processes p ON p.process_id = c.process_id AND c.position < p.conversation_length
             WHERE c.seq = (SELECT max(seq) FROM conversations WHERE process_id = c.process_id AND position = c.position)
             ORDER BY c.process_id, c.position",
            |row| Ok((row.get::<_, String>(0)?, json(row.get(1)?))),
        )?;
        for (process, message) in said {
            if let Some(at) = at.get(&process) {
                processes[*at].conversation.push(message);
            }
        }
        let (mut results, mut calls) = (HashMap::new(), HashMap::<String, (usize, usize)>::new());
        let called = rows(db, "SELECT process_id, call_id, result FROM tool_calls", |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, Option<String>>(2)?))
        })?;
        for (process, call, result) in called {
            let count = calls.entry(process.clone()).or_default();
            count.0 += 1;
            if let Some(result) = result {
                count.1 += 1;
                results.insert((process, call), json(result));
            }
        }
        Ok(Self {
            processes,
            at,
            messages: rows(db, "SELECT * FROM assistant_messages ORDER BY seq", message)?,
            questions: rows(db, "SELECT * FROM questions ORDER BY asked_at", question)?,
            sessions: rows(db, "SELECT session_id, ended_at FROM sessions", |row| {
                Ok(Session { id: row.get(0)?, ended_at: row.get(1)? })
            })?,
            results,
            calls,
            blobs: rows(db, "SELECT hash, bytes FROM blobs", |row| {
                let (hash, bytes): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
                let fits = sha256_hex(&bytes) == hash;
                Ok((hash, fits))
            })?
            .into_iter()
            .collect(),
            uses: rows(db, "SELECT process_id, hash FROM blob_uses", |row| Ok((row.get(0)?, row.get(1)?)))?
                .into_iter()
                .collect(),
        })
    }
}

/// What SQLite itself says is wrong with the file.
pub(super) fn damage(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut wrong = rows(db, "PRAGMA quick_check", |row| row.get::<_, String>(0))?;
    wrong.retain(|line| line != "ok");
    let strays = rows(db, "PRAGMA foreign_key_check", |row| row.get::<_, String>(0))?;
    wrong.extend(strays.into_iter().map(|table| format!("a row of {table} refers to one that is not there")));
    Ok(wrong)
}

fn rows<T>(db: &Connection, sql: &str, read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>) -> rusqlite::Result<Vec<T>> {
    db.prepare(sql)?.query_map([], read)?.collect()
}

fn json(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

fn process(row: &Row<'_>) -> rusqlite::Result<Process> {
    Ok(Process {
        seq: row.get("seq")?,
        id: row.get("process_id")?,
        assistant: row.get("assistant_id")?,
        parent: row.get("parent_process_id")?,
        root: row.get("root_process_id")?,
        session: row.get("session_id")?,
        thread: row.get("thread_id")?,
        depth: row.get("depth")?,
        detached: row.get("detached")?,
        resumed_from: row.get("resumed_from")?,
        line: row.get("line")?,
        status: row.get("status")?,
        reason: row.get("reason")?,
        cause: row.get("cause")?,
        marked: row.get::<_, Option<i64>>("cancel_requested_at")?.is_some(),
        waits: row.get("waits")?,
        turns: row.get("turns")?,
        tool_calls: row.get("tool_calls")?,
        input_tokens: row.get("input_tokens")?,
        output_tokens: row.get("output_tokens")?,
        reserved: row.get::<_, i64>("reserved_tokens")? + row.get::<_, i64>("reserved_microdollars")?,
        result: row.get("result")?,
        pictures: row.get::<_, Option<String>>("result_parts")?.map_or(Value::Null, json),
        structured: row.get("structured")?,
        created_at: row.get("created_at")?,
        finished_at: row.get("finished_at")?,
        limits: json(row.get("limits")?),
        log: Vec::new(),
        conversation: Vec::new(),
    })
}

fn message(row: &Row<'_>) -> rusqlite::Result<Message> {
    Ok(Message {
        seq: row.get("seq")?,
        id: row.get("id")?,
        thread: row.get("thread_id")?,
        kind: row.get("kind")?,
        from_name: row.get("from_assistant_id")?,
        from: row.get("from_process_id")?,
        to: row.get("to_process_id")?,
        content: row.get("content")?,
        delivered: row.get::<_, Option<i64>>("delivered_at")?.is_some(),
    })
}

fn question(row: &Row<'_>) -> rusqlite::Result<Question> {
    Ok(Question {
        id: row.get("message_id")?,
        process: row.get("process_id")?,
        state: row.get("state")?,
        answer: row.get("answer_message_id")?,
    })
}
