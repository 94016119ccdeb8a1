//! Whether each configured launcher starts a runner.

use std::time::{Duration, Instant};

use assistant_protocol::ids::ProcessId;
use assistant_protocol::types::Program;
use serde::Serialize;

use super::Report;
use super::runners::try_out;
use crate::cli::open::{self, Setting, env};
use crate::host::make_private;
use crate::launcher::{self, Launcher, Passes, RunnerCommand, Site, end_there};

/// A configured launcher.
#[derive(Serialize)]
pub(super) struct Known {
    pub(super) name: String,
    /// Its preset, else its program.
    pub(super) by: String,
    /// Whether it is that of assistants which none is named for.
    pub(super) default: bool,
    /// What the runner says that it is; none where it was not started, or does not work.
    pub(super) told: Option<Program>,
    /// How long that took to answer, milliseconds.
    pub(super) started_ms: Option<u64>,
    pub(super) error: Option<String>,
}

/// Starts our runner by each configured launcher where `calls`, and ends it.
pub(super) async fn look(report: &mut Report, setting: &Setting, calls: bool) {
    let config = &setting.config;
    let launchers = match config.launchers(&env) {
        Ok(launchers) => launchers,
        Err(error) => return report.problem(error, "mend the configuration"),
    };
    if launchers.is_empty() {
        return;
    }
    let own = match open::runner().await {
        Ok(own) => own,
        // That is told where it is looked for.
        Err(_) => return,
    };
    let state = match setting.state() {
        Ok(state) => state,
        Err(error) => return report.problem(error.message, "name a state directory with --state"),
    };
    // As for a host: what is fenced in sees nothing of these.
    let own_folders = open::trust_dir().into_iter().chain([state.clone()]);
    let private: Vec<_> = config.private(&env).into_iter().chain(own_folders).collect();
    for (name, launcher) in launchers {
        let missing = launcher.program().is_some_and(|program| !launcher::is_found(program));
        let began = Instant::now();
        let tried = match (missing, calls) {
            (true, _) => Some(Err(launcher.not_installed())),
            (false, true) => {
                let dir = setting.project.as_deref().filter(|_| !launcher.is_elsewhere());
                let site = Site { by: Some(&launcher), own: &own, state: &state, private: &private, dir };
                let within = launcher.within(config.limits.launch_ms);
                Some(match make_private(&state) {
                    Ok(()) => started(&own, &site, &launcher, within).await,
                    Err(error) => Err(format!("cannot make {}: {error}", state.display())),
                })
            }
            (false, false) => None,
        };
        let started_ms = tried.as_ref().map(|_| u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
        let error = tried.as_ref().and_then(|tried| tried.as_ref().err().cloned());
        if let Some(error) = &error {
            let hint = "mend its entry in the configuration, or take it out: assistants that it starts do not run";
            report.problem_here(format!("the launcher {name}: {error}"), hint);
        }
        report.launchers.push(Known {
            by: launcher.preset.map_or(launcher.program().unwrap_or("its runner"), |preset| preset.name).to_owned(),
            default: config.default_launcher.as_ref() == Some(&name),
            told: tried.and_then(Result::ok),
            started_ms: started_ms.filter(|_| !missing),
            error,
            name,
        });
    }
}

async fn started(
    own: &RunnerCommand,
    site: &Site<'_>,
    launcher: &Launcher,
    within: Duration,
) -> Result<Program, String> {
    let id = ProcessId::mint().to_string();
    let tried = match launcher::launch_as(own, &Passes::default(), site, &id, 1) {
        Ok(launched) => try_out(launched, within).await,
        Err(error) => Err(error),
    };
    if tried.is_err()
        && let Err(error) = end_there(launcher, &id, site.state).await
    {
        return tried.map_err(|first| format!("{first}; and what it has left may live on: {error}"));
    }
    tried
}
