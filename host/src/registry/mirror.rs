//! Files mirrored into the table `assistants`, and the assistants that live there only.
//!
//! Each function is a part of the caller's transaction.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Result, params};

use super::{AssistantId, Definition, Registry, Source, sha256_hex};

/// What mirroring changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MirrorSummary {
    /// Assistants that were not in the table.
    pub added: usize,
    /// Assistants whose definition is another than before.
    pub changed: usize,
    /// Deleted assistants that are there again.
    pub revived: usize,
    /// Assistants whose file is gone; their rows stay, marked.
    pub deleted: usize,
    /// Assistants that are as they were.
    pub unchanged: usize,
}

/// Makes the rows of files match `registry`. Rows of the database's own are left alone.
///
/// # Errors
/// Those of SQLite; the caller's transaction must then be rolled back.
pub fn mirror(db: &Connection, registry: &Registry, now_ms: i64) -> Result<MirrorSummary> {
    let mut summary = MirrorSummary::default();
    let mut rows = HashMap::new();
    let mut select = db.prepare_cached("SELECT id, content_hash, path, source, deleted_at IS NULL FROM assistants")?;
    let mut found = select.query([])?;
    while let Some(row) = found.next()? {
        let place: (String, Option<String>, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
        rows.insert(row.get::<_, String>(0)?, (place, row.get::<_, bool>(4)?));
    }
    for definition in registry.assistants().iter().filter(|definition| definition.source != Source::Database) {
        let place = (definition.content_hash.clone(), path(definition), definition.source.label().to_owned());
        match rows.remove(definition.id.as_str()) {
            // An app's own row of the same id is hidden by the file, not overwritten.
            Some(((_, _, source), true)) if source == Source::Database.label() => continue,
            Some((old, true)) if old == place => {
                summary.unchanged += 1;
                continue;
            }
            Some((_, true)) => summary.changed += 1,
            Some((_, false)) => summary.revived += 1,
            None => summary.added += 1,
        }
        upsert(db, definition, now_ms)?;
    }
    let mut delete = db.prepare_cached("UPDATE assistants SET deleted_at = ?2, updated_at = ?2 WHERE id = ?1")?;
    for (id, ((_, _, source), alive)) in rows {
        if alive && source != Source::Database.label() {
            summary.deleted += delete.execute(params![id, now_ms])?;
        }
    }
    Ok(summary)
}

/// The assistants that the database keeps, by id.
///
/// A row that is no definition of this version is left out with a warning in the log.
///
/// # Errors
/// Those of SQLite.
pub fn stored(db: &Connection) -> Result<Vec<Definition>> {
    let sql = "SELECT id, definition FROM assistants WHERE source = 'database' AND deleted_at IS NULL ORDER BY id";
    let mut select = db.prepare_cached(sql)?;
    let rows = select.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    let mut definitions = Vec::new();
    for row in rows {
        let (id, text) = row?;
        match serde_json::from_str(&text) {
            Ok(definition) => definitions.push(definition),
            Err(error) => tracing::warn!(%id, %error, "a stored assistant could not be read"),
        }
    }
    Ok(definitions)
}

/// Keeps `definition` in the database, in place of one of the same id; its source becomes [`Source::Database`].
///
/// # Errors
/// Those of SQLite.
pub fn put(db: &Connection, definition: &Definition, now_ms: i64) -> Result<()> {
    upsert(db, &own(definition)?, now_ms)
}

/// Whether the assistant of this id that the database keeps is the same as `definition`; none where it keeps none.
///
/// # Errors
/// Those of SQLite.
pub fn compare(db: &Connection, definition: &Definition) -> Result<Option<bool>> {
    let sql = "SELECT content_hash FROM assistants WHERE id = ?1 AND source = 'database' AND deleted_at IS NULL";
    let kept: Option<String> =
        db.prepare_cached(sql)?.query_row([definition.id.as_str()], |row| row.get(0)).optional()?;
    kept.map(|kept| Ok(kept == own(definition)?.content_hash)).transpose()
}

/// `definition` as one that the database keeps of its own.
fn own(definition: &Definition) -> Result<Definition> {
    let mut definition = Definition { source: Source::Database, path: None, ..definition.clone() };
    definition.content_hash.clear();
    definition.content_hash = sha256_hex(json(&definition)?.as_bytes());
    Ok(definition)
}

/// Marks the database's own assistant `id` as deleted; false where there is none.
///
/// # Errors
/// Those of SQLite.
pub fn delete(db: &Connection, id: &AssistantId, now_ms: i64) -> Result<bool> {
    let sql = "UPDATE assistants SET deleted_at = ?2, updated_at = ?2
               WHERE id = ?1 AND source = 'database' AND deleted_at IS NULL";
    Ok(db.prepare_cached(sql)?.execute(params![id.as_str(), now_ms])? > 0)
}

/// Whether the database keeps an assistant `id` of its own.
///
/// # Errors
/// Those of SQLite.
pub fn is_stored(db: &Connection, id: &AssistantId) -> Result<bool> {
    let sql = "SELECT 1 FROM assistants WHERE id = ?1 AND source = 'database' AND deleted_at IS NULL";
    db.prepare_cached(sql)?.exists([id.as_str()])
}

/// The definition in the row of `id`, deleted or not, whatever its source.
///
/// # Errors
/// Those of SQLite, and a row that is no definition of this version.
pub fn row(db: &Connection, id: &AssistantId) -> Result<Option<Definition>> {
    let text: Option<String> = db
        .prepare_cached("SELECT definition FROM assistants WHERE id = ?1")?
        .query_row([id.as_str()], |row| row.get(0))
        .optional()?;
    text.map(|text| serde_json::from_str(&text).map_err(conversion)).transpose()
}

fn upsert(db: &Connection, definition: &Definition, now_ms: i64) -> Result<()> {
    let sql =
        "INSERT INTO assistants (id, name, description, system_prompt, mcp_config, allowed_builtin_service_aliases,
                   tags, source, path, content_hash, definition, created_at, updated_at, deleted_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12, NULL)
               ON CONFLICT (id) DO UPDATE SET
                   name = excluded.name, description = excluded.description, system_prompt = excluded.system_prompt,
                   mcp_config = excluded.mcp_config,
                   allowed_builtin_service_aliases = excluded.allowed_builtin_service_aliases,
                   tags = excluded.tags, source = excluded.source, path = excluded.path,
                   content_hash = excluded.content_hash, definition = excluded.definition,
                   updated_at = excluded.updated_at, deleted_at = NULL";
    let servers = definition.mcp_servers.clone().unwrap_or_else(|| serde_json::json!({}));
    db.prepare_cached(sql)?.execute(params![
        definition.id.as_str(),
        definition.name,
        definition.description,
        definition.system_prompt,
        servers.to_string(),
        definition.tools.as_ref().map(|tools| serde_json::json!(tools).to_string()),
        serde_json::json!(definition.tags).to_string(),
        definition.source.label(),
        path(definition),
        definition.content_hash,
        json(definition)?,
        now_ms,
    ])?;
    Ok(())
}

fn path(definition: &Definition) -> Option<String> {
    definition.path.as_ref().map(|path| path.to_string_lossy().into_owned())
}

/// The whole definition as JSON. A path that is no UTF-8 has no JSON; the column `path` keeps it as it can be shown.
fn json(definition: &Definition) -> Result<String> {
    let shown = path(definition).map(Into::into);
    let shown = Definition { path: shown, ..definition.clone() };
    serde_json::to_string(&shown).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

fn conversion(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
}

#[cfg(test)]
mod tests;
