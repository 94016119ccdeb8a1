//! The way back from an agent: the tools of its assistant as an MCP server. The agent starts `assistant-runner bridge`, which
//! connects to a private socket here; each call goes on to the host over the pipe of this runner, which is who the agent is.
//! Whatever the agent starts may use the tools that the agent has: it is not told apart from it. In reading order:
//!
//! * [`Bridge`]: the socket, and what the agent's configuration has to name;
//! * [`Turn`] and [`Running`]: what connections serve while a run is going on, and how it can end through them;
//! * `guard`: who may connect;
//! * `door`: MCP for one connection; `lines`: its messages; `content`: results in its words.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use assistant_protocol::error::RpcError;
use serde_json::Value;
use tokio::net::UnixListener;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;
use uuid::Uuid;

use crate::bridge::{ARGUMENT, SOCKET, TOKEN};

mod turn;

mod guard;

mod door;

mod lines;

mod content;

mod place;

pub use turn::{Running, Turn};

use guard::Guard;
use turn::Current;

/// The name of the server in every agent's configuration.
pub const SERVER_NAME: &str = "assistants";
/// The tool by which an agent asks whether it may call one of its own; listed where [`Turn::asks_permission`].
pub const PERMISSION_TOOL: &str = "permission";
/// How long an agent has to wait for one call, in milliseconds: as long as a parent may take to answer, and a bit.
pub const CALL_MS: u64 = 25 * 60 * 60 * 1_000;

/// Connections at once; an agent has one, and each of its own sub-agents may have one more.
const CONNECTIONS_MAX: usize = 64;
/// How long nothing is accepted after accepting has failed, as where no more files can be opened, in milliseconds.
const ACCEPT_AGAIN_MS: u64 = 100;

/// The socket of an adapter. Dropped, it ends all connections and leaves nothing behind.
#[derive(Debug)]
pub struct Bridge {
    server: McpServer,
    current: Current,
    accepting: AbortHandle,
    /// The agent has come here.
    found: Arc<AtomicBool>,
    _socket: place::Socket,
}

/// What an agent's configuration says of an MCP server that it starts. The token stands in the environment only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// The program.
    pub command: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that it gets, with their values.
    pub env: Vec<(&'static str, String)>,
}

/// How a run has ended through its tools.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// A final answer was accepted: this is it.
    Answer(Value),
    /// A call failed in a way that the agent can do nothing about.
    Failed(RpcError),
}

impl Bridge {
    /// Opens the socket in `folder`, which is private to the adapter; where its path would be too long for a socket, in a
    /// private folder of its own. `program` is what acts as the runner, with the arguments by which it does.
    ///
    /// # Errors
    /// Where the agent could not start that program, or there is no place for a socket.
    pub fn open(folder: &Path, program: (PathBuf, Vec<OsString>)) -> io::Result<Self> {
        let (command, before) = program;
        if !command.is_file() {
            let text = format!("{} is not there any more, and the agent would have to start it", command.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        let (socket, listener) = place::listen(folder)?;
        // Random bits of two: 244.
        let token = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        let before = before.into_iter().map(|arg| place::text(&arg)).collect::<io::Result<Vec<_>>>()?;
        let server = McpServer {
            command,
            args: before.into_iter().chain([ARGUMENT.to_owned()]).collect(),
            env: vec![(SOCKET, place::text(socket.path().as_os_str())?), (TOKEN, token.clone())],
        };
        let current = Current::default();
        let found = Arc::new(AtomicBool::new(false));
        let accepting =
            tokio::spawn(accept(listener, Guard::new(token), current.clone(), found.clone())).abort_handle();
        Ok(Self { server, current, accepting, found, _socket: socket })
    }

    /// What the agent has to start, under the name of [`SERVER_NAME`].
    #[must_use]
    pub fn server(&self) -> &McpServer {
        &self.server
    }

    /// Whether the agent has started the server, and so has come here.
    #[must_use]
    pub fn was_found(&self) -> bool {
        self.found.load(Ordering::Relaxed)
    }

    /// Serves the tools of a run, to connections that there are and to those that come, until what is given back is
    /// dropped; in place of an earlier run.
    #[must_use]
    pub fn begin(&self, turn: Turn) -> Running {
        self.current.begin(turn)
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Takes connections; those that there are end with this.
async fn accept(listener: UnixListener, guard: Guard, current: Current, found: Arc<AtomicBool>) {
    let guard = Arc::new(guard);
    let mut connections = JoinSet::new();
    let mut failing = false;
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if connections.len() < CONNECTIONS_MAX => {
                    failing = false;
                    let (guard, current, found) = (guard.clone(), current.clone(), found.clone());
                    connections.spawn(async move {
                        match guard.greet(stream).await {
                            Ok(stream) => {
                                found.store(true, Ordering::Relaxed);
                                door::serve(stream, current).await;
                            }
                            Err(refusal) => guard.tell(refusal),
                        }
                    });
                }
                Ok((stream, _)) => guard.turn_away(stream),
                // It may be the other side's doing, and the next one is a good one.
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        crate::complain(&format!(
                            "assistant-runner: no connections to the assistant's tools can be taken now: {error}"
                        ));
                    }
                    sleep(Duration::from_millis(ACCEPT_AGAIN_MS)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}
