//! The time that a thread has worked: what others do on the machine is not in it.

use std::time::{Duration, Instant};

/// How long something took.
#[derive(Debug, Clone, Copy)]
pub struct Took {
    /// The work of the thread; the same as `wall` where the system does not tell it.
    pub cpu: Duration,
    /// On the clock of the wall.
    pub wall: Duration,
}

/// Does something, and tells how long it took.
pub fn took<T>(work: impl FnOnce() -> T) -> (T, Took) {
    let (wall, cpu) = (Instant::now(), thread_time());
    let done = work();
    let worked = thread_time().zip(cpu).map(|(after, before)| after.saturating_sub(before));
    let wall = wall.elapsed();
    (done, Took { cpu: worked.unwrap_or(wall), wall })
}

#[cfg(unix)]
fn thread_time() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

#[cfg(not(unix))]
fn thread_time() -> Option<Duration> {
    None
}
