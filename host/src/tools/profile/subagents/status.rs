//! `check_status`, and `check_message_status` for one question.
//!
//! A look by the parent changes nothing. A look by the run itself fetches: what is answered is acknowledged in the commit
//! that records the answer of the call, which still shows `parent_replied`.

use assistant_protocol::ids::{MessageId, ProcessId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::meta::{self, MessageTold, Meta, RunStatus, Seen};
use super::{ask, which};
use crate::caller::Caller;
use crate::message_box::questions::{self, QuestionState};
use crate::message_box::{self, due};
use crate::process_table;
use crate::store::Tx;
use crate::text::{cut, iso_8601};
use crate::tools::processes::mine;
use crate::tools::usage;
use crate::tools::{self, Audience, Call, Hints, Output, Tool, ToolError, wait};

/// Messages of a run that a look tells.
const NOTES_MAX: u32 = 10;

pub(super) fn rows() -> Vec<Tool> {
    let look = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    vec![
        tools::row::<_, Checked, _, _>("check_status", "Look at a run", Audience::Everyone, look, check_status),
        tools::row::<_, CheckedMessage, _, _>(
            "check_message_status",
            "Look at a question",
            Audience::Everyone,
            look,
            check_message_status,
        ),
    ]
}

/// Arguments of `check_status`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Check {
    /// The run.
    #[serde(rename = "runId")]
    run_id: Option<String>,
    /// Wait up to this many milliseconds for a change. Default 0.
    #[serde(default)]
    wait_ms: u64,
}

/// A message of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Note {
    content: String,
    timestamp: String,
}

/// Result of `check_status`.
#[derive(Debug, Serialize, JsonSchema)]
struct Checked {
    #[serde(flatten)]
    meta: Meta,
    /// What to do now.
    instructions: String,
    /// Once it has ended, from its start (milliseconds).
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<i64>,
    /// US dollars so far, of it and of what it ran; absent where a price is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    /// What it wrote to you beside, the newest, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<Note>,
    /// Questions that it asked and ended without the answer to.
    #[serde(skip_serializing_if = "Option::is_none")]
    unanswered: Option<usize>,
    /// The wait was cut to what a call may take (milliseconds).
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_clamped_to_ms: Option<u64>,
}

async fn check_status(call: Call, params: Check) -> Result<Output, ToolError> {
    let run = which(&call, params.run_id.as_deref())?;
    let own = call.caller == Caller::Process(run);
    let bound = wait::bound(&call, params.wait_ms);
    let first = look(&call, run, own, bound.clamped_to_ms).await?;
    let Some(before) = first.waits.filter(|_| !bound.wait.is_zero()) else { return Ok(first.output) };
    let on: [Uuid; 2] = [run.into(), call.caller.into()];
    let changed = || async {
        let now = look(&call, run, own, bound.clamped_to_ms).await?;
        Ok((now.waits.as_ref() != Some(&before)).then_some(now.output))
    };
    match wait::until(&call, &on, bound.wait, changed).await? {
        Some(output) => Ok(output),
        None => Ok(look(&call, run, own, bound.clamped_to_ms).await?.output),
    }
}

/// One look at a run.
struct Looked {
    output: Output,
    /// What a change is told from, as long as there may be one that is worth waiting for.
    waits: Option<(RunStatus, Vec<MessageTold>)>,
}

async fn look(call: &Call, run: ProcessId, own: bool, clamped: Option<u64>) -> Result<Looked, ToolError> {
    let (host, caller, limits) = (call.host.clone(), call.caller, *call.host.limits());
    let chars = limits.answer_chars as usize;
    let told = move |db: &rusqlite::Connection, seen: &Seen, meta: Meta| {
        let cost_usd = usage::cost_of_tree(db, seen.row.id, host.models())?;
        let waits = matches!(meta.status, RunStatus::Running | RunStatus::WaitingParentReply)
            || meta.status == RunStatus::ParentReplied && !own;
        let before = waits.then(|| (meta.status, meta.messages.clone()));
        let notes = if own { Vec::new() } else { message_box::notes(db, &seen.row, NOTES_MAX)? };
        let each = chars / 4 / notes.len().max(1);
        let notes =
            notes.iter().map(|(text, at)| Note { content: cut(text, each), timestamp: iso_8601(*at) }).collect();
        let output = Output::new(&Checked {
            instructions: instructions(seen, &meta, own, &limits),
            duration_ms: seen.row.finished_at.map(|end| end - seen.row.started_at.unwrap_or(seen.row.created_at)),
            cost_usd,
            notes,
            unanswered: Some(seen.unanswered()).filter(|count| *count > 0),
            meta,
            wait_clamped_to_ms: clamped,
        })?;
        Ok::<_, ToolError>(Looked { output, waits: before })
    };
    if !own {
        let now = call.host.now();
        let looked = call.host.store().read(move |db| {
            let seen = meta::see(db, mine(db, caller, run)?, now)?;
            let meta = seen.meta(false, chars);
            told(db, &seen, meta)
        });
        return looked.await;
    }
    let recorder = call.along.recorder.clone();
    let looked = call.host.store().write(move |tx: &mut Tx<'_>| {
        wait::still_acts(tx, caller)?;
        due::expire(tx)?;
        let seen = meta::see(tx.db, process_table::get(tx.db, run)?, tx.now)?;
        if ask::stalls(tx, run, &seen.questions, &limits)? {
            return Ok(None);
        }
        let mut meta = seen.meta(true, chars);
        let fetched = fetch(tx, run, &seen, &mut meta, chars / 2)?;
        let mut looked = told(tx.db, &seen, meta)?;
        if let (true, Some(recorder)) = (fetched, recorder) {
            recorder.finish(tx, &looked.output.result())?;
            looked.output.recorded = true;
        }
        Ok::<_, ToolError>(Some(looked))
    });
    looked.await?.ok_or_else(ToolError::caller_ended)
}

/// Hands the answers that wait to the run that asked, whole: as many as `chars` characters hold, at least one. Returns
/// whether there was any.
fn fetch(tx: &Tx<'_>, run: ProcessId, seen: &Seen, meta: &mut Meta, chars: usize) -> Result<bool, ToolError> {
    let (mut left, mut fetched) = (chars, false);
    for (question, told) in seen.questions.iter().zip(&mut meta.messages) {
        let (QuestionState::Answered, Some((_, answer))) = (question.state, &question.answer) else { continue };
        let length = answer.chars().count();
        if fetched && length > left {
            break;
        }
        left = left.saturating_sub(length);
        questions::retrieve(tx, run, question.id)?;
        told.answer_content = Some(answer.clone());
        fetched = true;
    }
    Ok(fetched)
}

/// What whoever looks does next.
fn instructions(seen: &Seen, meta: &Meta, own: bool, limits: &crate::limits::Limits) -> String {
    match (meta.status, own) {
        (RunStatus::WaitingParentReply, false) => {
            let first = seen.questions.iter().find(|question| question.state == QuestionState::Pending);
            let until = first.map(|question| iso_8601(ask::deadline(question, limits)));
            format!(
                "Answer each message whose messageStatus is pending_parent_reply with reply_subagent {{runId, messageId, \
                 answer}}. The subagent waits until {}.",
                until.unwrap_or_else(|| "its time is over".to_owned())
            )
        }
        (RunStatus::WaitingParentReply, true) => {
            "Not answered yet: check_answer with the message_id and wait_ms waits \
                                                  for the answer."
                .to_owned()
        }
        (RunStatus::ParentReplied, false) => {
            "Answered; the subagent has not fetched the answer yet. Call check_status again later.".to_owned()
        }
        (RunStatus::ParentReplied, true) => "The messages with the status parent_replied have your answer in \
                                             answerContent: go on with it."
            .to_owned(),
        (RunStatus::Running, false) => {
            "At work. Call check_status again, with wait_ms to hear of a change at once; get_logs tells what it does."
                .to_owned()
        }
        (RunStatus::Running, true) => "No question of yours waits. Go on.".to_owned(),
        (RunStatus::Success | RunStatus::Completed, _) => match seen.unanswered() {
            0 => "It has ended: `result` is what it gave.".to_owned(),
            count => format!(
                "It has ended, and never got the answer to {count} of its questions: see whether `result` is good enough \
                 without, else run it again and tell it in the prompt."
            ),
        },
        (RunStatus::Error, _) => "It has failed: `error` tells why, get_logs what it did.".to_owned(),
    }
}

/// Arguments of `check_message_status`.
#[derive(Debug, Deserialize, JsonSchema)]
struct CheckMessage {
    /// The run.
    #[serde(rename = "runId")]
    run_id: Option<String>,
    /// The question.
    #[serde(rename = "messageId")]
    message_id: MessageId,
}

/// Result of `check_message_status`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CheckedMessage {
    run_id: ProcessId,
    #[serde(flatten)]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    told: MessageTold,
    has_answer: bool,
}

async fn check_message_status(call: Call, params: CheckMessage) -> Result<Output, ToolError> {
    let run = which(&call, params.run_id.as_deref())?;
    let (caller, message, limits) = (call.caller, params.message_id, *call.host.limits());
    let chars = limits.answer_chars as usize;
    let told = move |question: &questions::Question, chars: usize| {
        let told = MessageTold::new(question, chars);
        Output::new(&CheckedMessage { run_id: run, has_answer: told.answer_content.is_some(), told })
    };
    if caller != Caller::Process(run) {
        let now = call.host.now();
        let looked = call.host.store().read(move |db| {
            mine(db, caller, run)?;
            told(&questions::question(db, run, message, now)?, chars / 2)
        });
        return looked.await;
    }
    let recorder = call.along.recorder.clone();
    let looked = call.host.store().write(move |tx: &mut Tx<'_>| {
        wait::still_acts(tx, caller)?;
        let question = questions::retrieve(tx, run, message)?;
        if ask::stalls(tx, run, std::slice::from_ref(&question), &limits)? {
            return Ok(None);
        }
        // Whole, however long: it is given once by this name.
        let mut output = told(&question, usize::MAX)?;
        if let (QuestionState::Answered, Some(recorder)) = (question.state, recorder) {
            recorder.finish(tx, &output.result())?;
            output.recorded = true;
        }
        Ok::<_, ToolError>(Some(output))
    });
    looked.await?.ok_or_else(ToolError::caller_ended)
}
