//! `spawn_assistant`: find, check, write the row, and wait for the end where that is wanted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use assistant_protocol::ids::{ProcessId, ThreadId};
use assistant_protocol::types::Mail;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::grants::{self, Unavailable};
use super::once::Once;
use super::{Audience, Call, Hints, Output, Tool, ToolError, row, untrusted, wait};
use crate::caller::Caller;
use crate::message_box;
use crate::process_table::{self, Capacity, Cause, NewProcess, Reason, Status};
use crate::registry::sha256_hex;
use crate::store::Tx;

/// The longest query and the longest context, bytes.
const TASK_BYTES_MAX: usize = 1024 * 1024;
/// The longest label, characters.
const LABEL_CHARS_MAX: usize = 100;

mod choose;
mod resume;
mod tighten;

use tighten::Tighter;

use choose::{choose, choose_model, may_spawn, working_dir};

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
    #[serde(default)]
    query: String,
    /// Go on with this ended process of yours, in a new one with its conversation; instead of assistant_id or search.
    /// `query` says what to do next; after a failure it may be left out.
    resume_process_id: Option<ProcessId>,
    /// It lives on when your session ends, or you do. Default false: it ends with what spawned it.
    #[serde(default)]
    detached: bool,
    /// async returns at once; sync waits for the result, for as long as a call may. Default async.
    #[serde(default)]
    run_mode: RunMode,
    /// Background to the task.
    context: Option<String>,
    /// Folder of the assistant's file tools, below the project folder, which is the default.
    working_dir: Option<String>,
    /// A label of yours, shown in lists. Not an id.
    name: Option<String>,
    /// A configured model's name, to override the assistant's own. Leave out normally.
    model: Option<String>,
    /// Wait up to this many milliseconds for the result. Default 0, with sync the most that a call may wait.
    wait_ms: Option<u64>,
    /// Your word for this call: repeated with it, nothing more is started.
    idempotency_key: Option<String>,
    /// Tighter limits than yours, for it and what it spawns.
    limits: Option<Tighter>,
}

impl Spawn {
    /// What is asked for, however long the call waits for it.
    fn asked(&self) -> Value {
        let search = self.search.as_ref().map(|search| json!([search.text, search.min_score]));
        json!([
            self.assistant_id,
            search,
            self.query,
            self.context,
            self.working_dir,
            self.name,
            self.model,
            self.detached,
            self.resume_process_id,
            self.limits,
        ])
    }
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
    /// The wait was cut to what a call may take (milliseconds).
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_clamped_to_ms: Option<u64>,
}

/// How an assistant was found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(inline)]
struct Matched {
    score: f64,
    runners_up: Vec<RunnerUp>,
}

/// What else fits a search.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(inline)]
struct RunnerUp {
    assistant_id: String,
    score: f64,
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
    /// What it wrote before, oldest first, as recv_message gives it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    messages: Vec<Mail>,
    /// It is more than fits here: recv_message with the thread_id gives all.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

async fn spawn_assistant(call: Call, params: Spawn) -> Result<Output, ToolError> {
    let once = Once::new(&call, "spawn_assistant", params.idempotency_key.as_deref(), &params.asked())?;
    if let Some(once) = once.clone()
        && let Some(first) = call.host.store().read(move |db| once.first_answer(db)).await?
    {
        return wait_for(&call, first, &params).await;
    }
    let resumed = resume::look(&call, &params).await?;
    check_texts(&params, resumed.is_some())?;
    let (definition, matched) = match &resumed {
        Some(resumed) => (resumed.definition.clone(), None),
        None => choose(&call, &params).await?,
    };
    let host = call.host.clone();
    let (parent, spawns) = match call.caller {
        Caller::Process(id) => host.store().read(move |db| choose::parent(db, id)).await?,
        Caller::Session(_) => (None, None),
    };
    let mut granted = grants::of_definition(&definition, host.tool_aliases(), host.tools());
    granted.unavailable.extend(untrusted::lacking(&host, &definition).await?);
    may_spawn(&definition, &granted.tools, parent.as_ref(), spawns.as_deref())?;
    let wish: Vec<String> = params.model.iter().cloned().chain(definition.model.clone()).collect();
    let choice = choose_model(&call, &wish, params.model.as_deref(), parent.as_ref())?;
    let base = parent.as_ref().and_then(|parent| parent.working_dir.clone()).map(PathBuf::from);
    let base = base.or_else(|| host.project().map(Path::to_path_buf));
    let working_dir = working_dir(base, params.working_dir.as_deref())?;
    let limits = tighten::granted(&call, parent.as_ref(), params.limits.as_ref(), &choice.name).await?;
    let json_error = |error: serde_json::Error| ToolError::internal(&error);
    let definition_json = serde_json::to_string(&*definition).map_err(json_error)?;
    let new = NewProcess {
        id: ProcessId::mint(),
        thread: ThreadId::mint(),
        assistant_id: definition.id.to_string(),
        snapshot: sha256_hex(definition_json.as_bytes()),
        definition: definition_json,
        query: resumed.as_ref().map_or_else(|| params.query.clone(), |resumed| resumed.query.clone()),
        context: params.context.clone().or_else(|| resumed.as_ref().and_then(|resumed| resumed.context.clone())),
        working_dir: working_dir.map(|dir| dir.display().to_string()),
        tools: granted.tools,
        unavailable_tools: serde_json::to_string(&granted.unavailable).map_err(json_error)?,
        model_requested: wish.first().cloned(),
        model: choice.name.clone(),
        label: params.name.clone().or_else(|| resumed.as_ref().and_then(|resumed| resumed.label.clone())),
        detached: params.detached,
        resumed_from: params.resume_process_id,
        limits,
    };
    let (caller, process) = (call.caller, new.id);
    let job = move |tx: &mut Tx<'_>| {
        if let Some(first) = once.as_ref().map(|once| once.first_answer(tx.db)).transpose()?.flatten() {
            return Ok(first);
        }
        let spawned = process_table::spawn(tx, caller, &new)?;
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
            wait_clamped_to_ms: None,
        };
        let told = Output::new(&told)?.value;
        if let Some(once) = once {
            once.keep(tx, &told)?;
        }
        Ok::<_, ToolError>(told)
    };
    let told = host.store().write(job).await?;
    let unheard = CancelUnheard::new(&call, process, &params);
    let output = wait_for(&call, told, &params).await;
    unheard.heard();
    output
}

/// Cancels a process that a client waits for and whose id it has not yet, where the client gives the call up.
struct CancelUnheard(Option<(crate::host::Host, ProcessId)>);

impl CancelUnheard {
    fn new(call: &Call, process: ProcessId, params: &Spawn) -> Self {
        // Who has a key learns the id by calling again.
        let waits = params.run_mode == RunMode::Sync && params.idempotency_key.is_none();
        Self((waits && call.caller.process().is_none()).then(|| (call.host.clone(), process)))
    }

    fn heard(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelUnheard {
    fn drop(&mut self) {
        let Some((host, process)) = self.0.take() else { return };
        tokio::spawn(async move {
            let cancel = move |tx: &mut Tx<'_>| process_table::cancel(tx, process, Cause::Requested);
            if let Err(error) = host.store().write(cancel).await {
                tracing::warn!(%error, %process, "a process that nobody waits for was not cancelled");
            }
        });
    }
}

fn check_texts(params: &Spawn, resumes: bool) -> Result<(), ToolError> {
    if params.query.trim().is_empty() && !resumes {
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
    if params.model.as_ref().is_some_and(|model| model.trim().is_empty()) {
        return Err(ToolError::bad_argument("`model` is empty", "Name a configured model, or leave it out."));
    }
    if params.name.as_ref().is_some_and(|name| name.chars().count() > LABEL_CHARS_MAX) {
        let message = format!("`name` has more than {LABEL_CHARS_MAX} characters");
        return Err(ToolError::bad_argument(message, "Give a short label."));
    }
    Ok(())
}

/// Waits for the end of what was spawned, where that is wanted, and hands it over in the commit that records the answer.
async fn wait_for(call: &Call, mut told: Value, params: &Spawn) -> Result<Output, ToolError> {
    let wait_ms = params.wait_ms.unwrap_or(if params.run_mode == RunMode::Sync { u64::MAX } else { 0 });
    let bound = wait::bound(call, wait_ms);
    if let (Some(_), Some(clamped)) = (params.wait_ms, bound.clamped_to_ms) {
        told["wait_clamped_to_ms"] = json!(clamped);
    }
    if wait_ms == 0 {
        return Ok(Output::of(told));
    }
    let process = ProcessId::deserialize(&told["process_id"]).map_err(|error| ToolError::internal(&error))?;
    let on: [Uuid; 2] = [process.into(), call.caller.into()];
    let told = Arc::new(told);
    let look = || async {
        let row = call.host.store().look(|db| process_table::get(db, process))?;
        if row.status.is_end() { hand_over(call, process, &told).await.map(Some) } else { Ok::<_, ToolError>(None) }
    };
    // Of all the news of the process only its end matters here.
    let woken_by: [Uuid; 2] = [process_table::stop_key(process), call.caller.into()];
    if let Some(output) = wait::until_woken(call, &on, &woken_by, bound.wait, look).await? {
        return Ok(output);
    }
    let (limits, now) = (*call.host.limits(), call.host.now());
    let looked = call.host.store().read(move |db| {
        Ok::<_, ToolError>((
            process_table::get(db, process)?.status,
            process_table::capacity(db, process, &limits, now)?,
        ))
    });
    let (status, capacity) = looked.await?;
    let mut output = Output::of(Arc::unwrap_or_clone(told));
    output.value["status"] = json!(status);
    output.value["capacity"] = json!(capacity);
    Ok(output)
}

async fn hand_over(call: &Call, process: ProcessId, told: &Arc<Value>) -> Result<Output, ToolError> {
    let (told, along, limits) = (told.clone(), call.along.clone(), *call.host.limits());
    let (chars, caller) = (limits.answer_chars as usize, call.caller);
    call.host
        .store()
        .write(move |tx| {
            wait::still_acts(tx, caller)?;
            let row = process_table::get(tx.db, process)?;
            let (mail, all) = message_box::take_from(tx, &row, chars, along.handed_by.as_deref())?;
            // A process has each message once: a result that waits still comes by itself.
            let waits = !all && row.parent.is_some();
            let before = mail.into_iter().filter(|one| one.kind != message_box::Kind::Final);
            let result = Ended {
                content: row.result.as_deref().filter(|_| !waits).map(|text| crate::text::cut(text, chars)),
                reason: row.reason,
                error: row.error.clone(),
                messages: before.map(|one| one.mail).collect(),
                more: !all,
            };
            let mut output = Output::of(Value::clone(&told));
            output.value["status"] = json!(row.status);
            output.value["result"] = json!(result);
            output.value["capacity"] = json!(process_table::capacity(tx.db, row.id, &limits, tx.now)?);
            if let Some(recorder) = along.recorder {
                recorder.finish(tx, &output.result())?;
                output.recorded = true;
            }
            Ok::<_, ToolError>(output)
        })
        .await
}

/// Checks arguments of `spawn_assistant` without looking at anything else.
///
/// # Errors
/// What the tool itself would say of them.
#[cfg(feature = "cli")]
pub(crate) fn check(arguments: &serde_json::Map<String, Value>) -> Result<(), ToolError> {
    let params: Spawn = super::arguments::read(arguments, &super::schema::input::<Spawn>())?;
    match (&params.assistant_id, &params.search, params.resume_process_id) {
        (None, None, None) => Err(ToolError::bad_argument(
            "neither assistant_id, search nor resume_process_id is given",
            "Name an assistant, or search for one.",
        )),
        _ => check_texts(&params, params.resume_process_id.is_some()),
    }
}
