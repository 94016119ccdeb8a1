//! `read_log`: what a process did, event by event, or its conversation.

use assistant_protocol::ids::ProcessId;
use rusqlite::Connection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::processes::mine;
use super::{Audience, Call, Hints, Output, Tool, ToolError, cursor, row, wait};
use crate::conversation;
use crate::events::{self, Kind};
use crate::text::cut;

/// Events of one answer, unless the caller wants fewer or more.
const LIMIT_DEFAULT: u32 = 50;
/// Events of one answer at most.
const LIMIT_MAX: u32 = 500;
/// Characters of one text within an event; of a message of the conversation.
const TEXT_CHARS_MAX: usize = 4_000;

pub(super) fn rows() -> Vec<Tool> {
    let look = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    vec![row::<_, Log, _, _>("read_log", "Read a process's log", Audience::Everyone, look, read_log)]
}

/// Arguments of `read_log`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct ReadLog {
    /// The process, as spawn_assistant gave it.
    process_id: ProcessId,
    /// Go on behind this one: next_cursor of an earlier answer.
    cursor: Option<String>,
    /// The newest instead of the oldest, without a cursor. Default false.
    #[serde(default)]
    tail: bool,
    /// At most this many, 1 to 500. Default 50.
    limit: Option<u32>,
    /// Only events of these kinds.
    #[serde(default)]
    kinds: Vec<Kind>,
    /// The conversation with the model, message by message, instead of the events. Default false.
    #[serde(default)]
    transcript: bool,
    /// Wait up to this many milliseconds for the first one. Default 0.
    #[serde(default)]
    wait_ms: u64,
}

/// An event, as its readers see it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Line {
    /// When (Unix milliseconds); absent in a transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<i64>,
    /// What it tells; in a transcript the role: system, user, assistant or tool.
    kind: String,
    /// The rest; in a transcript the content. Long texts are cut.
    #[schemars(with = "serde_json::Map<String, Value>")]
    data: Value,
}

/// Result of `read_log`.
#[derive(Debug, Serialize, JsonSchema)]
struct Log {
    events: Vec<Line>,
    /// For the next call; also where nothing is left now.
    next_cursor: String,
    /// There are more.
    more: bool,
    /// The process has ended, so that nothing more will come once all is read.
    done: bool,
}

async fn read_log(call: Call, params: ReadLog) -> Result<Output, ToolError> {
    let cursor = params.cursor.as_deref().map(|text| cursor::read(text, "read_log")).transpose()?;
    let after = cursor.unwrap_or(-1);
    let bound = wait::bound(&call, params.wait_ms);
    let chars = call.host.limits().answer_chars as usize;
    let (caller, on) = (call.caller, [Uuid::from(params.process_id)]);
    let look = || {
        let params = params.clone();
        call.host.store().read(move |db| {
            let row = mine(db, caller, params.process_id)?;
            let done = row.status.is_end();
            if cursor.is_some() && !params.transcript {
                cursor::within(cursor, events::newest(db)?, "read_log")?;
            }
            if params.transcript {
                transcript(db, &params, after, chars, done)
            } else {
                log(db, &params, after, chars, done)
            }
        })
    };
    let something = || async {
        let found = look().await?;
        Ok((!found.events.is_empty() || found.done).then_some(found))
    };
    match wait::until(&call, &on, bound.wait, something).await? {
        Some(found) => Output::new(&found),
        None => Output::new(&look().await?),
    }
}

fn limit(params: &ReadLog) -> u32 {
    params.limit.unwrap_or(LIMIT_DEFAULT).clamp(1, LIMIT_MAX)
}

fn log(db: &Connection, params: &ReadLog, after: i64, chars: usize, done: bool) -> Result<Log, ToolError> {
    let limit = limit(params);
    let tail = params.tail && params.cursor.is_none();
    // One more than wanted tells whether there are more.
    let mut found = events::select(db, params.process_id, after, limit + 1, &params.kinds, tail)?;
    let mut more = found.len() > limit as usize;
    if more && tail {
        found.remove(0);
        more = false;
    }
    found.truncate(limit as usize);
    let (mut lines, mut last, mut left) = (Vec::new(), after, chars);
    let all = found.len();
    for event in found {
        let mut data = event.data;
        if let (Kind::Run, Some(map)) = (event.kind, data.as_object_mut()) {
            // For who plays the run again; what the assistant is stands in its definition.
            map.remove("prompt");
        }
        shorten(&mut data);
        let size = data.to_string().chars().count() + 80;
        if size > left && !lines.is_empty() {
            break;
        }
        left = left.saturating_sub(size);
        last = event.seq;
        lines.push(Line { at: Some(event.at), kind: event.kind.name().to_owned(), data });
    }
    Ok(Log { more: more || lines.len() < all, events: lines, next_cursor: last.to_string(), done })
}

fn transcript(db: &Connection, params: &ReadLog, after: i64, chars: usize, done: bool) -> Result<Log, ToolError> {
    let all = conversation::read(db, params.process_id)?;
    if params.cursor.is_some() {
        cursor::within(Some(after), i64::try_from(all.len()).unwrap_or(i64::MAX) - 1, "read_log with a transcript")?;
    }
    let limit = limit(params) as usize;
    let from = usize::try_from(after + 1).unwrap_or(0);
    let from = if params.tail && params.cursor.is_none() { all.len().saturating_sub(limit) } else { from };
    let (mut lines, mut left) = (Vec::new(), chars);
    for message in all.iter().skip(from).take(limit) {
        let mut data = serde_json::json!({ "content": message.content });
        shorten(&mut data);
        let size = data.to_string().chars().count() + 80;
        if size > left && !lines.is_empty() {
            break;
        }
        left = left.saturating_sub(size);
        let role = serde_json::to_value(message.role).map_err(|error| ToolError::internal(&error))?;
        lines.push(Line { at: None, kind: role.as_str().unwrap_or_default().to_owned(), data });
    }
    let next = from + lines.len();
    let next_cursor = i64::try_from(next).unwrap_or(i64::MAX) - 1;
    Ok(Log { more: next < all.len(), events: lines, next_cursor: next_cursor.to_string(), done })
}

/// Cuts long texts, however deep they lie.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.chars().nth(TEXT_CHARS_MAX).is_some() => *text = cut(text, TEXT_CHARS_MAX),
        Value::Array(all) => all.iter_mut().for_each(shorten),
        Value::Object(map) => map.values_mut().for_each(shorten),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
