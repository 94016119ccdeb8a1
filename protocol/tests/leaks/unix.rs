//! Both of the processes.

use std::io::{stdin, stdout};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::ids::ThreadId;
use assistant_protocol::methods::{OnToolCall, Ping};
use assistant_protocol::peer::{CallError, LinkReport, Oddities, Peer, PeerLimits, connect};
use assistant_protocol::service::{CallCx, Service};
use assistant_protocol::types::{Empty, Part, ToolCallParams, ToolCallResult};
use futures::StreamExt;
use futures::stream;
use serde_json::{Value, json};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::runtime::{Builder, Handle};

/// Calls that each side begins; those that are called back come on top.
const CALLS: u64 = 50_000;
/// Calls before the first count, so that what is only made once is there.
const FIRST: u64 = 2_000;
/// Calls that one side has under way.
const AT_ONCE: usize = 100;
/// How much more memory may be held at the end, in KiB.
const GROWTH_KIB: u64 = 4 * 1024;
/// How long what was given up may take until it is gone, in milliseconds.
const REST_MS_MAX: u64 = 90_000;
/// The argument of the other process.
const OTHER: &str = "other-side";

pub(super) fn main() {
    if std::env::args().nth(1).as_deref() == Some(OTHER) {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let report = runtime.block_on(async {
            let pipes = (stdin().as_fd().try_clone_to_owned(), stdout().as_fd().try_clone_to_owned());
            serve(pipes.0.expect("stdin"), pipes.1.expect("stdout")).1.await.expect("no panic")
        });
        assert_eq!(report.oddities, Oddities::default());
        return;
    }
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(both_sides());
}

async fn both_sides() {
    let me = std::env::current_exe().expect("a program");
    let mut other = Command::new(me).arg(OTHER).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
    let [read, write] = [other.stdout.take().map(OwnedFd::from), other.stdin.take().map(OwnedFd::from)];
    let (peer, link) = serve(read.expect("a pipe"), write.expect("a pipe"));
    round(&peer, FIRST).await;
    let before = [held(&peer).await, held_there(&peer).await];
    round(&peer, CALLS).await;
    let after = [held(&peer).await, held_there(&peer).await];
    for (before, after) in before.iter().zip(&after) {
        assert_eq!((before.tasks, before.descriptors), (after.tasks, after.descriptors), "{before:?}, {after:?}");
        assert!(after.kib <= before.kib + GROWTH_KIB, "{before:?}, {after:?}");
    }
    peer.close();
    assert_eq!(link.await.expect("no panic").oddities, Oddities::default());
    assert!(other.wait().expect("ends").success(), "the other side saw something odd");
}

/// One end of the link on two pipes.
fn serve(read: OwnedFd, write: OwnedFd) -> (Peer, tokio::task::JoinHandle<LinkReport>) {
    let reader = Receiver::from_owned_fd(read).expect("a pipe");
    let writer = Sender::from_owned_fd(write).expect("a pipe");
    let service = Service::new(Arc::new(())).on(OnToolCall, tool);
    let (peer, link) = connect(reader, writer, service, PeerLimits::default());
    (peer, tokio::spawn(link))
}

fn ask(name: &str, arguments: Value) -> ToolCallParams {
    ToolCallParams { thread_id: ThreadId::mint(), call_id: "c".to_owned(), tool_name: name.to_owned(), arguments }
}

fn result(text: String) -> ToolCallResult {
    ToolCallResult { content: vec![Part::text(text)], structured_content: None, is_error: false, end_run: None }
}

async fn tool(_: Arc<()>, asked: ToolCallParams, call: CallCx) -> Result<ToolCallResult, RpcError> {
    let number = asked.arguments.as_u64().unwrap_or_default();
    match asked.tool_name.as_str() {
        "echo" => Ok(result(number.to_string())),
        "refuse" => Err(RpcError::new(Kind::NotPermitted, "no")),
        // A panic that is not printed.
        "panic" => std::panic::resume_unwind(Box::new("on purpose")),
        "back" if number == 0 => Ok(result("bottom".to_owned())),
        "back" => Ok(call.peer.call::<OnToolCall>(&ask("back", json!(number - 1))).await?),
        "heed" => {
            call.cancelled.cancelled().await;
            Ok(result("heeded".to_owned()))
        }
        "calls" => {
            calls(&call.peer, number).await;
            Ok(result(String::new()))
        }
        // The call that asks is not counted.
        "held" => Ok(result(held_beside(&call.peer, 1).await.written())),
        other => Err(RpcError::new(Kind::UnknownTool, other)),
    }
}

/// The calls of both sides, at once.
async fn round(peer: &Peer, count: u64) {
    let theirs = ask("calls", json!(count));
    let (theirs, ()) = tokio::join!(peer.call::<OnToolCall>(&theirs), calls(peer, count));
    theirs.expect("the other side has called");
}

async fn calls(peer: &Peer, count: u64) {
    stream::iter(0..count).for_each_concurrent(AT_ONCE, |n| call(peer, n)).await;
}

/// A call that ends in one of all ways.
async fn call(peer: &Peer, n: u64) {
    let tool = async |name: &str| peer.call::<OnToolCall>(&ask(name, json!(n % 3))).await;
    let refused = |kind, error: CallError| assert_eq!(error.kind(), Some(kind), "{error}");
    match n % 8 {
        0 => assert_eq!(tool("echo").await.expect("answered"), result((n % 3).to_string())),
        1 => refused(Kind::NotPermitted, tool("refuse").await.expect_err("refused")),
        2 => refused(Kind::InternalError, tool("panic").await.expect_err("panics")),
        3 => assert_eq!(tool("back").await.expect("answered"), result("bottom".to_owned())),
        4 => refused(Kind::UnknownTool, tool("other").await.expect_err("unknown")),
        5 => drop(peer.call::<Ping>(&Empty {}).await.expect("pong")),
        // Given up in the queue, or wherever it is a moment later.
        _ => {
            let mut given_up = std::pin::pin!(tool("heed"));
            for _ in 0..=n % 40 {
                assert!(futures::poll!(given_up.as_mut()).is_pending(), "nobody cancelled it");
                tokio::task::yield_now().await;
            }
        }
    }
}

/// What a process holds.
#[derive(Debug)]
struct Held {
    tasks: usize,
    descriptors: usize,
    kib: u64,
}

impl Held {
    fn written(&self) -> String {
        format!("{} {} {}", self.tasks, self.descriptors, self.kib)
    }

    fn read(text: &str) -> Option<Self> {
        let mut numbers = text.split(' ').map(|number| number.parse::<u64>().ok());
        let mut next = || numbers.next().flatten();
        let (tasks, descriptors) = (usize::try_from(next()?).ok()?, usize::try_from(next()?).ok()?);
        Some(Self { tasks, descriptors, kib: next()? })
    }
}

async fn held_there(peer: &Peer) -> Held {
    let told = peer.call::<OnToolCall>(&ask("held", json!(0))).await.expect("answered");
    let [Part::Text { text }] = told.content.as_slice() else { panic!("a text") };
    Held::read(text).expect("three numbers")
}

async fn held(peer: &Peer) -> Held {
    held_beside(peer, 0).await
}

/// What this process holds when nothing is under way but `answering` requests of the other side.
async fn held_beside(peer: &Peer, answering: usize) -> Held {
    let rest = format!("asked: 0, answering: {answering}, queued_bytes: 0");
    let at_rest = async {
        while !format!("{peer:?}").contains(&rest) {
            tokio::task::yield_now().await;
        }
        // The link, its writer and what is being answered: handlers end a moment after their entries.
        while Handle::current().metrics().num_alive_tasks() > 2 + answering {
            tokio::task::yield_now().await;
        }
    };
    let rested = tokio::time::timeout(Duration::from_millis(REST_MS_MAX), at_rest).await;
    rested.unwrap_or_else(|_| panic!("something is left: {peer:?}"));
    Held {
        tasks: Handle::current().metrics().num_alive_tasks(),
        // Both are told by Linux only; elsewhere there is nothing to compare.
        descriptors: std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count),
        kib: resident_kib().unwrap_or(0),
    }
}

fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?.parse().ok()
}
