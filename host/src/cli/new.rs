//! `new`: a definition from a template, as a file or in the database.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;

use super::change;
use super::export::{folder_for_files, keep_files, put_file};
use super::open::{Setting, env};
use super::{FAILED, Failure, Places, USAGE, say, talk};
use crate::caller::MAIN;
use crate::config::paths;
use crate::host::stored::How;
use crate::registry::write::write;
use crate::registry::{AssistantId, Definition, NAME_CHARS_MAX, Severity, Source, read_markdown};
use crate::text::{cut, one_line};

/// The name of each template, and its file.
const TEMPLATES: &[(&str, &str)] = &[
    ("plain", include_str!("../../templates/plain.md")),
    ("diff-reviewer", include_str!("../../templates/diff-reviewer.md")),
    ("test-writer", include_str!("../../templates/test-writer.md")),
    ("doc-editor", include_str!("../../templates/doc-editor.md")),
    ("log-triager", include_str!("../../templates/log-triager.md")),
];
/// Characters of a description on one line.
const LINE_CHARS: usize = 90;
/// The longest tag, characters.
const TAG_CHARS_MAX: usize = 64;

#[derive(Args)]
pub(super) struct NewArgs {
    /// What people call it; its id is made from that
    #[arg(required_unless_present = "templates")]
    name: Option<String>,
    /// What to begin with; --templates lists them
    #[arg(long, value_name = "TEMPLATE", default_value = "plain")]
    template: String,
    /// List the templates
    #[arg(long, conflicts_with_all = ["name", "to", "description", "tags"])]
    templates: bool,
    /// Where it is kept [default: the folder of --assistants, else the project, else the user]
    #[arg(long, value_name = "WHERE")]
    to: Option<To>,
    /// When to use it; this is what a search finds
    #[arg(long)]
    description: Option<String>,
    /// What it can be filtered by; may be repeated
    #[arg(long = "tag", value_name = "TAG", value_parser = tag)]
    tags: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Where assistants are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum To {
    /// A file in .agents/agents of the project
    Project,
    /// A file in the assistants folder of the user's configuration
    User,
    /// The database in the state directory
    Database,
}

/// A tag as it can be kept and filtered by.
pub(super) fn tag(text: &str) -> Result<String, String> {
    let tag = text.trim().trim_start_matches('#').trim();
    let bad = |c: char| c.is_control() || matches!(c, ',' | '"' | '\'' | '`');
    if tag.is_empty() || tag.contains(bad) || tag.chars().nth(TAG_CHARS_MAX).is_some() {
        return Err(format!("a tag has 1 to {TAG_CHARS_MAX} characters, and neither quotes nor commas"));
    }
    Ok(tag.to_owned())
}

/// The folder for files of this kind.
pub(super) fn folder(setting: &Setting, to: To) -> Result<(PathBuf, Source), Failure> {
    let usage = |message: &dyn std::fmt::Display| Failure::new(USAGE, message);
    match (to, &setting.project) {
        (To::Project, Some(project)) => Ok((project.join(".agents/agents"), Source::Project)),
        (To::Project, None) => {
            Err(usage(&"there is no project here: --project DIR names one, and --to user needs none"))
        }
        (To::User, _) => {
            let config = paths::default_path(&env).map_err(|error| usage(&error))?;
            Ok((config.with_file_name("assistants"), Source::User))
        }
        (To::Database, _) => Err(usage(&"the database has no folder")),
    }
}

pub(super) async fn new(places: &Places, args: &NewArgs) -> Result<u8, Failure> {
    if args.templates || args.template == "list" {
        return list(args.json);
    }
    let setting = Setting::read(places)?;
    let definition = define(args)?;
    let id = &definition.id;
    if let Some(known) = setting.registry().get(id) {
        let place = known.place();
        return Err(Failure::new(
            FAILED,
            format!("there is an assistant `{id}` already, in {place}; take another name"),
        ));
    }
    let written = write(&definition).map_err(|error| Failure::new(FAILED, error))?;
    let folder = match (args.to, places.assistants.first()) {
        (Some(To::Database), _) => None,
        (Some(to), _) => Some(self::folder(&setting, to)?.0),
        (None, Some(named)) => Some(named.clone()),
        (None, None) => {
            let to = if setting.project.is_some() { To::Project } else { To::User };
            Some(self::folder(&setting, to)?.0)
        }
    };
    let (path, kept) = match &folder {
        Some(folder) => {
            folder_for_files(folder)?;
            let path = folder.join(&written.file);
            put_file(&path, &written.text, false).map_err(|error| Failure::new(FAILED, error))?;
            let kept = keep_files(folder);
            tell_warnings(&written.text, &path);
            (Some(path), kept)
        }
        None => {
            // It was brought in from no file: it is the user's own word.
            let own = Definition { path: None, ..definition.clone() };
            let stored = change::store(places, &setting, vec![own], How::default()).await?;
            if stored.added.is_empty() {
                return Err(Failure::new(FAILED, format!("there is an assistant `{id}` already; take another name")));
            }
            (None, Ok(()))
        }
    };
    tell(args, &definition, path.as_deref());
    kept.map(|()| 0)
}

/// What a reader of the new file warns of, such as signs in the name.
fn tell_warnings(text: &str, path: &Path) {
    let read = read_markdown(text.as_bytes(), path, Source::Dir);
    let warnings = read.map_or_else(|reason| vec![reason], |read| read.warnings);
    for one in warnings.iter().filter(|one| one.severity != Severity::Info) {
        talk(&format!("{}: {}", one.severity.label(), one_line(&one.to_string())));
    }
}

fn tell(args: &NewArgs, definition: &Definition, path: Option<&Path>) {
    let id = &definition.id;
    if args.json {
        return say(&json!({ "assistant_id": id, "name": definition.name, "path": path }).to_string());
    }
    match path {
        Some(path) => {
            say(&path.display().to_string());
            talk(&format!("`{id}` is there; edit the file, then `assistant-host run \"…\" --assistant {id}` tries it"));
        }
        None => {
            say(id.as_str());
            talk(&format!("`{id}` is in the database; `assistant-host export {id}` prints it as a file"));
        }
    }
}

/// The definition that was asked for.
fn define(args: &NewArgs) -> Result<Definition, Failure> {
    let usage = |message: String| Failure::new(USAGE, message);
    let (_, text) = TEMPLATES.iter().find(|(name, _)| *name == args.template).ok_or_else(|| {
        let names: Vec<_> = TEMPLATES.iter().map(|(name, _)| *name).collect();
        usage(format!("there is no template `{}`; there are {}", one_line(&args.template), names.join(", ")))
    })?;
    let given = args.name.as_deref().unwrap_or_default();
    let name = given.split_whitespace().collect::<Vec<_>>().join(" ");
    if name.is_empty() {
        return Err(usage("the name is empty; say what people call it".to_owned()));
    }
    if name.chars().any(char::is_control) {
        return Err(usage("the name has a control character; leave that out".to_owned()));
    }
    if name.chars().nth(NAME_CHARS_MAX).is_some() {
        return Err(usage(format!("the name has more than {NAME_CHARS_MAX} characters; take a shorter one")));
    }
    let template = template(text)?;
    let id = AssistantId::from_name(&name, "");
    if id.as_str() == MAIN {
        return Err(usage(format!("`{MAIN}` is the session's own name; take another one")));
    }
    let own = args.description.as_ref().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let tags = if args.tags.is_empty() { template.tags.clone() } else { args.tags.clone() };
    let description = own.unwrap_or_else(|| template.description.clone());
    Ok(Definition { id, name, description, tags, ..template })
}

fn template(text: &str) -> Result<Definition, Failure> {
    let read = read_markdown(text.as_bytes(), Path::new("template.md"), Source::Dir);
    let mut template = read.map_err(|reason| Failure::new(FAILED, reason))?;
    template.warnings.clear();
    Ok(template)
}

fn list(as_json: bool) -> Result<u8, Failure> {
    let mut templates = Vec::new();
    for (name, text) in TEMPLATES {
        templates.push((*name, template(text)?.description));
    }
    if as_json {
        let items: Vec<_> =
            templates.iter().map(|(name, text)| json!({ "template": name, "description": text })).collect();
        say(&json!({ "templates": items }).to_string());
        return Ok(0);
    }
    for (name, description) in templates {
        say(&format!("{name:<16} {}", cut(&description, LINE_CHARS)));
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::limits::Limits;
    use crate::tools::{grants, table};

    #[test]
    fn templates_are_clean() {
        let table = table(&Limits::default());
        for (name, text) in TEMPLATES {
            let read = read_markdown(text.as_bytes(), Path::new("x.md"), Source::Dir).expect("an assistant");
            let wrong: Vec<_> = read.warnings.iter().filter(|one| one.severity != Severity::Info).collect();
            assert!(wrong.is_empty(), "{name}: {wrong:?}");
            assert_eq!(read.id.as_str(), *name);
            let granted = grants::grant(read.tools.as_deref(), &BTreeMap::new(), &table);
            assert_eq!((granted.tools.len(), granted.unavailable), (7, Vec::new()), "{name}");
            assert_eq!(write(&read).map(|written| written.blanks), Ok(Vec::new()), "{name}");
        }
    }
}
