//! How deep a spawn may reach in the profile of its session.

use super::choose::names;
use crate::caller::{Caller, MAIN};
use crate::limits::Limits;
use crate::process_table::{self, Process, ProfileName};
use crate::registry::{Definition, is_all};
use crate::tools::{Call, ToolError};

/// Bounds the depth of a new process of `definition`. In the profile `subagents` a subagent runs no other one, but one
/// whose definition names it among those that may: then one level more, and no more than anywhere.
pub(super) async fn bound(
    call: &Call,
    parent: Option<&Process>,
    definition: &Definition,
    limits: &mut Limits,
) -> Result<(), ToolError> {
    let session = match (parent, call.caller) {
        (Some(parent), _) => parent.session,
        (None, Caller::Session(session)) => session,
        (None, Caller::Process(_)) => return Err(ToolError::caller_ended()),
    };
    let row = call.host.store().read(move |db| process_table::session(db, session)).await?;
    if row.is_none_or(|row| row.profile != ProfileName::Subagents) {
        return Ok(());
    }
    let most = call.host.limits();
    limits.depth = match parent {
        Some(parent) if names_it(definition, &parent.assistant_id) => most.depth.min(parent.depth.saturating_add(1)),
        Some(_) | None => limits.depth.min(most.subagents_depth),
    };
    Ok(())
}

/// Whether a definition names this assistant as one that may run it: by its name, not as everyone.
fn names_it(definition: &Definition, caller: &str) -> bool {
    let Some(allowed) = &definition.allowed_callers else { return false };
    let by_name: Vec<String> = allowed.iter().filter(|one| !is_all(one)).cloned().collect();
    caller != MAIN && names(&by_name, caller)
}
