//! Messages and questions: none lost, none twice, in order, answered once.

use std::collections::{HashMap, HashSet};

use assistant_host::message_box::{self, Boxed};
use assistant_protocol::types::Mail;
use serde_json::Value;

use super::book::{Book, Message, Process};
use super::places::{self, Place, Way, results_in};

pub(super) fn check(book: &Book, wrong: &mut Vec<String>) {
    finals(book, wrong);
    logged(book, wrong);
    questions(book, wrong);
    // One that waits for its line has taken nothing over yet.
    let begun = book.processes.iter().filter(|one| one.line.is_none() || one.moves().any(|(_, to)| to == "starting"));
    let resumed: HashSet<&str> = begun.filter_map(|one| one.resumed_from.as_deref()).collect();
    let mut to: HashMap<&str, Vec<&Message>> = HashMap::new();
    for message in &book.messages {
        let Some(process) = &message.to else { continue };
        to.entry(process).or_default().push(message);
    }
    for (id, mine) in to {
        let Some(process) = book.process(id) else { continue };
        let mut bad = |what: String| wrong.push(format!("mail of process {id} ({}): {what}", process.assistant));
        for message in mine.iter().filter(|one| !one.delivered) {
            if process.status == "finished" && message.kind != "answer" {
                bad(format!("{} {} waits, and the process finished", message.kind, message.id));
            }
            if resumed.contains(id) && message.kind != "question" {
                bad(format!("{} {} waits, and the resumption will never see it", message.kind, message.id));
            }
        }
        // Without a model call there is no conversation: an adapter, or one that ended before.
        if process.turns > 0 {
            let places = places::of(book, process, &mine);
            held(process, &mine, &places, &mut bad);
            inserted_once(book, process, &mine, &places, &mut bad);
            in_order(&mine, &places, &mut bad);
        }
    }
}

/// One final message for each end, to the parent or the one that goes on from it.
fn finals(book: &Book, wrong: &mut Vec<String>) {
    let mut ends: HashMap<&str, Vec<&Message>> = HashMap::new();
    for message in book.messages.iter().filter(|one| one.kind == "final") {
        ends.entry(message.from.as_deref().unwrap_or_default()).or_default().push(message);
    }
    for process in &book.processes {
        let told = ends.remove(process.id.as_str()).unwrap_or_default();
        if told.len() != usize::from(process.ended()) {
            wrong.push(format!("process {} is {} and has {} final messages", process.id, process.status, told.len()));
        }
        for message in told {
            let line = std::iter::successors(message.to.as_deref().and_then(|id| book.process(id)), |one| {
                one.resumed_from.as_deref().and_then(|id| book.process(id))
            });
            let fits = match &process.parent {
                None => message.to.is_none(),
                Some(parent) => line.into_iter().any(|one| one.id == *parent),
            };
            if !fits {
                wrong.push(format!("the end of process {} was told to {:?}", process.id, message.to));
            }
        }
    }
    wrong.extend(ends.into_keys().map(|from| format!("there is a final message of {from}, which has no row")));
}

/// Each message has its event, and each event its message.
fn logged(book: &Book, wrong: &mut Vec<String>) {
    let mut told: HashSet<&str> = HashSet::new();
    for process in &book.processes {
        let events = process.log.iter().filter(|event| event.kind == "message");
        told.extend(events.filter_map(|event| event.data["message_id"].as_str()));
    }
    for message in &book.messages {
        if !told.remove(message.id.as_str()) {
            wrong.push(format!("message {} is in no log", message.id));
        }
    }
    wrong.extend(told.into_iter().map(|id| format!("message {id} is in the log and not in the box")));
}

fn questions(book: &Book, wrong: &mut Vec<String>) {
    let message = |id: &str| book.messages.iter().find(|one| one.id == id);
    let mut answers: HashSet<&str> = HashSet::new();
    for question in &book.questions {
        let mut bad = |what: &str| wrong.push(format!("question {} ({}): {what}", question.id, question.state));
        let answered = matches!(question.state.as_str(), "ANSWERED" | "RETRIEVED");
        if answered != question.answer.is_some() {
            bad("its state does not fit whether it has an answer");
        }
        if question.state == "PENDING" && book.process(&question.process).is_none_or(Process::ended) {
            bad("it is pending, and its process has ended");
        }
        if message(&question.id).is_none_or(|one| one.kind != "question") {
            bad("it is no message");
        }
        let Some(answer) = &question.answer else { continue };
        if !answers.insert(answer) {
            bad("its answer is one of another question");
        }
        match message(answer) {
            Some(one) if one.kind == "answer" && one.delivered != (question.state == "RETRIEVED") => {
                bad("its state does not fit whether the answer was handed over");
            }
            Some(_) => {}
            None => bad("its answer is no message"),
        }
    }
    let strays = book.messages.iter().filter(|one| one.kind == "answer" && !answers.contains(one.id.as_str()));
    wrong.extend(strays.map(|one| format!("answer {} is a second one, or to no question", one.id)));
}

/// What was delivered is in the record; what is given as new was not there before.
fn held(process: &Process, mine: &[&Message], places: &HashMap<&str, Vec<Place>>, bad: &mut impl FnMut(String)) {
    let results: HashSet<&str> = process.conversation.iter().flat_map(results_in).collect();
    for message in mine {
        let what = || format!("{} {}", message.kind, message.id);
        let had = places.get(message.id.as_str()).map_or(&[][..], Vec::as_slice);
        let first = had.first();
        match first {
            None if message.delivered => bad(format!("{} was delivered, and is nowhere in the record", what())),
            Some(_) if !message.delivered => bad(format!("{} is in the record, and was not delivered", what())),
            Some(Place { call: Some(call), .. }) if !results.contains(call.as_str()) => {
                bad(format!("{} is in the result of {call}, which is not in the conversation", what()));
            }
            _ => {}
        }
        for again in had.iter().skip(1).filter(|place| place.way != Way::Told) {
            bad(format!("{} is there already when it comes as new ({again:?})", what()));
        }
        if message.kind == "answer" && had.iter().any(|place| place.way != Way::Told) {
            bad(format!("{} was inserted", what()));
        }
    }
}

/// The text of each inserted message stands in the conversation as often as it was inserted.
fn inserted_once(
    book: &Book,
    process: &Process,
    mine: &[&Message],
    places: &HashMap<&str, Vec<Place>>,
    bad: &mut impl FnMut(String),
) {
    let mut wanted: HashMap<Value, usize> = HashMap::new();
    for message in mine {
        let inserted = |places: &Vec<Place>| places.first().is_some_and(|place| place.way == Way::Inserted);
        if !places.get(message.id.as_str()).is_some_and(inserted) {
            continue;
        }
        match as_inserted(message) {
            Some(text) => *wanted.entry(text).or_default() += 1,
            None => bad(format!("{} {} cannot be read", message.kind, message.id)),
        }
    }
    // What it goes on with from an earlier process stands before it.
    let before = process.resumed_from.as_deref().and_then(|id| book.process(id));
    for (text, count) in wanted {
        let times = |of: &Process| of.conversation.iter().filter(|one| **one == text).count();
        let found = times(process).saturating_sub(before.map_or(0, times));
        if found != count {
            bad(format!("inserted {count} times, {found} times in the conversation: {text}"));
        }
    }
}

/// A message as it stands in a conversation.
fn as_inserted(message: &Message) -> Option<Value> {
    let process = |id: &Option<String>| id.as_ref().map(|id| id.parse()).transpose().ok();
    let boxed = Boxed {
        seq: message.seq,
        kind: match message.kind.as_str() {
            "question" => message_box::Kind::Question,
            "final" => message_box::Kind::Final,
            "answer" => message_box::Kind::Answer,
            _ => message_box::Kind::Message,
        },
        thread: message.thread.parse().ok()?,
        delivered: message.delivered,
        mail: Mail {
            id: message.id.parse().ok()?,
            from_assistant_id: message.from_name.clone(),
            to_assistant_id: String::new(),
            from_process_id: process(&message.from)?,
            to_process_id: process(&message.to)?,
            content: message.content.clone(),
            created_at: 0,
            read_at: None,
        },
    };
    serde_json::to_value(message_box::as_conversation(&boxed)).ok()
}

/// What a process has of one sender, it has in the order in which it was sent.
fn in_order(mine: &[&Message], places: &HashMap<&str, Vec<Place>>, bad: &mut impl FnMut(String)) {
    let place = |message: &Message| places.get(message.id.as_str()).and_then(|places| places.first()).map(|one| one.at);
    let mut last: HashMap<Option<&str>, &Message> = HashMap::new();
    for message in mine.iter().filter(|one| one.kind != "answer") {
        let Some(before) = last.insert(message.from.as_deref(), message) else { continue };
        let (at, earlier) = (place(message), place(before));
        // Nothing comes behind what has not come yet.
        if at.is_some() && earlier.is_none_or(|earlier| Some(earlier) > at) {
            bad(format!("{} came before {}, which was sent earlier", message.id, before.id));
        }
    }
}
