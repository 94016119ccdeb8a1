//! Runners that run an agent of their own, with its model and its tools: what all of them share. In reading order:
//!
//! * `Agent`: what an agent is to the service; `service`: the host's end of it; `run`: one run, by which an agent tells
//!   the host what it does; `mail`: messages on their way to an agent; `prompt`: what a turn begins with;
//! * `process`: the agent's process, with all that it starts; `guard` and `sweep` (Linux): nothing is left of it, whoever is
//!   killed; `own`: this program, started again; `lines`, `stderr`: what it writes;
//! * `environment`: what it gets of the environment; `folder`: files that only it reads;
//! * `ids`: by which its calls are told;
//! * [`bridge`]: its way back: the tools of its assistant.

use std::time::Duration;

use assistant_protocol::error::RpcError;
use assistant_protocol::types::{AgentEvent, StopReason};

pub mod bridge;
pub(crate) mod environment;
pub(crate) mod folder;
#[cfg(target_os = "linux")]
pub(crate) mod guard;
pub(crate) mod ids;
pub(crate) mod lines;
pub(crate) mod literal;
mod mail;
pub(crate) mod own;
pub(crate) mod pieces;
pub(crate) mod process;
pub(crate) mod prompt;
pub(crate) mod run;
mod service;
mod stderr;
#[cfg(target_os = "linux")]
pub(crate) mod sweep;

pub(crate) use prompt::Prompt;
pub(crate) use run::Run;
pub(crate) use service::serve;

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnEnd {
    /// Why.
    pub(crate) stop_reason: StopReason,
    /// The agent's last answer.
    pub(crate) text: String,
}

/// An agent with its own model and tools. One value is one assistant: it keeps the session from turn to turn.
pub(crate) trait Agent: Send + 'static {
    /// Does one turn: gives the agent the prompt, tells the host by `run` what happens, and waits for the agent's answer.
    /// [`Prompt::given`] is to be called as soon as the agent has the prompt. Where the future is dropped, [`Agent::stop`]
    /// is called next.
    ///
    /// # Errors
    /// What `run` is answered with: errors of [`Run::tell`] as they came, and the agent's own.
    fn turn(&mut self, run: &Run, prompt: Prompt) -> impl Future<Output = Result<TurnEnd, RpcError>> + Send;

    /// Ends what goes on of a turn, in order within `grace`, else by force. Quick where nothing goes on. Gives what a turn
    /// that was given up, or has failed, has used and not told: what that has cost may be unknown, but it is not nothing.
    fn stop(&mut self, grace: Duration) -> impl Future<Output = Option<AgentEvent>> + Send;
}
