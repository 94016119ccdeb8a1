//! The launchers of a host, by their names.

use std::path::{Path, PathBuf};

use futures::stream::{StreamExt, iter};
use tokio::sync::Semaphore;

use super::Host;
use crate::launcher::{self, Inside, Launcher, Site};
use crate::launchers::{self, UnknownLauncher};
use crate::process_table::Process;
use crate::tools::Own;

/// Processes of a dead host that are ended elsewhere beside each other.
const ENDINGS_MAX: usize = 8;

impl Host {
    /// The launcher that a process keeps the name of; none is the machine as it is.
    ///
    /// # Errors
    /// [`UnknownLauncher`] where it is not configured any more.
    pub(crate) fn launcher(&self, kept: Option<&str>) -> Result<Option<&Launcher>, UnknownLauncher> {
        launchers::launcher(&self.0.options.launchers, kept)
    }

    /// What a process keeps of the name of a launcher.
    pub(crate) fn kept_launcher(&self, name: &str) -> Result<Option<String>, UnknownLauncher> {
        launchers::kept(&self.0.options.launchers, name)
    }

    /// The launchers that can be named.
    pub(crate) fn named_launchers(&self) -> &dyn launchers::Named {
        &self.0.options.launchers
    }

    /// The name of the launcher of whom none is named for; none is the machine as it is.
    pub(crate) fn default_launcher(&self) -> Option<&str> {
        self.0.options.default_launcher.as_deref()
    }

    /// Launches on this machine; those by a launcher may take much longer, and are counted apart.
    pub(crate) fn launch_permits(&self, by_launcher: bool) -> &Semaphore {
        if by_launcher { &self.0.far_launch_permits } else { &self.0.launch_permits }
    }

    /// What nothing that is fenced in sees.
    pub(crate) fn private(&self) -> &[PathBuf] {
        &self.0.private
    }

    /// The same for the host's tools, by whatever name.
    pub(crate) fn hidden(&self) -> &Own {
        &self.0.own
    }

    /// Where and by what the runner of a process is started.
    ///
    /// # Errors
    /// In words, where its launcher is not configured any more.
    pub(crate) fn site_of<'a>(&'a self, row: &'a Process) -> Result<Site<'a>, String> {
        let by = self.launcher(row.launcher.as_deref()).map_err(|error| error.to_string())?;
        let (own, state) = (&self.0.options.runner, self.state_dir());
        Ok(Site { by, own, state, private: self.private(), dir: row.working_dir.as_deref().map(AsRef::as_ref) })
    }

    /// The same, kept for a server of a process that works in `dir`.
    pub(crate) fn inside(&self, launcher: &Launcher, dir: Option<&Path>) -> Inside {
        let options = &self.0.options;
        Inside {
            launcher: launcher.clone(),
            own: options.runner.clone(),
            state: options.state.clone(),
            private: self.0.private.clone(),
            dir: dir.map(Path::to_path_buf),
        }
    }

    /// Ends what the runner of a process has left, here and where its launcher started it; `in_order` tells that it exited by
    /// itself and with 0.
    pub(crate) async fn end_left_of(&self, row: &Process, group: Option<u32>, in_order: bool) {
        if !in_order {
            self.end_there(row).await;
        }
        self.strays().end_of(row.id, group, in_order).await;
    }

    /// Ends what the runners of a dead host have left; what is elsewhere in a task that the host waits for when it closes.
    pub(super) async fn end_left(&self, left: Vec<Process>) {
        self.strays().end_all(&left.iter().map(|row| row.id).collect::<Vec<_>>()).await;
        let host = self.clone();
        self.spawn_runner(async move {
            let ending = |row: Process| {
                let host = &host;
                async move { host.end_there(&row).await }
            };
            iter(left).for_each_concurrent(ENDINGS_MAX, ending).await;
        });
    }

    async fn end_there(&self, row: &Process) {
        let ended = match self.launcher(row.launcher.as_deref()) {
            Ok(Some(launcher)) => launcher::end_there(launcher, &row.id.to_string(), self.state_dir()).await,
            Ok(None) => return,
            Err(unknown) => Err(unknown.to_string()),
        };
        if let Err(error) = ended {
            let process = row.id;
            tracing::warn!(%error, %process, "what a killed runner has left elsewhere may live on");
        }
    }
}
