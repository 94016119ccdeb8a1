//! Chaos: rounds in which everything that a host has to do with is killed or behaves badly at random, each with a verdict
//! whether what was answered is so.
//!
//! `cargo run --release -p conformance --bin chaos -- [--rounds N] [--seed S] [--background|--embedded|--both]
//! [--at-once N] [--keep]`
//!
//! A failing round is played again with `--seed S --rounds 1`: all choices are the same, what the machine does beside
//! them is not. The last line is `N rounds, N violations`; with violations the exit code is 1.

use std::process::ExitCode;

#[cfg(not(unix))]
fn main() -> ExitCode {
    // It kills with signals.
    ExitCode::from(2)
}

#[cfg(unix)]
fn main() -> ExitCode {
    play::main()
}

#[cfg(unix)]
mod play {
    use std::io::Write;
    use std::path::{Path, PathBuf};
    use std::process::ExitCode;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex, PoisonError};
    use std::time::Instant;

    use conformance::chaos::{Kind, Round, Totals};

    /// Rounds unless told otherwise.
    const ROUNDS: u64 = 100;
    /// Rounds that are played at once unless told otherwise: most of a round is waiting.
    const AT_ONCE: u64 = 3;
    /// A line about the state of things comes after so many rounds.
    const TELL_EVERY: u64 = 50;

    struct Args {
        rounds: u64,
        seed: u64,
        kinds: Vec<Kind>,
        at_once: u64,
        keep: bool,
    }

    fn tell(text: &str) {
        // Nobody reads any more where this fails.
        drop(writeln!(std::io::stdout(), "{text}"));
    }

    fn read(mut args: impl Iterator<Item = String>) -> Option<Args> {
        let mut read = Args {
            rounds: ROUNDS,
            seed: u64::from(std::process::id()) * 1_000,
            kinds: vec![Kind::Background, Kind::Embedded],
            at_once: AT_ONCE,
            keep: false,
        };
        while let Some(arg) = args.next() {
            let mut number = || args.next()?.parse::<u64>().ok();
            match arg.as_str() {
                "--rounds" => read.rounds = number()?,
                "--seed" => read.seed = number()?,
                "--at-once" => read.at_once = number()?.max(1),
                "--background" => read.kinds = vec![Kind::Background],
                "--embedded" => read.kinds = vec![Kind::Embedded],
                "--both" => read.kinds = vec![Kind::Background, Kind::Embedded],
                "--keep" => read.keep = true,
                _ => return None,
            }
        }
        Some(read)
    }

    /// The host and a runner beside it, as the host looks for one.
    fn programs(dir: &Path) -> std::io::Result<PathBuf> {
        let me = std::env::current_exe()?;
        for (from, to) in [("host-under-test", "host-under-test"), ("chaos-runner", "assistant-runner")] {
            std::fs::copy(me.with_file_name(from), dir.join(to))?;
        }
        Ok(dir.join("host-under-test"))
    }

    pub(super) fn main() -> ExitCode {
        let Some(args) = read(std::env::args().skip(1)) else {
            tell("usage: chaos [--rounds N] [--seed S] [--background|--embedded|--both] [--at-once N] [--keep]");
            return ExitCode::from(2);
        };
        match play(&args) {
            Ok(0) => ExitCode::SUCCESS,
            Ok(_) => ExitCode::FAILURE,
            Err(error) => {
                tell(&format!("chaos cannot go on: {error}"));
                ExitCode::from(2)
            }
        }
    }

    fn play(args: &Args) -> Result<u64, Box<dyn std::error::Error>> {
        let dir = tempfile::Builder::new().prefix("chaos-").tempdir()?.keep();
        let host = programs(&dir)?;
        let totals = Arc::new(Totals::default());
        let (next, played, violations) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let broken: Mutex<Option<String>> = Mutex::default();
        let begun = Instant::now();
        tell(&format!("{} rounds from seed {}, in {}", args.rounds, args.seed, dir.display()));
        let one = |number: u64| {
            let seed = args.seed + number;
            let kind = args.kinds[usize::try_from(seed).unwrap_or(0) % args.kinds.len()];
            let folder = dir.join(seed.to_string());
            let told =
                Round { seed, kind }.play(&folder, &host, &totals).map_err(|error| format!("seed {seed}: {error}"))?;
            for what in &told.violations {
                tell(&format!(
                    "VIOLATION seed {seed} round {number} {kind:?}: {what}\n  kept in {}",
                    told.dir.display()
                ));
            }
            violations.fetch_add(told.violations.len() as u64, Ordering::Relaxed);
            if told.violations.is_empty() && !args.keep {
                std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            }
            let played = played.fetch_add(1, Ordering::Relaxed) + 1;
            if played.is_multiple_of(TELL_EVERY) {
                tell(&format!("{played} rounds in {:.0} s: {}", begun.elapsed().as_secs_f64(), totals.told()));
            }
            Ok::<_, String>(())
        };
        std::thread::scope(|scope| {
            for _ in 0..args.at_once {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= args.rounds {
                            return;
                        }
                        if let Err(error) = one(number) {
                            *broken.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                            next.store(args.rounds, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        if let Some(error) = broken.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error.into());
        }
        let (played, violations) = (played.into_inner(), violations.into_inner());
        if violations == 0 && !args.keep {
            std::fs::remove_dir_all(&dir)?;
        }
        tell(&format!("in {:.0} s: {}", begun.elapsed().as_secs_f64(), totals.told()));
        tell(&format!("{played} rounds, {violations} violations"));
        Ok(violations)
    }
}
