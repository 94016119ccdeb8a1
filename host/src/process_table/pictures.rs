//! The pictures of a result: beside its text, which names them too.

use assistant_protocol::ids::ProcessId;
use assistant_protocol::types::Part;
use rusqlite::{Connection, OptionalExtension};

use crate::blobs;
use crate::caller::Caller;
use crate::store::{StoreError, Tx};

/// Keeps the pictures of a result, in the place of those of an earlier one: as far as they are the process's.
///
/// # Errors
/// The store's.
pub fn keep_pictures(tx: &Tx<'_>, process: ProcessId, pictures: &[Part]) -> Result<(), StoreError> {
    let mut kept = Vec::new();
    for picture in pictures {
        if let Part::Image { blob: Some(handle), .. } = picture
            && let Ok(handle) = handle.parse()
            && blobs::find(tx.db, Caller::Process(process), &handle)?.is_some()
        {
            kept.push(picture);
        }
    }
    let json = serde_json::to_string(&kept).map_err(StoreError::damaged)?;
    tx.db
        .prepare_cached(
            "UPDATE assistant_processes SET result_parts = ?2 WHERE process_id = ?1 AND finished_at IS NULL",
        )?
        .execute((process.to_string(), (!kept.is_empty()).then_some(json)))?;
    Ok(())
}

/// The pictures of the result of a process.
///
/// # Errors
/// The store's.
pub fn pictures(db: &Connection, process: ProcessId) -> Result<Vec<Part>, StoreError> {
    let mut look = db.prepare_cached("SELECT result_parts FROM assistant_processes WHERE process_id = ?1")?;
    let json: Option<Option<String>> = look.query_row([process.to_string()], |row| row.get(0)).optional()?;
    let read = |json: String| serde_json::from_str(&json).map_err(StoreError::damaged);
    json.flatten().map_or_else(|| Ok(Vec::new()), read)
}
