//! No statement of the tables reads a whole table, however many rows it has: each is looked at with SQLite's own plan.

use std::path::{Path, PathBuf};

/// What stands in the place of what a statement is put together from: as it is in the sources.
const PARTS: &[(&str, &str)] =
    &[("{FREE}", FREE), ("{LIVING}", "status IN ('queued', 'starting', 'running', 'waiting')"), ("{SPAN}", "0")];

/// As `process_table/line.rs` has it.
const FREE: &str = "NOT EXISTS (SELECT 1 FROM assistant_processes older WHERE older.assistant_id = q.assistant_id \
    AND older.line = q.line AND older.seq < q.seq AND older.status IN ('queued', 'starting', 'running', 'waiting'))";

/// What reads all of a table and may, by how it begins: it is done once, when a host opens or closes, or once an hour.
const MAY: &[&str] = &[
    "DELETE FROM sessions WHERE session_id IN",
    "DELETE FROM idempotency_keys WHERE (principal",
    "SELECT session_id FROM sessions WHERE ended_at IS NULL",
    "UPDATE sessions SET ended_at = ?1, end_cause = 'host_lost'",
];
/// What statements make up themselves and read then: the line above a process, and what is below one.
const OWN: &[&str] = &["a", "above", "line", "b", "t", "tree", "w"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the workspace")
}

/// The string literals of a source, without what breaks their lines.
fn literals(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut rest = lines.join("\n");
    while let Some(begin) = rest.find('"') {
        let behind = rest[begin + 1..].to_owned();
        let mut end = 0;
        while let Some(at) = behind[end..].find('"') {
            end += at;
            if !behind[..end].ends_with('\\') {
                break;
            }
            end += 1;
        }
        found.push(behind[..end].replace("\\\n", " "));
        rest = behind[end + 1..].to_owned();
    }
    found
}

fn statements() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut todo: Vec<PathBuf> = [
        "message_box",
        "process_table",
        "message_box.rs",
        "process_table.rs",
        "conversation.rs",
        "blobs.rs",
        "events.rs",
        "registry/mirror.rs",
        "tools/record.rs",
    ]
    .iter()
    .map(|name| root().join("host/src").join(name))
    .collect();
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            todo.extend(std::fs::read_dir(path).expect("a folder").flatten().map(|entry| entry.path()));
            continue;
        }
        let name = path.strip_prefix(root()).expect("below").display().to_string();
        let verbs = ["SELECT", "UPDATE", "INSERT", "DELETE", "WITH"];
        let text = std::fs::read_to_string(&path).expect("a text");
        let of_it = literals(&text)
            .into_iter()
            .filter(|sql| verbs.iter().any(|verb| sql.trim_start().starts_with(&format!("{verb} "))));
        found.extend(of_it.map(|sql| (name.clone(), sql)));
    }
    assert!(found.len() > 60, "the statements are found");
    found
}

#[test]
fn no_statement_scans_a_table() {
    let db = rusqlite::Connection::open_in_memory().expect("a database");
    let schema = std::fs::read_to_string(root().join("schema/store.sql")).expect("the schema");
    db.execute_batch(&schema).expect("the schema");
    let (mut scans, mut planned) = (Vec::new(), 0);
    for (file, sql) in statements() {
        let whole = PARTS.iter().fold(sql, |sql, (part, is)| sql.replace(part, is));
        // What is put together from more is looked at where it is used whole.
        let Ok(mut look) = db.prepare(&format!("EXPLAIN QUERY PLAN {whole}")) else { continue };
        planned += 1;
        let mut rows = look.raw_query();
        while let Some(row) = rows.next().expect("a plan") {
            let step: String = row.get("detail").expect("a step");
            // With more words it goes by an index, or is no table.
            let table = step.strip_prefix("SCAN ").filter(|of| !of.contains(' ') && !OWN.contains(of));
            if table.is_some() && !MAY.iter().any(|begin| whole.trim_start().starts_with(begin)) {
                scans.push(format!("{file}: {step}\n    {whole}"));
            }
        }
    }
    assert!(planned > 50, "most statements have a plan: {planned}");
    assert!(scans.is_empty(), "{}", scans.join("\n"));
}
