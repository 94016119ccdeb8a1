//! `assistant-runner bridge`: what an agent starts as an MCP server, to get the tools that its assistant has. A byte pipe
//! from stdin and stdout to the private socket of the adapter that started the agent; the server is there.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::wire::{self, Incoming, Line, LineReader};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::time::timeout;

use crate::complain;
use crate::stdio::{self, Pipes};

pub(crate) mod greeting;

#[cfg(unix)]
#[path = "bridge/unix.rs"]
mod platform;

#[cfg(not(unix))]
#[path = "bridge/other.rs"]
mod platform;

/// The argument by which the program acts as the bridge.
pub(crate) const ARGUMENT: &str = "bridge";
/// The variable that names the socket.
pub(crate) const SOCKET: &str = "ASSISTANT_BRIDGE";
/// The variable with the token by which the adapter knows its own agent.
pub(crate) const TOKEN: &str = "ASSISTANT_BRIDGE_TOKEN";

/// The exit code of a bridge that was refused.
const REFUSED: u8 = 2;
/// How long a client that was refused is waited for, which may have a request to be answered, in milliseconds.
const REFUSED_CLIENT_MS: u64 = 2_000;
/// The longest request of a client that was refused, in bytes.
const REFUSED_REQUEST_BYTES_MAX: usize = 64 * 1024;
/// How long the last answers are passed on once the client has closed its end, in milliseconds.
const LAST_ANSWERS_MS: u64 = 1_000;

/// Where the adapter is, and what it knows its agent by.
pub(crate) struct Place {
    pub(crate) socket: Option<OsString>,
    pub(crate) token: Option<OsString>,
}

/// The program: a pipe until either side ends.
///
/// Exit codes: 0 where a side has ended, 1 where the pipes cannot be used, 2 where the adapter refused the connection.
pub(crate) fn main(place: &Place) -> ExitCode {
    match serve(place) {
        Ok(code) => code,
        Err(error) => {
            complain(&format!("assistant-runner bridge cannot use its pipes: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn serve(place: &Place) -> io::Result<ExitCode> {
    let kept = stdio::keep()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let code = runtime.block_on(async {
        let pipes = stdio::open(kept)?;
        match platform::connect(place).await {
            Ok((read, write)) => {
                pass(pipes, read, write).await;
                Ok(ExitCode::SUCCESS)
            }
            Err(why) => {
                complain(&format!("assistant-runner bridge: {why}"));
                tell(pipes, &why).await;
                Ok(ExitCode::from(REFUSED))
            }
        }
    });
    // Nobody waits for a thread that waits for stdin, where that is no pipe.
    runtime.shutdown_background();
    code
}

/// Passes bytes both ways until either side ends. A side that breaks has ended: there is nobody to tell.
async fn pass(pipes: Pipes, mut from_adapter: platform::Read, mut to_adapter: platform::Write) {
    let Pipes { mut reader, mut writer, written } = pipes;
    {
        let mut answers = Box::pin(copy(&mut from_adapter, &mut writer));
        tokio::select! {
            _ = &mut answers => {}
            _ = copy(&mut reader, &mut to_adapter) => {
                // The adapter sees the end of input, answers what it can, and closes.
                if to_adapter.shutdown().await.is_ok() {
                    let _ = timeout(Duration::from_millis(LAST_ANSWERS_MS), answers).await;
                }
            }
        }
    }
    drop(writer);
    written.wait().await;
}

/// Tells a client why there are no tools: the answer to its first request, if it asks one.
async fn tell(pipes: Pipes, why: &str) {
    let Pipes { reader, mut writer, written } = pipes;
    let mut lines = LineReader::new(reader.take(REFUSED_REQUEST_BYTES_MAX as u64), REFUSED_REQUEST_BYTES_MAX);
    let asked = async {
        while let Ok(Line::Whole(line)) = lines.next().await {
            if let Incoming::Request { id, .. } = wire::classify(line) {
                return Some(id);
            }
        }
        None
    };
    let telling = async {
        if let Some(id) = asked.await {
            let line = wire::error_line(&id, RpcError::new(Kind::NotPermitted, why));
            // A client that has gone meanwhile needs no answer.
            let _ = writer.write_all(&line).await;
        }
    };
    let _ = timeout(Duration::from_millis(REFUSED_CLIENT_MS), telling).await;
    drop(writer);
    written.wait().await;
}
