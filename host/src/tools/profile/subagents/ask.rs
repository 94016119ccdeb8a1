//! `ask_parent` and `check_answer`, for running assistants: of both documents in one.

use std::time::Duration;

use assistant_protocol::ids::{MessageId, ProcessId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run_id;
use crate::limits::Limits;
use crate::message_box::questions::{self, Question, QuestionState};
use crate::store::Tx;
use crate::tools::questions::{IfNone, answer, stall};
use crate::tools::{self, Audience, Call, Hints, Output, Tool, ToolError, wait};

pub(super) fn rows() -> Vec<Tool> {
    let write = Hints { read_only: false, destructive: false, idempotent: false, open_world: false };
    vec![
        tools::row::<_, Asked, _, _>("ask_parent", "Ask who gave the task", Audience::Runners, write, ask_parent),
        tools::row::<_, Checked, _, _>("check_answer", "Read an answer", Audience::Runners, write, check_answer),
    ]
}

/// Until when a question is waited for, Unix milliseconds: what the machine slept meanwhile was given back to it.
pub(super) fn deadline(question: &Question, limits: &Limits) -> i64 {
    question.answer_by_at.saturating_sub(rest_ms(limits))
}

/// From there to its expiry, milliseconds.
fn rest_ms(limits: &Limits) -> i64 {
    i64::try_from(limits.question_ms.saturating_sub(limits.answer_wait_ms)).unwrap_or(i64::MAX)
}

/// Ends a process whose question nobody has answered in time. Returns whether it did.
pub(super) fn stalls(tx: &mut Tx<'_>, run: ProcessId, asked: &[Question], limits: &Limits) -> Result<bool, ToolError> {
    let late = |one: &Question| one.state == QuestionState::Pending && deadline(one, limits) <= tx.now;
    if asked.iter().any(late) { stall(tx, run) } else { Ok(false) }
}

/// Arguments of `ask_parent`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Ask {
    /// The question, with what is needed to answer it.
    question: String,
    /// Your run. May be left out.
    #[serde(rename = "runId")]
    run_id: Option<String>,
    /// Wait up to this many milliseconds for the answer. Default 0: go on at once.
    #[serde(default)]
    wait_ms: u64,
}

/// Result of `ask_parent`.
#[derive(Debug, Serialize, JsonSchema)]
struct Asked {
    message_id: MessageId,
    /// The same as message_id.
    #[serde(rename = "messageId")]
    message_id_too: MessageId,
    status: QuestionState,
    /// The answer, where it was waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    instructions: String,
}

/// Arguments of `check_answer`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Check {
    /// The question, as ask_parent gave it.
    message_id: MessageId,
    /// Wait up to this many milliseconds for the answer. Default 0.
    #[serde(default)]
    wait_ms: u64,
}

/// Result of `check_answer`.
#[derive(Debug, Serialize, JsonSchema)]
struct Checked {
    message_id: MessageId,
    /// null as long as there is none.
    answer: Option<String>,
    /// PENDING, RETRIEVED once you have the answer, EXPIRED where none will come.
    status: QuestionState,
}

fn me(call: &Call) -> Result<ProcessId, ToolError> {
    call.caller.process().ok_or_else(|| {
        let message = "this tool is for subagents, which have a parent";
        ToolError::new("not_permitted", message, "reply_subagent answers a subagent; ask your user yourself.")
    })
}

/// Where a question is once its process has the answer.
fn delivered(question: &Question) -> QuestionState {
    match question.state {
        QuestionState::Answered | QuestionState::Retrieved => QuestionState::Retrieved,
        state @ (QuestionState::Pending | QuestionState::Expired) => state,
    }
}

fn asked(question: &Question) -> Result<Output, ToolError> {
    let status = delivered(question);
    let instructions = match status {
        QuestionState::Retrieved => "This is the answer: go on with it.",
        QuestionState::Expired => "Nobody has answered. Decide it yourself, and say so in your result.",
        QuestionState::Pending | QuestionState::Answered => {
            "Call check_answer with this message_id, and wait_ms to wait for the answer; check_status with your runId \
             tells it too. Do not end before you have it."
        }
    };
    Output::new(&Asked {
        message_id: question.id,
        message_id_too: question.id,
        status,
        answer: question.answer.as_ref().map(|(_, text)| text.clone()),
        instructions: instructions.to_owned(),
    })
}

fn checked(question: &Question) -> Result<Output, ToolError> {
    let answer = question.answer.as_ref().map(|(_, text)| text.clone());
    Output::new(&Checked { message_id: question.id, answer, status: delivered(question) })
}

async fn ask_parent(call: Call, params: Ask) -> Result<Output, ToolError> {
    let (me, limits) = (me(&call)?, *call.host.limits());
    if let Some(named) = params.run_id.as_deref().map(run_id).transpose()?
        && named != me
    {
        let message = format!("your run is {me}, not {named}");
        return Err(ToolError::new("not_permitted", message, "Leave `runId` out."));
    }
    let posed = call.host.store().write(move |tx| questions::ask(tx, me, &params.question, &limits));
    let message = posed.await?;
    looked_for(&call, me, message, params.wait_ms, asked).await
}

async fn check_answer(call: Call, params: Check) -> Result<Output, ToolError> {
    let me = me(&call)?;
    looked_for(&call, me, params.message_id, params.wait_ms, checked).await
}

/// Waits for an answer up to `wait_ms`, and not longer than the run may.
async fn looked_for(
    call: &Call,
    me: ProcessId,
    message: MessageId,
    wait_ms: u64,
    tell: fn(&Question) -> Result<Output, ToolError>,
) -> Result<Output, ToolError> {
    let (now, limits) = (call.host.now(), *call.host.limits());
    let question = call.host.store().read(move |db| questions::question(db, me, message, now)).await?;
    let left = u64::try_from(deadline(&question, &limits).saturating_sub(now)).unwrap_or(0);
    let bound = wait::bound(call, wait_ms).wait.min(Duration::from_millis(left));
    if let Some(output) =
        answer(call, me, message, bound, IfNone::ToldUntil { before_expiry_ms: rest_ms(&limits) }, tell).await?
    {
        return Ok(output);
    }
    tell(&question)
}
