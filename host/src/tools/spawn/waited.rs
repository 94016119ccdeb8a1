//! The wait for the end of what was spawned.

use std::sync::Arc;

use assistant_protocol::ids::ProcessId;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::told::Ended;
use super::{RunMode, Spawn};
use crate::message_box;
use crate::process_table::{self, Cause};
use crate::store::Tx;
use crate::tools::processes::structured;
use crate::tools::usage;
use crate::tools::{Call, Output, ToolError, wait};

/// Waits for the end of what was spawned, where that is wanted, and hands it over in the commit that records the answer.
pub(super) async fn wait_for(call: &Call, mut told: Value, params: &Spawn) -> Result<Output, ToolError> {
    let wait_ms = params.wait_ms.unwrap_or(if params.run_mode == RunMode::Sync { u64::MAX } else { 0 });
    let bound = wait::bound(call, wait_ms);
    if let (Some(_), Some(clamped)) = (params.wait_ms, bound.clamped_to_ms) {
        told["wait_clamped_to_ms"] = json!(clamped);
    }
    let process = ProcessId::deserialize(&told["process_id"]).map_err(|error| ToolError::internal(&error))?;
    if wait_ms == 0 {
        // An answer that was kept under a key may be an old one.
        return if params.idempotency_key.is_some() {
            present(call, process, told).await
        } else {
            Ok(Output::of(told))
        };
    }
    let on: [Uuid; 2] = [process.into(), call.caller.into()];
    let told = Arc::new(told);
    let look = || async {
        let row = call.host.store().look(|db| process_table::get(db, process))?;
        if row.status.is_end() { hand_over(call, process, &told).await.map(Some) } else { Ok::<_, ToolError>(None) }
    };
    // Of all the news of the process only its end matters here.
    let woken_by: [Uuid; 2] = [process_table::stop_key(process), call.caller.into()];
    if let Some(output) = wait::until_woken(call, &on, &woken_by, bound.wait, look).await? {
        return Ok(output);
    }
    present(call, process, Arc::unwrap_or_clone(told)).await
}

/// What was told of a spawn, with the status that the process has now.
async fn present(call: &Call, process: ProcessId, told: Value) -> Result<Output, ToolError> {
    let (limits, now) = (*call.host.limits(), call.host.now());
    let looked = call.host.store().read(move |db| {
        Ok::<_, ToolError>((
            process_table::get(db, process)?.status,
            process_table::capacity(db, process, &limits, now)?,
        ))
    });
    let (status, capacity) = looked.await?;
    let mut output = Output::of(told);
    output.value["status"] = json!(status);
    output.value["capacity"] = json!(capacity);
    Ok(output)
}

async fn hand_over(call: &Call, process: ProcessId, told: &Arc<Value>) -> Result<Output, ToolError> {
    let (host, told, along, limits) = (call.host.clone(), told.clone(), call.along.clone(), *call.host.limits());
    let (chars, caller) = (limits.answer_chars as usize, call.caller);
    call.host
        .store()
        .write(move |tx| {
            wait::still_acts(tx, caller)?;
            let row = process_table::get(tx.db, process)?;
            let (mail, all) = message_box::take_from(tx, &row, chars, along.handed_by.as_deref())?;
            // A process has each message once: a result that waits still comes by itself.
            let waits = !all && row.parent.is_some();
            let before = mail.into_iter().filter(|one| one.kind != message_box::Kind::Final);
            let used = usage::of(tx.db, &row, host.models())?;
            let result = Ended {
                content: row.result.as_deref().filter(|_| !waits).map(|text| crate::text::cut(text, chars)),
                structured: structured(&row, chars / 2).filter(|_| !waits),
                reason: row.reason,
                error: row.error.clone(),
                messages: before.map(|one| one.mail).collect(),
                more: !all,
                usage: used.own,
                usage_tree: used.tree,
            };
            let mut output = Output::of(Value::clone(&told));
            output.value["status"] = json!(row.status);
            output.value["result"] = json!(result);
            let told = output.value.as_object_mut().filter(|told| told.contains_key("continued_from"));
            if let (Some(told), None) = (told, row.resumed_from) {
                // What it waited for has left nothing that could be gone on with.
                told.remove("continued_from");
                told.insert("started_afresh".to_owned(), json!(process_table::NOT_CONTINUED));
            }
            output.value["capacity"] = json!(process_table::capacity(tx.db, row.id, &limits, tx.now)?);
            if let Some(recorder) = along.recorder {
                recorder.finish(tx, &output.result())?;
                output.recorded = true;
            }
            Ok::<_, ToolError>(output)
        })
        .await
}

/// Cancels a process that a client waits for and whose id it has not yet, where the client gives the call up.
pub(super) struct CancelUnheard(Option<(crate::host::Host, ProcessId)>);

impl CancelUnheard {
    pub(super) fn new(call: &Call, process: ProcessId, params: &Spawn) -> Self {
        // Who has a key learns the id by calling again.
        let waits = params.run_mode == RunMode::Sync && params.idempotency_key.is_none();
        Self((waits && call.caller.process().is_none()).then(|| (call.host.clone(), process)))
    }

    pub(super) fn heard(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelUnheard {
    fn drop(&mut self) {
        let Some((host, process)) = self.0.take() else { return };
        tokio::spawn(async move {
            let cancel = move |tx: &mut Tx<'_>| process_table::cancel(tx, process, Cause::Requested);
            if let Err(error) = host.store().write(cancel).await {
                tracing::warn!(%error, %process, "a process that nobody waits for was not cancelled");
            }
        });
    }
}
