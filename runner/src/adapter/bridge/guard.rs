//! Who may connect: a process of the same user, below this one, that has the token. Whoever may not is told why, and so is
//! whoever reads what this program writes to stderr.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::bridge::greeting;

mod kin;

/// Knows the token, and counts those who are refused.
#[derive(Debug)]
pub(super) struct Guard {
    token: String,
    refused: Mutex<Refused>,
}

#[derive(Debug, Default)]
struct Refused {
    count: u64,
    /// Those that were told already.
    told: BTreeSet<Refusal>,
}

/// Why a connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Refusal {
    OtherUser,
    Foreign,
    Unknowable,
    NoGreeting,
    Late,
    WrongToken,
    TooMany,
    Broken,
}

impl Refusal {
    fn why(self) -> &'static str {
        match self {
            Refusal::OtherUser => "it belongs to another user",
            Refusal::Foreign => "its process is none that the agent has started",
            Refusal::Unknowable => {
                "it cannot be told who started its process: /proc is not there, or is that of other processes"
            }
            Refusal::NoGreeting => "it did not greet",
            Refusal::Late => "it did not greet in time",
            Refusal::WrongToken => "its token is missing or wrong",
            Refusal::TooMany => "as many connections are open as may be",
            Refusal::Broken => "the connection broke",
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(_: io::Error) -> Self {
        Refusal::Broken
    }
}

impl Guard {
    pub(super) fn new(token: String) -> Self {
        Self { token, refused: Mutex::default() }
    }

    /// Lets a connection in, or tells it why not.
    pub(super) async fn greet(&self, mut stream: UnixStream) -> Result<UnixStream, Refusal> {
        let heard = match kin::may_connect(&stream) {
            Ok(()) => timeout(Duration::from_millis(greeting::WAIT_MS), self.hear(&mut stream))
                .await
                .unwrap_or(Err(Refusal::Late)),
            Err(refusal) => Err(refusal),
        };
        match heard {
            Ok(()) => {
                stream.write_all(greeting::WELCOME.as_bytes()).await?;
                Ok(stream)
            }
            Err(refusal) => {
                say_no(&stream, refusal);
                Err(refusal)
            }
        }
    }

    /// Refuses a connection for which there is no room.
    pub(super) fn turn_away(&self, stream: UnixStream) {
        say_no(&stream, Refusal::TooMany);
        self.tell(Refusal::TooMany);
    }

    /// Counts a refusal, and tells the first for each reason.
    pub(super) fn tell(&self, refusal: Refusal) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.count += 1;
        if refused.told.insert(refusal) {
            crate::complain(&format!(
                "assistant-runner: a connection to the assistant's tools was refused: {}",
                refusal.why()
            ));
        }
    }

    /// Reads the greeting, and not more.
    async fn hear(&self, stream: &mut UnixStream) -> Result<(), Refusal> {
        let mut line = Vec::with_capacity(greeting::BYTES_MAX);
        let mut room = stream.take(greeting::BYTES_MAX as u64);
        while !line.ends_with(b"\n") {
            if room.read_buf(&mut line).await? == 0 {
                return Err(Refusal::NoGreeting);
            }
        }
        let token = greeting::token(line.trim_ascii_end()).ok_or(Refusal::NoGreeting)?;
        if same(token, self.token.as_bytes()) { Ok(()) } else { Err(Refusal::WrongToken) }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let refused = self.refused.get_mut().unwrap_or_else(PoisonError::into_inner);
        if refused.count > refused.told.len() as u64 {
            let text = format!("{} connections to the assistant's tools were refused in all", refused.count);
            crate::complain(&format!("assistant-runner: {text}"));
        }
    }
}

/// The socket of a new connection has room for the line; where it has none, nobody reads.
fn say_no(stream: &UnixStream, refusal: Refusal) {
    let _ = stream.try_write(greeting::refusal(refusal.why()).as_bytes());
}

/// Whether two texts are the same, in a time that does not tell where they differ.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(said: &[u8], ends: bool, want: Result<(), Refusal>) {
        let (mut theirs, mut ours) = UnixStream::pair().expect("a pair");
        theirs.write_all(said).await.expect("written");
        if ends {
            theirs.shutdown().await.expect("shut");
        }
        let guard = Guard::new("secret".to_owned());
        assert_eq!(guard.hear(&mut ours).await, want, "{}", said.escape_ascii());
    }

    #[tokio::test]
    async fn only_the_token_is_let_in() {
        check(b"assistants-bridge 1 secret\n", false, Ok(())).await;
        check(b"assistants-bridge 1 secret\r\n", false, Ok(())).await;
        for wrong in ["assistants-bridge 1 secre\n", "assistants-bridge 1 secret2\n", "assistants-bridge 1 \n"] {
            let want = if wrong.ends_with(" \n") { Refusal::NoGreeting } else { Refusal::WrongToken };
            check(wrong.as_bytes(), false, Err(want)).await;
        }
        check(b"assistants-bridge 2 secret\n", false, Err(Refusal::NoGreeting)).await;
        check(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}\n", false, Err(Refusal::NoGreeting)).await;
        check(&[0xff; greeting::BYTES_MAX + 1], false, Err(Refusal::NoGreeting)).await;
        check(b"assistants-bridge 1 sec", true, Err(Refusal::NoGreeting)).await;
        check(b"", true, Err(Refusal::NoGreeting)).await;
    }
}
