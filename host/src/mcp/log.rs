//! What a run does, told to the client while it does it: `notifications/message` of MCP. A task of its own reads the
//! record and tells of it, so that neither the run nor its result waits for a client that reads slowly.
#![expect(deprecated, reason = "MCP means to remove these messages; clients of the handshake era show them")]

use std::collections::HashMap;
use std::time::Duration;

use assistant_protocol::ids::ProcessId;
use assistant_protocol::types::{Message, Part, Role};
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::conversation;
use crate::events::{self, Event, Kind};
use crate::host::Host;
use crate::store::StoreError;
use crate::text::cut;

/// Characters of a text of a run that are told.
const TEXT_CHARS_MAX: usize = 4_000;
/// Messages and events that are read at once.
const PAGE: u32 = 100;
/// How long the answer of a call waits until the client has taken what was told before it.
const LAST_WITHIN: Duration = Duration::from_secs(1);
/// Events that are told as they are; all else is in the conversation.
const KINDS: &[Kind] = &[Kind::ModelRetry, Kind::ModelAnswer, Kind::Refused, Kind::Server, Kind::Status];

/// From which level on a client wants to be told; what it has set last counts.
pub(super) type Level = std::sync::Mutex<Option<LoggingLevel>>;

/// Whoever tells a client of the runs of one call.
pub(super) struct Following {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// The level that a call is told at: what its own request says, else what the session has set. Sessions without a
/// handshake are told only what their request asks for.
pub(super) fn level(context: &RequestContext<RoleServer>, of_session: &Level) -> Option<LoggingLevel> {
    let shakes = context.protocol_version().is_none_or(|version| version.has_initialize());
    let set = *of_session.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    context.meta.log_level().or(if shakes { set.or(Some(LoggingLevel::Info)) } else { None })
}

impl Following {
    /// Begins to tell of the runs that `waited_for` names, from `level` on, as `logger`.
    pub(super) fn begin(
        host: &Host,
        peer: &Peer<RoleServer>,
        logger: String,
        level: LoggingLevel,
        waited_for: watch::Receiver<Vec<Uuid>>,
    ) -> Self {
        let stop = CancellationToken::new();
        let teller = Teller { host: host.clone(), peer: peer.clone(), logger, level };
        let task = tokio::spawn(teller.tell(waited_for, stop.clone()));
        Self { stop, task }
    }

    /// Tells the rest, as far as the client takes it in time.
    pub(super) async fn end(mut self) {
        self.stop.cancel();
        if tokio::time::timeout(LAST_WITHIN, &mut self.task).await.is_err() {
            tracing::debug!("a client did not take all that was told of a run");
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Teller {
    host: Host,
    peer: Peer<RoleServer>,
    logger: String,
    level: LoggingLevel,
}

/// How far a run has been told.
#[derive(Default)]
struct Told {
    message: i64,
    event: i64,
    /// Tools by the calls that are open.
    tools: HashMap<String, String>,
}

/// What is told at once: its level and the data.
type Line = (LoggingLevel, Value);

impl Teller {
    async fn tell(self, mut waited_for: watch::Receiver<Vec<Uuid>>, stop: CancellationToken) {
        let mut told: HashMap<ProcessId, Told> = HashMap::new();
        loop {
            // Looked at first: what was recorded before the end of the call is told.
            let last = stop.is_cancelled();
            let ids = waited_for.borrow_and_update().clone();
            let mut waiters: Vec<_> = ids.iter().map(|id| self.host.store().waiter(*id)).collect();
            for id in ids.iter().map(|id| ProcessId::from(*id)) {
                let told = told.entry(id).or_default();
                if let Err(why) = self.rest(id, told).await {
                    tracing::debug!(why, "a client is told no more of a run");
                    return;
                }
            }
            if last {
                return;
            }
            let news = async {
                let news = waiters.iter_mut().map(|waiter| Box::pin(waiter.news())).collect::<Vec<_>>();
                if news.is_empty() { std::future::pending().await } else { futures::future::select_all(news).await.0 }
            };
            tokio::select! {
                () = news => {}
                changed = waited_for.changed() => if changed.is_err() { stop.cancelled().await },
                () = stop.cancelled() => {}
            }
        }
    }

    /// Tells what a run has done since.
    async fn rest(&self, id: ProcessId, told: &mut Told) -> Result<(), String> {
        loop {
            let (after_message, after_event) = (told.message, told.event);
            let look = self.host.store().read(move |db| {
                let messages = conversation::since(db, id, after_message, PAGE)?;
                Ok::<_, StoreError>((messages, events::select(db, id, after_event, PAGE, KINDS, false)?))
            });
            let (messages, events) = look.await.map_err(|error| error.to_string())?;
            if messages.is_empty() && events.is_empty() {
                return Ok(());
            }
            let mut lines = Vec::new();
            for recorded in &messages {
                told.message = recorded.seq;
                lines.extend(of_message(id, recorded.position, &recorded.message, &mut told.tools));
            }
            for event in &events {
                told.event = event.seq;
                lines.extend(of_event(id, event));
            }
            for (level, data) in lines.into_iter().filter(|(level, _)| *level as u8 >= self.level as u8) {
                let line = LoggingMessageNotificationParam::new(level, data).with_logger(self.logger.clone());
                self.peer.notify_logging_message(line).await.map_err(|error| error.to_string())?;
            }
        }
    }
}

/// What is told of a message of the conversation.
fn of_message(run: ProcessId, position: u32, message: &Message, tools: &mut HashMap<String, String>) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut calls = Vec::new();
    for part in message.content.parts().iter() {
        match part {
            Part::Reasoning { text: Some(text) } => {
                let text = cut(text, TEXT_CHARS_MAX);
                lines.push((LoggingLevel::Debug, json!({ "type": "response", "run_id": run, "reasoning": text })));
            }
            Part::Text { text } if message.role == Role::Assistant && !text.trim().is_empty() => {
                let text = cut(text, TEXT_CHARS_MAX);
                lines.push((LoggingLevel::Info, json!({ "type": "response", "run_id": run, "text": text })));
            }
            Part::ToolCall { call_id, tool_name, arguments } => {
                tools.insert(call_id.clone(), tool_name.clone());
                let arguments = match arguments {
                    Ok(arguments) => bounded(arguments),
                    Err(text) => json!(cut(text, TEXT_CHARS_MAX)),
                };
                let told = json!({
                    "type": "tool_call", "run_id": run, "callId": call_id, "tool": tool_name, "arguments": arguments,
                });
                calls.push((LoggingLevel::Info, told));
            }
            Part::ToolResult { call_id, content, is_error } => {
                let texts = content.iter().filter_map(|part| match part {
                    Part::Text { text } => Some(text.as_str()),
                    _ => None,
                });
                let text = cut(&texts.collect::<Vec<_>>().join("\n"), TEXT_CHARS_MAX);
                let level = if *is_error { LoggingLevel::Warning } else { LoggingLevel::Info };
                let told = json!({
                    "type": "tool_result", "run_id": run, "callId": call_id, "tool": tools.remove(call_id),
                    "isError": is_error, "text": text,
                });
                lines.push((level, told));
            }
            _ => {}
        }
    }
    let id = |position: u32| format!("{run}/{position}");
    let told = json!({
        "type": "message_saved", "run_id": run, "messageId": id(position), "role": message.role,
        "parentId": position.checked_sub(1).map(id),
    });
    lines.push((LoggingLevel::Info, told));
    // What calls is saved before it is called.
    lines.extend(calls);
    lines
}

fn bounded(arguments: &Value) -> Value {
    let text = arguments.to_string();
    if text.len() <= TEXT_CHARS_MAX { arguments.clone() } else { json!(cut(&text, TEXT_CHARS_MAX)) }
}

/// What is told of an event that leaves nothing in the conversation: what went wrong.
fn of_event(run: ProcessId, event: &Event) -> Option<Line> {
    let data = &event.data;
    let kind = event.kind;
    let words = events::in_words(kind.name(), data);
    let (level, kind) = match kind {
        Kind::ModelRetry => (LoggingLevel::Warning, "response"),
        Kind::ModelAnswer if data["error"].is_string() => (LoggingLevel::Error, "response"),
        Kind::Refused => (LoggingLevel::Warning, "tool_result"),
        Kind::Server if data["failed"] == true => (LoggingLevel::Warning, "tool_result"),
        Kind::Status if matches!(data["status"].as_str(), Some("failed" | "cancelled")) => {
            (LoggingLevel::Error, "response")
        }
        _ => return None,
    };
    let told = json!({ "type": kind, "run_id": run, "error": words.map(|words| cut(&words, TEXT_CHARS_MAX)) });
    Some((level, told))
}
