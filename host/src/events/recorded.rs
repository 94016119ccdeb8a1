//! From the log of a process, its conversation and its tool calls to what passed on its link.

use std::collections::HashMap;

use assistant_protocol::ids::{MessageId, ProcessId};
use assistant_protocol::types::{CancelParams, LlmRequestResult, Message, Part, Role, RunParams};
use rusqlite::Connection;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Event, Kind};
use crate::replay::{Answer, Failed, Known, ModelAsked, NoReplay, Recording, RunAnswer, Step};
use crate::store::StoreError;
use crate::{conversation, message_box, process_table};

/// Events that are read at once.
const EVENTS: u32 = 1_000;

/// The processes whose id begins or ends with `part`, at most `limit`.
#[cfg(feature = "cli")]
pub(crate) fn named(db: &Connection, part: &str, limit: u32) -> rusqlite::Result<Vec<String>> {
    let mut look = db.prepare(
        "SELECT process_id FROM assistant_processes
         WHERE substr(process_id, 1, length(?1)) = ?1 OR substr(process_id, -length(?1)) = ?1 ORDER BY seq DESC LIMIT ?2",
    )?;
    let rows = look.query_map((part, limit), |row| row.get(0))?;
    rows.collect()
}

/// What is recorded of a process, at one moment.
pub(crate) fn read(db: &Connection, process: ProcessId) -> Result<Recording, NoReplay> {
    // One state of all tables, though a host may be at work.
    let tx = db.unchecked_transaction().map_err(StoreError::from)?;
    let row = process_table::find(&tx, process)?.ok_or(NoReplay::Unknown(process))?;
    if row.agent {
        return Err(NoReplay::OfAgent(process));
    }
    let mut events = Vec::new();
    loop {
        let after = events.last().map_or(0, |event: &Event| event.seq);
        let more = super::read(&tx, process, after, EVENTS)?;
        let last = more.len() < EVENTS as usize;
        events.extend(more);
        if last {
            break;
        }
    }
    let first = events.iter().find(|event| event.kind == Kind::Run && event.data["run"] == 1);
    let Some(first) = first else {
        return Err(not_recorded(&row, &events));
    };
    let run = first_run(&tx, &row, &first.data)?;
    let limits = field(&first.data["limits"])?;
    let mut reader = Reader {
        db: &tx,
        said: Said::read(&tx, process)?,
        held: Vec::new(),
        system: None,
        tools: None,
        results: results(&tx, process)?,
    };
    let mut recording = Recording::new(process, row.thread, limits, run);
    recording.status = row.status.name().to_owned();
    recording.runner = row.runner.clone();
    recording.reason = row.reason.map(|reason| reason.name().to_owned());
    let left_off = |event: &&Event| event.kind == Kind::Asked && event.data["left_off"] == true;
    for event in events.iter().take_while(|event| !left_off(event)) {
        reader.add(event, &mut recording.steps)?;
    }
    in_order(&mut recording.steps);
    Ok(recording)
}

/// Why there is no beginning of a run in a log.
fn not_recorded(row: &process_table::Process, events: &[Event]) -> NoReplay {
    let numbered = |event: &Event| event.kind == Kind::ModelCall && event.data["call"].is_u64();
    let (process, status) = (row.id, row.status.name());
    match events {
        // Where a process is removed, its log goes first, from its beginning.
        [] => lacks("all that it did: its log is removed already"),
        events if events.iter().any(numbered) => lacks("its beginning: its log is removed in part"),
        events if events.iter().any(|event| event.kind == Kind::ModelCall) => NoReplay::Earlier(process),
        _ => NoReplay::NeverRun { process, status },
    }
}

fn first_run(db: &Connection, row: &process_table::Process, told: &Value) -> Result<RunParams, NoReplay> {
    let definition = process_table::definition(db, row)?;
    let given = process_table::given(db, row.id)?;
    let tools = process_table::given_tools(db, row.id)?.ok_or_else(|| lacks("its tools"))?;
    let prompt = told["prompt"].as_str().unwrap_or_default();
    let history = match told["history"].as_u64() {
        Some(length) => Some(history(db, row, usize::try_from(length).unwrap_or(usize::MAX))?),
        None => None,
    };
    Ok(given.first_run(row, (definition.name, definition.system_prompt + prompt), tools, history))
}

/// What a process went on with: of the one before, or as its runner gave it back.
fn history(db: &Connection, row: &process_table::Process, length: usize) -> Result<Vec<Message>, NoReplay> {
    if let Some(before) = row.resumed_from {
        let history = conversation::history(db, before)?;
        if history.len() == length {
            return Ok(history);
        }
    }
    let said = conversation::since(db, row.id, 0, u32::try_from(length).unwrap_or(u32::MAX))?;
    if said.len() < length {
        return Err(lacks("the conversation that it went on with, which is removed"));
    }
    Ok(said.into_iter().map(|one| one.message).collect())
}

fn results(db: &Connection, process: ProcessId) -> Result<HashMap<String, Value>, StoreError> {
    let mut look = db.prepare("SELECT call_id, result FROM tool_calls WHERE process_id = ?1 AND result IS NOT NULL")?;
    let rows = look.query_map([process.to_string()], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
    rows.map(|row| {
        let (call_id, json) = row?;
        Ok((call_id, serde_json::from_str(&json).map_err(StoreError::damaged)?))
    })
    .collect()
}

/// All messages that were recorded of a conversation.
struct Said {
    rows: Vec<conversation::Recorded>,
    by_hash: HashMap<String, usize>,
}

impl Said {
    fn read(db: &Connection, process: ProcessId) -> Result<Self, StoreError> {
        let rows = conversation::since(db, process, 0, u32::MAX)?;
        let by_hash = rows.iter().enumerate().map(|(at, row)| (conversation::hash(&row.message), at)).collect();
        Ok(Self { rows, by_hash })
    }

    fn of(&self, hash: &Value) -> Result<Message, NoReplay> {
        let at = hash.as_str().and_then(|hash| self.by_hash.get(hash));
        at.map(|at| self.rows[*at].message.clone()).ok_or_else(|| lacks("a message of its conversation"))
    }

    /// The first `length` messages as they were when `seq` was the newest of all.
    fn at(&self, length: usize, seq: i64) -> Result<Vec<Message>, NoReplay> {
        let mut found: Vec<Option<&Message>> = vec![None; length];
        for row in self.rows.iter().take_while(|row| row.seq <= seq) {
            if let Some(place) = found.get_mut(row.position as usize) {
                *place = Some(&row.message);
            }
        }
        let whole: Option<Vec<Message>> = found.into_iter().map(Option::<&Message>::cloned).collect();
        whole.ok_or_else(|| lacks("a message of its conversation"))
    }
}

struct Reader<'a> {
    db: &'a Connection,
    said: Said,
    /// The conversation as the runner holds it, if it takes in what it is answered.
    held: Vec<Message>,
    system: Option<Value>,
    tools: Option<Value>,
    /// What tool calls came to.
    results: HashMap<String, Value>,
}

impl Reader<'_> {
    fn add(&mut self, event: &Event, steps: &mut Vec<Step>) -> Result<(), NoReplay> {
        let told = &event.data;
        match event.kind {
            Kind::Run => steps.extend(self.run(told)?),
            // An earlier host numbered no calls.
            Kind::ModelCall if told["call"].is_u64() => {
                let length = told["prefix"].as_u64().unwrap_or(0) + told["new"].as_u64().unwrap_or(0);
                let messages = self.said.at(usize::try_from(length).unwrap_or(0), told["seq"].as_i64().unwrap_or(0))?;
                steps.push(self.model_asked(told, messages)?);
            }
            Kind::ModelAnswer if told["error"].is_null() && told["call"].is_u64() => {
                let call = told["call"].as_u64().unwrap_or(0);
                steps.push(Step::ModelAnswered { call, answer: self.model_answer(told)? });
            }
            Kind::ToolCall if told["arguments"].is_null() && told.get("approved").is_some() => {}
            Kind::ToolCall => steps.push(tool_asked(told)),
            Kind::ToolResult => {
                let call_id = text(&told["call_id"]);
                let result = self.results.get(&call_id).cloned().ok_or_else(|| lacks("the result of a tool call"))?;
                // Of a call that was given up there are two.
                steps.retain(|step| !matches!(step, Step::ToolAnswered { call_id: known, .. } if *known == call_id));
                steps.push(Step::ToolAnswered { call_id, answer: Answer::Result(result) });
            }
            Kind::Asked => self.request(told, steps)?,
            Kind::Message if told["kind"] == "delivered" => {
                steps.push(Step::Delivered { message_id: field(&told["message_id"])? });
            }
            Kind::Status
            | Kind::ModelRetry
            | Kind::ModelCall
            | Kind::ModelAnswer
            | Kind::Refused
            | Kind::Server
            | Kind::Message
            | Kind::Progress
            | Kind::Stderr
            | Kind::Link => {}
        }
        Ok(())
    }

    fn run(&self, told: &Value) -> Result<Option<Step>, NoReplay> {
        if told["run"].is_u64() {
            return Ok(Some(Step::Run { query: field(&told["query"])? }));
        }
        if told["cancel"].is_string() {
            let grace_ms = told["grace_ms"].as_u64().unwrap_or(0);
            return Ok(Some(Step::Cancel(CancelParams { reason: text(&told["cancel"]), grace_ms })));
        }
        if told["deliver"].is_string() {
            let id: MessageId = field(&told["deliver"])?;
            let found = message_box::find(self.db, id)?.ok_or_else(|| lacks("a message that it was given"))?;
            let mut mail = found.mail;
            mail.read_at = None;
            return Ok(Some(Step::Deliver { message: Box::new(mail) }));
        }
        if !told["answered"].is_u64() {
            return Ok(None);
        }
        if told["error"].is_object() {
            return Ok(Some(Step::Ran { answer: RunAnswer::Error(field(&told["error"])?) }));
        }
        let content = match told["content"]["said"] == true {
            true => {
                let last = self.held.iter().rev().find(|message| message.role == Role::Assistant);
                Known::Whole(json!(last.ok_or_else(|| lacks("what was said last"))?.content))
            }
            false => known(&told["content"]),
        };
        let structured = (!told["structured"].is_null()).then(|| known(&told["structured"]));
        Ok(Some(Step::Ran {
            answer: RunAnswer::Result { stop_reason: told["stop_reason"].clone(), content, structured },
        }))
    }

    fn model_asked(&mut self, told: &Value, messages: Vec<Message>) -> Result<Step, NoReplay> {
        for (kept, key) in [(&mut self.system, "system"), (&mut self.tools, "tools")] {
            match &told[key] {
                Value::Null => {}
                Value::String(_) => {}
                told => *kept = Some(told.clone()),
            }
        }
        let of = |kept: &Option<Value>, key: &str| if told[key].is_null() { Value::Null } else { json!(kept) };
        let keep = self.held.iter().zip(&messages).take_while(|(held, now)| held == now).count();
        let asked = ModelAsked {
            call: told["call"].as_u64().unwrap_or(0),
            keep,
            add: messages[keep..].to_vec(),
            system: field(&of(&self.system, "system"))?,
            tools: field(&of(&self.tools, "tools"))?,
            options: field(&told["options"])?,
        };
        self.held = messages;
        Ok(Step::ModelAsked(asked))
    }

    fn model_answer(&mut self, told: &Value) -> Result<Answer, NoReplay> {
        let given = told["given"].as_array().into_iter().flatten();
        let inserted: Vec<Message> = given.map(|hash| self.said.of(hash)).collect::<Result<_, _>>()?;
        let message = self.said.of(&told["message"])?;
        self.held.extend(inserted.iter().chain([&message]).cloned());
        Ok(Answer::Result(json!(LlmRequestResult {
            message,
            finish_reason: field(&told["finish_reason"])?,
            usage: field(&told["usage"])?,
            model: text(&told["model"]),
            inserted: (!inserted.is_empty()).then_some(inserted),
        })))
    }

    fn request(&mut self, told: &Value, steps: &mut Vec<Step>) -> Result<(), NoReplay> {
        let error = (!told["error"].is_null()).then(|| field::<Failed>(&told["error"])).transpose()?.map(Answer::Error);
        match (told["method"].as_str().unwrap_or_default(), error) {
            ("on_llm_request", Some(answer)) => {
                let call = told["call"].as_u64().unwrap_or(0);
                let is_known = |step: &Step| matches!(step, Step::ModelAsked(asked) if asked.call == call);
                if !steps.iter().any(is_known) {
                    let prefix = usize::try_from(told["prefix"].as_u64().unwrap_or(0)).unwrap_or(0);
                    let mut messages = self.said.at(prefix, told["seq"].as_i64().unwrap_or(0))?;
                    messages.extend(field::<Vec<Message>>(&told["messages"])?);
                    steps.push(self.model_asked(told, messages)?);
                }
                // The runner got the error, whatever the model said.
                steps.retain(|step| !matches!(step, Step::ModelAnswered { call: known, .. } if *known == call));
                steps.push(Step::ModelAnswered { call, answer });
            }
            ("on_tool_call", error) => {
                let call_id = text(&told["call_id"]);
                let of_it =
                    |step: &Step| matches!(step, Step::ToolAnswered { call_id: known, .. } if *known == call_id);
                if told.get("arguments").is_some() {
                    steps.push(tool_asked(told));
                } else {
                    steps.retain(|step| !of_it(step));
                }
                let repeated = self.results.get(&call_id).cloned().map(Answer::Result);
                let answer = error.or(repeated).ok_or_else(|| lacks("the result of a tool call"))?;
                steps.push(Step::ToolAnswered { call_id, answer });
            }
            (method, error) => {
                let answer = match error {
                    Some(error) => error,
                    None => Answer::Result(self.with_content(told["result"].clone())?),
                };
                steps.push(Step::Other { method: method.to_owned(), params: told["params"].clone(), answer });
            }
        }
        Ok(())
    }

    fn with_content(&self, mut result: Value) -> Result<Value, NoReplay> {
        for message in result.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
            let found = message_box::find(self.db, field(&message["id"])?)?;
            message["content"] = found.ok_or_else(|| lacks("a message that it was given"))?.mail.content.into();
        }
        Ok(result)
    }
}

fn tool_asked(told: &Value) -> Step {
    Step::ToolAsked {
        call_id: text(&told["call_id"]),
        tool_name: text(&told["tool"]),
        arguments: told["arguments"].clone(),
    }
}

fn known(told: &Value) -> Known {
    match told["hash"].as_str() {
        Some(hash) => Known::Hash(hash.to_owned()),
        None => Known::Whole(told["whole"].clone()),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn lacks(what: &str) -> NoReplay {
    NoReplay::Lacks(what.to_owned())
}

fn field<T: DeserializeOwned>(value: &Value) -> Result<T, NoReplay> {
    serde_json::from_value(value.clone()).map_err(|error| NoReplay::Store(StoreError::damaged(error)))
}

/// Puts the answers to calls that were made beside each other into the order in which the runner got them: the next model
/// call tells it.
fn in_order(steps: &mut [Step]) {
    let mut from = 0;
    for at in 0..steps.len() {
        let Step::ModelAsked(asked) = &steps[at] else { continue };
        let order: HashMap<String, usize> = asked
            .add
            .iter()
            .flat_map(|message| message.content.parts().into_owned())
            .filter_map(|part| if let Part::ToolResult { call_id, .. } = part { Some(call_id) } else { None })
            .enumerate()
            .map(|(place, call_id)| (call_id, place))
            .collect();
        let is_answer =
            |at: &usize| matches!(&steps[*at], Step::ToolAnswered { call_id, .. } if order.contains_key(call_id));
        let places: Vec<usize> = (from..at).filter(is_answer).collect();
        let mut answers: Vec<Step> = places.iter().map(|at| steps[*at].clone()).collect();
        answers.sort_by_key(|step| match step {
            Step::ToolAnswered { call_id, .. } => order.get(call_id).copied(),
            _ => None,
        });
        for (place, answer) in places.into_iter().zip(answers) {
            steps[place] = answer;
        }
        from = at;
    }
}
