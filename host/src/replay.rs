//! A recorded run again, with no model, no tools and no network: is every request of the runner the same?
//!
//! The runner is started for real and spoken to over the same link as ever; what it asks is compared with what was asked
//! when the run was recorded, and answered with what was answered then. Nothing else can happen: whoever plays has a
//! [`Recording`] and a runner, and neither models nor tools nor a store that could be written.
//!
//! * Model calls are compared one after the other: messages, tools, options. Tool calls are compared by `call_id`: name
//!   and arguments. `send_message`, `recv_message` and `on_aggregate_service_context` are compared by their params;
//!   `on_progress` is answered and not compared.
//! * Answers to calls that are made beside each other come in the order in which the runner got them.
//! * What is asked while no run is in flight is refused, as it was, and is in no record.
//! * `cancel` comes when the same requests were made; what the runner asks behind it need not come again. Where it crossed with
//!   the answers to all that the runner had asked, what the run is answered with is not compared: the record does not tell
//!   which of them came first.
//! * A runner that answers its run while a call of it is under way races with itself: whether the call was recorded is not
//!   the runner's doing, and it can differ from one time to the next.
//! * The first difference ends it. The answer to each `run` is compared too.
//! * Where the record ends before a run was answered, what the runner asks beyond it is no difference, and stays unanswered.
//!
//! In reading order: `recording` (what passed), `expected` (what is compared), `stage` (where requests come in), `play` (the
//! host's side), `difference` (what was not the same).

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use assistant_protocol::ids::ProcessId;
use serde::Serialize;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::launcher::RunnerCommand;
use crate::store::StoreError;

mod difference;
mod expected;
mod play;
mod recording;
mod stage;

#[cfg(feature = "cli")]
pub(crate) use difference::told_apart;
pub use difference::{Difference, What};
pub use recording::{Answer, Failed, GivenTools, Known, ModelAsked, Recording, RunAnswer, Step};

/// How long the next request, or an answer, is waited for, unless told otherwise.
pub const WAIT: Duration = Duration::from_secs(10);

/// How a recording is played.
#[derive(Debug, Clone)]
pub struct How {
    /// How long the next request of the runner, or its answer, is waited for.
    pub wait: Duration,
    /// The folder that the runner is started in.
    pub dir: PathBuf,
}

impl Default for How {
    fn default() -> Self {
        Self { wait: WAIT, dir: PathBuf::from(".") }
    }
}

/// Why a run cannot be played again.
#[derive(Debug, thiserror::Error)]
pub enum NoReplay {
    /// The store has no such process, or there is no store.
    #[error(
        "there is no process {0} here (any more: what ended long ago is removed); `assistant-host ps` lists what there is"
    )]
    Unknown(ProcessId),
    /// Its runner was never asked to run.
    #[error("the process {process} was never run (it is {status}): there is nothing to play again")]
    NeverRun {
        /// The process.
        process: ProcessId,
        /// Where it is in its life.
        status: &'static str,
    },
    /// It was recorded before hosts recorded what passes on a link.
    #[error("the process {0} was run by an earlier version, which did not record enough to play it again")]
    Earlier(ProcessId),
    /// What an agent asks its own model, and what its own tools do, is not recorded.
    #[error(
        "the process {0} was run by an agent, which asked a model and called tools of its own: that passed by this host, and \
         cannot be played again; `assistant-host logs {0} --transcript` shows what it told"
    )]
    OfAgent(ProcessId),
    /// Something of it is not in the store any more.
    #[error("the record lacks {0}")]
    Lacks(String),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file cannot be read or written.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The runner does not start.
    #[error("{0}")]
    Launch(String),
}

/// What came of playing a recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The process that was recorded.
    pub process_id: ProcessId,
    /// The runner, as it named itself.
    pub runner: String,
    /// Whether the record has the answer to the last run; else it was played as far as it goes.
    pub complete: bool,
    /// Where the process was in its life when it was recorded.
    pub recorded: String,
    /// Runs that were answered the same.
    pub runs: usize,
    /// Model calls that were the same.
    pub model_calls: usize,
    /// Tool calls that were the same.
    pub tool_calls: usize,
    /// Other requests that were the same.
    pub other_requests: usize,
    /// The first difference; none where all was the same.
    pub difference: Option<Difference>,
}

impl Report {
    /// Whether all was the same, as far as it was recorded.
    #[must_use]
    pub fn identical(&self) -> bool {
        self.difference.is_none()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, model_calls, tool_calls, other_requests, .. } = self;
        let same =
            format!("{runs} runs, {model_calls} model calls, {tool_calls} tool calls, {other_requests} other requests");
        match &self.difference {
            Some(difference) => write!(f, "{difference}\n(before that, the same: {same})")?,
            None => write!(f, "identical: {same}")?,
        }
        if !self.complete {
            write!(f, "\nThe record ends before the last run was answered (the process was {}).", self.recorded)?;
        }
        Ok(())
    }
}

/// Plays a recording to a runner.
///
/// # Errors
/// [`NoReplay::Launch`] where the runner does not start. Whatever it does then is in the [`Report`].
pub async fn replay(recording: &Recording, runner: &RunnerCommand, how: How) -> Result<Report, NoReplay> {
    let played = replay_until(recording, runner, how, std::future::pending()).await;
    played.unwrap_or_else(|| Err(NoReplay::Launch("the player panicked".to_owned())))
}

/// The same until it is to stop: then the runner is killed, and there is no report.
pub(crate) async fn replay_until(
    recording: &Recording,
    runner: &RunnerCommand,
    how: How,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Option<Result<Report, NoReplay>> {
    let (recording, runner) = (recording.clone(), runner.clone());
    let (mut told, report) = oneshot::channel();
    // On a thread of its own, which wakes its tasks in order: answers that are given one after the other are written so.
    let thread = std::thread::Builder::new().name("replay".to_owned()).spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        let played = runtime.map(|runtime| {
            runtime.block_on(async {
                tokio::select! {
                    report = play::play(&recording, &runner, how) => Some(report),
                    () = told.closed() => None,
                    () = stop => None,
                }
            })
        });
        let failed = |error: std::io::Error| Some(Err(NoReplay::Launch(format!("no runtime: {error}"))));
        if let Some(report) = played.unwrap_or_else(failed) {
            // Nobody listens where the caller was dropped meanwhile.
            drop(told.send(report));
        }
    });
    match thread {
        Ok(_) => report.await.ok(),
        Err(error) => Some(Err(NoReplay::Launch(format!("no thread: {error}")))),
    }
}
