//! Time that counts while the machine is awake: limits of time are told by this clock, so a night with the lid closed
//! ends nothing.
//!
//! On Linux, macOS and the BSDs the monotonic clock stands still while the machine sleeps, and that it slept shows in the
//! Unix clock having gone on. On Windows the monotonic clock goes on as well: there it is looked at every
//! `TICK_MS`, and a look that comes much too late means that the machine slept. That part was not tried on a Windows
//! machine that sleeps; its arithmetic is tested.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tokio::time::Instant;

/// How often a machine's clock is looked at, milliseconds.
const TICK_MS: u64 = 10_000;
/// Shorter gaps are no sleep but a clock that was set or a machine with much to do, milliseconds.
const SLEPT_MS_MIN: u64 = 5_000;
/// Whether the monotonic clock goes on while the machine sleeps.
const COUNTS_SLEEP: bool = cfg!(windows);

/// A clock for limits, in milliseconds since some moment. Clones are the same clock.
#[derive(Clone)]
pub struct Awake(Arc<Source>);

enum Source {
    Machine { start: Instant, seen: Mutex<Seen> },
    ByHand(watch::Sender<Hand>),
}

/// The last look at the clocks of a machine, and what it has slept until then, milliseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    unix: u64,
    monotonic: u64,
    slept: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Hand {
    now_ms: u64,
    slept_ms: u64,
}

/// What moves an [`Awake`] that is no machine's: for tests, and for apps that replay.
pub struct ByHand(Awake);

impl Default for Awake {
    fn default() -> Self {
        Self::machine()
    }
}

impl Awake {
    /// The clock of this machine, from 0 on.
    #[must_use]
    pub fn machine() -> Self {
        let seen = Mutex::new(Seen { unix: unix_ms(), ..Seen::default() });
        Self(Arc::new(Source::Machine { start: Instant::now(), seen }))
    }

    /// How long the machine was awake since the clock was made, milliseconds.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        match &*self.0 {
            Source::Machine { start, .. } if !COUNTS_SLEEP => millis(start.elapsed()),
            Source::Machine { start, seen } => {
                let seen = look(*start, seen);
                seen.monotonic.saturating_sub(seen.slept)
            }
            Source::ByHand(hand) => hand.borrow().now_ms,
        }
    }

    /// How long the machine is known to have slept since the clock was made, milliseconds.
    #[must_use]
    pub fn slept_ms(&self) -> u64 {
        match &*self.0 {
            Source::Machine { start, seen } => look(*start, seen).slept,
            Source::ByHand(hand) => hand.borrow().slept_ms,
        }
    }

    /// Waits until [`Awake::now_ms`] is `at_ms` or later.
    pub async fn sleep_until(&self, at_ms: u64) {
        match &*self.0 {
            Source::Machine { .. } => loop {
                let left = at_ms.saturating_sub(self.now_ms());
                if left == 0 {
                    return;
                }
                let most = if COUNTS_SLEEP { TICK_MS } else { u64::MAX };
                tokio::time::sleep(Duration::from_millis(left.min(most))).await;
            },
            Source::ByHand(hand) => {
                if hand.subscribe().wait_for(|hand| hand.now_ms >= at_ms).await.is_err() {
                    // The sender is `self`, so this cannot be; never end a wait early by it.
                    std::future::pending::<()>().await;
                }
            }
        }
    }

    /// Waits until it is worth a look whether the machine slept.
    pub(crate) async fn tick(&self) {
        match &*self.0 {
            Source::Machine { .. } => tokio::time::sleep(Duration::from_millis(TICK_MS)).await,
            Source::ByHand(hand) => {
                let slept = hand.borrow().slept_ms;
                if hand.subscribe().wait_for(|hand| hand.slept_ms != slept).await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        }
    }
}

impl Default for ByHand {
    fn default() -> Self {
        Self(Awake(Arc::new(Source::ByHand(watch::Sender::default()))))
    }
}

impl ByHand {
    /// The clock that this moves. It stands still until then.
    #[must_use]
    pub fn clock(&self) -> Awake {
        self.0.clone()
    }

    /// The machine was awake for so long.
    pub fn advance(&self, by: Duration) {
        self.change(|hand| hand.now_ms = hand.now_ms.saturating_add(millis(by)));
    }

    /// The machine slept for so long.
    pub fn sleep(&self, by: Duration) {
        self.change(|hand| hand.slept_ms = hand.slept_ms.saturating_add(millis(by)));
    }

    fn change(&self, change: impl FnOnce(&mut Hand)) {
        match &*self.0.0 {
            Source::ByHand(hand) => hand.send_modify(change),
            Source::Machine { .. } => {}
        }
    }
}

fn look(start: Instant, seen: &Mutex<Seen>) -> Seen {
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    *seen = looked(*seen, unix_ms(), millis(start.elapsed()), COUNTS_SLEEP);
    *seen
}

/// The next look, after the one before: what lies between them beyond the bounds was sleep.
fn looked(before: Seen, unix: u64, monotonic: u64, counts_sleep: bool) -> Seen {
    let (by_unix, by_monotonic) = (unix.saturating_sub(before.unix), monotonic.saturating_sub(before.monotonic));
    let beyond = if counts_sleep {
        by_unix.min(by_monotonic).saturating_sub(TICK_MS)
    } else {
        by_unix.saturating_sub(by_monotonic)
    };
    let slept = if beyond >= SLEPT_MS_MIN { beyond } else { 0 };
    Seen { unix, monotonic, slept: before.slept + slept }
}

fn unix_ms() -> u64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was slept after looks at `(unix, monotonic)`, seconds.
    fn check(counts_sleep: bool, looks: &[(u64, u64)], want: u64) {
        let first = Seen { unix: 1_000_000, ..Seen::default() };
        let last = looks.iter().fold(first, |seen, (unix, monotonic)| {
            looked(seen, 1_000_000 + unix * 1_000, monotonic * 1_000, counts_sleep)
        });
        assert_eq!(last.slept, want * 1_000, "{looks:?}");
    }

    #[test]
    fn sleep_shows_in_the_unix_clock_where_the_other_stands_still() {
        check(false, &[(10, 10), (20, 20)], 0);
        check(false, &[(10, 10), (3_620, 20)], 3_600);
        check(false, &[(3_610, 10), (7_220, 20), (7_230, 30)], 7_200);
        // A look that comes late is no sleep, nor is a clock that is set a little, or back.
        check(false, &[(10, 10), (200, 200)], 0);
        check(false, &[(14, 10), (24, 20)], 0);
        check(false, &[(10, 10), (0, 20), (10, 30)], 0);
    }

    #[test]
    fn a_look_that_comes_much_too_late_is_sleep_where_both_clocks_go_on() {
        check(true, &[(10, 10), (20, 20)], 0);
        check(true, &[(10, 10), (3_620, 3_620)], 3_600);
        check(true, &[(10, 10), (24, 24)], 0);
        // A Unix clock that was set says nothing.
        check(true, &[(10, 10), (3_620, 20)], 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_machines_clock_goes_on_by_itself() {
        let awake = Awake::machine();
        let at = awake.now_ms() + 3_600_000;
        awake.sleep_until(at).await;
        assert!(awake.now_ms() >= at);
        awake.sleep_until(0).await;
    }

    #[tokio::test]
    async fn a_clock_by_hand_stands_still() {
        let hand = ByHand::default();
        let awake = hand.clock();
        let mut waits = waits_until(awake.clone(), 1_000);
        assert!(!waits.is_finished() && awake.now_ms() == 0);
        hand.sleep(Duration::from_secs(10));
        hand.advance(Duration::from_millis(999));
        tokio::task::yield_now().await;
        assert!(!waits.is_finished(), "999 of 1000 ms");
        hand.advance(Duration::from_millis(1));
        (&mut waits).await.expect("it ends");
        assert_eq!((awake.now_ms(), awake.slept_ms()), (1_000, 10_000));
    }

    fn waits_until(awake: Awake, at_ms: u64) -> tokio::task::JoinHandle<()> {
        tokio::spawn(async move { awake.sleep_until(at_ms).await })
    }
}
