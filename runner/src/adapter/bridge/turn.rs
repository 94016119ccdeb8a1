//! A run as its tools see it: which there are, how a call goes to the host, and how one can end the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use assistant_protocol::ids::ThreadId;
use assistant_protocol::methods::{OnPermissionRequest, OnToolCall};
use assistant_protocol::peer::{CallError, Peer};
use assistant_protocol::types::{Part, PermissionParams, ToolCallParams, ToolCallResult, ToolSpec};
use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Ended, PERMISSION_TOOL, SERVER_NAME};
use crate::adapter::ids::Ids;
use crate::calls::is_mendable;
use crate::conversation::error_result;

/// Calls of one run that are under way at once, those for permission among them.
const CALLS_MAX: usize = 64;
/// What an agent is told that asks for permission and gets no word why not.
const NOT_PERMITTED: &str = "It is not permitted.";

/// What an agent is told that calls something behind its final answer.
const OVER: &str = "The run has ended: nothing more is called. Stop here.";

/// What the connections of a run serve.
#[derive(Debug)]
pub struct Turn {
    /// The host.
    pub peer: Peer,
    /// The thread of this runner.
    pub thread_id: ThreadId,
    /// The tools.
    pub tools: Vec<ToolSpec>,
    /// Whether [`PERMISSION_TOOL`] is one of them, in place of one of the same name.
    pub asks_permission: bool,
}

/// A run whose tools are served. Dropped, it is over for them: calls under way are cancelled.
#[derive(Debug)]
pub struct Running {
    open: Arc<Open>,
    current: Current,
}

impl Running {
    /// Waits until the run has ended through its tools; for ever where it does not.
    pub async fn ended(&self) -> Ended {
        let mut ended = self.open.ended.subscribe();
        loop {
            if let Some(ended) = ended.borrow_and_update().clone() {
                return ended;
            }
            if ended.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Whether a tool of the assistant was called.
    #[must_use]
    pub fn was_called(&self) -> bool {
        self.open.called.load(Ordering::Relaxed)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.open.over.cancel();
        self.current.open.send_if_modified(|current| {
            let mine = current.as_ref().is_some_and(|open| Arc::ptr_eq(open, &self.open));
            if mine {
                *current = None;
            }
            mine
        });
    }
}

/// The run that is going on, if one is. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Current {
    open: Arc<watch::Sender<Option<Arc<Open>>>>,
    /// The calls that it was asked to permit.
    ids: Ids,
}

impl Current {
    pub(super) fn begin(&self, turn: Turn) -> Running {
        let open = Arc::new(Open {
            turn,
            over: CancellationToken::new(),
            room: Semaphore::new(CALLS_MAX),
            ids: self.ids.clone(),
            called: AtomicBool::new(false),
            ended: watch::Sender::default(),
        });
        if let Some(before) = self.open.send_replace(Some(open.clone())) {
            before.over.cancel();
        }
        Running { open, current: self.clone() }
    }

    pub(super) fn open(&self) -> Option<Arc<Open>> {
        self.open.borrow().clone()
    }

    /// Waits for another run, or for the end of this one.
    pub(super) fn changes(&self) -> watch::Receiver<Option<Arc<Open>>> {
        self.open.subscribe()
    }
}

/// A run that is going on.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) turn: Turn,
    /// Cancelled when the run is over.
    pub(super) over: CancellationToken,
    room: Semaphore,
    ids: Ids,
    called: AtomicBool,
    /// The first end counts.
    ended: watch::Sender<Option<Ended>>,
}

impl Open {
    /// Room for one more call, as long as it is held.
    pub(super) fn room(&self) -> Result<SemaphorePermit<'_>, ToolCallResult> {
        self.room.try_acquire().map_err(|_| {
            error_result(format!(
                "{CALLS_MAX} calls are under way, as many as may be. Call again when some are answered."
            ))
        })
    }

    /// Calls a tool. An error that the agent can mend is a result; any other one ends the run.
    pub(super) async fn call(&self, tool_name: &str, arguments: Map<String, Value>) -> ToolCallResult {
        if self.ended.borrow().is_some() {
            return error_result(OVER.to_owned());
        }
        if self.turn.asks_permission && tool_name == PERMISSION_TOOL {
            return self.permission(&arguments).await;
        }
        self.called.store(true, Ordering::Relaxed);
        let params = ToolCallParams {
            thread_id: self.turn.thread_id,
            call_id: mint(),
            tool_name: tool_name.to_owned(),
            arguments: Value::Object(arguments),
        };
        match self.turn.peer.call::<OnToolCall>(&params).await {
            Ok(result) => {
                if result.end_run == Some(true) {
                    // As for models: the arguments are the answer, unless the host says it better.
                    self.end(Ended::Answer(result.structured_content.clone().unwrap_or(params.arguments)));
                }
                result
            }
            Err(error) => self.failed(tool_name, error),
        }
    }

    /// Asks whether the agent may call a tool of its own, in the way of Claude Code.
    async fn permission(&self, asked: &Map<String, Value>) -> ToolCallResult {
        let (Some(Value::String(tool_name)), Some(input @ Value::Object(_))) =
            (asked.get("tool_name"), asked.get("input"))
        else {
            return error_result(format!("`{PERMISSION_TOOL}` takes `tool_name`, a text, and `input`, an object."));
        };
        // A repeated id would get the answer to another call.
        let named = asked.get("tool_use_id").and_then(Value::as_str);
        let call_id = named.map_or_else(mint, |id| self.ids.new_id(id));
        let params = PermissionParams {
            thread_id: self.turn.thread_id,
            call_id,
            tool_name: tool_name.clone(),
            arguments: input.clone(),
            title: None,
        };
        // Calls of these tools are judged by the host anyway, when they come.
        let own = tool_name.strip_prefix("mcp__").and_then(|name| name.strip_prefix(SERVER_NAME));
        let (allowed, reason) = if own.is_some_and(|name| name.starts_with("__")) {
            (true, None)
        } else {
            match self.turn.peer.call::<OnPermissionRequest>(&params).await {
                Ok(answer) => (answer.allowed, answer.reason),
                Err(error) => {
                    let told = error.to_string();
                    self.failed(PERMISSION_TOOL, error);
                    (false, Some(told))
                }
            }
        };
        let answer = if allowed {
            json!({ "behavior": "allow", "updatedInput": params.arguments })
        } else {
            json!({ "behavior": "deny", "message": reason.unwrap_or_else(|| NOT_PERMITTED.to_owned()) })
        };
        ToolCallResult {
            content: vec![Part::text(answer.to_string())],
            structured_content: None,
            is_error: false,
            end_run: None,
        }
    }

    fn failed(&self, tool_name: &str, error: CallError) -> ToolCallResult {
        let result = error_result(format!("`{tool_name}` failed: {error}"));
        if !is_mendable(&error) {
            self.end(Ended::Failed(error.into()));
        }
        result
    }

    fn end(&self, how: Ended) {
        self.ended.send_if_modified(|ended| {
            let first = ended.is_none();
            if first {
                *ended = Some(how);
            }
            first
        });
    }
}

/// An id that no other call of any process has.
fn mint() -> String {
    format!("bridge-{}", Uuid::now_v7())
}
