//! Giving space back to the system: SQLite keeps the pages of removed rows for later ones.

use std::path::Path;
use std::sync::Mutex;

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::StoreError;
use super::writer::wal_of;

/// What the database took on the disk, with the log of its changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vacuumed {
    /// Before, bytes.
    pub bytes_before: u64,
    /// After, bytes.
    pub bytes_after: u64,
}

/// Writes the database anew without the pages that hold nothing. Not within a transaction.
pub(super) fn vacuum(db: &Connection, path: &Path, copying: &Mutex<()>) -> Result<Vacuumed, StoreError> {
    let failed = |error| StoreError::of(error, path);
    let bytes_before = bytes(path);
    db.execute_batch("VACUUM").map_err(failed)?;
    let _copying = super::lock(copying);
    // Only then does the file get shorter; where a reader is at work it does at the next time.
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(failed)?;
    Ok(Vacuumed { bytes_before, bytes_after: bytes(path) })
}

/// The bytes of a database and of the log of its changes.
pub(super) fn bytes(path: &Path) -> u64 {
    let of = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    of(path) + of(&wal_of(path))
}
