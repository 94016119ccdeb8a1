//! The runners of a host, by their names.

use super::Host;
use crate::launcher::RunnerCommand;
use crate::process_table::Process;
use crate::runners::{self, UnknownRunner};

impl Host {
    /// How the runner of a process is started.
    ///
    /// # Errors
    /// In words, where it is not configured any more.
    pub(crate) fn runner_of(&self, row: &Process) -> Result<&RunnerCommand, String> {
        let options = &self.0.options;
        let command = runners::command(&options.runner, &options.runners, row.runner.as_deref());
        command.map_err(|error| error.to_string())
    }

    /// What a process keeps of the name of a runner.
    pub(crate) fn kept_runner(&self, name: &str) -> Result<Option<String>, UnknownRunner> {
        runners::kept(&self.0.options.runners, name)
    }

    /// The runners that can be named.
    pub(crate) fn named_runners(&self) -> &dyn runners::Named {
        &self.0.options.runners
    }

    /// The name of the runner of whoever names none; none is the host's own.
    pub(crate) fn default_runner(&self) -> Option<&str> {
        self.0.options.default_runner.as_deref()
    }
}
