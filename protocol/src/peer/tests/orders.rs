//! The state of two peers, played through by threads whose order `shuttle` chooses: asking, dropping, reading, writing,
//! answering, cancelling, closing and ending at every point between two locks.

use std::collections::{HashMap, VecDeque};

use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard};
use shuttle::{Config, Runner, thread};
use tokio::sync::oneshot::error::TryRecvError;
use tokio_util::sync::CancellationToken;

use super::super::state::{Admission, Lane, Next};
use super::*;
use crate::methods::CancelCall;
use crate::types::CancelCallParams;
use crate::wire::Incoming;

/// What each side asks, all at once.
const METHODS: [&str; 4] = ["echo", "heed", Ping::NAME, "echo"];
/// Pings among them.
const PINGS: usize = 1;
/// Requests in flight of each side: so few that some are not sent, and some refused.
const IN_FLIGHT: [usize; 2] = [2, 1];
/// So few that some lines find no room.
const QUEUE_BYTES: u64 = 260;
/// What the pipe holds, in writes.
const PIPE_WRITES: usize = 1;
/// Orders that are tried, with each scheduler.
const ORDERS: usize = 300;
/// Changes of priority in one order.
const PCT_DEPTH: usize = 5;

/// How the link ends.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    /// In order, when everything is answered.
    Last,
    /// One side closes it, at any point.
    Close,
    /// One side drops it, at any point.
    Drop,
}

/// One side of the link, with what the other has written to it.
struct Side {
    locked: Mutex<Locked>,
    changed: Condvar,
}

struct Locked {
    state: State,
    in_flight: usize,
    pipe: VecDeque<Vec<u8>>,
    /// The other side writes no more.
    written_all: bool,
    /// The writer of this side is to stop at once.
    aborted: bool,
    /// This side reads no more.
    read_all: bool,
    /// Requests that were admitted or refused here, and answers that were written, by id.
    taken: HashMap<Id, u32>,
    answers: HashMap<Id, u32>,
}

impl Locked {
    /// Whether each request has its one answer, and nothing is left of any.
    fn has_answered_all(&self) -> bool {
        self.answers == self.taken && self.state.is_at_rest()
    }

    fn count_answers(&mut self, lines: &[u8]) {
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            if let Incoming::Response { id, .. } = wire::classify(line) {
                *self.answers.entry(id).or_default() += 1;
            }
        }
    }

    /// No call is cancelled that has its answer.
    fn assert_cancels(&self, lines: &[u8]) {
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            if let Incoming::Request { method, params, .. } = wire::classify(line)
                && *method == *CancelCall::NAME
            {
                let number = cancelled(params).as_u64().expect("a number");
                assert!(self.state.awaits(number), "a cancel of what is answered");
            }
        }
    }

    /// The bounds that hold at any time.
    fn assert_bounds(&self) {
        let (asked, answering, bytes) = self.state.sizes();
        assert!(
            asked <= self.in_flight + PINGS && answering <= self.in_flight && bytes <= QUEUE_BYTES,
            "more than may be"
        );
    }

    /// The lines of one write of the other side.
    fn read(&mut self) -> Option<Vec<u8>> {
        let lines = self.pipe.pop_front()?;
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            if let Incoming::Request { id, .. } = wire::classify(line) {
                *self.taken.entry(id).or_default() += 1;
            }
        }
        Some(lines)
    }
}

impl Side {
    fn new(in_flight: usize) -> Arc<Self> {
        let limits = PeerLimits { in_flight, queue_bytes: QUEUE_BYTES, ..PeerLimits::default() };
        let locked = Locked {
            state: State::new(&limits),
            in_flight,
            pipe: VecDeque::new(),
            written_all: false,
            aborted: false,
            read_all: false,
            taken: HashMap::new(),
            answers: HashMap::new(),
        };
        Arc::new(Self { locked: Mutex::new(locked), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Locked> {
        self.locked.lock().expect("no thread panics with the lock")
    }

    /// Changes something and wakes whoever waits for a change.
    fn change<T>(&self, change: impl FnOnce(&mut Locked) -> T) -> T {
        let mut locked = self.lock();
        let changed = change(&mut locked);
        locked.assert_bounds();
        drop(locked);
        self.changed.notify_all();
        changed
    }

    /// Waits until `ready` gives something.
    fn wait<T>(&self, mut ready: impl FnMut(&mut Locked) -> Option<T>) -> T {
        let mut locked = self.lock();
        loop {
            if let Some(ready) = ready(&mut locked) {
                self.changed.notify_all();
                return ready;
            }
            locked = self.changed.wait(locked).expect("no thread panics with the lock");
        }
    }
}

/// Asks once and waits for the answer, or drops the call at some point.
fn call(side: &Side, method: &'static str, gives_up: bool) {
    let (sender, mut answer) = oneshot::channel();
    let asked = side.change(|locked| {
        let number = locked.state.next_number();
        let line = wire::request_line(&Id::Number(number), method, &Empty {}).expect("writes");
        locked.state.ask(number, line, sender, method == Ping::NAME).map(|()| number)
    });
    let Ok(number) = asked else { return };
    let mut is_over = |_: &mut Locked| match answer.try_recv() {
        Ok((_, outcome)) => {
            let own = if method == Ping::NAME { "{}".to_owned() } else { number.to_string() };
            assert!(outcome.map_or(true, |raw| raw.get() == own), "the answer to another call");
            Some(())
        }
        Err(TryRecvError::Closed) => Some(()),
        Err(TryRecvError::Empty) => None,
    };
    if gives_up {
        let looks = thread_rng().gen_range(0..8);
        let _ = (0..looks).find_map(|_| {
            thread::yield_now();
            is_over(&mut side.lock())
        });
    } else {
        side.wait(is_over);
    }
    side.change(|locked| locked.state.abandon(number));
}

/// What the writer of a link does: true where all was written that ever will be.
fn write(side: &Side, other: &Side) -> bool {
    loop {
        let next = side.wait(|locked| match locked.state.next() {
            Next::Write(lines) => {
                locked.assert_cancels(&lines);
                Some(Some(lines))
            }
            Next::Wait => None,
            Next::End => Some(None),
        });
        let Some(lines) = next else { break };
        let taken = other.wait(|locked| {
            let room = locked.pipe.len() < PIPE_WRITES;
            (room || locked.read_all).then_some(!locked.read_all)
        });
        if !taken || side.lock().aborted {
            return false;
        }
        side.change(|locked| locked.count_answers(&lines));
        other.change(|locked| locked.pipe.push_back(lines));
        side.change(|locked| locked.state.written());
    }
    other.change(|locked| locked.written_all = true);
    true
}

/// What the reader of a link does, until the link ends.
fn read(side: &Arc<Side>, handlers: &mut Vec<thread::JoinHandle<()>>) {
    loop {
        let lines = side.wait(|locked| {
            if locked.state.over().is_some() || locked.read_all {
                return Some(None);
            }
            locked.read().map(Some).or(locked.written_all.then_some(None))
        });
        let Some(lines) = lines else { break };
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            handlers.extend(take(side, line));
        }
    }
    side.change(|locked| {
        locked.aborted = matches!(locked.state.over(), Some(LinkEnd::Closed));
        locked.read_all = true;
        locked.state.end();
    });
}

/// What [`super::super::link`] does with a line.
fn take(side: &Arc<Side>, line: &[u8]) -> Option<thread::JoinHandle<()>> {
    let (id, method, params) = match wire::classify(line) {
        Incoming::Request { id, method, params } => (id, method, params),
        Incoming::Response { id, outcome } => {
            side.change(|locked| locked.state.answered(&id, outcome.map(RawValue::to_owned)));
            return None;
        }
        Incoming::NoId | Incoming::Unparsable => panic!("no message: {}", wire::excerpt(line)),
    };
    assert!(!side.lock().state.is_answering(&id), "asked twice");
    if *method == *Ping::NAME || *method == *CancelCall::NAME {
        if *method == *CancelCall::NAME {
            side.change(|locked| locked.state.cancel(&cancelled(params)));
        }
        side.change(|locked| locked.state.answer_small(Lane::Control, wire::empty_line(&id)));
        return None;
    }
    match side.change(|locked| locked.state.admit(&id)) {
        Admission::Admitted(token) => {
            let side = side.clone();
            let heeds = *method == *"heed";
            Some(thread::spawn(move || answer(&side, &id, &token, heeds)))
        }
        Admission::Closing | Admission::Overloaded => {
            let refusal = wire::error_line(&id, RpcError::new(Kind::Overloaded, ""));
            side.change(|locked| locked.state.answer_small(Lane::Bulk, refusal));
            None
        }
    }
}

/// The id that a `cancel_call` names.
fn cancelled(params: Option<&str>) -> Value {
    let params: CancelCallParams = serde_json::from_str(params.expect("an object")).expect("params");
    params.id
}

/// What a handler does: answers its id, at once or once it is cancelled.
fn answer(side: &Side, id: &Id, token: &CancellationToken, heeds: bool) {
    if heeds {
        side.wait(|_| token.is_cancelled().then_some(()));
    }
    let Id::Number(number) = id else { panic!("a number") };
    // Long enough to find no room at times.
    let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{number},\"result\":{number:<120}}}\n").into_bytes();
    let too_much = || wire::error_line(id, RpcError::new(Kind::Overloaded, ""));
    side.change(|locked| locked.state.answer(id, line, too_much));
}

/// One link from its first call to its end.
fn play(ends: Ends) {
    let sides = IN_FLIGHT.map(Side::new);
    let ways = [[&sides[0], &sides[1]], [&sides[1], &sides[0]]].map(|way| way.map(Arc::clone));
    let readers = sides.clone().map(|side| {
        thread::spawn(move || {
            let mut handlers = Vec::new();
            read(&side, &mut handlers);
            handlers.into_iter().for_each(|handler| handler.join().expect("no panic"));
        })
    });
    let writers = ways.map(|[side, other]| thread::spawn(move || write(&side, &other)));
    let callers: Vec<_> = sides
        .iter()
        .flat_map(|side| METHODS.map(|method| (side.clone(), method)))
        .map(|(side, method)| {
            // Who heeds a cancel needs one, if the link does not end.
            let gives_up = (ends == Ends::Last && method == "heed") || thread_rng().gen_bool(0.5);
            thread::spawn(move || call(&side, method, gives_up))
        })
        .collect();
    if ends == Ends::Last {
        callers.into_iter().for_each(|caller| caller.join().expect("no panic"));
        // Twice, as the last lines of one side may be cancels that the other answers.
        for side in sides.iter().chain(&sides) {
            side.wait(|locked| (locked.pipe.is_empty() && locked.has_answered_all()).then_some(()));
        }
        for side in &sides {
            side.change(|locked| locked.state.close());
        }
    } else {
        sides[0].change(|locked| match ends {
            Ends::Drop => locked.read_all = true,
            Ends::Close | Ends::Last => locked.state.close(),
        });
        callers.into_iter().for_each(|caller| caller.join().expect("no panic"));
    }
    readers.into_iter().for_each(|reader| reader.join().expect("no panic"));
    let wrote_all = writers.map(|writer| writer.join().expect("no panic"));
    for (side, wrote_all) in sides.iter().zip(wrote_all) {
        let locked = side.lock();
        let (asked, answering, _) = locked.state.sizes();
        assert_eq!((asked, answering), (0, 0), "an entry is left");
        assert!(locked.answers.iter().all(|(id, times)| *times == 1 && locked.taken.contains_key(id)));
        assert_eq!(locked.state.oddities, Oddities::default());
        assert!(!wrote_all || locked.state.is_at_rest(), "something is still queued or counted");
    }
    if ends == Ends::Close {
        assert!(sides[0].lock().has_answered_all(), "the side that closes has not answered what it took");
    }
}

fn check(ends: Ends) {
    let runs: [Box<dyn Scheduler + Send>; 2] =
        [Box::new(RandomScheduler::new(ORDERS)), Box::new(PctScheduler::new(PCT_DEPTH, ORDERS))];
    for scheduler in runs {
        let mut config = Config::new();
        // Errors are formatted on it.
        config.stack_size = 256 * 1024;
        Runner::new(scheduler, config).run(move || play(ends));
    }
}

#[test]
fn in_any_order_everything_is_answered_once() {
    check(Ends::Last);
}

#[test]
fn in_any_order_a_close_leaves_nothing() {
    check(Ends::Close);
}

#[test]
fn in_any_order_a_link_that_is_dropped_leaves_nothing() {
    check(Ends::Drop);
}
