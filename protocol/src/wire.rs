//! A line is a message: reading lines within a bound, telling what a line is, and writing one.

use std::borrow::Cow;
use std::io;

use jsonrpsee_types::{ErrorObjectOwned, TwoPointZero};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::error::{Kind, RpcError};

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
    let Some(envelope) =
        std::str::from_utf8(line).ok().and_then(|text| serde_json::from_str::<Envelope<'_>>(text).ok())
    else {
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

/// An error object that is none still ends its call.
fn read_error(error: &RawValue) -> RpcError {
    serde_json::from_str::<ErrorObjectOwned>(error.get()).map_or_else(
        |_| {
            RpcError::new(
                Kind::InternalError,
                format!("answered with no proper error: {}", excerpt(error.get().as_bytes())),
            )
        },
        RpcError::from,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: impl AsRef<[u8]>, what: &str) {
        assert_eq!(shown(&classify(line.as_ref())), what, "{}", excerpt(line.as_ref()));
    }

    fn shown(incoming: &Incoming<'_>) -> String {
        match incoming {
            Incoming::Request { id, method, params } => {
                format!("ask {id:?} {method} {}", params.unwrap_or("bad params"))
            }
            Incoming::Response { id, outcome: Ok(result) } => format!("answer {id:?} {}", result.get()),
            Incoming::Response { id, outcome: Err(error) } => format!("error {id:?} {} {error}", error.code),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_line_is_what_it_says() {
        check(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "ask Number(1) ping {}");
        check(r#"{"method":"run","params":{"a":[1]},"id":"x","jsonrpc":"2.0"}"#, r#"ask Text("x") run {"a":[1]}"#);
        check(r#" {"jsonrpc":"2.0","id":0,"method":"p","params":null,"more":1} "#, "ask Number(0) p {}");
        check(r#"{"jsonrpc":"2.0","id":1,"method":"p\u0069ng","params": [4] }"#, "ask Number(1) ping bad params");
        check(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#, "ask Number(1) ping bad params");
        check(r#"{"jsonrpc":"2.0","id":9007199254740992,"method":"m"}"#, "ask Number(9007199254740992) m {}");
        check(r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "answer Number(1) null");
        check(r#"{"jsonrpc":"2.0","id":1,"result":{"a":1},"error":null}"#, r#"answer Number(1) {"a":1}"#);
        check(r#"{"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"m"}}"#, "error Number(1) 7 m");
        check(r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":7,"message":"m"}}"#, "error Number(1) 7 m");
        check(
            r#"{"jsonrpc":"2.0","id":1,"error":"boom"}"#,
            r#"error Number(1) -32603 answered with no proper error: "boom""#,
        );
    }

    #[test]
    fn what_has_no_id_is_told_apart() {
        check(r#"{"jsonrpc":"2.0","method":"note"}"#, "NoId");
        check(r#"{"jsonrpc":"2.0","method":"note","id":null}"#, "NoId");
        check(r#"{"jsonrpc":"2.0","result":1}"#, "NoId");
    }

    #[test]
    fn what_is_no_message_is_told_apart() {
        for line in [
            "",
            "   ",
            "\r",
            "   Compiling tokio v1.54.1",
            "7",
            "null",
            "[1,2]",
            "{}",
            r#"{"level":"info"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"id":1,"method":"ping"}"#,
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":-1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":{"a":1},"result":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"} trailing"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"pi"#,
        ] {
            check(line, "Unparsable");
        }
        check(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}", "Unparsable");
        check(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1,\"x\":\"\xff\"}", "Unparsable");
        check(format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"m"}}"#, "x".repeat(ID_BYTES_MAX + 1)), "Unparsable");
    }

    /// All lines of `bytes` when at most `chunk` bytes come at once.
    async fn lines(bytes: &[u8], chunk: usize, max_bytes: usize) -> Vec<String> {
        let (ours, mut theirs) = tokio::io::duplex(chunk);
        let bytes = bytes.to_vec();
        let write = tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut theirs, &bytes).await });
        let mut reader = LineReader::new(ours, max_bytes);
        let mut got = Vec::new();
        loop {
            match reader.next().await.expect("a duplex does not fail") {
                Line::Whole(line) => got.push(excerpt(line)),
                Line::TooLong => {
                    got.push("(too long)".to_owned());
                    break;
                }
                Line::End => break,
            }
        }
        write.abort();
        got
    }

    #[tokio::test]
    async fn lines_come_whole_however_they_are_cut() {
        for chunk in [1, 2, 3, 7, 64, 4096] {
            assert_eq!(lines(b"", chunk, 10).await, Vec::<String>::new());
            assert_eq!(lines(b"a\n\nbc\r\nd", chunk, 10).await, ["a", "", "bc", "d"]);
            assert_eq!(lines(b"0123456789\n1\n", chunk, 10).await, ["0123456789", "1"]);
            assert_eq!(lines(b"1\n01234567890\n2\n", chunk, 10).await, ["1", "(too long)"]);
            assert_eq!(lines(b"1\n01234567890", chunk, 10).await, ["1", "(too long)"]);
        }
    }

    #[tokio::test]
    async fn a_line_without_end_is_given_up() {
        let mut reader = LineReader::new(tokio::io::repeat(b'x'), 1 << 20);
        assert_eq!(reader.next().await.expect("reads"), Line::TooLong);
        assert!(reader.buffer.capacity() < 4 << 20, "{}", reader.buffer.capacity());
    }

    #[test]
    fn a_request_is_one_line() {
        let line = request_line(&Id::Number(3), "ping", &serde_json::json!({ "text": "a\nb" })).expect("writes");
        assert_eq!(line, b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\",\"params\":{\"text\":\"a\\nb\"}}\n");
    }
}
