//! The body of an answer, split into its events: server-sent events, or JSON of one line each.

use serde_json::Value;

use super::failure::Failure;
use super::told;
use crate::model::ModelErrorKind;

/// Of a body that is no event stream, as much is kept to find an error in it, bytes.
const ODD_BYTES_MAX: usize = 64 * 1024;
/// The names of fields of an event; a comment has none.
const FIELDS: [&str; 5] = ["data", "event", "id", "retry", ":"];
/// A mark that a text may begin with.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How the events of an answer are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// `text/event-stream`.
    Events,
    /// `application/x-ndjson`.
    Lines,
}

/// Splits a body, each byte of which is looked at once.
#[derive(Debug)]
pub(super) struct Frames {
    framing: Framing,
    /// What came after the last whole line.
    rest: Vec<u8>,
    /// So much of the rest is known to hold no end of a line.
    searched: usize,
    /// The last line ended with a carriage return, to which a line feed may belong.
    returned: bool,
    /// The data of the event that is coming in.
    data: Option<String>,
    state: State,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// Nothing but blank lines has come.
    Begin,
    /// The format is right.
    Right,
    /// It began with something that no event begins with.
    Odd,
}

type Each<'a> = &'a mut dyn FnMut(&str) -> Result<(), Failure>;

impl Frames {
    pub(super) fn new(framing: Framing) -> Self {
        Self { framing, rest: Vec::new(), searched: 0, returned: false, data: None, state: State::Begin }
    }

    /// Takes a piece of the body, and gives the data of each event that is whole now.
    ///
    /// # Errors
    /// Those of `each`, and where it is no stream of events or no text.
    pub(super) fn push(&mut self, piece: &[u8], each: Each<'_>) -> Result<(), Failure> {
        self.rest.extend_from_slice(piece);
        let mut begin = 0;
        while self.state != State::Odd {
            match (self.returned, self.rest.get(begin)) {
                // The line feed may be still to come.
                (true, None) => break,
                (true, Some(b'\n')) => begin += 1,
                _ => {}
            }
            self.returned = false;
            let is_end = |byte: &u8| *byte == b'\n' || *byte == b'\r' && self.framing == Framing::Events;
            let from = self.searched.max(begin);
            let Some(end) = self.rest[from..].iter().position(is_end).map(|at| from + at) else { break };
            self.returned = self.rest[end] == b'\r';
            let line = self.rest[begin..end].to_vec();
            if !self.line(&line, each)? {
                break;
            }
            begin = end + 1;
            self.searched = begin;
        }
        self.rest.drain(..begin);
        self.searched = self.rest.len();
        if self.state == State::Begin && self.framing == Framing::Events && !may_be_field(&self.rest) {
            self.state = State::Odd;
        }
        if self.state == State::Odd && self.rest.len() > ODD_BYTES_MAX {
            return Err(no_stream());
        }
        Ok(())
    }

    /// Takes the end of the body. There are servers whose last event has no blank line behind it.
    ///
    /// # Errors
    /// As [`Frames::push`].
    pub(super) fn finish(&mut self, each: Each<'_>) -> Result<(), Failure> {
        if self.state != State::Odd && !self.rest.is_empty() {
            let line = std::mem::take(&mut self.rest);
            if !self.line(&line, each)? {
                self.rest = line;
            }
        }
        if self.state == State::Odd {
            return Err(odd(&self.rest));
        }
        self.data.take().map_or(Ok(()), |data| each(&data))
    }

    /// Takes a line; false where it is none of the format.
    fn line(&mut self, line: &[u8], each: Each<'_>) -> Result<bool, Failure> {
        let line = match self.state {
            State::Begin => line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line),
            State::Right | State::Odd => line,
        };
        let no_text = |_| Failure::new(ModelErrorKind::Unreadable, "the answer is no text in UTF-8");
        let line = std::str::from_utf8(line).map_err(no_text)?;
        if self.framing == Framing::Lines {
            if !line.trim().is_empty() {
                self.state = State::Right;
                each(line)?;
            }
            return Ok(true);
        }
        if line.is_empty() {
            return self.data.take().map_or(Ok(()), |data| each(&data)).map(|()| true);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let known = field.is_empty() || FIELDS.contains(&field);
        match (known, &self.state) {
            (true, _) => self.state = State::Right,
            // What a later version of the format adds is skipped.
            (false, State::Right) => {}
            (false, State::Begin | State::Odd) => {
                self.state = State::Odd;
                return Ok(false);
            }
        }
        if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None if value.trim().is_empty() => {}
                None => self.data = Some(value.to_owned()),
            }
        }
        Ok(true)
    }
}

/// Whether a line that begins so may be one of an event.
fn may_be_field(begin: &[u8]) -> bool {
    let begin = begin.strip_prefix(BYTE_ORDER_MARK).unwrap_or(begin);
    let fits = |field: &str| begin.iter().zip(field.bytes()).all(|(a, b)| *a == b);
    begin.starts_with(&BYTE_ORDER_MARK[..1]) || FIELDS.iter().any(|field| fits(field))
}

/// What a body that is no stream of events says: an error of the provider, whatever its status is, or nothing.
fn odd(body: &[u8]) -> Failure {
    let json = serde_json::from_slice::<Value>(body).unwrap_or(Value::Null);
    let error = json.get("error").is_some_and(|error| !error.is_null());
    if error { Failure::of_provider(None, &json) } else { no_stream() }
}

fn no_stream() -> Failure {
    told::unreadable("the answer is no event stream; check that `base_url` leads to the API of this provider")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a body, however it is cut into pieces, or what is wrong with it.
    fn check(framing: Framing, body: &[u8], want: Result<&[&str], &str>) {
        for size in [1, 2, 3, 7, body.len().max(1)] {
            let (mut frames, mut got) = (Frames::new(framing), Vec::new());
            let mut each = |data: &str| {
                got.push(data.to_owned());
                Ok(())
            };
            let outcome = body.chunks(size).try_for_each(|piece| frames.push(piece, &mut each));
            let outcome = outcome.and_then(|()| frames.finish(&mut each));
            let text = String::from_utf8_lossy(body);
            match want {
                Ok(want) => {
                    outcome.unwrap_or_else(|error| panic!("{text:?}: {error:?}"));
                    assert_eq!(got, want, "{text:?} in pieces of {size}");
                }
                Err(want) => {
                    let error = format!("{:?}", outcome.expect_err("refused"));
                    assert!(error.contains(want), "{text:?} in pieces of {size}: {error}");
                }
            }
        }
    }

    #[test]
    fn events_are_told_apart() {
        let events = |body: &str, want: &[&str]| check(Framing::Events, body.as_bytes(), Ok(want));
        events("", &[]);
        events("\n\n\n", &[]);
        events("data: a\n\ndata: b\n\n", &["a", "b"]);
        events("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
        events("data: a\r\rdata: b\r\r", &["a", "b"]);
        events("data: a\r\ndata: b\r\n\r\n", &["a\nb"]);
        events("\u{feff}event: x\nid: 1\nretry: 5\ndata:{\"ä\": 1}\n\n", &["{\"ä\": 1}"]);
        events(": still here\n\ndata\ndata:\n\nlater: 1\ndata: a\n\n", &["a"]);
        events("data: a\n\ndata: last", &["a", "last"]);
        events("data: 日本語🦀\n\n", &["日本語🦀"]);
    }

    #[test]
    fn lines_are_told_apart() {
        let lines = |body: &str, want: &[&str]| check(Framing::Lines, body.as_bytes(), Ok(want));
        lines("", &[]);
        lines("{\"a\":1}\n\n{\"b\":\"\\r\"}\n", &["{\"a\":1}", "{\"b\":\"\\r\"}"]);
        lines("{}\n{\"c\"", &["{}", "{\"c\""]);
        lines("日本語\n🦀", &["日本語", "🦀"]);
    }

    #[test]
    fn what_is_no_stream_is_told() {
        let no_stream = Err("no event stream");
        check(Framing::Events, b"<html>\n\n<p>Welcome</p>\n\n</html>", no_stream);
        check(Framing::Events, b"{\"choices\": []}", no_stream);
        check(Framing::Events, b"\n   {}", no_stream);
        check(Framing::Events, b"{\"error\": null}", no_stream);
        check(Framing::Events, b"{\"error\": {\"message\": \"no room\"}}", Err("no room"));
        check(Framing::Events, b"data: \xff\xfe\n\n", Err("no text in UTF-8"));
        check(Framing::Lines, b"\xff\xfe\n", Err("no text in UTF-8"));
        check(Framing::Events, &vec![b' '; ODD_BYTES_MAX + 1], no_stream);
    }

    #[test]
    fn a_large_event_is_looked_at_once() {
        let picture = "A".repeat(20_000_000);
        let body = format!("data: {picture}\n\n");
        let (mut frames, mut bytes) = (Frames::new(Framing::Events), 0);
        for piece in body.as_bytes().chunks(1_400) {
            let mut count = |data: &str| {
                bytes += data.len();
                Ok(())
            };
            frames.push(piece, &mut count).expect("an event");
        }
        assert_eq!((bytes, frames.rest.len()), (picture.len(), 0));
    }
}
