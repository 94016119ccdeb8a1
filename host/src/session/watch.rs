//! What a session watches beside its runner's answers: the link, and whether the process is to stop.

use std::time::Duration;

use assistant_protocol::ids::ProcessId;
use assistant_protocol::peer::LinkReport;
use tokio::task::JoinHandle;

use super::stall::Stalled;
use crate::host::Host;
use crate::process_table;
use crate::store::StoreError;

/// How long a link may go on when its runner has ended: what was written is read by then, and what holds the pipe open
/// is none of the runner's.
const LINGER: Duration = Duration::from_secs(1);
/// How soon the table is looked at again where that failed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Why a run is to stop before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// A cancel is recorded.
    Cancelled,
    /// It has been ended by what is above it.
    Ended,
    /// The wall time is up.
    TimedOut,
    /// Nothing has happened for too long.
    Stalled(Stalled),
}

/// The task of a link, and how the link went once it has ended.
pub(super) struct LinkTask {
    task: Option<JoinHandle<Option<LinkReport>>>,
    /// None where it had to be given up.
    pub(super) report: Option<LinkReport>,
}

impl LinkTask {
    /// The link ends soon after its runner, whoever else holds the pipe.
    pub(super) fn new<T>(
        link: impl Future<Output = LinkReport> + Send + 'static,
        exited: impl Future<Output = T> + Send + 'static,
    ) -> Self {
        let over = async {
            drop(exited.await);
            tokio::time::sleep(LINGER).await;
        };
        let task = async {
            tokio::select! {
                report = link => Some(report),
                () = over => None,
            }
        };
        Self { task: Some(tokio::spawn(task)), report: None }
    }

    /// Waits for the end of the link. May be dropped and called again.
    pub(super) async fn ended(&mut self) {
        if let Some(task) = &mut self.task {
            match task.await {
                Ok(report) => self.report = report,
                Err(error) => tracing::error!(%error, "a link panicked"),
            }
            self.task = None;
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.task.as_ref().is_some_and(|task| !task.is_finished())
    }

    /// Gives the link up, and with it the runner's stdin.
    pub(super) async fn abort(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            if let Ok(report) = task.await {
                self.report = report;
            }
        }
    }
}

/// Waits until a cancel is recorded for the process, or something above has ended it.
pub(super) async fn told_to_stop(host: &Host, process: ProcessId) -> Stop {
    let mut waiter = host.store().waiter(process_table::stop_key(process));
    loop {
        match host.store().look(|db| process_table::get(db, process)) {
            Ok(row) if row.status.is_end() => return Stop::Ended,
            Ok(row) if row.marked => return Stop::Cancelled,
            Ok(_) => waiter.news().await,
            Err(error @ StoreError::Closed) => {
                tracing::debug!(%error, %process, "a process outlived its store");
                return Stop::Ended;
            }
            Err(error) => {
                tracing::error!(%error, %process, "whether a process is to stop could not be read");
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
    }
}

/// A text of at most this many bytes, which says so where it was cut.
pub(super) fn cut_bytes(text: String, bytes_max: u64) -> String {
    let most = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    if text.len() <= most {
        return text;
    }
    let mut at = most;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    format!("{}\n[cut: the result had {} bytes, the most is {most}]", &text[..at], text.len())
}
