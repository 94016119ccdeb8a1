//! A server's pipes: each line is a message, none is longer than is allowed, and one that is hurts its call only.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Bytes at the start and at the end of a line that is too long, which tell whose answer it is.
const EDGE_BYTES: usize = 512;
/// So many times as long as is allowed, a line ends the connection: nothing else would come any more.
const TOO_LONG_TIMES_MAX: usize = 16;
/// Lines in a row that are no messages, after which the connection is ended.
const JUNK_LINES_MAX: u32 = 100_000;
/// How long a server that does not read its pipe is waited for.
const WRITE_WITHIN: Duration = Duration::from_secs(30);

/// The pipes of a server. They are closed when this is dropped.
pub(super) struct Lines<R, W> {
    read: BufReader<R>,
    line: Vec<u8>,
    line_bytes_max: usize,
    /// Bytes of a line that is too long, of which `line` has the edges.
    too_long: Option<usize>,
    junk: u32,
    write: Arc<Mutex<Option<W>>>,
    /// Cancelled once nothing can be written any more: a server that cannot be asked is of no use.
    broken: CancellationToken,
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> Lines<R, W> {
    pub(super) fn new(read: R, write: W, line_bytes_max: usize) -> Self {
        let write = Arc::new(Mutex::new(Some(write)));
        let read = BufReader::new(read);
        let broken = CancellationToken::new();
        Self { read, line: Vec::new(), line_bytes_max, too_long: None, junk: 0, write, broken }
    }

    /// Reads on until a line is whole: its bytes, or those of its edges and how many it has. May be dropped and called
    /// again.
    async fn next(&mut self) -> io::Result<Option<(Vec<u8>, Option<usize>)>> {
        loop {
            let there = self.read.fill_buf().await?;
            if there.is_empty() {
                return Ok(None);
            }
            let end = there.iter().position(|byte| *byte == b'\n');
            let taken = &there[..end.unwrap_or(there.len())];
            self.line.extend_from_slice(taken);
            if let Some(bytes) = &mut self.too_long {
                *bytes += taken.len();
            } else if self.line.len() > self.line_bytes_max {
                self.too_long = Some(self.line.len());
            }
            if self.too_long.is_some() && self.line.len() > 4 * EDGE_BYTES {
                let tail = self.line.len() - EDGE_BYTES;
                self.line.drain(EDGE_BYTES..tail);
                self.line.shrink_to(8 * EDGE_BYTES);
            }
            let consumed = end.map_or(there.len(), |end| end + 1);
            self.read.consume(consumed);
            if self.too_long.is_some_and(|bytes| bytes / TOO_LONG_TIMES_MAX > self.line_bytes_max) {
                return Err(io::Error::other("a line of it has no end"));
            }
            if end.is_some() {
                return Ok(Some((std::mem::take(&mut self.line), self.too_long.take())));
            }
        }
    }

    /// The message of a line; none is left out.
    fn message(&mut self, line: &[u8], too_long: Option<usize>) -> Option<RxJsonRpcMessage<RoleClient>> {
        if let Some(bytes) = too_long {
            let most = self.line_bytes_max;
            let id = id_at_the_edges(line)?;
            return Some(refused(
                id,
                format!("limit server_message_bytes: its answer has {bytes} bytes, the most is {most}"),
            ));
        }
        let line = line.trim_ascii();
        if line.is_empty() {
            return None;
        }
        match serde_json::from_slice(line) {
            Ok(message) => {
                self.junk = 0;
                Some(message)
            }
            Err(error) => {
                self.junk += 1;
                let value: Value = serde_json::from_slice(line).unwrap_or_default();
                let answers = value.get("result").is_some() || value.get("error").is_some();
                let id = id(value.get("id")?).filter(|_| answers)?;
                Some(refused(id, format!("its answer is no answer of this protocol: {error}")))
            }
        }
    }
}

fn refused(id: RequestId, why: String) -> RxJsonRpcMessage<RoleClient> {
    JsonRpcMessage::error(ErrorData::new(ErrorCode::INTERNAL_ERROR, why, None), Some(id))
}

fn id(value: &Value) -> Option<RequestId> {
    match value {
        Value::Number(number) => number.as_i64().map(RequestId::Number),
        Value::String(text) => Some(RequestId::String(text.as_str().into())),
        _ => None,
    }
}

/// The id of an answer of which only the edges are kept: it stands before the result, or at the very end.
fn id_at_the_edges(edges: &[u8]) -> Option<RequestId> {
    let text = String::from_utf8_lossy(edges);
    let head = &text[..text.find("\"result\"").or_else(|| text.find("\"error\""))?];
    if let Some(at) = head.find("\"id\"") {
        return number_or_text(&head[at + 4..]).map(|(id, _)| id);
    }
    let at = text.rfind("\"id\"")?;
    let (id, behind) = number_or_text(&text[at + 4..])?;
    let behind: String = behind.chars().filter(|c| !c.is_whitespace()).collect();
    matches!(behind.as_str(), "}" | ",\"jsonrpc\":\"2.0\"}").then_some(id)
}

/// The id behind a colon, and what stands behind it.
fn number_or_text(text: &str) -> Option<(RequestId, &str)> {
    let text = text.trim_start().strip_prefix(':')?.trim_start();
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let found = id(&values.next()?.ok()?)?;
    Some((found, &text[values.byte_offset()..]))
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> Transport<RoleClient> for Lines<R, W> {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (write, broken) = (self.write.clone(), self.broken.clone());
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let writing = async {
                let mut write = write.lock().await;
                let Some(pipe) = write.as_mut() else { return Err(io::ErrorKind::NotConnected.into()) };
                let written = timeout(WRITE_WITHIN, async {
                    pipe.write_all(&line).await?;
                    pipe.flush().await
                });
                let written = written.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
                // Half a line makes nonsense of all that would follow.
                if written.is_err() {
                    *write = None;
                    broken.cancel();
                }
                written
            };
            writing.await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let broken = self.broken.clone();
        loop {
            let next = tokio::select! {
                biased;
                // What it has answered before still counts.
                next = self.next() => next,
                () = broken.cancelled() => {
                    Err(io::Error::new(io::ErrorKind::BrokenPipe, "it takes no more messages; its connection is ended"))
                }
            };
            match next {
                Ok(Some((line, too_long))) => {
                    if let Some(message) = self.message(&line, too_long) {
                        return Some(message);
                    }
                    if self.junk > JUNK_LINES_MAX {
                        tracing::warn!(
                            lines = self.junk,
                            "a server writes lines that are no messages; its connection is ended"
                        );
                        return None;
                    }
                }
                Ok(None) => return None,
                Err(error) => {
                    tracing::warn!(%error, "a server cannot be read any more");
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // Whoever writes right now has it for a bounded time.
        self.write.lock().await.take();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ClientJsonRpcMessage, ClientRequest, PingRequest};

    use super::*;

    async fn check(written: &str, want: &[&str]) {
        let (_keeps_open, write) = tokio::io::simplex(64);
        let mut lines = Lines::new(written.as_bytes(), write, 2_000);
        let mut found = Vec::new();
        while let Some(message) = lines.receive().await {
            found.push(serde_json::to_string(&message).expect("JSON"));
        }
        assert_eq!(found, want);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_or_wrong_is_the_answer_of_its_call() {
        let long = "x".repeat(20_000);
        let told = |id: &str, bytes: usize| {
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32603,\"message\":\"limit server_message_bytes: its answer has {bytes} bytes, the most is 2000\"}}}}"
            )
        };
        let first = format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"id\":9,\"text\":\"{long}\"}}}}");
        let last = format!("{{\"result\":{{\"id\":9,\"text\":\"{long}\"}},\"jsonrpc\":\"2.0\",\"id\":\"a\"}}");
        let none = format!("{{\"result\":{{\"text\":\"{long}\",\"id\":9}},\"jsonrpc\":\"2.0\"}}");
        let pong = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}";
        check(
            &format!("{first}\n{last}\r\n{none}\nnoise\n\n{pong}\nhalf a line"),
            &[&told("7", first.len()), &told("\"a\"", last.len() + 1), pong],
        )
        .await;
        let endless = "y".repeat(2_000 * (TOO_LONG_TIMES_MAX + 2));
        check(&format!("{endless}\n{pong}\n"), &[]).await;
    }

    /// How sending ends, and then receiving, where the server has written `written`, keeps its output open, and reads nothing.
    async fn check_unread(input_open: bool, written: &str, want: io::ErrorKind, received: bool) {
        let (mut output, read) = tokio::io::duplex(256);
        let (input, write) = tokio::io::duplex(8);
        let _input = input_open.then_some(input);
        let mut lines = Lines::new(read, write, 2_000);
        let ping = ClientRequest::PingRequest(PingRequest::default());
        let sent = lines.send(ClientJsonRpcMessage::request(ping, RequestId::Number(1))).await;
        assert_eq!(sent.expect_err("nobody reads it").kind(), want);
        output.write_all(written.as_bytes()).await.expect("written");
        for more in received.then_some(true).into_iter().chain([false]) {
            let next = timeout(2 * WRITE_WITHIN, lines.receive()).await.expect("it ends");
            assert_eq!(next.is_some(), more, "{written}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_reads_nothing_is_left() {
        let pong = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
        check_unread(true, "", io::ErrorKind::TimedOut, false).await;
        check_unread(true, pong, io::ErrorKind::TimedOut, true).await;
        check_unread(false, "", io::ErrorKind::BrokenPipe, false).await;
    }

    #[tokio::test]
    async fn an_answer_of_no_shape_is_told_to_its_call() {
        check(
            "{\"jsonrpc\":\"1.0\",\"id\":3,\"result\":5}\n",
            &["{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32603,\"message\":\"its answer is no answer of this protocol: unrecognized JSON-RPC message\"}}"],
        )
        .await;
    }
}
