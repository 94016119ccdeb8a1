//! What is told of a run, by the documents' words.

use assistant_protocol::ids::{MessageId, ProcessId};
use rusqlite::Connection;
use schemars::JsonSchema;
use serde::Serialize;

use super::report;
use crate::message_box::questions::{self, Question, QuestionState};
use crate::process_table::{self, Process, Status};
use crate::store::StoreError;
use crate::text::{cut, iso_8601};

/// Questions that are told of one run: all that wait, and the newest of the others.
pub(super) const MESSAGES_MAX: u32 = 100;
/// Characters of a summary.
const SUMMARY_CHARS_MAX: usize = 500;

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(super) enum RunStatus {
    /// At work, or about to be.
    Running,
    /// It has asked, and nobody has answered yet.
    WaitingParentReply,
    /// It was answered, and has not fetched the answer yet.
    ParentReplied,
    /// It has a result.
    Success,
    /// The same, and it said itself that it is done.
    Completed,
    /// It failed, was cancelled, or said itself that it failed.
    Error,
}

/// Where a question of a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(super) enum MessageStatus {
    /// Not answered yet.
    PendingParentReply,
    /// Answered, and not fetched yet.
    ParentReplied,
    /// The run has the answer.
    AcknowledgedBySubagent,
    /// Not answered in time, or the run has ended.
    Expired,
}

impl From<QuestionState> for MessageStatus {
    fn from(state: QuestionState) -> Self {
        match state {
            QuestionState::Pending => Self::PendingParentReply,
            QuestionState::Answered => Self::ParentReplied,
            QuestionState::Retrieved => Self::AcknowledgedBySubagent,
            QuestionState::Expired => Self::Expired,
        }
    }
}

/// One question and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub(super) struct MessageTold {
    pub(super) message_id: MessageId,
    pub(super) question_content: String,
    pub(super) question_timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer_timestamp: Option<String>,
    pub(super) message_status: MessageStatus,
}

impl MessageTold {
    /// Texts are cut to `chars` each.
    pub(super) fn new(question: &Question, chars: usize) -> Self {
        Self {
            message_id: question.id,
            question_content: cut(&question.question, chars),
            question_timestamp: iso_8601(question.asked_at),
            answer_content: question.answer.as_ref().map(|(_, text)| cut(text, chars)),
            answer_timestamp: question.answered_at.map(iso_8601),
            message_status: question.state.into(),
        }
    }
}

/// What a run was told to say of itself.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct ReportTold {
    status: report::Said,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    timestamp: String,
}

/// All that is told of a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta {
    pub(super) run_id: ProcessId,
    pub(super) agent_name: String,
    pub(super) status: RunStatus,
    /// The same in the host's words.
    pub(super) state: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    start_time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<String>,
    /// What it said of itself with update_status.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    reported: Option<ReportTold>,
    /// The result, once it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<String>,
    /// Why it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// Its questions, oldest first.
    pub(super) messages: Vec<MessageTold>,
}

/// What stands in the tables of a run, at one time.
pub(super) struct Seen {
    pub(super) row: Process,
    /// Oldest first.
    pub(super) questions: Vec<Question>,
    reported: Option<report::Reported>,
}

/// Looks at a run whose row is known.
pub(super) fn see(db: &Connection, row: Process, now: i64) -> Result<Seen, StoreError> {
    let questions = questions::of_process(db, row.id, now, MESSAGES_MAX)?;
    let reported = report::of(db, row.id)?;
    Ok(Seen { row, questions, reported })
}

impl Seen {
    /// Whether a question of it is in this state.
    pub(super) fn has(&self, state: QuestionState) -> bool {
        self.questions.iter().any(|question| question.state == state)
    }

    /// Questions whose answer it has never got, though it has ended with a result.
    pub(super) fn unanswered(&self) -> usize {
        let open = |question: &&Question| matches!(question.state, QuestionState::Expired | QuestionState::Answered);
        if self.row.status == Status::Finished { self.questions.iter().filter(open).count() } else { 0 }
    }

    /// Where it is, for its parent: what waits for a reply comes first; for itself (`own`): what it can fetch.
    pub(super) fn status(&self, own: bool) -> RunStatus {
        let (waits, replied) = (self.has(QuestionState::Pending), self.has(QuestionState::Answered));
        match self.row.status {
            Status::Failed | Status::Cancelled => RunStatus::Error,
            Status::Finished => match self.reported.as_ref().map(|reported| reported.status) {
                Some(report::Said::Error) => RunStatus::Error,
                Some(report::Said::Completed) => RunStatus::Completed,
                Some(report::Said::Success | report::Said::Running) | None => RunStatus::Success,
            },
            Status::Queued | Status::Starting | Status::Running | Status::Waiting => match (waits, replied) {
                (true, true) if own => RunStatus::ParentReplied,
                (true, _) => RunStatus::WaitingParentReply,
                (false, true) => RunStatus::ParentReplied,
                (false, false) => RunStatus::Running,
            },
        }
    }

    /// Why it has no result.
    fn error(&self) -> Option<String> {
        let said = || {
            let reported = self.reported.as_ref().filter(|reported| reported.status == report::Said::Error)?;
            Some(reported.summary.clone().unwrap_or_else(|| "it reported an error and did not say which".to_owned()))
        };
        match self.row.status {
            Status::Failed => {
                let reason = self.row.reason.map(|reason| reason.name()).unwrap_or("failed");
                let words = self.row.error.clone().unwrap_or_else(|| "no more is known".to_owned());
                // What it said of itself is nearer to the cause than how its runner ended.
                let said = said().map(|said| format!("; it had reported: {said}")).unwrap_or_default();
                Some(format!("{words} ({reason}){said}"))
            }
            Status::Cancelled => {
                Some(format!("cancelled ({})", self.row.cause.map_or("requested", |cause| cause.name())))
            }
            Status::Finished => said(),
            Status::Queued | Status::Starting | Status::Running | Status::Waiting => None,
        }
    }

    /// All that is told of it, in `chars` characters and a few.
    pub(super) fn meta(&self, own: bool, chars: usize) -> Meta {
        let row = &self.row;
        let ended = row.status.is_end();
        // A half for the result, the rest for the questions and their answers.
        let each = (chars / 2) / (2 * self.questions.len()).max(1);
        let result = row.result.as_deref().filter(|text| ended && !text.trim().is_empty());
        let said = self.reported.as_ref().and_then(|reported| reported.summary.as_deref());
        let summary = said.or(result).map(|text| cut(text, SUMMARY_CHARS_MAX));
        Meta {
            run_id: row.id,
            agent_name: row.assistant_id.clone(),
            status: self.status(own),
            state: row.status,
            exit_code: row.exit_code,
            start_time: iso_8601(row.started_at.unwrap_or(row.created_at)),
            end_time: row.finished_at.map(iso_8601),
            summary,
            reported: self.reported.as_ref().map(|reported| ReportTold {
                status: reported.status,
                summary: reported.summary.as_deref().map(|text| cut(text, chars / 8)),
                timestamp: iso_8601(reported.at),
            }),
            result: result.map(|text| cut(text, chars / 2)),
            error: self.error().map(|text| cut(&text, chars / 8)),
            messages: self.questions.iter().map(|question| MessageTold::new(question, each)).collect(),
        }
    }
}

/// The row of a run, and all that is told of it.
pub(super) fn of(db: &Connection, run: ProcessId, now: i64, chars: usize) -> Result<Meta, StoreError> {
    Ok(see(db, process_table::get(db, run)?, now)?.meta(false, chars))
}
