//! A line is a message: reading lines within a bound, telling what a line is, and writing one.

use std::borrow::Cow;
use std::io;

use jsonrpsee_types::{ErrorObjectOwned, TwoPointZero};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::error::{Kind, RpcError};

#[cfg(test)]
mod tests;

/// The largest number that is an id: what a double holds exactly.
pub const ID_MAX: u64 = 1 << 53;
/// The longest string that is an id, in bytes.
pub const ID_BYTES_MAX: usize = 1024;
/// How much of a line that is no message is kept, in bytes.
pub const EXCERPT_BYTES: usize = 200;

/// How much is read at once, in bytes, before a line turns out to be longer.
const READ_BYTES: usize = 8 * 1024;
/// A buffer that has grown beyond this, in bytes, is given back once it is empty.
const KEEP_BYTES: usize = 256 * 1024;

/// What a request is known by to the side that sent it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Id {
    /// An integer from 0 to [`ID_MAX`].
    Number(u64),
    /// A string of at most [`ID_BYTES_MAX`] bytes.
    Text(String),
}

impl Id {
    /// Reads an id; nothing if it is none.
    #[must_use]
    pub fn read(json: &str) -> Option<Self> {
        if json.starts_with('"') {
            let text: String = serde_json::from_str(json).ok()?;
            return (text.len() <= ID_BYTES_MAX).then_some(Id::Text(text));
        }
        let number: u64 = serde_json::from_str(json).ok()?;
        (number <= ID_MAX).then_some(Id::Number(number))
    }

    fn json(&self) -> Value {
        match self {
            Id::Number(number) => json!(number),
            Id::Text(text) => json!(text),
        }
    }
}

/// What a line is.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// A request, to be answered once.
    Request {
        /// What its answer must name.
        id: Id,
        /// The method.
        method: Cow<'a, str>,
        /// Its params, a JSON object; nothing where they are something else.
        params: Option<&'a str>,
    },
    /// The answer to a request of ours.
    Response {
        /// The request.
        id: Id,
        /// Its result, or why there is none.
        outcome: Result<&'a RawValue, RpcError>,
    },
    /// A message without id: this protocol has none that need no answer.
    NoId,
    /// No message.
    Unparsable,
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "jsonrpc")]
    _version: TwoPointZero,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Text<'a>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    /// Null is a result.
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Tells what a line is, in one pass over it; params and results are borrowed, not read.
#[must_use]
pub fn classify(line: &[u8]) -> Incoming<'_> {
    let Some(envelope) = std::str::from_utf8(line).ok().and_then(read_object::<Envelope<'_>>) else {
        return Incoming::Unparsable;
    };
    let Envelope { id, method, params, result, error, .. } = envelope;
    if method.is_none() && result.is_none() && error.is_none() {
        return Incoming::Unparsable;
    }
    let Some(id) = id else { return Incoming::NoId };
    let Some(id) = Id::read(id.get()) else { return Incoming::Unparsable };
    match (method, error, result) {
        (Some(Text(method)), None, None) => {
            let params = params.map_or("{}", RawValue::get);
            Incoming::Request { id, method, params: params.starts_with('{').then_some(params) }
        }
        (None, Some(error), _) => Incoming::Response { id, outcome: Err(read_error(error)) },
        (None, None, Some(result)) => Incoming::Response { id, outcome: Ok(result) },
        (Some(_), _, _) | (None, None, None) => Incoming::Unparsable,
    }
}

/// Reads an object; serde would take an array of its fields too.
fn read_object<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    let is_object = text.trim_start_matches([' ', '\t', '\r', '\n']).starts_with('{');
    if is_object { serde_json::from_str(text).ok() } else { None }
}

/// An error object that is none still ends its call.
fn read_error(error: &RawValue) -> RpcError {
    /// What jsonrpsee's own reading does not do is to ignore fields that it does not know.
    #[derive(Deserialize)]
    struct Told<'a> {
        code: i32,
        message: String,
        #[serde(borrow, default)]
        data: Option<&'a RawValue>,
    }
    read_object::<Told<'_>>(error.get()).map_or_else(
        || {
            let text = format!("answered with no proper error: {}", excerpt(error.get().as_bytes()));
            RpcError::new(Kind::InternalError, text)
        },
        |Told { code, message, data }| ErrorObjectOwned::owned(code, message, data).into(),
    )
}

/// The beginning of a line, for a log.
#[must_use]
pub fn excerpt(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(EXCERPT_BYTES)]).into_owned()
}

/// The line of a request, newline included.
///
/// # Errors
/// Where `params` cannot be written as JSON (a map with keys that are no strings).
pub fn request_line(id: &Id, method: &str, params: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Request<'a, P> {
        jsonrpc: TwoPointZero,
        id: &'a Id,
        method: &'a str,
        params: &'a P,
    }
    let mut line = serde_json::to_vec(&Request { jsonrpc: TwoPointZero, id, method, params })?;
    line.push(b'\n');
    Ok(line)
}

/// The line of an answer without anything to tell, newline included.
#[must_use]
pub fn empty_line(id: &Id) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{}}}}\n", id.json()).into_bytes()
}

/// The line of an error answer, newline included.
#[must_use]
pub fn error_line(id: &Id, error: RpcError) -> Vec<u8> {
    let error = json!({ "code": error.code, "message": error.message, "data": error.data });
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{error}}}\n", id.json()).into_bytes()
}

/// Lines of an incoming pipe.
#[derive(Debug)]
pub struct LineReader<R> {
    pipe: R,
    buffer: Vec<u8>,
    /// Where the first line begins that was not given out.
    start: usize,
    /// Up to where there is no newline after `start`.
    searched: usize,
    max_bytes: usize,
    ended: bool,
}

/// What came next.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line, without its line end.
    Whole(&'a [u8]),
    /// A line of more than the most bytes; nothing can be read after it.
    TooLong,
    /// The pipe was closed.
    End,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads lines of at most `max_bytes` bytes, newline not counted.
    pub fn new(pipe: R, max_bytes: usize) -> Self {
        Self { pipe, buffer: Vec::new(), start: 0, searched: 0, max_bytes, ended: false }
    }

    /// The next line. What follows the last newline is a line too.
    ///
    /// A line that is too long is told as soon as it is, and never held in memory whole. Dropping the future loses
    /// nothing.
    ///
    /// # Errors
    /// Those of the pipe.
    pub async fn next(&mut self) -> io::Result<Line<'_>> {
        let (line, rest) = loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let end = self.searched + at;
                break (self.start..end, end + 1);
            }
            self.searched = self.buffer.len();
            if self.searched - self.start > self.max_bytes {
                return Ok(Line::TooLong);
            }
            if self.ended {
                if self.start == self.searched {
                    return Ok(Line::End);
                }
                break (self.start..self.searched, self.searched);
            }
            self.make_room();
            self.ended = self.pipe.read_buf(&mut self.buffer).await? == 0;
        };
        if line.len() > self.max_bytes {
            return Ok(Line::TooLong);
        }
        (self.start, self.searched) = (rest, rest);
        let line = &self.buffer[line];
        Ok(Line::Whole(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// Moves the begun line to the front and sees to it that there is room behind it.
    fn make_room(&mut self) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        if self.buffer.is_empty() && self.buffer.capacity() > KEEP_BYTES {
            self.buffer = Vec::new();
        }
        if self.buffer.capacity() - self.buffer.len() < READ_BYTES {
            self.buffer.reserve(READ_BYTES);
        }
    }
}
