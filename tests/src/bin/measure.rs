//! How fast it is, on this machine: `cargo build --release -p conformance --bins && target/release/measure [WHAT…]`.
//!
//! WHAT is `sends`, `wake`, `ask`, `poll`, `spawn`, `alive`, `cancel`, `link`, `runners` or
//! `launchers`; left out it is all of them. Each figure is told beside a floor of the same run: what the machine needs for the bare parts of the same work.

use std::path::Path;
use std::process::ExitCode;

use conformance::measure::{batches, beside, crowd, floor, runs, sends, side, talk};
#[cfg(unix)]
use conformance::measure::{launchers, link, runners};
use conformance::timing::tell;

const ALL: [&str; 10] = ["sends", "wake", "ask", "poll", "spawn", "alive", "cancel", "link", "runners", "launchers"];
/// How many are alive at once.
const CROWDS: [usize; 3] = [100, 500, 1_000];

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let done = if wanted == [side::ARGUMENT] {
        side::serve().map_err(|error| error.to_string())
    } else if let Some(done) = asks(&wanted) {
        done
    } else if let Some(unknown) = wanted.iter().find(|one| !ALL.contains(&one.as_str())) {
        Err(format!("`{unknown}` is none of {}", ALL.join(", ")))
    } else {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.map_err(|error| error.to_string()).and_then(|runtime| runtime.block_on(measure(&wanted)))
    };
    let Err(error) = done else { return ExitCode::SUCCESS };
    tell(&error);
    ExitCode::FAILURE
}

async fn measure(wanted: &[String]) -> Result<(), String> {
    let runner = beside("runner-under-test")?;
    batches::count()?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let floor = floor::measure(&runner, folder.path())?;
    tell(&format!("floor: a runner started and ended {:.2} ms, a durable row {:.3} ms", floor.process, floor.row));
    for what in ALL.iter().filter(|what| wanted.is_empty() || wanted.iter().any(|one| one == *what)) {
        match *what {
            "sends" => sends::measure(&runner).await?,
            "wake" => talk::wake(floor).await?,
            "ask" => talk::ask(floor).await?,
            "poll" => runs::poll(&runner).await?,
            "spawn" => runs::spawn(&runner, floor).await?,
            "alive" => {
                for count in CROWDS {
                    crowd::alive(&runner, count).await?;
                }
            }
            "cancel" => crowd::cancel(&runner).await?,
            pipes => by_pipes(pipes, &runner).await?,
        }
    }
    Ok(())
}

/// The asking side of a link that is measured, where that is what this program is to be.
#[cfg(unix)]
fn asks(arguments: &[String]) -> Option<Result<(), String>> {
    let (first, rest) = arguments.split_first()?;
    (first == link::ARGUMENT).then(|| link::asks(rest))
}

#[cfg(unix)]
async fn by_pipes(what: &str, runner: &Path) -> Result<(), String> {
    match what {
        "link" => link::measure(),
        "launchers" => launchers::measure(runner).await,
        _ => runners::measure(runner).await,
    }
}

#[cfg(not(unix))]
fn asks(_: &[String]) -> Option<Result<(), String>> {
    None
}

#[cfg(not(unix))]
async fn by_pipes(what: &str, _: &Path) -> Result<(), String> {
    tell(&format!("`{what}` is left out: it is measured over the pipes of Unix"));
    Ok(())
}
