//! Which program runs an assistant: the runner that comes with the host, or one that the configuration names. Nobody but
//! who configures the host says what is started: definitions, assistants and clients give names.

use std::collections::BTreeMap;

mod named;

pub use named::{Agent, Kind, Runner};

use crate::launcher::{Passes, RunnerCommand};
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

    /// Whether the one of this name is known to run an agent that has its own model and tools.
    fn is_agent(&self, name: &str) -> bool;
}

/// What may be known to run an agent.
pub(crate) trait MayBeAgent {
    /// Whether it is.
    fn is_agent(&self) -> bool;
}

impl MayBeAgent for Runner {
    fn is_agent(&self) -> bool {
        self.is_agent()
    }
}

impl<T: MayBeAgent> Named for BTreeMap<String, T> {
    fn named(&self, name: &str) -> Result<Option<String>, UnknownRunner> {
        kept(self, name)
    }

    fn is_agent(&self, name: &str) -> bool {
        self.get(name).is_some_and(MayBeAgent::is_agent)
    }
}

/// The command of the runner that a process has: `own`, or the one that it keeps the name of; and what that gets of the
/// host's environment.
///
/// # Errors
/// [`UnknownRunner`] where it is not configured any more.
pub fn command(
    own: &RunnerCommand,
    runners: &BTreeMap<String, Runner>,
    kept: Option<&str>,
) -> Result<(RunnerCommand, Passes), UnknownRunner> {
    let Some(name) = kept else { return Ok((own.clone(), Passes::default())) };
    let runner = runners.get(name).ok_or_else(|| unknown(runners, name))?;
    Ok((runner.command(own), runner.passes()))
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
