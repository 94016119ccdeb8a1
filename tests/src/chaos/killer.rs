//! Who ends hosts and runners while the clients work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::dice::Dice;
use super::door::{Door, kill};
use super::ledger::{Budget, Totals};

/// Between two deeds, milliseconds, at most.
const PAUSE_MS: u64 = 120;

/// What ends things in a round.
pub(super) struct Killer<'a> {
    pub(super) door: &'a Door,
    pub(super) totals: &'a Totals,
    /// Hosts that may be killed in this round.
    pub(super) hosts: &'a Budget,
    pub(super) done: &'a AtomicBool,
}

impl Killer<'_> {
    /// Goes on until the round says that it is done; to be unparked then.
    pub(super) fn work(&self, mut dice: Dice) {
        while !self.done.load(Ordering::Relaxed) {
            std::thread::park_timeout(Duration::from_millis(dice.between(5, PAUSE_MS)));
            if self.done.load(Ordering::Relaxed) {
                return;
            }
            match dice.below(10) {
                0 => self.host(),
                1..=4 => self.runner(&mut dice),
                _ => self.door.look_for_host(),
            }
        }
    }

    fn host(&self) {
        if self.hosts.take() && self.door.kill_host() {
            self.totals.count("hosts killed");
        }
    }

    fn runner(&self, dice: &mut Dice) {
        let runners = self.door.runners();
        if !runners.is_empty() && kill(dice.one(&runners)) {
            self.totals.count("runners killed");
        }
    }
}
