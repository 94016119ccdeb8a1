//! Handing over: what waits for a process goes into its conversation, each message once and in order for each sender.
//!
//! A message is handed over by a model call, which inserts it, or by a tool call, in whose result it is. The call's id is
//! kept with the message until a model call has contained that result: what a runner has given up waiting for, or never
//! read, is inserted then, and nothing else is.

use assistant_protocol::ids::ProcessId;
use rusqlite::{Connection, OptionalExtension, named_params};

use super::{Boxed, COLUMNS, from_row};
use crate::caller::Caller;
use crate::process_table::{self, Process};
use crate::store::{StoreError, Tx};

/// Bytes of messages that one model call takes in; a single longer one is taken in all the same.
const INSERTED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The queued messages of a process, oldest first: all, or those of one sender. What its runner is being given is not
/// among them.
///
/// # Errors
/// The store's.
pub(crate) fn queued(
    db: &Connection,
    to: ProcessId,
    from: Option<Option<ProcessId>>,
) -> Result<Vec<Boxed>, StoreError> {
    let mut look = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM assistant_messages
         WHERE to_process_id = :to AND delivered_at IS NULL AND handed_by IS NULL AND kind <> 'answer'
           AND (:any OR from_process_id IS :from) ORDER BY seq"
    ))?;
    let from_id = from.flatten().map(|id| id.to_string());
    let rows =
        look.query_map(named_params! { ":to": to.to_string(), ":any": from.is_none(), ":from": from_id }, from_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Marks messages as handed over: delivered, and read where a process got them; `by` is the call in whose result they
/// are, if they are in one.
///
/// # Errors
/// The store's.
pub(crate) fn hand_over<'a>(
    tx: &Tx<'_>,
    mail: impl IntoIterator<Item = &'a Boxed>,
    by: Option<&str>,
) -> Result<(), StoreError> {
    let mut mark = tx.db.prepare_cached(
        "UPDATE assistant_messages SET delivered_at = coalesce(delivered_at, :now),
           read_at = CASE WHEN to_process_id IS NULL THEN read_at ELSE coalesce(read_at, :now) END,
           handed_by = CASE WHEN to_process_id IS NULL OR delivered_at IS NOT NULL THEN handed_by ELSE :by END
         WHERE seq = :seq",
    )?;
    for one in mail {
        mark.execute(named_params! { ":now": tx.now, ":seq": one.seq, ":by": by })?;
    }
    Ok(())
}

/// Hands the queued messages of a process over to a model call, oldest first: as many as one takes in, and at least one.
///
/// # Errors
/// The store's.
pub(crate) fn take_queued(tx: &Tx<'_>, process: ProcessId) -> Result<Vec<Boxed>, StoreError> {
    let mut mail = queued(tx.db, process, None)?;
    let (mut bytes, mut fit) = (0, 0);
    while fit < mail.len() && (fit == 0 || bytes + mail[fit].mail.content.len() <= INSERTED_BYTES_MAX) {
        bytes += mail[fit].mail.content.len();
        fit += 1;
    }
    mail.truncate(fit);
    hand_over(tx, &mail, None)?;
    Ok(mail)
}

/// Hands over what a process wrote to its parent and is still queued, its final message included, oldest first: as much
/// as fits into `chars_max` characters. Tells whether that is all; what is left comes as every other message does.
///
/// # Errors
/// The store's.
pub(crate) fn take_from(
    tx: &Tx<'_>,
    child: &Process,
    chars_max: usize,
    by: Option<&str>,
) -> Result<(Vec<Boxed>, bool), StoreError> {
    let mut mail = match child.parent {
        Some(parent) => queued(tx.db, parent, Some(Some(child.id)))?,
        None => {
            let mut look = tx.db.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM assistant_messages WHERE thread_id = ?1 AND to_process_id IS NULL
                   AND from_process_id = ?2 AND delivered_at IS NULL AND kind <> 'answer' ORDER BY seq"
            ))?;
            let rows = look.query_map([child.thread.to_string(), child.id.to_string()], from_row)?;
            rows.collect::<Result<_, _>>()?
        }
    };
    let fit = fitting(&mail, &mut { chars_max });
    let all = fit == mail.len();
    mail.truncate(fit);
    hand_over(tx, &mail, by)?;
    Ok((mail, all))
}

/// Hands over what `senders` have queued for a process, each one's oldest first up to what may not be, as much as fits
/// into `chars_max` characters.
///
/// # Errors
/// The store's.
pub fn taken_whole(
    tx: &Tx<'_>,
    me: ProcessId,
    senders: &[Option<ProcessId>],
    chars_max: usize,
    by: Option<&str>,
    may_be: impl Fn(&Boxed) -> bool,
) -> Result<Vec<Boxed>, StoreError> {
    let (mut left, mut taken) = (chars_max, Vec::new());
    for sender in senders {
        let mut mail = queued(tx.db, me, Some(*sender))?;
        mail.truncate(mail.iter().take_while(|one| may_be(one)).count());
        mail.truncate(fitting(&mail, &mut left));
        hand_over(tx, &mail, by)?;
        taken.append(&mut mail);
    }
    Ok(taken)
}

/// How many messages from the first on fit into what is left, characters.
fn fitting(mail: &[Boxed], left: &mut usize) -> usize {
    let fits = |one: &&Boxed| {
        let chars = one.mail.content.chars().count();
        let fits = chars <= *left;
        *left = if fits { *left - chars } else { 0 };
        fits
    };
    mail.iter().take_while(fits).count()
}

/// What calls of a process have handed to it and no model call has contained until now: those of a call whose result
/// `holds` does not know are given back, oldest first, to be inserted; the others are contained from now on.
///
/// # Errors
/// The store's.
pub fn unheard(tx: &Tx<'_>, me: ProcessId, holds: impl Fn(&str) -> bool) -> Result<Vec<Boxed>, StoreError> {
    let handed: Vec<(Boxed, String)> = {
        let mut look = tx.db.prepare_cached(&format!(
            "SELECT {COLUMNS}, handed_by FROM assistant_messages
             WHERE to_process_id = ?1 AND handed_by IS NOT NULL AND delivered_at IS NOT NULL ORDER BY seq"
        ))?;
        let rows = look.query_map([me.to_string()], |row| Ok((from_row(row)?, row.get("handed_by")?)))?;
        rows.collect::<Result<_, _>>()?
    };
    let mut contained = tx.db.prepare_cached("UPDATE assistant_messages SET handed_by = NULL WHERE seq = ?1")?;
    for (one, _) in &handed {
        contained.execute([one.seq])?;
    }
    Ok(handed.into_iter().filter(|(_, by)| !holds(by)).map(|(one, _)| one).collect())
}

/// A call that was given up has handed over nothing: what is in its result waits again. Returns how many that were.
///
/// # Errors
/// The store's.
pub fn give_back(tx: &Tx<'_>, me: ProcessId, by: &str) -> Result<usize, StoreError> {
    let back = tx
        .db
        .prepare_cached(
            "UPDATE assistant_messages SET delivered_at = NULL, read_at = NULL, handed_by = NULL
             WHERE to_process_id = ?1 AND handed_by = ?2 AND delivered_at IS NOT NULL",
        )?
        .execute((me.to_string(), by))?;
    if back > 0 {
        tx.wake(me);
    }
    Ok(back)
}

/// The runner has what a call of its own handed over.
///
/// # Errors
/// The store's.
pub fn handed(tx: &Tx<'_>, me: ProcessId, by: &str) -> Result<(), StoreError> {
    tx.db
        .prepare_cached(
            "UPDATE assistant_messages SET handed_by = NULL
             WHERE to_process_id = ?1 AND handed_by = ?2 AND delivered_at IS NOT NULL",
        )?
        .execute((me.to_string(), by))?;
    Ok(())
}

/// The oldest queued message of a process, which its runner is being given from now on: no call hands it over beside
/// that. None where there is none, or the process may not act any more.
///
/// # Errors
/// The store's.
pub(crate) fn being_given(tx: &Tx<'_>, me: ProcessId) -> Result<Option<Boxed>, StoreError> {
    if !process_table::may_act(tx.db, Caller::Process(me))? {
        return Ok(None);
    }
    let mut look = tx.db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM assistant_messages
         WHERE to_process_id = ?1 AND delivered_at IS NULL AND kind <> 'answer' ORDER BY seq LIMIT 1"
    ))?;
    let next = look.query_row([me.to_string()], from_row).optional()?;
    if let Some(next) = &next {
        tx.db
            .prepare_cached("UPDATE assistant_messages SET handed_by = ?2 WHERE seq = ?1")?
            .execute((next.seq, DELIVER_MESSAGE))?;
    }
    Ok(next)
}

/// Stands for the call while a runner is being given a message.
const DELIVER_MESSAGE: &str = "deliver_message";
