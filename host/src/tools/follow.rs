//! `wait_assistant`: the next thing that happens to several processes.
//!
//! The cursor is a place in the host's sequence of events, so that nothing is told twice and nothing is skipped. What is
//! handed to a process by it is delivered in the same commit.

use std::sync::Arc;

use assistant_protocol::ids::{MessageId, ProcessId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::processes::{mine, structured};
use super::usage::{self, UsageSeen};
use super::{Audience, Call, Hints, Output, Tool, ToolError, cursor, row, wait};
use crate::caller::Caller;
use crate::events::{self, News};
use crate::message_box::{self, questions};
use crate::process_table::{self, Status};
use crate::store::Tx;
use crate::text::cut;

mod handed;

/// Processes that one call names.
const NAMED_MAX: usize = 100;
/// Things that one answer tells.
const EVENTS_MAX: u32 = 50;
/// Characters of an event beside its content.
const FRAME_CHARS: usize = 600;
/// Ends that were not told before, of one look.
const UNTOLD_MAX: u32 = 100;
/// How long a call waits, unless the caller says otherwise, milliseconds.
const WAIT_MS_DEFAULT: u64 = 20_000;

pub(super) fn rows() -> Vec<Tool> {
    let take = Hints { read_only: false, destructive: false, idempotent: false, open_world: false };
    vec![row::<_, Waited, _, _>("wait_assistant", "Wait for processes", Audience::Everyone, take, wait_assistant)]
}

/// Arguments of `wait_assistant`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct Wait {
    /// Which processes, at most 100. Default: all of yours that have not ended, or whose end you were not told.
    #[serde(default)]
    process_ids: Vec<ProcessId>,
    /// any: until the first thing happens; all: until all have ended, or one has a question. Default any.
    #[serde(default)]
    mode: Mode,
    /// Wait up to this many milliseconds. Default 20000.
    wait_ms: Option<u64>,
    /// Go on behind this place: next_cursor of an earlier answer.
    cursor: Option<String>,
}

/// What a wait is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Mode {
    /// The first thing that happens.
    #[default]
    Any,
    /// The end of all.
    All,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Happened {
    /// It has a result.
    Finished,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// It asks you something: answer it.
    Question,
    /// It wrote to you.
    Message,
}

impl Happened {
    fn is_end(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Cancelled)
    }
}

/// One thing that happened.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(inline)]
struct Event {
    process_id: ProcessId,
    assistant_id: String,
    kind: Happened,
    /// The result, what was written, or why it failed; a long one is cut: recv_message has all.
    content: String,
    /// The same as data, if it has a schema and is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minItems" = 0))]
    structured: Option<serde_json::Value>,
    /// The question that it is.
    #[serde(rename = "message_id", skip_serializing_if = "Option::is_none")]
    question: Option<MessageId>,
    /// Of an end, as poll_assistant tells it.
    #[schemars(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageSeen>,
    /// Absent where it spawned nothing.
    #[schemars(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    usage_tree: Option<UsageSeen>,
}

impl Event {
    fn new(process_id: ProcessId, assistant_id: String, kind: Happened, content: String) -> Self {
        Self {
            process_id,
            assistant_id,
            kind,
            content,
            structured: None,
            question: None,
            usage: None,
            usage_tree: None,
        }
    }
}

/// Result of `wait_assistant`.
#[derive(Debug, Serialize, JsonSchema)]
struct Waited {
    /// Oldest first.
    events: Vec<Event>,
    /// Those that have not ended.
    still_running: Vec<ProcessId>,
    /// For the next call.
    next_cursor: String,
    /// The wait was cut to this, the most of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_clamped_to_ms: Option<u64>,
}

/// A wait, checked: which processes, and from which place on.
struct Wanted {
    /// None are all of the caller's.
    named: Vec<ProcessId>,
    mode: Mode,
    /// None: ends are told whenever they were, messages only if they are not delivered.
    after: Option<i64>,
    chars: usize,
}

async fn wait_assistant(call: Call, params: Wait) -> Result<Output, ToolError> {
    if params.process_ids.len() > NAMED_MAX {
        let message = format!("{} processes are named, the most is {NAMED_MAX}", params.process_ids.len());
        return Err(ToolError::bad_argument(message, "Name fewer, or none: that is all of yours."));
    }
    let after = params.cursor.as_deref().map(|text| cursor::read(text, "wait_assistant")).transpose()?;
    let (caller, named) = (call.caller, params.process_ids.clone());
    let named = call.host.store().read(move |db| {
        if after.is_some() {
            cursor::within(after, events::newest(db)?, "wait_assistant")?;
        }
        for process in &named {
            mine(db, caller, *process)?;
        }
        let watched = if named.is_empty() { process_table::living_of(db, caller)? } else { named.clone() };
        let everyone = match caller {
            Caller::Session(session) if named.is_empty() => process_table::principal_key(db, session)?,
            Caller::Session(_) | Caller::Process(_) => None,
        };
        Ok::<_, ToolError>((named, watched, everyone))
    });
    let chars = call.host.limits().answer_chars as usize;
    let (named, watched, everyone) = named.await?;
    let wanted = Arc::new(Wanted { named, mode: params.mode, after, chars });
    let bound = wait::bound(&call, params.wait_ms.unwrap_or(WAIT_MS_DEFAULT));
    let mut on: Vec<Uuid> = watched.into_iter().map(Uuid::from).collect();
    on.push(caller.into());
    let look = || take(&call, wanted.clone(), false, bound.clamped_to_ms);
    // What other sessions of the principal begin meanwhile is told too.
    let woken_by: Vec<Uuid> = on.iter().copied().chain(everyone).collect();
    if let Some(output) = wait::until_woken(&call, &on, &woken_by, bound.wait, look).await? {
        return Ok(output);
    }
    take(&call, wanted, true, bound.clamped_to_ms).await?.ok_or_else(ToolError::cancelled)
}

/// One look: what has happened, or none while the wait goes on (unless that is an answer too).
async fn take(
    call: &Call,
    wanted: Arc<Wanted>,
    empty_too: bool,
    wait_clamped_to_ms: Option<u64>,
) -> Result<Option<Output>, ToolError> {
    let (host, caller, along) = (call.host.clone(), call.caller, call.along.clone());
    let job = move |tx: &mut Tx<'_>| {
        wait::still_acts(tx, caller)?;
        let named = meant(tx, caller, &wanted)?;
        let still_running: Vec<ProcessId> = running(tx, &named)?;
        let (told, last) = news(tx, caller, &wanted, &named)?;
        let question = told.iter().any(|told| told.event.kind == Happened::Question);
        let over = still_running.is_empty()
            || match wanted.mode {
                Mode::Any => told.iter().any(|told| told.is_new),
                Mode::All => question,
            };
        if !over && !empty_too {
            return Ok(None);
        }
        let mut events: Vec<Event> = match caller {
            Caller::Process(me) => handed::hand_over(tx, me, told, wanted.chars, along.handed_by.as_deref())?,
            Caller::Session(session) => {
                let events: Vec<Event> = told.into_iter().map(|told| told.event).collect();
                let ended = events.iter().filter(|event| event.kind.is_end()).map(|event| event.process_id);
                message_box::ends::told(tx, session, ended)?;
                let asked: Vec<_> = events.iter().filter_map(|event| event.question).collect();
                questions::hand_to_session(tx, &asked)?;
                events
            }
        };
        for event in events.iter_mut().filter(|event| event.kind.is_end()) {
            let used = usage::of(tx.db, &process_table::get(tx.db, event.process_id)?, host.models())?;
            (event.usage, event.usage_tree) = (Some(used.own), used.tree);
        }
        let waited = Waited { events, still_running, next_cursor: last.to_string(), wait_clamped_to_ms };
        let mut output = Output::new(&waited)?;
        if let Some(recorder) = along.recorder {
            recorder.finish(tx, &output.result())?;
            output.recorded = true;
        }
        Ok::<_, ToolError>(Some(output))
    };
    call.host.store().write(job).await
}

/// The processes that a wait is for, as things are now.
fn meant(tx: &Tx<'_>, caller: Caller, wanted: &Wanted) -> Result<Vec<ProcessId>, ToolError> {
    if !wanted.named.is_empty() {
        return Ok(wanted.named.clone());
    }
    let mut all = process_table::living_of(tx.db, caller)?;
    all.extend(message_box::ends::untold(tx.db, caller, UNTOLD_MAX)?);
    if let Some(after) = wanted.after {
        for process in events::with_news(tx.db, after)? {
            match mine(tx.db, caller, process) {
                Ok(row) => all.push(row.id),
                Err(error) if error.code == "unknown_process" => {}
                Err(error) => return Err(error),
            }
        }
    }
    all.sort();
    all.dedup();
    Ok(all)
}

/// What has happened to these processes, as much as one answer holds, and the place up to which that is all.
fn news(tx: &Tx<'_>, caller: Caller, wanted: &Wanted, named: &[ProcessId]) -> Result<(Vec<Told>, i64), ToolError> {
    let (mut told, mut last): (Vec<Told>, i64) = (Vec::new(), wanted.after.unwrap_or(0));
    let mut left = wanted.chars;
    loop {
        let page = events::news(tx.db, named, last, EVENTS_MAX)?;
        let is_last = page.len() < EVENTS_MAX as usize;
        for news in page {
            let seq = news.seq;
            // A question that came to another one with its process stands in the log twice.
            let known =
                |one: &Told| one.event.question.is_some() && told.iter().any(|other| other.message == one.message);
            if let Some(one) = happened(tx, caller, wanted.after.is_none(), news)?.filter(|one| !known(one)) {
                // A result stands in it twice where it is data.
                let twice = if one.event.structured.is_some() { 2 } else { 1 };
                let size = twice * one.event.content.chars().count() + FRAME_CHARS;
                if told.len() >= EVENTS_MAX as usize || (size > left && !told.is_empty()) {
                    return Ok((told, last));
                }
                left = left.saturating_sub(size);
                told.push(one);
            }
            last = seq;
        }
        if is_last && wanted.named.is_empty() {
            // All of the caller's is told up to now: what was told before stays behind the cursor.
            return Ok((told, last.max(events::newest(tx.db)?)));
        }
        if is_last {
            return Ok((told, last));
        }
    }
}

fn running(tx: &Tx<'_>, named: &[ProcessId]) -> Result<Vec<ProcessId>, ToolError> {
    let mut running = Vec::new();
    for process in named {
        if !process_table::get(tx.db, *process)?.status.is_end() {
            running.push(*process);
        }
    }
    Ok(running)
}

/// Something that happened, and what hangs on it.
struct Told {
    event: Event,
    /// Who wrote it; none is the session.
    from: Option<ProcessId>,
    /// The message that it is; an end has none.
    message: Option<MessageId>,
    /// The caller was not told before.
    is_new: bool,
}

/// What an event of the log is to the caller; none where it is nothing to it.
fn happened(tx: &Tx<'_>, caller: Caller, first_look: bool, news: News) -> Result<Option<Told>, ToolError> {
    let row = process_table::get(tx.db, news.process)?;
    let Some(message) = news.message else {
        let kind = match row.status {
            Status::Finished => Happened::Finished,
            Status::Failed => Happened::Failed,
            Status::Cancelled => Happened::Cancelled,
            Status::Queued | Status::Starting | Status::Running | Status::Waiting => return Ok(None),
        };
        let is_new = match caller {
            Caller::Session(_) => true,
            Caller::Process(me) => message_box::ends::waits(tx.db, me, row.id)?,
        };
        let content = cut(&process_table::told_words(tx.db, &row)?, CONTENT_CHARS_MAX);
        let structured = structured(&row, CONTENT_CHARS_MAX);
        let event = Event { structured, ..Event::new(row.id, row.assistant_id, kind, content) };
        return Ok(Some(Told { event, from: Some(row.id), message: None, is_new }));
    };
    let Some(found) = message_box::find(tx.db, message)? else { return Ok(None) };
    let to_me = found.mail.to_process_id == caller.process();
    let known = match caller {
        Caller::Session(_) => first_look && (found.delivered || found.mail.read_at.is_some()),
        // It is in its conversation, whatever the cursor.
        Caller::Process(_) => found.delivered,
    };
    let kind = match found.kind {
        message_box::Kind::Message => Happened::Message,
        message_box::Kind::Question if still_asked(tx, message)? => Happened::Question,
        // It was answered, or nobody waits for the answer any more.
        message_box::Kind::Question => return Ok(None),
        message_box::Kind::Answer | message_box::Kind::Final => return Ok(None),
    };
    if !to_me || known {
        return Ok(None);
    }
    let from = found.mail.from_process_id;
    let content = cut(&found.mail.content, CONTENT_CHARS_MAX);
    let event = Event {
        question: (kind == Happened::Question).then_some(message),
        ..Event::new(from.unwrap_or(row.id), found.mail.from_assistant_id, kind, content)
    };
    Ok(Some(Told { event, from, message: Some(message), is_new: true }))
}

/// Characters of one result or message in an answer; so that several fit.
const CONTENT_CHARS_MAX: usize = 8_000;

/// Whether a question still waits for its answer.
fn still_asked(tx: &Tx<'_>, message: MessageId) -> Result<bool, ToolError> {
    let asked = questions::find(tx.db, message)?;
    Ok(asked.is_some_and(|asked| asked.state == questions::QuestionState::Pending && asked.answer_by_at > tx.now))
}
