//! `send_message` and `recv_message`.

use std::sync::Arc;

use assistant_protocol::types::{Mail, RecvMessageParams, RecvMessageResult, SendMessageParams, SendMessageResult};
use serde_json::json;
use uuid::Uuid;

use super::once::Once;
use super::processes::structured;
use super::{Audience, Call, Hints, Output, Tool, ToolError, row, wait};
use crate::caller::Caller;
use crate::message_box::{self, Received, Wanted};
use crate::process_table;
use crate::store::Tx;

pub(super) fn rows() -> Vec<Tool> {
    let send = Hints { read_only: false, destructive: false, idempotent: false, open_world: false };
    vec![
        row::<_, SendMessageResult, _, _>("send_message", "Send a message", Audience::Everyone, send, send_message),
        row::<_, RecvMessageResult, _, _>("recv_message", "Read messages", Audience::Everyone, send, recv_message),
    ]
}

async fn send_message(call: Call, params: SendMessageParams) -> Result<Output, ToolError> {
    let (caller, limits) = (call.caller, *call.host.limits());
    let asked = json!([params.thread_id, params.message, params.to_assistant_id, params.to_process_id]);
    let once = Once::new(&call, "send_message", params.idempotency_key.as_deref(), &asked)?;
    let job = move |tx: &mut Tx<'_>| {
        if let Some(first) = once.as_ref().map(|once| once.first_answer(tx.db)).transpose()?.flatten() {
            return Ok(Output::of(first));
        }
        let output = Output::new(&message_box::send(tx, caller, &params, &limits)?)?;
        if let Some(once) = &once {
            once.keep(tx, &output.value)?;
        }
        Ok::<_, ToolError>(output)
    };
    call.host.store().write(job).await
}

async fn recv_message(call: Call, params: RecvMessageParams) -> Result<Output, ToolError> {
    let chars = call.host.limits().answer_chars;
    let wanted = Arc::new(Wanted::new(&params, chars)?);
    let bound = wait::bound(&call, params.wait_ms.unwrap_or(0));
    let thread = params.thread_id;
    let row = call.host.store().read(move |db| process_table::find_thread(db, thread)).await?;
    let mut on: Vec<Uuid> = vec![call.caller.into()];
    on.extend(row.map(|row| Uuid::from(row.id)));
    // What is waited for is something new: what the caller has read or written is there already.
    let is_new = params.since.is_some() || params.cursor.is_some() || bound.wait.is_zero();
    let new = RecvMessageParams { unread_only: params.unread_only || !is_new, ..params };
    let awaited = Arc::new(Wanted::new(&new, chars)?);
    let clamped = bound.clamped_to_ms;
    let look = || receive(&call, awaited.clone(), false, clamped);
    match wait::until(&call, &on, bound.wait, look).await? {
        Some(output) => Ok(output),
        None => receive(&call, wanted.clone(), true, clamped).await?.ok_or_else(ToolError::cancelled),
    }
}

/// One look: what is there, or none while there is nothing (unless that is an answer too).
async fn receive(
    call: &Call,
    wanted: Arc<Wanted>,
    empty_too: bool,
    wait_clamped_to_ms: Option<u64>,
) -> Result<Option<Output>, ToolError> {
    let caller = call.caller;
    let (along, chars) = (call.along.clone(), call.host.limits().answer_chars as usize);
    call.host
        .store()
        .write(move |tx| {
            let Received { result, handed_over } =
                message_box::receive(tx, caller, &wanted, along.handed_by.as_deref())?;
            if result.messages.is_empty() && !empty_too {
                return Ok(None);
            }
            // The last word of a process is its result: as data too, where it is that and both fit.
            let row = process_table::find_thread(tx.db, wanted.thread())?;
            let is_result = |row: &process_table::Process| {
                let is =
                    |mail: &Mail| mail.from_process_id == Some(row.id) && row.result.as_ref() == Some(&mail.content);
                row.structured.is_some() && result.messages.iter().any(is)
            };
            let structured = row.filter(is_result).and_then(|row| structured(&row, chars / 2));
            let mut output = Output::new(&RecvMessageResult { structured, wait_clamped_to_ms, ..result })?;
            if let (true, Caller::Process(_), Some(recorder)) = (handed_over, caller, along.recorder) {
                recorder.finish(tx, &output.result())?;
                output.recorded = true;
            }
            Ok::<_, ToolError>(Some(output))
        })
        .await
}
