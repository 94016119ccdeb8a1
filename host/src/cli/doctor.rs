//! `doctor`: what this program works with here, what does not work, and what to do about it. It starts no host.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde::Serialize;

use super::open::{self, Setting};
use super::place::{BUILD, Place};
use super::{FAILED, Failure, Places, start, steer, system};
use crate::config::Config;
use crate::door::Address;
use crate::door::hello::Status;
use crate::model::{Models, variables_of_keys};
use crate::registry::{Definition, Diagnostic, Severity, SourceDir};
use crate::text::cut;
use crate::tools;

mod inside;
mod launchers;
mod models;
mod page;
mod runners;
mod servers;

/// Characters of a list of assistants.
const NAMES_CHARS_MAX: usize = 300;

#[derive(Args)]
pub(super) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Do not ask the models whether they answer, and start no tool servers and no runners
    #[arg(long)]
    no_calls: bool,
}

/// All that was looked at.
#[derive(Serialize)]
struct Report {
    /// Whether everything works.
    ok: bool,
    version: &'static str,
    build: &'static str,
    configuration: Found,
    project: Option<PathBuf>,
    state: Found,
    database: Found,
    /// With the log of its changes.
    database_bytes: Option<u64>,
    log: Found,
    socket: Found,
    host: Host,
    runner: Option<Runner>,
    /// Those that the configuration names.
    runners: Vec<runners::Known>,
    launchers: Vec<launchers::Known>,
    assistants: Assistants,
    /// What is used because nothing is configured, in words.
    automatic: Option<String>,
    /// The model of an assistant that names none.
    default_model: Option<String>,
    models: Vec<models::Known>,
    /// Whose variables were looked at, where the host that runs may have other ones.
    environment: Option<String>,
    keys: Vec<Key>,
    servers: Vec<servers::Known>,
    problems: Vec<Problem>,
    /// What works and is worth mending.
    notes: Vec<Problem>,
}

/// A file or a folder.
#[derive(Serialize)]
struct Found {
    path: PathBuf,
    there: bool,
}

impl Found {
    fn at(path: PathBuf) -> Self {
        Self { there: path.exists(), path }
    }
}

/// Who has the state directory.
#[derive(Serialize)]
struct Host {
    running: bool,
    /// The process that holds the directory without a door.
    held_by: Option<String>,
    same_build: Option<bool>,
    status: Option<Status>,
}

#[derive(Serialize)]
struct Runner {
    program: PathBuf,
    /// Whether the host acts as its own runner, for lack of one of the same build beside it.
    host_itself: bool,
}

#[derive(Serialize, Default)]
struct Assistants {
    assistants: usize,
    shadowed: usize,
    skipped: usize,
    /// Those that the database keeps.
    database: usize,
    /// Findings in files that are worth mending.
    warnings: usize,
    sources: Vec<Source>,
}

/// A folder of assistants.
#[derive(Serialize)]
struct Source {
    source: &'static str,
    path: PathBuf,
    there: bool,
    /// Those that are taken from it.
    assistants: usize,
    shadowed: usize,
    skipped: usize,
    warnings: usize,
}

/// A variable that may hold a key. Its value is nowhere.
#[derive(Serialize)]
struct Key {
    variable: String,
    set: bool,
}

/// What does not work.
#[derive(Serialize)]
struct Problem {
    message: String,
    /// What to do.
    hint: String,
}

impl Report {
    fn problem(&mut self, message: impl std::fmt::Display, hint: impl Into<String>) {
        self.problems.push(Problem { message: message.to_string(), hint: hint.into() });
    }

    /// The same for one that may be of the environment that was looked at.
    fn problem_here(&mut self, message: impl std::fmt::Display, hint: &str) {
        let whose = self.environment.as_ref().map(|whose| format!("; the environment that was looked at is {whose}"));
        self.problem(message, format!("{hint}{}", whose.unwrap_or_default()));
    }
}

pub(super) async fn doctor(places: &Places, args: &DoctorArgs) -> Result<u8, Failure> {
    let report = look(places, !args.no_calls).await?;
    let ok = report.ok;
    if args.json {
        let text = serde_json::to_string(&report).map_err(|error| Failure::new(FAILED, error))?;
        super::say(&text);
    } else {
        page::tell(&report);
    }
    Ok(if ok { 0 } else { FAILED })
}

async fn look(places: &Places, calls: bool) -> Result<Report, Failure> {
    let place = Place::find(places)?;
    let mut report = Report {
        ok: false,
        version: env!("CARGO_PKG_VERSION"),
        build: BUILD,
        configuration: Found::at(place.config.clone()),
        project: place.project.clone(),
        database: Found::at(place.state.join(crate::store::FILE)),
        database_bytes: crate::store::size(&place.state),
        log: Found::at(place.log()),
        socket: Found::at(Address::find(&place.state).path().to_owned()),
        state: Found::at(place.state.clone()),
        host: host(&place),
        runner: None,
        runners: Vec::new(),
        launchers: Vec::new(),
        assistants: Assistants::default(),
        automatic: None,
        default_model: None,
        models: Vec::new(),
        environment: None,
        keys: Vec::new(),
        servers: Vec::new(),
        problems: Vec::new(),
        notes: Vec::new(),
    };
    report.environment = report.host.status.as_ref().map(|status| {
        format!(
            "that of this command; the host that runs (process {}) has that of the client that started it",
            status.pid
        )
    });
    look_at_state(&mut report);
    look_at_runner(&mut report).await;
    match Setting::read(places) {
        Ok(setting) => {
            report.keys = keys(&setting.config);
            report.automatic = setting.automatic.as_ref().map(|automatic| automatic.words.clone());
            look_at_hooks(&mut report, &setting.config);
            look_at_files(&mut report, &setting.config);
            inside::look(&mut report, &setting.config);
            look_at_assistants(&mut report, &setting);
            models::look(&mut report, &setting.config, calls).await;
            servers::look(&mut report, &setting, calls).await;
            runners::look(&mut report, &setting.config, calls).await;
            launchers::look(&mut report, &setting, calls).await;
        }
        Err(failure) => {
            let hint = "mend that first: assistants and models were not looked at";
            report.problem(failure.message, hint);
        }
    }
    report.ok = report.problems.is_empty();
    Ok(report)
}

fn host(place: &Place) -> Host {
    let status = start::status(place);
    let held_by = if status.is_none() { steer::held_without_door(place) } else { None };
    let same_build = status.as_ref().map(|status| status.build == BUILD);
    Host { running: status.is_some(), held_by, same_build, status }
}

fn look_at_state(report: &mut Report) {
    let state = report.state.path.display().to_string();
    if report.state.there && !report.state.path.is_dir() {
        report.problem(format!("{state} is no folder"), "name another one with --state, or move the file away");
    }
    // A directory that is not there yet is made where its parents allow it.
    let nearest = report.state.path.ancestors().find(|folder| folder.exists()).map(Path::to_owned);
    if let Some(folder) = nearest.filter(|folder| folder.is_dir())
        && let Err(error) = tempfile_in(&folder)
    {
        let hint = "name another directory with --state, or make this one writable";
        report.problem(format!("nothing can be written in {}: {error}", folder.display()), hint);
    }
    if let Some(pid) = &report.host.held_by {
        let hint = format!("end process {pid}, or name another directory with --state");
        report.problem(format!("{state} is held by process {pid}, which has no door for others"), hint);
    }
    if report.host.same_build == Some(false) {
        let hint = "`assistant-host stop` ends it when its work is done; the next client starts one of this build";
        report.problem("the host that runs is of another build than this program", hint);
    }
}

/// Whether a file can be made in a folder; it is gone at once.
fn tempfile_in(folder: &Path) -> std::io::Result<()> {
    let file = folder.join(format!(".assistant-host-doctor-{}", std::process::id()));
    std::fs::File::options().write(true).create_new(true).open(&file)?;
    std::fs::remove_file(file)
}

/// A hook whose program is not there fails each time, and only the log tells.
fn look_at_hooks(report: &mut Report, config: &Config) {
    for (name, command) in [("on_end", &config.hooks.on_end), ("on_question", &config.hooks.on_question)] {
        let Some(program) = command.first() else { continue };
        let places: Vec<PathBuf> = match Path::new(program).components().count() {
            1 => std::env::split_paths(&open::env("PATH").unwrap_or_default()).map(|dir| dir.join(program)).collect(),
            _ => vec![PathBuf::from(program)],
        };
        if !places.iter().any(|place| place.is_file()) {
            let hint = "name a program that is there, with its whole path";
            report.problem(format!("the hook {name} names {program}, and there is no such program"), hint);
        }
    }
}

/// Each runner needs files in the host: with too few of them, not all that may run can be started.
fn look_at_files(report: &mut Report, config: &Config) {
    let running = config.limits.running_per_host;
    let needs = u64::from(running) * system::FILES_PER_RUNNER + system::FILES_BESIDE;
    if let Some(most) = system::files().filter(|most| *most < needs) {
        let message =
            format!("limits.running_per_host is {running}, which needs {needs} open files; {most} are allowed");
        report.problem(message, "raise the limit (`ulimit -Hn`), or lower limits.running_per_host");
    }
}

async fn look_at_runner(report: &mut Report) {
    match open::runner().await {
        Ok(command) => {
            report.runner = Some(Runner { host_itself: !command.args.is_empty(), program: command.program });
        }
        Err(failure) => report.problem(failure.message, "install the program anew"),
    }
}

fn look_at_assistants(report: &mut Report, setting: &Setting) {
    let registry = setting.registry();
    let mut sources: Vec<Source> = setting.sources.iter().map(source).collect();
    for one in registry.assistants() {
        let warnings = warnings(&one.warnings);
        report.assistants.warnings += warnings;
        report.assistants.database += usize::from(one.file().is_none());
        if let Some(source) = one.file().and_then(|path| of(&mut sources, path)) {
            source.assistants += 1;
            source.warnings += warnings;
        }
    }
    for one in registry.shadowed() {
        if let Some(source) = one.path.as_deref().and_then(|path| of(&mut sources, path)) {
            source.shadowed += 1;
        }
    }
    for one in registry.skipped() {
        if let Some(source) = of(&mut sources, Path::new(&one.file)) {
            source.skipped += 1;
        }
    }
    report.assistants.assistants = registry.assistants().len();
    report.assistants.shadowed = registry.shadowed().len();
    report.assistants.skipped = registry.skipped().len();
    report.assistants.sources = sources;
    look_at_their_places(report, setting, registry.assistants());
    if registry.assistants().is_empty() {
        let folder = setting.sources.first().map(|source| source.path.display().to_string()).unwrap_or_default();
        let hint = format!("put definitions (.md files) into {folder}, or name a folder of them with --assistants");
        report.problem("there are no assistants", hint);
    }
}

/// Whether the runners and launchers that they name are there.
fn look_at_their_places(report: &mut Report, setting: &Setting, assistants: &[Arc<Definition>]) {
    // What is wrong with the models is told elsewhere.
    let Ok(models) = Models::from_config(&setting.config, &open::env) else { return };
    let table = tools::table(&setting.config.limits);
    let stock = setting.stock(&table, &models);
    let cannot = assistants.iter().filter(|one| stock.outfit(one).cannot_start()).map(|one| one.id.to_string());
    let cannot: Vec<String> = cannot.collect();
    if !cannot.is_empty() {
        let names = cut(&cannot.join(", "), NAMES_CHARS_MAX);
        let message =
            format!("these assistants name a runner or a launcher that is not there, and cannot start: {names}");
        report.problem(message, "`assistant-host check` tells which; correct the definitions, or configure them");
    }
}

fn source(dir: &SourceDir) -> Source {
    Source {
        source: dir.source.label(),
        path: dir.path.clone(),
        there: dir.path.is_dir(),
        assistants: 0,
        shadowed: 0,
        skipped: 0,
        warnings: 0,
    }
}

/// The folder that a file was read from: the deepest, where one is inside another.
fn of<'a>(sources: &'a mut [Source], file: &Path) -> Option<&'a mut Source> {
    let inside = sources.iter_mut().filter(|source| file.starts_with(&source.path));
    inside.max_by_key(|source| source.path.components().count())
}

fn warnings(found: &[Diagnostic]) -> usize {
    found.iter().filter(|one| one.severity != Severity::Info).count()
}

/// The variables of the configuration, and those of the providers.
fn keys(config: &Config) -> Vec<Key> {
    let mut names = config.key_variables();
    names.extend(variables_of_keys());
    names.sort();
    names.dedup();
    let set = |name: &str| open::env(name).is_some_and(|key| !key.trim().is_empty());
    names.into_iter().map(|variable| Key { set: set(&variable), variable }).collect()
}
