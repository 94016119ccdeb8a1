//! Makes the processes match the tables. Woken by the process table, it is the only one that starts a runner; each
//! runner's task ends it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use assistant_protocol::ids::ProcessId;

use crate::host::Host;
use crate::process_table::{self, Status};
use crate::session;
use crate::store::{SUPERVISOR, StoreError};

/// How soon the tables are looked at again where that failed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Runs until the host closes.
pub(crate) async fn run(host: Host) {
    let begun: Arc<Mutex<HashSet<ProcessId>>> = Arc::default();
    let mut waiter = host.store().waiter(SUPERVISOR);
    loop {
        let mut again = Duration::MAX;
        match starting(&host).await {
            Ok(due) => due.into_iter().for_each(|process| begin(&host, &begun, process)),
            Err(error) => {
                tracing::error!(%error, "the supervisor could not look at the process table");
                again = LOOK_AGAIN;
            }
        }
        tokio::select! {
            () = waiter.news() => {}
            () = tokio::time::sleep(again) => {}
            () = host.closing().cancelled() => return,
        }
    }
}

/// Gives free slots to those that wait, and tells which processes are to have a runner.
async fn starting(host: &Host) -> Result<Vec<ProcessId>, StoreError> {
    let (queued, starting) = host.store().look(process_table::to_start)?;
    if !queued {
        return Ok(starting);
    }
    let limits = *host.limits();
    host.store()
        .write(move |tx| {
            process_table::start_ready(tx, &limits)?;
            process_table::with_status(tx.db, Status::Starting)
        })
        .await
}

fn begin(host: &Host, begun: &Arc<Mutex<HashSet<ProcessId>>>, process: ProcessId) {
    if !begun.lock().unwrap_or_else(PoisonError::into_inner).insert(process) {
        return;
    }
    let (task_host, begun) = (host.clone(), begun.clone());
    host.spawn_runner(async move {
        session::run(task_host.clone(), process).await;
        tell_end(&task_host, process).await;
        begun.lock().unwrap_or_else(PoisonError::into_inner).remove(&process);
    });
}

/// One line of the log for each process that had a runner; its words are in the store only.
async fn tell_end(host: &Host, process: ProcessId) {
    match host.process(process).await {
        Ok(Some(row)) => tracing::info!(
            %process,
            assistant = row.assistant_id,
            status = %row.status,
            reason = row.reason.map(|reason| reason.name()),
            cause = row.cause.map(|cause| cause.name()),
            ms = row.finished_at.map(|end| end - row.created_at),
            model = row.model,
            model_calls = row.turns,
            tool_calls = row.tool_calls,
            exit_code = row.exit_code,
            "a process has ended"
        ),
        Ok(None) | Err(_) => tracing::warn!(%process, "how a process ended cannot be read"),
    }
}
