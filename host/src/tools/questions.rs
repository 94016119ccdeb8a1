//! `ask_parent`, `check_answer`, `get_pending_questions` and `reply_assistant`.

use assistant_protocol::ids::{MessageId, ProcessId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Duration, Instant};
use uuid::Uuid;

use super::{Audience, Call, Hints, Output, Tool, ToolError, record, row, wait};
use crate::caller::Caller;
use crate::message_box::questions::{self, Question, QuestionState};
use crate::process_table::{self, End, Reason};
use crate::store::Tx;

/// What a process fails with whose parent does not answer; document 001 has the words.
const STALLED: &str = "Stalled: Parent No-Response";

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

impl From<Question> for Asked {
    fn from(question: Question) -> Self {
        let state = match question.state {
            QuestionState::Pending => State::Pending,
            QuestionState::Answered => State::Answered,
            QuestionState::Retrieved => State::Retrieved,
            QuestionState::Expired => State::Expired,
        };
        Self { message_id: question.id, state, answer: question.answer.map(|(_, text)| text) }
    }
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
    let bound = match (params.wait_ms, parent_is_process) {
        (Some(wait_ms), _) => wait::bound(&call, wait_ms).wait,
        (None, true) => Duration::from_millis(limits.answer_wait_ms),
        (None, false) => wait::bound(&call, limits.question_ms).wait,
    };
    let begun = Instant::now();
    if let Some(output) = answer(&call, me, message, bound).await? {
        return Ok(output);
    }
    if params.wait_ms.is_some() || begun.elapsed() < bound {
        // It was asked something itself meanwhile, or did not want to wait longer.
        return Output::new(&Asked { message_id: message, state: State::Pending, answer: None });
    }
    // In one transaction with a last look: an answer in the last moment counts, and a parent that has ended meanwhile
    // has left the question to the session, which has more time.
    let stalled = call.host.store().write(move |tx| {
        let waits = questions::question(tx.db, me, message, tx.now)?.state == QuestionState::Pending;
        let stalled = waits && process_table::get(tx.db, me)?.parent.is_some();
        if stalled {
            let end = End::Failed { reason: Reason::NoAnswer, error: STALLED.to_owned(), partial: None };
            process_table::end(tx, me, end)?;
        }
        Ok::<_, ToolError>(stalled)
    });
    if stalled.await? {
        return Err(ToolError::caller_ended());
    }
    match answer(&call, me, message, wait::bound(&call, limits.question_ms).wait).await? {
        Some(output) => Ok(output),
        None => Output::new(&Asked { message_id: message, state: State::Pending, answer: None }),
    }
}

async fn check_answer(call: Call, params: Check) -> Result<Output, ToolError> {
    let me = process(&call)?;
    let bound = wait::bound(&call, params.wait_ms).wait;
    if let Some(output) = answer(&call, me, params.message_id, bound).await? {
        return Ok(output);
    }
    Output::new(&Asked { message_id: params.message_id, state: State::Pending, answer: None })
}

/// The answer to a question once there is one, or its expiry; none while it waits.
async fn answer(call: &Call, me: ProcessId, message: MessageId, bound: Duration) -> Result<Option<Output>, ToolError> {
    let look = || {
        let recorder = call.recorder.clone();
        call.host.store().write(move |tx: &mut Tx<'_>| {
            let question = questions::retrieve(tx, me, message)?;
            if question.state == QuestionState::Pending {
                return Ok(None);
            }
            let mut output = Output::new(&Asked::from(question))?;
            if let Some(recorder) = recorder {
                recorder.finish(tx, &record::as_result(output.value.clone(), false))?;
                output.recorded = true;
            }
            Ok::<_, ToolError>(Some(output))
        })
    };
    wait::until(call, &[Uuid::from(me)], bound, look).await
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
    /// Oldest first.
    questions: Vec<Waiting>,
}

async fn get_pending_questions(call: Call, params: GetPending) -> Result<Output, ToolError> {
    let caller = call.caller;
    let found = call.host.store().write(move |tx| {
        questions::expire(tx)?;
        let found = questions::pending(tx.db, caller, params.process_id, tx.now)?;
        let ids: Vec<MessageId> = found.iter().map(|asked| asked.id).collect();
        questions::hand_to_session(tx, &ids)?;
        Ok::<_, ToolError>(found)
    });
    let one = |asked: Question| Waiting {
        message_id: asked.id,
        process_id: asked.process,
        assistant_id: asked.assistant_id,
        question: asked.question,
        asked_at: asked.asked_at,
        answer_by_at: asked.answer_by_at,
    };
    Output::new(&Pending { questions: found.await?.into_iter().map(one).collect() })
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
