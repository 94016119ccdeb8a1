//! The pipe of an MCP client: each line is a message, and each request that can be told as one is answered, by its id.
//! rmcp reads the messages that are well-formed; of the others it would tell neither whose they are nor what is wrong.

use std::io;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::model::{ClientRequest, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader, Empty};

use super::{envelope, misfit};

/// The longest line of a client, bytes.
pub const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What some programs write before their first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Lists and objects within each other that are read: of `serde_json`, which takes one less than the 128 it names.
const DEPTH_MAX: usize = 127;
/// Room that is kept from one line to the next, bytes.
const LINE_BYTES_KEPT: usize = 64 * 1024;

/// The two directions of a pipe. They are closed when this is dropped.
pub struct Lines<R, W: AsyncWrite> {
    read: BufReader<R>,
    line: Vec<u8>,
    /// The rest of a line that is too long is thrown away.
    too_long: bool,
    write: AsyncRwTransport<RoleServer, Empty, W>,
    /// An answer that is being written, before more is read.
    answering: Option<BoxFuture<'static, io::Result<()>>>,
}

/// What a line is.
enum Heard {
    /// A message for the service.
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    /// Something that is refused at once.
    Refused(ErrorData, Option<RequestId>),
    /// Nothing that could be answered.
    Nothing,
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> Lines<R, W> {
    /// The pipe whose two ends these are.
    pub fn new(read: R, write: W) -> Self {
        let write = AsyncRwTransport::new_server(tokio::io::empty(), write);
        Self { read: BufReader::new(read), line: Vec::new(), too_long: false, write, answering: None }
    }

    /// Reads on until a line is whole; none is the end, at which the last line needs no sign of its own. May be dropped and
    /// called again.
    async fn next(&mut self) -> io::Result<Option<Heard>> {
        loop {
            let there = self.read.fill_buf().await?;
            if there.is_empty() {
                let last = std::mem::take(&mut self.line);
                return Ok((!last.is_empty() && !self.too_long).then(|| heard(&last)));
            }
            let end = there.iter().position(|byte| *byte == b'\n');
            let taken = &there[..end.unwrap_or(there.len())];
            if self.too_long || self.line.len() + taken.len() > LINE_BYTES_MAX {
                self.too_long = true;
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(taken);
            }
            let consumed = end.map_or(there.len(), |end| end + 1);
            self.read.consume(consumed);
            if end.is_none() {
                continue;
            }
            if std::mem::take(&mut self.too_long) {
                let why = format!("a line of more than {LINE_BYTES_MAX} bytes was left out");
                return Ok(Some(Heard::Refused(ErrorData::invalid_request(why, None), None)));
            }
            let heard = heard(&self.line);
            self.line.clear();
            self.line.shrink_to(LINE_BYTES_KEPT);
            return Ok(Some(heard));
        }
    }
}

/// Reads a line.
fn heard(line: &[u8]) -> Heard {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii();
    match serde_json::from_slice(line) {
        // Before hands are shaken, rmcp knows no other requests than those that it can read.
        Ok(JsonRpcMessage::Request(asked)) => match &asked.request {
            ClientRequest::CustomRequest(request) if request.method == "initialize" => {
                Heard::Refused(misfit::of(&request.method, request.params.as_ref()), Some(asked.id))
            }
            _ => Heard::Message(Box::new(JsonRpcMessage::Request(asked))),
        },
        Ok(message) => Heard::Message(Box::new(message)),
        Err(_) => match serde_json::from_slice(line) {
            Ok(value) => odd(&value),
            Err(error) => unreadable(line, &error),
        },
    }
}

/// What a line is that cannot be read as a whole, for `error`. JSON may hold halves of characters, numbers of any size and
/// lists of any depth; whose request that is can be told even so.
fn unreadable(line: &[u8], error: &serde_json::Error) -> Heard {
    let Some(id) = envelope::id_of_request(line) else {
        // Whoever gets an answer to junk may answer with more of it.
        tracing::debug!(%error, "a client wrote a line that cannot be read");
        return Heard::Nothing;
    };
    let why = format!(
        "the message cannot be read: {error}; texts need whole characters, numbers have to fit into 64 bits, and values \
         may be nested {DEPTH_MAX} deep"
    );
    Heard::Refused(ErrorData::parse_error(why, None), Some(id))
}

/// What JSON is that is no message of this protocol.
fn odd(value: &Value) -> Heard {
    let refused = |why: &str, id| Heard::Refused(ErrorData::invalid_request(why.to_owned(), None), id);
    let Some(message) = value.as_object() else {
        return refused("a line has to be one message, which is an object; there are no batches", None);
    };
    let method = message.get("method").and_then(Value::as_str);
    let answers = message.contains_key("result") || message.contains_key("error");
    let Some(id) = message.get("id").filter(|_| method.is_some() || !answers) else {
        // Neither notifications nor answers are answered.
        tracing::debug!(method, answers, "a client wrote a message that does not fit the protocol");
        return if method.is_some() || answers { Heard::Nothing } else { refused("the message has no `method`", None) };
    };
    match (method, envelope::id(id)) {
        (_, None) => {
            let (least, most) = (i64::MIN, i64::MAX);
            refused(&format!("the `id` of a request has to be a text or a whole number from {least} to {most}"), None)
        }
        (None, id) => refused("the message has no `method` that is a text", id),
        (Some(_), id) if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") => {
            refused("the message does not say `\"jsonrpc\": \"2.0\"`", id)
        }
        (Some(method), id) => Heard::Refused(misfit::of(method, message.get("params")), id),
    }
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> Transport<RoleServer> for Lines<R, W> {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.write.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(answering) = &mut self.answering {
                let written = answering.await;
                self.answering = None;
                if let Err(error) = written {
                    tracing::debug!(%error, "a client takes no more answers");
                    return None;
                }
            }
            match self.next().await {
                Ok(Some(Heard::Message(message))) => return Some(*message),
                Ok(Some(Heard::Refused(error, id))) => {
                    self.answering = Some(self.write.send(JsonRpcMessage::error(error, id)).boxed());
                }
                Ok(Some(Heard::Nothing)) => {}
                Ok(None) => return None,
                Err(error) => {
                    tracing::warn!(%error, "a client cannot be read any more");
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // Nobody goes on with it, and it may be in the middle of a write.
        self.answering = None;
        // So may answers of the service be, to a client that reads nothing: they end with the service, and the pipe with
        // them. To wait for them here would be to wait for that client.
        self.write.close().now_or_never().unwrap_or(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// What a line is: the id of a message that is passed on, or the error.
    fn check(line: &str, want: &str) {
        let got = match heard(line.as_bytes()) {
            Heard::Message(message) => match *message {
                JsonRpcMessage::Request(asked) => format!("request {}", asked.id),
                JsonRpcMessage::Notification(_) => "notification".to_owned(),
                JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => "answer".to_owned(),
            },
            Heard::Refused(error, id) => {
                let id = id.map_or("nobody".to_owned(), |id| id.to_string());
                format!("{} to {id}: {}", error.code.0, error.message)
            }
            Heard::Nothing => "nothing".to_owned(),
        };
        assert_eq!(got, want, "{line}");
    }

    #[test]
    fn each_request_is_passed_on_or_refused_by_its_id() {
        check("", "nothing");
        check("this is no JSON", "nothing");
        check("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r", "request 1");
        check(r#"{"jsonrpc":"2.0","id":"a","method":"tools/odd","params":{}}"#, "request a");
        check(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "notification");
        check(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":7}"#, "nothing");
        check(r#"{"jsonrpc":"2.0","id":1,"result":7}"#, "answer");
        check(r#"{"jsonrpc":"2.0","id":{},"result":7}"#, "nothing");
        let of = |params: &str, want: &str| {
            let line = format!(r#"{{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{params}}}"#);
            check(&line, &format!("-32602 to a: the params of `tools/call` do not fit: {want}"));
        };
        of("5", "they have to be an object, and are a number");
        of("[]", "they have to be an object, and are a list");
        of(r#"{"name":"a","_meta":5}"#, "`_meta` has to be an object");
        let init = "-32602 to 1: the params of `initialize` do not fit: ";
        check(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, &format!("{init}there are none"));
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
            &format!("{init}missing field `protocolVersion`"),
        );
        check(r#"{"jsonrpc":"2.0","id":1,"method":"odd","params":5}"#, "-32601 to 1: there is no method `odd`");
        let no_id = "-32600 to nobody: the `id` of a request has to be a text or a whole number from \
                     -9223372036854775808 to 9223372036854775807";
        check(r#"{"jsonrpc":"2.0","id":9223372036854775807,"method":"ping"}"#, "request 9223372036854775807");
        check(r#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}"#, no_id);
        check(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, no_id);
        check(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, no_id);
        check(r#"{"id":1,"method":"ping"}"#, "-32600 to 1: the message does not say `\"jsonrpc\": \"2.0\"`");
        check(r#"{"jsonrpc":"2.0","id":1,"method":5}"#, "-32600 to 1: the message has no `method` that is a text");
        check(r#"{"jsonrpc":"2.0"}"#, "-32600 to nobody: the message has no `method`");
        let batch = "-32600 to nobody: a line has to be one message, which is an object; there are no batches";
        check(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, batch);
    }

    #[test]
    fn a_request_that_cannot_be_read_is_refused_by_its_id() {
        let of = |id: &str, params: &str, want: &str| {
            let line = format!(r#"{{"jsonrpc":"2.0","params":{params},"method":"tools/call","id":{id}}}"#);
            let end =
                "; texts need whole characters, numbers have to fit into 64 bits, and values may be nested 127 deep";
            check(&line, &format!("-32700 to {want}{end}"));
        };
        let lone = r#"{"name":"a","arguments":{"query":"\ud83d"}}"#;
        of("1", lone, "1: the message cannot be read: unexpected end of hex escape at line 1 column 67");
        of("\"a\"", "1e999", "a: the message cannot be read: number out of range at line 1 column 31");
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        // The message itself is one more.
        check(
            &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"odd","params":{}}}"#, deep(DEPTH_MAX - 1)),
            "-32601 to 1: there is no method `odd`",
        );
        of("1", &deep(DEPTH_MAX), "1: the message cannot be read: recursion limit exceeded at line 1 column 153");
        of("1", &deep(100_000), "1: the message cannot be read: recursion limit exceeded at line 1 column 153");
        for nothing in [
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":1e999}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":1e999}"#,
            r#"{"jsonrpc":"2.0","id":1e999,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"#,
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping","params":1e999}]"#,
        ] {
            check(nothing, "nothing");
        }
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_does_not_keep_the_pipe_open() {
        let odd = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"odd\",\"params\":5}\n".repeat(3);
        let closes = async |lines: &mut Lines<&[u8], tokio::io::DuplexStream>| {
            tokio::time::timeout(Duration::from_secs(5), lines.close()).await.expect("in time").expect("closed");
        };
        // A refusal is being written.
        let (ours, _theirs) = tokio::io::duplex(16);
        let mut lines = Lines::new(odd.as_bytes(), ours);
        assert!(lines.receive().now_or_never().is_none(), "it waits for the client");
        closes(&mut lines).await;
        // An answer of the service is.
        let (ours, _theirs) = tokio::io::duplex(16);
        let mut lines = Lines::new(odd.as_bytes(), ours);
        let id = Some(RequestId::Number(1));
        let mut answer = lines.send(JsonRpcMessage::error(ErrorData::internal_error("x", None), id)).boxed();
        assert!((&mut answer).now_or_never().is_none(), "it waits for the client");
        closes(&mut lines).await;
    }

    #[tokio::test]
    async fn room_for_a_long_line_is_given_back() {
        let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
        let text = format!("{}{ping}", " ".repeat(LINE_BYTES_MAX / 2));
        let (ours, _theirs) = tokio::io::duplex(64);
        let mut lines = Lines::new(text.as_bytes(), ours);
        lines.receive().await.expect("a message");
        assert!(lines.line.capacity() <= LINE_BYTES_KEPT, "{} bytes", lines.line.capacity());
    }

    #[tokio::test]
    async fn the_last_line_needs_no_end() {
        let check = async |text: &'static str, want: usize| {
            let (ours, _theirs) = tokio::io::duplex(64);
            let mut lines = Lines::new(text.as_bytes(), ours);
            let mut found = 0;
            while lines.receive().await.is_some() {
                found += 1;
            }
            assert_eq!(found, want, "{text}");
        };
        let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
        check(ping, 1).await;
        check("{\"jsonrpc\":\"2.0\",\"id\":1,\"meth", 0).await;
        check("", 0).await;
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_told_and_the_next_one_is_read() {
        let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
        let text = format!("\"{}\"\n{ping}", "x".repeat(LINE_BYTES_MAX));
        let (ours, theirs) = tokio::io::duplex(4_096);
        let mut lines = Lines::new(io::Cursor::new(text.into_bytes()), ours);
        let message = lines.receive().await.expect("a message");
        assert!(matches!(message, JsonRpcMessage::Request(asked) if asked.id == RequestId::Number(1)));
        assert!(lines.receive().await.is_none(), "the end");
        drop(lines);
        let mut answer = String::new();
        BufReader::new(theirs).read_line(&mut answer).await.expect("an answer");
        let want = format!("a line of more than {LINE_BYTES_MAX} bytes was left out");
        assert!(answer.contains("-32600") && answer.contains(&want), "{answer}");
    }
}
