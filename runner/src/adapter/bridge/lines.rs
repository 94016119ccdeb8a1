//! The messages of one connection: a line each, bounded, and no more of them than are answered.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use assistant_protocol::types::MAX_FRAME_BYTES;
use assistant_protocol::wire::{self, Id, Incoming, Line, LineReader};
use rmcp::model::{ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The longest line of an agent, bytes: what is longer the host would not take either.
const LINE_BYTES_MAX: u64 = MAX_FRAME_BYTES;
/// Answers that wait to be written, from which on nothing is read.
const UNWRITTEN_MAX: usize = 128;
/// How long an agent is waited for that takes no byte, in milliseconds.
const WRITE_STUCK_MS: u64 = 30_000;
/// Lines in a row that are no messages, after which the connection ends.
const JUNK_LINES_MAX: u32 = 100;

/// The two directions of a connection.
pub(super) struct Lines<R, W> {
    read: LineReader<R>,
    write: Arc<Mutex<Option<W>>>,
    /// Answers that wait to be written.
    unwritten: Arc<watch::Sender<usize>>,
    junk: u32,
    /// Cancelled when the connection is over, by either side.
    gone: CancellationToken,
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> Lines<R, W> {
    /// Cancels `gone` when it ends.
    pub(super) fn new(read: R, write: W, gone: CancellationToken) -> Self {
        let most = usize::try_from(LINE_BYTES_MAX).unwrap_or(usize::MAX);
        Self {
            read: LineReader::new(read, most),
            write: Arc::new(Mutex::new(Some(write))),
            unwritten: Arc::default(),
            junk: 0,
            gone,
        }
    }

    /// The next message; none at the end. May be dropped and called again.
    ///
    /// # Errors
    /// What the agent did that ends the connection.
    async fn next(&mut self) -> Result<Option<RxJsonRpcMessage<RoleServer>>, String> {
        loop {
            let mut unwritten = self.unwritten.subscribe();
            // The sender is `self`'s.
            let _ = unwritten.wait_for(|answers| *answers < UNWRITTEN_MAX).await;
            let line = match self.read.next().await {
                Ok(Line::Whole(line)) => line,
                // Agents are killed, with their bridges.
                Ok(Line::End) | Err(_) => return Ok(None),
                Ok(Line::TooLong) => return Err(format!("a line of it has more than {LINE_BYTES_MAX} bytes")),
            };
            if line.trim_ascii().is_empty() {
                continue;
            }
            let refused = match serde_json::from_slice(line) {
                Ok(message) => {
                    self.junk = 0;
                    return Ok(Some(message));
                }
                Err(error) => refused(line, &error),
            };
            match refused {
                Some(refused) => {
                    tokio::spawn(self.send(refused));
                }
                None => self.junk += 1,
            }
            if self.junk > JUNK_LINES_MAX {
                return Err(format!("{JUNK_LINES_MAX} lines of it in a row are no messages"));
            }
        }
    }
}

/// What one is answered whose request cannot be read; none where it is no request.
fn refused(line: &[u8], error: &serde_json::Error) -> Option<TxJsonRpcMessage<RoleServer>> {
    let Incoming::Request { id, .. } = wire::classify(line) else { return None };
    let id = match id {
        Id::Number(number) => RequestId::Number(i64::try_from(number).ok()?),
        Id::Text(text) => RequestId::String(text.as_str().into()),
    };
    let why = format!("the request cannot be read: {error}");
    Some(JsonRpcMessage::error(ErrorData::invalid_request(why, None), Some(id)))
}

/// One answer that waits to be written.
struct Unwritten(Arc<watch::Sender<usize>>);

impl Unwritten {
    fn count(answers: &Arc<watch::Sender<usize>>) -> Self {
        answers.send_modify(|answers| *answers += 1);
        Self(answers.clone())
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        self.0.send_modify(|answers| *answers -= 1);
    }
}

async fn write_all(pipe: &mut (impl AsyncWrite + Unpin), mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match timeout(Duration::from_millis(WRITE_STUCK_MS), pipe.write(bytes)).await {
            Ok(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written?..],
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
    Ok(())
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> Transport<RoleServer> for Lines<R, W> {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (write, gone) = (self.write.clone(), self.gone.clone());
        let waits = Unwritten::count(&self.unwritten);
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let mut write = write.lock().await;
            let Some(pipe) = write.as_mut() else { return Err(io::ErrorKind::NotConnected.into()) };
            let written = write_all(pipe, &line).await;
            // Half a line makes nonsense of all that would follow.
            if written.is_err() {
                *write = None;
                gone.cancel();
            }
            drop(waits);
            written
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let gone = self.gone.clone();
        let next = tokio::select! {
            biased;
            () = gone.cancelled() => return None,
            next = self.next() => next,
        };
        let message = next.unwrap_or_else(|why| {
            crate::complain(&format!("assistant-runner: a connection to the assistant's tools is ended: {why}"));
            None
        });
        if message.is_none() {
            gone.cancel();
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // Whoever writes right now does so to one that reads nothing: it ends with the service.
        if let Ok(mut write) = self.write.try_lock() {
            write.take();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, duplex};

    use super::*;

    const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";

    /// Reads all messages of a text: how many there are, and what was answered to the others.
    async fn check(said: &str, messages: usize, answers: &[&str]) {
        let (ours, mut theirs) = duplex(64 * 1024);
        let gone = CancellationToken::new();
        let mut lines = Lines::new(said.as_bytes(), ours, gone.clone());
        let mut found = 0;
        while lines.receive().await.is_some() {
            found += 1;
        }
        assert!(gone.is_cancelled(), "whoever waits is told");
        drop(lines);
        let mut told = String::new();
        theirs.read_to_string(&mut told).await.expect("reads");
        assert_eq!((found, told.lines().collect::<Vec<_>>()), (messages, answers.to_vec()), "{said}");
    }

    #[tokio::test]
    async fn what_is_no_message_is_refused_or_counted() {
        check("", 0, &[]).await;
        check(&format!("noise\n\n\r\n[]\n{PING}{}", PING.trim_end()), 2, &[]).await;
        let odd = "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/call\",\"params\":5}\n";
        let told = "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":-32600,\"message\":\"the request cannot be \
                    read: unrecognized JSON-RPC message\"}}";
        check(&format!("{odd}{PING}"), 1, &[told]).await;
        let most = usize::try_from(JUNK_LINES_MAX).expect("few");
        check(&format!("{}{PING}{}{PING}", "noise\n".repeat(most), "noise\n".repeat(most)), 2, &[]).await;
        check(&format!("{}{PING}", "noise\n".repeat(most + 1)), 0, &[]).await;
    }

    #[tokio::test]
    async fn a_line_without_an_end_ends_the_connection() {
        let (ours, _theirs) = duplex(16);
        let gone = CancellationToken::new();
        let mut lines = Lines::new(tokio::io::repeat(b'x'), ours, gone.clone());
        assert!(lines.receive().await.is_none());
        assert!(gone.is_cancelled(), "whoever waits is told");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_reads_nothing_is_not_read_on_and_then_left() {
        let (ours, theirs) = duplex(16);
        let gone = CancellationToken::new();
        let said = PING.repeat(2 * UNWRITTEN_MAX);
        let mut lines = Lines::new(said.as_bytes(), ours, gone.clone());
        let mut sending = tokio::task::JoinSet::new();
        for _ in 0..UNWRITTEN_MAX {
            lines.receive().await.expect("a message");
            let error = ErrorData::internal_error("x", None);
            sending.spawn(lines.send(JsonRpcMessage::error(error, Some(RequestId::Number(1)))));
        }
        assert!(lines.receive().await.is_none(), "it is left, and not read on");
        assert!(gone.is_cancelled());
        while let Some(sent) = sending.join_next().await {
            assert!(sent.expect("ends").is_err(), "nobody reads it");
        }
        drop((lines, theirs));
    }

    #[tokio::test]
    async fn one_that_reads_late_gets_everything() {
        let (ours, theirs) = duplex(16);
        let said = PING.repeat(2 * UNWRITTEN_MAX);
        let mut lines = Lines::new(said.as_bytes(), ours, CancellationToken::new());
        let reading = tokio::spawn(async move {
            let (mut theirs, mut count) = (BufReader::new(theirs).lines(), 0);
            while let Ok(Some(_)) = theirs.next_line().await {
                count += 1;
            }
            count
        });
        let mut sending = tokio::task::JoinSet::new();
        while lines.receive().await.is_some() {
            let error = ErrorData::internal_error("x".repeat(100), None);
            sending.spawn(lines.send(JsonRpcMessage::error(error, Some(RequestId::Number(1)))));
        }
        while let Some(sent) = sending.join_next().await {
            sent.expect("ends").expect("written");
        }
        drop(lines);
        assert_eq!(reading.await.expect("ends"), 2 * UNWRITTEN_MAX);
    }
}
