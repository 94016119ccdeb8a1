//! The profile of the three subagent systems whose documents came first: assistants are run by name, ask their parent,
//! and are answered.
//!
//! Clients have `run_subagent`, `run_subagent_NAME` for each assistant, `check_status`, `get_logs`, `update_status`,
//! `get_pending_questions` and `reply_subagent`; running assistants have `ask_parent`, `check_answer`, `check_status` and
//! `update_status`. The names that those systems used before (`check_subagent_status`, `get_subagent_NAME_logs`, …) are
//! answered and not listed. Arguments are taken in snake_case and camelCase and by the words of either document.
//!
//! A run is a process, its `runId` the process's id. All of it goes through the host's own tools and tables:
//!
//! | here | there |
//! | --- | --- |
//! | `running` | queued, starting, running, waiting |
//! | `waiting_parent_reply` | a question of it is PENDING |
//! | `parent_replied` | a question of it is ANSWERED |
//! | `success`, or `completed` where it said so | finished |
//! | `error` | failed, cancelled, or finished after it had reported an error |
//! | `pending_parent_reply`, `parent_replied`, `acknowledged_by_subagent`, `expired` | PENDING, ANSWERED, RETRIEVED, EXPIRED |
//!
//! A subagent runs no other one (`limits.subagents_depth`), unless that one's `allowed_callers` names it. A question
//! that nobody answers within `limits.answer_wait_ms` ends its run as `Stalled: Parent No-Response` when the run looks for
//! the answer, whoever the parent is; after `limits.question_ms` it is EXPIRED anyway.

use std::sync::OnceLock;

use assistant_protocol::ids::ProcessId;
use assistant_protocol::types::ToolSpec;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::caller::Caller;
use crate::host::Host;
use crate::limits::Limits;
use crate::registry::{Definition, Registry};
use crate::text::{VALUE_SHOWN_CHARS_MAX, cut};
use crate::tools::processes::mine;
use crate::tools::spawn::session_may;
use crate::tools::talk::TALK;
use crate::tools::{self, Along, Call, CallError, Output, Tool, ToolError};

mod ask;
mod errors;
mod logs;
mod meta;
mod names;
mod reply;
mod report;
mod run;
mod spelling;
mod status;
mod words;

use names::Asked;

#[cfg(feature = "cli")]
pub(crate) use words::section;
pub(crate) use words::{instructions, told_in_prompt};

/// The bytes of a list of tools: clients load it into each conversation.
const LIST_BYTES_MAX: usize = 24 * 1024;
/// Assistants that have a tool of their own in a list; all have one that can be called.
const RUN_TOOLS_MAX: usize = 40;
/// The tools of clients, beside those of single assistants.
pub(super) const OF_CLIENTS: [&str; 6] =
    ["check_status", "get_logs", "get_pending_questions", "reply_subagent", "run_subagent", "update_status"];
/// The tools of running assistants that may ask.
const OF_ASKERS: [&str; 4] = ["ask_parent", "check_answer", "check_status", "update_status"];
/// What a running assistant may call, listed or not.
const OF_RUNS: [&str; 5] = ["ask_parent", "check_answer", "check_message_status", "check_status", "update_status"];

/// All rows; numbers in their texts are not filled in.
fn rows() -> &'static [Tool] {
    static ROWS: OnceLock<Vec<Tool>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let mut rows = Vec::new();
        rows.extend(ask::rows());
        rows.extend(logs::rows());
        rows.extend(reply::rows());
        rows.extend(report::rows());
        rows.extend(run::rows());
        rows.extend(status::rows());
        for row in &mut rows {
            row.description = words::description(&row.name).to_owned();
        }
        rows
    })
}

fn row(name: &str) -> Option<&'static Tool> {
    rows().iter().find(|row| row.name == name)
}

/// A row as it is listed, numbers filled in.
fn filled_in(row: &Tool, limits: &Limits) -> Tool {
    let mut tool = row.clone();
    tool.description = words::filled_in(&tool.description, limits);
    tool
}

/// What a client is offered where these assistants are, sorted by name. Each that a session may run has a tool of its
/// own as long as the list is not too long; `run_subagent` runs all.
pub(crate) fn listed(registry: &Registry, limits: &Limits) -> Vec<Tool> {
    let for_clients = |name: &&str| row(name).map(|row| words::for_clients(filled_in(row, limits)));
    let mut all: Vec<Tool> = OF_CLIENTS.iter().filter_map(for_clients).collect();
    let callable = || registry.assistants().iter().filter(|one| session_may(one));
    if let Some(general) = all.iter_mut().find(|tool| tool.name == "run_subagent") {
        general.description.push_str(&words::staff(callable().map(AsRef::as_ref)));
    }
    let mut bytes: usize = all.iter().map(size).sum();
    for assistant in callable().take(RUN_TOOLS_MAX) {
        let Some(tool) = run::tool_of(assistant) else { continue };
        bytes += size(&tool);
        if bytes > LIST_BYTES_MAX {
            break;
        }
        all.push(tool);
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

/// Bytes of a tool in a list, with the comma behind it.
fn size(tool: &Tool) -> usize {
    tools::listed(tool).to_string().len() + 1
}

/// The tools by which a running assistant asks and tells, where it has been granted `granted` by the host: each with
/// the one of those that it stands on.
pub(crate) fn of_run(granted: &[String], limits: &Limits) -> Vec<(ToolSpec, &'static str)> {
    let on = |name: &str| match name {
        // Who has a word with those around reports too.
        "update_status" => TALK.iter().copied().find(|talk| granted.iter().any(|one| one == talk)),
        _ => granted.iter().any(|one| one == "ask_parent").then_some("ask_parent"),
    };
    let spec = |name: &&str| {
        let tool = filled_in(row(name)?, limits);
        let (name, description) = (tool.name.to_string(), tool.description);
        Some((ToolSpec { name, description, input_schema: tool.input_schema }, on(&tool.name)?))
    };
    OF_ASKERS.iter().filter_map(spec).collect()
}

/// The tools of running assistants that may ask, as a list.
#[cfg(feature = "cli")]
pub(crate) fn of_askers(limits: &Limits) -> Vec<Tool> {
    OF_ASKERS.iter().filter_map(|name| row(name)).map(|row| filled_in(row, limits)).collect()
}

/// Whether a session may run it.
#[cfg(feature = "cli")]
pub(crate) fn listed_for_sessions(assistant: &Definition) -> bool {
    session_may(assistant)
}

/// The listed tool of a running assistant that answers a call by this name; none where none does.
pub(crate) fn listed_as(name: &str) -> Option<&'static str> {
    match Asked::of(name)?.tool {
        "check_message_status" => Some("check_status"),
        tool => OF_ASKERS.into_iter().find(|listed| *listed == tool),
    }
}

/// Calls one of the tools of a client.
///
/// # Errors
/// [`CallError::UnknownTool`], and what the tool says, in the words of this profile.
pub(crate) async fn call(
    host: &Host,
    caller: Caller,
    name: &str,
    arguments: Map<String, Value>,
    cancelled: CancellationToken,
    along: Along,
) -> Result<Output, CallError> {
    let unknown = || CallError::unknown(name);
    let asked = Asked::of(name).ok_or_else(unknown)?;
    let tool = row(asked.tool).ok_or_else(unknown)?;
    let mut given = Vec::new();
    let made = async {
        let mut arguments = spelling::normal(arguments, &tool.input_schema, &mut given)?;
        match asked.agent {
            Some(agent) if asked.tool == names::RUN_ONE => {
                if arguments.contains_key("agent_name") {
                    let message = format!("there is no argument `agent_name`: the tool {name} runs one subagent only");
                    return Err(ToolError::bad_argument(message, "Leave it out, or call run_subagent.").into());
                }
                arguments.insert("agent_name".to_owned(), names::assistant(host, agent)?.id.as_str().into());
            }
            Some(agent) => is_of(host, caller, agent, &arguments).await?,
            None => {}
        }
        tools::call_row(host, caller, tool, arguments, cancelled, along).await
    };
    let made = made.await;
    made.map_err(|error| errors::in_words(error, &given))
}

/// Calls one of the tools of a running assistant.
///
/// # Errors
/// As [`call`].
pub(crate) async fn call_of_run(
    host: &Host,
    caller: Caller,
    name: &str,
    arguments: Map<String, Value>,
    cancelled: CancellationToken,
    along: Along,
) -> Result<Output, CallError> {
    if !Asked::of(name).is_some_and(|asked| OF_RUNS.contains(&asked.tool)) {
        return Err(CallError::unknown(name));
    }
    call(host, caller, name, arguments, cancelled, along).await
}

/// Looks that the run that is asked about is one of the assistant in the tool's name.
async fn is_of(host: &Host, caller: Caller, agent: &str, arguments: &Map<String, Value>) -> Result<(), ToolError> {
    let Some(run) = arguments.get("runId").and_then(Value::as_str).map(run_id).transpose()? else { return Ok(()) };
    let wanted = names::assistant(host, agent)?;
    let row = host.store().read(move |db| mine(db, caller, run)).await?;
    if row.assistant_id == wanted.id.as_str() {
        return Ok(());
    }
    let message = format!("the run {run} is one of `{}`, not of `{}`", row.assistant_id, wanted.id);
    Err(ToolError::bad_argument(message, "Call check_status, get_logs or update_status: they are for all subagents."))
}

/// Reads the id of a run.
fn run_id(text: &str) -> Result<ProcessId, ToolError> {
    text.parse().map_err(|_| {
        let message = format!("`runId` is `{}`, which is no id of a run (a UUID)", cut(text, VALUE_SHOWN_CHARS_MAX));
        ToolError::bad_argument(message, "Use the runId that run_subagent gave.")
    })
}

/// The run that a call is about: the one that is named; for a running assistant itself, where it names none.
fn which(call: &Call, named: Option<&str>) -> Result<ProcessId, ToolError> {
    match (named, call.caller) {
        (Some(named), _) => run_id(named),
        (None, Caller::Process(me)) => Ok(me),
        (None, Caller::Session(_)) => {
            Err(ToolError::bad_argument("`runId` is missing", "Use the runId that run_subagent gave."))
        }
    }
}

/// Calls one of the host's own tools for the caller of `call`.
async fn own(call: &Call, tool: &str, arguments: Value, along: Along) -> Result<Output, ToolError> {
    let Value::Object(arguments) = arguments else { return Err(ToolError::internal(&"arguments are an object")) };
    let cancelled = CancellationToken::new();
    match tools::call(&call.host, call.caller, tool, arguments, cancelled, along).await {
        Ok(output) => Ok(output),
        Err(CallError::Tool(error)) => Err(error),
        Err(error @ CallError::UnknownTool(_)) => Err(ToolError::internal(&error)),
    }
}

/// How long a run of this definition is waited for by a client, milliseconds: its own time, with what it takes to launch
/// it and to let it hand in what it has; none where it has no time of its own.
fn waits_ms(definition: &Definition, limits: &Limits) -> Option<u64> {
    let own = definition.timeout_ms?.min(limits.wall_ms);
    Some(own.saturating_add(limits.launch_ms).saturating_add(limits.grace_ms))
}

#[cfg(test)]
mod tests;
