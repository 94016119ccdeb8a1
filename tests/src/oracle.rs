//! Looks at the store of a host from outside and tells what must never be: whatever died or misbehaved before.
//!
//! It reads the SQLite file only, with its own idea of what is legal, in one read transaction: a host may be at work, may
//! have been killed, or may have been killed and not started again. Nothing is changed. What [`check`] looks at:
//!
//! * the file: `quick_check`, foreign keys;
//! * lives: the status changes in the log are legal moves, each process is terminal at most once, with a reason if it
//!   failed, a cause if it was cancelled and a result if it finished, and its row says what the log says last; a process
//!   marked cancelled ends `cancelled`; nothing lives below an ended parent; nothing was spawned by a caller that had
//!   ended or was marked, or by a session that had ended; the end of a session spares detached processes and what is
//!   below them; depth, root and session fit the parent's;
//! * slots, played back from the log: nobody started without a free slot of its session and of the host, nor before an
//!   older one of its session; the caps on living, queued and spawned processes held;
//! * resumptions: of ended processes only, each resumed once; no mail waits for a process that was resumed;
//! * messages: each is in the log of its thread; a process that has ended has told so in exactly one final message, to its
//!   parent; a finished process has no queued mail; whatever was delivered to a process stands in its recorded
//!   conversation, once, inserted or in the result of a call, and nothing is inserted (or read as unread) that it had
//!   before; what it has of one sender is in the order in which it was sent;
//! * questions: answered at most once; none is pending of an ended process; a retrieved answer is in the result of the
//!   call that retrieved it; an answer is never inserted;
//! * blobs: each has the hash of its bytes and somebody who uses it; whoever has a picture in a result uses its blob;
//! * counts: model calls, tool calls and tokens in the rows are those of the log.
//!
//! Not seen: what a caller was told (compare that with the tables yourself), mail that a runner took by the *method*
//! `recv_message` or by `deliver_message` (a process without a model call is taken for such an adapter), and
//! conversations that a runner rewrote on purpose.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

mod blobs;
mod book;
mod lives;
mod mail;
mod places;
mod slots;

use book::Book;

/// What is wrong in the store, one line each; empty where all is well.
///
/// A file that cannot be read is one violation.
#[must_use]
pub fn check(db: &Path) -> Vec<String> {
    looked(db, |book| {
        let mut wrong = Vec::new();
        lives::check(book, &mut wrong);
        slots::check(book, &mut wrong);
        mail::check(book, &mut wrong);
        blobs::check(book, &mut wrong);
        wrong
    })
}

/// The same for a state in which nothing lives: every process is terminal, waits for nothing, and has nothing reserved.
#[must_use]
pub fn check_quiet(db: &Path) -> Vec<String> {
    let mut wrong = check(db);
    wrong.extend(looked(db, |book| {
        let mut wrong = Vec::new();
        lives::check_quiet(book, &mut wrong);
        wrong
    }));
    wrong
}

fn looked(db: &Path, look: impl FnOnce(&Book) -> Vec<String>) -> Vec<String> {
    let read = || -> rusqlite::Result<(Book, Vec<String>)> {
        let db = Connection::open_with_flags(db, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let tx = db.unchecked_transaction()?;
        let broken = book::damage(&tx)?;
        Ok((Book::read(&tx)?, broken))
    };
    match read() {
        Ok((book, mut wrong)) => {
            wrong.extend(look(&book));
            wrong
        }
        Err(error) => vec![format!("{} cannot be read: {error}", db.display())],
    }
}
