//! One run of an assistant, as its agent sees it: what it is to do, and the way to the host.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::ids::ThreadId;
use assistant_protocol::methods::{OnAgentEvent, OnPermissionRequest, OnProgress};
use assistant_protocol::peer::{CallError, Peer};
use assistant_protocol::types::{
    AgentBrief, AgentEvent, AgentEventParams, AssistantBrief, PermissionParams, PermissionResult, ProgressParams,
    RunLimits, ToolSpec,
};
use serde_json::Value;
use tokio::sync::watch;

use super::bridge::{Bridge, Ended, Turn};
use super::lines::excerpt;
use super::pieces::pieces;

/// A run. Clones are the same run; a run that is over answers nothing more.
#[derive(Clone)]
pub(crate) struct Run(Arc<Inner>);

struct Inner {
    peer: Peer,
    thread_id: ThreadId,
    assistant: AssistantBrief,
    brief: AgentBrief,
    tools: Vec<ToolSpec>,
    turns: Arc<Turns>,
    heard: Mutex<Heard>,
    over: watch::Sender<Option<Ended>>,
}

/// The calls of its model that an assistant may make, in all its runs, and those that were told.
#[derive(Default)]
pub(super) struct Turns {
    most: Option<u32>,
    told: AtomicU32,
}

impl Turns {
    pub(super) fn of(limits: &RunLimits) -> Self {
        Self { most: limits.turns, told: AtomicU32::new(0) }
    }
}

/// What was heard of an agent, for a run that does not end by its answer.
#[derive(Default)]
struct Heard {
    /// What it has said last.
    text: String,
    /// What it waits for, where it tells.
    waits: Option<String>,
    /// It said something, or called a tool.
    acted: bool,
    /// How the first thing began that it wrote and that was not understood.
    odd: Option<String>,
    /// The last line of its stderr.
    stderr: Option<String>,
}

impl Run {
    pub(super) fn new(
        peer: Peer,
        thread_id: ThreadId,
        assistant: AssistantBrief,
        brief: AgentBrief,
        tools: Vec<ToolSpec>,
        turns: Arc<Turns>,
    ) -> Self {
        let (heard, over) = (Mutex::default(), watch::Sender::new(None));
        Self(Arc::new(Inner { peer, thread_id, assistant, brief, tools, turns, heard, over }))
    }

    /// Who the agent is to be.
    pub(crate) fn assistant(&self) -> &AssistantBrief {
        &self.0.assistant
    }

    /// What the assistant's author wrote of the agent.
    pub(crate) fn brief(&self) -> &AgentBrief {
        &self.0.brief
    }

    /// The tools that it can call by its way back.
    pub(crate) fn tools(&self) -> &[ToolSpec] {
        &self.0.tools
    }

    /// The calls of its model that are left, but one at least: the host ends what has none. None without a limit.
    pub(crate) fn turns_left(&self) -> Option<u32> {
        let told = self.0.turns.told.load(Ordering::Relaxed);
        self.0.turns.most.map(|most| most.saturating_sub(told).max(1))
    }

    /// Tells the host what the agent does, in order: the next one is told when this one is answered.
    ///
    /// # Errors
    /// The host wants no more of it: the run is to end with this error.
    pub(crate) async fn tell(&self, event: AgentEvent) -> Result<(), RpcError> {
        match &event {
            AgentEvent::Text { .. }
            | AgentEvent::Reasoning { .. }
            | AgentEvent::ToolCall { .. }
            | AgentEvent::ToolResult { .. } => self.acts(),
            AgentEvent::Usage { calls, .. } => {
                self.heard().waits = None;
                self.0.turns.told.fetch_add(*calls, Ordering::Relaxed);
            }
            AgentEvent::Session { .. } | AgentEvent::Lacks { .. } | AgentEvent::Other => {}
        }
        for event in pieces(event) {
            let params = AgentEventParams { thread_id: self.0.thread_id, event };
            match self.0.peer.call::<OnAgentEvent>(&params).await {
                Ok(_) => {}
                Err(error) if ends_run(&error) => return Err(error.into()),
                Err(error) => crate::complain(&format!("the host did not take an event: {error}")),
            }
        }
        Ok(())
    }

    /// Tells what cannot be passed on to the agent.
    ///
    /// # Errors
    /// As [`Run::tell`].
    pub(crate) async fn lacks(&self, what: impl Into<String>, why: impl Into<String>) -> Result<(), RpcError> {
        self.tell(AgentEvent::Lacks { what: what.into(), why: why.into() }).await
    }

    /// Tells whoever watches how far the agent is, or what it waits for. Nothing depends on it.
    pub(crate) async fn progress(&self, text: String, fraction: Option<f64>) {
        let params = ProgressParams { thread_id: self.0.thread_id, text, fraction };
        if let Err(error) = self.0.peer.call::<OnProgress>(&params).await {
            crate::complain(&format!("the host did not take a word about progress: {error}"));
        }
    }

    /// Tells that the agent waits for its model, and keeps it: a run that is given up meanwhile ends with it.
    pub(crate) async fn waits(&self, text: String) {
        self.heard().waits = Some(text.clone());
        self.progress(text, None).await;
    }

    /// Asks the host whether the agent may make a call of its own.
    ///
    /// # Errors
    /// The host's.
    pub(crate) async fn may(
        &self,
        call_id: String,
        tool_name: String,
        arguments: Value,
        title: Option<String>,
    ) -> Result<PermissionResult, CallError> {
        let params = PermissionParams { thread_id: self.0.thread_id, call_id, tool_name, arguments, title };
        self.0.peer.call::<OnPermissionRequest>(&params).await
    }

    /// Does `work` while the way back serves the tools of this run, and ends the run where one of them does.
    pub(crate) async fn with_tools<T>(
        &self,
        bridge: &Bridge,
        asks_permission: bool,
        work: impl Future<Output = T>,
    ) -> T {
        let Inner { peer, thread_id, tools, .. } = &*self.0;
        let turn = Turn { peer: peer.clone(), thread_id: *thread_id, tools: tools.clone(), asks_permission };
        let serving = bridge.begin(turn);
        let mut work = std::pin::pin!(work);
        tokio::select! {
            biased;
            ended = serving.ended() => {
                let is_answer = matches!(ended, Ended::Answer(_));
                self.0.over.send_replace(Some(ended));
                // Behind its answer it may come to its end.
                if is_answer { work.await } else { std::future::pending().await }
            }
            worked = &mut work => {
                if serving.was_called() {
                    self.acts();
                }
                worked
            }
        }
    }

    /// Waits until the run was ended by its tools.
    pub(super) async fn over(&self) -> Ended {
        let mut over = self.0.over.subscribe();
        match over.wait_for(Option::is_some).await.map(|over| over.clone()) {
            Ok(Some(over)) => over,
            // The sender lives in this run.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// Whether it was ended by its tools.
    pub(super) fn is_over(&self) -> bool {
        self.0.over.borrow().is_some()
    }

    /// The agent says this now, as far as it has come: where the run is given up, it is what there is.
    pub(crate) fn says(&self, text: &str) {
        let mut heard = self.heard();
        if heard.text != text {
            text.clone_into(&mut heard.text);
        }
    }

    /// The agent wrote something that was not understood, which begins so. The first of a run is kept.
    pub(crate) fn not_understood(&self, beginning: &str) {
        self.heard().odd.get_or_insert_with(|| beginning.to_owned());
    }

    /// The last line that the agent wrote to stderr.
    pub(crate) fn wrote_to_stderr(&self, line: Option<&str>) {
        self.heard().stderr = line.map(str::to_owned);
    }

    fn acts(&self) {
        let mut heard = self.heard();
        heard.acted = true;
        heard.waits = None;
    }

    /// Whether the agent said something, or called a tool.
    pub(super) fn has_acted(&self) -> bool {
        self.heard().acted
    }

    /// What the agent has said last.
    pub(super) fn last_text(&self) -> String {
        self.heard().text.clone()
    }

    /// The same for a run that is given up: with what the agent waits for.
    pub(super) fn so_far(&self) -> String {
        let heard = self.heard();
        match &heard.waits {
            None => heard.text.clone(),
            Some(waits) if heard.text.is_empty() => format!("[{waits}]"),
            Some(waits) => format!("{}\n\n[{waits}]", heard.text),
        }
    }

    /// The error for an agent that has ended its turn without a word, where something that it wrote may tell why.
    pub(super) fn silence(&self) -> Option<RpcError> {
        let heard = self.heard();
        let stderr = heard.stderr.as_deref().map(|line| excerpt(line.as_bytes()));
        let stderr = stderr.map(|line| format!("; the last line of its stderr: {line}"));
        match (&heard.odd, stderr) {
            (Some(odd), stderr) => {
                let text = format!(
                    "the agent has ended its turn without a word that was understood; it wrote: {odd}{}",
                    stderr.unwrap_or_default()
                );
                Some(RpcError::new(Kind::InternalError, text))
            }
            (None, Some(stderr)) => {
                let error =
                    RpcError::new(Kind::ModelFailed, format!("the agent has ended its turn without a word{stderr}"));
                Some(error.with("provider", "agent").with("status", Value::Null).with("retryable", false))
            }
            (None, None) => None,
        }
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the answer of the host to an event or a question means that the run is to end.
pub(crate) fn ends_run(error: &CallError) -> bool {
    match error {
        CallError::Closed => true,
        CallError::Answered(error) => {
            matches!(
                error.kind(),
                Some(Kind::BudgetExceeded | Kind::Cancelled | Kind::ForeignThread | Kind::ShuttingDown)
            )
        }
        CallError::Overloaded(_)
        | CallError::FrameTooLarge { .. }
        | CallError::BadParams { .. }
        | CallError::BadResult { .. } => false,
    }
}
