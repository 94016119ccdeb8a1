//! What a wait hands over to a process: each message once, whole, and in the order in which its sender wrote.

use assistant_protocol::ids::ProcessId;

use super::{CONTENT_CHARS_MAX, Event, Happened, Told};
use crate::message_box::{self, Boxed, Kind};
use crate::process_table::{self, Status};
use crate::store::Tx;
use crate::tools::ToolError;
use crate::tools::processes::structured;

/// Stands for what is too long for an answer, or comes behind that.
const LATER: &str = "(long: it comes whole before your next step)";
/// Stands for the words of an end that are in the conversation.
const BEFORE: &str = "(you have its words already)";

/// Hands over what the senders of `told` have queued for a process, as much as an answer holds, and gives the events to
/// tell. What does not fit is told without its content and comes as every other message does.
pub(super) fn hand_over(
    tx: &Tx<'_>,
    me: ProcessId,
    told: Vec<Told>,
    chars_max: usize,
    by: Option<&str>,
) -> Result<Vec<Event>, ToolError> {
    let mut senders: Vec<Option<ProcessId>> = Vec::new();
    for one in told.iter().filter(|one| one.is_new) {
        if !senders.contains(&one.from) {
            senders.push(one.from);
        }
    }
    let mut taken = message_box::taken_whole(tx, me, &senders, chars_max, by, |_| true)?;
    let mut events = Vec::new();
    let mut ended: Vec<ProcessId> = Vec::new();
    for one in told {
        let (now, others): (Vec<Boxed>, _) = taken.into_iter().partition(|mail| mail.mail.from_process_id == one.from);
        taken = others;
        for mail in now {
            if mail.kind == Kind::Final {
                ended.extend(mail.mail.from_process_id);
            }
            events.push(event(tx, &mail)?);
        }
        let is_told = match (one.message, one.from) {
            (Some(message), _) => message_box::find(tx.db, message)?.is_some_and(|mail| mail.delivered),
            (None, Some(process)) => ended.contains(&process),
            (None, None) => true,
        };
        if !is_told {
            let content = if one.is_new { LATER } else { BEFORE }.to_owned();
            events.push(Event { content, structured: None, ..one.event });
        }
    }
    Ok(events)
}

/// A message as what happened.
fn event(tx: &Tx<'_>, mail: &Boxed) -> Result<Event, ToolError> {
    let thread = process_table::find_thread(tx.db, mail.thread)?;
    let Some(process_id) = mail.mail.from_process_id.or(thread.map(|row| row.id)) else {
        return Err(ToolError::internal(&format!("message {} has no sender", mail.mail.id)));
    };
    let ended = if mail.kind == Kind::Final { Some(process_table::get(tx.db, process_id)?) } else { None };
    let data = ended.as_ref().and_then(|row| structured(row, CONTENT_CHARS_MAX));
    let kind = match mail.kind {
        Kind::Question => Happened::Question,
        Kind::Message | Kind::Answer => Happened::Message,
        Kind::Final => match ended.map(|row| row.status) {
            Some(Status::Finished) => Happened::Finished,
            Some(Status::Failed) => Happened::Failed,
            Some(Status::Cancelled) => Happened::Cancelled,
            Some(Status::Queued | Status::Starting | Status::Running | Status::Waiting) | None => Happened::Message,
        },
    };
    let question = (kind == Happened::Question).then_some(mail.mail.id);
    let (assistant_id, content) = (mail.mail.from_assistant_id.clone(), mail.mail.content.clone());
    Ok(Event { structured: data, question, ..Event::new(process_id, assistant_id, kind, content) })
}
