//! Where and by what a program is started: on this machine as it is, or by a launcher.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use assistant_protocol::ids::ProcessId;
use tokio::process::Command;

use super::by::Launcher;
use super::fill::{World, fill};
use super::mounts::{Ground, mounts};
use super::{CLIENT_ENVIRONMENT, ENVIRONMENT, RunnerCommand, end_there, named, passed_on, private, whole_path};

/// Where and by what a program is started.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    /// The launcher; none is this machine as it is.
    pub(crate) by: Option<&'a Launcher>,
    /// The command of the host's own runner.
    pub(crate) own: &'a RunnerCommand,
    /// The state directory.
    pub(crate) state: &'a Path,
    /// The state directory, and what else is the host's own: nothing that is fenced in sees it.
    pub(crate) private: &'a [PathBuf],
    /// The folder that the process works in.
    pub(crate) dir: Option<&'a Path>,
}

/// A launcher with what else is needed to start something by it.
pub(crate) struct Inside {
    pub(crate) launcher: Launcher,
    pub(crate) own: RunnerCommand,
    pub(crate) state: PathBuf,
    pub(crate) private: Vec<PathBuf>,
    pub(crate) dir: Option<PathBuf>,
}

impl Inside {
    /// Where and by what a program is started.
    pub(crate) fn site(&self) -> Site<'_> {
        let Self { launcher, own, state, private, dir } = self;
        Site { by: Some(launcher), own, state, private, dir: dir.as_deref() }
    }

    /// Ends what of this id was killed here, and may live on there.
    ///
    /// # Errors
    /// In words: it did not start, or took too long.
    pub(crate) async fn end_there(&self, id: ProcessId) -> Result<(), String> {
        end_there(&self.launcher, &id.to_string(), &self.state).await
    }
}

/// What is started by a launcher.
pub(super) struct Order<'a> {
    pub(super) command: &'a RunnerCommand,
    /// Where it begins, where that is not the folder of the process.
    pub(super) folder: Option<&'a Path>,
    /// What it is known by.
    pub(super) id: String,
    /// The variables that it gets.
    pub(super) told: Vec<(String, OsString)>,
}

/// The command that starts it by this launcher.
///
/// # Errors
/// In words: what there is not.
pub(super) fn command_of(launcher: &Launcher, site: &Site<'_>, order: Order<'_>) -> Result<Command, String> {
    let Order { command, folder, id, mut told } = order;
    if !launcher.shows_values() {
        told.extend(named(&launcher.env));
    }
    let dir = match (launcher.is_elsewhere(), site.dir) {
        (true, dir) => dir.map(Path::to_path_buf).or_else(|| launcher.dir.as_ref().map(PathBuf::from)),
        (false, None) => None,
        (false, Some(dir)) => {
            Some(dir.canonicalize().map_err(|error| format!("cannot use the folder {}: {error}", dir.display()))?)
        }
    };
    let seen = if launcher.mentions(&["{mounts}", "{volumes}"]) {
        mounts(launcher, &Ground { dir: dir.as_deref(), private: site.private, command, own: site.own })?
    } else {
        Vec::new()
    };
    let over_there = launcher.over_there(command, site.own);
    let world = World {
        command: &over_there,
        dir: folder.or(dir.as_deref()),
        id,
        told: &told,
        mounts: &seen,
        private: if launcher.mentions(&["{private}"]) { private::folder(site.state) } else { None },
    };
    let words = launcher.argv.iter().filter(|one| !one.with_dir || world.dir.is_some()).flat_map(|one| &one.words);
    let argv = fill(words, &world)?;
    let Some((program, args)) = argv.split_first() else { return Err("its command is empty".to_owned()) };
    // A name would be looked up by the variables below, which are not all the host's.
    let whole = program.to_str().and_then(whole_path);
    let mut command = Command::new(whole.as_deref().map_or(program.as_os_str(), Path::as_os_str));
    command.args(args).current_dir(site.state).env_clear().envs(passed_on(ENVIRONMENT));
    if launcher.tells_variables() {
        // They are the launcher's own: what it starts gets what it is told.
        command.envs(passed_on(CLIENT_ENVIRONMENT)).envs(named(&launcher.env));
    }
    if !launcher.tells_variables() || launcher.tells_names() {
        command.envs(told);
    }
    Ok(command)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn the_program_is_looked_up_in_the_hosts_own_path() {
        let text = "[launchers.a]\nargv = ['sh', '{runner}']";
        let launcher = Config::parse(text, Path::new("/c.toml")).and_then(|config| config.launcher("a", &|_| None));
        let launcher = launcher.expect("a launcher");
        let own = RunnerCommand::new("/r");
        let site = Site { by: Some(&launcher), own: &own, state: Path::new("/"), private: &[], dir: None };
        let told = vec![("PATH".to_owned(), OsString::from("/no/such"))];
        let order = Order { command: &own, folder: None, id: "7".to_owned(), told };
        let command = command_of(&launcher, &site, order).expect("a command");
        let program = Path::new(command.as_std().get_program());
        assert!(program.is_absolute() && program.ends_with("sh"), "{}", program.display());
    }
}
