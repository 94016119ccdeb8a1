//! `spawn_assistant`: find, check, write the row, and wait for the end where that is wanted.

use std::path::{Path, PathBuf};

use assistant_protocol::ids::{ProcessId, ThreadId};
use rusqlite::Connection;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::once::Once;
use super::{Audience, Call, Hints, Output, Tool, ToolError, grants, lacking, row};
use crate::blobs;
use crate::caller::Caller;
use crate::launcher::Launcher;
use crate::model::Choice;
use crate::process_table::{self, NewProcess, Process};
use crate::registry::sha256_hex;
use crate::servers::Place;
use crate::store::{StoreError, Tx};

/// The longest query and the longest context, bytes.
const TASK_BYTES_MAX: usize = 1024 * 1024;
/// The longest label, characters.
const LABEL_CHARS_MAX: usize = 100;

mod choose;
mod depth;
mod inputs;
mod launcher;
mod resume;
mod runner;
mod schema;
mod tighten;
mod told;
mod waited;

pub(super) use choose::session_may;

use choose::{choose, choose_model, let_spawn, working_dir};
use inputs::Inputs;
use tighten::Tighter;
use told::{ModelTold, Spawned};
use waited::{CancelUnheard, wait_for};

pub(super) fn rows() -> Vec<Tool> {
    let hints = Hints { read_only: false, destructive: false, idempotent: false, open_world: true };
    vec![row::<_, Spawned, _, _>("spawn_assistant", "Start an assistant", Audience::Everyone, hints, spawn_assistant)]
}

/// Arguments of `spawn_assistant`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Spawn {
    /// Which assistant. Either this or search.
    assistant_id: Option<String>,
    /// Description of the task; the best match is spawned. Instead of assistant_id.
    search: Option<BySearch>,
    /// The task, complete in itself: the assistant sees nothing else of your conversation.
    #[serde(default)]
    query: String,
    /// Go on with this ended process of yours, in a new one with its conversation, instead of assistant_id.
    /// `query` says what next; after a failure it may be left out.
    resume_process_id: Option<ProcessId>,
    /// It lives on when your session ends, or you do. Default false: it ends with what spawned it.
    #[serde(default)]
    detached: bool,
    /// sync waits for the result, for as long as a call may. Default async.
    #[serde(default)]
    run_mode: RunMode,
    /// Background to the task.
    context: Option<String>,
    /// Text files and pictures of the task: paths below the project folder.
    #[serde(default)]
    inputs: Vec<String>,
    /// JSON schema that the result has to fit.
    output_schema: Option<Map<String, Value>>,
    /// Folder of its file tools, below the project folder, which is the default.
    working_dir: Option<String>,
    /// A label of yours, shown in lists. Not an id.
    name: Option<String>,
    /// A configured model, instead of its own. Leave out normally.
    model: Option<String>,
    /// A configured runner.
    runner: Option<String>,
    /// Wait up to this many milliseconds for the result. Default 0, with sync the most.
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
            self.inputs,
            self.output_schema,
            self.runner,
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
    // By another spelling nobody was asked about it.
    let named = params.assistant_id.as_deref() == Some(definition.id.as_str());
    let mut parent = match call.caller {
        Caller::Process(id) => host.store().read(move |db| choose::parent(db, id, named)).await?,
        Caller::Session(_) => None,
    };
    let runner = runner::choose(&host, params.runner.as_deref(), resumed.as_ref(), &definition)?;
    let agent = host.is_agent(runner.as_deref()).then_some(runner.as_deref()).flatten();
    if let (Some(parent), Some(_)) = (&mut parent, agent) {
        parent.own_tools = parent.row.agent && !host.lacks_own_tools(&parent.definition).await;
    }
    let mut granted = grants::of_definition(&definition, host.tool_aliases(), host.tools());
    let of_parent = parent.as_ref().map(|parent| &parent.row);
    let by = launcher::choose(&host, resumed.as_ref(), of_parent, &definition)?;
    let far = by.filter(|launcher| launcher.is_elsewhere());
    if let Some(launcher) = far {
        launcher::without_files(&mut granted, launcher);
    }
    let_spawn(&definition, &granted.tools, agent.is_some(), parent.as_ref(), &host)?;
    if let Some(parent) = &parent {
        inputs::may_give(parent, &params.inputs, host.tool_aliases())?;
    }
    let parent = parent.map(|parent| parent.row);
    let wish: Vec<String> = params.model.iter().cloned().chain(definition.model.clone()).collect();
    let choice = match agent {
        Some(runner) => {
            let by_default = params.runner.is_none() && resumed.is_none() && definition.runner.is_none();
            choose::model_of_agent(runner, wish.first(), host.default_runner_why().filter(|_| by_default))
        }
        None => match runner.as_deref().and_then(|runner| choose::no_model_of_program(runner, &host)) {
            Some(choice) => choice,
            None => choose_model(&call, &wish, params.model.as_deref(), parent.as_ref())?,
        },
    };
    // That of one that works elsewhere is none here.
    let is_here = |parent: &&Process| {
        !host.launcher(parent.launcher.as_deref()).is_ok_and(|by| by.is_some_and(Launcher::is_elsewhere))
    };
    let base = parent.as_ref().filter(is_here).and_then(|parent| parent.working_dir.clone()).map(PathBuf::from);
    let base = base.or_else(|| host.project().map(Path::to_path_buf));
    let schema = schema::wanted(&params, resumed.as_ref(), &definition).await?;
    // It comes with the schema; a definition may name it all the same.
    granted.unavailable.retain(|lack| schema.is_none() || lack.tool != "final_answer");
    let inputs = inputs::read(base.as_deref(), host.hidden(), &params.inputs, host.limits().blob_bytes).await?;
    let earlier = resumed.as_ref().and_then(|resumed| resumed.inputs.clone()).unwrap_or_default();
    let Inputs { files, pictures } = inputs.behind(earlier)?;
    let folder = |wanted: Option<&str>| match (far, wanted) {
        (Some(launcher), wanted) => launcher::far_dir(launcher, wanted),
        (None, Some(wanted)) if base.as_deref() == Some(Path::new(wanted)) => Ok(base.clone()),
        (None, wanted) => working_dir(base.clone(), wanted),
    };
    // It goes on where it was, as long as that is its caller's to give.
    let before = resumed.iter().filter(|_| params.working_dir.is_none()).flat_map(|resumed| &resumed.folders);
    let working_dir = match before.map(|dir| folder(Some(dir))).find_map(Result::ok) {
        Some(dir) => dir,
        None => folder(params.working_dir.as_deref())?,
    };
    let place = Place { working_dir: working_dir.as_deref(), by, depth: 0 };
    granted.unavailable = lacking::lacking(&host, &definition, granted.unavailable, place, agent.is_some()).await?;
    // What an agent's model costs is known when it has told it; without any model none is paid.
    let has_model = agent.is_none() && host.models().names().next().is_some();
    let priced = has_model.then_some(choice.name.as_str());
    let mut limits = tighten::granted(&call, parent.as_ref(), params.limits.as_ref(), priced).await?;
    depth::bound(&call, parent.as_ref(), &definition, &mut limits).await?;
    let json_error = |error: serde_json::Error| ToolError::internal(&error);
    let definition_json = serde_json::to_string(&*definition).map_err(json_error)?;
    let new = NewProcess {
        id: ProcessId::mint(),
        thread: ThreadId::mint(),
        assistant_id: definition.id.to_string(),
        snapshot: sha256_hex(definition_json.as_bytes()),
        definition: definition_json,
        query: resumed.as_ref().map_or_else(|| params.query.clone(), |resumed| resumed.query_for(agent.is_some())),
        context: params.context.clone().or_else(|| resumed.as_ref().and_then(|resumed| resumed.context.clone())),
        working_dir: working_dir.map(|dir| dir.display().to_string()),
        tools: granted.tools,
        unavailable_tools: serde_json::to_string(&granted.unavailable).map_err(json_error)?,
        model_requested: wish.first().cloned(),
        model: choice.name.clone(),
        agent: agent.is_some(),
        runner: runner.clone(),
        keeps_runner: params.runner.is_none(),
        launcher: by.map(|launcher| launcher.name.clone()),
        label: params.name.clone().or_else(|| resumed.as_ref().and_then(|resumed| resumed.label.clone())),
        detached: params.detached,
        resumed_from: params.resume_process_id,
        continues: definition.session == Some(true),
        inputs: (!files.is_empty()).then(|| json!(files).to_string()),
        output_schema: schema.map(|schema| schema.to_string()),
        limits,
    };
    let worktree_gone = resumed.and_then(|resumed| resumed.worktree_gone);
    let (caller, process) = (call.caller, new.id);
    let job = move |tx: &mut Tx<'_>| {
        if let Some(first) = once.as_ref().map(|once| once.first_answer(tx.db)).transpose()?.flatten() {
            return Ok(first);
        }
        let spawned = process_table::spawn(tx, caller, &new)?;
        blobs::keep(tx, new.id, &pictures, &new.limits)?;
        let model = told_model(tx.db, &new, choice)?;
        let told = Spawned {
            process_id: new.id,
            thread_id: new.thread,
            assistant_id: new.assistant_id,
            status: spawned.status,
            matched,
            model,
            unavailable_tools: granted.unavailable,
            capacity: spawned.capacity,
            continued_from: spawned.continued_from,
            started_afresh: spawned.afresh.map(str::to_owned),
            worktree_gone,
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

/// Which model it got: where it goes on with a conversation by itself, perhaps that of another runner.
fn told_model(db: &Connection, new: &NewProcess, choice: Choice) -> Result<ModelTold, StoreError> {
    let used = if new.continues { process_table::get(db, new.id)?.model } else { choice.name.clone() };
    let why = choice.why.filter(|_| used == choice.name);
    Ok(ModelTold { requested: new.model_requested.clone(), used, why })
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
