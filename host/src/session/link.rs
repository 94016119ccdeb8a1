//! What a runner may ask, and how it is answered.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::ids::ThreadId;
use assistant_protocol::methods::{
    OnAgentEvent, OnAggregateServiceContext, OnLlmRequest, OnPermissionRequest, OnProgress, OnToolCall, RecvMessage,
    SendMessage,
};
use assistant_protocol::peer::Oddities;
use assistant_protocol::service::{CallCx, Service};
use assistant_protocol::types::{Empty, ProgressParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{OwnedRwLockReadGuard, RwLock};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::caller::Caller;
use crate::changes::Delta;
use crate::events;
use crate::host::Host;
use crate::limits::Limits;
use crate::message_box;
use crate::process_table::Process;
use crate::process_table::budget::OverBudget;
use crate::store::{StoreError, Tx};
use crate::tools::{self, Along, CallError};

use super::agent::Agent;
use super::agent::events::on_agent_event;
use super::agent::permission::on_permission_request;
use super::answer::Answering;
use super::context::on_aggregate_service_context;
use super::hand_in::LastTurn;
use super::kit::Kit;
use super::permit;
use super::recorded::Record;
use super::stall::Pulse;
use super::tool_call;
use super::turn::{self, Conversation};

/// Progress events of one process that are recorded.
const PROGRESS_MAX: u32 = 1_000;
/// Characters of a progress text.
const PROGRESS_CHARS_MAX: usize = 500;

/// One running process, as its runner's requests see it.
pub(super) struct Link {
    pub(super) host: Host,
    pub(super) row: Process,
    pub(super) limits: Limits,
    /// Locked for the length of a model call: a conversation has one at a time.
    pub(super) conversation: Arc<tokio::sync::Mutex<Conversation>>,
    /// What the model has said of an answer that is not complete.
    pub(super) partial: Mutex<String>,
    /// A model call has taken in the queued messages since `run` was called.
    pub(super) took: AtomicBool,
    /// Handlers hold it for reading; whoever settles the process takes it for writing.
    at_work: Arc<RwLock<()>>,
    /// Cancelled while no `run` is in flight.
    run: Mutex<CancellationToken>,
    progress: AtomicU32,
    /// Refused calls so far.
    pub(super) refused: AtomicU32,
    /// Whether the next turn is the last one.
    pub(super) last_turn: LastTurn,
    /// When something happened last.
    pub(super) pulse: Pulse,
    /// The result that has to fit a schema.
    pub(super) answering: Option<Answering>,
    /// What passes, as far as no event of a call tells it.
    pub(super) recorded: Record,
    /// What is known of the agent, where the runner runs one.
    pub(super) agent: Agent,
    /// Set before the first `run`.
    kit: OnceLock<Arc<Kit>>,
}

/// The methods that a runner may call.
pub(super) fn service(link: Arc<Link>) -> Service<Link> {
    Service::new(link)
        .on(OnLlmRequest, turn::on_llm_request)
        .on_in_turn(OnToolCall, tool_call::on_tool_call)
        .on_in_turn(SendMessage, |link, params, cx| mailbox(link, "send_message", params.thread_id, params, cx))
        .on(RecvMessage, |link, params, cx| mailbox(link, "recv_message", params.thread_id, params, cx))
        .on(OnAggregateServiceContext, on_aggregate_service_context)
        .on_in_turn(OnAgentEvent, on_agent_event)
        .on(OnPermissionRequest, on_permission_request)
        .on(OnProgress, on_progress)
}

impl Link {
    pub(super) fn new(host: Host, row: &Process, limits: Limits, answering: Option<Answering>) -> Self {
        let run = CancellationToken::new();
        run.cancel();
        Self {
            pulse: Pulse::new(host.awake().clone()),
            host,
            row: row.clone(),
            limits,
            conversation: Arc::default(),
            partial: Mutex::default(),
            took: AtomicBool::new(true),
            at_work: Arc::default(),
            run: Mutex::new(run),
            progress: AtomicU32::new(0),
            refused: AtomicU32::new(0),
            last_turn: LastTurn::default(),
            answering,
            recorded: Record::default(),
            agent: Agent::default(),
            kit: OnceLock::new(),
        }
    }

    /// The tools of the run are known.
    pub(super) fn fit_out(&self, kit: Kit) {
        if self.kit.set(Arc::new(kit)).is_err() {
            tracing::error!(process = %self.row.id, "a run was given its tools twice");
        }
    }

    /// The tools of the run; none before the first `run`.
    pub(super) fn kit(&self) -> Arc<Kit> {
        self.kit.get().cloned().unwrap_or_default()
    }

    /// A `run` begins: its calls live until [`Link::end_run`].
    pub(super) fn begin_run(&self) {
        self.pulse.beat();
        *self.run.lock().unwrap_or_else(PoisonError::into_inner) = CancellationToken::new();
    }

    /// The `run` is over: cancels what it still asks for, and waits until nothing is at work.
    pub(super) async fn end_run(&self) {
        self.run_token().cancel();
        self.own_answered(None);
        drop(self.at_work.write().await);
    }

    /// The next `run` has to take in the queued messages.
    pub(super) fn must_take(&self) {
        self.took.store(false, Ordering::Release);
    }

    pub(super) fn took(&self) -> bool {
        self.took.load(Ordering::Acquire)
    }

    pub(super) fn run_token(&self) -> CancellationToken {
        self.run.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the model has said of an answer that is not complete; none where it is nothing.
    pub(super) fn partial(&self) -> Option<String> {
        let partial = std::mem::take(&mut *self.partial.lock().unwrap_or_else(PoisonError::into_inner));
        (!partial.trim().is_empty()).then_some(partial)
    }

    /// Records what was odd about the link.
    pub(super) async fn note(&self, oddities: &Oddities) {
        if *oddities == Oddities::default() {
            return;
        }
        let told = json!({
            "junk_lines": oddities.junk_lines,
            "junk": oddities.junk.iter().take(3).collect::<Vec<_>>(),
            "without_id": oddities.without_id,
            "unknown_answers": oddities.unknown_answers,
        });
        self.record(events::Kind::Link, told).await;
    }

    /// Queues an event of this process behind all earlier ones.
    pub(super) async fn record(&self, kind: events::Kind, told: Value) {
        self.record_with(kind, told, |_| Ok(())).await;
    }

    /// The same, with what changes with the event.
    pub(super) async fn record_with(
        &self,
        kind: events::Kind,
        told: Value,
        change: impl Fn(&Tx<'_>) -> Result<(), StoreError> + Send + 'static,
    ) {
        let process = self.row.id;
        let recorded = self.host.store().write_later(move |tx| {
            change(tx)?;
            events::record(tx, process, kind, &told)
        });
        if let Err(error) = recorded.await {
            tracing::debug!(%error, %process, "an event came after the store was closed");
        }
    }

    /// Notes how far the process is, in the words of its runner or of a tool that it calls.
    pub(super) async fn progress(&self, text: &str, fraction: Option<f64>) {
        self.pulse.beat();
        if self.progress.fetch_add(1, Ordering::Relaxed) < PROGRESS_MAX {
            let text = crate::text::cut(text, PROGRESS_CHARS_MAX);
            self.record(events::Kind::Progress, json!({ "text": text, "fraction": fraction })).await;
        }
    }

    /// The thread that a request names must be the runner's own, and a `run` be in flight.
    ///
    /// # Errors
    /// `foreign_thread`, which is recorded as the refusal of `what`; `cancelled` outside a run.
    pub(super) async fn own(&self, thread: ThreadId, what: &str) -> Result<(), RpcError> {
        if thread == self.row.thread {
            return self.in_a_run();
        }
        let message = format!("the thread of this runner is {}, not {thread}", self.row.thread);
        permit::refuse(self, None, what, &message, &Value::Null).await;
        Err(RpcError::new(Kind::ForeignThread, message))
    }

    /// Nothing is done for a runner that was not asked for anything.
    pub(super) fn in_a_run(&self) -> Result<(), RpcError> {
        if self.run_token().is_cancelled() { Err(cancelled("no run is in flight")) } else { Ok(()) }
    }

    /// Held by whatever works for the runner: the process is not settled meanwhile.
    pub(super) async fn at_work(&self) -> OwnedRwLockReadGuard<()> {
        self.at_work.clone().read_owned().await
    }

    /// What goes along with a call of the runner.
    pub(super) async fn along(&self) -> Along {
        Along { at_work: Some(Arc::new(self.at_work().await)), ..Along::default() }
    }

    /// Does what a runner asked for, until nobody needs it any more: the runner cancels the call, or its run is over.
    pub(super) async fn while_needed<T>(
        &self,
        cx: &CallCx,
        work: impl Future<Output = Result<T, RpcError>>,
    ) -> Result<T, RpcError> {
        let _at_work = self.at_work().await;
        let over = self.run_token();
        tokio::select! {
            biased;
            () = over.cancelled() => Err(cancelled("the run is over")),
            () = cx.cancelled.cancelled() => Err(cancelled("the call was cancelled")),
            done = work => done,
        }
    }
}

/// Tells whoever watches a piece of the answer; empty: it begins anew. Nobody watches mostly.
pub(super) fn tell_delta(link: &Link, text: String) {
    let deltas = link.host.deltas();
    if deltas.receiver_count() > 0 {
        // Whoever watched has gone in between.
        drop(deltas.send(Delta { process: link.row.id, text }));
    }
}

pub(super) fn cancelled(why: &str) -> RpcError {
    RpcError::new(Kind::Cancelled, why)
}

pub(super) fn internal(error: &StoreError) -> RpcError {
    RpcError::new(Kind::InternalError, error.to_string())
}

/// Why a call of a process was not begun.
pub(super) enum NotBegun {
    Store(StoreError),
    Rpc(RpcError),
    OverBudget(OverBudget),
}

impl From<StoreError> for NotBegun {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<NotBegun> for RpcError {
    fn from(error: NotBegun) -> Self {
        match error {
            NotBegun::Store(error) => internal(&error),
            NotBegun::Rpc(error) => error,
            NotBegun::OverBudget(over) => RpcError::new(Kind::BudgetExceeded, over.to_string()),
        }
    }
}

/// The mailbox methods: the tools of that name, for runners that use them without a model asking for it.
async fn mailbox<P, R>(
    link: Arc<Link>,
    tool: &'static str,
    thread: ThreadId,
    params: P,
    cx: CallCx,
) -> Result<R, RpcError>
where
    P: Serialize,
    R: Serialize + DeserializeOwned,
{
    // What no run needs belongs to no record of one.
    link.in_a_run()?;
    let answer = ask_box(&link, tool, thread, &params, cx).await;
    link.answers(tool, &params, &answer).await;
    answer
}

async fn ask_box<P, R>(link: &Link, tool: &'static str, thread: ThreadId, params: &P, cx: CallCx) -> Result<R, RpcError>
where
    P: Serialize,
    R: DeserializeOwned,
{
    if !link.row.tools.iter().any(|granted| granted == tool) {
        let message = format!("the definition of `{}` grants no {tool}", link.row.assistant_id);
        permit::refuse(link, None, tool, &message, &Value::Null).await;
        return Err(RpcError::new(Kind::NotPermitted, message).with("thread_id", thread.to_string()));
    }
    let internal = |error: serde_json::Error| RpcError::new(Kind::InternalError, error.to_string());
    let Value::Object(arguments) = serde_json::to_value(params).map_err(internal)? else {
        return Err(RpcError::new(Kind::InvalidParams, "the params are an object"));
    };
    permit::permit_method(link, tool, &arguments).await?;
    let _in_flight = link.pulse.exempt();
    let caller = Caller::Process(link.row.id);
    // It stands in no conversation: what it hands over is the runner's as soon as it is answered.
    let by = format!("{tool} {}", Uuid::now_v7());
    let work = async {
        cx.turn.come().await;
        let along = Along { handed_by: Some(by.clone()), ..link.along().await };
        match tools::call(&link.host, caller, tool, arguments, cx.cancelled.clone(), along).await {
            Ok(output) => serde_json::from_value(output.value).map_err(internal),
            Err(CallError::Tool(error)) => {
                permit::note(link, None, tool, &error).await;
                let kind = match error.code.as_str() {
                    "not_permitted" => Kind::NotPermitted,
                    "internal" => Kind::InternalError,
                    code if code.starts_with("limit_") => Kind::BudgetExceeded,
                    _ => Kind::InvalidParams,
                };
                Err(RpcError::new(kind, error.message).with("code", error.code))
            }
            Err(CallError::UnknownTool(name)) => Err(RpcError::new(Kind::UnknownTool, name)),
        }
    };
    let called = link.while_needed(&cx, work).await;
    if tool != "recv_message" {
        return called;
    }
    let (process, answered) = (link.row.id, called.is_ok());
    let settled = link.host.store().write(move |tx| match answered {
        true => message_box::handed(tx, process, &by),
        false => message_box::give_back(tx, process, &by).map(|_| ()),
    });
    settled.await.map_err(|error: StoreError| self::internal(&error))?;
    called
}

async fn on_progress(link: Arc<Link>, params: ProgressParams, _: CallCx) -> Result<Empty, RpcError> {
    link.own(params.thread_id, "on_progress").await?;
    link.progress(&params.text, params.fraction).await;
    Ok(Empty {})
}
