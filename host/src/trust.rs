//! Trust: what an assistant's file would run on this machine, and whether the user has allowed it.
//!
//! [`wanted`] reads out of a definition what would run: servers of tools, hooks, checks. [`rule`] parts that into what
//! may run and what may not; whoever starts such a thing asks it first, each time, with the definition that it starts
//! from. What was allowed is remembered in a [`Book`], a folder of the user.
//!
//! # Whose word counts
//!
//! * What an agent behind a runner does with tools of its own counts as run by the definition that asks for them
//!   ([`own_tools`]): without trust it has those that only look.
//! * Files of the project, and those of a folder that `--assistants` names, need trust. They come with a `git clone`; and
//!   so may the command line that names the folder: clients start this program with arguments out of the project's own
//!   files (`.mcp.json`), so that a project could trust itself.
//! * The user's own folders are the user's word, and so is the database, where an app or a command of the user has put
//!   an assistant. One of the database that tells a file it came from needs trust like that file.
//!
//! # What is remembered
//!
//! A hash over the file's real path, the name, and all that stands there about the one server or command. So a changed
//! command, argument, URL or environment is asked again, and so is the same text in another project; a server that is
//! added is asked, and takes nothing from the others. All that is written of it counts, not just what is understood now:
//! a later version may make more of it. The prompt does not count: it runs nothing, and who is asked again for each
//! edited word soon allows without reading. What a command line names (a script of the project, a package) is trusted
//! by its name: its content is not looked at.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use crate::names::named;
use crate::registry::{Code, Definition, Diagnostic, Source, sha256_hex};
use crate::servers::Configured;

mod book;
mod masked;
mod wanted;

pub use book::{Book, RECORD_BYTES_MAX, TRUSTED_MAX, Trust, Unusable};
pub(crate) use masked::{SET, arguments_masked};
#[cfg(feature = "cli")]
pub(crate) use masked::{line_masked, map_masked, masked};
pub(crate) use wanted::{ARGUMENTS, COMMANDS, FOLDERS, HEADERS, SCRIPTS, URLS, VARIABLES, all};
pub use wanted::{own_tools, wanted};

named! {
    /// What kind of thing would run.
    pub enum Kind {
        /// A server of tools.
        Server = "server",
        /// A command at an event of the run.
        Hook = "hook",
        /// A command that judges the result.
        Check = "check",
        /// Tools that an agent has itself and that do more than look.
        Agent = "agent",
    }
}

/// One thing that a definition would run, or connect to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Wanted {
    /// What it is called in the definition; for a hook its event and what it is for.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The program and its arguments, or one line for a shell. Empty where none is named.
    pub command: Vec<String>,
    /// Where it connects to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The folder that it runs in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Names of the variables that it gets; never their values.
    pub env: Vec<String>,
    /// Names of the headers that it sends; never their values.
    pub headers: Vec<String>,
    /// All that stands there, where it names neither a command nor a URL and is more than a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// As written: what is remembered when it is trusted.
    #[serde(skip)]
    written: Value,
}

impl Wanted {
    /// What it is, for people: `server orders`.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} {}", self.kind, shown(&self.name))
    }

    /// As written.
    pub(crate) fn written(&self) -> &Value {
        &self.written
    }

    /// Whether it is a server that is switched off where it is written: it does not run, and nobody is asked about it.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.kind == Kind::Server && wanted::is_off(&self.written)
    }

    /// What is remembered of it when it is trusted, for the file at `place`.
    fn key(&self, place: &Path) -> String {
        let place = place.as_os_str().as_encoded_bytes();
        let what = json!([self.kind, self.name, self.written]).to_string();
        let mut text = format!("trust 1\n{}\n", place.len()).into_bytes();
        text.extend_from_slice(place);
        text.extend_from_slice(what.as_bytes());
        sha256_hex(&text)
    }
}

/// Whether what a definition names runs only when it is trusted.
#[must_use]
pub fn needs_trust(definition: &Definition) -> bool {
    match definition.source {
        Source::Project | Source::Dir => true,
        Source::User => false,
        Source::Database => definition.path.is_some(),
    }
}

/// One thing that a definition would run, and what the user has said to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Ruled {
    /// What it is.
    pub wanted: Wanted,
    /// What is remembered when it is trusted; none where nobody is asked.
    pub key: Option<String>,
    /// Whether it may run.
    pub answer: Answer,
}

/// Whether a thing may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is switched off: it does not run, so nobody is asked.
    Off,
    /// It comes from the user, who needs not be asked.
    Own,
    /// The user has allowed it.
    Trusted(Trust),
    /// The user was not asked, or has not allowed it as it is now.
    Untrusted,
    /// What the user has said cannot be read: it may not run.
    Unreadable(String),
}

impl Answer {
    /// Whether the thing may run.
    #[must_use]
    pub fn allows(&self) -> bool {
        matches!(self, Self::Own | Self::Trusted(_))
    }

    /// Whether the thing would run, but for the user's word.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Untrusted | Self::Unreadable(_))
    }
}

/// What a definition would run, and which of it may. Reads files: call it on a thread for such work.
#[must_use]
pub fn rule(definition: &Definition, book: &Book) -> Vec<Ruled> {
    rule_all(definition, wanted(definition), book)
}

/// Whether an agent gets those of its own tools that a definition asks for and that do more than look; none where it asks
/// for no such tool. Those of servers that are `configured` are not its own. Reads files.
#[must_use]
pub fn rule_own_tools(definition: &Definition, configured: &Configured, book: &Book) -> Option<Ruled> {
    rule_all(definition, own_tools(definition, configured).into_iter().collect(), book).pop()
}

fn rule_all(definition: &Definition, all: Vec<Wanted>, book: &Book) -> Vec<Ruled> {
    let unasked = |wanted: Wanted| {
        let answer = if wanted.is_off() { Answer::Off } else { Answer::Own };
        Ruled { wanted, key: None, answer }
    };
    if all.is_empty() || !needs_trust(definition) {
        return all.into_iter().map(unasked).collect();
    }
    let place = place(definition);
    let ruled = |wanted: Wanted| {
        if wanted.is_off() {
            return unasked(wanted);
        }
        let key = wanted.key(&place);
        let answer = match book.find(&key) {
            Ok(Some(trust)) => Answer::Trusted(trust),
            Ok(None) => Answer::Untrusted,
            Err(error) => Answer::Unreadable(error.to_string()),
        };
        Ruled { wanted, key: Some(key), answer }
    };
    all.into_iter().map(ruled).collect()
}

/// The file of a definition, as it really lies.
#[must_use]
pub fn place(definition: &Definition) -> PathBuf {
    let path = definition.path.clone().unwrap_or_default();
    path.canonicalize().or_else(|_| std::path::absolute(&path)).unwrap_or(path)
}

/// Things that one finding names.
const TOLD_MAX: usize = 5;

/// What is told of an assistant that runs without something that it names; none where it has all of it.
#[must_use]
pub fn told(definition: &Definition, ruled: &[Ruled]) -> Option<Diagnostic> {
    let without: Vec<String> =
        ruled.iter().filter(|one| one.answer.is_missing()).map(|one| one.wanted.title()).collect();
    if without.is_empty() {
        return None;
    }
    let more = match without.len().saturating_sub(TOLD_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let some = without.iter().take(TOLD_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    let message = format!("it runs without {some}{more}: that is not trusted (`assistant-host trust` shows it)");
    let hint = format!("`assistant-host trust {}` allows it", definition.id);
    Some(Diagnostic::new(Code::UntrustedCommand, &definition.place(), message).hint(hint))
}

/// The most blanks in a row that are shown as they are.
const BLANKS_SHOWN_MAX: usize = 2;

/// `text` on one line, whole, with all that a terminal would obey or not show told by its number; many blanks in a row
/// are counted, so that nothing stands unseen behind them.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            ' ' => {
                let mut blanks = 1;
                while rest.next_if_eq(&' ').is_some() {
                    blanks += 1;
                }
                match blanks {
                    ..=BLANKS_SHOWN_MAX => out.extend(std::iter::repeat_n(' ', blanks)),
                    _ => out.push_str(&format!("[{blanks} blanks]")),
                }
            }
            '\\' | '"' | '\'' => out.push(c),
            c => out.extend(c.escape_debug()),
        }
    }
    out
}

#[cfg(test)]
mod tests;
