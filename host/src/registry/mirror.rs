//! Files mirrored into the table `assistants`, and the assistants that live there only.
//!
//! Each function is a part of the caller's transaction.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

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

/// The files' assistants that differ in two registries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Difference {
    changed: Vec<Arc<Definition>>,
    gone: Vec<AssistantId>,
}

/// Makes the rows of files match `registry`, whatever they are. Rows of the database's own are left alone.
///
/// # Errors
/// Those of SQLite; the caller's transaction must then be rolled back.
pub fn mirror(db: &Connection, registry: &Registry, now_ms: i64) -> Result<MirrorSummary> {
    let mut summary = MirrorSummary::default();
    let mut rows = HashMap::new();
    let mut select = db.prepare_cached("SELECT id, content_hash, path, source, deleted_at IS NULL FROM assistants")?;
    let mut found = select.query([])?;
    while let Some(row) = found.next()? {
        let place: Place = (row.get(1)?, row.get(2)?, row.get(3)?);
        rows.insert(row.get::<_, String>(0)?, (place, row.get::<_, bool>(4)?));
    }
    for definition in registry.assistants().iter().filter(|definition| definition.source != Source::Database) {
        let row = rows.remove(definition.id.as_str());
        take(db, definition, row, now_ms, &mut summary)?;
    }
    for (id, ((_, _, source), alive)) in rows {
        if alive && source != Source::Database.label() {
            summary.deleted += usize::from(leave(db, &id, now_ms)?);
        }
    }
    Ok(summary)
}

/// Makes the rows of files match the registry after one that they match. Only those that differ are looked at.
///
/// # Errors
/// As [`mirror`].
pub fn follow(db: &Connection, difference: &Difference, now_ms: i64) -> Result<MirrorSummary> {
    let mut summary = MirrorSummary::default();
    let sql = "SELECT content_hash, path, source, deleted_at IS NULL FROM assistants WHERE id = ?1";
    let mut select = db.prepare_cached(sql)?;
    for definition in &difference.changed {
        let row = select.query_row([definition.id.as_str()], |row| {
            Ok(((row.get(0)?, row.get(1)?, row.get(2)?), row.get::<_, bool>(3)?))
        });
        take(db, definition, row.optional()?, now_ms, &mut summary)?;
    }
    for id in &difference.gone {
        summary.deleted += usize::from(leave(db, id.as_str(), now_ms)?);
    }
    Ok(summary)
}

impl Difference {
    /// What differs of the files' assistants of two registries.
    #[must_use]
    pub fn between(old: &Registry, new: &Registry) -> Self {
        // Most are the very same: they are not looked up.
        let known = |of: &Registry| of.assistants().iter().map(Arc::as_ptr).collect::<HashSet<_>>();
        let (in_old, in_new) = (known(old), known(new));
        let of_a_file = |found: &&Arc<Definition>| found.source != Source::Database;
        let same = |new: &Arc<Definition>| old.get(&new.id).is_some_and(|old| place(old) == place(new));
        let others = new.assistants().iter().filter(|new| !in_old.contains(&Arc::as_ptr(new)));
        let changed = others.filter(of_a_file).filter(|new| !same(new)).cloned().collect();
        let stays = |old: &Arc<Definition>| new.get(&old.id).is_some_and(|new| new.source != Source::Database);
        let others = old.assistants().iter().filter(|old| !in_new.contains(&Arc::as_ptr(old)));
        let gone = others.filter(of_a_file).filter(|old| !stays(old)).map(|old| old.id.clone());
        Self { changed, gone: gone.collect() }
    }

    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.gone.is_empty()
    }
}

/// By what a row matches its file: content, path and source.
type Place = (String, Option<String>, String);

fn place(definition: &Definition) -> Place {
    (definition.content_hash.clone(), path(definition), definition.source.label().to_owned())
}

/// Makes the row of `definition`, which is `row` and alive or not, match it.
fn take(
    db: &Connection,
    definition: &Definition,
    row: Option<(Place, bool)>,
    now_ms: i64,
    summary: &mut MirrorSummary,
) -> Result<()> {
    match row {
        // An app's own row of the same id is hidden by the file, not overwritten.
        Some(((_, _, source), true)) if source == Source::Database.label() => return Ok(()),
        Some((old, true)) if old == place(definition) => {
            summary.unchanged += 1;
            return Ok(());
        }
        Some((_, true)) => summary.changed += 1,
        Some((_, false)) => summary.revived += 1,
        None => summary.added += 1,
    }
    upsert(db, definition, now_ms)
}

/// Marks the row of a file as deleted; false where there is none.
fn leave(db: &Connection, id: &str, now_ms: i64) -> Result<bool> {
    let sql = "UPDATE assistants SET deleted_at = ?2, updated_at = ?2
               WHERE id = ?1 AND source <> 'database' AND deleted_at IS NULL";
    Ok(db.prepare_cached(sql)?.execute(params![id, now_ms])? > 0)
}

/// The assistants that the database keeps, by id.
///
/// A row that is no definition of this version is left out with a warning in the log. What an assistant may do is what
/// was read, or edited, when it was put there, by the reader of that time: what `extra` has of its file is not read again,
/// since someone may have changed since then what it gave.
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

/// The assistant `id` that the database keeps of its own, if there is one.
///
/// # Errors
/// Those of SQLite, and a row that is no definition of this version.
pub fn kept(db: &Connection, id: &AssistantId) -> Result<Option<Definition>> {
    let sql = "SELECT definition FROM assistants WHERE id = ?1 AND source = 'database' AND deleted_at IS NULL";
    let text: Option<String> = db.prepare_cached(sql)?.query_row([id.as_str()], |row| row.get(0)).optional()?;
    text.map(|text| serde_json::from_str(&text).map_err(conversion)).transpose()
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

/// `definition` as one that the database keeps of its own. Where it was brought in from stays known, since what a file
/// names runs only when it is trusted; it is the same one from wherever it comes.
fn own(definition: &Definition) -> Result<Definition> {
    let mut own = Definition { source: Source::Database, path: None, ..definition.clone() };
    own.content_hash.clear();
    own.content_hash = sha256_hex(json(&own)?.as_bytes());
    own.path.clone_from(&definition.path);
    Ok(own)
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
