//! A runner that runs an agent with its own model and tools: what it is told, and what is kept of it. The agent asks its
//! model and calls its tools by itself; what it does is told by [`events`], and what it may do is asked by [`permission`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use assistant_protocol::error::{Kind as ErrorKind, RpcError};
use assistant_protocol::task;
use assistant_protocol::types::{AgentBrief, AgentRule, PermissionResult, RuleAction, RunParams};
use serde_json::json;
use tokio::sync::OnceCell;

use super::link::Link;
use crate::events::Kind;
use crate::process_table::Process;
use crate::registry::{Action, Definition, is_all};
use crate::store::StoreError;
use crate::tools::policy::does_more;
use crate::{conversation, events as log};

mod calls;
pub(super) mod events;
pub(super) mod permission;

use calls::Calls;

/// Events of one process that are recorded. Limits count all of them.
const EVENTS_MAX: u32 = 20_000;
/// Bytes of them all, as they are told.
const BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The wish for the model of whoever spawns, which is none of the agent's.
const INHERIT: &str = "inherit";
/// Open calls of one agent that are known.
const OPEN_MAX: usize = 1_024;

/// What is known of an agent while its runner runs.
#[derive(Default)]
pub(super) struct Agent {
    /// The runner has said that it runs one.
    is: AtomicBool,
    /// The definition is not trusted with tools of the agent's own that do more than look.
    only_looks: AtomicBool,
    /// The session that it works in.
    session: Mutex<Option<String>>,
    /// A limit is reached, in words: everything that it tells from now on is answered so.
    over: OnceLock<String>,
    /// What was answered to calls that it asked about, by [`calls::key`].
    answers: Mutex<BTreeMap<String, Arc<OnceCell<PermissionResult>>>>,
    /// Its own tools that it has called and that have not answered.
    open: Mutex<BTreeSet<String>>,
    /// Calls of its own tools that are recorded.
    calls: Mutex<Calls>,
    room: Room,
}

/// What is left of the record: an agent can tell any number of things, of any size.
#[derive(Default)]
struct Room {
    events: AtomicU32,
    bytes: AtomicU64,
}

/// Whether there is room.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Taken,
    /// There is none any more; that is told once.
    Last,
    None,
}

impl Room {
    fn take(&self, bytes: usize, events_max: u32, bytes_max: u64) -> Place {
        let bytes = self.bytes.fetch_add(bytes as u64, Ordering::Relaxed).saturating_add(bytes as u64);
        let most = if bytes > bytes_max { 0 } else { events_max };
        let before = self.events.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
            (count <= events_max).then_some(if count < most { count + 1 } else { events_max + 1 })
        });
        match before {
            Ok(count) if count < most => Place::Taken,
            Ok(_) => Place::Last,
            Err(_) => Place::None,
        }
    }
}

impl Link {
    /// The runner has said that it runs an agent, which goes on with a session of its own.
    pub(super) fn runs_agent(&self, session: Option<String>) {
        *self.agent.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
        self.agent.is.store(true, Ordering::Release);
    }

    /// Whether the runner runs an agent.
    pub(super) fn is_agent(&self) -> bool {
        self.agent.is.load(Ordering::Acquire)
    }

    /// Looks whether the user trusts the definition with tools of the agent's own that do more than look.
    pub(super) async fn trusts_agent(&self, definition: &Definition) {
        let missing = self.is_agent() && self.host.lacks_own_tools(definition).await;
        self.agent.only_looks.store(missing, Ordering::Release);
    }

    /// How its agent is told what it may; none where the runner runs none.
    pub(super) fn briefing(&self) -> Option<Briefing> {
        let only_looks = self.agent.only_looks.load(Ordering::Acquire);
        self.is_agent().then_some(Briefing { only_looks })
    }

    /// The session that the agent works in.
    pub(super) fn agent_session(&self) -> Option<String> {
        self.agent.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The agent has called a tool of its own.
    fn calls_own(&self, call_id: &str) {
        let mut open = self.agent.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() < OPEN_MAX {
            open.insert(call_id.to_owned());
        }
    }

    /// A tool of the agent's own has answered; none is all of them.
    pub(super) fn own_answered(&self, call_id: Option<&str>) {
        let mut open = self.agent.open.lock().unwrap_or_else(PoisonError::into_inner);
        match call_id {
            Some(call_id) => _ = open.remove(call_id),
            None => open.clear(),
        }
    }

    /// Whether a tool of the agent's own is at work, which may take its time.
    pub(super) fn own_at_work(&self) -> bool {
        !self.agent.open.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Whether something of this size is still recorded. That nothing more is, is told once.
    async fn has_room(&self, bytes: usize) -> bool {
        match self.agent.room.take(bytes, EVENTS_MAX, BYTES_MAX) {
            Place::Taken => true,
            Place::None => false,
            Place::Last => {
                self.record(Kind::Link, json!({ "left_off": "agent", "events": EVENTS_MAX, "bytes": BYTES_MAX })).await;
                false
            }
        }
    }

    /// A limit is reached: what the agent tells or asks from now on is refused with these words.
    pub(super) fn agent_is_over(&self, limit: &str) {
        // What was reached first is told.
        let _ = self.agent.over.set(limit.to_owned());
    }

    /// The error where a limit was reached before.
    fn over(&self) -> Option<RpcError> {
        self.agent.over.get().map(|limit| RpcError::new(ErrorKind::BudgetExceeded, limit.clone()))
    }

    /// Only runners of agents tell of them.
    fn of_agent(&self) -> Result<(), RpcError> {
        match self.is_agent() {
            true => Ok(()),
            false => Err(RpcError::new(ErrorKind::MethodNotFound, "the runner's capabilities do not say `agent`")),
        }
    }

    /// Records what an agent is asked, where the runner runs one: a model of ours would have been asked with it.
    pub(super) async fn asks_agent(&self, params: &RunParams) -> Result<(), StoreError> {
        if !self.is_agent() {
            return Ok(());
        }
        let task = task::message(params.query.clone(), params.context.clone(), params.inputs.clone());
        let Some(message) = task else { return Ok(()) };
        let process = self.row.id;
        self.host.store().write_later(move |tx| conversation::append(tx, process, [(&message, None)])).await
    }
}

/// How an agent is told what it may.
#[derive(Debug, Clone, Copy)]
pub(super) struct Briefing {
    /// Of its own tools it gets those that only look.
    only_looks: bool,
}

impl Briefing {
    /// What an agent has to know, as the author of the definition wrote it; `wished` is the model that was asked for.
    pub(super) fn brief(
        self,
        row: &Process,
        definition: &Definition,
        wished: Option<String>,
        session: Option<String>,
    ) -> AgentBrief {
        let kept = |name: &str| !self.only_looks || is_all(name) || !does_more(name);
        let rule = |rule: &crate::registry::ToolRule| AgentRule {
            action: match rule.action {
                Action::Allow => RuleAction::Allow,
                Action::Ask => RuleAction::Ask,
                Action::Deny => RuleAction::Deny,
            },
            tool: rule.tool.clone(),
            pattern: rule.pattern.clone(),
        };
        AgentBrief {
            working_dir: row.working_dir.clone(),
            session,
            model: wished.filter(|model| !model.trim().is_empty() && !model.trim().eq_ignore_ascii_case(INHERIT)),
            tools: definition.tools.as_ref().map(|tools| tools.iter().filter(|name| kept(name)).cloned().collect()),
            disallowed_tools: definition.disallowed_tools.clone(),
            ask_tools: definition.ask_tools.clone(),
            rules: definition
                .rules
                .iter()
                .filter(|rule| rule.action == Action::Deny || kept(&rule.tool))
                .map(rule)
                .collect(),
            readonly: definition.readonly || self.only_looks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_much_is_recorded_and_one_word_more() {
        let check = |bytes: usize, told: usize, recorded: usize| {
            let room = Room::default();
            let taken: Vec<Place> = (0..told).map(|_| room.take(bytes, 5, 100)).collect();
            let count = |place: &Place| taken.iter().filter(|one| *one == place).count();
            let last = usize::from(told > recorded);
            let none = told - recorded - last;
            let counts = [count(&Place::Taken), count(&Place::Last), count(&Place::None)];
            assert_eq!(counts, [recorded, last, none], "{told} of {bytes} bytes");
        };
        check(1, 5, 5);
        check(1, 6, 5);
        check(1, 90, 5);
        check(40, 9, 2);
        check(101, 2, 0);
    }
}
