//! Which runner a spawn means: the call's, else the one that a resumed process had, else the definition's, else the default.

use super::resume::Resumed;
use crate::host::Host;
use crate::registry::Definition;
use crate::runners::{OWN, UnknownRunner};
use crate::tools::ToolError;

/// What the new process keeps of its runner's name; nothing is the host's own.
///
/// # Errors
/// `no_runner` where there is none of that name, with whose word it is.
pub(super) fn choose(
    host: &Host,
    named: Option<&str>,
    resumed: Option<&Resumed>,
    definition: &Definition,
) -> Result<Option<String>, ToolError> {
    let (name, whose, hint) = match (named, resumed, definition.runner.as_deref()) {
        (Some(name), ..) => (name, "`runner`".to_owned(), "Name one of them, or leave `runner` out."),
        (None, Some(Resumed { runner, .. }), _) => (
            runner.as_deref().unwrap_or(OWN),
            "the resumed process".to_owned(),
            "Name one of them as `runner`, or tell the user to configure it again.",
        ),
        (None, None, Some(name)) => (
            name,
            format!("the `runner` of `{}` ({})", definition.id, definition.place()),
            "Name one of them as `runner`; or tell the user to correct the definition, or to configure the runner \
             ([runners.NAME] with a `command`).",
        ),
        (None, None, None) => (
            host.default_runner().unwrap_or(OWN),
            "the default".to_owned(),
            "Name one of them as `runner`, and tell the user to correct `default_runner`.",
        ),
    };
    host.kept_runner(name)
        .map_err(|error: UnknownRunner| ToolError::new("no_runner", format!("{whose}: {error}"), hint))
}
