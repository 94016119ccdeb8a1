//! The runners of a host, by their names, and the worktrees that they work in.

use super::Host;
use crate::launcher::{Passes, RunnerCommand, Strays};
use crate::process_table::Process;
use crate::runners::{self, UnknownRunner};
use crate::worktrees::Worktrees;

impl Host {
    /// How the runner of a process is started, and what it gets of the host's environment.
    ///
    /// # Errors
    /// In words, where it is not configured any more.
    pub(crate) fn runner_of(&self, row: &Process) -> Result<(RunnerCommand, Passes), String> {
        let options = &self.0.options;
        let command = runners::command(&options.runner, &options.runners, row.runner.as_deref());
        command.map_err(|error| error.to_string())
    }

    /// What ends that which runners have left.
    pub(crate) fn strays(&self) -> &Strays {
        &self.0.strays
    }

    /// The worktrees that processes have.
    pub(crate) fn worktrees(&self) -> &Worktrees {
        &self.0.worktrees
    }

    /// What a process keeps of the name of a runner.
    pub(crate) fn kept_runner(&self, name: &str) -> Result<Option<String>, UnknownRunner> {
        runners::kept(&self.0.options.runners, name)
    }

    /// The runners that can be named.
    pub(crate) fn named_runners(&self) -> &dyn runners::Named {
        &self.0.options.runners
    }

    /// Whether the runner of this name is known to run an agent that has its own model and tools.
    pub(crate) fn is_agent(&self, kept: Option<&str>) -> bool {
        kept.is_some_and(|name| self.named_runners().is_agent(name))
    }

    /// The name of the runner of whoever names none; none is the host's own.
    pub(crate) fn default_runner(&self) -> Option<&str> {
        self.0.options.default_runner.as_deref()
    }

    /// Why it is that one, where nobody has said so.
    #[must_use]
    pub fn default_runner_why(&self) -> Option<&str> {
        self.0.options.default_runner_why.as_deref()
    }
}
