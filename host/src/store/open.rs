//! Opening the file: settings, and the way from an older schema to this one.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::{StoreError, flags};

/// Each step takes the schema one version on; `PRAGMA user_version` counts them.
pub(super) const MIGRATIONS: &[&str] = &[include_str!("migrations/1.sql"), include_str!("migrations/2.sql")];
/// Tables of the newest schema.
const TABLES: i64 = 11;
/// How long a lock of another program is waited for.
const BUSY_MS: u32 = 5_000;
/// What is kept of the write-ahead log once it is copied back.
const WAL_KEPT_BYTES: u64 = 1024 * 1024;
/// How much of the file is mapped.
const MMAP_BYTES: u64 = 256 * 1024 * 1024;

/// Opens for writing and brings the schema up to date.
pub(super) fn open(path: &Path, now: i64) -> Result<Connection, StoreError> {
    let refused = |error: rusqlite::Error| {
        let damaged = matches!(
            error.sqlite_error_code(),
            Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt)
        );
        let hint = if damaged { "; move the file away to begin anew, or put a copy back" } else { "" };
        StoreError::Open { path: path.to_owned(), message: format!("{error}{hint}") }
    };
    make_private(path).map_err(|error| StoreError::Open { path: path.to_owned(), message: error.to_string() })?;
    let mut db = Connection::open_with_flags(path, flags(true)).map_err(refused)?;
    let found: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(refused)?;
    if found > version() {
        return Err(StoreError::Newer { path: path.to_owned(), found, known: version() });
    }
    db.execute_batch(&format!(
        "PRAGMA busy_timeout = {BUSY_MS}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = {WAL_KEPT_BYTES}; PRAGMA mmap_size = {MMAP_BYTES};"
    ))
    .map_err(refused)?;
    migrate(&mut db, now).map_err(refused)?;
    let tables: i64 = db
        .query_row("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'", [], |row| {
            row.get(0)
        })
        .map_err(refused)?;
    if tables != TABLES {
        let message = format!("it has {tables} tables and should have {TABLES}; move the file away to begin anew");
        return Err(StoreError::Open { path: path.to_owned(), message });
    }
    Ok(db)
}

/// The newest schema that this program knows.
fn version() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// Makes the file, or takes it from all but its owner: it holds whole conversations. SQLite gives the files beside it
/// the same mode.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).truncate(false).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    drop(file);
    Ok(())
}

fn migrate(db: &mut Connection, now: i64) -> rusqlite::Result<()> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: i64 = tx.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for (version, step) in (1..).zip(MIGRATIONS) {
        if version > found {
            tracing::debug!(version, now, "migrating the store");
            tx.execute_batch(step)?;
            tx.pragma_update(None, "user_version", version)?;
        }
    }
    tx.commit()
}

/// Opens for reading only.
pub(super) fn reader(path: &Path) -> Result<Connection, StoreError> {
    let db = Connection::open_with_flags(path, flags(false))?;
    db.execute_batch(&format!(
        "PRAGMA busy_timeout = {BUSY_MS}; PRAGMA query_only = ON; PRAGMA mmap_size = {MMAP_BYTES};"
    ))?;
    Ok(db)
}
