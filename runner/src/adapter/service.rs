//! The runner's end of the link, for any agent.
//!
//! A message that comes while the agent is at work is held until its turn has ended; then a further turn begins with it,
//! before `run` is answered. Between runs it is kept for the next one. So nothing that was answered before `run` is
//! missing in that run. Where a run fails or is cancelled there may be no next one: what its agent has not got then is
//! refused, behind the answer to `run`, and stays the host's.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::ids::ThreadId;
use assistant_protocol::methods::{Cancel, DeliverMessage, Initialize, Run as RunMethod, Shutdown};
use assistant_protocol::peer::{LinkReport, PeerLimits, connect};
use assistant_protocol::service::{CallCx, Service};
use assistant_protocol::types::{
    CancelParams, Content, DeliverMessageParams, Empty, InitializeParams, InitializeResult, MAX_FRAME_BYTES,
    PROTOCOL_VERSION, Program, RunParams, RunResult, RunnerCapabilities, StopReason,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::bridge::Ended;
use super::ids::cut;
use super::mail::Mailbox;
use super::pieces::TEXT_BYTES_MAX;
use super::prompt::Prompt;
use super::run::{Run, Turns};
use super::{Agent, TurnEnd};

/// How long an agent may take to end in order once its answer is accepted, or its run has failed, in milliseconds.
const END_MS: u64 = 2_000;
/// How long the host may take to hear what a turn has used that was given up, in milliseconds.
const TOLD_MS: u64 = 500;
/// The most of the grace of a `cancel` that the agent gets, in milliseconds.
const STOP_MS_MAX: u64 = 2_000;
/// How long the end of the link waits for the agent to be gone, in milliseconds.
const GONE_MS: u64 = 1_200;

/// Serves one host until the link ends; then the agent is gone. `name` is what the host calls the runner in its log.
pub(crate) async fn serve<A: Agent, R, W>(reader: R, writer: W, agent: A, name: String) -> LinkReport
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let shared = Arc::new(Shared {
        state: Mutex::new(State {
            phase: Phase::New(agent),
            cancel_next: false,
            failed: false,
            acted: false,
            turns: Arc::default(),
            mail: Mailbox::default(),
        }),
        working: watch::Sender::new(false),
        name,
    });
    let service = Service::new(shared.clone())
        .on_in_order(Initialize, initialize::<A>)
        .on_in_order(Cancel, cancel::<A>)
        .on_in_order(Shutdown, shutdown::<A>)
        .on(DeliverMessage, deliver::<A>)
        .on(RunMethod, run::<A>);
    let (_peer, link) = connect(reader, writer, service, PeerLimits::for_frames(MAX_FRAME_BYTES));
    let report = link.await;
    // Nobody waits for the run any more: it ends by itself. What does not end in time goes with this program.
    let mut working = shared.working.subscribe();
    let _ = timeout(Duration::from_millis(GONE_MS), working.wait_for(|working| !working)).await;
    let phase = std::mem::replace(&mut shared.state().phase, Phase::Gone);
    if let Phase::New(mut agent) | Phase::Ready(mut agent, _) = phase {
        // Nobody is there to be told what it has used.
        let _ = agent.stop(Duration::ZERO).await;
    }
    report
}

struct Shared<A> {
    state: Mutex<State<A>>,
    /// A run has the agent.
    working: watch::Sender<bool>,
    name: String,
}

struct State<A> {
    phase: Phase<A>,
    /// A cancel came while nothing ran: it is meant for the next run.
    cancel_next: bool,
    /// The last run has failed, or was cancelled.
    failed: bool,
    /// The agent has said something, or called a tool, in one of its runs.
    acted: bool,
    turns: Arc<Turns>,
    mail: Mailbox,
}

enum Phase<A> {
    /// `initialize` has not come, or was refused.
    New(A),
    /// A run can begin.
    Ready(A, ThreadId),
    /// A run is going on: it has the agent, and ends by this.
    Running(Stop),
    /// The link has ended.
    Gone,
}

/// How a run is ended by the host.
#[derive(Clone, Default)]
struct Stop {
    token: CancellationToken,
    /// What the agent may still take, in milliseconds.
    grace_ms: Arc<AtomicU64>,
}

impl<A> Shared<A> {
    fn state(&self) -> MutexGuard<'_, State<A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn initialize<A: Agent>(
    shared: &Shared<A>,
    params: InitializeParams,
    call: CallCx,
) -> Result<InitializeResult, RpcError> {
    let mut state = shared.state();
    let agent = match std::mem::replace(&mut state.phase, Phase::Gone) {
        Phase::New(agent) => agent,
        other => {
            state.phase = other;
            return Err(RpcError::new(Kind::InvalidRequest, "`initialize` was answered before"));
        }
    };
    if params.protocol_version != PROTOCOL_VERSION {
        state.phase = Phase::New(agent);
        let text =
            format!("this runner speaks version {PROTOCOL_VERSION} of the protocol, not {}", params.protocol_version);
        return Err(RpcError::new(Kind::UnsupportedProtocol, text).with("protocol_version", PROTOCOL_VERSION));
    }
    call.peer.set_their_max_frame_bytes(params.max_frame_bytes);
    state.phase = Phase::Ready(agent, params.thread_id);
    state.turns = Arc::new(Turns::of(&params.limits));
    Ok(InitializeResult {
        protocol_version: PROTOCOL_VERSION,
        runner: Program { name: shared.name.clone(), version: env!("CARGO_PKG_VERSION").to_owned() },
        max_frame_bytes: MAX_FRAME_BYTES,
        capabilities: RunnerCapabilities { messages: true, agent: true },
    })
}

fn cancel<A: Agent>(shared: &Shared<A>, params: CancelParams, _: CallCx) -> Result<Empty, RpcError> {
    let mut state = shared.state();
    match &state.phase {
        Phase::Running(stop) => {
            // The answer to `run` needs the rest.
            stop.grace_ms.store((params.grace_ms / 2).min(STOP_MS_MAX), Ordering::Relaxed);
            stop.token.cancel();
        }
        Phase::New(_) | Phase::Ready(..) | Phase::Gone => state.cancel_next = true,
    }
    Ok(Empty {})
}

fn shutdown<A: Agent>(_: &Shared<A>, _: Empty, call: CallCx) -> Result<Empty, RpcError> {
    call.peer.close();
    Ok(Empty {})
}

async fn deliver<A: Agent>(
    shared: Arc<Shared<A>>,
    params: DeliverMessageParams,
    call: CallCx,
) -> Result<Empty, RpcError> {
    let given = {
        let mut state = shared.state();
        match &state.phase {
            Phase::New(_) => return Err(RpcError::new(Kind::InvalidRequest, NOT_YET)),
            // There may be none.
            Phase::Ready(..) if state.failed => return Err(not_taken()),
            // The next run begins with it.
            Phase::Ready(..) | Phase::Gone => return state.mail.hold(params).map(|_| Empty {}),
            Phase::Running(_) => state.mail.hold(params)?,
        }
    };
    let Some(given) = given else { return Ok(Empty {}) };
    tokio::select! {
        given = given => match given {
            Ok(()) => Ok(Empty {}),
            Err(_) => Err(not_taken()),
        },
        () = call.cancelled.cancelled() => Err(RpcError::new(Kind::Cancelled, "the call of `deliver_message` was cancelled")),
    }
}

fn not_taken() -> RpcError {
    RpcError::new(Kind::InternalError, "the agent did not take the message: its run has failed, or was cancelled")
}

/// Why there is no run yet.
const NOT_YET: &str = "`initialize` must have been answered before";

/// The agent of a run; given back however the run ends.
struct Lent<A> {
    shared: Arc<Shared<A>>,
    agent: Option<A>,
    thread_id: ThreadId,
    stop: Stop,
    /// The run has ended with an answer of its agent.
    in_order: bool,
}

impl<A: Agent> Lent<A> {
    fn take(shared: Arc<Shared<A>>) -> Result<Self, RpcError> {
        let stop = Stop::default();
        let mut state = shared.state();
        let (agent, thread_id) = match std::mem::replace(&mut state.phase, Phase::Running(stop.clone())) {
            Phase::Ready(agent, thread_id) => (agent, thread_id),
            other => {
                let text = match &other {
                    Phase::Running(_) => "a run is going on, and there are never two at once",
                    Phase::New(_) | Phase::Ready(..) | Phase::Gone => NOT_YET,
                };
                state.phase = other;
                return Err(RpcError::new(Kind::InvalidRequest, text));
            }
        };
        if std::mem::take(&mut state.cancel_next) {
            stop.token.cancel();
        }
        drop(state);
        shared.working.send_replace(true);
        Ok(Self { shared, agent: Some(agent), thread_id, stop, in_order: false })
    }
}

impl<A> Drop for Lent<A> {
    fn drop(&mut self) {
        let Some(agent) = self.agent.take() else { return };
        let (kept, mut refused) = {
            let mut state = self.shared.state();
            state.phase = Phase::Ready(agent, self.thread_id);
            state.failed = !self.in_order;
            (state.mail.release(), state.mail.not_given())
        };
        self.shared.working.send_replace(false);
        // What came too late for this run is kept for the next one, which follows where this one has ended in order.
        let kept = if self.in_order {
            kept
        } else {
            refused.extend(kept);
            Vec::new()
        };
        // That is told behind the answer to this run.
        if let (false, Ok(runtime)) = (kept.is_empty() && refused.is_empty(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                drop(refused);
                for waiting in kept {
                    let _ = waiting.send(());
                }
            });
        }
    }
}

async fn run<A: Agent>(shared: Arc<Shared<A>>, mut params: RunParams, call: CallCx) -> Result<RunResult, RpcError> {
    let mut lent = Lent::take(shared.clone())?;
    let (stop, thread_id) = (lent.stop.clone(), lent.thread_id);
    let Some(agent) = &mut lent.agent else {
        return Err(RpcError::new(Kind::InternalError, "the agent is lent already"));
    };
    let cancelled = |content: String| RunResult {
        stop_reason: StopReason::Cancelled,
        content: Content::Text(content),
        structured: None,
    };
    if stop.token.is_cancelled() {
        return Ok(cancelled(String::new()));
    }
    let (mail, bound) = {
        let mut state = shared.state();
        (state.mail.take(), state.turns.clone())
    };
    let prompt = Prompt::of_run(&mut params, mail);
    let RunParams { assistant, tools, agent: brief, output_schema, .. } = params;
    let run = Run::new(call.peer.clone(), thread_id, assistant, brief.unwrap_or_default(), tools, bound);
    let mut working = Box::pin(turns(&shared, agent, &run, prompt));
    let (ended, grace_ms) = tokio::select! {
        biased;
        () = stop.token.cancelled() => (Ok(None), stop.grace_ms.load(Ordering::Relaxed)),
        () = call.cancelled.cancelled() => {
            (Err(RpcError::new(Kind::Cancelled, "the call of `run` was cancelled")), 0)
        }
        over = run.over() => match over {
            Ended::Answer(structured) => {
                let (stop_reason, content) = (StopReason::FinalAnswer, Content::Text(run.last_text()));
                lent.in_order = true;
                // It may come to its end by itself, and so tell what all of it has cost.
                tokio::select! {
                    biased;
                    () = stop.token.cancelled() => {}
                    () = call.cancelled.cancelled() => {}
                    _ = timeout(Duration::from_millis(END_MS), &mut working) => {}
                }
                (Ok(Some(RunResult { stop_reason, content, structured: Some(structured) })), END_MS)
            }
            Ended::Failed(error) => (Err(error), END_MS),
        },
        ended = &mut working => match ended {
            Ok(TurnEnd { stop_reason, text }) => {
                let has_acted = {
                    let mut state = shared.state();
                    state.acted |= run.has_acted();
                    state.acted
                };
                let is_silent = stop_reason == StopReason::Finished && text.trim().is_empty() && !has_acted;
                // Of one that is to give an answer of a shape, the host asks for that.
                match run.silence().filter(|_| is_silent && output_schema.is_none()) {
                    Some(error) => (Err(error), END_MS),
                    None => {
                        lent.in_order = true;
                        return Ok(RunResult { stop_reason, content: Content::Text(cut(&text, TEXT_BYTES_MAX).to_owned()), structured: None });
                    }
                }
            }
            Err(error) => (Err(error), END_MS),
        },
    };
    drop(working);
    if let Some(used) = agent.stop(Duration::from_millis(grace_ms)).await {
        // It may be the host that has ended it: then it wants no more of it.
        let _ = timeout(Duration::from_millis(TOLD_MS), run.tell(used)).await;
    }
    Ok(ended?.unwrap_or_else(|| cancelled(run.so_far())))
}

/// A turn with the prompt, and one more for as long as messages have come meanwhile.
async fn turns<A: Agent>(
    shared: &Shared<A>,
    agent: &mut A,
    run: &Run,
    mut prompt: Prompt,
) -> Result<TurnEnd, RpcError> {
    loop {
        let ended = agent.turn(run, prompt).await?;
        let mut state = shared.state();
        if state.mail.is_empty() || run.is_over() {
            return Ok(ended);
        }
        prompt = Prompt::of_mail(state.mail.take());
    }
}
