//! Both ends of a link with calls, drops, cancels, cuts and ends at times that proptest chooses, on a clock that a test
//! winds: whatever the schedule, each call ends once and rightly, and nothing is left.

use std::collections::HashMap;
use std::sync::Mutex;

use proptest::prelude::*;
use tokio::time::timeout;

use super::cuts::{Cut, Cuts};
use super::*;

/// When all is over that will ever be, in milliseconds.
const QUIET_MS: u64 = 3_600_000;
/// Queued bytes that are enough for all schedules.
const ENOUGH_BYTES: u64 = 1 << 20;

/// What is asked of the other side.
#[derive(Debug, Clone, Copy)]
enum What {
    /// A handler that answers after so many milliseconds.
    After(u64),
    /// An answer of so many bytes.
    Long(usize),
    /// A handler that calls back, so many levels deep.
    Back(u64),
    Refuse,
    Panic,
    Hang,
    Heed,
    Ping,
}

/// A call, `at` milliseconds after the begin, and dropped so many later if it is still under way.
#[derive(Debug, Clone, Copy)]
struct Ask {
    side: usize,
    at: u64,
    what: What,
    dropped: Option<u64>,
}

/// How a side ends the link.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Close,
    Drop,
}

#[derive(Debug, Clone)]
struct Schedule {
    asks: Vec<Ask>,
    /// The cuts of what side 0 reads and writes, then those of side 1.
    cuts: [Vec<Cut>; 4],
    pipe_bytes: usize,
    in_flight: usize,
    queue_bytes: u64,
    end: Option<(usize, u64, End)>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
enum Got {
    Text(String),
    Error(Option<Kind>),
    Closed,
    Dropped,
}

/// What the handlers of a side did, by the number of the call: how often each began and was gone.
#[derive(Default)]
struct Book(Mutex<HashMap<u64, [u32; 2]>>);

impl Book {
    fn count(&self, number: u64, what: usize) {
        self.0.lock().expect("no panic with the lock").entry(number).or_default()[what] += 1;
    }
}

struct Counted(Arc<Book>, u64);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.count(self.1, 1);
    }
}

async fn answer(book: Arc<Book>, asked: ToolCallParams, call: CallCx) -> Result<ToolCallResult, RpcError> {
    let number = asked.arguments[0].as_u64().expect("a number");
    let size = asked.arguments[1].as_u64().expect("a size");
    book.count(number, 0);
    let _counted = Counted(book.clone(), number);
    let text = |text: String| Ok(text_result(text));
    match asked.tool_name.as_str() {
        "after" => {
            tokio::time::sleep(millis(size)).await;
            text(format!("{number} after"))
        }
        "long" => text("x".repeat(usize::try_from(size).expect("fits"))),
        "back" if size == 0 => text(format!("{number} bottom")),
        // Numbers of calls back are their own.
        "back" => Ok(call.peer.call::<OnToolCall>(&tool_call("back", json!([number + 1_000, size - 1]))).await?),
        "refuse" => Err(RpcError::new(Kind::NotPermitted, "no")),
        "panic" => panic!("on purpose"),
        "hang" => std::future::pending().await,
        _ => {
            call.cancelled.cancelled().await;
            text(format!("{number} heeded"))
        }
    }
}

impl What {
    fn call(self, number: u64) -> Option<ToolCallParams> {
        let (tool, size) = match self {
            Self::After(ms) => ("after", ms),
            Self::Long(bytes) => ("long", bytes as u64),
            Self::Back(depth) => ("back", depth),
            Self::Refuse => ("refuse", 0),
            Self::Panic => ("panic", 0),
            Self::Hang => ("hang", 0),
            Self::Heed => ("heed", 0),
            Self::Ping => return None,
        };
        Some(tool_call(tool, json!([number, size])))
    }

    /// What its answer is, where nothing is in its way.
    fn rightly(self, number: u64) -> Got {
        match self {
            Self::After(_) => Got::Text(format!("{number} after")),
            Self::Long(bytes) => Got::Text("x".repeat(bytes)),
            Self::Back(depth) => Got::Text(format!("{} bottom", number + 1_000 * depth)),
            Self::Refuse => Got::Error(Some(Kind::NotPermitted)),
            Self::Panic => Got::Error(Some(Kind::InternalError)),
            Self::Hang => Got::Error(Some(Kind::Cancelled)),
            Self::Heed => Got::Text(format!("{number} heeded")),
            Self::Ping => Got::Text("pong".to_owned()),
        }
    }
}

async fn ask(peer: Peer, ask: Ask, number: u64) -> Got {
    tokio::time::sleep(millis(ask.at)).await;
    let call = async {
        let Some(params) = ask.what.call(number) else {
            return peer.call::<Ping>(&Empty {}).await.map(|_| "pong".to_owned());
        };
        let result = peer.call::<OnToolCall>(&params).await?;
        let [Part::Text { text }] = result.content.as_slice() else { panic!("one text: {result:?}") };
        Ok(text.clone())
    };
    let ended = match ask.dropped {
        Some(ms) => timeout(millis(ms), call).await,
        None => Ok(call.await),
    };
    match ended {
        Ok(Ok(text)) => Got::Text(text),
        Ok(Err(CallError::Closed)) => Got::Closed,
        Ok(Err(error)) => Got::Error(error.kind()),
        Err(_) => Got::Dropped,
    }
}

/// Whether a call may end so.
fn may_end(schedule: &Schedule, ask: Ask, number: u64, got: &Got) -> bool {
    let bounded = schedule.in_flight < IN_FLIGHT_MAX || schedule.queue_bytes < ENOUGH_BYTES;
    let waits = matches!(ask.what, What::Hang | What::Heed);
    match got {
        got if *got == ask.what.rightly(number) => true,
        Got::Dropped => ask.dropped.is_some(),
        Got::Error(Some(Kind::Overloaded)) => bounded,
        Got::Closed => schedule.end.is_some() || waits,
        Got::Error(Some(Kind::Cancelled | Kind::ShuttingDown)) => schedule.end.is_some(),
        Got::Text(_) | Got::Error(_) => false,
    }
}

/// Plays a schedule, and fails where something is not as promised.
async fn play(schedule: &Schedule) {
    let (a, b) = duplex(schedule.pipe_bytes);
    let limits = PeerLimits {
        in_flight: schedule.in_flight,
        queue_bytes: schedule.queue_bytes,
        ..PeerLimits::for_frames(MAX_FRAME_BYTES)
    };
    let books = [Arc::new(Book::default()), Arc::new(Book::default())];
    let mut ends = [a, b].into_iter().zip(schedule.cuts.chunks(2)).zip(&books).map(|((end, cuts), book)| {
        let (read, write) = split(end);
        let service = Service::new(book.clone()).on(OnToolCall, answer);
        let (peer, link) = connect(Cuts::new(read, &cuts[0]), Cuts::new(write, &cuts[1]), service, limits);
        (peer, tokio::spawn(link))
    });
    let [(a, mut a_link), (b, mut b_link)] = [(); 2].map(|()| ends.next().expect("two"));
    let peers = [a, b];
    let calls = schedule.asks.iter().zip(1..).map(|(one, n)| tokio::spawn(ask(peers[one.side].clone(), *one, n)));
    let calls: Vec<_> = calls.collect();

    // The end comes when it was chosen, or else when all that will be answered is.
    let (side, at, end) = schedule.end.unwrap_or((0, QUIET_MS, End::Close));
    tokio::time::sleep(millis(at)).await;
    let rests = peers.each_ref().map(|peer| peer.0.state().sizes());
    match end {
        End::Close => peers[side].close(),
        End::Drop => [&a_link, &b_link][side].abort(),
    }
    let got: Vec<Got> = timeout(millis(QUIET_MS), join_all(calls))
        .await
        .expect("each call ends")
        .into_iter()
        .map(|got| got.expect("no panic"))
        .collect();
    let reports =
        timeout(millis(QUIET_MS), async { [(&mut a_link).await, (&mut b_link).await] }).await.expect("both ends end");
    // What handlers do in their grace.
    tokio::time::sleep(millis(2 * CANCEL_GRACE_MS)).await;

    for ((one, number), got) in schedule.asks.iter().zip(1..).zip(&got) {
        assert!(may_end(schedule, *one, number, got), "call {number}, {one:?}, ended so: {got:?}");
    }
    for (peer, book) in peers.iter().zip(&books) {
        let (asked, answering, _) = peer.0.state().sizes();
        assert_eq!((asked, answering), (0, 0), "an entry is left");
        for (number, [begun, gone]) in &*book.0.lock().expect("no panic with the lock") {
            assert_eq!((begun, gone), (&1, &1), "call {number}: begun and gone");
        }
    }
    for (number, got) in (1..).zip(&got) {
        let runs: u32 =
            books.iter().map(|book| book.0.lock().expect("no panic").get(&number).map_or(0, |[begun, _]| *begun)).sum();
        assert!(runs <= 1, "call {number} was handled {runs} times");
        let answered = matches!(got, Got::Text(text) if text != "pong") || *got == Got::Error(Some(Kind::NotPermitted));
        assert!(!answered || runs == 1, "call {number} was answered by nobody");
    }
    for report in reports.into_iter().flatten() {
        // A link that is dropped may cut its last line.
        let cut = u64::from(end == End::Drop);
        assert!(report.oddities.junk_lines <= cut, "{report:?}");
        assert_eq!((report.oddities.without_id, report.oddities.unknown_answers), (0, 0), "{report:?}");
    }
    if schedule.end.is_none() {
        let hanging =
            schedule.asks.iter().any(|one| one.dropped.is_none() && matches!(one.what, What::Hang | What::Heed));
        assert!(hanging || rests == [(0, 0, 0); 2], "at rest before the end: {rests:?}");
    }
    drop(peers);
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0, "a task is left");
}

fn cuts() -> impl Strategy<Value = Vec<Cut>> {
    let cut = prop_oneof![
        2 => (1_usize..40).prop_map(Cut::Bytes),
        1 => Just(Cut::Bytes(1)),
        1 => Just(Cut::Bytes(100_000)),
        1 => (0_u64..6).prop_map(Cut::Wait),
    ];
    (prop::collection::vec(cut, 0..6), 1_usize..300).prop_map(|(mut cuts, bytes)| {
        cuts.push(Cut::Bytes(bytes));
        cuts
    })
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let what = prop_oneof![
        2 => (0_u64..40).prop_map(What::After),
        2 => (0_usize..3_000).prop_map(What::Long),
        2 => (0_u64..5).prop_map(What::Back),
        1 => Just(What::Refuse),
        1 => Just(What::Panic),
        1 => Just(What::Hang),
        1 => Just(What::Heed),
        1 => Just(What::Ping),
    ];
    let ask = (0_usize..2, 0_u64..60, what, prop::option::of(0_u64..120));
    let ask = ask.prop_map(|(side, at, what, dropped)| Ask { side, at, what, dropped });
    prop::collection::vec(ask, 1..24)
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let end = (0_usize..2, 0_u64..200, prop_oneof![Just(End::Close), Just(End::Drop)]);
    (
        asks(),
        [cuts(), cuts(), cuts(), cuts()],
        prop_oneof![1_usize..200, Just(65_536)],
        prop_oneof![1_usize..4, Just(IN_FLIGHT_MAX)],
        prop_oneof![500_u64..4_000, Just(ENOUGH_BYTES)],
        prop::option::of(end),
    )
        .prop_map(|(asks, cuts, pipe_bytes, in_flight, queue_bytes, end)| Schedule {
            asks,
            cuts,
            pipe_bytes,
            in_flight,
            queue_bytes,
            end,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_schedule_each_call_ends_once_and_nothing_is_left(schedule in schedule()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(play(&schedule));
    }
}
