//! The report, for people.

use super::models::{Known, State};
use super::{Found, Report, Source, launchers, runners, servers};
use crate::cli::{ago, say};
use crate::text::one_line;

/// Characters of the column of names.
const NAMES: usize = 14;

/// Writes the report to stdout.
pub(super) fn tell(report: &Report) {
    row("program", &format!("assistant-host {} ({})", report.version, report.build));
    row("configuration", &place(&report.configuration, "not there: everything is as by default"));
    row("project", &report.project.as_ref().map_or("none".to_owned(), |project| project.display().to_string()));
    row("state", &place(&report.state, "not there yet"));
    let size = report.database_bytes.map_or(String::new(), |bytes| format!(" ({})", crate::cli::size(bytes)));
    row("database", &format!("{}{size}", place(&report.database, "not there yet")));
    row("log", &place(&report.log, "not there yet"));
    row("socket", &place(&report.socket, "not there: no host runs"));
    row("host", &host(report));
    if let Some(runner) = &report.runner {
        let note = if runner.host_itself {
            " (this program; an assistant-runner of the same build beside it needs less memory)"
        } else {
            ""
        };
        row("runner", &format!("{}{note}", runner.program.display()));
    }
    for known in &report.runners {
        row("runner", &runner(known));
    }
    for known in &report.launchers {
        row("launcher", &launcher(known));
    }
    let all = &report.assistants;
    row("assistants", &counts(all.assistants, all.shadowed, all.skipped, all.warnings));
    all.sources.iter().filter(|source| source.there).for_each(|one| row("", &source(one)));
    if all.database > 0 {
        row("", &format!("  database: {}", all.database));
    }
    if all.skipped + all.warnings > 0 {
        row("", "`assistant-host check` tells the reasons");
    }
    if let Some(automatic) = &report.automatic {
        row("automatic", automatic);
    }
    for known in &report.models {
        row("model", &model(known, report.default_model.as_deref()));
    }
    if let Some(environment) = &report.environment {
        row("environment", environment);
    }
    for key in &report.keys {
        row("key", &format!("{} is {}", key.variable, if key.set { "set" } else { "not set" }));
    }
    for known in &report.servers {
        row("server", &server(known));
    }
    for problem in &report.problems {
        say("");
        row("problem", &problem.message);
        row("what to do", &problem.hint);
    }
    for note in &report.notes {
        say("");
        row("note", &note.message);
        row("what to do", &note.hint);
    }
    if report.ok {
        say("");
        say("all is well");
    }
}

fn server(known: &servers::Known) -> String {
    let state = match (&known.tools, known.started_ms) {
        (Some(tools), Some(ms)) => format!("{} tools, started in {ms} ms", tools.len()),
        (None, Some(_)) => "does not start".to_owned(),
        (_, None) => "not started".to_owned(),
    };
    let by = known.reached_by.as_ref().map(|by| format!(" ({by})")).unwrap_or_default();
    format!("{}{by}: {state}", known.name)
}

fn runner(known: &runners::Known) -> String {
    let default = if known.default { " (default)" } else { "" };
    let state = match (&known.told, known.started_ms) {
        (Some(told), Some(ms)) => format!("{} {}, started in {ms} ms", told.name, told.version).replace(" ,", ","),
        (None, Some(_)) => "does not work".to_owned(),
        (_, None) => "not started".to_owned(),
    };
    let agent = known.agent.as_ref().map(|version| format!(", {version}")).unwrap_or_default();
    format!("{}{default} ({}{agent}): {state}", known.name, known.command)
}

fn launcher(known: &launchers::Known) -> String {
    let default = if known.default { " (default)" } else { "" };
    let state = match (&known.error, known.started_ms) {
        (Some(_), None) => "is not here".to_owned(),
        (Some(_), Some(_)) => "does not work".to_owned(),
        (None, Some(ms)) => format!("started a runner in {ms} ms"),
        (None, None) => "not started".to_owned(),
    };
    format!("{}{default} ({}): {state}", known.name, known.by)
}

fn row(name: &str, text: &str) {
    say(&format!("{name:<NAMES$} {}", one_line(text)));
}

fn place(found: &Found, absent: &str) -> String {
    let path = found.path.display();
    if found.there { path.to_string() } else { format!("{path} ({absent})") }
}

fn host(report: &Report) -> String {
    match (&report.host.status, &report.host.held_by) {
        (Some(status), _) => {
            let (since, clients, living) = (ago(status.opened_at), status.clients, status.living);
            format!("process {}, since {since}, {clients} clients, {living} assistants at work", status.pid)
        }
        (None, Some(pid)) => format!("inside process {pid}"),
        (None, None) => "none runs; a client starts it".to_owned(),
    }
}

fn counts(assistants: usize, shadowed: usize, skipped: usize, warnings: usize) -> String {
    format!("{assistants} ({shadowed} shadowed, {skipped} files skipped, {warnings} warnings)")
}

fn source(one: &Source) -> String {
    let counts = counts(one.assistants, one.shadowed, one.skipped, one.warnings);
    format!("  {} {}: {counts}", one.source, one.path.display())
}

fn model(known: &Known, default: Option<&str>) -> String {
    let default = if default == Some(known.name.as_str()) { " (default)" } else { "" };
    let at = match (&known.provider, known.model.as_str()) {
        (Some(provider), "") => format!(", {provider}"),
        (Some(provider), model) => format!(", {provider} {model}"),
        (None, _) => String::new(),
    };
    let state = match known.state {
        State::Answers => format!("answered in {} ms", known.answered_ms.unwrap_or_default()),
        State::Fails => "does not answer".to_owned(),
        State::Unusable => "cannot be used".to_owned(),
        State::NotAsked => "not asked".to_owned(),
    };
    format!("{}{default}{at}: {state}", known.name)
}
