//! Which program runs an assistant: the runner that comes with the host, or one that the configuration names. Nobody but
//! who configures the host says what is started: definitions, assistants and clients give names.

use std::collections::BTreeMap;

use crate::launcher::RunnerCommand;
use crate::registry::nearest_name;
use crate::text::{NAME_SHOWN_CHARS_MAX, cut, one_line};

/// The name of the runner that comes with the host.
pub const OWN: &str = "assistant-runner";
/// How much an error tells of the names that there are, characters.
const KNOWN_CHARS_MAX: usize = 400;

/// No runner has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no runner is called `{name}`{near}; there are: {known}")]
pub struct UnknownRunner {
    /// What was asked for, cut.
    pub name: String,
    /// A name that looks like it, in words; empty where there is none.
    pub near: String,
    /// The names that there are, cut.
    pub known: String,
}

/// What a process keeps of the name of a runner: nothing for the host's own.
///
/// # Errors
/// [`UnknownRunner`] where `runners` has no such name.
pub fn kept<T>(runners: &BTreeMap<String, T>, name: &str) -> Result<Option<String>, UnknownRunner> {
    match name {
        OWN => Ok(None),
        name if runners.contains_key(name) => Ok(Some(name.to_owned())),
        name => Err(unknown(runners, name)),
    }
}

/// Runners by their names, whatever is known of them.
pub(crate) trait Named {
    /// What [`kept`] says of a name.
    fn named(&self, name: &str) -> Result<Option<String>, UnknownRunner>;
}

impl<T> Named for BTreeMap<String, T> {
    fn named(&self, name: &str) -> Result<Option<String>, UnknownRunner> {
        kept(self, name)
    }
}

/// The command of the runner that a process has: `own`, or the one that it keeps the name of.
///
/// # Errors
/// [`UnknownRunner`] where it is not configured any more.
pub fn command<'a>(
    own: &'a RunnerCommand,
    runners: &'a BTreeMap<String, RunnerCommand>,
    kept: Option<&str>,
) -> Result<&'a RunnerCommand, UnknownRunner> {
    let Some(name) = kept else { return Ok(own) };
    runners.get(name).ok_or_else(|| unknown(runners, name))
}

/// An error of the runner that a process has, with its name where it is not the host's own.
pub(crate) fn told(kept: Option<&str>, error: String) -> String {
    match kept {
        Some(name) => format!("the runner `{name}`: {error}"),
        None => error,
    }
}

fn unknown<T>(runners: &BTreeMap<String, T>, name: &str) -> UnknownRunner {
    let known: Vec<&str> = std::iter::once(OWN).chain(runners.keys().map(String::as_str)).collect();
    let name = cut(&one_line(name), NAME_SHOWN_CHARS_MAX);
    let near = nearest_name(&name, &known).map(|near| format!(" (`{near}` is)")).unwrap_or_default();
    UnknownRunner { name, near, known: cut(&known.join(", "), KNOWN_CHARS_MAX) }
}
