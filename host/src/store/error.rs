//! Why the store did not do something, in words that say which file, and what to do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::ErrorCode;
use tokio::task::JoinError;

use super::FILE;

/// Why the store did not do a job. Nothing of the job is kept.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// SQLite refused.
    #[error("the store failed: {0}")]
    Sqlite(Arc<rusqlite::Error>),
    /// There is no room for the change.
    #[error("the disk is full: {} cannot grow; make room there, then try again", file.display())]
    Full {
        /// The file.
        file: PathBuf,
    },
    /// The system does not read or write the file.
    #[error(
        "{} cannot be read or written ({message}); see whether its disk is full, read-only or gone, or files may not \
         grow (ulimit -f), then try again",
        file.display()
    )]
    Failing {
        /// The file.
        file: PathBuf,
        /// What SQLite says.
        message: String,
    },
    /// Another program has held the file for longer than is waited.
    #[error(
        "{} is locked by another program; end that one (a database browser, a backup), then try again", file.display()
    )]
    Locked {
        /// The file.
        file: PathBuf,
    },
    /// The file is not what was written.
    #[error(
        "{} is damaged ({message}); end the host (`assistant-host stop`), then put a copy back, or move the file and \
         those named like it away to begin anew",
        file.display()
    )]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// What SQLite says.
        message: String,
    },
    /// The transaction that the job shared with others was undone by SQLite (disk full, an I/O error, no memory).
    #[error(
        "{} could not be written and all changes that were to be committed together are undone: its disk is full or \
         fails, or memory is out; make room, then try again",
        file.display()
    )]
    RolledBack {
        /// The file.
        file: PathBuf,
    },
    /// The job would have broken the links between rows.
    #[error("the change was undone: it left foreign keys to be checked later, which would be at the cost of others")]
    Deferred,
    /// The file belongs to a newer program.
    #[error("{} was written by a newer version of this program (schema {found}, this one knows {known}); use that version, or another state directory", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest schema that this program knows.
        known: i64,
    },
    /// The file or its folder cannot be used.
    #[error("cannot open {}: {message}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system says, and what to do.
        message: String,
    },
    /// What is stored is not what was written.
    #[error("the store holds something unreadable: {0}")]
    Damaged(String),
    /// A job, a look or other work for it panicked. What it had changed is undone.
    #[error("a part of the program panicked: a fault of the program, its log tells more")]
    Panicked,
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::of(error, Path::new(FILE))
    }
}

impl StoreError {
    /// JSON that the host wrote and that cannot be read, or cannot be written.
    #[must_use]
    pub fn damaged(error: serde_json::Error) -> Self {
        Self::Damaged(error.to_string())
    }

    /// What is told where the task that does `what` panicked; the reason is for the log.
    pub(crate) fn panicked(what: &'static str) -> impl FnOnce(JoinError) -> Self {
        move |error| {
            tracing::error!(%error, "{what} panicked");
            Self::Panicked
        }
    }

    /// An error of SQLite about a file.
    pub(super) fn of(error: rusqlite::Error, file: &Path) -> Self {
        let file = file.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { file },
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::FileLockingProtocolFailed,
            ) => Self::Failing { file, message: error.to_string() },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { file },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Corrupt { file, message: error.to_string() }
            }
            _ => Self::Sqlite(Arc::new(error)),
        }
    }

    /// Whether the same job may succeed later: the store was in the way, not the job.
    #[must_use]
    pub fn passes(&self) -> bool {
        match self {
            Self::Full { .. } | Self::Failing { .. } | Self::Locked { .. } | Self::RolledBack { .. } => true,
            Self::Sqlite(error) => {
                matches!(error.sqlite_error_code(), Some(ErrorCode::OutOfMemory | ErrorCode::OperationInterrupted))
            }
            Self::Corrupt { .. }
            | Self::Deferred
            | Self::Newer { .. }
            | Self::Open { .. }
            | Self::Damaged(_)
            | Self::Panicked
            | Self::Closed => false,
        }
    }
}
