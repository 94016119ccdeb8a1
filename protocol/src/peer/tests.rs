//! Two peers, or a peer and raw lines, over pipes in memory.

use std::sync::atomic::AtomicU32;
use std::time::Instant;

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split};
use tokio::task::JoinHandle;

use super::*;
use crate::ids::ThreadId;
use crate::methods::{OnLlmRequest, OnProgress, OnToolCall};
use crate::service::CallCx;
use crate::types::{Empty, LlmRequestParams, LlmRequestResult, Part, ProgressParams, ToolCallParams, ToolCallResult};

mod bounds;
mod cuts;
mod junk;
mod orders;
mod schedules;
mod together;

/// What the handlers of a test share: how many are at work, and how many have ended, in whatever way.
#[derive(Default)]
struct Seen {
    begun: AtomicU32,
    gone: AtomicU32,
    change: Notify,
}

impl Seen {
    /// Waits until `count` says `n`.
    async fn reaches(&self, count: impl Fn(&Self) -> &AtomicU32, n: u32) {
        loop {
            let change = self.change.notified();
            if count(self).load(Ordering::SeqCst) >= n {
                return;
            }
            change.await;
        }
    }
}

/// Counts a handler as gone when it is dropped.
struct Gone(Arc<Seen>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.gone.fetch_add(1, Ordering::SeqCst);
        self.0.change.notify_waiters();
    }
}

/// The tool of the tests: what it does is its name.
async fn tool(seen: Arc<Seen>, asked: ToolCallParams, call: CallCx) -> Result<ToolCallResult, RpcError> {
    seen.begun.fetch_add(1, Ordering::SeqCst);
    seen.change.notify_waiters();
    let _gone = Gone(seen.clone());
    match asked.tool_name.as_str() {
        "echo" => Ok(text_result(asked.arguments.to_string())),
        "long" => Ok(text_result("x".repeat(usize::try_from(asked.arguments.as_u64().expect("bytes")).expect("fits")))),
        "refuse" => Err(RpcError::new(Kind::NotPermitted, "no").with("who", "you")),
        "panic" => panic!("on purpose"),
        "hang" => std::future::pending().await,
        "heed" => {
            call.cancelled.cancelled().await;
            Ok(text_result("stopped where it was safe".to_owned()))
        }
        // Calls back while it is being called, `arguments` levels deep.
        "back" => match asked.arguments.as_u64() {
            Some(0) | None => Ok(text_result("bottom".to_owned())),
            Some(depth) => Ok(call.peer.call::<OnToolCall>(&tool_call("back", json!(depth - 1))).await?),
        },
        other => Err(RpcError::new(Kind::UnknownTool, other)),
    }
}

fn text_result(text: String) -> ToolCallResult {
    ToolCallResult { content: vec![Part::text(text)], structured_content: None, is_error: false, end_run: None }
}

fn tool_call(name: &str, arguments: Value) -> ToolCallParams {
    ToolCallParams { thread_id: ThreadId::mint(), call_id: "c".to_owned(), tool_name: name.to_owned(), arguments }
}

fn service(seen: &Arc<Seen>) -> Service<Seen> {
    Service::new(seen.clone()).on(OnToolCall, tool)
}

/// One end of a link whose other end is raw lines.
struct Raw {
    peer: Peer,
    seen: Arc<Seen>,
    link: JoinHandle<LinkReport>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    pipe: WriteHalf<DuplexStream>,
}

fn raw(limits: PeerLimits, pipe_bytes: usize) -> Raw {
    let (a, b) = duplex(pipe_bytes);
    let seen = Arc::new(Seen::default());
    let (read, write) = split(a);
    let (peer, link) = connect(read, write, service(&seen), limits);
    let (read, pipe) = split(b);
    Raw { peer, seen, link: tokio::spawn(link), lines: BufReader::new(read).lines(), pipe }
}

impl Raw {
    async fn send(&mut self, line: impl AsRef<[u8]>) {
        self.pipe.write_all(line.as_ref()).await.expect("the link reads");
        self.pipe.write_all(b"\n").await.expect("the link reads");
    }

    async fn ask(&mut self, id: u64, tool: &str, arguments: Value) {
        let line = wire::request_line(&Id::Number(id), OnToolCall::NAME, &tool_call(tool, arguments));
        self.pipe.write_all(&line.expect("writes")).await.expect("the link reads");
    }

    async fn receive(&mut self) -> Value {
        let line = self.lines.next_line().await.expect("the link writes").expect("the link is open");
        serde_json::from_str(&line).expect("JSON")
    }

    /// Waits until the link has handled all that was sent so far.
    async fn settle(&mut self) {
        self.send(r#"{"jsonrpc":"2.0","id":"settle","method":"ping"}"#).await;
        assert_eq!(self.receive().await, json!({ "jsonrpc": "2.0", "id": "settle", "result": {} }));
    }

    fn sizes(&self) -> (usize, usize, u64) {
        self.peer.0.state().sizes()
    }

    /// Closes this end, and tells how the link ended.
    async fn end(self) -> LinkReport {
        drop((self.lines, self.pipe));
        self.link.await.expect("the link does not panic")
    }
}

/// Two peers over one pipe in memory.
fn pair(pipe_bytes: usize) -> [(Peer, Arc<Seen>, JoinHandle<LinkReport>); 2] {
    let (a, b) = duplex(pipe_bytes);
    [a, b].map(|end| {
        let seen = Arc::new(Seen::default());
        let (read, write) = split(end);
        let (peer, link) = connect(read, write, service(&seen), PeerLimits::default());
        (peer, seen, tokio::spawn(link))
    })
}

fn kind_and_text(error: &CallError) -> (Option<Kind>, String) {
    (error.kind(), error.to_string())
}

/// Waits until nothing is in flight or queued: what was answered may still be counted for a moment.
async fn comes_to_rest(peer: &Peer) {
    let rest = async {
        while peer.0.state().sizes() != (0, 0, 0) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(millis(5_000), rest).await.unwrap_or_else(|_| panic!("something is left: {peer:?}"));
}
