//! The way to the adapter: its socket, and the greeting.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::{Place, SOCKET, TOKEN, greeting};

/// What the adapter writes.
pub(super) type Read = BufReader<OwnedReadHalf>;
/// What it reads.
pub(super) type Write = OwnedWriteHalf;

/// Connects, and says who comes.
///
/// # Errors
/// In words: why there is no connection.
pub(super) async fn connect(place: &Place) -> Result<(Read, Write), String> {
    let (Some(socket), Some(token)) = (&place.socket, &place.token) else {
        return Err(format!(
            "{SOCKET} and {TOKEN} are not set: it is started by the agent of an assistant, never by people"
        ));
    };
    let token = token.to_str().ok_or_else(|| format!("{TOKEN} is no text"))?;
    timeout(Duration::from_millis(greeting::WAIT_MS), greet(socket.as_ref(), token))
        .await
        .unwrap_or_else(|_| Err(format!("the adapter did not answer within {} ms", greeting::WAIT_MS)))
}

async fn greet(socket: &std::path::Path, token: &str) -> Result<(Read, Write), String> {
    let at = socket.display();
    let stream = UnixStream::connect(socket).await;
    let stream = stream.map_err(|error| format!("the adapter of the assistant is not at {at} any more: {error}"))?;
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    // One that is refused at once is told why all the same.
    let written = write.write_all(greeting::hello(token).as_bytes()).await;
    let mut line = Vec::new();
    let heard = (&mut read).take(greeting::BYTES_MAX as u64).read_until(b'\n', &mut line).await;
    match written.and(heard) {
        _ if line.ends_with(b"\n") => greeting::answer(line.trim_ascii_end()).map(|()| (read, write)),
        Ok(_) => Err(format!("the adapter at {at} closed the connection without a word")),
        Err(error) => Err(format!("the connection to the adapter at {at} broke: {error}")),
    }
}
