//! What is kept, and how long: ended trees are removed whole, the one that ended first before all others.
//!
//! Nothing that lives is touched. A tree is kept while a process of another one goes on from it (in a line of conversation,
//! until that has ended: it holds all that was said), while a living process
//! has exchanged messages with it, and, where only the size of the database asks for its removal, while what its
//! session was told of an end is unread and younger than `retention_days`.

use rusqlite::{Connection, named_params};

use crate::limits::Limits;
use crate::store::{StoreError, Tx};

/// One day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// How long a tree stays after its end in any case: its runners may be ending, and its caller reading.
const SETTLED_MS: i64 = 10 * 60 * 1_000;
/// Rows that one job removes, where they may be removed apart.
const ROWS_MAX: u64 = 2_000;
/// Trees that are looked for at once.
const TREES_MAX: u32 = 100;

/// What came of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removal {
    /// There is more of the tree.
    More,
    /// The tree is gone, with so many processes.
    Gone(u64),
    /// It is kept: something has changed since it was looked for.
    Kept,
}

/// Before when a tree has to have ended to be removed; none where nothing is to be removed.
fn ended_until(db: &Connection, limits: &Limits, now: i64) -> Result<Option<i64>, StoreError> {
    if limits.retention_bytes > 0 && bytes_used(db)? > limits.retention_bytes {
        return Ok(Some(now - SETTLED_MS));
    }
    Ok(by_age(limits, now))
}

fn by_age(limits: &Limits, now: i64) -> Option<i64> {
    let days = i64::from(limits.retention_days);
    (days > 0).then(|| now - (days * DAY_MS).max(SETTLED_MS))
}

/// The bytes of the database that hold something: pages of removed rows are used again.
fn bytes_used(db: &Connection) -> Result<u64, StoreError> {
    let sql = "SELECT (page_count - freelist_count) * page_size
               FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
    Ok(db.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// The trees that are to be removed now, by their roots, up to a hundred, oldest end first.
pub(crate) fn due(db: &Connection, limits: &Limits, now: i64) -> Result<Vec<String>, StoreError> {
    let Some(until) = ended_until(db, limits, now)? else { return Ok(Vec::new()) };
    select(db, limits, now, until, None)
}

/// All trees that may be removed, or one if it may.
fn select(
    db: &Connection,
    limits: &Limits,
    now: i64,
    until: i64,
    root: Option<&str>,
) -> Result<Vec<String>, StoreError> {
    let only = if root.is_some() { "WHERE root_process_id = :root" } else { "WHERE :root IS NULL" };
    let mut look = db.prepare_cached(&format!(
        "WITH ended AS (
           SELECT root_process_id AS root, max(finished_at) AS at FROM assistant_processes {only}
             GROUP BY root_process_id HAVING count(*) = count(finished_at) AND max(finished_at) <= :until)
         SELECT root FROM ended WHERE NOT EXISTS (
             SELECT 1 FROM assistant_processes p JOIN assistant_processes next ON next.resumed_from = p.process_id
             WHERE p.root_process_id = root AND next.root_process_id <> root
               AND (next.line IS NULL OR next.turns = 0 OR next.finished_at IS NULL))
           AND NOT EXISTS (
             SELECT 1 FROM assistant_processes p JOIN assistant_messages m ON m.from_process_id = p.process_id
             WHERE p.root_process_id = root AND m.kind = 'final' AND m.to_process_id IS NULL AND m.read_at IS NULL
               AND m.created_at > :unread)
           AND NOT EXISTS (
             SELECT 1 FROM assistant_processes p JOIN assistant_messages m ON m.from_process_id = p.process_id
               JOIN assistant_processes other ON other.process_id = m.to_process_id
             WHERE p.root_process_id = root AND other.finished_at IS NULL)
           AND NOT EXISTS (
             SELECT 1 FROM assistant_processes p JOIN assistant_messages m ON m.to_process_id = p.process_id
               JOIN assistant_processes other ON other.process_id = m.from_process_id
             WHERE p.root_process_id = root AND other.finished_at IS NULL)
         ORDER BY at, root LIMIT :trees"
    ))?;
    // Kept for ever by age: then the size alone decides.
    let unread = by_age(limits, now).unwrap_or(i64::MAX);
    let rows = look
        .query_map(named_params! { ":root": root, ":until": until, ":unread": unread, ":trees": TREES_MAX }, |row| {
            row.get(0)
        })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Removes a part of a tree, if it still is to be removed. The log goes first and in parts; all by which it could be
/// gone on with goes in one.
pub(crate) fn remove(tx: &Tx<'_>, root: &str, limits: &Limits) -> Result<Removal, StoreError> {
    let still = match ended_until(tx.db, limits, tx.now)? {
        Some(until) => !select(tx.db, limits, tx.now, until, Some(root))?.is_empty(),
        None => false,
    };
    if !still {
        return Ok(Removal::Kept);
    }
    let mut room = ROWS_MAX;
    for part in [
        "DELETE FROM events WHERE seq IN (SELECT e.seq FROM assistant_processes p
           JOIN events e ON e.process_id = p.process_id WHERE p.root_process_id = ?1 LIMIT ?2)",
        "DELETE FROM tool_calls WHERE (process_id, call_id) IN (SELECT t.process_id, t.call_id FROM assistant_processes p
           JOIN tool_calls t ON t.process_id = p.process_id WHERE p.root_process_id = ?1 LIMIT ?2)",
    ] {
        room -= (tx.db.prepare_cached(part)?.execute((root, room))? as u64).min(room);
        if room == 0 {
            return Ok(Removal::More);
        }
    }
    remove_the_rest(tx, root).map(Removal::Gone)
}

/// SQL: the processes of a tree, and all messages that one of them wrote or got.
const TREE: &str = "(SELECT process_id FROM assistant_processes WHERE root_process_id = ?1)";
const MAIL: &str = "(SELECT m.id FROM assistant_processes p JOIN assistant_messages m ON m.thread_id = p.thread_id
     WHERE p.root_process_id = ?1
   UNION SELECT m.id FROM assistant_processes p JOIN assistant_messages m ON m.from_process_id = p.process_id
     WHERE p.root_process_id = ?1
   UNION SELECT m.id FROM assistant_processes p JOIN assistant_messages m ON m.to_process_id = p.process_id
     WHERE p.root_process_id = ?1)";

fn remove_the_rest(tx: &Tx<'_>, root: &str) -> Result<u64, StoreError> {
    for part in [
        format!("DELETE FROM conversations WHERE process_id IN {TREE}"),
        // The conversations of others keep the words.
        format!("UPDATE conversations SET message_id = NULL WHERE message_id IN {MAIL}"),
        format!("DELETE FROM questions WHERE process_id IN {TREE}"),
        format!("UPDATE questions SET answer_message_id = NULL WHERE answer_message_id IN {MAIL}"),
        format!("DELETE FROM assistant_messages WHERE id IN {MAIL}"),
        format!("DELETE FROM idempotency_keys WHERE principal IN (SELECT 'process:' || process_id FROM {TREE})"),
    ] {
        tx.db.prepare_cached(&part)?.execute([root])?;
    }
    let next = format!("UPDATE assistant_processes SET resumed_from = NULL WHERE resumed_from IN {TREE}");
    tx.db.prepare_cached(&next)?.execute([root])?;
    remove_blobs(tx, root)?;
    let gone = tx.db.prepare_cached("DELETE FROM assistant_processes WHERE root_process_id = ?1")?.execute([root])?;
    Ok(gone as u64)
}

/// Removes the uses of blobs of a tree, and the blobs that nobody else uses.
fn remove_blobs(tx: &Tx<'_>, root: &str) -> Result<(), StoreError> {
    let unused: Vec<String> = {
        let mut uses =
            tx.db.prepare_cached(&format!("DELETE FROM blob_uses WHERE process_id IN {TREE} RETURNING hash"))?;
        let rows = uses.query_map([root], |row| row.get(0))?;
        rows.collect::<Result<_, _>>()?
    };
    let mut remove = tx
        .db
        .prepare_cached("DELETE FROM blobs WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE hash = ?1)")?;
    for hash in unused {
        remove.execute([hash])?;
    }
    Ok(())
}

/// Removes a part of what hangs on no process any more. Returns whether there may be more.
pub(crate) fn sweep(tx: &Tx<'_>, limits: &Limits) -> Result<bool, StoreError> {
    // By age only what age removes.
    let until = by_age(limits, tx.now).unwrap_or(i64::MIN);
    let day = until.div_euclid(DAY_MS);
    let mut most = 0;
    for (part, until) in [
        (
            "DELETE FROM snapshots WHERE hash IN (SELECT hash FROM snapshots s WHERE ?1 IS NOT NULL AND NOT EXISTS
               (SELECT 1 FROM assistant_processes WHERE snapshot = s.hash) AND NOT EXISTS
               (SELECT 1 FROM assistant_processes WHERE given_tools = s.hash) LIMIT ?2)",
            until,
        ),
        (
            "DELETE FROM sessions WHERE session_id IN (SELECT session_id FROM sessions s
               WHERE ended_at <= ?1 AND end_cause <> 'left'
                 AND NOT EXISTS (SELECT 1 FROM assistant_processes WHERE session_id = s.session_id)
                 AND NOT EXISTS (SELECT 1 FROM assistant_messages WHERE session_id = s.session_id) LIMIT ?2)",
            until,
        ),
        // A spawn that is made again under its key must not be answered with a process that is gone.
        (
            "DELETE FROM idempotency_keys WHERE (principal, tool, idempotency_key) IN (
               SELECT principal, tool, idempotency_key FROM idempotency_keys k
               WHERE created_at <= ?1 OR json_extract(answer, '$.answer.process_id') IS NOT NULL AND NOT EXISTS
                 (SELECT 1 FROM assistant_processes WHERE process_id = json_extract(k.answer, '$.answer.process_id'))
               LIMIT ?2)",
            until,
        ),
        ("DELETE FROM spent_days WHERE day IN (SELECT day FROM spent_days WHERE day < ?1 LIMIT ?2)", day),
    ] {
        most = most.max(tx.db.prepare_cached(part)?.execute((until, ROWS_MAX))? as u64);
    }
    Ok(most >= ROWS_MAX)
}

/// How many trees there are, for whoever wonders what is kept.
#[cfg(test)]
pub(crate) fn roots(db: &Connection) -> Result<Vec<String>, StoreError> {
    let mut look = db.prepare("SELECT DISTINCT root_process_id FROM assistant_processes ORDER BY 1")?;
    let rows = look.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
