//! The life of a link: reads lines, hands out answers, has requests answered, and tells how it ended.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures::FutureExt;
use jsonrpsee_core::server::MethodResponse;
use jsonrpsee_types::Params;
use jsonrpsee_types::error::OVERSIZED_RESPONSE_CODE;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::state::{Admission, Lane};
use super::{CANCEL_GRACE_MS, END_FLUSH_MS, Inner, LAST_READ_MS, LinkEnd, LinkReport, Peer, millis, writer};
use crate::error::{Kind, RpcError};
use crate::methods::{CancelCall, Method, Ping};
use crate::service::{CallCx, Callback, bad_params};
use crate::types::CancelCallParams;
use crate::wire::{self, Id, Incoming, Line, LineReader};

/// Runs a link until it ends. Dropping the future ends it too.
pub(super) fn run<R, W>(inner: Arc<Inner>, reader: R, writer: W) -> impl Future<Output = LinkReport> + Send + 'static
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let ends = EndsLink(inner.clone());
    async move {
        let mut writing = JoinSet::new();
        writing.spawn(writer::write(inner.clone(), writer));
        let end = read(&inner, reader, &mut writing).await;
        drop(ends);
        if matches!(end, LinkEnd::Eof | LinkEnd::Noise { .. } | LinkEnd::FrameTooLarge) {
            // The other side may have closed only one of the two pipes. If it does not read, there is no more to do.
            let flushed = timeout(millis(END_FLUSH_MS), writing.join_next()).await;
            drop(flushed);
        }
        let oddities = inner.state().oddities.clone();
        LinkReport { end, oddities }
    }
}

/// Ends the link when dropped, with the link's future or in it.
struct EndsLink(Arc<Inner>);

impl Drop for EndsLink {
    fn drop(&mut self) {
        self.0.state().end();
        self.0.to_write.notify_one();
    }
}

type Writing = JoinSet<Result<(), LinkEnd>>;

async fn read(inner: &Arc<Inner>, reader: impl AsyncRead + Unpin, writing: &mut Writing) -> LinkEnd {
    let max_bytes = usize::try_from(inner.limits.max_frame_bytes).unwrap_or(usize::MAX);
    let mut lines = LineReader::new(reader, max_bytes);
    let mut write_error = None;
    let mut last_read = Instant::now();
    loop {
        if let Some(end) = inner.state().over() {
            return end;
        }
        tokio::select! {
            line = lines.next() => match line {
                Ok(Line::Whole(line)) => take(inner, line).await,
                Ok(Line::TooLong) => return LinkEnd::FrameTooLarge,
                Ok(Line::End) => return LinkEnd::Eof,
                Err(error) => return LinkEnd::ReadError(error),
            },
            () = inner.changed.notified() => {}
            Some(written) = writing.join_next() => match write_end(written) {
                Some(LinkEnd::WriteError(error)) => {
                    write_error = Some(error);
                    last_read = Instant::now() + millis(LAST_READ_MS);
                }
                Some(end) => return end,
                None => {}
            },
            () = sleep_until(last_read), if write_error.is_some() => {
                return write_error.map_or(LinkEnd::Closed, LinkEnd::WriteError);
            }
        }
    }
}

/// Why the writer ended before the link, if it did.
fn write_end(written: Result<Result<(), LinkEnd>, JoinError>) -> Option<LinkEnd> {
    match written {
        Ok(result) => result.err(),
        Err(error) => Some(LinkEnd::WriteError(error.into())),
    }
}

async fn take(inner: &Arc<Inner>, line: &[u8]) {
    match wire::classify(line) {
        Incoming::Request { id, method, params } => {
            if inner.state().is_answering(&id) {
                return inner.state().junk(line);
            }
            let taken = match &*method {
                Ping::NAME => control(inner, &id, Ok(())),
                CancelCall::NAME => control(inner, &id, cancel_call(inner, params)),
                method => request(inner, &id, method, params),
            };
            match taken {
                Ok(Some(now)) => now.await,
                Ok(None) => {}
                Err(refusal) => small(inner, Lane::Bulk, wire::error_line(&id, refusal)),
            }
        }
        Incoming::Response { id, outcome } => {
            let outcome = outcome.map(RawValue::to_owned);
            inner.state().answered(&id, outcome);
        }
        Incoming::NoId => inner.state().oddities.without_id += 1,
        Incoming::Unparsable => inner.state().junk(line),
    }
}

fn small(inner: &Inner, lane: Lane, line: Vec<u8>) {
    inner.state().answer_small(lane, line);
    inner.to_write.notify_one();
}

/// Answers a control request, before everything that is queued.
fn control<T>(inner: &Inner, id: &Id, outcome: Result<(), RpcError>) -> Result<Option<T>, RpcError> {
    let line = outcome.map_or_else(|error| wire::error_line(id, error), |()| wire::empty_line(id));
    small(inner, Lane::Control, line);
    Ok(None)
}

fn cancel_call(inner: &Inner, params: Option<&str>) -> Result<(), RpcError> {
    let params = params.ok_or_else(|| no_object(CancelCall::NAME))?;
    let CancelCallParams { id } =
        serde_json::from_str(params).map_err(|error| bad_params(CancelCall::NAME, &error.to_string()))?;
    inner.state().cancel(&id);
    Ok(())
}

fn no_object(method: &str) -> RpcError {
    bad_params(method, "they must be an object")
}

/// Has a request answered: in a task of its own, or by the future that is given back.
fn request(
    inner: &Arc<Inner>,
    id: &Id,
    method: &str,
    params: Option<&str>,
) -> Result<Option<impl Future<Output = ()> + use<>>, RpcError> {
    let callback = inner.table.find(method)?;
    let params = Params::new(Some(params.ok_or_else(|| no_object(method))?)).into_owned();
    let admission = inner.state().admit(id);
    let cancelled = match admission {
        Admission::Admitted(token) => token,
        Admission::Closing => return Err(RpcError::new(Kind::ShuttingDown, "this side of the link is ending")),
        Admission::Overloaded => {
            let text = format!("{} requests are being answered, as many as may be", inner.limits.in_flight);
            return Err(RpcError::new(Kind::Overloaded, text));
        }
    };
    let in_order = callback.in_order;
    let call = CallCx { id: id.clone(), cancelled, peer: Peer(inner.clone()), turn: inner.turns.take() };
    let answer = Answer { inner: inner.clone(), id: id.clone(), method: method.to_owned(), open: true };
    let work = work(callback, params, call, answer);
    if in_order {
        return Ok(Some(work));
    }
    tokio::spawn(work);
    Ok(None)
}

/// Runs a handler to its end, or to the end of the grace after a cancel.
async fn work(callback: Callback, params: Params<'static>, call: CallCx, answer: Answer) {
    let cancelled = call.cancelled.clone();
    if cancelled.is_cancelled() {
        return answer.fail(cancelled_by_them());
    }
    let max_bytes = usize::try_from(answer.inner.their_max_bytes()).unwrap_or(usize::MAX);
    let handler = AssertUnwindSafe(callback.answer(params, call, max_bytes)).catch_unwind();
    let given_up = async {
        cancelled.cancelled().await;
        sleep(millis(CANCEL_GRACE_MS)).await;
    };
    // In a block, so that the handler is gone when its call is answered.
    let outcome = {
        let (mut handler, given_up) = (pin!(handler), pin!(given_up));
        tokio::select! {
            biased;
            outcome = &mut handler => Some(outcome),
            () = given_up => None,
        }
    };
    match outcome {
        Some(Ok(response)) => answer.send(response),
        Some(Err(_panic)) => {
            let text = format!("the handler of `{}` panicked", answer.method);
            answer.fail(RpcError::new(Kind::InternalError, text));
        }
        None => answer.fail(cancelled_by_them()),
    }
}

fn cancelled_by_them() -> RpcError {
    RpcError::new(Kind::Cancelled, "cancelled by the side that asked")
}

/// The duty to answer a request once; dropped, it answers with an error.
struct Answer {
    inner: Arc<Inner>,
    id: Id,
    method: String,
    open: bool,
}

impl Answer {
    fn send(mut self, response: MethodResponse) {
        if response.as_error_code() == Some(OVERSIZED_RESPONSE_CODE) {
            let text = format!("the answer to `{}` has more bytes than the asking side takes", self.method);
            let max_bytes = self.inner.their_max_bytes();
            return self.fail(RpcError::new(Kind::FrameTooLarge, text).with("max_frame_bytes", max_bytes));
        }
        let mut line = Vec::from(Box::<str>::from(response.into_json()).into_boxed_bytes());
        line.push(b'\n');
        self.queue(line);
    }

    fn fail(mut self, error: RpcError) {
        self.queue(wire::error_line(&self.id, error));
    }

    fn queue(&mut self, line: Vec<u8>) {
        self.open = false;
        let too_much = || {
            let text = format!("the answer to `{}` found no room in the queue", self.method);
            wire::error_line(&self.id, RpcError::new(Kind::Overloaded, text))
        };
        self.inner.settle(|state| state.answer(&self.id, line, too_much));
        self.inner.to_write.notify_one();
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if self.open {
            let text = format!("the handler of `{}` was dropped", self.method);
            self.queue(wire::error_line(&self.id, RpcError::new(Kind::InternalError, text)));
        }
    }
}
