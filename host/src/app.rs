//! What an embedding app adds: tools of its own, and who is asked before they are called.

use std::fmt;
use std::sync::Arc;

use assistant_protocol::ids::{ProcessId, ThreadId};
use assistant_protocol::types::Part;
use futures::future::BoxFuture;
use serde_json::{Map, Value};

pub use crate::blobs::file;
use crate::caller::Caller;
use crate::tools::{Hints, ToolError};

/// The longest name of a tool, characters: what all providers of models take.
pub const TOOL_NAME_CHARS_MAX: usize = 64;

/// What a tool of an app does: it gets a call, and gives a result or an error that a model can act on.
pub type AppHandler = Arc<dyn Fn(AppCall) -> BoxFuture<'static, Result<AppOutput, ToolError>> + Send + Sync>;

/// What a tool of an app gives. A JSON object is one, by `into`.
#[derive(Debug, Clone, PartialEq)]
pub struct AppOutput {
    /// The result as data: a JSON object.
    pub value: Value,
    /// What a model is shown instead: texts, pictures ([`Part::Image`] with base64) and files ([`file()`]). Pictures and files
    /// are kept and known by handles, as are texts that are longer than `limits.answer_chars`. None: the value as text.
    pub content: Option<Vec<Part>>,
}

impl From<Value> for AppOutput {
    fn from(value: Value) -> Self {
        Self { value, content: None }
    }
}

impl From<Vec<Part>> for AppOutput {
    fn from(content: Vec<Part>) -> Self {
        Self { value: Value::Object(Map::new()), content: Some(content) }
    }
}

/// A tool of the app.
///
/// An assistant has it where its definition names it, or `prefix__*`, or its prefix without `builtin_` in
/// `allowed_builtin_service_aliases`.
#[derive(Clone)]
pub struct AppTool {
    /// `prefix__tool`: two names of `^[a-z][a-z0-9_]*$`, at most 64 characters in all.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// What it is for, for models.
    pub description: String,
    /// The JSON schema of its arguments: an object.
    pub input_schema: Value,
    /// What may be assumed of it.
    pub hints: Hints,
    /// MCP clients are offered it too; else only assistants.
    pub for_clients: bool,
    /// The approval handler is asked before each call.
    pub needs_approval: bool,
    /// What it does.
    pub run: AppHandler,
}

impl fmt::Debug for AppTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppTool").field("name", &self.name).finish_non_exhaustive()
    }
}

/// One call of a tool of the app. Dropping the handler's future gives it up.
#[derive(Debug, Clone)]
pub struct AppCall {
    /// Who calls: a session or a process.
    pub caller: Caller,
    /// On whose behalf.
    pub principal: String,
    /// The assistant that calls; none is an MCP client.
    pub assistant_id: Option<String>,
    /// Its conversation.
    pub thread: Option<ThreadId>,
    /// The arguments, as the model gave them: not checked against the schema.
    pub arguments: Map<String, Value>,
}

/// A call that waits for approval.
#[derive(Debug, Clone)]
pub struct Approval {
    /// Who calls; none is an MCP client.
    pub process: Option<ProcessId>,
    /// Its assistant.
    pub assistant_id: Option<String>,
    /// The tool.
    pub tool: String,
    /// What it is called with.
    pub arguments: Map<String, Value>,
}

/// What becomes of a call that needs approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It is made.
    Allow,
    /// It is not made; the model is told why.
    Deny {
        /// Why.
        reason: String,
    },
}

/// Who approves calls: a window of the app, most likely.
pub trait Approve: Send + Sync {
    /// Decides about a call. The process waits meanwhile and holds no slot; its wall time goes on, and nobody waits
    /// longer than that. The future is dropped where the call is given up.
    fn approve(&self, ask: Approval) -> BoxFuture<'_, Decision>;
}
