//! The command line. stdout is data, stderr is talk.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};

use crate::registry::Source;
use crate::tools::profile::Profile;

mod automatic;
mod catalog;
mod change;
mod check;
mod client;
mod colour;
mod completions;
mod conformance;
mod demo;
mod detach;
mod doctor;
mod explain;
mod export;
mod extras;
mod import;
mod line;
mod lines;
mod lint;
mod live;
mod log;
mod logins;
mod logs;
mod new;
mod open;
mod pipe;
mod place;
mod processes;
mod prompt;
mod ps;
mod remove;
mod replay;
mod report;
mod run;
mod seat;
mod serve;
mod setup;
mod show;
mod single;
mod spawn;
mod start;
mod steer;
mod system;
mod talk;
mod trust;
mod vacuum;
mod wait;
mod within;
mod words;
mod worktrees;

use words::{ago, counted, now_ms, shown, size};

/// What a command ends with when it fails.
const FAILED: u8 = 1;
/// Wrong usage or configuration.
const USAGE: u8 = 2;
/// The profile of whoever names none.
const ORCHESTRATOR: &str = Profile::AT_A_DOOR[0];

/// Gives any MCP client a staff of assistants: search for one, start it, talk to it, get its result.
#[derive(Parser)]
#[command(name = "assistant-host", version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    places: Places,
    #[command(subcommand)]
    command: Command,
}

/// Where things are; before or after the command.
#[derive(Args, Clone, Default)]
struct Places {
    /// The configuration file [default: assistant-host/config.toml in the configuration folder]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The state directory [default: one for each project]
    #[arg(long, global = true, value_name = "DIR")]
    state: Option<PathBuf>,
    /// The project folder [default: CLAUDE_PROJECT_DIR, else the repository around the working folder]
    #[arg(long, global = true, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Belong to no project
    #[arg(long, global = true, conflicts_with = "project")]
    no_project: bool,
    /// Read assistants from here instead of the usual folders; may be repeated
    #[arg(long, global = true, value_name = "DIR")]
    assistants: Vec<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Serve an MCP client on stdin and stdout: a pipe to the host of the state directory, which it starts if need be
    Mcp(McpArgs),
    /// Be the host of the state directory, in the foreground
    Serve(serve::ServeArgs),
    /// Tell whether a host runs for the state directory, and what it does
    Status(steer::StatusArgs),
    /// End the host of the state directory
    Stop(steer::StopArgs),
    /// Find an assistant for a task, run it, and print its result
    Run(run::RunArgs),
    /// Start assistants that live on when this command has ended
    Spawn(spawn::SpawnArgs),
    /// Go on with processes that have ended
    Resume(spawn::ResumeArgs),
    /// Say something to a process at work
    Send(talk::SendArgs),
    /// List the questions that wait for an answer
    Questions(talk::QuestionsArgs),
    /// Answer a question
    Reply(talk::ReplyArgs),
    /// End processes and all below them
    Cancel(talk::CancelArgs),
    /// List the processes, as trees
    Ps(ps::PsArgs),
    /// Show what a process did
    Logs(logs::LogsArgs),
    /// Play a recorded run again, without a model: is every request of the runner the same?
    Replay(replay::ReplayArgs),
    /// Wait until processes have ended
    Wait(wait::WaitArgs),
    /// Sum up what was done, how it ended and what it cost
    Report(report::ReportArgs),
    /// List the assistants
    List(catalog::ListArgs),
    /// Tell what was made of each file of an assistant, like a compiler: with place, reason and what to do
    Check(check::CheckArgs),
    /// Find assistants for a task
    Search(catalog::SearchArgs),
    /// Tell why an assistant has its place among the hits of a query, word by word
    Explain(explain::ExplainArgs),
    /// Show all about one assistant
    Show(show::ShowArgs),
    /// Make an assistant from a template
    New(new::NewArgs),
    /// Remove assistants: those of the database, and with --file those of files
    Remove(remove::RemoveArgs),
    /// Take in assistants of other systems: files, or folders with any number of them
    Import(import::ImportArgs),
    /// Write assistants to files that read the same
    Export(export::ExportArgs),
    /// Look at configuration files
    Config {
        /// What to do
        #[command(subcommand)]
        command: single::ConfigCommand,
    },
    /// List the tools that clients and assistants get
    #[command(alias = "list-tools")]
    Tools(catalog::ToolsArgs),
    /// Print the section for a system prompt that tells which subagents there are
    Prompt(prompt::PromptArgs),
    /// Show what the project's assistants would run on this machine, and allow it by name
    Trust(trust::TrustArgs),
    /// Tell what is used here, whether it works, and what to do where it does not
    Doctor(doctor::DoctorArgs),
    /// Remove what was kept for long enough, and give its space back
    Vacuum(vacuum::VacuumArgs),
    /// List the git worktrees that assistants have left, or remove some
    Worktrees(worktrees::WorktreesArgs),
    /// Make an MCP client start this program: print the entry for it, or write it into its file; `model`: reach models
    Setup(setup::SetupArgs),
    /// Write what a shell needs to complete these commands
    Completions(completions::CompletionsArgs),
    /// Try a runner: whether it keeps the rules of the runner protocol
    Conformance(conformance::ConformanceArgs),
    /// Show the main job on a scripted model, with real processes, in a few seconds
    Demo,
}

#[derive(Args)]
struct McpArgs {
    #[command(subcommand)]
    command: Option<single::McpCommand>,
    /// Which tools the client gets: orchestrator (spawn, wait, talk, …) or subagents (run_subagent, check_status, …)
    #[arg(long, value_name = "NAME", value_parser = profiles(), default_value = ORCHESTRATOR)]
    profile: Profile,
    /// Hold the host inside: it ends with this client, and the state directory has no other clients meanwhile
    #[arg(long)]
    embedded: bool,
}

/// Why a command failed: what to say, and the exit code.
struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    fn new(code: u8, message: impl std::fmt::Display) -> Self {
        Self { code, message: message.to_string() }
    }
}

/// The program. The first argument `runner` makes it a runner: nothing of the host is touched then.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if args.get(1).is_some_and(|first| first == "runner") {
        return assistant_runner::main_with(args.into_iter().skip(2));
    }
    let cli = match Cli::try_parse_from(&args) {
        Ok(mut cli) => {
            cli.places.assistants = every_assistants_folder(&args, cli.places.assistants);
            cli
        }
        Err(error) => {
            // Help and version are answers, everything else is wrong usage.
            let code = if error.use_stderr() { USAGE } else { 0 };
            return if error.print().is_ok() { ExitCode::from(code) } else { ExitCode::from(FAILED) };
        }
    };
    let of_subagent = match single::asked(&cli) {
        Some((single::Asked::Serve, file)) => Some(file),
        Some((asked, file)) => return told(single::answer(&asked, file, &cli.places)),
        None => None,
    };
    if of_subagent.is_none() {
        if let Some(ended) = without_runtime(&cli) {
            return told(ended);
        }
        start_log(&cli);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            talk(&format!("assistant-host cannot start: {error}"));
            return ExitCode::from(FAILED);
        }
    };
    let ended = runtime.block_on(async {
        match of_subagent {
            Some(file) => single::serve(file, &cli.places).await,
            None => dispatch(cli).await,
        }
    });
    // A thread may still wait for stdin; nobody waits for it.
    runtime.shutdown_background();
    told(ended)
}

/// Commands that are a pipe, or a question: they need none of the host, and start in no time.
fn without_runtime(cli: &Cli) -> Option<Result<u8, Failure>> {
    match &cli.command {
        Command::Mcp(args) if !args.embedded => Some(pipe::mcp(&cli.places, &args.profile)),
        Command::Serve(args) if args.detach => Some(detach::detach(&cli.places)),
        Command::Status(args) => Some(steer::status(&cli.places, args)),
        Command::Stop(args) => Some(steer::stop(&cli.places, args)),
        Command::Trust(args) => Some(trust::trust(&cli.places, args)),
        Command::Setup(args) if args.command.is_none() => Some(setup::setup(&cli.places, args)),
        Command::Completions(args) => Some(completions::completions(args)),
        _ => None,
    }
}

fn told(ended: Result<u8, Failure>) -> ExitCode {
    match ended {
        Ok(0) if UNSAID.load(Ordering::Relaxed) => ExitCode::from(FAILED),
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            talk(&failure.message);
            ExitCode::from(failure.code)
        }
    }
}

/// All folders of `--assistants`: clap keeps only those behind the command where some stand before it too.
fn every_assistants_folder(args: &[OsString], parsed: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut rest = args.iter().skip(1).take_while(|arg| *arg != "--");
    while let Some(arg) = rest.next() {
        if arg == "--assistants" {
            found.extend(rest.next().map(PathBuf::from));
        } else if let Some(folder) = arg.to_str().and_then(|arg| arg.strip_prefix("--assistants=")) {
            found.push(folder.into());
        }
    }
    if found.len() > parsed.len() { found } else { parsed }
}

async fn dispatch(cli: Cli) -> Result<u8, Failure> {
    let places = cli.places;
    match cli.command {
        Command::Mcp(args) => serve::embedded(&places, args.profile).await,
        Command::Serve(args) => serve::serve(&places, &args).await,
        Command::Status(args) => steer::status(&places, &args),
        Command::Stop(args) => steer::stop(&places, &args),
        Command::Run(args) => run::run(&places, args).await,
        Command::Ps(args) => ps::ps(&places, &args).await,
        Command::Logs(args) => logs::logs(&places, &args).await,
        Command::Replay(args) => replay::replay(&places, args).await,
        Command::Wait(args) => wait::wait(&places, &args).await,
        Command::Report(args) => report::report(&places, &args).await,
        Command::Spawn(args) => spawn::spawn(&places, &args).await,
        Command::Resume(args) => spawn::resume(&places, &args).await,
        Command::Send(args) => talk::send(&places, &args).await,
        Command::Questions(args) => talk::questions(&places, &args).await,
        Command::Reply(args) => talk::reply(&places, &args).await,
        Command::Cancel(args) => talk::cancel(&places, &args).await,
        Command::List(args) => catalog::list(&places, &args),
        Command::Check(args) | Command::Config { command: single::ConfigCommand::Lint(args) } => {
            check::check(&places, &args)
        }
        Command::Search(args) => catalog::search(&places, &args),
        Command::Explain(args) => explain::explain(&places, &args),
        Command::Show(args) => show::show(&places, &args),
        Command::New(args) => new::new(&places, &args).await,
        Command::Remove(args) => remove::remove(&places, &args).await,
        Command::Import(args) => import::import(&places, &args).await,
        Command::Export(args) => export::export(&places, &args),
        Command::Tools(args) => catalog::tools(&places, &args).await,
        Command::Prompt(args) => prompt::prompt(&places, &args),
        Command::Doctor(args) => doctor::doctor(&places, &args).await,
        Command::Vacuum(args) => vacuum::vacuum(&places, &args).await,
        Command::Worktrees(args) => worktrees::worktrees(&places, &args).await,
        Command::Trust(args) => trust::trust(&places, &args),
        Command::Setup(args) => match &args.command {
            Some(setup::SetupCommand::Model(args)) => setup::model(&places, args).await,
            None => setup::setup(&places, &args),
        },
        Command::Completions(args) => completions::completions(&args),
        Command::Conformance(args) => conformance::conformance(&args).await,
        Command::Demo => demo::demo().await,
    }
}

/// Starts the log: to stderr, and for a command that is a host to its file.
fn start_log(cli: &Cli) {
    let stderr = match &cli.command {
        Command::Serve(args) if args.background => log::Stderr::IsTheLog,
        Command::Serve(_) | Command::Mcp(_) => log::Stderr::ForPeople,
        _ => return log::start(None),
    };
    // What is wrong with the place is told by whoever opens the host.
    let Ok(place) = place::Place::find(&cli.places) else { return log::start(None) };
    match crate::host::make_private(&place.state) {
        Ok(()) => log::start(Some((&place.log(), stderr))),
        Err(_) => log::start(None),
    }
}

/// Data that could not be written: the command has failed, whatever it did.
static UNSAID: AtomicBool = AtomicBool::new(false);

/// Writes data to stdout. A reader that has gone wants no more.
fn say(text: &str) {
    let mut stdout = std::io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => tracing::debug!("nobody reads stdout"),
        Err(error) => {
            if !UNSAID.swap(true, Ordering::Relaxed) {
                talk(&format!("stdout cannot be written: {error}"));
            }
        }
    }
}

/// Writes talk to stderr; where that is closed there is nobody to tell.
fn talk(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Profiles whose name is all that they need.
fn profiles() -> impl TypedValueParser<Value = Profile> {
    PossibleValuesParser::new(Profile::AT_A_DOOR)
        .try_map(|name| Profile::at_a_door(&name).ok_or("there is no such profile"))
}

/// Where assistants come from, by the names of JSON.
fn sources() -> impl TypedValueParser<Value = Source> {
    let names = PossibleValuesParser::new(Source::ALL.map(Source::label));
    names.try_map(|name| Source::ALL.into_iter().find(|one| one.label() == name).ok_or("there is no such source"))
}
