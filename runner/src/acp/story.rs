//! What an agent does in a turn, put together from its updates: whole texts, and of each call one beginning and one end.

use std::collections::{BTreeMap, BTreeSet};

use agent_client_protocol::v1::schema::{
    ContentChunk, MessageId, SessionUpdate, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use assistant_protocol::types::{AgentEvent, Part};
use serde_json::Value;

use super::calls::{Call, told_name};
use super::heard::{progress, result, text_of};
use crate::adapter::ids::{ID_BYTES_MAX, Ids, cut, hash};
use crate::adapter::pieces::TEXT_BYTES_MAX;

/// Bytes that are kept of calls that go on, about; of one beyond them nothing is told and nothing allowed.
const CALLS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Calls of a turn. What comes beyond is not told.
const CALLS_MAX: usize = 10_000;
/// What is told of a call that was never answered.
const UNANSWERED: &str = "The turn ended before this call was answered. It may have had its effect.";

/// Something to tell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Told {
    /// To the log of the host.
    Event(AgentEvent),
    /// To whoever watches.
    Progress { text: String, fraction: Option<f64> },
}

/// A turn as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct Story {
    ids: Ids,
    /// Tools of our own server, whose calls are told elsewhere; and its name.
    ours: BTreeSet<String>,
    server: &'static str,
    /// What is said, or thought, and not told yet.
    open: Option<Open>,
    /// The last text, as much of it as is kept.
    last: String,
    calls: BTreeMap<String, Tracked>,
    /// Calls are pending that are not told.
    holds_calls: bool,
    left_out: usize,
    /// What calls take of memory that go on.
    bytes: usize,
    /// Dollars, over the whole session, as the agent told last.
    cost_usd: Option<f64>,
}

#[derive(Debug, Default)]
struct Open {
    is_thought: bool,
    message: Option<MessageId>,
    /// Its beginning.
    kept: String,
    /// Its end, as far as it is not told.
    untold: String,
}

#[derive(Debug, Default)]
struct Tracked {
    id: String,
    call: Call,
    is_told: bool,
    is_done: bool,
    /// There was no room for it.
    is_left_out: bool,
    /// It is of a tool of ours.
    is_ours: bool,
    /// What the call takes of memory.
    bytes: usize,
    /// Permission was asked.
    is_asked: bool,
}

impl Story {
    /// A turn of an agent that has `ours` by the server of that name; `ids` are those of the turns before.
    pub(crate) fn new(server: &'static str, ours: BTreeSet<String>, ids: Ids) -> Self {
        Self { ours, server, ids, ..Self::default() }
    }

    /// The ids of its calls, and of those before.
    pub(crate) fn ids(&self) -> Ids {
        self.ids.clone()
    }

    /// What the agent has said last.
    pub(crate) fn last(&self) -> &str {
        &self.last
    }

    /// The same while it goes on: what it says now, as far as it has come.
    pub(crate) fn said(&self) -> &str {
        match &self.open {
            Some(open) if !open.is_thought && !open.kept.trim().is_empty() => &open.kept,
            Some(_) | None => &self.last,
        }
    }

    /// What the session has cost so far, in US dollars, where the agent tells.
    pub(crate) fn cost_usd(&self) -> Option<f64> {
        self.cost_usd
    }

    /// Calls that were not told.
    pub(crate) fn left_out(&self) -> usize {
        self.left_out
    }

    /// Takes an update in; gives what is to be told now, in order.
    pub(crate) fn add(&mut self, update: SessionUpdate) -> Vec<Told> {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => self.say(false, chunk),
            SessionUpdate::AgentThoughtChunk(chunk) => self.say(true, chunk),
            SessionUpdate::ToolCall(call) => {
                let mut update = ToolCallUpdate::new(call.tool_call_id, {
                    let mut fields = ToolCallUpdateFields::default();
                    (fields.title, fields.name, fields.kind) = (Some(call.title), call.name, Some(call.kind));
                    (fields.status, fields.content) = (Some(call.status), Some(call.content));
                    (fields.locations, fields.raw_input) = (Some(call.locations), call.raw_input);
                    fields.raw_output = call.raw_output;
                    fields
                });
                update.meta = call.meta;
                self.call(update)
            }
            SessionUpdate::ToolCallUpdate(update) => self.call(update),
            SessionUpdate::Plan(plan) => {
                let far = progress(&plan);
                far.map(|(text, far)| Told::Progress { text, fraction: Some(far) }).into_iter().collect()
            }
            update => {
                self.cost_usd = cost_of(&update).or(self.cost_usd);
                Vec::new()
            }
        }
    }

    /// A call for which permission is asked: what is known of it, and the id to ask with; nothing where it is beyond the
    /// calls of a turn. And what is to be told before.
    pub(crate) fn asks(&mut self, mut update: ToolCallUpdate) -> (Option<(Call, String)>, Vec<Told>) {
        // What is asked for is not done, whatever the agent says.
        update.fields.status = None;
        let id = key(&update.tool_call_id.to_string());
        // One that has ended begins anew, under an id of its own: what was told of it says nothing about this one.
        if let Some(tracked) = self.calls.get_mut(&id).filter(|tracked| tracked.is_done) {
            if tracked.is_left_out {
                return (None, Vec::new());
            }
            *tracked = Tracked { id: self.ids.new_id(&tracked.id), ..Tracked::default() };
        }
        let mut told = self.call(update);
        let Some(tracked) = self.calls.get_mut(&id).filter(|tracked| !tracked.is_left_out) else {
            return (None, told);
        };
        told.extend(begin(tracked, self.server, &self.ours));
        let asked_as = match std::mem::replace(&mut tracked.is_asked, true) {
            false => tracked.id.clone(),
            true => self.ids.new_id(&tracked.id),
        };
        (Some((tracked.call.clone(), asked_as)), told)
    }

    /// The call is told elsewhere: it is one of a tool of ours.
    pub(crate) fn is_ours(&self, call: &Call) -> bool {
        call.is_of(self.server, &self.ours)
    }

    /// Something is not told, because more of it may come.
    pub(crate) fn is_holding(&self) -> bool {
        self.holds_calls || self.open.as_ref().is_some_and(|open| !open.untold.is_empty())
    }

    /// What is held back, as far as it is known.
    pub(crate) fn so_far(&mut self) -> Vec<Told> {
        let said = self.open.as_mut().and_then(|open| piece(open.is_thought, std::mem::take(&mut open.untold)));
        let mut told: Vec<Told> = said.into_iter().collect();
        if std::mem::take(&mut self.holds_calls) {
            told.extend(self.calls.values_mut().filter_map(|tracked| begin(tracked, self.server, &self.ours)));
        }
        told
    }

    /// The turn is over: what is still to be told.
    pub(crate) fn end(&mut self) -> Vec<Told> {
        let mut told = self.close();
        for tracked in self.calls.values_mut().filter(|tracked| !tracked.is_done) {
            told.extend(begin(tracked, self.server, &self.ours));
            tracked.is_done = true;
            if !tracked.is_ours {
                let content = vec![Part::text(UNANSWERED)];
                told.push(Told::Event(AgentEvent::ToolResult { call_id: tracked.id.clone(), content, is_error: true }));
            }
        }
        told
    }

    fn say(&mut self, is_thought: bool, ContentChunk { content, message_id, .. }: ContentChunk) -> Vec<Told> {
        let text = text_of(&content);
        if text.is_empty() {
            return Vec::new();
        }
        let is_same = |open: &Open| {
            open.is_thought == is_thought
                && (open.message == message_id || open.message.is_none() || message_id.is_none())
        };
        let mut told = if self.open.as_ref().is_some_and(is_same) { Vec::new() } else { self.close() };
        let open = self.open.get_or_insert_with(|| Open { is_thought, message: message_id, ..Open::default() });
        open.kept.push_str(cut(&text, TEXT_BYTES_MAX - open.kept.len()));
        open.untold.push_str(&text);
        while open.untold.len() > TEXT_BYTES_MAX {
            let rest = open.untold.split_off(cut(&open.untold, TEXT_BYTES_MAX).len());
            told.extend(piece(is_thought, std::mem::replace(&mut open.untold, rest)));
        }
        told
    }

    /// Ends what is being said.
    fn close(&mut self) -> Vec<Told> {
        let Some(open) = self.open.take() else { return Vec::new() };
        if !open.is_thought && !open.kept.trim().is_empty() {
            self.last = open.kept;
        }
        piece(open.is_thought, open.untold).into_iter().collect()
    }

    fn call(&mut self, update: ToolCallUpdate) -> Vec<Told> {
        let id = key(&update.tool_call_id.to_string());
        if !self.calls.contains_key(&id) && self.calls.len() >= CALLS_MAX {
            self.left_out += 1;
            return Vec::new();
        }
        let mut told = self.close();
        let ids = &self.ids;
        let tracked =
            self.calls.entry(id).or_insert_with_key(|id| Tracked { id: ids.new_id(id), ..Tracked::default() });
        if tracked.is_done {
            return told;
        }
        let (status, output) = (update.fields.status.unwrap_or_default(), update.fields.raw_output.clone());
        merge(&mut tracked.call, update);
        let before = std::mem::replace(&mut tracked.bytes, tracked.call.bytes());
        self.bytes = self.bytes.saturating_sub(before) + tracked.bytes;
        if self.bytes > CALLS_BYTES_MAX {
            self.left_out += 1;
            self.bytes -= std::mem::take(&mut tracked.bytes);
            (tracked.call, tracked.is_done, tracked.is_left_out) = (Call::default(), true, true);
            return told;
        }
        // What is pending may still get its arguments.
        if status == ToolCallStatus::Pending {
            self.holds_calls |= !tracked.is_told;
        } else {
            told.extend(begin(tracked, self.server, &self.ours));
        }
        if matches!(status, ToolCallStatus::Completed | ToolCallStatus::Failed) {
            if !tracked.is_ours {
                let content = result(&tracked.call.content, output.as_ref());
                let is_error = status == ToolCallStatus::Failed;
                told.push(Told::Event(AgentEvent::ToolResult { call_id: tracked.id.clone(), content, is_error }));
            }
            self.bytes -= std::mem::take(&mut tracked.bytes);
            (tracked.call, tracked.is_done) = (Call::default(), true);
        }
        told
    }
}

/// What an update says anew of a call.
fn merge(call: &mut Call, ToolCallUpdate { fields, meta, .. }: ToolCallUpdate) {
    let ToolCallUpdateFields { kind, title, name, content, locations, raw_input, .. } = fields;
    call.kind = kind.unwrap_or(call.kind);
    call.title = title.filter(|title| !title.is_empty()).unwrap_or_else(|| std::mem::take(&mut call.title));
    call.name = told_name(name.as_deref(), meta.as_ref()).or_else(|| call.name.take());
    call.content = content.filter(|all| !all.is_empty()).unwrap_or_else(|| std::mem::take(&mut call.content));
    call.locations = locations.filter(|all| !all.is_empty()).unwrap_or_else(|| std::mem::take(&mut call.locations));
    call.input = raw_input.filter(|input| !is_empty(input)).or_else(|| call.input.take());
}

/// What a call is found by: its id, cut where it is long.
fn key(id: &str) -> String {
    if id.len() <= ID_BYTES_MAX {
        return id.to_owned();
    }
    format!("{}#{:x}", cut(id, ID_BYTES_MAX), hash(id))
}

/// Tells that a call has begun, once.
fn begin(tracked: &mut Tracked, server: &str, ours: &BTreeSet<String>) -> Option<Told> {
    if std::mem::replace(&mut tracked.is_told, true) {
        return None;
    }
    tracked.is_ours = tracked.call.is_of(server, ours);
    if tracked.is_ours {
        return None;
    }
    let named = tracked.call.shown();
    let call_id = tracked.id.clone();
    Some(Told::Event(AgentEvent::ToolCall { call_id, tool_name: named.tool_name, arguments: named.arguments }))
}

fn piece(is_thought: bool, text: String) -> Option<Told> {
    if text.trim().is_empty() {
        return None;
    }
    Some(Told::Event(if is_thought { AgentEvent::Reasoning { text } } else { AgentEvent::Text { text } }))
}

/// What the session has cost so far, in US dollars, where an update tells.
pub(crate) fn cost_of(update: &SessionUpdate) -> Option<f64> {
    let SessionUpdate::UsageUpdate(usage) = update else { return None };
    let cost = usage.cost.as_ref().filter(|cost| cost.currency.eq_ignore_ascii_case("usd"))?;
    Some(cost.amount).filter(|amount| amount.is_finite() && *amount >= 0.0)
}

fn is_empty(input: &Value) -> bool {
    match input {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}
