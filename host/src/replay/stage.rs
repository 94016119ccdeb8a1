//! Where requests of the runner come in, are compared, and wait for their answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::ids::ThreadId;
use assistant_protocol::methods::{
    Method, OnAggregateServiceContext, OnLlmRequest, OnProgress, OnToolCall, RecvMessage, SendMessage,
};
use assistant_protocol::peer::CallError;
use assistant_protocol::service::{CallCx, Service};
use assistant_protocol::types::{Empty, ProgressParams};
use serde_json::Value;
use tokio::sync::{Notify, oneshot};

use super::expected::{Expected, Key};
use super::recording::{Answer, RunAnswer};
use super::{Difference, What};

/// What the handlers of the link and the player share.
pub(super) struct Stage {
    /// The thread of the runner.
    thread: ThreadId,
    state: Mutex<State>,
    /// Something came.
    pub(super) news: Notify,
}

/// What has come.
pub(super) struct State {
    pub(super) expected: Expected,
    waiting: HashMap<Key, oneshot::Sender<Answer>>,
    /// Answers to what need not come any more.
    late: HashMap<Key, Answer>,
    pub(super) difference: Option<Box<Difference>>,
    pub(super) ran: Option<Result<RunAnswer, CallError>>,
    /// A run is in flight.
    pub(super) runs: bool,
    /// The link has ended.
    pub(super) closed: bool,
    /// That it ended because the runner wrote what are no messages.
    pub(super) noise: Option<String>,
    /// The runner was asked to stop: what it asks now need not be what it asked then.
    pub(super) stopping: bool,
    /// The record ends before the last run was answered.
    open_end: bool,
    /// What came then that is not recorded: it stays unanswered, while what is recorded may come beside it.
    beyond: Vec<oneshot::Sender<Answer>>,
}

impl Stage {
    /// Nothing has come yet. With an open end, the runner may ask more than is expected.
    pub(super) fn new(thread: ThreadId, expected: Expected, open_end: bool) -> Self {
        let state = State {
            expected,
            waiting: HashMap::new(),
            late: HashMap::new(),
            difference: None,
            ran: None,
            runs: false,
            closed: false,
            noise: None,
            stopping: false,
            open_end,
            beyond: Vec::new(),
        };
        Self { thread, state: Mutex::new(state), news: Notify::new() }
    }

    /// What has come so far.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request came: gives what will hold its answer.
    fn asked(&self, method: &str, params: &Value) -> Result<oneshot::Receiver<Answer>, RpcError> {
        let mut state = self.state();
        let (answer, answered) = oneshot::channel();
        let taken = match state.runs {
            true => state.expected.take(method, params),
            false => Ok(state.expected.take_exact(method, params).ok_or_else(not_in_a_run)?),
        };
        let outcome = match taken {
            Ok(key) => {
                match state.late.remove(&key) {
                    // Nobody listens where the call was given up.
                    Some(late) => drop(answer.send(late)),
                    None => drop(state.waiting.insert(key, answer)),
                }
                Ok(answered)
            }
            Err(_) if state.stopping => Err(RpcError::new(Kind::Cancelled, "the process has ended or is cancelled")),
            Err(difference) if state.open_end && difference.what == What::TooMany => {
                state.beyond.push(answer);
                Ok(answered)
            }
            Err(difference) => {
                state.difference.get_or_insert(difference);
                Err(RpcError::new(Kind::ShuttingDown, "this was not recorded"))
            }
        };
        drop(state);
        self.news.notify_one();
        outcome
    }

    /// Answers a request, once it has come.
    pub(super) fn give(&self, key: &Key, answer: &Answer) {
        let mut state = self.state();
        match state.waiting.remove(key) {
            Some(waiting) => drop(waiting.send(answer.clone())),
            None => drop(state.late.insert(key.clone(), answer.clone())),
        }
    }
}

async fn answered<M: Method>(stage: Arc<Stage>, params: M::Params, _: CallCx) -> Result<M::Result, RpcError> {
    let internal = |error: serde_json::Error| RpcError::new(Kind::InternalError, error.to_string());
    let answer = stage.asked(M::NAME, &serde_json::to_value(&params).map_err(internal)?)?;
    match answer.await {
        Ok(Answer::Result(result)) => serde_json::from_value(result).map_err(internal),
        Ok(Answer::Error(failed)) => Err(failed.into()),
        Err(_) => Err(RpcError::new(Kind::ShuttingDown, "the recording has ended")),
    }
}

async fn on_progress(stage: Arc<Stage>, params: ProgressParams, _: CallCx) -> Result<Empty, RpcError> {
    if params.thread_id != stage.thread {
        let message = format!("the thread of this runner is {}, not {}", stage.thread, params.thread_id);
        return Err(RpcError::new(Kind::ForeignThread, message));
    }
    if stage.state().runs { Ok(Empty {}) } else { Err(not_in_a_run()) }
}

fn not_in_a_run() -> RpcError {
    RpcError::new(Kind::Cancelled, "no run is in flight")
}

/// What a runner may ask of a recording.
pub(super) fn service(stage: Arc<Stage>) -> Service<Stage> {
    Service::new(stage)
        .on(OnLlmRequest, answered::<OnLlmRequest>)
        .on(OnToolCall, answered::<OnToolCall>)
        .on(SendMessage, answered::<SendMessage>)
        .on(RecvMessage, answered::<RecvMessage>)
        .on(OnAggregateServiceContext, answered::<OnAggregateServiceContext>)
        .on(OnProgress, on_progress)
}
