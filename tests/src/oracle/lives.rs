//! The lives of processes: legal moves, one end each, nothing below an end, counts as in the log.

use std::collections::{HashMap, HashSet};

use super::book::{Book, Process, ends};

/// Where a process may go from where it is.
fn may_become(from: Option<&str>, to: &str) -> bool {
    match from {
        None => matches!(to, "queued" | "starting"),
        Some("queued") => matches!(to, "starting" | "failed" | "cancelled"),
        Some("starting") => matches!(to, "running" | "failed" | "cancelled"),
        Some("running") => matches!(to, "waiting" | "finished" | "failed" | "cancelled"),
        Some("waiting") => matches!(to, "running" | "failed" | "cancelled"),
        Some(_) => false,
    }
}

pub(super) fn check(book: &Book, wrong: &mut Vec<String>) {
    let mut resumed: HashMap<&str, &str> = HashMap::new();
    for process in &book.processes {
        let mut bad = |what: String| wrong.push(format!("process {} ({}): {what}", process.id, process.assistant));
        moves(process, &mut bad);
        end(process, &mut bad);
        counts(book, process, &mut bad);
        above(book, process, &mut bad);
        let Some(old) = &process.resumed_from else { continue };
        if let Some(other) = resumed.insert(old, &process.id) {
            bad(format!("{old} was resumed already, as {other}"));
        }
        // One of a line is spawned before the one ends that it goes on from, and starts behind that end.
        let began = match process.line {
            None => process.began(),
            Some(_) => process.moves().find(|(_, status)| *status == "starting").map(|(seq, _)| seq),
        };
        if process.line.is_some() && began.is_none() {
            continue;
        }
        match book.process(old) {
            Some(before) if before.ended() && end_of(before) < began => {}
            _ => bad(format!("{old}, from which it goes on, had not ended")),
        }
    }
}

pub(super) fn check_quiet(book: &Book, wrong: &mut Vec<String>) {
    for process in &book.processes {
        if !process.ended() {
            wrong.push(format!("process {} ({}) has not ended: {}", process.id, process.assistant, process.status));
        }
        if process.reserved != 0 {
            wrong.push(format!("process {} has {} reserved, and nothing is at work", process.id, process.reserved));
        }
    }
}

/// The place of its terminal status in the log.
fn end_of(process: &Process) -> Option<i64> {
    process.moves().find(|(_, status)| ends(status)).map(|(seq, _)| seq)
}

fn moves(process: &Process, bad: &mut impl FnMut(String)) {
    let mut now: Option<&str> = None;
    for (seq, next) in process.moves() {
        if !may_become(now, next) {
            bad(format!("goes from {} to {next} (event {seq})", now.unwrap_or("nothing")));
        }
        now = Some(next);
    }
    if now != Some(process.status.as_str()) {
        bad(format!("its row says {}, its log {}", process.status, now.unwrap_or("nothing")));
    }
    let marked = process.log.iter().any(|event| event.data["cancel_requested"].is_string());
    if marked != process.marked {
        bad("its row and its log differ in whether a cancel was requested".to_owned());
    }
}

fn end(process: &Process, bad: &mut impl FnMut(String)) {
    if process.ended() != process.finished_at.is_some() {
        bad(format!("is {}, and finished_at is {:?}", process.status, process.finished_at));
    }
    if (process.status == "failed") != process.reason.is_some() {
        bad(format!("is {}, and its reason is {:?}", process.status, process.reason));
    }
    if process.cause.is_some() != (process.status == "cancelled" || process.marked) {
        bad(format!("is {}, and its cause is {:?}", process.status, process.cause));
    }
    let said = process.result.as_deref().is_some_and(|text| !text.trim().is_empty());
    if process.status == "finished" && !said && process.structured.is_none() {
        bad("finished without a result".to_owned());
    }
    if process.marked && process.ended() && process.status != "cancelled" {
        bad(format!("was marked cancelled and ended {}", process.status));
    }
    if process.ended() && process.waits != 0 {
        bad(format!("has ended, and {} waits of it are in flight", process.waits));
    }
}

fn counts(book: &Book, process: &Process, bad: &mut impl FnMut(String)) {
    let count = |kind: &str| process.log.iter().filter(|event| event.kind == kind).count() as i64;
    // An agent tells how many calls of its own model an answer stands for.
    let told = process.log.iter().filter(|event| event.kind == "model_answer" && event.data["agent"] == true);
    let asked = count("model_call") + told.filter_map(|event| event.data["calls"].as_i64()).sum::<i64>();
    if asked != process.turns {
        bad(format!("its row counts {} model calls, its log {asked}", process.turns));
    }
    let begun = process.log.iter().filter(|event| event.kind == "tool_call" && event.data.get("arguments").is_some());
    let (calls, results) = book.calls.get(&process.id).copied().unwrap_or_default();
    // A call that was given up after it had a result is told twice: the second one stands.
    let done = process.log.iter().filter(|event| event.kind == "tool_result");
    let done: HashSet<&str> = done.filter_map(|event| event.data["call_id"].as_str()).collect();
    let (begun, done) = (begun.count(), done.len());
    if begun != calls || process.tool_calls != calls as i64 || done != results {
        bad(format!(
            "tool calls: {} counted, {calls} kept, {begun} in the log; results: {results} kept, {done} in the log",
            process.tool_calls
        ));
    }
    let used = |what: &str| -> i64 {
        let answers = process.log.iter().filter(|event| event.kind == "model_answer");
        answers.filter_map(|event| event.data["usage"][what].as_i64()).sum()
    };
    if (used("input_tokens"), used("output_tokens")) != (process.input_tokens, process.output_tokens) {
        bad("its row counts other tokens than its log".to_owned());
    }
}

/// What a process has to do with whatever is above it.
fn above(book: &Book, process: &Process, bad: &mut impl FnMut(String)) {
    if process.depth > process.limit("depth") {
        bad(format!("is {} deep, {} is the most", process.depth, process.limit("depth")));
    }
    let Some(parent) = process.parent.as_deref().map(|id| book.process(id)) else {
        // Below a session: from the start, then it is a root; or passed on when its parent ended. A root is deeper than 1
        // where its host was started by an assistant.
        let root = process.root == process.id;
        if !root && !process.detached {
            bad("has lost its parent, and is not detached".to_owned());
        }
        let session = book.sessions.iter().find(|session| session.id == process.session);
        let ended = session.and_then(|session| session.ended_at).unwrap_or(i64::MAX);
        if root && process.created_at > ended {
            bad("was spawned by a session that had ended".to_owned());
        }
        spared(book, process, bad);
        return;
    };
    let Some(parent) = parent else { return bad("its parent has no row".to_owned()) };
    if parent.ended() && !process.ended() {
        bad(format!("lives below {}, which has ended", parent.id));
    }
    if (process.depth, &process.root, &process.session) != (parent.depth + 1, &parent.root, &parent.session) {
        bad("does not fit the depth, the root or the session of its parent".to_owned());
    }
    if let (Some(stopped), Some(began)) = (parent.stopped(), process.began())
        && began > stopped
    {
        bad(format!("was spawned by {}, which had ended or was marked", parent.id));
    }
    spared(book, process, bad);
}

/// The end of a session spares detached processes and what is below them.
fn spared(book: &Book, process: &Process, bad: &mut impl FnMut(String)) {
    if process.cause.as_deref() != Some("session_ended") {
        return;
    }
    let mut next = Some(process);
    while let Some(one) = next {
        if one.detached {
            return bad(format!("was cancelled by the end of its session, and {} is detached", one.id));
        }
        next = one.parent.as_deref().and_then(|id| book.process(id));
    }
}
