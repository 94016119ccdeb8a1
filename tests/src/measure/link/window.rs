//! Calls without a runtime: one at a time by one thread, more by one that writes and one that reads.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::sync::mpsc::{TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::{Load, Times};

/// What is read and written at once, in bytes: as much as a pipe holds.
pub(super) const BUFFER_BYTES: usize = 64 << 10;

type Reader = BufReader<File>;
type Writer = BufWriter<File>;

/// Asks, at first without counting: `ask` writes one request, `answer` reads one answer and looks at it.
pub(super) fn asks(
    (from, to): (File, File),
    loads: [Load; 2],
    mut ask: impl FnMut(&mut Writer) -> io::Result<()> + Send,
    mut answer: impl FnMut(&mut Reader) -> io::Result<()>,
) -> io::Result<Times> {
    let mut from = Reader::with_capacity(BUFFER_BYTES, from);
    let mut to = Writer::with_capacity(BUFFER_BYTES, to);
    let mut all = |load: Load| {
        let start = Instant::now();
        let times = if load.in_flight == 1 {
            one_by_one(load.calls, || ask(&mut to).and_then(|()| to.flush()), || answer(&mut from))
        } else {
            many(load, &mut to, &mut ask, || answer(&mut from))
        };
        times.map(|times| (times, start.elapsed()))
    };
    let [first, counted] = loads;
    all(first)?;
    all(counted)
}

fn one_by_one(
    calls: usize,
    mut ask: impl FnMut() -> io::Result<()>,
    mut answer: impl FnMut() -> io::Result<()>,
) -> io::Result<Vec<Duration>> {
    let call = |_| {
        let start = Instant::now();
        ask().and_then(|()| answer()).map(|()| start.elapsed())
    };
    (0..calls).map(call).collect()
}

/// What is written is let go where no more may be under way, so that small requests go together.
fn many(
    load: Load,
    to: &mut Writer,
    ask: &mut (impl FnMut(&mut Writer) -> io::Result<()> + Send),
    mut answer: impl FnMut() -> io::Result<()>,
) -> io::Result<Vec<Duration>> {
    let (begun, under_way) = sync_channel(load.in_flight);
    // What is moved here ends with it: where reading fails, nobody waits to send.
    thread::scope(move |scope| {
        let writing = scope.spawn(move || -> io::Result<()> {
            for _ in 0..load.calls {
                if let Err(TrySendError::Full(start)) = begun.try_send(Instant::now()) {
                    to.flush()?;
                    begun.send(start).map_err(|_| io::ErrorKind::BrokenPipe)?;
                }
                ask(to)?;
            }
            to.flush()
        });
        let mut times = Vec::with_capacity(load.calls);
        for _ in 0..load.calls {
            answer()?;
            let start: Instant = under_way.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
            times.push(start.elapsed());
        }
        writing.join().map_err(|_| io::ErrorKind::BrokenPipe)??;
        Ok(times)
    })
}
