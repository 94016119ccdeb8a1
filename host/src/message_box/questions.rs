//! Questions: messages from a process to its parent that want an answer.
//!
//! PENDING becomes ANSWERED by a reply, RETRIEVED when the process has the answer, and EXPIRED by the host's clock or the
//! end of the process. An answer can be read again.

use assistant_protocol::ids::{MessageId, ProcessId};
use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::{Kind, due, post};
use crate::caller::Caller;
use crate::limits::Limits;
use crate::names::named;
use crate::process_table::{self, Process, id, optional_id};
use crate::store::{StoreError, Tx};

named! {
    /// Where a question is.
    pub enum QuestionState {
        /// No answer yet.
        Pending = "PENDING",
        /// Answered; the process does not have the answer yet.
        Answered = "ANSWERED",
        /// The process has the answer.
        Retrieved = "RETRIEVED",
        /// It was not answered in time.
        Expired = "EXPIRED",
    }
}

/// A question.
#[derive(Debug, Clone)]
pub struct Question {
    /// The message that it is.
    pub id: MessageId,
    /// Who asks.
    pub process: ProcessId,
    /// Who asks, by assistant.
    pub assistant_id: String,
    /// Who is asked; null is the session.
    pub to: Option<ProcessId>,
    /// It was handed to whom it asks.
    pub delivered: bool,
    /// Where it is, at the time of the look.
    pub state: QuestionState,
    /// What is asked.
    pub question: String,
    /// When it was asked, Unix milliseconds.
    pub asked_at: i64,
    /// When it expires.
    pub answer_by_at: i64,
    /// The answer's message, and its text.
    pub answer: Option<(MessageId, String)>,
    /// When it was answered.
    pub answered_at: Option<i64>,
}

/// Why a question was not asked or answered.
#[derive(Debug, thiserror::Error)]
pub enum QuestionRefused {
    /// The caller has ended or is cancelled.
    #[error("the caller has ended")]
    CallerEnded,
    /// The text is empty.
    #[error("the {0} is empty")]
    Empty(&'static str),
    /// The text is too long.
    #[error("the text has {bytes} bytes, the most is {limit}")]
    TooLong {
        /// Bytes of the text.
        bytes: u64,
        /// Bytes.
        limit: u64,
    },
    /// Too many questions of the process wait.
    #[error("{count} questions of this process wait for an answer, the most that may is {limit}")]
    TooMany {
        /// Questions that wait.
        count: u32,
        /// Questions.
        limit: u32,
    },
    /// Whoever is asked has not taken in what was sent before.
    #[error("{count} messages wait for whom you ask, the most that may is {limit}")]
    Full {
        /// Messages that wait.
        count: u32,
        /// Messages.
        limit: u32,
    },
    /// There is no such question for this caller.
    #[error("no question of yours has the id {0}")]
    Unknown(MessageId),
    /// No question of the process waits for this caller; with the last one that it asked and where that is.
    #[error("process {0} has asked you nothing that waits for an answer{last}", last = last_asked(.1))]
    NonePending(ProcessId, Option<(MessageId, QuestionState)>),
    /// Several wait, and none is named.
    #[error("process {0} has asked several questions: {1}")]
    Several(ProcessId, String),
    /// It is answered, or has expired.
    #[error("the question {id} takes no answer: it is {state}")]
    NotPending {
        /// The question.
        id: MessageId,
        /// Where it is.
        state: QuestionState,
    },
    /// Nobody would read the answer.
    #[error("process {0} is being cancelled and reads no answer any more")]
    Cancelled(ProcessId),
    /// The store's.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn last_asked(last: &Option<(MessageId, QuestionState)>) -> String {
    last.map(|(id, state)| format!("; its last question {id} is {state}")).unwrap_or_default()
}

impl From<rusqlite::Error> for QuestionRefused {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

const COLUMNS: &str = "q.message_id, q.process_id, q.to_process_id, q.state, q.asked_at, q.answer_by_at, \
    q.answer_message_id, q.answered_at, m.content, m.from_assistant_id, m.delivered_at, a.content AS answer \
    FROM questions q JOIN assistant_messages m ON m.id = q.message_id \
    LEFT JOIN assistant_messages a ON a.id = q.answer_message_id";

fn from_row(row: &Row<'_>, now: i64) -> rusqlite::Result<Question> {
    let answer: Option<MessageId> = optional_id(row, "answer_message_id")?;
    let (state, answer_by_at): (QuestionState, i64) = (row.get("state")?, row.get("answer_by_at")?);
    let expired = state == QuestionState::Pending && answer_by_at <= now;
    Ok(Question {
        id: id(row, "message_id")?,
        process: id(row, "process_id")?,
        assistant_id: row.get("from_assistant_id")?,
        to: optional_id(row, "to_process_id")?,
        delivered: row.get::<_, Option<i64>>("delivered_at")?.is_some(),
        state: if expired { QuestionState::Expired } else { state },
        question: row.get("content")?,
        asked_at: row.get("asked_at")?,
        answer_by_at,
        answer: answer.zip(row.get("answer")?),
        answered_at: row.get("answered_at")?,
    })
}

/// Asks the parent of a process. Once this is committed the question will not be lost.
///
/// # Errors
/// [`QuestionRefused`]; nothing is stored then.
pub fn ask(tx: &mut Tx<'_>, process: ProcessId, question: &str, limits: &Limits) -> Result<MessageId, QuestionRefused> {
    let parent = process_table::get(tx.db, process)?.parent;
    ask_of(tx, process, parent, question, limits)
}

/// The same where `to` is asked: the parent of the process, or its session where there is none.
///
/// # Errors
/// As for [`ask`].
pub(crate) fn ask_of(
    tx: &mut Tx<'_>,
    process: ProcessId,
    to: Option<ProcessId>,
    question: &str,
    limits: &Limits,
) -> Result<MessageId, QuestionRefused> {
    if !process_table::may_act(tx.db, Caller::Process(process))? {
        return Err(QuestionRefused::CallerEnded);
    }
    fits("question", question, limits)?;
    due::expire(tx)?;
    let count: u32 = tx
        .db
        .prepare_cached("SELECT count(*) FROM questions WHERE process_id = ?1 AND state = 'PENDING'")?
        .query_row([process.to_string()], |row| row.get(0))?;
    if count >= limits.pending_questions {
        return Err(QuestionRefused::TooMany { count, limit: limits.pending_questions });
    }
    let row = process_table::get(tx.db, process)?;
    // A parent that has ended meanwhile has left its questions to the session.
    let to = to.filter(|to| row.parent == Some(*to));
    let count = super::waiting_for(tx.db, &row, to, limits.queued_messages)?;
    if count >= limits.queued_messages {
        return Err(QuestionRefused::Full { count, limit: limits.queued_messages });
    }
    let message = post(tx, &row, Kind::Question, Some(process), to, question)?;
    let lives = i64::try_from(limits.question_ms).unwrap_or(i64::MAX);
    tx.db
        .prepare_cached(
            "INSERT INTO questions (message_id, process_id, to_process_id, state, asked_at, answer_by_at)
             VALUES (:message, :process, :to, 'PENDING', :now, :by)",
        )?
        .execute(named_params! {
            ":message": message.to_string(), ":process": process.to_string(),
            ":to": to.map(|parent| parent.to_string()), ":now": tx.now, ":by": tx.now.saturating_add(lives),
        })?;
    tx.wake(crate::store::QUESTIONS);
    Ok(message)
}

/// Expires a question of a process that nobody has answered.
///
/// # Errors
/// The store's.
pub(crate) fn expire_one(tx: &Tx<'_>, process: ProcessId, message: MessageId) -> Result<(), StoreError> {
    tx.db
        .prepare_cached(
            "UPDATE questions SET state = 'EXPIRED' WHERE message_id = ?1 AND process_id = ?2 AND state = 'PENDING'",
        )?
        .execute([message.to_string(), process.to_string()])?;
    Ok(())
}

fn fits(what: &'static str, text: &str, limits: &Limits) -> Result<(), QuestionRefused> {
    if text.trim().is_empty() {
        return Err(QuestionRefused::Empty(what));
    }
    let bytes = text.len() as u64;
    if bytes > limits.message_bytes {
        return Err(QuestionRefused::TooLong { bytes, limit: limits.message_bytes });
    }
    Ok(())
}

/// A question of a process.
///
/// # Errors
/// [`QuestionRefused::Unknown`] where the process has asked no such thing.
pub fn question(
    db: &Connection,
    process: ProcessId,
    message: MessageId,
    now: i64,
) -> Result<Question, QuestionRefused> {
    let mut look = db.prepare_cached(&format!("SELECT {COLUMNS} WHERE q.message_id = ?1 AND q.process_id = ?2"))?;
    let found = look.query_row([message.to_string(), process.to_string()], |row| from_row(row, now)).optional()?;
    found.ok_or(QuestionRefused::Unknown(message))
}

/// A question by its message, as it is stored.
///
/// # Errors
/// The store's.
pub fn find(db: &Connection, message: MessageId) -> Result<Option<Question>, StoreError> {
    let mut look = db.prepare_cached(&format!("SELECT {COLUMNS} WHERE q.message_id = ?1"))?;
    Ok(look.query_row([message.to_string()], |row| from_row(row, i64::MIN)).optional()?)
}

/// Gives the answer of a question to the process that asked, if there is one: it is retrieved, and was delivered.
///
/// # Errors
/// [`QuestionRefused::Unknown`], and the store's.
pub fn retrieve(tx: &Tx<'_>, process: ProcessId, message: MessageId) -> Result<Question, QuestionRefused> {
    due::expire(tx)?;
    let question = question(tx.db, process, message, tx.now)?;
    if question.state == QuestionState::Answered
        && let Some((answer, _)) = &question.answer
    {
        tx.db
            .prepare_cached("UPDATE questions SET state = 'RETRIEVED', retrieved_at = ?2 WHERE message_id = ?1")?
            .execute((message.to_string(), tx.now))?;
        tx.db
            .prepare_cached(
                "UPDATE assistant_messages SET delivered_at = coalesce(delivered_at, ?2),
                   read_at = coalesce(read_at, ?2) WHERE id = ?1",
            )?
            .execute((answer.to_string(), tx.now))?;
    }
    Ok(question)
}

/// What a process has asked, oldest first, at most `limit`: what is not fetched comes first, then the newest.
///
/// # Errors
/// The store's.
pub fn of_process(db: &Connection, process: ProcessId, now: i64, limit: u32) -> Result<Vec<Question>, StoreError> {
    let mut look = db.prepare_cached(&format!(
        "SELECT {COLUMNS} WHERE q.process_id = ?1
         ORDER BY q.state IN ('PENDING', 'ANSWERED') DESC, m.seq DESC LIMIT ?2"
    ))?;
    let rows = look.query_map((process.to_string(), limit), |row| from_row(row, now))?;
    let mut found: Vec<Question> = rows.collect::<Result<_, _>>()?;
    found.sort_by_key(|question| (question.asked_at, question.id.uuid()));
    Ok(found)
}

/// Who is asked: a process, or all sessions in reach of one.
fn addressed(caller: Caller) -> (&'static str, String) {
    match caller {
        Caller::Process(process) => ("q.to_process_id = :me", process.to_string()),
        Caller::Session(session) => (
            "q.to_process_id IS NULL AND q.process_id IN (SELECT p.process_id FROM assistant_processes p
               WHERE p.session_id IN (SELECT reached FROM reach WHERE session_id = :me))",
            session.to_string(),
        ),
    }
}

/// The questions to a caller that wait for an answer, oldest first: all, or those of one process.
///
/// # Errors
/// The store's.
pub fn pending(db: &Connection, caller: Caller, of: Option<ProcessId>, now: i64) -> Result<Vec<Question>, StoreError> {
    let (mine, me) = addressed(caller);
    let mut look = db.prepare_cached(&format!(
        "SELECT {COLUMNS} WHERE q.state = 'PENDING' AND q.answer_by_at > :now AND {mine}
           AND (:of IS NULL OR q.process_id = :of) ORDER BY m.seq"
    ))?;
    let of = of.map(|process| process.to_string());
    let rows = look.query_map(named_params! { ":now": now, ":me": me, ":of": of }, |row| from_row(row, now))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The last question of a process to a caller, and where it is.
fn last(
    db: &Connection,
    caller: Caller,
    of: ProcessId,
    now: i64,
) -> Result<Option<(MessageId, QuestionState)>, StoreError> {
    let mut look = db.prepare_cached(&format!(
        "SELECT {COLUMNS} WHERE q.process_id = ?1 AND q.to_process_id IS ?2 ORDER BY m.seq DESC LIMIT 1"
    ))?;
    let mine = caller.process().map(|id| id.to_string());
    let found = look.query_row((of.to_string(), mine), |row| from_row(row, now)).optional()?;
    Ok(found.map(|question| (question.id, question.state)))
}

/// Marks questions as handed to a session: no wait of its ends for them any more.
///
/// # Errors
/// The store's.
pub fn hand_to_session(tx: &Tx<'_>, asked: &[MessageId]) -> Result<(), StoreError> {
    let mut mark = tx.db.prepare_cached(
        "UPDATE assistant_messages SET delivered_at = coalesce(delivered_at, ?2) WHERE id = ?1 AND to_process_id IS NULL",
    )?;
    for message in asked {
        mark.execute((message.to_string(), tx.now))?;
    }
    Ok(())
}

/// Answers a question: the one that is named, else the only one of the process that waits for this caller.
///
/// # Errors
/// [`QuestionRefused`] tells the state of a question that takes no answer.
pub fn reply(
    tx: &mut Tx<'_>,
    caller: Caller,
    process: ProcessId,
    message: Option<MessageId>,
    answer: &str,
    limits: &Limits,
) -> Result<MessageId, QuestionRefused> {
    if !process_table::may_act(tx.db, caller)? {
        return Err(QuestionRefused::CallerEnded);
    }
    fits("answer", answer, limits)?;
    due::expire(tx)?;
    let waiting = pending(tx.db, caller, Some(process), tx.now)?;
    let asked = match message {
        Some(message) => {
            let found = question(tx.db, process, message, tx.now)?;
            let mine = found.to == caller.process();
            if !mine {
                return Err(QuestionRefused::Unknown(message));
            }
            if found.state != QuestionState::Pending {
                return Err(QuestionRefused::NotPending { id: message, state: found.state });
            }
            found
        }
        None => match waiting.as_slice() {
            [one] => one.clone(),
            [] => return Err(QuestionRefused::NonePending(process, last(tx.db, caller, process, tx.now)?)),
            several => {
                let one = |asked: &Question| format!("{} ({})", asked.id, crate::text::cut(&asked.question, 80));
                return Err(QuestionRefused::Several(process, several.iter().map(one).collect::<Vec<_>>().join("; ")));
            }
        },
    };
    let row: Process = process_table::get(tx.db, process)?;
    if row.marked {
        return Err(QuestionRefused::Cancelled(process));
    }
    let reply = post(tx, &row, Kind::Answer, caller.process(), Some(process), answer)?;
    tx.db
        .prepare_cached(
            "UPDATE questions SET state = 'ANSWERED', answer_message_id = ?2, answered_at = ?3 WHERE message_id = ?1",
        )?
        .execute((asked.id.to_string(), reply.to_string(), tx.now))?;
    Ok(reply)
}
