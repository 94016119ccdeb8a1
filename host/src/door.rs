//! The door on a local socket: one host, many clients that come and go.
//!
//! A connection begins with one line each way ([`hello`]); behind it is MCP, or the answer to a question about the
//! host. The socket lies in a folder that only its owner may enter, so whoever connects is the local user.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use interprocess::local_socket::tokio::{Listener, Stream};
use interprocess::local_socket::traits::tokio::Listener as _;
use interprocess::local_socket::{ConnectOptions, ListenerOptions};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::caller::Within;
use crate::host::{Host, NotStored};
use crate::mcp;
use crate::registry::AssistantId;
use crate::store::SUPERVISOR;

pub(crate) use address::make_folder;
mod address;
mod greet;
pub mod hello;
mod store;

pub use address::{Address, FOLDER};
use greet::Verdict;
use hello::{Hello, Identity, Reply};

/// The principal of everyone who comes through the socket.
pub const LOCAL: &str = "local";
/// Clients that are served at once.
pub const CONNECTIONS_MAX: usize = 256;
/// How long a client may take for its first line.
const HELLO_WITHIN: Duration = Duration::from_secs(5);
/// How long those that are served may take to end their sessions.
const CLOSED_WITHIN: Duration = Duration::from_secs(5);
/// How soon the socket is listened on again where that failed.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// Clients that wait for the end of the host at once.
const WAITING_FOR_THE_END_MAX: usize = 64;

/// The two directions of a connection, with what was read beyond its first line.
pub(crate) type Connection = BufReader<Stream>;

/// An open door: clients can connect from now on, and are served by [`Door::serve`].
pub struct Door {
    host: Host,
    listener: Listener,
    address: Address,
    identity: Identity,
    /// The connections that are served.
    open: watch::Sender<usize>,
    /// Ends the host: a client asked for it, or it is to be replaced.
    end: CancellationToken,
    /// Connections that stay open until the process ends: their clients wait for that.
    until_the_end: mpsc::Sender<Stream>,
}

/// Keeps clients that asked for the end of the host waiting until it is dropped, or the process ends.
pub struct AwaitingTheEnd(#[expect(dead_code, reason = "held, not read")] mpsc::Receiver<Stream>);

impl AwaitingTheEnd {
    /// Keeps them waiting until the process ends, by never closing their connections: the system does.
    pub fn until_the_process_ends(self) {
        std::mem::forget(self);
    }
}

impl Door {
    /// Opens the door of the host that holds a state directory. What an earlier host has left of its socket is removed.
    /// `run_dir` is a folder with a short path, for where that of the state directory is too long for a socket.
    ///
    /// # Errors
    /// The system's.
    pub fn open(host: &Host, identity: Identity, run_dir: &Path) -> std::io::Result<(Self, AwaitingTheEnd)> {
        let address = Address::make(host.state_dir(), run_dir)?;
        let options = ListenerOptions::new().name(address.name()?).try_overwrite(true);
        #[cfg(unix)]
        let options = interprocess::os::unix::local_socket::ListenerOptionsExt::mode(options, 0o600);
        let listener = options.create_tokio()?;
        let (until_the_end, awaiting) = mpsc::channel(WAITING_FOR_THE_END_MAX);
        let (open, end) = (watch::Sender::new(0), CancellationToken::new());
        Ok((
            Self { host: host.clone(), listener, address, identity, open, end, until_the_end },
            AwaitingTheEnd(awaiting),
        ))
    }

    /// Where the door is.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Serves clients until `stop` is cancelled, a client ends the host, or nobody has needed the host for
    /// `limits.host_idle_ms` (never, where `stay`). The socket is gone when this returns, and all connections are closed.
    pub async fn serve(self, stop: CancellationToken, stay: bool) {
        let (host, end, open) = (self.host.clone(), self.end.clone(), self.open.subscribe());
        let idle = async move {
            if stay {
                std::future::pending::<()>().await;
            }
            idle(&host, open).await;
        };
        let serving = CancellationToken::new();
        let connections = TaskTracker::new();
        let door = Arc::new(self);
        let accepting = accept(&door, &connections, &serving);
        tokio::select! {
            () = accepting => {}
            () = stop.cancelled() => tracing::info!("told to stop"),
            () = end.cancelled() => tracing::info!("a client has the host end"),
            () = idle => tracing::info!("nobody has needed the host for a while"),
        }
        serving.cancel();
        connections.close();
        if tokio::time::timeout(CLOSED_WITHIN, connections.wait()).await.is_err() {
            tracing::warn!("some connections were cut");
        }
    }

    async fn serve_one(&self, stream: Stream, serving: CancellationToken) {
        let mut connection = BufReader::new(stream);
        let said = tokio::select! {
            said = tokio::time::timeout(HELLO_WITHIN, read_hello(&mut connection)) => said,
            // It hears nothing, and tries again.
            () = serving.cancelled() => return,
        };
        let hello = match said {
            Ok(Ok(hello)) => hello,
            Ok(Err(error)) => return tracing::info!(%error, "a client was not understood"),
            Err(_) => return tracing::info!("a client did not say hello"),
        };
        let living = match self.host.living().await {
            Ok(living) => living,
            Err(error) => return tracing::error!(%error, "a client was not greeted"),
        };
        let (verdict, counted) = self.greet(&hello, living);
        let done;
        let reply = match &verdict {
            Verdict::Answer(reply) | Verdict::End(reply) | Verdict::Serve(reply, _) | Verdict::Store(reply, ..) => {
                reply
            }
            Verdict::Vacuum => {
                done = self.vacuum().await;
                &done
            }
            Verdict::Remove(id) => {
                done = self.remove(id).await;
                &done
            }
        };
        if let Err(error) = write_reply(&mut connection, reply).await {
            return tracing::debug!(%error, "a client went before it was greeted");
        }
        match verdict {
            Verdict::Answer(_) | Verdict::Vacuum | Verdict::Remove(_) => {}
            Verdict::Store(_, bytes, how) => {
                let stored = tokio::select! {
                    stored = store::store(&self.host, &mut connection, bytes, how) => stored,
                    () = serving.cancelled() => return,
                };
                if let Err(error) = write_reply(&mut connection, &stored).await {
                    tracing::info!(%error, "a client went before it heard what was stored");
                }
            }
            Verdict::End(_) => {
                if self.until_the_end.try_send(connection.into_inner()).is_err() {
                    tracing::debug!("a client will not see the host end");
                }
            }
            Verdict::Serve(_, profile) => {
                self.host.note_keys(greet::lacking(&self.identity, &hello));
                let connections = *self.open.borrow();
                tracing::info!(client = %hello.client, pid = hello.pid, connections, profile = %profile.name(), "a client came");
                self.refresh();
                let (read, write) = tokio::io::split(connection);
                let pipe = mcp::lines::Lines::new(read, write);
                let within = Within { level: hello.level, process: hello.within };
                let served = mcp::serve_as(&self.host, LOCAL, within, profile, pipe, serving).await;
                match served {
                    Ok(()) => tracing::info!(pid = hello.pid, "a client went"),
                    Err(error) => tracing::info!(pid = hello.pid, %error, "a client went"),
                }
            }
        }
        drop(counted);
    }

    async fn vacuum(&self) -> Reply {
        match self.host.vacuum().await {
            Ok(done) => {
                tracing::info!(?done, "the database was made small");
                Reply::Vacuumed(done)
            }
            Err(error) => Reply::Refused { message: error.to_string() },
        }
    }

    async fn remove(&self, id: &AssistantId) -> Reply {
        match self.host.remove_assistant(id).await {
            Ok(()) => Reply::Removed(true),
            Err(NotStored::Unknown(_)) => Reply::Removed(false),
            Err(error) => Reply::Refused { message: error.to_string() },
        }
    }

    /// A client that starts expects to find what is in the folders now.
    fn refresh(&self) {
        let host = self.host.clone();
        tokio::spawn(async move {
            if let Err(error) = host.reload().await {
                tracing::warn!(%error, "the assistants were not read again");
            }
        });
    }

    /// Decides about a client and counts it in one step: two that come at once see each other.
    fn greet(&self, hello: &Hello, living: u32) -> (Verdict, Option<Counted>) {
        let mut verdict = Verdict::End(Reply::Ending { pid: std::process::id() });
        let counted = self.open.send_if_modified(|open| {
            if !self.end.is_cancelled() {
                verdict = greet::greet(&self.identity, hello, *open, living);
            }
            let serves = matches!(verdict, Verdict::Serve(..) | Verdict::Store(..));
            *open += usize::from(serves);
            serves
        });
        if matches!(verdict, Verdict::End(_)) {
            // Before the answer: who hears it finds no door that still lets in.
            self.end.cancel();
        }
        (verdict, counted.then(|| Counted(self.open.clone())))
    }
}

async fn accept(door: &Arc<Door>, connections: &TaskTracker, serving: &CancellationToken) {
    loop {
        let stream = match door.listener.accept().await {
            Ok(stream) => stream,
            Err(error) => {
                // No file descriptor is left, most likely: those that go free some.
                tracing::error!(%error, "no client could be let in");
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        let (door, serving) = (door.clone(), serving.clone());
        connections.spawn(async move { door.serve_one(stream, serving).await });
    }
}

/// One connection that is served.
struct Counted(watch::Sender<usize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

/// Returns when no client has been connected and no process has lived for as long as a host stays then.
async fn idle(host: &Host, mut open: watch::Receiver<usize>) {
    let stays = Duration::from_millis(host.limits().host_idle_ms);
    let mut news = host.store().waiter(SUPERVISOR);
    loop {
        let busy = *open.borrow_and_update() > 0
            || match host.living().await {
                Ok(living) => living > 0,
                Err(error) => {
                    tracing::error!(%error, "whether the host is needed cannot be told");
                    true
                }
            };
        tokio::select! {
            _ = open.changed() => {}
            () = news.news() => {}
            () = tokio::time::sleep(stays), if !busy => return,
        }
    }
}

async fn read_hello(connection: &mut Connection) -> Result<Hello, String> {
    let mut line = Vec::new();
    let mut bounded = connection.take(hello::LINE_BYTES_MAX);
    bounded.read_until(b'\n', &mut line).await.map_err(|error| error.to_string())?;
    hello::read(&line)
}

async fn write_reply(connection: &mut Connection, reply: &Reply) -> Result<(), String> {
    let line = hello::line(reply)?;
    connection.get_mut().write_all(&line).await.map_err(|error| error.to_string())
}

/// Connects to the host of an address and greets it.
///
/// # Errors
/// In words.
pub(crate) async fn connect(address: &Address, hello: &Hello) -> Result<(Connection, Reply), String> {
    let words = |error: std::io::Error| error.to_string();
    let stream = ConnectOptions::new().name(address.name().map_err(words)?).connect_tokio().await.map_err(words)?;
    let mut connection = BufReader::new(stream);
    connection.get_mut().write_all(&hello::line(hello)?).await.map_err(words)?;
    let mut line = Vec::new();
    (&mut connection).take(hello::LINE_BYTES_MAX).read_until(b'\n', &mut line).await.map_err(words)?;
    Ok((connection, hello::read(&line)?))
}
