//! Where a process has its messages: inserted before a model call, or in the result of a tool call.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::book::{Book, Message, Process};

/// How a message came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// A model call took it in.
    Inserted,
    /// A call of `recv_message` that wanted unread ones gave it.
    Unread,
    /// A call gave it that may give again what was given before.
    Told,
}

/// One place where a process has a message.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The event, and the place within it.
    pub(super) at: (i64, usize),
    pub(super) way: Way,
    /// The call whose result it is in.
    pub(super) call: Option<String>,
}

/// The places of all messages of a process, by message, each in order.
pub(super) fn of<'a>(book: &'a Book, process: &Process, mine: &[&'a Message]) -> HashMap<&'a str, Vec<Place>> {
    let mut places: HashMap<&str, Vec<Place>> = HashMap::new();
    let mut asked: HashMap<&str, &Value> = HashMap::new();
    for event in &process.log {
        let data = &event.data;
        match event.kind.as_str() {
            "model_call" => {
                for (at, id) in data["inserted"].as_array().into_iter().flatten().enumerate() {
                    if let Some(message) = mine.iter().find(|one| id == one.id.as_str()) {
                        let place = Place { at: (event.seq, at), way: Way::Inserted, call: None };
                        places.entry(&message.id).or_default().push(place);
                    }
                }
            }
            "tool_call" => {
                if let (Some(call), Some(arguments)) = (data["call_id"].as_str(), data.get("arguments")) {
                    asked.insert(call, arguments);
                }
            }
            "tool_result" => {
                let (Some(call), Some(tool)) = (data["call_id"].as_str(), data["tool"].as_str()) else { continue };
                let Some(result) = book.results.get(&(process.id.clone(), call.to_owned())) else { continue };
                let way = asked.get(call).map_or(Way::Told, |arguments| way(tool, arguments));
                for (at, message) in told(book, tool, &result["structured_content"], mine, &places).iter().enumerate() {
                    let place = Place { at: (event.seq, at), way, call: Some(call.to_owned()) };
                    places.entry(&message.id).or_default().push(place);
                }
            }
            _ => {}
        }
    }
    // A result that the runner never took in is no place: what it held is inserted then.
    let results: HashSet<&str> = process.conversation.iter().flat_map(results_in).collect();
    for of_one in places.values_mut() {
        if of_one.iter().any(|place| place.way == Way::Inserted) {
            of_one.retain(|place| place.call.as_deref().is_none_or(|call| results.contains(call)));
        }
    }
    places
}

/// The calls whose results a message of a conversation holds.
pub(super) fn results_in(message: &Value) -> Vec<&str> {
    let parts = message["content"].as_array().into_iter().flatten();
    parts.filter(|part| part["type"] == "tool_result").filter_map(|part| part["call_id"].as_str()).collect()
}

/// Whether a call gives only what its caller did not have.
fn way(tool: &str, arguments: &Value) -> Way {
    let unread = arguments["unread_only"] == true || arguments["unreadOnly"] == true;
    if tool == "recv_message" && unread && arguments["cursor"].is_null() { Way::Unread } else { Way::Told }
}

/// The messages that a result holds whole, in its order.
fn told<'a>(
    book: &Book,
    tool: &str,
    value: &Value,
    mine: &[&'a Message],
    before: &HashMap<&str, Vec<Place>>,
) -> Vec<&'a Message> {
    let by_id = |id: &Value| mine.iter().copied().find(|one| id == one.id.as_str());
    let end_of = |process: &Value| {
        mine.iter().copied().find(|one| one.kind == "final" && one.from.as_deref().is_some_and(|from| process == from))
    };
    let list = |of: &Value| of.as_array().cloned().unwrap_or_default();
    let mut found: Vec<&'a Message> = Vec::new();
    match tool {
        "recv_message" => found.extend(list(&value["messages"]).iter().filter_map(|one| by_id(&one["id"]))),
        "spawn_assistant" if value["result"].is_object() => {
            found.extend(list(&value["result"]["messages"]).iter().filter_map(|one| by_id(&one["id"])));
            if value["result"]["more"] != true {
                found.extend(end_of(&value["process_id"]));
            }
        }
        "ask_parent" | "check_answer" if value["answer"].is_string() => {
            let question = book.questions.iter().find(|one| value["message_id"] == one.id.as_str());
            found.extend(question.and_then(|one| by_id(&Value::from(one.answer.clone()))));
        }
        "get_pending_questions" => {
            found.extend(list(&value["messages"]).iter().filter_map(|one| by_id(&one["id"])));
            let whole =
                |one: &Value| by_id(&one["message_id"]).filter(|found| one["question"] == found.content.as_str());
            found.extend(list(&value["questions"]).iter().filter_map(whole));
            found.sort_by_key(|one| one.seq);
        }
        "wait_assistant" => {
            for event in list(&value["events"]) {
                let whole = |one: &&Message| event["content"].as_str().map(str::trim) == Some(one.content.trim());
                let message = match event["kind"].as_str() {
                    Some("question") => by_id(&event["message_id"]),
                    Some("message") => {
                        let thread =
                            event["process_id"].as_str().and_then(|id| book.process(id)).map(|one| &one.thread);
                        let from = |one: &Message| match &one.from {
                            Some(from) => event["process_id"] == from.as_str(),
                            None => Some(&one.thread) == thread,
                        };
                        let fits =
                            |one: &&&Message| one.kind == "message" && from(one) && whole(one) && !found.contains(*one);
                        let new = mine.iter().filter(fits).find(|one| !before.contains_key(one.id.as_str()));
                        new.or_else(|| mine.iter().find(fits)).copied()
                    }
                    _ => end_of(&event["process_id"]),
                };
                found.extend(message.filter(|one| whole(one)));
            }
        }
        _ => {}
    }
    found
}
