//! Reading a thread: which messages, in which order, and what is marked by it.

use assistant_protocol::ids::{ProcessId, ThreadId};
use assistant_protocol::types::{Mail, RecvMessageParams, RecvMessageResult, RecvSummary};
use rusqlite::{OptionalExtension, named_params};

use super::{Boxed, COLUMNS, Refused, from_row, hand_over, may_use, queued};
use crate::caller::Caller;
use crate::process_table;
use crate::store::Tx;

/// Messages of one answer, unless the caller wants fewer.
pub const LAST_N_DEFAULT: u32 = 20;
/// Messages of one answer at most.
pub const LAST_N_MAX: u32 = 200;

/// What a caller wants to read, checked.
#[derive(Debug, Clone)]
pub struct Wanted {
    thread: ThreadId,
    unread_only: bool,
    last_n: u32,
    since: Option<i64>,
    mark_as_read: bool,
    cursor: Option<Cursor>,
    chars_max: usize,
}

/// Where an answer ended: behind a message, or within one that is longer than an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cursor {
    after: i64,
    offset: usize,
}

impl Cursor {
    fn parse(text: &str) -> Option<Self> {
        let (after, offset) = text.split_once('.')?;
        let cursor = Self { after: after.parse().ok()?, offset: offset.parse().ok()? };
        (0..i64::MAX).contains(&cursor.after).then_some(cursor)
    }
}

impl Wanted {
    /// Reads the params of `recv_message`; an answer has at most `chars_max` characters of contents.
    ///
    /// # Errors
    /// [`Refused::BadCursor`].
    pub fn new(params: &RecvMessageParams, chars_max: u32) -> Result<Self, Refused> {
        let cursor = match &params.cursor {
            Some(text) => Some(Cursor::parse(text).ok_or_else(|| Refused::BadCursor(text.clone()))?),
            None => None,
        };
        Ok(Self {
            thread: params.thread_id,
            unread_only: params.unread_only,
            last_n: params.last_n.unwrap_or(LAST_N_DEFAULT).clamp(1, LAST_N_MAX),
            since: params.since,
            mark_as_read: params.mark_as_read,
            cursor,
            chars_max: chars_max as usize,
        })
    }

    /// The thread that is read.
    #[must_use]
    pub fn thread(&self) -> ThreadId {
        self.thread
    }
}

/// What was read.
#[derive(Debug)]
pub struct Received {
    /// The answer.
    pub result: RecvMessageResult,
    /// Messages were handed to a process by it: the answer must be recorded in the same commit.
    pub handed_over: bool,
}

/// Reads messages of a thread, marks what is to be marked, and marks as delivered what is addressed to the caller; `by`
/// is the call of a process in whose result that is.
///
/// Queued mail for a calling process is handed over oldest first, whatever `last_n`, and takes along what the same senders
/// queued for it elsewhere before; with a cursor it comes where it stands in the thread. An answer to a question of the
/// process is no mail until it is retrieved.
///
/// # Errors
/// [`Refused`] where the caller may not.
pub fn receive(tx: &Tx<'_>, caller: Caller, wanted: &Wanted, by: Option<&str>) -> Result<Received, Refused> {
    if !process_table::may_act(tx.db, caller)? {
        return Err(Refused::CallerEnded);
    }
    may_use(tx.db, caller, wanted.thread)?;
    if let Some(cursor) = wanted.cursor.filter(|cursor| cursor.after > 0) {
        // Behind the last message: what comes until then would be skipped.
        let newest = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'assistant_messages'";
        if cursor.after > tx.db.prepare_cached(newest)?.query_row([], |row| row.get(0))? {
            return Err(Refused::BadCursor(format!("{}.{}", cursor.after, cursor.offset)));
        }
    }
    let found = match caller {
        Caller::Session(_) => select(tx, caller, wanted)?,
        Caller::Process(me) => found_for(tx, me, wanted)?,
    };
    let (whole, mut mail, next_cursor) = fit(found.clone(), wanted);
    // A process has a message once its first piece is in its conversation: it is not inserted as well. A session may
    // come back to it until it has had the whole.
    let had: Vec<Boxed> = match caller {
        Caller::Session(_) => whole,
        Caller::Process(_) => found.into_iter().take(mail.len()).collect(),
    };
    let mine: Vec<Boxed> = had.into_iter().filter(|one| one.mail.to_process_id == caller.process()).collect();
    hand_over(tx, &mine, by)?;
    let handed: Vec<&Boxed> = mine.iter().filter(|one| caller.process().is_some() && !one.delivered).collect();
    let mut marked = u32::try_from(handed.len()).unwrap_or(u32::MAX);
    if wanted.mark_as_read {
        let mut mark = tx
            .db
            .prepare_cached("UPDATE assistant_messages SET read_at = :now WHERE seq = :seq AND read_at IS NULL")?;
        for one in &mine {
            marked += u32::try_from(mark.execute(named_params! { ":now": tx.now, ":seq": one.seq })?).unwrap_or(0);
        }
    }
    for one in &mut mail {
        let is = |other: &Boxed| other.mail.id == one.id;
        let read = if wanted.mark_as_read { mine.iter().any(is) } else { handed.iter().any(|other| is(other)) };
        if read {
            one.read_at = one.read_at.or(Some(tx.now));
        }
    }
    let handed_over = !handed.is_empty();
    let total_fetched = u32::try_from(mail.len()).unwrap_or(u32::MAX);
    let summary = RecvSummary { total_fetched, marked_as_read: marked };
    Ok(Received {
        result: RecvMessageResult {
            thread_id: wanted.thread,
            messages: mail,
            summary,
            structured: None,
            next_cursor,
            wait_clamped_to_ms: None,
        },
        handed_over,
    })
}

/// What a process finds in a thread.
fn found_for(tx: &Tx<'_>, me: ProcessId, wanted: &Wanted) -> Result<Vec<Boxed>, Refused> {
    let all = queued(tx.db, me, None)?;
    let since = wanted.since.unwrap_or(i64::MIN);
    let (mut found, last_n) = match wanted.cursor {
        Some(cursor) => {
            let begun = if cursor.offset > 0 { elsewhere(tx, me, wanted, cursor)? } else { None };
            (begun.into_iter().chain(select(tx, Caller::Process(me), wanted)?).collect::<Vec<_>>(), usize::MAX)
        }
        None => {
            let here = all.iter().filter(|one| one.thread == wanted.thread && one.mail.created_at > since);
            (here.cloned().collect(), wanted.last_n as usize)
        }
    };
    found.truncate(last_n);
    if found.is_empty() {
        return select(tx, Caller::Process(me), wanted);
    }
    // What a sender wrote before comes before.
    let before = |one: &&Boxed| {
        let later = |other: &Boxed| {
            !other.delivered
                && other.mail.to_process_id == Some(me)
                && other.mail.from_process_id == one.mail.from_process_id
                && one.seq < other.seq
        };
        found.iter().any(later) && !found.iter().any(|other| other.seq == one.seq)
    };
    let taken_along: Vec<Boxed> = all.iter().filter(before).cloned().collect();
    found.extend(taken_along);
    found.sort_by_key(|one| one.seq);
    Ok(found)
}

/// The message that a cursor is within, where it lies in another thread: it was taken along.
fn elsewhere(tx: &Tx<'_>, me: ProcessId, wanted: &Wanted, cursor: Cursor) -> Result<Option<Boxed>, Refused> {
    let mut look = tx.db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM assistant_messages WHERE seq = ?1 AND thread_id <> ?2 AND to_process_id = ?3"
    ))?;
    Ok(look.query_row((cursor.after, wanted.thread.to_string(), me.to_string()), from_row).optional()?)
}

fn select(tx: &Tx<'_>, caller: Caller, wanted: &Wanted) -> Result<Vec<Boxed>, Refused> {
    // Unread mail and what follows a place are read oldest first, so that none is skipped; else the newest.
    let oldest_first = wanted.unread_only || wanted.cursor.is_some() || wanted.since.is_some();
    let order = if oldest_first { "ASC" } else { "DESC" };
    let from = wanted.cursor.map(|cursor| if cursor.offset > 0 { cursor.after } else { cursor.after + 1 });
    let mut look = tx.db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM assistant_messages
         WHERE thread_id = :thread AND (NOT :unread OR (read_at IS NULL AND to_process_id IS :me))
           AND created_at > :since AND seq >= :from
           AND NOT (kind = 'answer' AND delivered_at IS NULL AND to_process_id IS :me)
         ORDER BY seq {order} LIMIT :limit"
    ))?;
    // One more than wanted, to know whether there is more.
    let rows = look.query_map(
        named_params! {
            ":thread": wanted.thread.to_string(), ":unread": wanted.unread_only,
            ":me": caller.process().map(|id| id.to_string()), ":since": wanted.since.unwrap_or(i64::MIN),
            ":from": from.unwrap_or(0), ":limit": wanted.last_n + u32::from(oldest_first),
        },
        from_row,
    )?;
    let mut found: Vec<Boxed> = rows.collect::<Result<_, _>>()?;
    if !oldest_first {
        found.reverse();
    }
    Ok(found)
}

/// Cuts what was found to one answer. Returns the messages that it has whole, what is told, and where to go on.
fn fit(found: Vec<Boxed>, wanted: &Wanted) -> (Vec<Boxed>, Vec<Mail>, Option<String>) {
    let mut left = wanted.chars_max;
    let (mut whole, mut told) = (Vec::new(), Vec::new());
    // What was taken along may stand before the place that was reached: nobody goes back.
    let reached = wanted.cursor.map_or(0, |cursor| cursor.after);
    let mut last = reached;
    for one in found {
        if told.len() >= wanted.last_n as usize {
            return (whole, told, Some(format!("{last}.0")));
        }
        // The offset is one into that very message; the others are told from their start.
        let begun = wanted.cursor.filter(|cursor| cursor.after == one.seq);
        let offset = begun.map_or(0, |cursor| cursor.offset);
        let rest: String = one.mail.content.chars().skip(offset).collect();
        let chars = rest.chars().count();
        if chars > left && !told.is_empty() {
            return (whole, told, Some(format!("{last}.0")));
        }
        let mut mail = one.mail.clone();
        if chars > left {
            mail.content = rest.chars().take(left).collect();
            let next = format!("{}.{}", one.seq, offset + left);
            told.push(mail);
            return (whole, told, Some(next));
        }
        mail.content = rest;
        left -= chars;
        last = one.seq.max(reached);
        told.push(mail);
        whole.push(one);
    }
    (whole, told, None)
}
