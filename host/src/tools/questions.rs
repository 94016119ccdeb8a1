//! `ask_parent`, `check_answer`, `get_pending_questions` and `reply_assistant`.

use assistant_protocol::ids::{MessageId, ProcessId};
use assistant_protocol::types::Mail;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Duration, Instant};
use uuid::Uuid;

use super::{Audience, Call, Hints, Output, Tool, ToolError, row, wait};
use crate::caller::Caller;
use crate::message_box::questions::{self, Question, QuestionState};
use crate::message_box::{self, Boxed, due};
use crate::process_table::{self, End, Reason};
use crate::store::Tx;

/// What a process fails with whose parent does not answer; document 001 has the words.
const STALLED: &str = "Stalled: Parent No-Response";
/// Questions of one list.
const LISTED_MAX: usize = 100;

pub(super) fn rows() -> Vec<Tool> {
    let look = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    let write = Hints { read_only: false, destructive: false, idempotent: false, open_world: false };
    vec![
        row::<_, Asked, _, _>("ask_parent", "Ask who gave the task", Audience::Runners, write, ask_parent),
        row::<_, Asked, _, _>("check_answer", "Read an answer", Audience::Runners, write, check_answer),
        row::<_, Pending, _, _>(
            "get_pending_questions",
            "List open questions",
            Audience::Everyone,
            look,
            get_pending_questions,
        ),
        row::<_, Replied, _, _>("reply_assistant", "Answer a question", Audience::Everyone, write, reply_assistant),
    ]
}

/// Arguments of `ask_parent`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Ask {
    /// The question, with what is needed to answer it.
    question: String,
    /// Wait up to this many milliseconds for the answer; 0 goes on at once. Default: as long as an answer may take, and
    /// the run fails where none comes.
    wait_ms: Option<u64>,
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

/// Where a question is, for the process that asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum State {
    /// No answer yet.
    Pending,
    /// Here is the answer.
    Answered,
    /// Here is the answer, again.
    Retrieved,
    /// It was not answered in time.
    Expired,
}

/// Result of `ask_parent` and `check_answer`.
#[derive(Debug, Serialize, JsonSchema)]
struct Asked {
    message_id: MessageId,
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
}

impl From<&Question> for Asked {
    fn from(question: &Question) -> Self {
        let state = match question.state {
            QuestionState::Pending => State::Pending,
            QuestionState::Answered => State::Answered,
            QuestionState::Retrieved => State::Retrieved,
            QuestionState::Expired => State::Expired,
        };
        Self { message_id: question.id, state, answer: question.answer.as_ref().map(|(_, text)| text.clone()) }
    }
}

fn told(question: &Question) -> Result<Output, ToolError> {
    Output::new(&Asked::from(question))
}

fn process(call: &Call) -> Result<ProcessId, ToolError> {
    call.caller.process().ok_or_else(|| ToolError::bad_argument("only assistants have a parent", "Ask the user."))
}

async fn ask_parent(call: Call, params: Ask) -> Result<Output, ToolError> {
    let (me, limits) = (process(&call)?, *call.host.limits());
    let asked = call.host.store().write(move |tx| {
        let message = questions::ask(tx, me, &params.question, &limits)?;
        Ok::<_, ToolError>((message, process_table::get(tx.db, me)?.parent.is_some()))
    });
    let (message, parent_is_process) = asked.await?;
    let pending = || Output::new(&Asked { message_id: message, state: State::Pending, answer: None });
    if let Some(wait_ms) = params.wait_ms {
        let found = answer(&call, me, message, wait::bound(&call, wait_ms).wait, IfNone::Told, told).await?;
        return found.map_or_else(pending, Ok);
    }
    let until_expiry = wait::bound(&call, limits.question_ms).wait;
    let bound = if parent_is_process { Duration::from_millis(limits.answer_wait_ms) } else { until_expiry };
    let begun = Instant::now();
    if let Some(output) = answer(&call, me, message, bound, IfNone::Fails, told).await? {
        return Ok(output);
    }
    if begun.elapsed() < bound {
        // It was asked something itself meanwhile.
        return pending();
    }
    // In one transaction with a last look: an answer in the last moment counts, and a parent that has ended meanwhile
    // has left the question to the session, which has more time.
    let stalled = call.host.store().write(move |tx| {
        let waits = questions::question(tx.db, me, message, tx.now)?.state == QuestionState::Pending;
        let stalled = waits && process_table::get(tx.db, me)?.parent.is_some();
        if stalled { stall(tx, me) } else { Ok(false) }
    });
    if stalled.await? {
        return Err(ToolError::caller_ended());
    }
    answer(&call, me, message, until_expiry, IfNone::Fails, told).await?.map_or_else(pending, Ok)
}

/// Ends a process whose question nobody has answered. Returns whether it did.
pub(super) fn stall(tx: &mut Tx<'_>, me: ProcessId) -> Result<bool, ToolError> {
    let end = End::Failed { reason: Reason::NoAnswer, error: STALLED.to_owned(), partial: None };
    Ok(process_table::end(tx, me, end)?)
}

async fn check_answer(call: Call, params: Check) -> Result<Output, ToolError> {
    let me = process(&call)?;
    let bound = wait::bound(&call, params.wait_ms).wait;
    match answer(&call, me, params.message_id, bound, IfNone::Told, told).await? {
        Some(output) => Ok(output),
        None => Output::new(&Asked { message_id: params.message_id, state: State::Pending, answer: None }),
    }
}

/// What a question that has expired is to the call that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfNone {
    /// A result like others.
    Told,
    /// The same; and one that still waits so long before it expires, milliseconds, is the end of the process.
    ToldUntil {
        /// How long before.
        before_expiry_ms: i64,
    },
    /// The end of the process.
    Fails,
}

/// The answer to a question once there is one, or its expiry, as `tell` puts it; none while it waits.
pub(super) async fn answer(
    call: &Call,
    me: ProcessId,
    message: MessageId,
    bound: Duration,
    if_none: IfNone,
    tell: fn(&Question) -> Result<Output, ToolError>,
) -> Result<Option<Output>, ToolError> {
    let look = || {
        let recorder = call.along.recorder.clone();
        let looked = call.host.store().write(move |tx: &mut Tx<'_>| {
            wait::still_acts(tx, Caller::Process(me))?;
            let question = questions::retrieve(tx, me, message)?;
            match question.state {
                QuestionState::Pending if if_none.is_over(&question, tx.now) && stall(tx, me)? => {
                    return Ok(Look::Stalled);
                }
                QuestionState::Pending => return Ok(Look::Nothing),
                QuestionState::Expired if if_none == IfNone::Fails && stall(tx, me)? => return Ok(Look::Stalled),
                QuestionState::Expired | QuestionState::Answered | QuestionState::Retrieved => {}
            }
            let mut output = tell(&question)?;
            if let Some(recorder) = recorder {
                recorder.finish(tx, &output.result())?;
                output.recorded = true;
            }
            Ok::<_, ToolError>(Look::Found(output))
        });
        async {
            match looked.await? {
                Look::Nothing => Ok(None),
                Look::Stalled => Err(ToolError::caller_ended()),
                Look::Found(output) => Ok(Some(output)),
            }
        }
    };
    wait::until(call, &[Uuid::from(me)], bound, look).await
}

impl IfNone {
    fn is_over(self, question: &Question, now: i64) -> bool {
        match self {
            Self::ToldUntil { before_expiry_ms } => question.answer_by_at.saturating_sub(before_expiry_ms) <= now,
            Self::Told | Self::Fails => false,
        }
    }
}

/// What a look at a question has found.
enum Look {
    /// It waits.
    Nothing,
    /// It has expired, and with it the process.
    Stalled,
    /// This is to be told.
    Found(Output),
}

/// Arguments of `get_pending_questions`.
#[derive(Debug, Deserialize, JsonSchema)]
struct GetPending {
    /// Only those of this process. Default: all that wait for you.
    process_id: Option<ProcessId>,
}

/// A question that waits.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Waiting {
    message_id: MessageId,
    process_id: ProcessId,
    assistant_id: String,
    question: String,
    /// When it was asked (Unix milliseconds).
    asked_at: i64,
    /// When it expires (Unix milliseconds).
    answer_by_at: i64,
}

/// Result of `get_pending_questions`.
#[derive(Debug, Serialize, JsonSchema)]
struct Pending {
    /// Oldest first, at most 100.
    questions: Vec<Waiting>,
    /// What those who ask wrote to you before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    messages: Vec<Mail>,
}

async fn get_pending_questions(call: Call, params: GetPending) -> Result<Output, ToolError> {
    let (caller, along, chars) = (call.caller, call.along.clone(), call.host.limits().answer_chars as usize);
    let found = call.host.store().write(move |tx| {
        due::expire(tx)?;
        let mut found = questions::pending(tx.db, caller, params.process_id, tx.now)?;
        found.truncate(LISTED_MAX);
        let mut messages = Vec::new();
        match caller {
            Caller::Session(_) => {
                let ids: Vec<MessageId> = found.iter().map(|asked| asked.id).collect();
                questions::hand_to_session(tx, &ids)?;
            }
            Caller::Process(me) if found.iter().any(|asked| !asked.delivered) => {
                if !process_table::may_act(tx.db, caller)? {
                    return Err(ToolError::caller_ended());
                }
                messages = hand_over(tx, me, &mut found, chars, along.handed_by.as_deref())?;
            }
            Caller::Process(_) => {}
        }
        let each = chars / found.len().max(1);
        let one = |asked: Question| Waiting {
            message_id: asked.id,
            process_id: asked.process,
            assistant_id: asked.assistant_id,
            question: crate::text::cut(&asked.question, each),
            asked_at: asked.asked_at,
            answer_by_at: asked.answer_by_at,
        };
        let handed_over = !messages.is_empty();
        let others = messages.into_iter().filter(|one: &Boxed| one.kind != message_box::Kind::Question);
        let messages = others.map(|one| one.mail).collect();
        let mut output = Output::new(&Pending { questions: found.into_iter().map(one).collect(), messages })?;
        if let (true, Some(recorder)) = (handed_over, along.recorder) {
            recorder.finish(tx, &output.result())?;
            output.recorded = true;
        }
        Ok::<_, ToolError>(output)
    });
    found.await
}

/// Hands questions that a process has not been given over to it, with all that their senders wrote before. What is too
/// long for this answer is not listed: it comes as every other message does.
fn hand_over(
    tx: &Tx<'_>,
    me: ProcessId,
    found: &mut Vec<Question>,
    chars: usize,
    by: Option<&str>,
) -> Result<Vec<Boxed>, ToolError> {
    let mut senders: Vec<Option<ProcessId>> = Vec::new();
    for asked in found.iter().filter(|asked| !asked.delivered) {
        if !senders.contains(&Some(asked.process)) {
            senders.push(Some(asked.process));
        }
    }
    let each = chars / found.len().max(1);
    // What is listed whole has to fit into its share of the answer.
    let short = |one: &Boxed| one.kind != message_box::Kind::Question || one.mail.content.chars().count() <= each;
    let taken = message_box::taken_whole(tx, me, &senders, chars, by, short)?;
    found.retain(|asked| asked.delivered || taken.iter().any(|one| one.mail.id == asked.id));
    Ok(taken)
}

/// Arguments of `reply_assistant`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Reply {
    /// The process that asks.
    process_id: ProcessId,
    /// The answer.
    answer: String,
    /// Which question, where the process has asked several.
    message_id: Option<MessageId>,
}

/// Result of `reply_assistant`.
#[derive(Debug, Serialize, JsonSchema)]
struct Replied {
    success: bool,
    /// The message that the answer is.
    message_id: MessageId,
}

async fn reply_assistant(call: Call, params: Reply) -> Result<Output, ToolError> {
    let (caller, limits) = (call.caller, *call.host.limits());
    let replied = call.host.store().write(move |tx| {
        if let Caller::Session(_) = caller {
            super::processes::mine(tx.db, caller, params.process_id)?;
        }
        let answer = questions::reply(tx, caller, params.process_id, params.message_id, &params.answer, &limits)?;
        Ok::<_, ToolError>(answer)
    });
    Output::new(&Replied { success: true, message_id: replied.await? })
}
