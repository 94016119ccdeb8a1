//! The tool table: the same rows serve MCP clients and runners.
//!
//! A tool is a name, texts, two schemas and a function. `call` is the one way in: it checks who asks and what is
//! asked, bounds and catches, and turns what goes wrong into words that a model can act on.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use assistant_protocol::peer::Turn;
use assistant_protocol::types::{Part, ToolCallResult};
use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::caller::Caller;
use crate::host::Host;
use crate::limits::Limits;
use crate::servers::Given;
use crate::text::TOOL_NAME_CHARS_MAX;

mod app;
mod arguments;
mod assistants;
pub(crate) mod blobs;
pub(crate) mod consent;
mod cursor;
mod errors;
mod files;
mod follow;
pub mod grants;
mod lacking;
mod list;
mod log;
mod messages;
mod once;
pub(crate) mod outfit;
mod paths;
pub mod policy;
mod processes;
pub mod profile;
mod questions;
pub(crate) mod record;
pub mod schema;
pub(crate) mod service_context;
mod spawn;
mod talk;
mod texts;
pub(crate) mod usage;
mod wait;

pub(crate) use lacking::title as lacking_title;

pub(crate) use app::with_those_of;
pub use errors::ToolError;
pub(crate) use paths::Own;
pub(crate) use record::Recorder;
#[cfg(feature = "cli")]
pub(crate) use spawn::check as check_spawn;
pub use texts::instructions;
pub(crate) use wait::Waits;

/// One row of the table.
#[derive(Clone)]
pub struct Tool {
    /// Its name: `^[a-z][a-z0-9_]{2,29}$`.
    pub name: Cow<'static, str>,
    /// Its name for people.
    pub title: Cow<'static, str>,
    /// What it is for, for models; at most 900 bytes.
    pub description: String,
    /// Who is offered it.
    pub audience: Audience,
    /// What a client may assume of it.
    pub hints: Hints,
    /// The JSON schema of its arguments: an object, portable.
    pub input_schema: Value,
    /// The JSON schema of its result: an object; null where the result is a text.
    pub output_schema: Value,
    /// Whoever approves calls is waited for.
    asks_first: bool,
    run: Arc<dyn Fn(Call) -> BoxFuture<'static, Result<Output, ToolError>> + Send + Sync>,
}

impl Tool {
    fn may_wait(&self) -> bool {
        self.asks_first || self.input_schema["properties"].get("wait_ms").is_some()
    }
}

/// Who is offered a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// MCP clients, and assistants whose definition grants it.
    Everyone,
    /// Assistants only.
    Runners,
}

/// What a client may assume of a tool; the names are MCP's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: bool,
    /// It may end or overwrite something.
    pub destructive: bool,
    /// A second call with the same arguments changes nothing more.
    pub idempotent: bool,
    /// It reaches beyond this host.
    pub open_world: bool,
}

/// One call of a tool.
pub(crate) struct Call {
    /// The host that is asked.
    pub(crate) host: Host,
    /// Who asks.
    pub(crate) caller: Caller,
    /// What is asked, checked against the schema's names and not yet read.
    pub(crate) arguments: Map<String, Value>,
    /// What goes along with it.
    pub(crate) along: Along,
}

/// What goes along with a call, depending on the door that it came by.
#[derive(Default, Clone)]
pub(crate) struct Along {
    /// Where the result of a process's call is recorded.
    pub(crate) recorder: Option<Recorder>,
    /// The call in whose result a process gets its mail.
    pub(crate) handed_by: Option<String>,
    /// Where it tells what it waits for.
    pub(crate) waits: Option<Waits>,
    /// The call's place among those of its process: they are carried out in the order in which they came, up to where one
    /// waits.
    pub(crate) turn: Option<Turn>,
    /// How long a client waits at most, milliseconds, where that is not `limits.client_wait_ms`.
    pub(crate) client_wait_ms: Option<u64>,
    /// Held as long as anything of the call is at work: its process is not settled meanwhile.
    pub(crate) at_work: Option<Arc<tokio::sync::OwnedRwLockReadGuard<()>>>,
}

/// What a tool gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// The structured result, complete in itself.
    pub value: Value,
    /// What a model is shown instead of the value as text: texts, pictures, handles.
    pub content: Option<Vec<Part>>,
    /// The call failed in a way that the model can mend; only tools of others say so in their result.
    pub is_error: bool,
    /// It is recorded in the conversation of the calling process already, with what it handed over.
    pub recorded: bool,
    /// It is the accepted result of the calling process: its run is over.
    pub end_run: bool,
}

impl Output {
    fn new(value: &impl Serialize) -> Result<Self, ToolError> {
        Ok(Self::of(serde_json::to_value(value).map_err(|error| ToolError::internal(&error))?))
    }

    fn of(value: Value) -> Self {
        Self { value, content: None, is_error: false, recorded: false, end_run: false }
    }

    /// What a tool server gave.
    pub(crate) fn of_server(given: Given) -> Self {
        let value = given.structured.unwrap_or(Value::Null);
        Self { content: Some(given.content), is_error: given.is_error, ..Self::of(value) }
    }

    /// The result as a runner gets it.
    pub(crate) fn result(&self) -> ToolCallResult {
        let mut result = record::as_result(self.value.clone(), self.is_error);
        if let Some(content) = &self.content {
            result.content.clone_from(content);
        }
        result.end_run = self.end_run.then_some(true);
        result
    }
}

/// The beginning of a name that nobody knows, for a message: as it is, blanks too.
pub(crate) fn unknown_name(name: &str) -> String {
    name.chars().take(TOOL_NAME_CHARS_MAX).collect()
}

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// There is no such tool for this caller.
    #[error("there is no tool `{0}`")]
    UnknownTool(String),
    /// Something that the caller can mend or wait for.
    #[error("{0}")]
    Tool(#[from] ToolError),
}

impl CallError {
    /// There is no tool `name`, however long that is.
    pub(crate) fn unknown(name: &str) -> Self {
        Self::UnknownTool(unknown_name(name))
    }
}

/// Whether the host's own tool of this name looks at files.
pub(crate) fn is_of_files(name: &str) -> bool {
    files::FILE_TOOLS.contains(&name)
}

/// The whole table, sorted by name, with the configured limits in its texts.
#[must_use]
pub fn table(limits: &Limits) -> Vec<Tool> {
    let mut all = Vec::new();
    all.extend(assistants::rows());
    all.extend(spawn::rows());
    all.extend(processes::rows());
    all.extend(messages::rows());
    all.extend(list::rows());
    all.extend(log::rows());
    all.extend(follow::rows());
    all.extend(questions::rows());
    all.extend(files::rows());
    all.extend(blobs::rows());
    for tool in &mut all {
        tool.description = texts::filled_in(&tool.description, limits);
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

/// A row, from its types and its function.
fn row<P, R, F, Fut>(name: &'static str, title: &'static str, audience: Audience, hints: Hints, run: F) -> Tool
where
    P: DeserializeOwned + JsonSchema,
    R: JsonSchema,
    F: Fn(Call, P) -> Fut + Send + Sync + Clone + 'static,
    Fut: Future<Output = Result<Output, ToolError>> + Send + 'static,
{
    let input_schema = schema::input::<P>();
    let known = input_schema.clone();
    Tool {
        name: Cow::Borrowed(name),
        title: Cow::Borrowed(title),
        description: texts::description(name).to_owned(),
        audience,
        hints,
        output_schema: schema::output::<R>(),
        input_schema,
        asks_first: false,
        run: Arc::new(move |call| match arguments::read::<P>(&call.arguments, &known) {
            Ok(params) => run(call, params).boxed(),
            Err(error) => std::future::ready(Err(error)).boxed(),
        }),
    }
}

/// Calls a tool for a caller.
///
/// A panic of the tool is an error of this one call. Dropping the future gives the call up.
///
/// # Errors
/// [`CallError::UnknownTool`] where the caller has no such tool, else what the tool says.
pub(crate) async fn call(
    host: &Host,
    caller: Caller,
    name: &str,
    arguments: Map<String, Value>,
    cancelled: CancellationToken,
    along: Along,
) -> Result<Output, CallError> {
    let unknown = || CallError::unknown(name);
    let tool = host.tools().iter().find(|tool| tool.name == name).ok_or_else(unknown)?;
    if matches!((tool.audience, caller), (Audience::Runners, Caller::Session(_))) {
        return Err(unknown());
    }
    call_row(host, caller, tool, arguments, cancelled, along).await
}

/// Calls a row of whatever list for a caller who is offered it.
pub(crate) async fn call_row(
    host: &Host,
    caller: Caller,
    tool: &Tool,
    arguments: Map<String, Value>,
    cancelled: CancellationToken,
    along: Along,
) -> Result<Output, CallError> {
    let name = tool.name.as_ref();
    host.note_sleep().await.map_err(ToolError::from)?;
    if let Caller::Session(session) = caller {
        host.look_after(session, name, &arguments).await.map_err(ToolError::from)?;
    }
    let asked = Call { host: host.clone(), caller, arguments, along };
    let running = AssertUnwindSafe((tool.run)(asked)).catch_unwind();
    let outcome = tokio::select! {
        outcome = running => outcome,
        () = cancelled.cancelled() => return Err(ToolError::cancelled().into()),
    };
    match outcome {
        Ok(outcome) => Ok(outcome?),
        Err(_) => {
            tracing::error!(tool = name, "a tool panicked");
            Err(ToolError::internal(&format!("the tool {name} panicked")).into())
        }
    }
}

/// Whether a tool only looks at what is outside of the tables and does not wait: it may be at work before it is recorded
/// that it is. (What clients have too may hand something over.)
pub(crate) fn only_looks(host: &Host, name: &str) -> bool {
    let looks = |tool: &Tool| tool.audience == Audience::Runners && tool.hints.read_only && !tool.may_wait();
    host.tools().iter().any(|tool| tool.name == name && looks(tool))
}

/// Whether the app is asked before each call of a tool anyway.
pub(crate) fn asks_first(host: &Host, name: &str) -> bool {
    host.tools().iter().any(|tool| tool.name == name && tool.asks_first)
}

/// How long a call of a process may take. Waits of its own are bounded by its wall time only.
pub(crate) fn time_limit(host: &Host, name: &str, limits: &Limits) -> std::time::Duration {
    let waits = host.tools().iter().any(|tool| tool.name == name && tool.may_wait());
    std::time::Duration::from_millis(if waits { limits.wall_ms } else { limits.tool_call_ms })
}

/// A tool's result as MCP and runners want it: the structured value, and the same as one text.
#[must_use]
pub fn as_text(value: &Value) -> String {
    value.to_string()
}

/// The row as it is listed, for `tools --json` and `schema/tools.json`.
#[must_use]
pub fn listed(tool: &Tool) -> Value {
    json!({
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": {
            "readOnlyHint": tool.hints.read_only,
            "destructiveHint": tool.hints.destructive,
            "idempotentHint": tool.hints.idempotent,
            "openWorldHint": tool.hints.open_world,
        },
    })
}
