//! Where the runner of a spawn is started: as that of the resumed process, else as the definition says, else as that of
//! whoever spawns it, else by the default. What is fenced in spawns nothing outside of its fence, unless the configuration
//! has a launcher for that.

use std::path::PathBuf;

use super::resume::Resumed;
use crate::host::Host;
use crate::launcher::Launcher;
use crate::launchers::{LOCAL, UnknownLauncher, out_of};
use crate::process_table::Process;
use crate::registry::Definition;
use crate::tools::ToolError;
use crate::tools::files::FILE_TOOLS;
use crate::tools::grants::{Grants, Unavailable};

/// The longest path of a folder elsewhere, bytes.
const DIR_BYTES_MAX: usize = 4096;

/// The launcher of the new process; none is the machine as it is.
///
/// # Errors
/// `no_launcher` where there is none of that name, or it would take the assistant out of a fence.
pub(super) fn choose<'a>(
    host: &'a Host,
    resumed: Option<&Resumed>,
    parent: Option<&Process>,
    definition: &Definition,
) -> Result<Option<&'a Launcher>, ToolError> {
    let unless = match parent {
        Some(parent) => parent.launcher.as_deref(),
        None => host.default_launcher().filter(|name| *name != LOCAL),
    };
    let (name, whose, hint) = match (resumed, definition.launcher.as_deref()) {
        (Some(resumed), _) => (
            resumed.launcher.as_deref(),
            "the resumed process".to_owned(),
            "Spawn it anew, or tell the user to configure it again.",
        ),
        (None, Some(name)) => (
            Some(name),
            format!("the `launcher` of `{}` ({})", definition.id, definition.place()),
            "Tell the user to correct the definition, or to configure the launcher ([launchers.NAME]).",
        ),
        (None, None) => (unless, "the default".to_owned(), "Tell the user to correct `default_launcher`."),
    };
    let no_launcher = |why: String| ToolError::new("no_launcher", format!("{whose}: {why}"), hint);
    match (name, unless) {
        (Some(LOCAL), Some(fence)) if resumed.is_none() => {
            return Err(no_launcher(out_of(fence)));
        }
        _ => {}
    }
    let kept =
        host.kept_launcher(name.unwrap_or(LOCAL)).map_err(|error: UnknownLauncher| no_launcher(error.to_string()))?;
    host.launcher(kept.as_deref()).map_err(|error| no_launcher(error.to_string()))
}

/// Takes away what would read other files than those that the assistant works on.
pub(super) fn without_files(granted: &mut Grants, launcher: &Launcher) {
    let (without, kept) =
        std::mem::take(&mut granted.tools).into_iter().partition(|tool| FILE_TOOLS.contains(&&**tool));
    granted.tools = kept;
    let without: Vec<String> = without;
    granted.unavailable.extend(without.into_iter().map(|tool| Unavailable {
        tool,
        why: format!(
            "the launcher `{}` has it work on the files of another machine; this tool would read those of the host's",
            launcher.name
        ),
    }));
}

/// The folder of a process that works on another machine; below that of the launcher, where that has one.
///
/// # Errors
/// `bad_argument` where it cannot be one.
pub(super) fn far_dir(launcher: &Launcher, wanted: Option<&str>) -> Result<Option<PathBuf>, ToolError> {
    let Some(wanted) = wanted else { return Ok(launcher.dir.clone().map(PathBuf::from)) };
    let refused = |why: &str| {
        let shown: String = wanted.chars().take(200).collect();
        let hint = "Give a path as it is on the machine where the assistant works, or leave it out.";
        ToolError::bad_argument(format!("`working_dir` {shown} {why}"), hint)
    };
    if wanted.trim().is_empty() || wanted.len() > DIR_BYTES_MAX || wanted.chars().any(char::is_control) {
        return Err(refused("is no path"));
    }
    let is_absolute = wanted.starts_with('/') || std::path::Path::new(wanted).is_absolute();
    match &launcher.dir {
        None if !is_absolute => Err(refused("is not absolute, and the launcher has no `dir` that it could begin at")),
        None => Ok(Some(PathBuf::from(wanted))),
        Some(_) if wanted.split('/').any(|part| part == "..") => Err(refused("leads out of the launcher's folder")),
        Some(base) if is_absolute => {
            let below = std::path::Path::new(wanted).starts_with(base);
            if below { Ok(Some(PathBuf::from(wanted))) } else { Err(refused("lies outside of the launcher's folder")) }
        }
        Some(base) => Ok(Some(PathBuf::from(format!("{}/{wanted}", base.trim_end_matches('/'))))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn folders_elsewhere() {
        let check = |dir: &str, wanted: Option<&str>, expected: Result<Option<&str>, &str>| {
            let dir = if dir.is_empty() { String::new() } else { format!("dir = '{dir}'") };
            let text = format!("[launchers.a]\npreset = 'ssh'\nhost = 'h'\n{dir}");
            let config = Config::parse(&text, "c.toml".as_ref()).expect("a configuration");
            let launcher = config.launcher("a", &|_| None).expect("a launcher");
            let found = far_dir(&launcher, wanted).map_err(|error| error.message);
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected.map(PathBuf::from), "{dir} {wanted:?}"),
                (Err(error), Err(part)) => assert!(error.contains(part), "{dir} {wanted:?}: {error}"),
                (found, _) => panic!("{dir} {wanted:?}: {found:?}"),
            }
        };
        check("", None, Ok(None));
        check("", Some("/a b"), Ok(Some("/a b")));
        check("", Some("a"), Err("is not absolute"));
        check("", Some("/a\nb"), Err("is no path"));
        check("", Some(" "), Err("is no path"));
        check("/w/", None, Ok(Some("/w/")));
        check("/w/", Some("a/b"), Ok(Some("/w/a/b")));
        check("/w", Some("/w/a"), Ok(Some("/w/a")));
        check("/w", Some("/wa"), Err("lies outside"));
        check("/w", Some("a/../../b"), Err("leads out"));
    }
}
