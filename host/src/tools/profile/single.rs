//! One tool: a subagent of which a file says what it is called. A call is a run of its own and lasts until that has ended.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use assistant_protocol::ids::ProcessId;
use assistant_protocol::types::Part;
use futures::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::caller::Caller;
use crate::host::Host;
use crate::process_table::{self, Process, Status};
use crate::registry::AssistantId;
use crate::single::{Form, Single, place};
use crate::text::cut;
use crate::tools::profile::errors;
use crate::tools::{
    Along, Audience, Call, CallError, Hints, Output, Tool, ToolError, arguments, call_row, schema, wait,
};

/// Characters that an error tells of what a run had when it failed.
const PARTIAL_CHARS_MAX: usize = 4_000;

/// What the one tool is.
#[derive(Debug)]
pub struct Offer {
    name: String,
    description: String,
    assistant: AssistantId,
    output: Option<Form>,
    /// Where other servers of the same file keep their runs.
    folder: Option<PathBuf>,
}

/// Arguments of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
struct Task {
    /// The task, complete in itself: the subagent sees nothing else of your conversation.
    #[serde(default)]
    prompt: String,
    /// Paths of files whose contents are given to it with the task.
    #[serde(default)]
    inputs: Vec<String>,
    /// Start nothing: get the result of the run of this id, which an earlier call named and did not return.
    run_id: Option<ProcessId>,
}

impl Offer {
    /// The tool of a subagent; `folder` is where the servers of its file keep their runs.
    #[must_use]
    pub fn new(single: &Single, folder: Option<PathBuf>) -> Self {
        Self {
            name: single.name.clone(),
            description: single.description.clone(),
            assistant: single.definition.id.clone(),
            output: single.output.clone(),
            folder,
        }
    }

    /// The name of the tool, and of whatever speaks for it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a client is told of the server.
    pub(crate) fn instructions(&self) -> String {
        format!(
            "One tool, {name}: each call gives a task to a fresh run of the subagent `{name}` and lasts until that has \
             ended, minutes if need be; progress names the run. Calls may be made side by side. A failed run is an error \
             and is not made again. Where a call was lost, the same call with `run_id` gets what the run left behind.",
            name = self.name
        )
    }
}

/// The row of the table.
#[must_use]
pub fn tool(offer: &Arc<Offer>) -> Tool {
    let known = schema::input::<Task>();
    let mut input_schema = known.clone();
    input_schema["required"] = json!(["prompt"]);
    // The function can do without one where a run is only fetched.
    for name in ["prompt", "inputs"] {
        input_schema["properties"][name].as_object_mut().map(|property| property.remove("default"));
    }
    let of = offer.clone();
    Tool {
        name: Cow::Owned(offer.name.clone()),
        title: Cow::Owned(offer.name.clone()),
        description: offer.description.clone(),
        audience: Audience::Everyone,
        hints: Hints { read_only: false, destructive: true, idempotent: false, open_world: true },
        output_schema: offer.output.as_ref().map_or(Value::Null, |form| form.declared.clone()),
        input_schema,
        asks_first: false,
        run: Arc::new(move |call| match arguments::read::<Task>(&call.arguments, &known) {
            Ok(task) => run(of.clone(), call, task).boxed(),
            Err(error) => std::future::ready(Err(error)).boxed(),
        }),
    }
}

/// Calls the tool.
///
/// # Errors
/// [`CallError::UnknownTool`] where `name` is another one, else why there is no result.
pub(super) async fn call(
    offer: &Arc<Offer>,
    host: &Host,
    caller: Caller,
    name: &str,
    arguments: Map<String, Value>,
    cancelled: CancellationToken,
    along: Along,
) -> Result<Output, CallError> {
    if name != offer.name {
        return Err(CallError::unknown(name));
    }
    call_row(host, caller, &tool(offer), arguments, cancelled, along).await
}

async fn run(offer: Arc<Offer>, call: Call, task: Task) -> Result<Output, ToolError> {
    if let Some(id) = task.run_id {
        return left_behind(&offer, &call, id).await;
    }
    if task.prompt.trim().is_empty() {
        return Err(ToolError::bad_argument("`prompt` is missing or empty", "Write the whole task into it."));
    }
    let mut arguments = Map::new();
    arguments.insert("assistant_id".into(), json!(offer.assistant));
    arguments.insert("query".into(), task.prompt.into());
    arguments.insert("run_mode".into(), "sync".into());
    arguments.insert("name".into(), offer.name.as_str().into());
    if !task.inputs.is_empty() {
        arguments.insert("inputs".into(), json!(task.inputs));
    }
    let spawned = crate::tools::call(
        &call.host,
        call.caller,
        "spawn_assistant",
        arguments,
        CancellationToken::new(),
        call.along.clone(),
    );
    let told = match spawned.await {
        Ok(output) => output.value,
        Err(CallError::Tool(error)) => {
            let named = errors::renamed(error, "query", "prompt");
            return Err(errors::renamed(named, "context", "prompt"));
        }
        Err(error @ CallError::UnknownTool(_)) => return Err(ToolError::internal(&error)),
    };
    let id = ProcessId::deserialize(&told["process_id"]).map_err(|error| ToolError::internal(&error))?;
    let row = call.host.store().read(move |db| process_table::get(db, id)).await?;
    names(&call, id);
    result(&offer, &row, pictures(&call, id).await?)
}

/// Tells the door whose run it is: it tells what is left of it, also of one that had ended before anybody waited for it, and
/// its id beside the result.
fn names(call: &Call, run: ProcessId) {
    if let Some(waits) = &call.along.waits {
        waits.send_replace(vec![run.into()]);
    }
}

/// The result of a run that was begun before: of this server, or of another one of the same file. One that goes on here is
/// waited for.
async fn left_behind(offer: &Offer, call: &Call, id: ProcessId) -> Result<Output, ToolError> {
    let of_this = |row: &Process| row.parent.is_none() && row.assistant_id == offer.assistant.as_str();
    let look = || async { Ok::<_, ToolError>(call.host.process(id).await?) };
    let found = match look().await?.filter(of_this) {
        Some(row) if row.status.is_end() => Some(row),
        Some(_) => {
            let on: [Uuid; 2] = [id.into(), call.caller.into()];
            let woken_by: [Uuid; 2] = [process_table::stop_key(id), call.caller.into()];
            let bound = wait::bound(call, u64::MAX);
            let ended = || async { Ok(look().await?.filter(|row| row.status.is_end())) };
            match wait::until_woken(call, &on, &woken_by, bound.wait, ended).await? {
                Some(row) => Some(row),
                None => look().await?,
            }
        }
        None => elsewhere(offer, id).await?.filter(of_this),
    };
    let row = found.ok_or_else(|| {
        let hint = "Use the run_id that progress or an earlier answer named, or leave it out to start a new run.";
        ToolError::new("unknown_run", format!("no run of `{}` has the id {id}", offer.name), hint)
    })?;
    names(call, id);
    result(offer, &row, pictures(call, id).await?)
}

/// The pictures of a result, where this host has them.
async fn pictures(call: &Call, run: ProcessId) -> Result<Vec<Part>, ToolError> {
    Ok(call.host.store().read(move |db| process_table::pictures(db, run)).await?)
}

async fn elsewhere(offer: &Offer, id: ProcessId) -> Result<Option<Process>, ToolError> {
    let Some(folder) = offer.folder.clone() else { return Ok(None) };
    let looked = tokio::task::spawn_blocking(move || place::run(&folder, id)).await;
    looked.map_err(|error| ToolError::internal(&error))
}

/// What a run gave, as the answer of the tool.
fn result(offer: &Offer, row: &Process, pictures: Vec<Part>) -> Result<Output, ToolError> {
    let name = &offer.name;
    let why = match (row.status, row.reason, row.cause) {
        (Status::Finished, ..) => return finished(offer, row, pictures),
        (Status::Failed, Some(reason), _) => reason.name().to_owned(),
        (Status::Cancelled, _, Some(cause)) => format!("cancelled, {}", cause.name()),
        (Status::Failed | Status::Cancelled, ..) => row.status.name().to_owned(),
        (Status::Queued | Status::Starting | Status::Running | Status::Waiting, ..) => {
            let message = format!("the run {} of `{name}` is {} and goes on", row.id, row.status);
            let hint =
                format!("Call again with the same arguments and with run_id \"{}\" to wait for its result.", row.id);
            return Err(ToolError { retryable: true, ..ToolError::new("still_running", message, &hint) });
        }
    };
    let error = row.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
    let had = row.result.as_deref().filter(|text| !text.trim().is_empty());
    let had = had.map(|text| format!("\nWhat it had until then: {}", cut(text, PARTIAL_CHARS_MAX))).unwrap_or_default();
    let code = row.reason.map_or(row.status.name(), |reason| reason.name());
    let message = format!("the run {} of `{name}` failed ({why}){error}{had}", row.id);
    Err(ToolError::new(code, message, "It was not made again. Mend what it names, or tell the user; then call anew."))
}

fn finished(offer: &Offer, row: &Process, pictures: Vec<Part>) -> Result<Output, ToolError> {
    let Some(form) = &offer.output else {
        let text = row.result.clone().unwrap_or_default();
        let content = std::iter::once(Part::text(text)).chain(pictures).collect();
        return Ok(Output { content: Some(content), ..Output::of(Value::Null) });
    };
    let value = row.structured.clone().ok_or_else(|| {
        let message = format!("the run {} of `{}` gave no result that fits its schema", row.id, offer.name);
        ToolError::new("output_invalid", message, "It was not made again. Call anew.")
    })?;
    Ok(Output::of(form.content(value)))
}
