//! What is recorded of a link beside the events of its calls, so that a run can be played again (`crate::replay`): what the
//! runner was asked and how it answered, and of its own requests what no other event tells.
//!
//! Nothing large is recorded twice: a prompt is what stands behind the definition's own, tools are kept once for all
//! processes that have the same, messages of a conversation are named by where they are recorded.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use assistant_protocol::error::RpcError;
use assistant_protocol::ids::{MessageId, ProcessId};
use assistant_protocol::peer::CallError;
use assistant_protocol::types::{
    CancelParams, LlmRequestParams, Message, Role, RunLimits, RunParams, RunResult, ToolCallParams,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::link::Link;
use crate::conversation;
use crate::events::{self, Kind};
use crate::limits::Limits;
use crate::process_table;
use crate::registry::sha256_hex;
use crate::store::{StoreError, Tx};

/// Data of a result that are recorded whole, bytes; of larger ones their hash.
const WHOLE_BYTES_MAX: usize = 16 * 1024;
/// Requests of one process that no other event tells, and that are recorded.
const ASKED_MAX: u32 = 1_000;
/// Bytes of them all.
const ASKED_BYTES_MAX: u64 = 512 * 1024;

/// What a record needs to know of the link so far.
#[derive(Default)]
pub(super) struct Record {
    /// What the runner was run with first; later runs say the same but for the query.
    first: OnceLock<Arc<RunParams>>,
    runs: AtomicU64,
    model_calls: AtomicU64,
    /// The hash of what the model said last.
    said: Mutex<String>,
    room: Arc<Room>,
}

/// What is left for requests that no other event tells: a runner can make any number of them, of any size.
#[derive(Default)]
struct Room {
    events: AtomicU32,
    bytes: AtomicU64,
}

impl Room {
    /// What is recorded of a request: once there is no room, that the record has no more of them; then nothing.
    fn take(&self, told: Value) -> Option<Value> {
        let bytes = told.to_string().len() as u64;
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > ASKED_BYTES_MAX {
            // All that follow are too many.
            let before = self.events.swap(ASKED_MAX + 1, Ordering::Relaxed);
            return (before <= ASKED_MAX).then(left_off);
        }
        match self
            .events
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| Some((count + 1).min(ASKED_MAX + 1)))
        {
            Ok(..ASKED_MAX) => Some(told),
            Ok(ASKED_MAX) => Some(left_off()),
            _ => None,
        }
    }
}

fn left_off() -> Value {
    json!({ "left_off": true })
}

/// The limits that a runner is told.
pub(super) fn told_limits(limits: &Limits) -> RunLimits {
    RunLimits { turns: Some(limits.turns), tool_calls: Some(limits.tool_calls), wall_ms: Some(limits.wall_ms) }
}

/// A model call as the runner asked for it, its conversation apart.
#[derive(Debug)]
pub(super) struct Asked {
    /// Its number among the model calls of the link.
    call: u64,
    /// The system messages with their places, where they are not the prompt of the run alone.
    system: Option<Value>,
    /// The tools, where they are not those of the run.
    tools: Option<Value>,
    options: Option<Map<String, Value>>,
    /// Its event is written.
    begun: AtomicBool,
}

/// What an earlier event of a model call tells of system messages and tools.
#[derive(Debug, Default)]
pub(super) struct Before {
    system: Option<Value>,
    tools: Option<Value>,
}

impl Asked {
    /// The call is in the record.
    pub(super) fn has_begun(&self) {
        self.begun.store(true, Ordering::Release);
    }

    /// Its number.
    pub(super) fn call(&self) -> u64 {
        self.call
    }

    /// Adds to an event what it has to tell; what the event before told is not told again.
    pub(super) fn tell(&self, told: &mut Value, before: &Before) {
        told["call"] = self.call.into();
        for (key, now, before) in [("system", &self.system, &before.system), ("tools", &self.tools, &before.tools)] {
            if let Some(now) = now {
                told[key] = if before.as_ref() == Some(now) { "same".into() } else { now.clone() };
            }
        }
        if let Some(options) = &self.options {
            told["options"] = json!(options);
        }
    }

    /// What the next event need not tell again.
    pub(super) fn before(&self, before: &mut Before) {
        for (kept, now) in [(&mut before.system, &self.system), (&mut before.tools, &self.tools)] {
            if now.is_some() {
                kept.clone_from(now);
            }
        }
    }
}

impl Link {
    /// The runner is about to be asked to run. Of the first prompt, the first `known` bytes stand in the definition.
    pub(super) async fn runs(&self, params: &RunParams, known: usize) {
        let run = self.recorded.runs.fetch_add(1, Ordering::Relaxed) + 1;
        let mut told = json!({ "run": run });
        if run > 1 {
            told["query"] = json!(params.query);
            return self.record(Kind::Run, told).await;
        }
        let again = RunParams { query: None, context: None, inputs: None, history: None, ..params.clone() };
        if self.recorded.first.set(Arc::new(again)).is_err() {
            tracing::error!(process = %self.row.id, "a run began twice");
        }
        told["prompt"] = params.assistant.system_prompt.get(known..).unwrap_or_default().into();
        told["limits"] = json!(told_limits(&self.limits));
        if let Some(history) = &params.history {
            told["history"] = history.len().into();
        }
        let (process, tools) = (self.row.id, serde_json::to_string(&params.tools).unwrap_or_default());
        self.record_with(Kind::Run, told, move |tx| process_table::keep_given_tools(tx, process, &tools)).await;
    }

    /// The runner has answered its run, or never will.
    pub(super) async fn ran(&self, answer: &Result<RunResult, CallError>) {
        let mut told = json!({ "answered": self.recorded.runs.load(Ordering::Relaxed) });
        match answer {
            Ok(result) => {
                told["stop_reason"] = json!(result.stop_reason);
                let said = Message { role: Role::Assistant, content: result.content.clone() };
                let is_said = *self.said() == conversation::hash(&said);
                told["content"] = if is_said { json!({ "said": true }) } else { whole_or_hash(&result.content) };
                if let Some(structured) = &result.structured {
                    told["structured"] = whole_or_hash(structured);
                }
            }
            Err(CallError::Answered(error)) => told["error"] = error_of(error),
            Err(_) => return,
        }
        self.record(Kind::Run, told).await;
    }

    /// The runner is about to be asked to stop.
    pub(super) async fn cancels(&self, cancel: &CancelParams) {
        self.record(Kind::Run, json!({ "cancel": cancel.reason, "grace_ms": cancel.grace_ms })).await;
    }

    /// The model has answered this.
    pub(super) fn model_said(&self, message: &Message) {
        *self.said() = conversation::hash(message);
    }

    fn said(&self) -> std::sync::MutexGuard<'_, String> {
        self.recorded.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The runner asks its model.
    pub(super) fn asks_model(&self, params: &LlmRequestParams) -> Asked {
        let call = self.recorded.model_calls.fetch_add(1, Ordering::Relaxed);
        let first = self.recorded.first.get();
        let system: Vec<(usize, &Message)> =
            params.messages.iter().enumerate().filter(|(_, message)| message.role == Role::System).collect();
        let prompt = first.map_or("", |first| first.assistant.system_prompt.as_str());
        let as_run = match system.as_slice() {
            [] => prompt.trim().is_empty(),
            [(0, message)] => **message == Message::text(Role::System, prompt),
            _ => false,
        };
        let given = first.map(|first| first.tools.as_slice()).filter(|tools| !tools.is_empty());
        Asked {
            call,
            system: (!as_run).then(|| json!(system)),
            tools: (params.tools.as_deref() != given).then(|| json!({ "given": params.tools })),
            options: params.options.clone(),
            begun: AtomicBool::new(false),
        }
    }

    /// A model call was answered with an error. Where it was never begun, this tells what it was.
    pub(super) async fn refused_model(&self, asked: &Asked, held: &Arc<Vec<Message>>, error: &RpcError) {
        let mut told = json!({ "method": "on_llm_request", "call": asked.call, "error": error_of(error) });
        if asked.begun.load(Ordering::Acquire) {
            return self.record_asked(told).await;
        }
        asked.tell(&mut told, &Before::default());
        let (process, held, room) = (self.row.id, held.clone(), self.recorded.room.clone());
        let recorded = self.host.store().write_later(move |tx| {
            let mut told = told.clone();
            let known = conversation::hashes(tx.db, process)?;
            let prefix = known.iter().zip(held.iter()).take_while(|(known, held)| **known == conversation::hash(held));
            let prefix = prefix.count();
            told["prefix"] = prefix.into();
            told["seq"] = conversation::newest(tx.db)?.into();
            told["messages"] = json!(held[prefix..]);
            match room.take(told) {
                Some(told) => events::record(tx, process, Kind::Asked, &told),
                None => Ok(()),
            }
        });
        self.told(recorded.await);
    }

    async fn record_asked(&self, told: Value) {
        if let Some(told) = self.recorded.room.take(told) {
            self.record(Kind::Asked, told).await;
        }
    }

    /// A tool call was answered with an error, or from the record of the same call.
    pub(super) async fn answers_call(&self, params: &ToolCallParams, begun: bool, error: Option<&RpcError>) {
        let mut told = json!({ "method": "on_tool_call", "call_id": params.call_id, "tool": params.tool_name });
        if !begun {
            told["arguments"] = params.arguments.clone();
        }
        if let Some(error) = error {
            told["error"] = error_of(error);
        }
        self.record_asked(told).await;
    }

    /// Any other request was answered.
    pub(super) async fn answers<R: Serialize>(
        &self,
        method: &str,
        params: &impl Serialize,
        answer: &Result<R, RpcError>,
    ) {
        let mut told = json!({ "method": method, "params": params });
        match answer {
            Ok(result) => told["result"] = without_content(json!(result)),
            Err(error) => told["error"] = error_of(error),
        }
        self.record_asked(told).await;
    }

    fn told(&self, recorded: Result<(), StoreError>) {
        if let Err(error) = recorded {
            tracing::debug!(%error, process = %self.row.id, "an event came after the store was closed");
        }
    }
}

/// A message is about to be given to a runner.
pub(super) fn gives(tx: &Tx<'_>, process: ProcessId, message: MessageId) -> Result<(), StoreError> {
    events::record(tx, process, Kind::Run, &json!({ "deliver": message }))
}

fn error_of(error: &RpcError) -> Value {
    json!({ "code": error.code, "message": error.message, "data": error.data })
}

fn whole_or_hash(value: &impl Serialize) -> Value {
    let json = serde_json::to_string(value).unwrap_or_default();
    match json.len() <= WHOLE_BYTES_MAX {
        true => json!({ "whole": value }),
        false => json!({ "hash": sha256_hex(json.as_bytes()), "bytes": json.len() }),
    }
}

/// The messages of the box that an answer gives are in the box: their texts are not recorded again.
fn without_content(mut result: Value) -> Value {
    for message in result.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(message) = message.as_object_mut() {
            message.remove("content");
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_requests_are_recorded_and_one_word_more() {
        let check = |bytes: usize, asked: usize, recorded: usize| {
            let (room, told) = (Room::default(), json!("x".repeat(bytes)));
            let taken: Vec<Value> = (0..asked).filter_map(|_| room.take(told.clone())).collect();
            let left_off = (asked > recorded).then(left_off);
            let want: Vec<Value> = std::iter::repeat_n(told, recorded).chain(left_off).collect();
            assert_eq!(taken, want, "{asked} of {bytes} bytes");
        };
        check(1, 1_000, 1_000);
        check(1, 1_001, 1_000);
        check(1, 3_000, 1_000);
        check(64 * 1024, 20, 7);
        check(512 * 1024, 2, 0);
    }
}
