//! Reaching the host of a place, and starting it where there is none.
//!
//! Of many clients that come at once, one starts the host and the others wait for it: a lock on `door/start.lock`.
//! The host is started by a program in between, which leaves the client's session and ends at once: so it is neither in
//! the process group of the client, nor on its terminal, nor among its children.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use interprocess::local_socket::ConnectOptions;
use interprocess::local_socket::Stream;
use interprocess::local_socket::traits::Stream as _;
use serde::{Deserialize, Serialize};

use super::place::Place;
use super::{FAILED, Failure, USAGE, talk};
use crate::door::hello::{self, Hello, Reply, Want};
use crate::door::{Address, make_folder};

/// How long a client tries to reach a host, starting it included.
const REACH_WITHIN: Duration = Duration::from_secs(60);
/// How long a host may take for its first line.
const REPLY_WITHIN: Duration = Duration::from_secs(10);
/// How long a host may take to say that it is ready.
const READY_WITHIN: Duration = Duration::from_secs(45);

/// How often a client looks whether another host lets it in while its own one starts.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What a started host says on its stdout, once.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Word {
    /// Its door is open.
    Ready,
    /// It could not be opened.
    Failed {
        /// The exit code of whoever wanted it.
        code: u8,
        /// Why.
        message: String,
    },
}

/// What came of one attempt.
pub(super) enum Tried<T> {
    /// The host lets in.
    In(T),
    /// There is none, or it is about to end.
    Gone,
}

/// An attempt's `Reply`, sorted: what it brings, none yet, or no.
pub(super) fn sorted<T>(reply: Reply, connection: T) -> Result<Tried<T>, Failure> {
    match reply {
        Reply::Welcome { told, .. } => {
            told.iter().for_each(|line| talk(line));
            Ok(Tried::In(connection))
        }
        Reply::Ending { .. } => Ok(Tried::Gone),
        Reply::Refused { message } => Err(Failure::new(USAGE, message)),
        Reply::Status(_) | Reply::Vacuumed(_) | Reply::Stored(_) | Reply::Removed(_) => {
            Err(Failure::new(FAILED, "the host answered something else than was asked"))
        }
    }
}

/// Connects for MCP, starting the host where there is none.
pub(super) fn connect(place: &Place, hello: &Hello) -> Result<Stream, Failure> {
    reach(place, || match ask(place, hello) {
        Ok((stream, reply)) => sorted(reply, stream),
        Err(_) => Ok(Tried::Gone),
    })
}

/// Tries until the host lets in, starting it where there is none.
pub(super) fn reach<T>(place: &Place, mut attempt: impl FnMut() -> Result<Tried<T>, Failure>) -> Result<T, Failure> {
    let begun = Instant::now();
    loop {
        if let Tried::In(connection) = attempt()? {
            return Ok(connection);
        }
        let failed = |error: std::io::Error| {
            Failure::new(USAGE, format!("cannot use the state directory {}: {error}", place.state.display()))
        };
        let folder = make_folder(&place.state).map_err(failed)?;
        let lock = std::fs::File::options().create(true).truncate(false).write(true).open(folder.join("start.lock"));
        let lock = lock.map_err(failed)?;
        lock.lock().map_err(failed)?;
        // Whoever had the lock before may have started it.
        if let Tried::In(connection) = attempt()? {
            return Ok(connection);
        }
        if let Some(connection) = until_ready(&start(place)?, place, &mut attempt)? {
            return Ok(connection);
        }
        drop(lock);
        if begun.elapsed() > REACH_WITHIN {
            let log = place.log();
            let message = format!("the host was started and cannot be reached; its log is {}", log.display());
            return Err(Failure::new(FAILED, message));
        }
    }
}

/// Says hello to the host of a place, and hears its answer.
pub(super) fn ask(place: &Place, hello: &Hello) -> std::io::Result<(Stream, Reply)> {
    ask_within(place, hello, REPLY_WITHIN)
}

/// The same where the host works before it answers.
pub(super) fn ask_within(place: &Place, hello: &Hello, within: Duration) -> std::io::Result<(Stream, Reply)> {
    let other = std::io::Error::other;
    let stream = ConnectOptions::new().name(Address::find(&place.state).name()?).connect_sync()?;
    (&stream).write_all(&hello::line(hello).map_err(other)?)?;
    let reply = reply(&stream, hello::LINE_BYTES_MAX, within)?;
    Ok((stream, reply))
}

/// Sends what the host that welcomed a client waits for, and hears what became of it.
pub(super) fn send(stream: &Stream, payload: &[u8], within: Duration) -> std::io::Result<Reply> {
    stream.set_send_timeout(Some(within))?;
    let mut out = stream;
    out.write_all(payload)?;
    reply(stream, hello::STORED_BYTES_MAX, within)
}

/// The next line of the host. Nothing comes behind it before the client has spoken again, so that none of it stays in
/// the buffer.
fn reply(stream: &Stream, bytes_max: u64, within: Duration) -> std::io::Result<Reply> {
    let mut line = Vec::new();
    stream.set_recv_timeout(Some(within))?;
    BufReader::new(stream).take(bytes_max).read_until(b'\n', &mut line)?;
    stream.set_recv_timeout(None)?;
    hello::read(&line).map_err(std::io::Error::other)
}

/// Asks the host of a place how it is; none where there is no host.
pub(super) fn status(place: &Place) -> Option<crate::door::hello::Status> {
    match ask(place, &place.hello(Want::Status, "status")) {
        Ok((_, Reply::Status(status))) => Some(status),
        _ => None,
    }
}

/// Starts the host of a place. What comes is the one line that it says when its door is open, or that it has failed.
fn start(place: &Place) -> Result<Receiver<std::io::Result<String>>, Failure> {
    let failed = |what: &str, error: &dyn std::fmt::Display| not_started(place, what, error);
    let me = std::env::current_exe().map_err(|error| failed("this program cannot be found", &error))?;
    let log = super::log::open(&place.log()).map_err(|error| failed("the log cannot be written", &error))?;
    let mut command = Command::new(me);
    command.args(["serve", "--detach"]).args(place.arguments()).current_dir(&place.state);
    // A host that is started below an assistant's runner is not that assistant's: it outlives it.
    let of_assistant = [crate::launcher::MARK, crate::launcher::SERVER_OF, crate::launcher::DEPTH];
    of_assistant.iter().for_each(|name| {
        command.env_remove(name);
    });
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn().map_err(|error| failed("the host cannot be started", &error))?;
    let Some(stdout) = child.stdout.take() else { return Err(failed("the host cannot be heard", &"no pipe")) };
    let (heard, word) = mpsc::sync_channel(1);
    let listening = std::thread::Builder::new().name("host-word".into()).spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(stdout).take(hello::LINE_BYTES_MAX).read_line(&mut line);
        // The program in between has ended as soon as the host itself runs.
        let ended = child.wait();
        // Nobody listens where it took too long.
        drop(heard.send(read.and(ended).map(|_| line)));
    });
    listening.map_err(|error| failed("the host cannot be heard", &error))?;
    Ok(word)
}

/// Waits until the host that was started is ready, or lets in whoever asks: it may also be another host that lets in,
/// which somebody started at the same moment and ours waits for in vain.
fn until_ready<T>(
    word: &Receiver<std::io::Result<String>>,
    place: &Place,
    attempt: &mut impl FnMut() -> Result<Tried<T>, Failure>,
) -> Result<Option<T>, Failure> {
    let begun = Instant::now();
    let line = loop {
        match word.recv_timeout(LOOK_EVERY) {
            Ok(Ok(line)) => break line,
            Ok(Err(error)) => return Err(not_started(place, "the host cannot be heard", &error)),
            Err(RecvTimeoutError::Timeout) if begun.elapsed() < READY_WITHIN => {
                if let Tried::In(connection) = attempt()? {
                    return Ok(Some(connection));
                }
            }
            Err(_) => {
                let why = format!("no word within {} s", READY_WITHIN.as_secs());
                return Err(not_started(place, "the host did not start", &why));
            }
        }
    };
    match serde_json::from_str(&line) {
        Ok(Word::Ready) => Ok(None),
        Ok(Word::Failed { code, message }) => match attempt()? {
            Tried::In(connection) => Ok(Some(connection)),
            Tried::Gone => Err(Failure::new(code, message)),
        },
        Err(_) => Err(not_started(place, "the host did not start", &"it ended without a word")),
    }
}

fn not_started(place: &Place, what: &str, error: &dyn std::fmt::Display) -> Failure {
    let log = place.log();
    Failure::new(FAILED, format!("{what}: {error}; the host's log is {}", log.display()))
}
