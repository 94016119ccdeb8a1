//! What a process cannot go on without: stored as soon as the store takes it.

use std::sync::Arc;
use std::time::Duration;

use assistant_protocol::ids::ProcessId;

use crate::host::Host;
use crate::store::{StoreError, Tx};

/// How soon a job is tried again where the store could not be written.
pub(super) const STORE_AGAIN: Duration = Duration::from_secs(1);

/// Does a job, again and again as long as the store cannot be written (a full disk, a lock of another program).
///
/// # Errors
/// The job's own, and the store's when the host closes meanwhile.
pub(super) async fn stored<T, F>(host: &Host, process: ProcessId, job: F) -> Result<T, StoreError>
where
    T: Send + 'static,
    F: Fn(&mut Tx<'_>) -> Result<T, StoreError> + Send + Sync + 'static,
{
    let job = Arc::new(job);
    loop {
        let once = job.clone();
        match host.store().write(move |tx| once(tx)).await {
            Err(error) if error.passes() && !host.closing().is_cancelled() => {
                tracing::error!(%error, %process, "what became of a process is not stored yet");
                tokio::select! {
                    () = tokio::time::sleep(STORE_AGAIN) => {}
                    () = host.closing().cancelled() => {}
                }
            }
            outcome => return outcome,
        }
    }
}
