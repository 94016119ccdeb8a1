//! `check`: what was made of each file, like a compiler's diagnostics. It takes no lock and starts no host.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use super::colour::Colour;
use super::open::{Setting, env, trust_dir};
use super::{Failure, Places, USAGE, counted, say, shown, talk};
use crate::model::Models;
use crate::registry::{self, Code, Definition, Diagnostic, Layout, Registry, Severity, Shadowed, Source, SourceDir};
use crate::text::{cut, one_line};
use crate::tools;
use crate::tools::outfit::Stock;
use crate::trust::{self, Book};

mod codes;
mod excerpt;
mod place;

/// What `check` ends with where there are warnings and `--strict`.
const WARNED: u8 = 1;
/// What `check` ends with where there are errors.
const BROKEN: u8 = 2;
/// Names of missing tools, and of models, that the summary has.
const MISSED_MAX: usize = 12;

#[derive(Args)]
pub(super) struct CheckArgs {
    /// A folder of assistants, a project, or one file [default: everything that is read here]
    dir: Option<PathBuf>,
    /// End with 1 where there are warnings
    #[arg(long)]
    strict: bool,
    /// Show also what is only worth knowing; JSON has it anyway
    #[arg(long)]
    all: bool,
    /// One line for each finding
    #[arg(long, conflicts_with = "json")]
    short: bool,
    /// Show only findings of this code, in JSON too; may be repeated. Totals and exit code are those of all findings
    #[arg(long, value_name = "CODE", value_parser = codes::parse, conflicts_with = "all")]
    only: Vec<Code>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Explain all codes, or this one, and do nothing else
    #[arg(long, value_name = "CODE", num_args = 0..=1, value_parser = codes::parse)]
    codes: Option<Option<Code>>,
}

impl CheckArgs {
    /// What is to be checked, where it was named.
    pub(super) fn file(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// Whether neither files nor codes are asked about.
    pub(super) fn names_nothing(&self) -> bool {
        self.dir.is_none() && self.codes.is_none()
    }

    /// Whether JSON is wanted.
    pub(super) fn json(&self) -> bool {
        self.json
    }

    /// The exit code where there are warnings only.
    pub(super) fn code_of_warnings(&self) -> u8 {
        if self.strict { WARNED } else { 0 }
    }
}

/// What a check has found.
struct Checked {
    registry: Registry,
    assistants: Vec<Known>,
    /// By file, line and column.
    findings: Vec<Finding>,
    /// How many assistants ask in vain for a tool.
    missed: BTreeMap<String, usize>,
    /// How many assistants wish in vain for a model.
    replaced: BTreeMap<String, usize>,
}

/// An assistant that was read.
#[derive(Serialize)]
struct Known {
    assistant_id: String,
    name: String,
    source: &'static str,
    path: Option<String>,
    tools: Vec<String>,
    unavailable_tools: Vec<String>,
    /// The model that it would get; null where there is none.
    model: Option<String>,
}

/// A diagnostic, and the file that it is about.
#[derive(Debug, Clone, PartialEq)]
struct Finding {
    path: PathBuf,
    diagnostic: Diagnostic,
}

pub(super) fn check(places: &Places, args: &CheckArgs) -> Result<u8, Failure> {
    if let Some(wanted) = args.codes {
        return Ok(codes::explain(wanted, args.json));
    }
    let mut setting = Setting::read(places)?;
    let mut link = None;
    if let Some(dir) = &args.dir {
        if !places.assistants.is_empty() {
            return Err(Failure::new(USAGE, "a folder to check and --assistants are both given; name one of them"));
        }
        link = link_of(dir, &setting.sources);
        setting.sources = sources_of(dir)?;
    }
    let models = Models::from_config(&setting.config, &env).map_err(|error| Failure::new(USAGE, error))?;
    let table = tools::table(&setting.config.limits);
    let stock = setting.stock(&table, &models);
    let book = Book::at(trust_dir());
    let registry = match args.dir {
        Some(_) => Registry::read(&setting.sources),
        None => setting.registry(),
    };
    let checked = Checked::of(registry, link, &stock, &book);
    if args.json {
        say(&checked.as_json(&args.only).to_string());
    } else {
        checked.tell(args);
        if checked.registry.assistants().is_empty() && args.dir.is_none() {
            talk(&setting.where_read());
        }
        if models.default_name().is_none() {
            talk("no model is configured, so the models that assistants wish for were not looked at");
        }
    }
    let worst = checked.findings.iter().map(|one| one.diagnostic.severity).min();
    Ok(match worst {
        Some(Severity::Error) => BROKEN,
        Some(Severity::Warning) if args.strict => WARNED,
        Some(Severity::Warning | Severity::Info) | None => 0,
    })
}

/// What becomes of a link to a file that was named, where its folder is read: what it leads to is looked at all the same.
fn link_of(path: &Path, sources: &[SourceDir]) -> Option<Diagnostic> {
    if !path.is_symlink() || path.is_dir() {
        return None;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().ok()?;
    let roots = sources.iter().filter_map(|source| source.path.canonicalize().ok());
    let root = roots.filter(|root| folder.starts_with(root)).max_by_key(|root| root.components().count());
    Some(registry::link_in(path, &root.unwrap_or(folder)))
}

/// What is read of a folder or file that was named: the places of a project, where it has any, else everything in it.
fn sources_of(dir: &Path) -> Result<Vec<SourceDir>, Failure> {
    match std::fs::metadata(dir) {
        Ok(_) => {}
        // A link that leads nowhere is a finding like others.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && dir.is_symlink() => return Ok(Vec::new()),
        Err(error) => {
            return Err(Failure::new(USAGE, format!("check {}: {error}", one_line(&dir.to_string_lossy()))));
        }
    }
    let places = registry::places_in(dir);
    if places.is_empty() {
        let layout = Layout::Files;
        return Ok(vec![SourceDir { source: Source::Dir, path: dir.to_owned(), layout, required: true }]);
    }
    let folders: Vec<String> = places.iter().map(|place| place.path.display().to_string()).collect();
    talk(&format!("a project: its assistants are read from {}", one_line(&folders.join(", "))));
    Ok(places)
}

impl Checked {
    fn of(registry: Registry, link: Option<Diagnostic>, stock: &Stock<'_>, book: &Book) -> Self {
        let (mut assistants, mut findings) = (Vec::new(), Vec::new());
        let (mut missed, mut replaced) = (BTreeMap::new(), BTreeMap::new());
        for definition in registry.assistants() {
            let outfit = stock.outfit(definition);
            let of_here = outfit.findings_about(definition, stock.table, &trust::rule(definition, book));
            let of_here = place::put(of_here, definition);
            let unavailable: Vec<String> = outfit.grants.unavailable.into_iter().map(|one| one.tool).collect();
            for tool in &unavailable {
                *missed.entry(tool.clone()).or_insert(0) += 1;
            }
            let told = |code: Code| [Code::ModelReplaced, Code::ModelRefused].contains(&code);
            if of_here.iter().any(|one| told(one.code)) {
                definition.model.iter().take(1).for_each(|wish| *replaced.entry(wish.clone()).or_insert(0) += 1);
            }
            findings.extend(of_file(definition).chain(of_here.into_iter().map(|one| Finding::of(definition, one))));
            assistants.push(Known {
                assistant_id: definition.id.to_string(),
                name: definition.name.clone(),
                source: definition.source.label(),
                path: definition.file().map(shown),
                tools: outfit.grants.tools,
                unavailable_tools: unavailable,
                model: outfit.model.ok().map(|choice| choice.name),
            });
        }
        findings.extend(
            registry
                .shadowed()
                .iter()
                .map(|one| Finding { path: one.path.clone().unwrap_or_default(), diagnostic: one.reason.clone() }),
        );
        findings.extend(
            registry
                .skipped()
                .iter()
                .chain(&link)
                .map(|one| Finding { path: PathBuf::from(&one.file), diagnostic: one.clone() }),
        );
        let key = |one: &Finding| {
            let at = &one.diagnostic;
            (at.file.clone(), at.line, at.column, at.code)
        };
        findings.sort_by_cached_key(key);
        Self { registry, assistants, findings, missed, replaced }
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|one| one.diagnostic.severity == severity).count()
    }

    /// Assistants whose file was not in order.
    fn repaired(&self) -> usize {
        let worth = |one: &&Arc<Definition>| one.warnings.iter().any(|one| one.severity != Severity::Info);
        self.registry.assistants().iter().filter(worth).count()
    }

    fn by_code(&self) -> BTreeMap<Code, usize> {
        let mut counts = BTreeMap::new();
        self.findings.iter().for_each(|one| *counts.entry(one.diagnostic.code).or_insert(0) += 1);
        counts
    }

    /// The whole; of the findings those of the codes `only`, where there are any.
    fn as_json(&self, only: &[Code]) -> Value {
        let all = self.findings.iter().map(|one| &one.diagnostic);
        let diagnostics: Vec<&Diagnostic> = all.filter(|one| only.is_empty() || only.contains(&one.code)).collect();
        let shadowed: &[Shadowed] = self.registry.shadowed();
        let by_code: serde_json::Map<String, Value> =
            self.by_code().into_iter().map(|(code, count)| (code.as_str().to_owned(), json!(count))).collect();
        json!({
            "assistants": self.assistants,
            "diagnostics": diagnostics,
            "shadowed": shadowed,
            "totals": {
                "assistants": self.assistants.len(),
                "repaired": self.repaired(),
                "shadowed": shadowed.len(),
                "skipped": self.registry.skipped().len(),
                "errors": self.count(Severity::Error),
                "warnings": self.count(Severity::Warning),
                "infos": self.count(Severity::Info),
            },
            "by_code": by_code,
        })
    }

    fn tell(&self, args: &CheckArgs) {
        let colour = Colour::of_stdout();
        let cwd = std::env::current_dir().ok();
        // Whoever names a file wants to know all of it.
        let all = args.all || args.dir.as_ref().is_some_and(|dir| dir.is_file());
        let wanted = |one: &&Finding| match args.only.as_slice() {
            [] => all || one.diagnostic.severity != Severity::Info,
            only => only.contains(&one.diagnostic.code),
        };
        let shown: Vec<&Finding> = self.findings.iter().filter(wanted).collect();
        for of_file in shown.chunk_by(|a, b| a.diagnostic.file == b.diagnostic.file) {
            say(&excerpt::of_file(of_file, cwd.as_deref(), args.short, colour));
        }
        self.sum_up(shown.len(), !args.only.is_empty());
    }

    fn sum_up(&self, shown: usize, only: bool) {
        let (errors, warnings) = (self.count(Severity::Error), self.count(Severity::Warning));
        let mut by_code: Vec<_> = self.by_code().into_iter().collect();
        by_code.sort_by_key(|(code, count)| (code.severity(), Reverse(*count)));
        for (code, count) in by_code {
            talk(&format!("{count:>6} {:<7} {:<26} {}", code.severity().label(), code.as_str(), code.meaning()));
        }
        most("tools that assistants ask for in vain", &self.missed);
        most("models that assistants wish for in vain", &self.replaced);
        talk(&format!(
            "{} loaded, {} of them repaired; {} shadowed, {} skipped; {}, {}",
            counted(self.assistants.len(), "assistant"),
            self.repaired(),
            self.registry.shadowed().len(),
            counted(self.registry.skipped().len(), "file"),
            counted(errors, "error"),
            counted(warnings, "warning"),
        ));
        let hidden = self.findings.len() - shown;
        if hidden > 0 {
            let how = if only { "without --only, --all shows everything" } else { "--all shows everything" };
            talk(&format!("{} not shown: {how}", counted(hidden, "finding")));
        }
    }
}

/// Tells the names that most assistants have, most first.
fn most(what: &str, counts: &BTreeMap<String, usize>) {
    let mut names: Vec<_> = counts.iter().map(|(name, count)| (Reverse(*count), name)).collect();
    names.sort();
    if names.is_empty() {
        return;
    }
    let told = names.iter().take(MISSED_MAX).map(|(count, name)| format!("{} {}", one_line(&cut(name, 60)), count.0));
    let more = names.len().saturating_sub(MISSED_MAX);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    talk(&format!("{what}: {}{more}", told.collect::<Vec<_>>().join(", ")));
}

impl Finding {
    fn of(definition: &Definition, diagnostic: Diagnostic) -> Self {
        Self { path: definition.file().map(Path::to_owned).unwrap_or_default(), diagnostic }
    }
}

fn of_file(definition: &Arc<Definition>) -> impl Iterator<Item = Finding> {
    definition.warnings.iter().map(|one| Finding::of(definition, one.clone()))
}
