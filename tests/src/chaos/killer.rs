//! Who ends hosts and runners while the clients work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::door::{Door, kill};
use super::ledger::{Budget, Totals};
use super::tables;
use crate::dice::Dice;

/// Between two deeds, milliseconds, at most.
const PAUSE_MS: u64 = 120;

/// What a commit may make one more of.
const COMMITTED: [&str; 5] = [
    "SELECT count(*) FROM assistant_messages WHERE delivered_at IS NOT NULL AND to_process_id IS NOT NULL",
    "SELECT count(*) FROM assistant_messages WHERE delivered_at IS NOT NULL AND to_process_id IS NOT NULL",
    "SELECT count(*) FROM assistant_messages",
    "SELECT count(*) FROM questions WHERE state IN ('ANSWERED', 'RETRIEVED')",
    "SELECT count(*) FROM assistant_processes WHERE finished_at IS NOT NULL",
];
/// How long such a commit is waited for.
const COMMIT_WITHIN: Duration = Duration::from_millis(300);
/// How often it is looked for.
const COMMIT_LOOK_EVERY: Duration = Duration::from_micros(200);

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
                1 | 2 => self.host_at_a_commit(&mut dice),
                3..=5 => self.runner(&mut dice),
                _ => self.door.look_for_host(),
            }
        }
    }

    /// Kills the host right behind a commit that makes one more of something: what belongs to it has to be in it.
    fn host_at_a_commit(&self, dice: &mut Dice) {
        let sql = dice.one(&COMMITTED);
        let Ok(db) = tables::open(&self.door.db()) else { return };
        let count = || db.query_row(sql, [], |row| row.get::<_, i64>(0));
        let (begun, Ok(before)) = (Instant::now(), count()) else { return };
        while begun.elapsed() < COMMIT_WITHIN && !self.done.load(Ordering::Relaxed) {
            match count() {
                Ok(now) if now > before => return self.host(),
                Ok(_) => std::thread::park_timeout(COMMIT_LOOK_EVERY),
                Err(_) => return,
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
