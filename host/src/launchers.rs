//! Where a runner is started: on this machine as it is, or by a launcher that the configuration names. Nobody but who
//! configures the host says what is started: definitions give names, and none takes itself out of a fence.

use std::collections::BTreeMap;

use crate::launcher::Launcher;
use crate::registry::nearest_name;
use crate::text::{NAME_SHOWN_CHARS_MAX, cut, one_line};

/// The name of what is there without a launcher.
pub const LOCAL: &str = "local";
/// How much an error tells of the names that there are, characters.
const KNOWN_CHARS_MAX: usize = 400;

/// No launcher has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no launcher is called `{name}`{near}; there are: {known}")]
pub struct UnknownLauncher {
    /// What was asked for, cut.
    pub name: String,
    /// A name that looks like it, in words; empty where there is none.
    pub near: String,
    /// The names that there are, cut.
    pub known: String,
}

/// What a process keeps of the name of a launcher: nothing for none.
///
/// # Errors
/// [`UnknownLauncher`] where `launchers` has no such name.
pub fn kept<T>(launchers: &BTreeMap<String, T>, name: &str) -> Result<Option<String>, UnknownLauncher> {
    match name {
        LOCAL => Ok(None),
        name if launchers.contains_key(name) => Ok(Some(name.to_owned())),
        name => Err(unknown(launchers, name)),
    }
}

/// Launchers by their names, whatever is known of them.
pub(crate) trait Named {
    /// What [`kept`] says of a name.
    fn named(&self, name: &str) -> Result<Option<String>, UnknownLauncher>;
}

impl<T> Named for BTreeMap<String, T> {
    fn named(&self, name: &str) -> Result<Option<String>, UnknownLauncher> {
        kept(self, name)
    }
}

/// The launcher that a process keeps the name of; none for none.
///
/// # Errors
/// [`UnknownLauncher`] where it is not configured any more.
pub fn launcher<'a>(
    launchers: &'a BTreeMap<String, Launcher>,
    kept: Option<&str>,
) -> Result<Option<&'a Launcher>, UnknownLauncher> {
    let Some(name) = kept else { return Ok(None) };
    launchers.get(name).map(Some).ok_or_else(|| unknown(launchers, name))
}

/// An error of the launcher that a process has, with its name where there is one.
pub(crate) fn told(kept: Option<&str>, error: String) -> String {
    match kept {
        Some(name) => format!("the launcher `{name}`: {error}"),
        None => error,
    }
}

/// Why a definition cannot name [`LOCAL`] where it would have the launcher `fence`.
pub(crate) fn out_of(fence: &str) -> String {
    format!(
        "`{LOCAL}` would take it out of the launcher `{fence}`; where it may run so, the configuration has a launcher with preset \
         = \"local\" for it"
    )
}

fn unknown<T>(launchers: &BTreeMap<String, T>, name: &str) -> UnknownLauncher {
    let known: Vec<&str> = std::iter::once(LOCAL).chain(launchers.keys().map(String::as_str)).collect();
    let name = cut(&one_line(name), NAME_SHOWN_CHARS_MAX);
    let near = nearest_name(&name, &known).map(|near| format!(" (`{near}` is)")).unwrap_or_default();
    UnknownLauncher { name, near, known: cut(&known.join(", "), KNOWN_CHARS_MAX) }
}
