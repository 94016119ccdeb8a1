//! `spawn_assistant`: find, check, write the row, and wait for the end where that is wanted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use assistant_protocol::ids::{ProcessId, ThreadId};
use assistant_protocol::types::Mail;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::grants::{self, Unavailable};
use super::{Audience, Call, Hints, Output, Tool, ToolError, assistants, record, row, wait};
use crate::caller::Caller;
use crate::message_box;
use crate::model::{Choice, NoModel};
use crate::process_table::{self, Capacity, NewProcess, Process, Reason, Status};
use crate::registry::{Definition, sha256_hex};
use crate::search::{Filter, MIN_SCORE};

/// Runners-up that a spawn by search tells.
const RUNNERS_UP: usize = 3;
/// The longest query and the longest context, bytes.
const TASK_BYTES_MAX: usize = 1024 * 1024;
/// The longest label, characters.
const LABEL_CHARS_MAX: usize = 100;

pub(super) fn rows() -> Vec<Tool> {
    let hints = Hints { read_only: false, destructive: false, idempotent: false, open_world: true };
    vec![row::<_, Spawned, _, _>("spawn_assistant", "Start an assistant", Audience::Everyone, hints, spawn_assistant)]
}

/// Arguments of `spawn_assistant`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Spawn {
    /// Which assistant, as list_assistant or search_assistant name it. Either this or search.
    assistant_id: Option<String>,
    /// Description of the task; the best match is spawned. Instead of assistant_id, never with it.
    search: Option<BySearch>,
    /// The task, complete in itself: goal, facts, constraints, form of the result. The assistant sees nothing else of
    /// your conversation.
    query: String,
    /// async returns at once; sync waits for the result, for as long as a call may. Default async.
    #[serde(default)]
    run_mode: RunMode,
    /// Background to the task.
    context: Option<String>,
    /// Folder that the assistant's file tools work in; below the project folder, which is the default.
    working_dir: Option<String>,
    /// A label of yours, shown in lists. Not an id.
    name: Option<String>,
    /// A configured model's name, to override the assistant's own. Leave out normally.
    model: Option<String>,
    /// Wait up to this many milliseconds for the result. Default 0, with sync the most that a call may wait.
    wait_ms: Option<u64>,
}

/// How long a spawn waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum RunMode {
    /// Not.
    #[default]
    Async,
    /// For the result.
    Sync,
}

/// The search of a spawn.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
struct BySearch {
    /// The task and its subject, in ordinary words.
    text: String,
    /// The least score that is good enough, 0 to 1. Default 0.2.
    min_score: Option<f32>,
}

/// Result of `spawn_assistant`.
#[derive(Debug, Serialize, JsonSchema)]
struct Spawned {
    process_id: ProcessId,
    thread_id: ThreadId,
    assistant_id: String,
    status: Status,
    /// With search: how well it fits, and what else would.
    #[serde(skip_serializing_if = "Option::is_none")]
    matched: Option<Matched>,
    model: ModelTold,
    /// Tools that its definition asks for and that are not here.
    unavailable_tools: Vec<Unavailable>,
    capacity: Capacity,
    /// The end, where the call waited for it and it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Ended>,
    /// The wait that was asked for is longer than a call may be: it was this long (milliseconds).
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_clamped_to_ms: Option<u64>,
}

/// How an assistant was found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(inline)]
struct Matched {
    score: f32,
    runners_up: Vec<RunnerUp>,
}

/// What else fits a search.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(inline)]
struct RunnerUp {
    assistant_id: String,
    score: f32,
}

/// Which model a process got.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct ModelTold {
    /// What was asked for; absent where nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    requested: Option<String>,
    used: String,
    /// Why it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// How a process ended.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Ended {
    /// The result, or what there was of one.
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// What it wrote before, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<Mail>,
    /// It is more than fits here: recv_message with the thread_id gives all.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

async fn spawn_assistant(call: Call, params: Spawn) -> Result<Output, ToolError> {
    check_texts(&params)?;
    let (definition, matched) = choose(&call, &params).await?;
    let host = call.host.clone();
    let parent = match call.caller {
        Caller::Process(id) => Some(host.store().read(move |db| process_table::get(db, id)).await?),
        Caller::Session(_) => None,
    };
    let granted = grants::grant(definition.tools.as_deref(), host.tool_aliases(), host.tools());
    may_spawn(&definition, &granted.tools, parent.as_ref())?;
    let wish: Vec<String> = params.model.iter().cloned().chain(definition.model.clone()).collect();
    let choice = choose_model(&call, &wish, params.model.as_deref(), parent.as_ref())?;
    let base = parent.as_ref().and_then(|parent| parent.working_dir.clone()).map(PathBuf::from);
    let base = base.or_else(|| host.project().map(Path::to_path_buf));
    let working_dir = working_dir(base, params.working_dir.as_deref())?;
    let mut limits = *host.limits();
    limits.turns = definition.max_turns.map_or(limits.turns, |turns| turns.min(limits.turns));
    limits.wall_ms = definition.timeout_ms.map_or(limits.wall_ms, |wall| wall.min(limits.wall_ms));
    let json = |error: serde_json::Error| ToolError::internal(&error);
    let definition_json = serde_json::to_string(&*definition).map_err(json)?;
    let new = NewProcess {
        id: ProcessId::mint(),
        thread: ThreadId::mint(),
        assistant_id: definition.id.to_string(),
        snapshot: sha256_hex(definition_json.as_bytes()),
        definition: definition_json,
        query: params.query.clone(),
        context: params.context.clone(),
        working_dir: working_dir.map(|dir| dir.display().to_string()),
        tools: granted.tools,
        unavailable_tools: serde_json::to_string(&granted.unavailable).map_err(json)?,
        model_requested: wish.first().cloned(),
        model: choice.name.clone(),
        label: params.name.clone(),
        limits,
    };
    let (caller, row) = (call.caller, new.clone());
    let spawned = host.store().write(move |tx| process_table::spawn(tx, caller, &row)).await?;
    let told = Spawned {
        process_id: new.id,
        thread_id: new.thread,
        assistant_id: new.assistant_id,
        status: spawned.status,
        matched,
        model: ModelTold { requested: new.model_requested, used: choice.name, why: choice.why },
        unavailable_tools: granted.unavailable,
        capacity: spawned.capacity,
        result: None,
        wait_clamped_to_ms: params.wait_ms.and_then(|wait_ms| wait::bound(&call, wait_ms).clamped_to_ms),
    };
    let wait_ms = params.wait_ms.unwrap_or(if params.run_mode == RunMode::Sync { u64::MAX } else { 0 });
    wait_for(&call, told, wait_ms).await
}

fn check_texts(params: &Spawn) -> Result<(), ToolError> {
    if params.query.trim().is_empty() {
        let hint = "Write the whole task into it: the assistant sees nothing else.";
        return Err(ToolError::bad_argument("`query` is empty", hint));
    }
    let context = params.context.as_deref().unwrap_or_default();
    for (name, text) in [("query", params.query.as_str()), ("context", context)] {
        if text.len() > TASK_BYTES_MAX {
            let message = format!("`{name}` has {} bytes, the most is {TASK_BYTES_MAX}", text.len());
            return Err(ToolError::bad_argument(message, "Shorten it, or name files that the assistant can read."));
        }
    }
    if params.name.as_ref().is_some_and(|name| name.chars().count() > LABEL_CHARS_MAX) {
        let message = format!("`name` has more than {LABEL_CHARS_MAX} characters");
        return Err(ToolError::bad_argument(message, "Give a short label."));
    }
    Ok(())
}

async fn choose(call: &Call, params: &Spawn) -> Result<(Arc<Definition>, Option<Matched>), ToolError> {
    match (&params.assistant_id, &params.search) {
        (Some(id), None) => Ok((assistants::find(&call.host, id)?, None)),
        (None, Some(search)) => by_search(call, search).await,
        (Some(_), Some(_)) => {
            Err(ToolError::bad_argument("`assistant_id` and `search` are both given", "Give one of the two."))
        }
        (None, None) => Err(ToolError::bad_argument(
            "neither `assistant_id` nor `search` is given",
            "Name an assistant, or describe the task in search {text}.",
        )),
    }
}

async fn by_search(call: &Call, search: &BySearch) -> Result<(Arc<Definition>, Option<Matched>), ToolError> {
    if search.text.trim().is_empty() {
        return Err(ToolError::bad_argument("`search.text` is empty", "Describe the task in a sentence."));
    }
    let least = search.min_score.unwrap_or(MIN_SCORE).max(f32::MIN_POSITIVE);
    let filter = Filter { min_score: 0.0, ..Filter::default() };
    let found = assistants::search(&call.host, search.text.clone(), filter, 1 + RUNNERS_UP).await?.0;
    let told = |(definition, hit): &(Arc<Definition>, crate::search::Hit)| RunnerUp {
        assistant_id: definition.id.to_string(),
        score: assistants::round(hit.score),
    };
    let best = found.iter().position(|(_, hit)| hit.score >= least);
    let nearest: Vec<RunnerUp> = found.iter().filter(|(_, hit)| hit.score > 0.0).map(told).collect();
    match (best, nearest.is_empty()) {
        (Some(best), _) => {
            let (definition, hit) = &found[best];
            let others = found.iter().enumerate().filter(|(at, _)| *at != best).map(|(_, one)| told(one));
            let matched = Matched { score: assistants::round(hit.score), runners_up: others.collect() };
            Ok((definition.clone(), Some(matched)))
        }
        (None, false) => {
            let nearest: Vec<_> = nearest.iter().map(|one| format!("`{}` ({})", one.assistant_id, one.score)).collect();
            Err(ToolError::new(
                "no_match",
                format!("no assistant fits that task (least score {least}); the nearest are {}", nearest.join(", ")),
                "Rephrase the search, name one of the nearest as assistant_id if it fits after all, or do it yourself.",
            ))
        }
        (None, true) => Err(ToolError::new(
            "no_match",
            "no assistant shares a word with that task",
            "Rephrase the search with the subject and the kind of work, or do it yourself.",
        )),
    }
}

/// Who may be spawned by whom: as the definition says, and without a word of it whoever holds all the tools that it
/// would have. A session is `main` unless configured, and holds them all.
fn may_spawn(definition: &Definition, tools: &[String], parent: Option<&Process>) -> Result<(), ToolError> {
    let Some(allowed) = &definition.allowed_callers else {
        let Some(parent) = parent else { return Ok(()) };
        let more: Vec<&str> = tools.iter().filter(|tool| !parent.tools.contains(tool)).map(String::as_str).collect();
        if more.is_empty() {
            return Ok(());
        }
        return Err(ToolError::new(
            "caller_not_allowed",
            format!(
                "`{}` has tools that `{}` has not ({}), and its definition names no allowed_callers",
                definition.id,
                parent.assistant_id,
                more.join(", ")
            ),
            "Choose an assistant with fewer tools, or do this part yourself.",
        ));
    };
    let caller = parent.map_or("main", |parent| parent.assistant_id.as_str());
    if allowed.iter().any(|one| one == caller || one == "*") {
        return Ok(());
    }
    Err(ToolError::new(
        "caller_not_allowed",
        format!("`{}` may be spawned by {} only, and not by `{caller}`", definition.id, allowed.join(", ")),
        "Choose another assistant, or leave this part to a caller that may.",
    ))
}

fn choose_model(
    call: &Call,
    wish: &[String],
    named: Option<&str>,
    parent: Option<&Process>,
) -> Result<Choice, ToolError> {
    // A model that the caller itself names is meant: it is not quietly replaced.
    let strict = named.is_some() || call.host.strict_models();
    let wish = if named.is_some() { &wish[..1] } else { wish };
    let spawner = parent.map(|parent| parent.model.as_str());
    call.host.models().resolve(wish, spawner, strict).map_err(|error| match (error, named) {
        (NoModel::Refused { known, .. }, Some(named)) => ToolError::new(
            "no_model",
            format!("the model `{named}` is not configured; there are: {known}"),
            "Name one of them, or leave `model` out.",
        ),
        (error, _) => ToolError::new("no_model", error, "Tell the user; do the task yourself meanwhile."),
    })
}

/// The folder of a process: `wanted` below `base`, which is the caller's.
fn working_dir(base: Option<PathBuf>, wanted: Option<&str>) -> Result<Option<PathBuf>, ToolError> {
    let Some(wanted) = wanted else { return Ok(base) };
    let refused = |why: &str| {
        let shown: String = wanted.chars().take(200).collect();
        ToolError::bad_argument(format!("`working_dir` {shown} {why}"), "Give a folder below the project folder.")
    };
    let base = base.ok_or_else(|| refused("cannot be used: this host has no project folder"))?;
    let base = base.canonicalize().map_err(|_| refused("cannot be used: the project folder is gone"))?;
    let dir = base.join(wanted).canonicalize().map_err(|_| refused("does not exist"))?;
    if !dir.starts_with(&base) {
        return Err(refused("lies outside of the project folder"));
    }
    if !dir.is_dir() {
        return Err(refused("is no folder"));
    }
    Ok(Some(dir))
}

/// Waits for the end, where that is wanted, and hands it over in the commit that records the answer.
async fn wait_for(call: &Call, told: Spawned, wait_ms: u64) -> Result<Output, ToolError> {
    if wait_ms == 0 {
        return Output::new(&told);
    }
    let told = Arc::new(told);
    let process = told.process_id;
    let on: [Uuid; 2] = [process.into(), call.caller.into()];
    let look = || async {
        let row = call.host.store().read(move |db| process_table::get(db, process)).await?;
        if row.status.is_end() { hand_over(call, &told).await.map(Some) } else { Ok::<_, ToolError>(None) }
    };
    if let Some(output) = wait::until(call, &on, wait::bound(call, wait_ms).wait, look).await? {
        return Ok(output);
    }
    let limits = *call.host.limits();
    let now = call.host.store().read(move |db| {
        Ok::<_, ToolError>((process_table::get(db, process)?.status, process_table::capacity(db, process, &limits)?))
    });
    let (status, capacity) = now.await?;
    let mut output = Output::new(&*told)?;
    output.value["status"] = serde_json::json!(status);
    output.value["capacity"] = serde_json::json!(capacity);
    Ok(output)
}

async fn hand_over(call: &Call, told: &Arc<Spawned>) -> Result<Output, ToolError> {
    let (told, recorder, limits) = (told.clone(), call.recorder.clone(), *call.host.limits());
    let chars = limits.answer_chars as usize;
    call.host
        .store()
        .write(move |tx| {
            let row = process_table::get(tx.db, told.process_id)?;
            let (mail, all) = message_box::take_from(tx, &row, chars)?;
            let before = mail.into_iter().filter(|one| one.kind != message_box::Kind::Final);
            let result = Ended {
                content: row.result.as_deref().map(|text| crate::text::cut(text, chars)),
                reason: row.reason,
                error: row.error.clone(),
                messages: before.map(|one| one.mail).collect(),
                more: !all,
            };
            let mut output = Output::new(&*told)?;
            output.value["status"] = serde_json::json!(row.status);
            output.value["result"] = serde_json::json!(result);
            output.value["capacity"] = serde_json::json!(process_table::capacity(tx.db, row.id, &limits)?);
            if let Some(recorder) = recorder {
                recorder.finish(tx, &record::as_result(output.value.clone(), false))?;
                output.recorded = true;
            }
            Ok::<_, ToolError>(output)
        })
        .await
}
