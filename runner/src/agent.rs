//! The loop of an assistant: ask the model, run the tools that it wants, until it has an answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::methods::{Cancel, Initialize, OnLlmRequest, Run, Shutdown};
use assistant_protocol::peer::{LinkReport, Peer, PeerLimits, connect};
use assistant_protocol::service::{CallCx, Service};
use assistant_protocol::types::{
    CancelParams, Content, Empty, FinishReason, InitializeParams, InitializeResult, LlmRequestResult, MAX_FRAME_BYTES,
    PROTOCOL_VERSION, Program, RunParams, RunResult, RunnerCapabilities, StopReason,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::calls;
use crate::conversation::Conversation;

/// Serves one host until the link ends: its input, `shutdown`, or something that is wrong with the link.
pub async fn serve<R, W>(reader: R, writer: W) -> LinkReport
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    // In order, as each of these changes what the requests behind it mean.
    let service = Service::new(Arc::new(Agent::default()))
        .on_in_order(Initialize, initialize)
        .on_in_order(Cancel, cancel)
        .on_in_order(Shutdown, shutdown)
        .on(Run, run);
    let (_peer, link) = connect(reader, writer, service, PeerLimits::for_frames(MAX_FRAME_BYTES));
    link.await
}

#[derive(Default)]
struct Agent(Mutex<State>);

#[derive(Default)]
struct State {
    phase: Phase,
    /// A cancel came while nothing ran: it is meant for the next run.
    cancel_next: bool,
}

#[derive(Default)]
enum Phase {
    /// `initialize` has not come, or was refused.
    #[default]
    New,
    /// A run can begin.
    Ready(Conversation),
    /// A run is going on: it has the conversation, and ends by this.
    Running(CancellationToken),
}

impl Agent {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn initialize(agent: &Agent, params: InitializeParams, call: CallCx) -> Result<InitializeResult, RpcError> {
    if !matches!(agent.state().phase, Phase::New) {
        return Err(RpcError::new(Kind::InvalidRequest, "`initialize` was answered before"));
    }
    if params.protocol_version != PROTOCOL_VERSION {
        let text =
            format!("this runner speaks version {PROTOCOL_VERSION} of the protocol, not {}", params.protocol_version);
        return Err(RpcError::new(Kind::UnsupportedProtocol, text).with("protocol_version", PROTOCOL_VERSION));
    }
    call.peer.set_their_max_frame_bytes(params.max_frame_bytes);
    agent.state().phase = Phase::Ready(Conversation::new(params.thread_id));
    Ok(InitializeResult {
        protocol_version: PROTOCOL_VERSION,
        runner: Program { name: "assistant-runner".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
        max_frame_bytes: MAX_FRAME_BYTES,
        capabilities: RunnerCapabilities::default(),
    })
}

fn cancel(agent: &Agent, _: CancelParams, _: CallCx) -> Result<Empty, RpcError> {
    let mut state = agent.state();
    match &state.phase {
        Phase::Running(stop) => stop.cancel(),
        Phase::New | Phase::Ready(_) => state.cancel_next = true,
    }
    Ok(Empty {})
}

fn shutdown(_: &Agent, _: Empty, call: CallCx) -> Result<Empty, RpcError> {
    call.peer.close();
    Ok(Empty {})
}

/// The conversation of a run; given back to the agent however the run ends.
struct Lent {
    agent: Arc<Agent>,
    conversation: Option<Conversation>,
}

impl Lent {
    /// Takes the conversation for a run that ends by the token given back.
    fn take(agent: Arc<Agent>) -> Result<(Self, CancellationToken), RpcError> {
        let stop = CancellationToken::new();
        let mut state = agent.state();
        let conversation = match std::mem::replace(&mut state.phase, Phase::Running(stop.clone())) {
            Phase::Ready(conversation) => conversation,
            other => {
                let text = match &other {
                    Phase::Running(_) => "a run is going on, and there are never two at once",
                    Phase::New | Phase::Ready(_) => "`initialize` must have been answered before `run`",
                };
                state.phase = other;
                return Err(RpcError::new(Kind::InvalidRequest, text));
            }
        };
        if std::mem::take(&mut state.cancel_next) {
            stop.cancel();
        }
        drop(state);
        Ok((Self { agent, conversation: Some(conversation) }, stop))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(mut conversation) = self.conversation.take() {
            conversation.interrupt();
            self.agent.state().phase = Phase::Ready(conversation);
        }
    }
}

async fn run(agent: Arc<Agent>, params: RunParams, call: CallCx) -> Result<RunResult, RpcError> {
    let (mut lent, stop) = Lent::take(agent)?;
    let Some(conversation) = &mut lent.conversation else {
        return Err(RpcError::new(Kind::InternalError, "the conversation is lent already"));
    };
    conversation.begin(params);
    let mut last = Content::Text(String::new());
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = call.cancelled.cancelled() => return Err(RpcError::new(Kind::Cancelled, "the call of `run` was cancelled")),
        ended = talk(&call.peer, conversation, &mut last) => {
            let (stop_reason, structured) = ended?;
            return Ok(RunResult { stop_reason, content: last, structured });
        }
    }
    Ok(RunResult { stop_reason: StopReason::Cancelled, content: last, structured: None })
}

/// Asks and calls until there is an answer. `last` is what the model has said last.
async fn talk(
    peer: &Peer,
    conversation: &mut Conversation,
    last: &mut Content,
) -> Result<(StopReason, Option<serde_json::Value>), RpcError> {
    loop {
        let answer: LlmRequestResult = peer.call::<OnLlmRequest>(conversation.ask()).await?;
        last.clone_from(&answer.message.content);
        let finish = answer.finish_reason.clone();
        let wanted = conversation.answered(answer);
        if wanted.is_empty() {
            return Ok((stop_reason(&finish), None));
        }
        if let Some(structured) = calls::make(peer, conversation, wanted).await? {
            return Ok((StopReason::FinalAnswer, Some(structured)));
        }
    }
}

fn stop_reason(finish: &FinishReason) -> StopReason {
    match finish {
        FinishReason::Length => StopReason::Length,
        FinishReason::Refused => StopReason::Refused,
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Other(_) => StopReason::Finished,
    }
}
