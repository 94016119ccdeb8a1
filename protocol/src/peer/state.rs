//! What a peer remembers, behind one lock that is never held across a wait: calls each way, and what is to be written.

use std::collections::{HashMap, VecDeque};

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{CallError, LinkEnd, Oddities, PINGS_MAX, PeerLimits, SMALL_FRAMES_MAX};
use crate::error::RpcError;
use crate::methods::{CancelCall, Method};
use crate::types::CancelCallParams;
use crate::wire::{self, Id};

/// The most that is written at once of more than one frame, in bytes.
const BATCH_BYTES: usize = 64 * 1024;
/// What the ids of our `cancel_call`s begin with: their answers are told by it and need no memory.
const CANCEL_ID: &str = "cancel-";

/// Where an answer is awaited, with its place among all answers that came.
pub(super) type Answered = oneshot::Sender<(u64, Result<Box<RawValue>, RpcError>)>;

/// A request of ours that is not answered.
enum Asked {
    /// Somebody waits for it.
    Waiting(Answered),
    /// Nobody does; the other side still counts it.
    Abandoned,
}

/// Why a frame is queued.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    /// A request of ours.
    Call(u64),
    /// An answer of a handler.
    Answer,
    /// A refusal, or the answer to a control request.
    Small,
    /// A `cancel_call` for a request of ours.
    Cancel(u64),
}

impl Frame {
    /// Whether it is counted by number and not by bytes.
    fn is_small(self) -> bool {
        matches!(self, Frame::Small | Frame::Cancel(_))
    }
}

/// Where a frame is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Before everything else.
    Control,
    /// In order.
    Bulk,
}

/// What the writer does next.
pub(super) enum Next {
    /// Write this, and tell by [`State::written`].
    Write(Vec<u8>),
    /// Wait.
    Wait,
    /// Nothing will come any more.
    End,
}

/// What to do with a request that came.
pub(super) enum Admission {
    /// Answer it.
    Admitted(CancellationToken),
    /// More are in flight than may be.
    Overloaded,
    /// No more are taken.
    Closing,
}

pub(super) struct State {
    limits: PeerLimits,
    last_number: u64,
    asked: HashMap<u64, Asked>,
    /// Answers that came.
    answers: u64,
    answering: HashMap<Id, CancellationToken>,
    control: VecDeque<(Frame, Vec<u8>)>,
    bulk: VecDeque<(Frame, Vec<u8>)>,
    /// Of calls and answers, queued or being written.
    queued_bytes: u64,
    /// Of `queued_bytes`, being written.
    writing_bytes: u64,
    /// Control frames and refusals that are queued.
    small_frames: usize,
    writing: bool,
    closing: bool,
    ended: bool,
    flooded: bool,
    pub(super) oddities: Oddities,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("asked", &self.asked.len())
            .field("answering", &self.answering.len())
            .field("queued_bytes", &self.queued_bytes)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl State {
    pub(super) fn new(limits: &PeerLimits) -> Self {
        Self {
            limits: *limits,
            last_number: 0,
            asked: HashMap::new(),
            answers: 0,
            answering: HashMap::new(),
            control: VecDeque::new(),
            bulk: VecDeque::new(),
            queued_bytes: 0,
            writing_bytes: 0,
            small_frames: 0,
            writing: false,
            closing: false,
            ended: false,
            flooded: false,
            oddities: Oddities::default(),
        }
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.last_number = if self.last_number >= wire::ID_MAX { 1 } else { self.last_number + 1 };
        self.last_number
    }

    /// Queues a request of ours.
    pub(super) fn ask(&mut self, number: u64, line: Vec<u8>, answered: Answered, ping: bool) -> Result<(), CallError> {
        if self.ended {
            return Err(CallError::Closed);
        }
        if self.asked.len() >= self.limits.in_flight + if ping { PINGS_MAX } else { 0 } {
            return Err(CallError::Overloaded("as many calls are in flight as may be"));
        }
        if !self.has_room(&line) {
            return Err(CallError::Overloaded("as much is queued for the other side as may be"));
        }
        self.asked.insert(number, Asked::Waiting(answered));
        self.push(if ping { Lane::Control } else { Lane::Bulk }, Frame::Call(number), line);
        Ok(())
    }

    /// Nobody waits for the answer any more; tells whether there is something new to write.
    pub(super) fn abandon(&mut self, number: u64) -> bool {
        let Some(asked) = self.asked.get_mut(&number) else { return false };
        *asked = Asked::Abandoned;
        if self.unqueue(Frame::Call(number)) {
            self.asked.remove(&number);
            return false;
        }
        let id = Id::Text(format!("{CANCEL_ID}{number}"));
        let line = wire::request_line(&id, CancelCall::NAME, &CancelCallParams { id: json!(number) });
        self.push(Lane::Control, Frame::Cancel(number), line.expect("a number can be written as JSON"));
        true
    }

    /// An answer came.
    pub(super) fn answered(&mut self, id: &Id, outcome: Result<Box<RawValue>, RpcError>) {
        self.answers += 1;
        let asked = match id {
            Id::Text(text) if text.starts_with(CANCEL_ID) => return,
            Id::Text(_) => None,
            Id::Number(number) => self.asked.remove(number).map(|asked| (*number, asked)),
        };
        match asked {
            // Whoever waited may be gone by now: then nobody needs the answer.
            Some((_, Asked::Waiting(waiting))) => drop(waiting.send((self.answers, outcome))),
            Some((number, Asked::Abandoned)) => {
                self.unqueue(Frame::Cancel(number));
            }
            None => self.oddities.unknown_answers += 1,
        }
    }

    /// A request came.
    pub(super) fn admit(&mut self, id: &Id) -> Admission {
        if self.closing || self.ended {
            return Admission::Closing;
        }
        if self.answering.len() >= self.limits.in_flight {
            return Admission::Overloaded;
        }
        let token = CancellationToken::new();
        self.answering.insert(id.clone(), token.clone());
        Admission::Admitted(token)
    }

    pub(super) fn is_answering(&self, id: &Id) -> bool {
        self.answering.contains_key(id)
    }

    pub(super) fn is_answering_any(&self) -> bool {
        !self.answering.is_empty()
    }

    /// The other side does not need the answer to `id` any more: an id, or anything else, which is nobody's.
    pub(super) fn cancel(&self, id: &Value) {
        if let Some(token) = Id::read(&id.to_string()).and_then(|id| self.answering.get(&id)) {
            token.cancel();
        }
    }

    /// Queues the answer of a handler; `too_much` takes its place where the queue is full.
    pub(super) fn answer(&mut self, id: &Id, line: Vec<u8>, too_much: impl FnOnce() -> Vec<u8>) {
        self.answering.remove(id);
        if self.has_room(&line) {
            self.push(Lane::Bulk, Frame::Answer, line);
        } else {
            self.push(Lane::Bulk, Frame::Small, too_much());
        }
    }

    /// Queues the answer to a request that no handler sees.
    pub(super) fn answer_small(&mut self, lane: Lane, line: Vec<u8>) {
        self.push(lane, Frame::Small, line);
    }

    /// Counts a line that is no message.
    pub(super) fn junk(&mut self, line: &[u8]) {
        self.oddities.junk_lines += 1;
        if (self.oddities.junk.len() as u64) < self.limits.noise_lines {
            self.oddities.junk.push(wire::excerpt(line));
        }
    }

    pub(super) fn close(&mut self) {
        self.closing = true;
        self.answering.values().for_each(CancellationToken::cancel);
    }

    /// The link is over: fails all calls, cancels all handlers. What is queued can still be written.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.asked.clear();
        self.answering.values().for_each(CancellationToken::cancel);
    }

    /// Whether the link has to look at [`State::over`] after each change.
    pub(super) fn ending(&self) -> bool {
        self.closing || self.flooded
    }

    /// Why the link must end, if it must.
    pub(super) fn over(&self) -> Option<LinkEnd> {
        let count = self.oddities.junk_lines;
        if self.flooded {
            return Some(LinkEnd::WriteStuck);
        }
        if count >= self.limits.noise_lines {
            return Some(LinkEnd::Noise { count });
        }
        let idle = self.answering.is_empty() && self.control.is_empty() && self.bulk.is_empty() && !self.writing;
        (self.closing && idle).then_some(LinkEnd::Closed)
    }

    /// What the writer does next: control frames first, small frames together, large ones by themselves.
    pub(super) fn next(&mut self) -> Next {
        let mut batch = Vec::new();
        while let Some((frame, line)) = self.control.front().or(self.bulk.front()) {
            if !batch.is_empty() && batch.len() + line.len() > BATCH_BYTES {
                break;
            }
            if frame.is_small() {
                self.small_frames -= 1;
            } else {
                self.writing_bytes += line.len() as u64;
            }
            match self.control.pop_front().or_else(|| self.bulk.pop_front()) {
                Some((_, line)) if batch.is_empty() => batch = line,
                Some((_, line)) => batch.extend_from_slice(&line),
                None => break,
            }
        }
        self.writing = !batch.is_empty();
        match (self.writing, self.ended) {
            (true, _) => Next::Write(batch),
            (false, false) => Next::Wait,
            (false, true) => Next::End,
        }
    }

    /// What [`State::next`] gave out is written.
    pub(super) fn written(&mut self) {
        self.queued_bytes -= std::mem::take(&mut self.writing_bytes);
        self.writing = false;
    }

    fn has_room(&self, line: &[u8]) -> bool {
        self.queued_bytes.saturating_add(line.len() as u64) <= self.limits.queue_bytes
    }

    fn push(&mut self, lane: Lane, frame: Frame, line: Vec<u8>) {
        if self.ended {
            return;
        }
        if frame.is_small() {
            self.small_frames += 1;
            self.flooded |= self.small_frames > SMALL_FRAMES_MAX;
        } else {
            self.queued_bytes += line.len() as u64;
        }
        match lane {
            Lane::Control => self.control.push_back((frame, line)),
            Lane::Bulk => self.bulk.push_back((frame, line)),
        }
    }

    /// Takes a frame out of its queue, if it is still there.
    fn unqueue(&mut self, frame: Frame) -> bool {
        for queue in [&mut self.control, &mut self.bulk] {
            let Some(at) = queue.iter().position(|(queued, _)| *queued == frame) else { continue };
            let Some((frame, line)) = queue.remove(at) else { continue };
            if frame.is_small() {
                self.small_frames -= 1;
            } else {
                self.queued_bytes -= line.len() as u64;
            }
            return true;
        }
        false
    }
}

#[cfg(test)]
impl State {
    /// Calls in flight, requests being answered, queued bytes.
    pub(super) fn sizes(&self) -> (usize, usize, u64) {
        (self.asked.len(), self.answering.len(), self.queued_bytes)
    }

    /// Whether a call of ours is not answered, as far as that still matters.
    pub(super) fn awaits(&self, number: u64) -> bool {
        self.ended || self.asked.contains_key(&number)
    }

    /// Nothing is in flight, queued, being written or counted as such.
    pub(super) fn is_at_rest(&self) -> bool {
        let counted = (self.sizes(), self.small_frames, self.writing_bytes, self.writing);
        counted == ((0, 0, 0), 0, 0, false) && self.control.is_empty() && self.bulk.is_empty()
    }
}
