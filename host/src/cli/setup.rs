//! `setup`: the entry that makes an MCP client start this program, printed or written into the client's own file.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::open::env;
use super::place::Place;
use super::{FAILED, Failure, Places, USAGE, say, talk};
use crate::mcp::SERVER_NAME;

mod clients;
mod edit;
mod file;
mod json;
mod model;
mod toml;
mod yaml;

#[cfg(test)]
mod tests;

use clients::{CLIENTS, Client, Platform};
use edit::{Change, Edited, edit};
pub(super) use model::{ModelArgs, model};

/// The longest name of an entry, bytes; clients put it before the names of tools.
const NAME_BYTES_MAX: usize = 32;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct SetupArgs {
    #[command(subcommand)]
    pub(super) command: Option<SetupCommand>,
    /// The client
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(CLIENTS.iter().map(|client| client.name)))]
    #[arg(required_unless_present = "list", conflicts_with = "list")]
    client: Option<String>,
    /// Write the entry into the client's file; what was there is kept in FILE.bak
    #[arg(long, conflicts_with = "list")]
    write: bool,
    /// The client's file of the project instead of the user's
    #[arg(long, conflicts_with = "list")]
    project_scope: bool,
    /// List the clients, their files, and whether the entry is there
    #[arg(long)]
    list: bool,
    /// The name of the entry
    #[arg(long, default_value = SERVER_NAME, value_parser = name)]
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
pub(super) enum SetupCommand {
    /// Choose how models are reached, try it, and write it into the configuration
    Model(ModelArgs),
}

/// A name that every client takes.
fn name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if text.is_empty() || text.len() > NAME_BYTES_MAX || !text.chars().all(fits) {
        return Err(format!("a name has 1 to {NAME_BYTES_MAX} letters, digits, `-` and `_`"));
    }
    Ok(text.to_owned())
}

/// How the program is to be started.
struct Start {
    program: String,
    args: Vec<String>,
}

impl Start {
    /// This program, with the places that were named: absolute, because a client starts it from anywhere.
    fn find(places: &Places, place: &Place) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(|error| Failure::new(FAILED, error))?;
        let mut args = vec!["mcp".to_owned()];
        let mut flag = |name: &str, path: &Path| {
            args.extend([name.to_owned(), text(path)?]);
            Ok::<(), Failure>(())
        };
        if places.state.is_some() {
            flag("--state", &place.state)?;
        }
        if let Some(config) = &place.asked.config {
            flag("--config", config)?;
        }
        if let Some(project) = &place.asked.project {
            flag("--project", project)?;
        }
        place.asked.assistants.iter().try_for_each(|folder| flag("--assistants", folder))?;
        if places.no_project {
            args.push("--no-project".to_owned());
        }
        Ok(Self { program: text(&program)?, args })
    }
}

fn text(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        Failure::new(USAGE, format!("{}: a client's file has no way to write this path", path.display()))
    })
}

/// A client's file, and what our entry would change in it.
struct Found {
    client: &'static Client,
    file: PathBuf,
    scope: &'static str,
    fields: Vec<(&'static str, Value)>,
    /// What is in the file; none where there is no file.
    old: Option<String>,
    /// The text with our entry, or why it cannot be.
    edited: Result<Edited, String>,
}

impl Found {
    fn look(client: &'static Client, file: PathBuf, scope: &'static str, name: &str, start: &Start) -> Self {
        let fields = client.fields(name, &start.program, &start.args);
        let (old, edited) = match file::read(&file) {
            Ok(old) => {
                let text = old.as_deref().unwrap_or_default();
                let edited = edit(client.format, text, client.under, name, &fields);
                (old, edited)
            }
            Err(error) => (None, Err(format!("cannot be read: {error}"))),
        };
        Self { client, file, scope, fields, old, edited }
    }

    /// Whether the entry is there.
    fn state(&self) -> &'static str {
        match (&self.edited, &self.old) {
            (Err(_), _) => "unusable",
            (Ok(_), None) => "no file",
            (Ok(edited), Some(_)) => match edited.change {
                Change::Added => "no entry",
                Change::Updated => "another entry",
                Change::Unchanged => "there",
            },
        }
    }

    fn as_json(&self) -> Value {
        let entry: Map<String, Value> =
            self.fields.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        json!({
            "client": self.client.name, "title": self.client.title, "scope": self.scope, "file": self.file,
            "state": self.state(), "error": self.edited.as_ref().err(), "under": self.client.under, "entry": entry,
        })
    }
}

pub(super) fn setup(places: &Places, args: &SetupArgs) -> Result<u8, Failure> {
    let place = Place::find(places)?;
    let start = Start::find(places, &place)?;
    let Some(client) = args.client.as_deref().and_then(Client::find) else {
        list(&place, args, &start);
        return Ok(0);
    };
    let (file, scope) = match (args.project_scope, &place.project) {
        (false, _) => (user_file(client), "user"),
        (true, Some(project)) => (client.project_file(project), "project"),
        (true, None) => {
            return Err(Failure::new(
                USAGE,
                "there is no project here; name one with --project, or omit --project-scope",
            ));
        }
    };
    let missing = match scope {
        "user" => "no home folder is known; set HOME",
        _ => "this client has no file of a project; omit --project-scope",
    };
    let file = file.ok_or_else(|| Failure::new(USAGE, format!("{}: {missing}", client.title)))?;
    let found = Found::look(client, file, scope, &args.name, &start);
    if args.write { write(&found, args) } else { print(&found, args) }
}

fn user_file(client: &Client) -> Option<PathBuf> {
    client.user_file(Platform::HERE, &env)
}

fn list(place: &Place, args: &SetupArgs, start: &Start) {
    let mut all = Vec::new();
    for client in CLIENTS {
        let user = user_file(client).map(|file| (file, "user"));
        let project = place.project.as_deref().and_then(|project| client.project_file(project));
        let project = project.filter(|file| file.exists()).map(|file| (file, "project"));
        let files = user.into_iter().chain(project);
        all.extend(files.map(|(file, scope)| Found::look(client, file, scope, &args.name, start)));
    }
    if args.json {
        return say(&json!({ "clients": all.iter().map(Found::as_json).collect::<Vec<_>>() }).to_string());
    }
    for found in &all {
        say(&format!("{:<15} {:<14} {}", found.client.name, found.state(), found.file.display()));
        if let Err(why) = &found.edited {
            talk(&format!("{} {why}", found.file.display()));
        }
    }
}

/// Prints the entry as it stands in a file of its own, and tells where it goes.
fn print(found: &Found, args: &SetupArgs) -> Result<u8, Failure> {
    if args.json {
        say(&found.as_json().to_string());
        return Ok(0);
    }
    let alone = edit(found.client.format, "", found.client.under, &args.name, &found.fields);
    let alone = alone.map_err(|why| Failure::new(FAILED, format!("the entry {why}")))?;
    say(alone.text.trim_end());
    let file = found.file.display();
    match &found.edited {
        Err(why) => talk(&format!("for {}; but {file} {why}", found.client.title)),
        Ok(Edited { change: Change::Unchanged, .. }) => talk(&format!("it is in {file}")),
        Ok(_) => talk(&format!("it goes into {file}; --write writes it there")),
    }
    Ok(0)
}

fn write(found: &Found, args: &SetupArgs) -> Result<u8, Failure> {
    let file = found.file.display();
    let failed = |why: &dyn std::fmt::Display| Failure::new(FAILED, format!("{file} {why}; nothing was written"));
    let edited = found.edited.as_ref().map_err(|why| failed(why))?;
    let backup = match edited.change {
        Change::Unchanged => None,
        Change::Added | Change::Updated => file::write(&found.file, found.old.as_deref(), &edited.text)
            .map_err(|error| failed(&format!("cannot be written: {error}")))?,
    };
    if args.json {
        let mut told = found.as_json();
        told["change"] = json!(edited.change);
        told["backup"] = json!(backup);
        told["state"] = json!("there");
        say(&told.to_string());
        return Ok(0);
    }
    let (name, title) = (&args.name, found.client.title);
    match edited.change {
        Change::Unchanged => talk(&format!("unchanged: `{name}` is in {file}")),
        Change::Added => talk(&format!("added `{name}` to {file}; start {title} anew")),
        Change::Updated => talk(&format!("updated `{name}` in {file}; start {title} anew")),
    }
    if let Some(backup) = backup {
        talk(&format!("what was there is kept in {}", backup.display()));
    }
    Ok(0)
}
