//! `import`: assistants of other systems, from files or whole folders, into the database or the folders of this host.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use super::export::{folder_for_files, keep_files, put_file};
use super::new::{To, folder, tag};
use super::open::Setting;
use super::{FAILED, Failure, Places, USAGE, change, counted, say, talk};
use crate::host::stored::{How, Stored};
use crate::registry::write::{content, file_name, write};
use crate::registry::{AssistantId, Definition, Diagnostic, Layout, Registry, Source, SourceDir};
use crate::text::{cut, one_line};
use crate::trust;

#[derive(Args)]
pub(super) struct ImportArgs {
    /// Files, and folders that are read with all below them
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Where they are kept
    #[arg(long, value_name = "WHERE", default_value = "database")]
    to: To,
    /// A tag for all of them; may be repeated
    #[arg(long = "tag", value_name = "TAG", value_parser = tag)]
    tags: Vec<String>,
    /// Put them in place of others of their ids that are kept there
    #[arg(long)]
    replace: bool,
    /// Tell what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Characters of the ids that are named together.
const ASKING_CHARS_MAX: usize = 200;

/// What was read, and what became of it.
#[derive(Default)]
struct Imported {
    stored: Stored,
    /// Assistants that could not be kept, with the reason.
    failed: Vec<(AssistantId, String)>,
    /// Where each comes from.
    paths: HashMap<AssistantId, PathBuf>,
    /// Files that are no assistants.
    skipped: Vec<Diagnostic>,
    /// Files whose id another one that was read has too.
    double: Vec<Diagnostic>,
    /// Assistants that name commands or servers.
    asking: Vec<String>,
}

pub(super) async fn import(places: &Places, args: &ImportArgs) -> Result<u8, Failure> {
    let setting = Setting::read(places)?;
    let mut imported = Imported::default();
    let definitions = read(args, &mut imported)?;
    let how = How { replace: args.replace, dry_run: args.dry_run };
    let mut lasts = Ok(());
    if !definitions.is_empty() {
        match args.to {
            To::Database => imported.stored = change::store(places, &setting, definitions, how).await?,
            to @ (To::Project | To::User) => {
                let (folder, _) = folder(&setting, to)?;
                if !how.dry_run {
                    folder_for_files(&folder)?;
                }
                to_files(&setting.registry(), &folder, definitions, how, &mut imported);
                if !how.dry_run {
                    lasts = keep_files(&folder);
                }
            }
        }
    }
    let place = match args.to {
        To::Database => "the database".to_owned(),
        to @ (To::Project | To::User) => folder(&setting, to)?.0.display().to_string(),
    };
    tell(args, &imported, &place);
    lasts?;
    let Stored { added, replaced, unchanged, kept, of_files: _ } = &imported.stored;
    let nothing = added.is_empty() && replaced.is_empty() && unchanged.is_empty();
    Ok(if nothing || !kept.is_empty() || !imported.failed.is_empty() { FAILED } else { 0 })
}

/// All assistants below the paths, the first of each id, as they are to be kept.
fn read(args: &ImportArgs, imported: &mut Imported) -> Result<Vec<Definition>, Failure> {
    let (mut folders, mut files, mut named) = (Vec::new(), Vec::new(), HashSet::new());
    for path in &args.paths {
        // What is named is read, also where it is a link.
        let real =
            fs::canonicalize(path).map_err(|error| Failure::new(USAGE, format!("{}: {error}", path.display())))?;
        if !named.insert(real.clone()) {
            continue;
        }
        match real.is_dir() {
            true => folders.push(SourceDir { source: Source::Dir, path: real, layout: Layout::Files, required: true }),
            false => match Registry::read_file(&real, Source::Dir) {
                Ok(definition) => files.push(definition),
                Err(reason) => imported.skipped.push(reason),
            },
        }
    }
    let registry = Registry::read(&folders);
    // A file that was named beside its folder is read with that.
    let read: HashSet<PathBuf> = registry.assistants().iter().filter_map(|one| one.path.clone()).collect();
    let hidden: HashSet<PathBuf> = registry.shadowed().iter().filter_map(|one| one.path.clone()).collect();
    files
        .retain(|one: &Definition| one.path.as_ref().is_none_or(|path| !read.contains(path) && !hidden.contains(path)));
    let registry = registry.join(files.into_iter().map(Arc::new));
    imported.skipped.retain(|one| registry.skipped().iter().all(|other| other.file != one.file));
    imported.skipped.extend(registry.skipped().iter().cloned());
    imported.double.extend(registry.shadowed().iter().map(|one| one.reason.clone()));
    let mut definitions = Vec::new();
    for found in registry.assistants() {
        imported.paths.extend(found.path.clone().map(|path| (found.id.clone(), path)));
        let mut definition = Definition::clone(found);
        if !trust::wanted(&definition).is_empty() {
            imported.asking.push(definition.id.to_string());
        }
        // They are about a file that this one no longer is.
        definition.warnings.clear();
        for tag in &args.tags {
            if !definition.tags.iter().any(|own| own.to_lowercase() == tag.to_lowercase()) {
                definition.tags.push(tag.clone());
            }
        }
        definitions.push(definition);
    }
    Ok(definitions)
}

/// Writes one file for each; what goes wrong with one is told and stops no other.
fn to_files(known: &Registry, folder: &Path, definitions: Vec<Definition>, how: How, imported: &mut Imported) {
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let Imported { stored, failed, .. } = imported;
    for definition in definitions {
        let id = definition.id.clone();
        let path = folder.join(file_name(&id));
        let elsewhere = |one: &Definition| {
            one.path.as_ref().and_then(|path| fs::canonicalize(path).ok()) != Some(real.join(file_name(&id)))
        };
        if known.get(&id).is_some_and(|one| one.source != Source::Database && elsewhere(one)) {
            stored.of_files.push(id);
            continue;
        }
        let there = match path.symlink_metadata() {
            Ok(_) => Some(Registry::read_file(&path, Source::Dir).ok()),
            Err(_) => None,
        };
        let list = match there {
            None => &mut stored.added,
            Some(Some(there)) if content(&there) == content(&definition) => {
                stored.unchanged.push(id);
                continue;
            }
            Some(_) if how.replace => &mut stored.replaced,
            Some(_) => {
                stored.kept.push(id);
                continue;
            }
        };
        let written = write(&definition).map_err(|error| error.to_string()).and_then(|written| match how.dry_run {
            true => Ok(()),
            false => put_file(&path, &written.text, how.replace),
        });
        match written {
            Ok(()) => list.push(id),
            Err(reason) => failed.push((id, reason)),
        }
    }
}

fn tell(args: &ImportArgs, imported: &Imported, place: &str) {
    let Imported { stored, failed, paths, skipped, double, asking } = imported;
    let Stored { added, replaced, unchanged, kept, of_files } = stored;
    let path = |id: &AssistantId| paths.get(id).map(|path| path.display().to_string()).unwrap_or_default();
    if args.json {
        let with_paths = |ids: &[AssistantId]| -> Vec<Value> {
            ids.iter().map(|id| json!({ "assistant_id": id, "path": path(id) })).collect()
        };
        let failures: Vec<Value> = failed
            .iter()
            .map(|(id, reason)| json!({ "assistant_id": id, "path": path(id), "reason": reason }))
            .collect();
        say(&json!({
            "to": place, "dry_run": args.dry_run, "added": with_paths(added), "replaced": with_paths(replaced),
            "unchanged": with_paths(unchanged), "different": with_paths(kept), "defined_in_files": with_paths(of_files),
            "failed": failures, "name_commands": asking, "skipped": skipped, "double": double,
            "totals": {
                "added": added.len(), "replaced": replaced.len(), "unchanged": unchanged.len(), "different": kept.len(),
                "defined_in_files": of_files.len(), "failed": failed.len(), "skipped": skipped.len(),
                "double": double.len(),
            },
        })
        .to_string());
        return;
    }
    for (what, ids) in [("added", added), ("replaced", replaced)] {
        ids.iter().for_each(|id| say(&format!("{what:<9} {id}")));
    }
    for one in skipped {
        talk(&format!("skipped: {}", one_line(&one.to_string())));
    }
    for one in double {
        talk(&format!("double: {}", one_line(&one.to_string())));
    }
    for id in of_files {
        talk(&format!("skipped: {}: `{id}` is defined in a file that is read already", one_line(&path(id))));
    }
    for id in kept {
        talk(&format!("not replaced: another `{id}` is in {place}; --replace puts this one in its place"));
    }
    for (_, reason) in failed {
        talk(&format!("failed: {}", one_line(reason)));
    }
    if !asking.is_empty() {
        let (count, ids) = (asking.len(), cut(&asking.join(", "), ASKING_CHARS_MAX));
        // What lies in the user's own folder is the user's word.
        let how = match args.to {
            To::Database | To::Project => "which run when `assistant-host trust` has allowed them",
            To::User => "which need no trust there; `assistant-host show` tells what they are",
        };
        let who = counted(count, "assistant");
        talk(&format!("{who} with servers or commands, {how}: {ids}"));
    }
    let would = if args.dry_run { "nothing was done; it would be: " } else { "" };
    talk(&format!(
        "{would}{} added to {place}, {} replaced, {} unchanged, {} skipped, {} double, {} not replaced, {} failed",
        added.len(),
        replaced.len(),
        unchanged.len(),
        skipped.len() + of_files.len(),
        double.len(),
        kept.len(),
        failed.len(),
    ));
}
