//! Where a process works, before its runner is started.

use super::begin::Loaded;
use super::failed;
use super::watch::told_to_stop;
use crate::conversation;
use crate::host::Host;
use crate::process_table::{self, End, Reason};
use crate::store::StoreError;
use crate::worktrees::{self, NotEntered};

/// Lets a process into its worktree, where it has one. Gives its end where that cannot be, or is not wanted any more.
pub(super) async fn entered(host: &Host, loaded: &mut Loaded) -> Result<Option<End>, StoreError> {
    let process = loaded.row.id;
    let entered = tokio::select! {
        entered = worktrees::enter(host, &mut loaded.row, &loaded.definition) => entered,
        _ = told_to_stop(host, process) => return Ok(Some(process_table::cancel_marked())),
    };
    match entered {
        Ok(()) => {
            if let Some(before) = loaded.leave_session() {
                loaded.history = Some(host.store().read(move |db| conversation::history(db, before)).await?);
            }
            Ok(None)
        }
        Err(error @ NotEntered::Failed(_)) => Ok(Some(failed(Reason::LaunchFailed, error.to_string()))),
        Err(NotEntered::Store(error)) => Err(error),
    }
}
