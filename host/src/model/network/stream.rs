//! One call over HTTP: the request, the deadlines, the bounds, and each event of the answer as it comes in.

use std::error::Error as StdError;
use std::ops::Deref;
use std::time::Duration;

use reqwest::{RequestBuilder, Response};
use serde_json::Value;

use super::Bounds;
use super::failure::Failure;
use super::frames::{Frames, Framing};
use super::told::{self, Fold, Told};
use crate::model::{ModelErrorKind, Progress};

/// The most of the body of an error that is read, bytes.
const ERROR_BYTES_MAX: usize = 64 * 1024;
/// How long the end of a body is waited for behind the last event, so that the connection can be used again,
/// milliseconds.
const END_MS_MAX: u64 = 100;

/// Makes the call and reads the answer. Dropping the future closes the connection.
///
/// # Errors
/// What went wrong, in our own words.
pub(super) async fn answer(
    request: RequestBuilder,
    bounds: &Bounds,
    framing: Framing,
    mut fold: Box<dyn Fold>,
    seen: &(dyn Fn(Progress) + Sync),
) -> Result<Told, Failure> {
    let no_head = |_| Failure::new(ModelErrorKind::TimedOut, "{host} did not begin to answer in time");
    let head = tokio::time::timeout(Duration::from_millis(bounds.header_ms), request.send()).await.map_err(no_head)?;
    let mut response = head.map_err(|error| broken(&error))?;
    if !response.status().is_success() {
        return Err(refused(response, bounds).await);
    }
    let (mut frames, mut bytes) = (Frames::new(framing), 0_usize);
    let mut pieces = Vec::new();
    while let Some(piece) = next(&mut response, bounds.read_ms).await? {
        bytes = bytes.saturating_add(piece.len());
        if bytes > bounds.answer_bytes {
            return Err(told::unreadable(format!("the answer is longer than {} bytes", bounds.answer_bytes)));
        }
        frames.push(&piece, &mut |data| fold.event(data, &mut pieces))?;
        pieces.drain(..).for_each(seen);
        if fold.is_done() {
            // Whatever comes of it, the answer is whole.
            let _ = next(&mut response, END_MS_MAX).await;
            return fold.finish();
        }
        // A fast server always has something to read: deadlines and cancels need their turn.
        tokio::task::consume_budget().await;
    }
    frames.finish(&mut |data| fold.event(data, &mut pieces))?;
    pieces.drain(..).for_each(seen);
    fold.finish()
}

async fn next(response: &mut Response, wait_ms: u64) -> Result<Option<impl Deref<Target = [u8]> + use<>>, Failure> {
    let stopped = |_| Failure::new(ModelErrorKind::TimedOut, "{host} stopped in the middle of its answer");
    let read = tokio::time::timeout(Duration::from_millis(wait_ms), response.chunk()).await.map_err(stopped)?;
    read.map_err(|error| broken(&error))
}

/// What an answer says that is none: its status, what it asks to wait, and the beginning of its body.
async fn refused(mut response: Response, bounds: &Bounds) -> Failure {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let mut body = Vec::new();
    // A body that breaks off or does not end says what came of it.
    while let Ok(Some(piece)) = next(&mut response, bounds.read_ms).await {
        body.extend_from_slice(&piece);
        if body.len() > ERROR_BYTES_MAX {
            break;
        }
    }
    let json = serde_json::from_slice::<Value>(&body).unwrap_or(Value::Null);
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    Failure::of_provider(Some(status), &json).after(header)
}

/// A failure of the connection.
fn broken(error: &reqwest::Error) -> Failure {
    use ModelErrorKind::{Cut, Rejected, TimedOut, Unreachable};
    if error.is_connect() {
        let what = format!("cannot connect to {{host}} ({}); check `base_url` and that it runs", cause(error));
        Failure::new(Unreachable, what)
    } else if error.is_timeout() {
        Failure::new(TimedOut, "{host} did not answer in time")
    } else if error.is_builder() {
        Failure::new(Rejected, "the request cannot be made for {host}")
    } else {
        Failure::new(Cut, format!("the connection to {{host}} broke off ({})", cause(error)))
    }
}

/// The innermost cause of an error of the HTTP client, which holds neither the address nor the body.
pub(super) fn cause(error: &reqwest::Error) -> String {
    let mut cause: Option<&dyn StdError> = error.source();
    while let Some(inner) = cause.and_then(StdError::source) {
        cause = Some(inner);
    }
    cause.map_or_else(|| "no cause told".to_owned(), ToString::to_string)
}
