//! Opening the file: settings, and the way from an older schema to this one. A file that is refused is left as it is.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior};

use super::writer::wal_of;
use super::{BUSY_MS, StoreError, Tuning, flags};

/// Each step takes the schema one version on; `PRAGMA user_version` counts them.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
    include_str!("migrations/5.sql"),
    include_str!("migrations/6.sql"),
    include_str!("migrations/7.sql"),
    include_str!("migrations/8.sql"),
    include_str!("migrations/9.sql"),
    include_str!("migrations/10.sql"),
];
/// Tables of the newest schema.
const TABLES: i64 = 14;
/// What is kept of the write-ahead log once it is copied back.
const WAL_KEPT_BYTES: u64 = 1024 * 1024;
/// Statements that a connection keeps prepared: all that this program has. SQLite takes longer to prepare one than to
/// run it.
const STATEMENTS_MAX: usize = 256;
/// How much of the file is mapped.
const MMAP_BYTES: u64 = 256 * 1024 * 1024;
/// What to do about a file that is not a database of ours.
const BEGIN_ANEW: &str = "put a copy back, or move the file and those named like it away to begin anew";

/// Opens for writing and brings the schema up to date by `steps`.
pub(super) fn open(path: &Path, tuning: Tuning, steps: &[&str]) -> Result<Connection, StoreError> {
    let refused = |message: String| StoreError::Open { path: path.to_owned(), message };
    let failed = |error: rusqlite::Error| refused(words(error, path));
    make_private(path).map_err(|error| refused(of_the_system(&error)))?;
    let empty = std::fs::metadata(path).is_ok_and(|file| file.len() == 0);
    if empty && std::fs::metadata(wal_of(path)).is_ok_and(|wal| wal.len() > 0) {
        return Err(refused(format!("it is empty, and the log of its changes is not; {BEGIN_ANEW}")));
    }
    let mut db = Connection::open_with_flags(path, flags(true)).map_err(failed)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Whatever is refused is closed without a change: its write-ahead log stays where it is.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(failed)?;
    db.pragma_update(None, "busy_timeout", tuning.busy_ms).map_err(failed)?;
    let found: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(StoreError::Newer { path: path.to_owned(), found, known });
    }
    if found == 0 && tables(&db).map_err(failed)? > 0 {
        return Err(refused(format!("it is a database of another program; {BEGIN_ANEW}")));
    }
    db.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 0;
         PRAGMA journal_size_limit = {WAL_KEPT_BYTES}; PRAGMA mmap_size = {MMAP_BYTES};"
    ))
    .map_err(failed)?;
    if let Some(pages) = tuning.pages_max {
        db.pragma_update(None, "max_page_count", pages).map_err(failed)?;
    }
    if found < known {
        migrate(&mut db, steps).map_err(|error| {
            refused(format!("its schema {found} could not be brought to {known}: {}", words(error, path)))
        })?;
    }
    let tables = tables(&db).map_err(failed)?;
    if tables != TABLES {
        return Err(refused(format!("it has {tables} tables and should have {TABLES}; {BEGIN_ANEW}")));
    }
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(failed)?;
    Ok(db)
}

fn tables(db: &Connection) -> rusqlite::Result<i64> {
    let sql = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    db.query_row(sql, [], |row| row.get(0))
}

/// What SQLite says, and what to do.
fn words(error: rusqlite::Error, path: &Path) -> String {
    let said = error.to_string();
    match StoreError::of(error, path) {
        StoreError::Full { .. } => format!("{said}; make room on its disk"),
        StoreError::Failing { .. } => format!(
            "{said}; see that this user may write the file and its folder, that the disk is there and has room, or use \
             another state directory (--state DIR)"
        ),
        StoreError::Locked { .. } => format!("{said}; end the program that has it open (a database browser, a backup)"),
        StoreError::Corrupt { .. } => format!("{said}; {BEGIN_ANEW}"),
        _ => said,
    }
}

/// What the system says, and what to do.
fn of_the_system(error: &std::io::Error) -> String {
    let advice = match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => "make room on its disk",
        std::io::ErrorKind::IsADirectory => "move the folder of that name away",
        _ => "see that this user may write the file and its folder, or use another state directory (--state DIR)",
    };
    format!("{error}; {advice}")
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

/// All steps are one transaction: a step that fails leaves the file as it was.
fn migrate(db: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: i64 = tx.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for (version, step) in (1..).zip(steps) {
        if version > found {
            tracing::debug!(version, "bringing the schema of the store up to date");
            tx.execute_batch(step)?;
            tx.pragma_update(None, "user_version", version)?;
        }
    }
    tx.commit()
}

/// A look at the database of a state directory by whoever is not its host; none where there is nothing yet.
pub(super) fn peek<T>(
    path: &Path,
    look: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> Result<Option<T>, StoreError> {
    let failed = |error| StoreError::of(error, path);
    if !path.is_file() {
        return Ok(None);
    }
    let db = reader(path)?;
    let found: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    match found {
        0 => Ok(None),
        found if found > known => Err(StoreError::Newer { path: path.to_owned(), found, known }),
        _ => look(&db).map(Some).map_err(failed),
    }
}

/// Opens for reading only.
pub(super) fn reader(path: &Path) -> Result<Connection, StoreError> {
    let failed = |error| StoreError::of(error, path);
    let db = Connection::open_with_flags(path, flags(false)).map_err(failed)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    db.execute_batch(&format!(
        "PRAGMA busy_timeout = {BUSY_MS}; PRAGMA query_only = ON; PRAGMA mmap_size = {MMAP_BYTES};"
    ))
    .map_err(failed)?;
    Ok(db)
}
