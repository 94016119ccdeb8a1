//! Each event as it is split off: read at once, counted, and the reason to stop where it does not fit.

use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use futures::future::poll_fn;
use futures::{FutureExt, StreamExt};
use genai::chat::{ChatFrameSink, ChatStream, ChatStreamEvent, FrameCtx, RawFrameRef};
use tracing::dispatcher::{self, Dispatch};

use super::failure::Failure;
use super::told::{Fold, Told};
use crate::model::ModelErrorKind;

/// Reads in a row that may bring no whole event. One brings from 1 kB to 400 kB, so an event may have 256 kB at least, and
/// an endless body without events is not gathered for long.
const SILENT_READS_MAX: u32 = 256;

/// Reads each event as it is split off.
pub(super) struct Tap {
    reading: Mutex<Reading>,
    bytes_max: usize,
}

struct Reading {
    fold: Option<Box<dyn Fold>>,
    /// Of all events so far.
    bytes: usize,
    /// Events with and without data.
    data: u64,
    blank: u64,
    failure: Option<Failure>,
}

impl Tap {
    pub(super) fn new(fold: Box<dyn Fold>, bytes_max: usize) -> Self {
        let reading = Reading { fold: Some(fold), bytes: 0, data: 0, blank: 0, failure: None };
        Self { reading: Mutex::new(reading), bytes_max }
    }

    /// The next event that genai makes of the stream, unless what came meanwhile ends the call.
    ///
    /// Looks after each read, too: genai goes on without a word over events that it does not know.
    pub(super) async fn next(
        &self,
        stream: &mut ChatStream,
    ) -> Result<Option<Result<ChatStreamEvent, genai::Error>>, Failure> {
        let mut event = stream.next();
        let (mut silent, mut before) = (0, self.events());
        poll_fn(|context| {
            let poll = dispatcher::with_default(&Dispatch::none(), || event.poll_unpin(context));
            if let Some(failure) = self.reading().failure.take() {
                return Poll::Ready(Err(failure));
            }
            if poll.is_pending() {
                let now = self.events();
                silent = if now == before { silent + 1 } else { 0 };
                before = now;
            }
            if silent > SILENT_READS_MAX {
                let message = format!("{SILENT_READS_MAX} pieces of the answer came without an event");
                return Poll::Ready(Err(Failure::new(ModelErrorKind::Unreadable, message)));
            }
            poll.map(Ok)
        })
        .await
    }

    /// The whole answer.
    ///
    /// # Errors
    /// What was wrong with it, or that it ended before its end.
    pub(super) fn finish(&self) -> Result<Told, Failure> {
        let mut reading = self.reading();
        if let Some(failure) = reading.failure.take() {
            return Err(failure);
        }
        if reading.data == 0 && reading.blank > 0 {
            let message = "the answer is no event stream; check that `base_url` leads to the API of this provider";
            return Err(Failure::new(ModelErrorKind::Unreadable, message));
        }
        let cut = || Failure::new(ModelErrorKind::Cut, "the answer broke off");
        reading.fold.take().ok_or_else(cut)?.finish()
    }

    fn events(&self) -> u64 {
        let reading = self.reading();
        reading.data + reading.blank
    }

    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChatFrameSink for Tap {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        let mut reading = self.reading();
        if reading.failure.is_some() {
            return;
        }
        reading.bytes = reading.bytes.saturating_add(frame.data.len());
        if frame.data.is_empty() {
            reading.blank += 1;
        } else if reading.bytes > self.bytes_max {
            let message = format!("the answer is longer than {} bytes", self.bytes_max);
            reading.failure = Some(Failure::new(ModelErrorKind::Unreadable, message));
        } else {
            reading.data += 1;
            reading.failure = reading.fold.as_mut().and_then(|fold| fold.event(frame.data).err());
        }
    }
}

/// Drives a future without any subscriber, because genai logs bodies.
pub(super) async fn quiet<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    poll_fn(|context| dispatcher::with_default(&Dispatch::none(), || future.as_mut().poll(context))).await
}
