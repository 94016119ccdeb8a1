//! What the requests of a runner are compared with: laid out from the steps of a recording.

use std::collections::HashMap;

use assistant_protocol::ids::ThreadId;
use assistant_protocol::types::{Message, Role};
use serde_json::{Value, json};

use super::recording::{Answer, Known, ModelAsked, Recording, RunAnswer, Step};
use super::{Difference, What};

/// The kind of error with which a host refuses a thread that is not the runner's.
const FOREIGN: &str = "foreign_thread";
/// What a run that was asked to stop ends with.
const CANCELLED: &str = "cancelled";

/// A request of the runner, as it is waited for and answered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// The nth model call.
    Model(usize),
    /// The nth call of a tool under an id.
    Tool(String, usize),
    /// The nth of all other requests, as recorded.
    Other(usize),
}

/// Something that is recorded to be asked.
pub(super) struct Wanted {
    pub(super) key: Key,
    /// What it is called to people.
    pub(super) place: String,
    pub(super) method: String,
    /// Its params.
    pub(super) params: Value,
    /// It has come.
    pub(super) came: bool,
}

/// What is recorded to be asked, in order.
pub(super) struct Expected(pub(super) Vec<Wanted>);

impl Expected {
    /// Lays out what a recording has. Gives with it the keys of all steps: of what is asked or answered there.
    pub(super) fn of(recording: &Recording) -> (Self, Vec<Option<Key>>) {
        let thread = recording.thread_id;
        let (mut wanted, mut keys) = (Vec::new(), Vec::new());
        let (mut held, mut by_call): (Vec<Message>, HashMap<u64, usize>) = (Vec::new(), HashMap::new());
        let mut of_tools: HashMap<&str, usize> = HashMap::new();
        let mut of_answers: HashMap<&str, usize> = HashMap::new();
        for step in &recording.steps {
            let key = match step {
                Step::Run { .. }
                | Step::Ran { .. }
                | Step::Cancel(_)
                | Step::Deliver { .. }
                | Step::Delivered { .. } => None,
                Step::ModelAsked(asked) => {
                    held.truncate(asked.keep);
                    held.extend(asked.add.iter().cloned());
                    let number = by_call.len();
                    by_call.insert(asked.call, number);
                    let params = model_params(recording, asked, &held);
                    wanted.push(Wanted::new(
                        Key::Model(number),
                        format!("model call {}", number + 1),
                        "on_llm_request",
                        params,
                    ));
                    Some(Key::Model(number))
                }
                Step::ModelAnswered { call, answer } => {
                    if let Answer::Result(result) = answer {
                        held.extend(said(result));
                    }
                    by_call.get(call).map(|number| Key::Model(*number))
                }
                Step::ToolAsked { call_id, tool_name, arguments } => {
                    let nth = of_tools.entry(call_id).and_modify(|nth| *nth += 1).or_default();
                    let key = Key::Tool(call_id.clone(), *nth);
                    let params = json!({ "thread_id": thread, "call_id": call_id, "tool_name": tool_name, "arguments": arguments });
                    let place = format!("the call {call_id} of {tool_name}");
                    wanted.push(Wanted::new(key.clone(), place, "on_tool_call", params));
                    Some(key)
                }
                Step::ToolAnswered { call_id, .. } => {
                    let nth = of_answers.entry(call_id).and_modify(|nth| *nth += 1).or_default();
                    Some(Key::Tool(call_id.clone(), *nth))
                }
                Step::Other { method, params, .. } => {
                    let number = wanted.iter().filter(|one: &&Wanted| one.method == *method).count();
                    let key = Key::Other(keys.len());
                    wanted.push(Wanted::new(key.clone(), format!("{method} {}", number + 1), method, params.clone()));
                    Some(key)
                }
            };
            keys.push(key);
        }
        foreign_threads(recording, &keys, &mut wanted);
        (Self(wanted), keys)
    }

    /// What a request is by the record: it has come then.
    ///
    /// # Errors
    /// How it differs.
    pub(super) fn take(&mut self, method: &str, params: &Value) -> Result<Key, Box<Difference>> {
        let call_id = &params["call_id"];
        let fits = |one: &Wanted| !one.came && one.method == method && one.params["call_id"] == *call_id;
        let exact = |one: &Wanted| fits(one) && one.params == *params;
        // Requests of one kind that are made beside each other may come in any order, model calls excepted.
        let ordered = method == "on_llm_request";
        let at = self.0.iter().position(exact).filter(|_| !ordered).or_else(|| self.0.iter().position(fits));
        let Some(at) = at else { return Err(Box::new(self.too_many(method, params))) };
        let one = &mut self.0[at];
        match Difference::between(one.place.clone(), &one.params, params) {
            Some(difference) => Err(Box::new(difference)),
            None => {
                one.came = true;
                Ok(one.key.clone())
            }
        }
    }

    /// The same for a request that comes while no run is in flight: it has to be what is recorded.
    pub(super) fn take_exact(&mut self, method: &str, params: &Value) -> Option<Key> {
        let one = self.0.iter_mut().find(|one| !one.came && one.method == method && one.params == *params)?;
        one.came = true;
        Some(one.key.clone())
    }

    fn too_many(&self, method: &str, params: &Value) -> Difference {
        let number = self.0.iter().filter(|one| one.method == method).count() + 1;
        let text = |key: &str| params[key].as_str().unwrap_or_default().to_owned();
        let (place, now) = match method {
            "on_llm_request" => (format!("model call {number}"), last_message(params)),
            "on_tool_call" => {
                (format!("the call {} of {}", text("call_id"), text("tool_name")), params["arguments"].clone())
            }
            other => (format!("{other} {number}"), params.clone()),
        };
        let open = self.0.iter().find(|one| !one.came);
        let difference = Difference::of(place, What::TooMany, Value::Null, now);
        match open {
            Some(open) => difference.with_note(format!("{} is recorded and has not come", open.place)),
            None => difference,
        }
    }

    /// What is wanted by its key.
    pub(super) fn find(&self, key: &Key) -> Option<&Wanted> {
        self.0.iter().find(|one| one.key == *key)
    }
}

impl Wanted {
    fn new(key: Key, place: String, method: &str, params: Value) -> Self {
        Self { key, place, method: method.to_owned(), params, came: false }
    }
}

fn last_message(params: &Value) -> Value {
    params["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default()
}

/// What a model call adds to the conversation that a runner holds.
fn said(result: &Value) -> Vec<Message> {
    let inserted = result["inserted"].as_array().into_iter().flatten();
    inserted.chain([&result["message"]]).filter_map(|one| serde_json::from_value(one.clone()).ok()).collect()
}

fn model_params(recording: &Recording, asked: &ModelAsked, held: &[Message]) -> Value {
    let prompt = &recording.run.assistant.system_prompt;
    let usual = (!prompt.trim().is_empty()).then(|| (0, Message::text(Role::System, prompt.as_str())));
    let system = asked.system.clone().unwrap_or_else(|| usual.into_iter().collect());
    let mut messages: Vec<&Message> = held.iter().collect();
    for (place, message) in &system {
        messages.insert((*place).min(messages.len()), message);
    }
    let mut params = json!({ "thread_id": recording.thread_id, "messages": messages });
    let of_run = (!recording.run.tools.is_empty()).then(|| recording.run.tools.clone());
    if let Some(tools) = asked.tools.as_ref().map_or(of_run, |tools| tools.given.clone()) {
        params["tools"] = json!(tools);
    }
    if let Some(options) = &asked.options {
        params["options"] = json!(options);
    }
    params
}

/// A request that was refused for its thread named another one, which is not recorded.
fn foreign_threads(recording: &Recording, keys: &[Option<Key>], wanted: &mut [Wanted]) {
    for (step, key) in recording.steps.iter().zip(keys) {
        let (Step::ModelAnswered { answer, .. } | Step::ToolAnswered { answer, .. }) = step else { continue };
        if let (Answer::Error(failed), Some(key)) = (answer, key)
            && failed.data.get("kind").is_some_and(|kind| kind == FOREIGN)
            && let Some(one) = wanted.iter_mut().find(|one| one.key == *key)
        {
            let named = failed.message.rsplit(' ').next().and_then(|id| id.parse::<ThreadId>().ok());
            one.params["thread_id"] = json!(named);
        }
    }
}

/// How the answer to a run differs from the recorded one. Where answers of the host and `cancel` crossed, the runner may end
/// with what it had before them.
pub(super) fn compare_answers(run: usize, recorded: &RunAnswer, now: &RunAnswer, crossed: bool) -> Option<Difference> {
    let cancelled =
        |answer: &RunAnswer| matches!(answer, RunAnswer::Result { stop_reason, .. } if stop_reason == CANCELLED);
    if crossed && (cancelled(now) || cancelled(recorded)) {
        return None;
    }
    let place = format!("the answer to run {run}");
    let plain = |answer: &RunAnswer, other: &RunAnswer| match (answer, other) {
        (
            RunAnswer::Result { stop_reason, content, structured },
            RunAnswer::Result { content: other, structured: other_structured, .. },
        ) => json!({
            "stop_reason": stop_reason,
            "content": as_known(Some(content), Some(other)),
            "structured": as_known(structured.as_ref(), other_structured.as_ref()),
        }),
        (RunAnswer::Result { stop_reason, content, .. }, RunAnswer::Error(_)) => {
            json!({ "stop_reason": stop_reason, "content": as_known(Some(content), None) })
        }
        (RunAnswer::Error(failed), _) => json!({ "error": failed }),
    };
    let (one, other) = (plain(recorded, now), plain(now, recorded));
    match (recorded, now) {
        (RunAnswer::Result { .. }, RunAnswer::Error(_)) | (RunAnswer::Error(_), RunAnswer::Result { .. }) => {
            Some(Difference::of(place, What::Differs, one, other))
        }
        _ => Difference::between(place, &one, &other),
    }
}

/// A value as it can be compared with another: by its hash where only that is known of one of them.
fn as_known(value: Option<&Known>, other: Option<&Known>) -> Value {
    match (value, other) {
        (None, _) => Value::Null,
        (Some(Known::Hash(hash)), _) => json!({ "sha256": hash }),
        (Some(Known::Whole(value)), Some(Known::Hash(_))) => {
            json!({ "sha256": crate::registry::sha256_hex(value.to_string().as_bytes()) })
        }
        (Some(Known::Whole(value)), _) => value.clone(),
    }
}
