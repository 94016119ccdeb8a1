//! The assistants that there are: read from files, joined with those of the database, found by id or name.
//!
//! A [`Registry`] is a snapshot. The same files in the same places give the same snapshot: sources in their order of
//! precedence, the files of each sorted by path, and the first of an id wins. What was not taken is listed with its
//! reason.

mod access;
mod advice;
mod assemble;
mod data;
mod definition;
mod diagnostic;
mod dialect;
mod examples;
mod fields;
mod files;
mod frontmatter;
mod hash;
mod id;
mod keys;
mod known;
mod lookup;
mod meant;
pub mod mirror;
mod nearest;
mod notes;
mod places;
mod reader;
mod recipe;
mod rules;
mod services;
mod walk;
pub mod write;
pub(crate) mod yaml;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use serde::Serialize;

use crate::text::{cut, one_line};

pub(crate) use access::{bare, is_all, is_spawner, several};
pub use assemble::NAME_CHARS_MAX;
pub use definition::{Definition, Source};
pub use diagnostic::{Code, Diagnostic, Severity};
pub use dialect::Dialect;
pub use files::Files;
pub use hash::sha256_hex;
pub use id::{AssistantId, BadAssistantId, ID_CHARS_MAX, slug};
#[cfg(feature = "cli")]
pub(crate) use known::is_access as is_access_key;
pub(crate) use known::{fold, is_secret, narrow};
pub(crate) use lookup::Lookup;
pub(crate) use nearest::nearest_name;
pub use places::{Layout, SourceDir, places_in, sources};
pub(crate) use reader::READER_VERSION;
pub use reader::{read, read_markdown};
pub use rules::{Action, NoRule, ToolRule};
pub(crate) use rules::{Subject, is_held, pattern, subject};
pub(crate) use services::of as services_of;
pub use walk::{ENTRIES_MAX, FILE_BYTES_MAX, FOLDER_DEPTH_MAX};
#[cfg(feature = "cli")]
pub(crate) use walk::{link as link_in, read as read_bytes};

/// Every assistant, at one time.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    assistants: Vec<Arc<Definition>>,
    shadowed: Vec<Shadowed>,
    skipped: Vec<Diagnostic>,
    by_id: Lookup,
    /// By their names in small letters; made when one is first looked for.
    by_name: OnceLock<Lookup>,
}

/// An assistant that another one of the same id hides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shadowed {
    /// The id of both.
    pub id: AssistantId,
    /// Where the hidden one comes from.
    pub source: Source,
    /// Its file.
    #[serde(serialize_with = "definition::shown")]
    pub path: Option<PathBuf>,
    /// The file that comes first.
    #[serde(serialize_with = "definition::shown")]
    pub by: Option<PathBuf>,
    /// The same, for people.
    pub reason: Diagnostic,
}

/// The same assistants, and the same to tell of what is none. The same ones (`Arc::ptr_eq`) are not looked into.
impl PartialEq for Registry {
    fn eq(&self, other: &Self) -> bool {
        let same = |(one, other): (&Arc<Definition>, &Arc<Definition>)| Arc::ptr_eq(one, other) || one == other;
        self.assistants.len() == other.assistants.len()
            && self.assistants.iter().zip(&other.assistants).all(same)
            && self.shadowed == other.shadowed
            && self.skipped == other.skipped
    }
}

impl Shadowed {
    /// Where the hidden one is defined, for people: its file, or `the database`.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.reason.file
    }
}

impl Registry {
    /// Reads all files of `sources`, first in precedence first.
    ///
    /// Never fails: what cannot be read is in [`Registry::skipped`].
    #[must_use]
    pub fn read(sources: &[SourceDir]) -> Self {
        // Nothing is known, so all is read, and nothing is kept for a next time.
        let files = Files::default().again(sources, SystemTime::UNIX_EPOCH);
        files.registry().as_ref().clone()
    }

    /// Reads one file, whatever folder it lies in.
    ///
    /// # Errors
    /// Why it is no assistant.
    pub fn read_file(path: &Path, source: Source) -> Result<Definition, Diagnostic> {
        walk::read(path).map_err(|why| reader::stray(why, path)).and_then(|bytes| reader::read(&bytes, path, source))
    }

    /// A registry of `definitions`, first in precedence first, without files.
    #[must_use]
    pub fn from_definitions(definitions: impl IntoIterator<Item = Definition>) -> Self {
        Self::of(definitions.into_iter().map(Arc::new).collect(), Vec::new(), Vec::new())
    }

    /// The same with `stored` behind all that is there: those that the database keeps.
    #[must_use]
    pub fn join(&self, stored: impl IntoIterator<Item = Arc<Definition>>) -> Self {
        let all = self.assistants.iter().cloned().chain(stored).collect();
        Self::of(all, self.shadowed.clone(), self.skipped.clone())
    }

    /// `definition`, as the one that is here already where that is equal.
    #[must_use]
    pub fn same_or(&self, definition: Definition) -> Arc<Definition> {
        let known = self.get(&definition.id).filter(|known| ***known == definition);
        known.cloned().unwrap_or_else(|| Arc::new(definition))
    }

    fn of(found: Vec<Arc<Definition>>, mut shadowed: Vec<Shadowed>, skipped: Vec<Diagnostic>) -> Self {
        let first = Lookup::of(found.iter().map(|found| found.id.as_str()));
        let mut assistants: Vec<Arc<Definition>> = Vec::with_capacity(found.len());
        for (at, definition) in found.iter().enumerate() {
            match first.find(definition.id.as_str(), |other| found[other].id == definition.id) {
                Some(other) if other != at => shadowed.push(hide(definition, &found[other])),
                Some(_) | None => assistants.push(definition.clone()),
            }
        }
        // Those of a registry come in this order already: it takes no time when a few are joined to many.
        assistants.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| a.id.cmp(&b.id)));
        let by_id = Lookup::of(assistants.iter().map(|found| found.id.as_str()));
        Self { assistants, shadowed, skipped, by_id, by_name: OnceLock::new() }
    }

    /// All assistants, by name, then id.
    #[must_use]
    pub fn assistants(&self) -> &[Arc<Definition>] {
        &self.assistants
    }

    /// Those that another one hides, in the order in which they were found.
    #[must_use]
    pub fn shadowed(&self) -> &[Shadowed] {
        &self.shadowed
    }

    /// Files that are no assistants, each with the reason, by path.
    #[must_use]
    pub fn skipped(&self) -> &[Diagnostic] {
        &self.skipped
    }

    /// The assistant with this id.
    #[must_use]
    pub fn get(&self, id: &AssistantId) -> Option<&Arc<Definition>> {
        self.place(id.as_str()).map(|at| &self.assistants[at])
    }

    /// Where in [`Registry::assistants`] the one with this id is.
    pub(crate) fn place(&self, id: &str) -> Option<usize> {
        self.by_id.find(id, |at| self.assistants[at].id.as_str() == id)
    }

    /// The assistant with this id or display name, in any case.
    #[must_use]
    pub fn find_exact(&self, id_or_name: &str) -> Option<&Arc<Definition>> {
        let wanted = id_or_name.trim().to_lowercase();
        let names = || Lookup::of(self.assistants.iter().map(|found| found.name.to_lowercase()));
        let named =
            || self.by_name.get_or_init(names).find(&wanted, |at| self.assistants[at].name.to_lowercase() == wanted);
        // An id wins over a name that reads the same.
        self.place(&wanted).or_else(named).map(|at| &self.assistants[at])
    }

    /// The file that was skipped and would give this id or name by what it is called, with the reason; one that is meant as an
    /// assistant comes first.
    #[must_use]
    pub fn skipped_as(&self, id_or_name: &str) -> Option<&Diagnostic> {
        let wanted = slug(id_or_name)?;
        let named = |one: &&Diagnostic| slug(&dialect::stem(Path::new(&one.file))).as_ref() == Some(&wanted);
        self.skipped.iter().filter(named).max_by_key(|one| one.severity != Severity::Info)
    }

    /// At most `n` ids that look like `id_or_name`, best first.
    #[must_use]
    pub fn nearest(&self, id_or_name: &str, n: usize) -> Vec<AssistantId> {
        nearest::nearest(&self.assistants, id_or_name, n)
    }

    /// A hash over all definitions: it changes when any of them does, or the way in which they are read.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut text = format!("reader {READER_VERSION}\n");
        for found in &self.assistants {
            text.extend([found.id.as_str(), " ", found.source.label(), " ", &found.content_hash, "\n"]);
        }
        sha256_hex(text.as_bytes())
    }
}

/// That the file of an assistant was skipped, and why, on one line.
pub(crate) fn skipped_words(why: &Diagnostic) -> String {
    /// Characters of the reason.
    const CHARS_MAX: usize = 600;
    format!("its file was skipped: {}", cut(&one_line(&why.to_string()), CHARS_MAX))
}

fn hide(hidden: &Definition, by: &Definition) -> Shadowed {
    let message = format!("`{}` is also defined in {}, which comes first", hidden.id, by.place());
    let reason = Diagnostic::new(Code::Shadowed, &hidden.place(), message).hint("rename one of them");
    let path = |definition: &Definition| definition.file().map(Path::to_owned);
    Shadowed { id: hidden.id.clone(), source: hidden.source, path: path(hidden), by: path(by), reason }
}

#[cfg(test)]
mod any;
#[cfg(test)]
mod tests;
