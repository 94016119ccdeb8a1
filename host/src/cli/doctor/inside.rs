//! What of the host's own lies inside of the project, where assistants work.

use std::path::{Path, PathBuf};

use super::{Problem, Report};
use crate::cli::open;
use crate::config::Config;

/// Notes each key, the configuration and the state that lie in the project.
pub(super) fn look(report: &mut Report, config: &Config) {
    let Some(project) = report.project.as_deref().and_then(real) else { return };
    let configured = real(&report.configuration.path);
    let private = config.private(&open::env);
    let keys = private.iter().filter_map(|path| real(path)).filter(|path| Some(path) != configured.as_ref());
    let keys: Vec<_> = keys.map(|path| ("the key file", path)).collect();
    let places = [("the configuration", &report.configuration.path), ("the state directory", &report.state.path)];
    let places = places.into_iter().filter_map(|(what, path)| Some((what, real(path)?)));
    let mut within: Vec<_> = places.chain(keys).filter(|(_, path)| path.starts_with(&project)).collect();
    within.dedup();
    let hint = "keep it outside: the host's tools and its boxes do not show it, but an agent that runs without a box, a tool \
                server and git can get at it";
    report.notes.extend(within.into_iter().map(|(what, path)| Problem {
        message: format!("{what} {} lies in the project {}", path.display(), project.display()),
        hint: hint.to_owned(),
    }));
}

/// Where a path leads, of which the last part may not be there yet.
fn real(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    // Joined with nothing, a file would end like a folder.
    let there = |around: &Path| {
        let (real, rest) = (around.canonicalize().ok()?, path.strip_prefix(around).ok()?);
        Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
    };
    path.ancestors().find_map(there)
}
