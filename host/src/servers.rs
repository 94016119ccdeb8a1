//! Tool servers: MCP servers whose tools assistants are given. Started when they are needed, shared, ended when idle.

use std::time::Duration;

use assistant_protocol::types::Part;
use serde_json::{Map, Value};

use crate::host::Host;
use crate::process_table::Process;
use crate::registry::Definition;

pub mod presets;

/// A tool of a server, as it is offered to an assistant.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedTool {
    /// The server, by its name in the configuration or the definition.
    pub server: String,
    /// Its name there.
    pub tool: String,
    /// What it is for, in the server's words, bounded.
    pub description: String,
    /// The JSON schema of its arguments: an object, portable.
    pub input_schema: Value,
    /// It says of itself that it changes nothing.
    pub read_only: bool,
}

/// What a call of a server's tool gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// Texts, pictures, handles.
    pub content: Vec<Part>,
    /// The same as data, where the server gave it.
    pub structured: Option<Value>,
    /// The server says that it failed.
    pub is_error: bool,
}

/// Why a server's tools are not there, or a call of one gave nothing. Words for a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ServerError {
    /// `server_failed`, `server_busy`, `too_slow`, `unknown_tool`, …: stable.
    pub code: &'static str,
    /// What happened, and to which server.
    pub message: String,
}

/// The servers that one process uses.
#[derive(Debug, Clone, Default)]
pub struct Servers {}

impl Servers {
    /// The servers of a process: those that its definition names and that may run. Nothing is started.
    pub(crate) async fn of(host: &Host, row: &Process, definition: &Definition) -> Self {
        let _ = (host, row, definition);
        Self {}
    }

    /// Their tools, and why the others have none (server, reason). Starts what has to be started.
    pub(crate) async fn tools(&self) -> (Vec<ServedTool>, Vec<(String, String)>) {
        (Vec::new(), Vec::new())
    }

    /// Calls a tool. Dropping the future cancels the call at the server.
    pub(crate) async fn call(
        &self,
        tool: &ServedTool,
        arguments: Map<String, Value>,
        within: Duration,
    ) -> Result<Given, ServerError> {
        let _ = (arguments, within);
        Err(ServerError { code: "unknown_tool", message: format!("there is no server `{}`", tool.server) })
    }
}
