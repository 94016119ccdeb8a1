//! One subagent, of a file of its own: `mcp serve`, and what is said of such a file and its runs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use assistant_protocol::ids::ProcessId;
use clap::{Args, Subcommand};
use serde_json::json;

use super::check::CheckArgs;
use super::open::{env, runner, trust_dir};
use super::place::LOG_FILE;
use super::serve::{self, refused};
use super::{Cli, Command, FAILED, Failure, Places, USAGE, lines, lint, log, say, system, talk};
use crate::config::paths;
use crate::host::{Host, NotStored, OpenError, Options};
use crate::process_table::Process;
use crate::servers::Environment;
use crate::single::{self, Single, place};
use crate::text::{cut, one_line, utc};
use crate::tools;
use crate::tools::profile::single::{Offer, tool};

/// Runs that are listed.
const RUNS_MAX: u32 = 100;
/// Events that are read at once.
const EVENTS: u32 = 500;
/// Characters of a task on a line.
const TASK_CHARS: usize = 80;

/// What `mcp` does instead of serving all assistants.
#[derive(Subcommand)]
pub(super) enum McpCommand {
    /// Serve one subagent, which the file named by --config defines, as one tool on stdin and stdout
    Serve,
    /// Show the tool that `serve` would serve
    ListTools {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the runs of the subagent, also of those that are served now, or show what one of them did
    Runs(RunsArgs),
}

#[derive(Args)]
pub(super) struct RunsArgs {
    /// The run to show
    run: Option<ProcessId>,
    /// Print JSON, a line each
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
pub(super) enum ConfigCommand {
    /// Tell what is wrong with the file of a subagent or the configuration of a host (--config), else what `check` tells
    Lint(CheckArgs),
}

/// What is asked about the file of a subagent.
pub(super) enum Asked<'a> {
    Serve,
    ListTools {
        json: bool,
    },
    Runs(&'a RunsArgs),
    Lint(&'a CheckArgs),
    /// The same of the configuration of a host.
    LintHost(&'a CheckArgs),
}

/// What a command asks about the file of a subagent, and that file; none where it asks about something else.
pub(super) fn asked(cli: &Cli) -> Option<(Asked<'_>, Option<PathBuf>)> {
    let named = cli.places.config.clone();
    let lints = matches!(cli.command, Command::Config { .. });
    let meant = named.clone().filter(|file| single::is_meant(file));
    match &cli.command {
        Command::Mcp(args) => match &args.command {
            Some(McpCommand::Serve) => Some((Asked::Serve, named)),
            Some(McpCommand::ListTools { json }) => Some((Asked::ListTools { json: *json }, named)),
            Some(McpCommand::Runs(args)) => Some((Asked::Runs(args), named)),
            None => meant.map(|file| (Asked::Serve, Some(file))),
        },
        Command::Tools(args) => meant.map(|file| (Asked::ListTools { json: args.json }, Some(file))),
        Command::Check(args) | Command::Config { command: ConfigCommand::Lint(args) } => {
            match args.file().filter(|file| single::is_one(file)).map(Path::to_owned).or(meant) {
                Some(file) => Some((Asked::Lint(args), Some(file))),
                None => named.filter(|_| lints && args.names_nothing()).map(|file| (Asked::LintHost(args), Some(file))),
            }
        }
        _ => None,
    }
}

/// Does what is asked, but for serving.
pub(super) fn answer(asked: &Asked<'_>, file: Option<PathBuf>, places: &Places) -> Result<u8, Failure> {
    let file = named(file)?;
    match asked {
        Asked::Lint(args) => Ok(lint::tell(&file, &single::read(&file, &env).findings, args)),
        Asked::LintHost(args) => Ok(lint::tell(&file, &lint::of_host(&file), args)),
        Asked::ListTools { json } => list_tools(&file, *json),
        Asked::Runs(args) => runs(&folder(&file, places)?, args),
        Asked::Serve => Ok(0),
    }
}

/// The file, absolute.
fn named(file: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let file = file.ok_or_else(|| {
        Failure::new(USAGE, "--config FILE is missing: it names the file of the subagent, with a key `subagent`")
    })?;
    std::path::absolute(&file).map_err(|error| Failure::new(USAGE, format!("--config {}: {error}", file.display())))
}

/// The subagent of a file that has to be in order; what is odd is told.
fn load(file: &Path) -> Result<Single, Failure> {
    let read = single::read(file, &env);
    for odd in read.findings.iter().filter(|finding| finding.warning) {
        talk(&format!("warning: {}", odd.in_words(file)));
    }
    let wrong: Vec<String> =
        read.findings.iter().filter(|finding| !finding.warning).map(|finding| finding.in_words(file)).collect();
    read.single.ok_or_else(|| Failure::new(USAGE, wrong.join("\n")))
}

/// Where the servers of a file keep their runs.
fn folder(file: &Path, places: &Places) -> Result<PathBuf, Failure> {
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    match &places.state {
        Some(state) => super::open::absolute(state),
        None => paths::subagent_dir(&env, &real).map_err(|error| Failure::new(USAGE, error)),
    }
}

fn list_tools(file: &Path, json: bool) -> Result<u8, Failure> {
    let read = single::read(file, &env);
    let wrong = read.findings.iter().filter(|finding| !finding.warning).map(|finding| finding.in_words(file));
    let single = match read.single {
        Some(single) => single,
        None => return Err(Failure::new(USAGE, wrong.collect::<Vec<_>>().join("\n"))),
    };
    let tool = tool(&Arc::new(Offer::new(&single, None)));
    if json {
        say(&json!({ "tools": [tools::listed(&tool)] }).to_string());
    } else {
        say(&format!("{:<32} {}", tool.name, cut(&one_line(&tool.description), TASK_CHARS)));
    }
    Ok(0)
}

fn runs(folder: &Path, args: &RunsArgs) -> Result<u8, Failure> {
    let Some(id) = args.run else {
        for run in place::runs(folder, RUNS_MAX) {
            say(&if args.json { json!(run).to_string() } else { line(&run) });
        }
        return Ok(0);
    };
    let run = place::run(folder, id).ok_or_else(|| Failure::new(FAILED, format!("no run has the id {id}")))?;
    if !args.json {
        say(&line(&run));
    }
    let mut after = 0;
    loop {
        let events = place::trace(folder, id, after, EVENTS);
        let Some(last) = events.last() else { return Ok(0) };
        after = last.seq;
        for event in &events {
            if args.json {
                say(&json!(event).to_string());
            } else if let Some(told) = lines::event(event.kind.name(), &event.data) {
                say(&format!("{}  {told}", utc(event.at)));
            }
        }
    }
}

/// `019…  review_changes  finished  2026-11-28 …  the task`.
fn line(run: &Process) -> String {
    let task = cut(&one_line(&run.query), TASK_CHARS);
    let name = run.label.as_deref().unwrap_or(&run.assistant_id);
    format!("{}  {:<24} {:<9} {}  {task}", run.id, one_line(name), run.status.name(), utc(run.created_at))
}

/// Serves the subagent of a file to one client.
pub(super) async fn serve(file: Option<PathBuf>, places: &Places) -> Result<u8, Failure> {
    let stop = serve::stop_on_signal();
    serve::outlive_file_size_limits();
    let file = named(file)?;
    let single = load(&file)?;
    let folder = folder(&file, places)?;
    let (host, state) = open(&single, &folder).await?;
    log::start(Some((&state.join(LOG_FILE), log::Stderr::ForPeople)));
    if let Err(error) = define(&host, &single).await {
        host.close().await;
        return Err(Failure::new(FAILED, error));
    }
    tracing::info!(pid = std::process::id(), file = %file.display(), state = %state.display(), tool = single.name, "serving");
    let offer = Arc::new(Offer::new(&single, Some(folder)));
    serve::one_client(host, crate::tools::profile::Profile::Single(offer), stop).await
}

/// Opens a host in the first place of the folder that no other server has.
async fn open(single: &Single, folder: &Path) -> Result<(Host, PathBuf), Failure> {
    let runner = runner().await?;
    let adopts_orphans = system::prepare();
    let cwd =
        std::env::current_dir().map_err(|error| Failure::new(USAGE, format!("there is no working folder: {error}")))?;
    let is_key = |name: &String| single.key_variables.contains(name);
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    let inherited: BTreeMap<String, String> =
        std::env::vars_os().filter_map(text).filter(|(name, _)| !is_key(name)).collect();
    for state in place::all(folder) {
        let mut options = Options::new(state.clone(), runner.clone());
        options.adopts_orphans = adopts_orphans;
        options.lock_wait = Duration::ZERO;
        options.log = Some(state.join(LOG_FILE));
        options.trust = trust_dir();
        options.project = Some(cwd.clone());
        options.watch = false;
        options.models = single.models.clone();
        options.strict_models = true;
        options.limits = single.config.limits;
        // What the file lists for a server is the user's word, keys too; nothing else gives it one.
        options.environment = Environment::new(env);
        options.key_variables.clear();
        options.server_variables.clone_from(&inherited);
        match Host::open(options).await {
            Ok(host) => return Ok((host, state)),
            Err(OpenError::Held { .. }) => {}
            Err(error) => return Err(refused(&error)),
        }
    }
    let most = place::PLACES_MAX;
    let message = format!("{most} servers of {} run, the most there can be; end some", single.file.display());
    Err(Failure::new(FAILED, message))
}

/// Makes the subagent the only assistant of its host.
async fn define(host: &Host, single: &Single) -> Result<(), NotStored> {
    let before: Vec<_> = host.registry().assistants().iter().map(|known| known.id.clone()).collect();
    for id in before.iter().filter(|id| **id != single.definition.id) {
        host.remove_assistant(id).await?;
    }
    if before.contains(&single.definition.id) {
        host.update_assistant(single.definition.clone()).await
    } else {
        host.create_assistant(single.definition.clone()).await
    }
}
