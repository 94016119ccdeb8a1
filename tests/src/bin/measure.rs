//! How fast it is, on this machine: `cargo build --release -p conformance --bins && target/release/measure [WHAT…]`.
//!
//! WHAT is `sends`, `wake`, `ask`, `poll`, `spawn`, `alive` or `cancel`; left out it is all of them. Each figure is told
//! beside a floor of the same run: what the machine needs for the bare parts of the same work.

use std::process::ExitCode;

use conformance::measure::{batches, beside, crowd, floor, runs, sends, side, talk};
use conformance::timing::tell;

const ALL: [&str; 7] = ["sends", "wake", "ask", "poll", "spawn", "alive", "cancel"];
/// How many are alive at once.
const CROWDS: [usize; 3] = [100, 500, 1_000];

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let done = if wanted == [side::ARGUMENT] {
        side::serve().map_err(|error| error.to_string())
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
            _ => crowd::cancel(&runner).await?,
        }
    }
    Ok(())
}
