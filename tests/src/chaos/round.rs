//! One round: a fresh state directory, clients that work while hosts and runners are killed, and the verdict.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::door::{Door, Kind};
use super::followed::Followed;
use super::killer::Killer;
use super::ledger::{Budget, Known, Ledger, Totals};
use super::line::{Answer, Line, held};
use super::script::{self, QUICK};
use super::worker::Worker;
use super::{tables, verdict};
use crate::dice::Dice;

/// Clients that come and go at once.
const WORKERS: u64 = 3;
/// What a client does in a round.
const STEPS: (u64, u64) = (8, 20);
/// Within this everything has ended that ends by itself: the longest life in a queue of others, and a margin.
const QUIET_WITHIN: Duration = Duration::from_secs(120);
/// Within this a runner is gone whose process has ended, or whose host was killed.
const GONE_WITHIN: Duration = Duration::from_secs(30);
/// Within this a process that does nothing has started and ended.
const QUICK_MS: u64 = 10_000;
/// How often the tables are looked at for quiet.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The stream of choices of the round itself; workers have the next ones.
const OWN_STREAM: u64 = 0;

/// What all of a round share.
pub(super) struct Shared {
    pub(super) door: Door,
    pub(super) ledger: Mutex<Ledger>,
    pub(super) known: Mutex<Vec<Known>>,
    pub(super) totals: std::sync::Arc<Totals>,
    pub(super) hosts: Budget,
}

/// One round.
pub struct Round {
    /// What its choices come from.
    pub seed: u64,
    /// How its host is reached.
    pub kind: Kind,
}

/// What came of a round.
pub struct Told {
    /// What should not be; none where all is well.
    pub violations: Vec<String>,
    /// The folder of the round, kept where there are violations.
    pub dir: PathBuf,
}

impl Round {
    /// Plays the round in the new folder `dir` with the host program `host`, beside which a runner lies.
    ///
    /// # Errors
    /// The folder cannot be written, or the tables not be read.
    pub fn play(
        &self,
        dir: &Path,
        host: &Path,
        totals: &std::sync::Arc<Totals>,
    ) -> Result<Told, Box<dyn std::error::Error>> {
        let mut dice = Dice::new(self.seed, OWN_STREAM);
        std::fs::create_dir_all(dir.join("runners"))?;
        script::write(dir, &mut dice)?;
        let bad_percent = if dice.percent(30) { 0 } else { dice.between(5, 50) };
        std::fs::write(dir.join("chaos.json"), json!({ "seed": self.seed, "bad_percent": bad_percent }).to_string())?;
        let shared = Shared {
            door: Door::new(self.kind, dir, host),
            ledger: Mutex::default(),
            known: Mutex::default(),
            totals: totals.clone(),
            hosts: Budget::new(dice.below(5)),
        };
        let mut followed = self.work(&shared, &mut dice);
        self.judge(&shared, &mut dice, &mut followed)?;
        // Whatever is left is ended, and told.
        shared.door.kill_host();
        let begun = Instant::now();
        while !shared.door.runners().is_empty() || shared.door.has_host() {
            if begun.elapsed() > GONE_WITHIN {
                let left = shared.door.runners();
                held(&shared.ledger).violation(format!("runners {left:?} are left without a host"));
                break;
            }
            std::thread::park_timeout(LOOK_EVERY);
        }
        let violations = std::mem::take(&mut held(&shared.ledger).violations);
        Ok(Told { violations, dir: dir.to_owned() })
    }

    fn work(&self, shared: &Shared, dice: &mut Dice) -> Vec<Followed> {
        let done = AtomicBool::new(false);
        let killer = Killer { door: &shared.door, totals: &shared.totals, hosts: &shared.hosts, done: &done };
        std::thread::scope(|scope| {
            let killing = scope.spawn(|| killer.work(Dice::new(self.seed, WORKERS + 1)));
            let workers: Vec<_> = (1..=WORKERS)
                .map(|number| {
                    let worker = Worker::new(shared, number, Dice::new(self.seed, number));
                    let steps = dice.between(STEPS.0, STEPS.1);
                    scope.spawn(move || worker.work(steps))
                })
                .collect();
            let followed = workers.into_iter().map(|worker| worker.join().expect("a worker goes on")).collect();
            done.store(true, Ordering::Relaxed);
            killing.thread().unpark();
            followed
        })
    }

    fn judge(
        &self,
        shared: &Shared,
        dice: &mut Dice,
        followed: &mut [Followed],
    ) -> Result<(), Box<dyn std::error::Error>> {
        let violation = |what: String| held(&shared.ledger).violation(what);
        let end_of_host = dice.below(3);
        match end_of_host {
            0 => drop(shared.door.kill_host()),
            1 => shared.door.stop_host(),
            _ => {}
        }
        let mut own = None;
        let Some(client) = shared.door.line(&mut own) else {
            violation("no host can be reached at the end".to_owned());
            return Ok(());
        };
        let db = shared.door.db();
        if let Some(living) = never_quiet(&db)? {
            violation(format!("these have not ended within {} s: {}", QUIET_WITHIN.as_secs(), living.join(", ")));
        }
        a_slot_is_free(shared, &client);
        let begun = Instant::now();
        while !shared.door.runners().is_empty() {
            if begun.elapsed() > GONE_WITHIN {
                violation(format!("runners {:?} are left though everything has ended", shared.door.runners()));
                break;
            }
            std::thread::park_timeout(LOOK_EVERY);
        }
        let before = tables::ends(&db)?;
        drop((own, client));
        shared.door.kill_host();
        shared.totals.count("hosts killed");
        let mut own = None;
        let Some(client) = shared.door.line(&mut own) else {
            violation("no host can be reached after all".to_owned());
            return Ok(());
        };
        let mut ledger = held(&shared.ledger);
        for (process, end) in tables::ends(&db)? {
            if before.get(&process) != Some(&end) {
                ledger.violation(format!("the end of {process} changed from {:?} to {end:?}", before.get(&process)));
            }
        }
        verdict::followed(followed, &mut ledger, &client, &db)?;
        let mut found = verdict::against_client(&ledger, &client);
        found.extend(verdict::against_tables(&ledger, &db)?);
        // A host that is told to end cancels detached processes too, and the tables do not tell that it was.
        let told_to_end = |what: &String| end_of_host == 1 && what.contains("was cancelled by the end of its session");
        found.extend(crate::oracle::check_quiet(&db).into_iter().filter(|what| !told_to_end(what)));
        found.into_iter().for_each(|one| ledger.violation(one));
        tables::count(&db, &shared.totals)?;
        Ok(())
    }
}

/// Waits until nothing lives any more; what still does, where that is never.
fn never_quiet(db: &Path) -> rusqlite::Result<Option<Vec<String>>> {
    let begun = Instant::now();
    loop {
        let living = tables::living(db)?;
        if living.is_empty() {
            return Ok(None);
        }
        if begun.elapsed() > QUIET_WITHIN {
            return Ok(Some(living));
        }
        std::thread::park_timeout(LOOK_EVERY);
    }
}

/// One more spawn starts at once and ends.
fn a_slot_is_free(shared: &Shared, client: &Line) {
    let arguments = json!({ "assistant_id": QUICK, "query": "go", "wait_ms": 0 });
    let wrong = match client.call("spawn_assistant", &arguments) {
        Answer::Done(told) if told["status"] == "starting" => {
            let wait = json!({ "process_ids": [told["process_id"]], "wait_ms": QUICK_MS });
            match client.call("wait_assistant", &wait) {
                Answer::Done(waited) if waited["still_running"].as_array().is_some_and(Vec::is_empty) => None,
                other => Some(format!("the last spawn {told} does not end: {other:?}")),
            }
        }
        other => Some(format!("nothing runs, and yet the last spawn does not start at once: {other:?}")),
    };
    if let Some(wrong) = wrong {
        held(&shared.ledger).violation(wrong);
    }
}
