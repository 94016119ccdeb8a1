//! Which files a path may have meant that names none.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Root, relative, walk};
use crate::registry::nearest_name;

/// Paths that are named.
const NAMED_MAX: usize = 3;
/// Files and folders that are looked at for one path.
const ENTRIES_MAX: usize = 5_000;

/// What to do about a path that does not exist.
pub(super) fn hint(near: &[String]) -> String {
    let shows = "list_files shows what there is.";
    if near.is_empty() {
        return shows.to_owned();
    }
    let named: Vec<String> = near.iter().map(|path| format!("`{path}`")).collect();
    format!("Near it: {}. {shows}", named.join(", "))
}

/// Paths below `root` that `wanted` may have meant: names that differ in a few characters in the same folder, and the same
/// name elsewhere. `wanted` does not leave `root` by its words.
pub(super) fn names(root: &Root, wanted: &str) -> Vec<String> {
    let wanted = Path::new(wanted);
    let Some(name) = wanted.file_name().map(|name| name.to_string_lossy().into_owned()) else { return Vec::new() };
    let mut near = in_folder(root, wanted.parent().unwrap_or(Path::new("")), &name);
    let elsewhere = walk(root, &root.path).take(ENTRIES_MAX).filter_map(Result::ok);
    let same = elsewhere.filter(|entry| entry.file_name().to_string_lossy().eq_ignore_ascii_case(&name));
    for entry in same {
        if near.len() >= NAMED_MAX {
            break;
        }
        near.extend(relative(root, entry.path()).filter(|path| !near.contains(path)));
    }
    near
}

fn in_folder(root: &Root, folder: &Path, name: &str) -> Vec<String> {
    // A link may lead out.
    let Some(folder) = root.path.join(folder).canonicalize().ok().filter(|folder| folder.starts_with(&root.path))
    else {
        return Vec::new();
    };
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let names = entries.take(ENTRIES_MAX).filter_map(Result::ok).filter(|entry| !root.own.has(&entry.path()));
    let mut names: BTreeSet<String> = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let mut near = Vec::new();
    while near.len() < NAMED_MAX {
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let Some(nearest) = nearest_name(name, &known).map(str::to_owned) else { break };
        near.extend(relative(root, &folder.join(&nearest)));
        names.remove(&nearest);
    }
    near
}
