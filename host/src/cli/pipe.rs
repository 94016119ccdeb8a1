//! `assistant-host mcp`: a pipe between an MCP client on stdin and stdout and the host of the state directory.
//!
//! Two threads, one for each direction, and no more of the host than its socket. The pipe looks at the ids and methods
//! that pass: when the host goes, the calls that it was asked are answered with an error, everything else is asked
//! again, and the next line finds (or starts) another host. The client notices nothing else.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use interprocess::local_socket::Stream;

use super::line::{self, NotShaken, Peek};
use super::place::Place;
use super::start;
use super::{FAILED, Failure, Places, talk};
use crate::door::hello::{Hello, Want};
use crate::tools::profile::Profile;

/// The longest line of a client, bytes: what the host reads.
const LINE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Requests longer than this are not asked again when the host goes, bytes.
const AGAIN_BYTES_MAX: usize = 64 * 1024;
/// Hosts that are tried one after the other, each of which went before it had shaken hands.
const HOSTS_TRIED_MAX: usize = 20;
/// How long a client that has closed its end is still answered.
const LAST_ANSWERS_WITHIN: Duration = Duration::from_secs(5);

pub(super) fn mcp(places: &Places, profile: &Profile) -> Result<u8, Failure> {
    let place = Place::find(places)?;
    let hello = Hello { profile: Some(profile.name().to_string()), ..place.hello(Want::Mcp, "mcp") };
    let first = start::connect(&place, &hello)?;
    let profile = profile.clone();
    let pipe = Arc::new(Pipe { place, hello, profile, state: Mutex::default(), changed: Condvar::new() });
    pipe.lock().link = Some((1, Arc::new(first)));
    let back = pipe.clone();
    let answering = std::thread::Builder::new().name("answers".into()).spawn(move || back.answer());
    answering.map_err(|error| Failure::new(FAILED, format!("no thread: {error}")))?;
    pipe.ask()
}

struct Pipe {
    place: Place,
    hello: Hello,
    profile: Profile,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The connection to the host, and which one it is.
    link: Option<(u64, Arc<Stream>)>,
    /// Connections so far.
    links: u64,
    /// A line waits for a host.
    wanted: bool,
    /// Why there is no host, for the line that waits.
    unreachable: Option<String>,
    /// Requests of the client that are not answered.
    in_flight: BTreeMap<String, Request>,
    /// The client's `initialize`, and whether it was answered.
    handshake: Option<Vec<u8>>,
    shaken: bool,
}

struct Request {
    /// The connection that it was written to.
    link: u64,
    /// What is asked again when the host goes; none for a tool call, which may have been done.
    again: Option<Vec<u8>>,
    /// It is answered when its client goes, and not before.
    lasts: bool,
}

impl Pipe {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// From the client to the host, until the client closes its end.
    fn ask(&self) -> Result<u8, Failure> {
        let mut stdin = BufReader::new(std::io::stdin().lock());
        loop {
            let mut line = Vec::new();
            let read = (&mut stdin).take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
            read.map_err(|error| Failure::new(FAILED, format!("stdin cannot be read: {error}")))?;
            match line.last() {
                Some(b'\n') => self.pass(&line),
                Some(_) if line.len() as u64 == LINE_BYTES_MAX => {
                    skip_line(&mut stdin).map_err(|error| Failure::new(FAILED, error))?;
                    self.say(&line::too_long(LINE_BYTES_MAX));
                }
                // The client went, in the middle of a line perhaps: half a line is nothing.
                Some(_) | None => break,
            }
        }
        let begun = Instant::now();
        let mut state = self.lock();
        while state.in_flight.values().any(|request| !request.lasts) {
            let Some(left) = LAST_ANSWERS_WITHIN.checked_sub(begun.elapsed()) else { break };
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(0)
    }

    /// Gives one line to the host, whichever is there.
    fn pass(&self, line: &[u8]) {
        let peek = Peek::of(line);
        let id = peek.request_id();
        loop {
            let (link, stream) = match self.link() {
                Ok(found) => found,
                Err(why) => {
                    if let Some(id) = &id {
                        self.say(&line::unreachable(id, &why));
                    }
                    return;
                }
            };
            if let Some(id) = &id {
                let again = (peek.method() != "tools/call" && line.len() <= AGAIN_BYTES_MAX).then(|| line.to_owned());
                let mut state = self.lock();
                if peek.method() == "initialize" {
                    state.handshake = Some(line.to_owned());
                }
                let lasts = peek.method() == "subscriptions/listen";
                state.in_flight.insert(id.clone(), Request { link, again, lasts });
            }
            if (&*stream).write_all(line).is_ok() {
                return;
            }
            // It did not get the whole line, so that it did nothing: another host may.
            let mut state = self.lock();
            if state.link.as_ref().is_some_and(|(current, _)| *current == link) {
                state.link = None;
            }
            if let Some(id) = &id {
                match state.in_flight.get(id) {
                    Some(request) if request.link == link => drop(state.in_flight.remove(id)),
                    // It was answered for the host meanwhile, or asked again.
                    Some(_) | None => return,
                }
            }
        }
    }

    /// The connection to the host; waits until there is one.
    fn link(&self) -> Result<(u64, Arc<Stream>), String> {
        let mut state = self.lock();
        loop {
            if let Some(link) = &state.link {
                return Ok(link.clone());
            }
            if let Some(why) = state.unreachable.take() {
                return Err(why);
            }
            state.wanted = true;
            self.changed.notify_all();
            state = self.wait(state);
        }
    }

    /// From the host to the client; and finds another host when one goes and something waits for it.
    fn answer(&self) {
        loop {
            let mut state = self.lock();
            while state.link.is_none() && !state.wanted {
                state = self.wait(state);
            }
            let link = state.link.clone();
            drop(state);
            match link {
                Some((link, stream)) => {
                    self.copy(&stream);
                    self.lost(link);
                }
                None => self.relink(),
            }
        }
    }

    /// Passes the host's lines on until it goes.
    fn copy(&self, stream: &Stream) {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        loop {
            line.clear();
            match reader.read_until(b'\n', &mut line) {
                // Half a line is nothing: the host went while it wrote.
                Ok(_) if line.last() != Some(&b'\n') => return,
                Err(_) => return,
                Ok(_) => {}
            }
            // Before the client hears it: an answer that it has is not told as lost.
            if let Some(id) = Peek::of(&line).answer_id() {
                let mut state = self.lock();
                state.in_flight.remove(&id);
                if !state.shaken && state.handshake.as_deref().is_some_and(|asked| line::has_id(asked, &id)) {
                    state.shaken = true;
                }
                self.changed.notify_all();
            }
            self.say(&line);
        }
    }

    /// The host went: its tool calls are answered with an error, everything else is asked again.
    fn lost(&self, link: u64) {
        let mut state = self.lock();
        if state.link.as_ref().is_some_and(|(current, _)| *current == link) {
            state.link = None;
        }
        let mut lost = Vec::new();
        state.in_flight.retain(|id, request| {
            let stays = request.link != link || request.again.is_some();
            if !stays {
                lost.push(id.clone());
            }
            stays
        });
        state.wanted |= !state.in_flight.is_empty();
        let modern = state.handshake.is_none();
        drop(state);
        for id in lost {
            self.say(&line::host_lost(&id, &self.profile, modern));
        }
        self.changed.notify_all();
    }

    /// Reaches a host, shakes hands as the client did, and asks again what is not answered.
    fn relink(&self) {
        let reached = self.reach();
        let mut state = self.lock();
        state.wanted = false;
        let stream = match reached {
            Ok(stream) => Arc::new(stream),
            Err(why) => {
                let waiting = std::mem::take(&mut state.in_flight);
                state.unreachable = Some(why.clone());
                drop(state);
                for id in waiting.keys() {
                    self.say(&line::unreachable(id, &why));
                }
                self.changed.notify_all();
                return;
            }
        };
        state.links += 1;
        let link = state.links + 1;
        state.unreachable = None;
        let mut again = Vec::new();
        for request in state.in_flight.values_mut() {
            request.link = link;
            again.extend(request.again.clone());
        }
        state.link = Some((link, stream.clone()));
        drop(state);
        // Where this host is gone already, its end is noticed as that of any other.
        drop(again.iter().try_for_each(|line| (&*stream).write_all(line)));
        self.changed.notify_all();
    }

    /// A host that has shaken hands. One that goes meanwhile is followed by another, a few times.
    fn reach(&self) -> Result<Stream, String> {
        let mut why = String::new();
        for _ in 0..HOSTS_TRIED_MAX {
            let stream = start::connect(&self.place, &self.hello).map_err(|failure| failure.message)?;
            match self.shake(&stream) {
                Ok(()) => return Ok(stream),
                Err(NotShaken::Gone(error)) => why = error,
                Err(NotShaken::Refused(error)) => return Err(error),
            }
        }
        Err(why)
    }

    /// Repeats the client's handshake, whose answer the client has already.
    fn shake(&self, stream: &Stream) -> Result<(), NotShaken> {
        let state = self.lock();
        let Some(asked) = state.handshake.clone().filter(|_| state.shaken) else { return Ok(()) };
        drop(state);
        line::shake(stream, &asked)
    }

    /// Writes a line to the client. A client that has gone needs no pipe.
    fn say(&self, line: &[u8]) {
        let mut stdout = std::io::stdout().lock();
        if let Err(error) = stdout.write_all(line).and_then(|()| stdout.flush()) {
            if error.kind() != std::io::ErrorKind::BrokenPipe {
                talk(&format!("stdout cannot be written: {error}"));
            }
            std::process::exit(0);
        }
    }
}

/// Reads on to the end of a line.
fn skip_line(stdin: &mut impl BufRead) -> Result<(), String> {
    loop {
        let mut part = Vec::new();
        let read = stdin.by_ref().take(AGAIN_BYTES_MAX as u64).read_until(b'\n', &mut part);
        if read.map_err(|error| format!("stdin cannot be read: {error}"))? == 0 || part.ends_with(b"\n") {
            return Ok(());
        }
    }
}
