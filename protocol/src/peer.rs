//! Ask and answer at once on one pair of pipes.
//!
//! Both ends of a link are the same [`Peer`]. Its promises:
//!
//! * Exactly one answer to each request, also when its handler panics or is dropped.
//! * The reader never waits for the writer, so two peers that write much cannot lock each other up.
//! * Everything has a bound. A call past it fails here with [`CallError::Overloaded`]; a request past it is answered
//!   `overloaded`; an answer that does not fit any more is replaced by the error `overloaded`, one that is longer than
//!   the other side takes by `frame_too_large`. Those small replacements, refusals and control frames have a reserve
//!   of [`SMALL_FRAMES_MAX`]; whoever asks on without reading them is treated as one who does not read.
//! * Dropping a call's future cancels it: it leaves the queue, or `cancel_call` is sent. It counts as in flight until
//!   the other side has answered it all the same.
//! * `ping`, `cancel_call` and their answers overtake all other frames; those keep their order.
//! * A second request with the id of one that is being answered is counted as junk: an answer to it would be a second
//!   answer to the first.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, oneshot};

use crate::error::{Kind, RpcError};
use crate::methods::{Method, Ping};
use crate::service::{Service, Table};
use crate::types::MAX_FRAME_BYTES;
use crate::wire::{self, Id};

mod link;
mod state;
mod turn;
mod writer;

#[cfg(test)]
mod tests;

use state::State;

pub use turn::Turn;

/// Requests in flight each way.
pub const IN_FLIGHT_MAX: usize = 256;
/// Pings in flight beyond [`IN_FLIGHT_MAX`], so that a busy side can still be asked whether it lives.
pub const PINGS_MAX: usize = 16;
/// Queued bytes beyond the longest frame.
pub const QUEUE_BYTES: u64 = 8 * 1024 * 1024;
/// Control frames and refusals that may wait to be written.
pub const SMALL_FRAMES_MAX: usize = 1024;
/// Lines that are no messages, until the link ends.
pub const NOISE_LINES: u64 = 100;
/// How long a handler may go on after its call was cancelled, in milliseconds.
pub const CANCEL_GRACE_MS: u64 = 1_000;
/// How long nothing need be written while something is queued, in milliseconds.
pub const WRITE_STUCK_MS: u64 = 30_000;
/// How long the last frames are tried once the other side has closed its pipe, in milliseconds.
pub const END_FLUSH_MS: u64 = 50;
/// How long is read on after writing failed, in milliseconds: the last answers may still be in the pipe.
pub const LAST_READ_MS: u64 = 1_000;
/// The least that is believed of the other side's longest frame, in bytes, so that errors fit.
pub const LEAST_FRAME_BYTES: u64 = 4 * 1024;

/// The bounds of one side of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerLimits {
    /// The longest line that is taken, in bytes.
    pub max_frame_bytes: u64,
    /// Bytes that may wait to be written.
    pub queue_bytes: u64,
    /// Requests in flight, each way.
    pub in_flight: usize,
    /// Lines that are no messages, until the link ends.
    pub noise_lines: u64,
    /// Milliseconds without a written byte while something is queued, until the link ends.
    pub write_stuck_ms: u64,
}

impl PeerLimits {
    /// The usual bounds for frames of at most `max_frame_bytes`.
    #[must_use]
    pub fn for_frames(max_frame_bytes: u64) -> Self {
        Self {
            max_frame_bytes,
            queue_bytes: max_frame_bytes.saturating_add(QUEUE_BYTES),
            in_flight: IN_FLIGHT_MAX,
            noise_lines: NOISE_LINES,
            write_stuck_ms: WRITE_STUCK_MS,
        }
    }
}

impl Default for PeerLimits {
    fn default() -> Self {
        Self::for_frames(MAX_FRAME_BYTES)
    }
}

/// Why a link ended.
#[derive(Debug)]
pub enum LinkEnd {
    /// The other side closed its pipe.
    Eof,
    /// This side called [`Peer::close`], and everything is answered and written.
    Closed,
    /// Reading failed.
    ReadError(io::Error),
    /// Writing failed, and the other side did not close its pipe either.
    WriteError(io::Error),
    /// The other side sent a line that is longer than this side takes.
    FrameTooLarge,
    /// The other side does not read: no byte was taken for [`PeerLimits::write_stuck_ms`], or it asks on without
    /// taking [`SMALL_FRAMES_MAX`] answers.
    WriteStuck,
    /// The other side sent too many lines that are no messages.
    Noise {
        /// Such lines.
        count: u64,
    },
}

/// What a link saw that it could do nothing with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Lines that are no messages.
    pub junk_lines: u64,
    /// The beginning of each of them, at most [`wire::EXCERPT_BYTES`] bytes, up to [`PeerLimits::noise_lines`] lines.
    pub junk: Vec<String>,
    /// Messages without id.
    pub without_id: u64,
    /// Answers to nothing that was asked, second answers among them.
    pub unknown_answers: u64,
}

/// How a link went.
#[derive(Debug)]
pub struct LinkReport {
    /// Why it ended.
    pub end: LinkEnd,
    /// What was odd.
    pub oddities: Oddities,
}

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The other side answered with an error.
    #[error(transparent)]
    Answered(RpcError),
    /// The call was not sent: as much is in flight or queued as may be.
    #[error("{0}")]
    Overloaded(&'static str),
    /// The call was not sent: its line is longer than the other side takes.
    #[error("the call `{method}` has {bytes} bytes; the other side takes at most {max_bytes}")]
    FrameTooLarge {
        /// The method.
        method: &'static str,
        /// The line's length.
        bytes: u64,
        /// The most that the other side takes.
        max_bytes: u64,
    },
    /// The link has ended, or ended before the answer came.
    #[error("the link has ended")]
    Closed,
    /// The params cannot be written as JSON.
    #[error("the params of `{method}` cannot be written: {complaint}")]
    BadParams {
        /// The method.
        method: &'static str,
        /// What serde says.
        complaint: String,
    },
    /// The result is not what the method gives.
    #[error("the result of `{method}` does not fit: {complaint}")]
    BadResult {
        /// The method.
        method: &'static str,
        /// What serde says.
        complaint: String,
    },
}

impl CallError {
    /// The kind of error that this is to whoever asked; a link that has ended is `shutting_down`.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        match self {
            CallError::Answered(error) => error.kind(),
            CallError::Overloaded(_) => Some(Kind::Overloaded),
            CallError::FrameTooLarge { .. } => Some(Kind::FrameTooLarge),
            CallError::Closed => Some(Kind::ShuttingDown),
            CallError::BadParams { .. } | CallError::BadResult { .. } => Some(Kind::InternalError),
        }
    }
}

impl From<CallError> for RpcError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Answered(error) => error,
            other => RpcError::new(other.kind().unwrap_or(Kind::InternalError), other.to_string()),
        }
    }
}

/// One end of a link: asks the other end. Clones are the same end.
#[derive(Clone)]
pub struct Peer(Arc<Inner>);

struct Inner {
    table: Table,
    limits: PeerLimits,
    their_max_bytes: AtomicU64,
    state: Mutex<State>,
    /// Something is queued, or nothing will be any more.
    to_write: Notify,
    /// Something was written, or the link shall end.
    changed: Notify,
    turns: Arc<turn::Turns>,
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes the link if it waits for such a change to end.
    fn settle(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        if state.ending() {
            self.changed.notify_one();
        }
    }

    fn their_max_bytes(&self) -> u64 {
        self.their_max_bytes.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Peer").field(&*self.0.state()).finish()
    }
}

/// Makes one end of a link: asks by the [`Peer`], answers by `service`.
///
/// Nothing is read or written unless the future is polled; it ends when the link does, and dropping it ends the link.
/// It spawns a task for the writer and one for each request, so it must run inside a tokio runtime (of either flavour,
/// with its timer). When it ends, every call fails with [`CallError::Closed`] and the handlers at work are cancelled.
pub fn connect<R, W, C>(
    reader: R,
    writer: W,
    service: Service<C>,
    limits: PeerLimits,
) -> (Peer, impl Future<Output = LinkReport> + Send + 'static)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
    C: Send + Sync + 'static,
{
    let inner = Arc::new(Inner {
        table: service.table(),
        limits,
        their_max_bytes: AtomicU64::new(MAX_FRAME_BYTES),
        state: Mutex::new(State::new(&limits)),
        to_write: Notify::new(),
        changed: Notify::new(),
        turns: Arc::default(),
    });
    (Peer(inner.clone()), link::run(inner, reader, writer))
}

impl Peer {
    /// Asks the other side and waits for its answer, without a bound of time. Dropping the future cancels the call.
    ///
    /// # Errors
    /// [`CallError`]: the other side's, or that the call could not be sent or its answer not read.
    pub async fn call<M: Method>(&self, params: &M::Params) -> Result<M::Result, CallError> {
        self.call_in_order::<M>(params).await.1
    }

    /// The same, with the place of the answer among all answers of the other side: of two the smaller one came first. It
    /// is 0 where none came.
    pub async fn call_in_order<M: Method>(&self, params: &M::Params) -> (u64, Result<M::Result, CallError>) {
        let call = match self.ask(M::NAME, params) {
            Ok(call) => call,
            Err(error) => return (0, Err(error)),
        };
        let (place, raw) = call.answer().await;
        let read = |raw: Box<RawValue>| {
            serde_json::from_str(raw.get()).map_err(|error| CallError::BadResult {
                method: M::NAME,
                complaint: wire::excerpt(error.to_string().as_bytes()),
            })
        };
        (place, raw.and_then(read))
    }

    /// Sets the longest line that the other side takes, as `initialize` told; until then it is [`MAX_FRAME_BYTES`].
    pub fn set_their_max_frame_bytes(&self, bytes: u64) {
        self.0.their_max_bytes.store(bytes.max(LEAST_FRAME_BYTES), Ordering::Relaxed);
    }

    /// Ends the link in order: takes no more requests (they are refused with `shutting_down`), cancels those that are
    /// being answered, and ends with [`LinkEnd::Closed`] when all answers are written. Returns at once.
    pub fn close(&self) {
        self.0.settle(State::close);
    }

    /// What the link has seen so far that it could do nothing with.
    #[must_use]
    pub fn oddities(&self) -> Oddities {
        self.0.state().oddities.clone()
    }

    fn ask(&self, method: &'static str, params: &impl serde::Serialize) -> Result<Call, CallError> {
        let inner = &self.0;
        let number = inner.state().next_number();
        let line = wire::request_line(&Id::Number(number), method, params)
            .map_err(|error| CallError::BadParams { method, complaint: error.to_string() })?;
        let (bytes, max_bytes) = (line.len() as u64 - 1, inner.their_max_bytes());
        if bytes > max_bytes {
            return Err(CallError::FrameTooLarge { method, bytes, max_bytes });
        }
        let (sender, answer) = oneshot::channel();
        inner.state().ask(number, line, sender, method == Ping::NAME)?;
        inner.to_write.notify_one();
        Ok(Call { inner: inner.clone(), number, answer })
    }
}

/// A call that is queued or under way; dropping it cancels it.
struct Call {
    inner: Arc<Inner>,
    number: u64,
    answer: oneshot::Receiver<(u64, Result<Box<RawValue>, RpcError>)>,
}

impl Call {
    async fn answer(mut self) -> (u64, Result<Box<RawValue>, CallError>) {
        match (&mut self.answer).await {
            Ok((place, answer)) => (place, answer.map_err(CallError::Answered)),
            Err(_) => (0, Err(CallError::Closed)),
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.inner.state().abandon(self.number) {
            self.inner.to_write.notify_one();
        }
    }
}

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
