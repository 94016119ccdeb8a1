//! Blobs: pictures, files and long texts, kept once by the SHA-256 of their bytes, and known by short handles.
//!
//! A conversation holds handles, so that it stays small whatever tools and models give. A blob is stored in the job that
//! records what names it. Who has a use of it may read it: the process that got it, whoever was handed a text that names
//! it by someone who may (a message, a question, an answer, a task, a result), a resumption, and the sessions of the
//! principal. With the last use the blob goes ([`process_table::retention`](crate::process_table)).

use assistant_protocol::ids::ProcessId;
use assistant_protocol::types::Part;
use rusqlite::{Connection, OptionalExtension, named_params};

use crate::caller::Caller;
use crate::limits::Limits;
use crate::registry::sha256_hex;
use crate::store::{StoreError, Tx};

mod away;
mod handle;
mod kinds;
mod reading;
mod shown;

pub use away::file;
pub(crate) use away::{Away, Given};
pub(crate) use handle::named_in;
pub use handle::{Handle, NoHandle};
pub(crate) use kinds::{as_text, is_picture};
pub(crate) use shown::show;

/// Bytes to be kept, with what they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    hash: String,
    mime_type: String,
    name: Option<String>,
    bytes: Vec<u8>,
}

impl Blob {
    /// Bytes as whoever gives them tells their type and name. What is a picture goes by what it is, not by what is told.
    #[must_use]
    pub fn new(bytes: Vec<u8>, mime_type: &str, name: Option<&str>) -> Self {
        let mime_type = kinds::mime_type(&bytes, mime_type);
        Self { hash: sha256_hex(&bytes), mime_type, name: name.and_then(kinds::file_name), bytes }
    }

    /// What it is known by.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::of_hash(&self.hash)
    }

    /// Its type, as `image/png`.
    #[must_use]
    pub fn mime_type(&self) -> &str {
        &self.mime_type
    }

    /// What a conversation says of it: a line with its handle, and the picture where it is one. `what` it is: `picture`.
    #[must_use]
    pub fn parts(&self, what: &str) -> Vec<Part> {
        std::iter::once(Part::text(self.line(what))).chain(self.picture()).collect()
    }

    /// The picture that it is, by its handle; none where it is something else.
    #[must_use]
    pub fn picture(&self) -> Option<Part> {
        is_picture(&self.mime_type).then(|| Part::Image {
            mime_type: self.mime_type.clone(),
            data: None,
            blob: Some(self.handle().to_string()),
        })
    }

    /// Its size, bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The line alone.
    #[must_use]
    pub fn line(&self, what: &str) -> String {
        format!("[{}: {}]", self.told(what), self.handle())
    }

    /// What it is, in words.
    fn told(&self, what: &str) -> String {
        let name = self.name.as_ref().map_or_else(String::new, |name| format!(" {name}"));
        format!("{what}{name}, {}, {} bytes", self.mime_type, self.bytes.len())
    }
}

/// A blob as a reader has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// What it is known by.
    pub handle: Handle,
    /// Its type, as `image/png`.
    pub mime_type: String,
    /// Its name, where whoever gave it told one.
    pub name: Option<String>,
    /// Its size, bytes.
    pub bytes: u64,
    hash: String,
}

/// Why a blob was not kept.
#[derive(Debug, thiserror::Error)]
pub enum NotKept {
    /// The tree has as much as it may.
    #[error("limit tree_blob_bytes: the blobs of this tree of processes have {used} bytes, the most is {limit}")]
    Full {
        /// Bytes of what the tree has.
        used: u64,
        /// Bytes.
        limit: u64,
    },
    /// The store's.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<rusqlite::Error> for NotKept {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Keeps blobs for a process. What is kept already is not kept twice.
///
/// # Errors
/// [`NotKept::Full`] where the tree of the process would have more than it may; nothing is to be kept of that job then.
pub fn keep<'a>(
    tx: &Tx<'_>,
    process: ProcessId,
    blobs: impl IntoIterator<Item = &'a Blob>,
    limits: &Limits,
) -> Result<(), NotKept> {
    let mut is_more = false;
    for blob in blobs {
        tx.db
            .prepare_cached("INSERT INTO blobs (hash, bytes, created_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?
            .execute((&blob.hash, &blob.bytes, tx.now))?;
        let used = tx
            .db
            .prepare_cached(
                "INSERT INTO blob_uses (process_id, hash, mime_type, name) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO NOTHING",
            )?
            .execute((process.to_string(), &blob.hash, &blob.mime_type, &blob.name))?;
        is_more |= used > 0;
    }
    if is_more {
        let used = of_tree(tx.db, process)?;
        if used > limits.tree_blob_bytes {
            return Err(NotKept::Full { used, limit: limits.tree_blob_bytes });
        }
    }
    Ok(())
}

/// The bytes of all blobs that the tree of a process has, each counted once.
fn of_tree(db: &Connection, process: ProcessId) -> Result<u64, StoreError> {
    let mut look = db.prepare_cached(
        "SELECT coalesce(sum(length(b.bytes)), 0) FROM blobs b WHERE b.hash IN (
           SELECT u.hash FROM assistant_processes p JOIN blob_uses u ON u.process_id = p.process_id
           WHERE p.root_process_id = (SELECT root_process_id FROM assistant_processes WHERE process_id = ?1))",
    )?;
    Ok(look.query_row([process.to_string()], |row| row.get(0))?)
}

/// Whoever gets a text may read what it names, as far as its writer may.
///
/// # Errors
/// The store's.
pub(crate) fn pass_on(tx: &Tx<'_>, from: Caller, to: ProcessId, text: &str) -> Result<(), StoreError> {
    for handle in named_in(text) {
        let Some(found) = find(tx.db, from, &handle)? else { continue };
        tx.db
            .prepare_cached(
                "INSERT INTO blob_uses (process_id, hash, mime_type, name) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO NOTHING",
            )?
            .execute((to.to_string(), &found.hash, &found.mime_type, &found.name))?;
    }
    Ok(())
}

/// A process that goes on from another one has what that had.
///
/// # Errors
/// The store's.
pub(crate) fn inherit(tx: &Tx<'_>, old: ProcessId, new: ProcessId) -> Result<(), StoreError> {
    tx.db
        .prepare_cached(
            "INSERT INTO blob_uses (process_id, hash, mime_type, name)
             SELECT ?2, hash, mime_type, name FROM blob_uses WHERE process_id = ?1 ON CONFLICT DO NOTHING",
        )?
        .execute((old.to_string(), new.to_string()))?;
    Ok(())
}

/// The blob that a caller means by a handle; none where it has none, or where several begin with these digits.
///
/// # Errors
/// The store's.
pub fn find(db: &Connection, caller: Caller, handle: &Handle) -> Result<Option<Described>, StoreError> {
    // No digit is behind `f`.
    let (from, until) = (handle.digits(), format!("{}g", handle.digits()));
    let (mut look, who) = match caller {
        Caller::Process(id) => (
            db.prepare_cached(
                "SELECT u.hash, u.mime_type, u.name, length(b.bytes) AS bytes FROM blob_uses u JOIN blobs b USING (hash)
                 WHERE u.process_id = :who AND u.hash >= :from AND u.hash < :until LIMIT 2",
            )?,
            id.to_string(),
        ),
        Caller::Session(id) => (
            db.prepare_cached(
                "SELECT u.hash, u.mime_type, u.name, length(b.bytes) AS bytes FROM blob_uses u
                   JOIN assistant_processes p ON p.process_id = u.process_id
                   JOIN blobs b ON b.hash = u.hash
                 WHERE u.hash >= :from AND u.hash < :until
                   AND p.session_id IN (SELECT reached FROM reach WHERE session_id = :who)
                 GROUP BY u.hash LIMIT 2",
            )?,
            id.to_string(),
        ),
    };
    let rows = look.query_map(named_params! { ":who": who, ":from": from, ":until": until }, |row| {
        let hash: String = row.get("hash")?;
        Ok(Described {
            handle: Handle::of_hash(&hash),
            mime_type: row.get("mime_type")?,
            name: row.get("name")?,
            bytes: row.get("bytes")?,
            hash,
        })
    })?;
    let found: Vec<Described> = rows.collect::<Result<_, _>>()?;
    match <[Described; 1]>::try_from(found) {
        Ok([one]) => Ok(Some(one)),
        Err(_) => Ok(None),
    }
}

/// The bytes of a blob that was found.
///
/// # Errors
/// The store's.
pub(crate) fn bytes(db: &Connection, found: &Described) -> Result<Option<Vec<u8>>, StoreError> {
    let mut look = db.prepare_cached("SELECT bytes FROM blobs WHERE hash = ?1")?;
    Ok(look.query_row([&found.hash], |row| row.get(0)).optional()?)
}

/// Whether a process has any.
///
/// # Errors
/// The store's.
pub(crate) fn has_any(db: &Connection, process: ProcessId) -> Result<bool, StoreError> {
    let mut look = db.prepare_cached("SELECT EXISTS (SELECT 1 FROM blob_uses WHERE process_id = ?1)")?;
    Ok(look.query_row([process.to_string()], |row| row.get(0))?)
}

#[cfg(test)]
mod tests;
