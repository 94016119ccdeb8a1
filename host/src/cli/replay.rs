//! `assistant-host replay`: a recorded run again, with no model, no tools and no network. It takes no lock and starts no
//! host.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use assistant_protocol::ids::ProcessId;
use clap::Args;
use serde_json::json;

use super::open::{self, Setting};
use super::run::CANCELLED;
use super::serve::signal;
use super::{Failure, Places, USAGE, say, talk};
use crate::events::recorded;
use crate::launcher::RunnerCommand;
use crate::replay::{How, Recording, WAIT, replay_until};
use crate::runners;
use crate::store;

/// What `replay` ends with where something differs.
const DIFFERS: u8 = 1;
/// Processes that an ambiguous part of an id names at most.
const NAMED_MAX: u32 = 10;
/// Characters of a part of an id at least; fewer would hit by chance.
const PART_CHARS_MIN: usize = 6;

#[derive(Args)]
pub(super) struct ReplayArgs {
    /// The process, the beginning or the end of its id, or the file of a recording
    #[arg(value_name = "PROCESS|FILE")]
    what: String,
    /// The runner: a name of the configuration, or a program, whose arguments go behind `--` [default: the one that the
    /// process had]
    #[arg(long, value_name = "NAME|PROGRAM")]
    runner: Option<PathBuf>,
    /// Write the recording to this file, and play nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runner", "command"])]
    save: Option<PathBuf>,
    /// Play what is recorded of a process that still runs
    #[arg(long)]
    so_far: bool,
    /// How long the next request of the runner is waited for
    #[arg(long, value_name = "MS", default_value_t = u64::try_from(WAIT.as_millis()).unwrap_or(u64::MAX))]
    wait_ms: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The runner with its arguments, or the arguments of --runner
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(super) async fn replay(places: &Places, args: ReplayArgs) -> Result<u8, Failure> {
    let cannot = |error: &dyn std::fmt::Display| Failure::new(USAGE, error);
    let recording = recording(places, &args.what)?;
    if recording.still_runs() && !args.so_far {
        let (process, status) = (recording.process_id, &recording.status);
        let message = format!(
            "the process {process} is {status}: `assistant-host wait {process}` waits for its end, and --so-far takes what is \
             recorded now"
        );
        return Err(Failure::new(USAGE, message));
    }
    if let Some(file) = &args.save {
        recording.write_file(file).map_err(|error| cannot(&error))?;
        let steps = recording.steps.len();
        talk(&format!("{}: {} of process {}", file.display(), super::counted(steps, "step"), recording.process_id));
        return Ok(0);
    }
    let runner = runner(places, &recording, args.runner, args.command).await?;
    let how = How { wait: Duration::from_millis(args.wait_ms.max(1)), ..How::default() };
    // A runner that heeds nothing would outlive this program.
    let Some(played) = replay_until(&recording, &runner, how, signal()).await else { return Ok(CANCELLED) };
    let report = played.map_err(|error| cannot(&error))?;
    if args.json {
        let mut told = json!(report);
        told["identical"] = report.identical().into();
        say(&told.to_string());
    } else {
        say(&report.to_string());
    }
    Ok(if report.identical() { 0 } else { DIFFERS })
}

/// The recording that is meant: a file where there is one of that name, else a process of the store.
fn recording(places: &Places, what: &str) -> Result<Recording, Failure> {
    let cannot = |error: &dyn std::fmt::Display| Failure::new(USAGE, error);
    let file = Path::new(what);
    let means_a_file = file.components().count() > 1 || file.extension().is_some() || file.is_absolute();
    if file.is_file() || means_a_file {
        return Recording::read_file(file).map_err(|error| cannot(&error));
    }
    let state = Setting::read(places)?.state()?;
    Recording::read(&state, process(&state, what)?).map_err(|error| cannot(&error))
}

fn process(state: &Path, what: &str) -> Result<ProcessId, Failure> {
    let part = what.trim().to_ascii_lowercase();
    if let Ok(id) = part.parse() {
        return Ok(id);
    }
    if part.chars().count() < PART_CHARS_MIN {
        let message =
            format!("`{part}` is neither a file nor enough of an id: give at least {PART_CHARS_MIN} characters");
        return Err(Failure::new(USAGE, message));
    }
    let found = store::peek(state, |db| recorded::named(db, &part, NAMED_MAX));
    let found = found.map_err(|error| Failure::new(USAGE, error))?.unwrap_or_default();
    match found.as_slice() {
        [one] => one.parse().map_err(|error| Failure::new(USAGE, error)),
        [] => Err(Failure::new(
            USAGE,
            format!("no process has an id that begins or ends with `{part}`; `assistant-host ps` lists them"),
        )),
        many => {
            let listed: String = many.iter().map(|id| format!("\n  {id}")).collect();
            Err(Failure::new(USAGE, format!("several processes fit `{part}`: give more of the id{listed}")))
        }
    }
}

/// The runner that is asked for, or the one that the process had.
async fn runner(
    places: &Places,
    recording: &Recording,
    asked: Option<PathBuf>,
    command: Vec<OsString>,
) -> Result<RunnerCommand, Failure> {
    let configured = || -> Result<_, Failure> {
        let runners = Setting::read(places)?.config.runners(&open::env);
        runners.map_err(|error| Failure::new(USAGE, error))
    };
    let mut command = command.into_iter();
    let name = match (asked, &recording.runner) {
        // A path is no name, and needs no configuration.
        (Some(asked), _) => match asked.to_str().filter(|name| !name.contains(std::path::is_separator)) {
            Some(name) if name == runners::OWN || configured()?.contains_key(name) => name.to_owned(),
            _ => return Ok(RunnerCommand { program: asked, args: command.collect() }),
        },
        (None, had) => match (command.next(), had) {
            (Some(program), _) => return Ok(RunnerCommand { program: program.into(), args: command.collect() }),
            (None, Some(had)) => had.clone(),
            (None, None) => runners::OWN.to_owned(),
        },
    };
    let found = match name.as_str() {
        runners::OWN => Some(open::runner().await?),
        name => match configured()?.remove(name) {
            Some(runner) if runner.is_agent() => {
                let message = format!(
                    "the runner `{name}` is an agent, which asks its model and calls its tools by itself: it cannot be played"
                );
                return Err(Failure::new(USAGE, message));
            }
            found => found.map(|runner| runner.command(&RunnerCommand::new(runners::OWN))),
        },
    };
    let with_args = |mut runner: RunnerCommand| {
        runner.args.extend(command);
        runner
    };
    found.map(with_args).ok_or_else(|| {
        Failure::new(
            USAGE,
            format!("the process had the runner `{name}`, which is not configured here; --runner names another"),
        )
    })
}
