//! Starts of a server that failed in a row, each putting off the next one for longer.

use std::time::{Duration, Instant};

use super::ServerError;

/// The wait before the second start in a row; each further one is twice as long.
const WAIT: Duration = Duration::from_millis(500);
/// The longest of these waits.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// Starts in a row that fail, after which nobody waits for the next one: it is told at once.
const FAILURES_WAITED_MAX: u32 = 4;

/// How often a server has failed in a row, and when it may be started again.
#[derive(Default)]
pub(super) struct Backoff {
    failures: u32,
    next_at: Option<Instant>,
    last: Option<ServerError>,
}

impl Backoff {
    /// Counts a start that failed, or a death soon after one, and puts off the next.
    pub(super) fn failed(&mut self, error: ServerError, now: Instant) {
        let wait = WAIT.saturating_mul(1 << self.failures.min(10)).min(WAIT_MAX);
        self.failures += 1;
        self.next_at = Some(now + wait);
        self.last = Some(error);
    }

    /// A start that did not fail: the next one waits for nothing, until this one turns out to have.
    pub(super) fn started(&mut self) {
        self.next_at = None;
    }

    /// It has proved itself.
    pub(super) fn steady(&mut self) {
        self.failures = 0;
    }

    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// How long the next start is put off.
    pub(super) fn delay(&self, now: Instant) -> Duration {
        self.next_at.map(|at| at.saturating_duration_since(now)).unwrap_or_default()
    }

    /// Why it failed last; none where it has not since it was steady.
    pub(super) fn last(&self) -> Option<&ServerError> {
        self.last.as_ref().filter(|_| self.failures > 0)
    }

    /// What whoever asks is told at once, where the next start is not waited for.
    pub(super) fn refusal(&self, now: Instant) -> Option<ServerError> {
        self.put_off(now).filter(|_| self.failures > FAILURES_WAITED_MAX)
    }

    /// How often it has failed and when the next start is, while that is put off.
    pub(super) fn put_off(&self, now: Instant) -> Option<ServerError> {
        let (last, ms) = (self.last()?, self.delay(now).as_millis());
        let said = format!("{}; that was start {} in a row, the next is in {ms} ms", last.message, self.failures);
        (ms > 0).then_some(ServerError { code: last.code, message: said })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_start_is_put_off_for_longer_and_told_at_once_in_the_end() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        assert_eq!((backoff.delay(now), backoff.put_off(now), backoff.last()), (Duration::ZERO, None, None));
        let error = |message: &str| ServerError { code: "server_died", message: message.to_owned() };
        for (ms, refused) in [(500, false), (1_000, false), (2_000, false), (4_000, false), (8_000, true)] {
            backoff.failed(error("it died"), now);
            assert_eq!((backoff.delay(now).as_millis(), backoff.refusal(now).is_some()), (ms, refused));
            backoff.started();
            assert_eq!(backoff.put_off(now), None, "it runs");
            backoff.next_at = Some(now + Duration::from_millis(u64::try_from(ms).expect("few")));
        }
        assert_eq!(backoff.refusal(now), Some(error("it died; that was start 5 in a row, the next is in 8000 ms")));
        assert_eq!(backoff.refusal(now + Duration::from_secs(8)), None, "it is time");
        (0..20).for_each(|_| backoff.failed(error("again"), now));
        assert_eq!(backoff.delay(now), WAIT_MAX);
        backoff.steady();
        assert_eq!((backoff.last(), backoff.put_off(now)), (None, None));
    }
}
