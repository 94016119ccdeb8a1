//! `run_subagent`, and `run_subagent_NAME` for each assistant.

use std::borrow::Cow;

use assistant_protocol::ids::ProcessId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::meta::{self, MessageTold, RunStatus};
use super::{names, own, waits_ms, words};
use crate::process_table::{self, Status};
use crate::registry::Definition;
use crate::store::StoreError;
use crate::text::cut;
use crate::tools::usage;
use crate::tools::{self, Along, Audience, Call, Hints, Output, Tool, ToolError, assistants};

/// Characters of what a failed run had, in the words of its error.
const HAD_CHARS_MAX: usize = 4_000;
const HINTS: Hints = Hints { read_only: false, destructive: false, idempotent: false, open_world: true };

pub(super) fn rows() -> Vec<Tool> {
    vec![
        tools::row::<_, Ran, _, _>("run_subagent", "Run a subagent", Audience::Everyone, HINTS, run_subagent),
        tools::row::<_, Started, _, _>(names::RUN_ONE, "Run this subagent", Audience::Everyone, HINTS, run_one),
    ]
}

/// Arguments of `run_subagent`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Run {
    /// Which subagent, by its name.
    agent_name: String,
    /// The task, complete in itself: it sees nothing else of your conversation.
    prompt: String,
    /// Background to the task.
    context: Option<String>,
}

/// Result of `run_subagent`.
#[derive(Debug, Serialize, JsonSchema)]
struct Ran {
    /// What the subagent gave; where it goes on after this call, words that say so.
    result: String,
    agent: String,
    /// From its start (milliseconds).
    duration_ms: i64,
    /// US dollars, of it and of what it ran; absent where a price is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    status: RunStatus,
    #[serde(rename = "runId")]
    run_id: ProcessId,
    /// The result as data, where it has a schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    structured: Option<Map<String, Value>>,
    /// What it wrote to you before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// Its questions that wait for your answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Map<String, Value>>")]
    messages: Vec<MessageTold>,
    /// Tools that it asks for and that are not here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Map<String, Value>>")]
    unavailable_tools: Vec<Value>,
}

/// What the host's own tool tells of a spawn.
#[derive(Debug, Deserialize)]
struct Spawned {
    process_id: ProcessId,
    assistant_id: String,
    #[serde(default)]
    result: Option<Ended>,
    #[serde(default)]
    unavailable_tools: Vec<Value>,
}

#[derive(Debug, Deserialize)]
struct Ended {
    content: Option<String>,
    #[serde(default)]
    structured: Option<Value>,
    #[serde(default)]
    messages: Vec<Value>,
}

async fn run_subagent(call: Call, params: Run) -> Result<Output, ToolError> {
    text("prompt", &params.prompt)?;
    let definition = assistants::find(&call.host, &params.agent_name)?;
    let client_wait_ms = waits_ms(&definition, call.host.limits());
    let asked = json!({
        "assistant_id": definition.id, "query": params.prompt, "context": params.context, "run_mode": "sync",
    });
    let along = Along { client_wait_ms, ..call.along.clone() };
    let spawned = own(&call, "spawn_assistant", asked, along).await?;
    let spawned: Spawned = serde_json::from_value(spawned.value).map_err(|error| ToolError::internal(&error))?;
    let (run, host, now) = (spawned.process_id, call.host.clone(), call.host.now());
    let chars = call.host.limits().answer_chars as usize;
    let look = call.host.store().read(move |db| {
        let seen = meta::see(db, process_table::get(db, run)?, now)?;
        Ok::<_, StoreError>((seen, usage::cost_of_tree(db, run, host.models())?))
    });
    let (seen, cost_usd) = look.await?;
    let (row, meta) = (&seen.row, seen.meta(false, chars));
    let ended = match (spawned.result, row.status) {
        (Some(ended), Status::Finished) => ended,
        // It ended while the call was answered: the next look tells.
        (None, _) | (Some(_), Status::Queued | Status::Starting | Status::Running | Status::Waiting) => {
            let waits: Vec<MessageTold> = meta
                .messages
                .iter()
                .filter(|one| one.message_status == meta::MessageStatus::PendingParentReply)
                .cloned()
                .collect();
            return Output::new(&Ran {
                result: words::goes_on(&spawned.assistant_id, run, !waits.is_empty()),
                agent: spawned.assistant_id,
                duration_ms: now - row.started_at.unwrap_or(row.created_at),
                cost_usd,
                status: meta.status,
                run_id: run,
                structured: None,
                notes: Vec::new(),
                messages: waits,
                unavailable_tools: spawned.unavailable_tools,
            });
        }
        (Some(_), Status::Failed | Status::Cancelled) => {
            let code = if row.status == Status::Failed { "run_failed" } else { "run_cancelled" };
            let why = meta.error.unwrap_or_default();
            let had = meta.result.map(|had| format!("{}{}", process_table::UNTIL_THEN, cut(&had, HAD_CHARS_MAX)));
            let message =
                format!("the run {run} of `{}` has no result: {why}{}", row.assistant_id, had.unwrap_or_default());
            return Err(ToolError::new(code, message, "get_logs with this runId tells what it did."));
        }
    };
    let note = |mail: &Value| mail["content"].as_str().map(str::to_owned);
    Output::new(&Ran {
        result: ended.content.unwrap_or_default(),
        agent: spawned.assistant_id,
        duration_ms: row.finished_at.unwrap_or(now) - row.started_at.unwrap_or(row.created_at),
        cost_usd,
        status: meta.status,
        run_id: run,
        structured: ended.structured.and_then(|value| value.as_object().cloned()),
        notes: ended.messages.iter().filter_map(note).collect(),
        messages: Vec::new(),
        unavailable_tools: spawned.unavailable_tools,
    })
}

/// Arguments behind `run_subagent_NAME`.
#[derive(Debug, Deserialize, JsonSchema)]
struct RunOne {
    /// Which subagent: that of the tool's name.
    agent_name: String,
    /// The task, complete in itself.
    prompt: String,
    /// Folder it works in, below the project folder, which is the default.
    cwd: Option<String>,
}

/// Result of `run_subagent_NAME`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Started {
    run_id: ProcessId,
    agent_name: String,
    status: RunStatus,
    instructions: String,
}

async fn run_one(call: Call, params: RunOne) -> Result<Output, ToolError> {
    text("prompt", &params.prompt)?;
    let asked = json!({ "assistant_id": params.agent_name, "query": params.prompt, "working_dir": params.cwd });
    let spawned = own(&call, "spawn_assistant", asked, call.along.clone()).await?;
    let spawned: Spawned = serde_json::from_value(spawned.value).map_err(|error| ToolError::internal(&error))?;
    Output::new(&Started {
        run_id: spawned.process_id,
        agent_name: spawned.assistant_id,
        status: RunStatus::Running,
        instructions: words::STARTED.to_owned(),
    })
}

fn text(name: &str, text: &str) -> Result<(), ToolError> {
    if text.trim().is_empty() {
        let hint = "Write the whole task into it: the subagent sees nothing else.";
        return Err(ToolError::bad_argument(format!("`{name}` is empty"), hint));
    }
    Ok(())
}

/// The tool that runs one assistant, as it is listed.
pub(super) fn tool_of(assistant: &Definition) -> Option<Tool> {
    let mut tool = super::row(names::RUN_ONE)?.clone();
    tool.name = Cow::Owned(names::tool(&assistant.id));
    tool.title = Cow::Owned(format!("Run {}", cut(&assistant.name, words::TITLE_CHARS_MAX)));
    tool.description = words::of_one(assistant);
    if let Some(properties) = tool.input_schema.pointer_mut("/properties").and_then(Value::as_object_mut) {
        properties.remove("agent_name");
    }
    if let Some(required) = tool.input_schema.pointer_mut("/required").and_then(Value::as_array_mut) {
        required.retain(|name| name != "agent_name");
    }
    // What it means stands once, in the text of check_status and in its answer: each byte here is there many times.
    tool.output_schema = json!({
        "type": "object", "properties": { "runId": { "type": "string" } }, "required": ["runId"],
    });
    Some(tool)
}
