//! `get_logs`: the log of a run as lines.

use assistant_protocol::ids::ProcessId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{own, which};
use crate::events;
use crate::text::{cut, iso_8601, one_line};
use crate::tools::{self, Along, Audience, Call, Hints, Output, Tool, ToolError};

/// Events of one answer.
const EVENTS_MAX: u32 = 200;
/// Characters of what a line adds to its words.
const ADDED_CHARS_MAX: usize = 400;

pub(super) fn rows() -> Vec<Tool> {
    let look = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    vec![tools::row::<_, Logs, _, _>("get_logs", "Read a run's log", Audience::Everyone, look, get_logs)]
}

/// Arguments of `get_logs`.
#[derive(Debug, Deserialize, JsonSchema)]
struct GetLogs {
    /// The run.
    #[serde(rename = "runId")]
    run_id: Option<String>,
    /// Go on behind this place: nextCursor of an earlier answer.
    cursor: Option<String>,
}

/// Result of `get_logs`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Logs {
    run_id: ProcessId,
    /// Lines, oldest first: time, kind, what happened.
    logs: String,
    /// For the next call.
    next_cursor: String,
    /// There are more.
    more: bool,
}

/// The log as the host's own tool tells it.
#[derive(Debug, Deserialize)]
struct Told {
    events: Vec<Event>,
    next_cursor: String,
    more: bool,
}

#[derive(Debug, Deserialize)]
struct Event {
    at: i64,
    kind: String,
    data: Value,
}

async fn get_logs(call: Call, params: GetLogs) -> Result<Output, ToolError> {
    let run = which(&call, params.run_id.as_deref())?;
    let asked = json!({ "process_id": run, "cursor": params.cursor, "limit": EVENTS_MAX });
    let found = own(&call, "read_log", asked, Along::default()).await?;
    let told: Told = serde_json::from_value(found.value).map_err(|error| ToolError::internal(&error))?;
    let lines: Vec<String> = told.events.iter().filter_map(line).collect();
    Output::new(&Logs { run_id: run, logs: lines.join("\n"), next_cursor: told.next_cursor, more: told.more })
}

/// One event as a line; none where it is nothing to people.
fn line(event: &Event) -> Option<String> {
    let words = events::in_words(&event.kind, &event.data)?;
    let added = match event.kind.as_str() {
        "tool_call" => event.data.get("arguments").map(Value::to_string),
        "model_answer" => event.data["text"].as_str().map(str::to_owned),
        _ => None,
    };
    let added =
        added.filter(|text| !text.is_empty()).map(|text| format!(" {}", cut(&one_line(&text), ADDED_CHARS_MAX)));
    Some(format!("{} {}: {words}{}", iso_8601(event.at), event.kind, added.unwrap_or_default()))
}
