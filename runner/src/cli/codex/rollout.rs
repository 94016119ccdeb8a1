//! What a session of Codex has used by now, from the file that Codex keeps of it: its output tells that at the end of a turn
//! only, and so of none that is given up.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use assistant_protocol::types::Usage;
use serde_json::Value;

use super::super::kind::Env;

/// How much of the end of the file is read, in bytes: a count follows each answer of the model.
const TAIL_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Folders of a day that are looked into, the newest first.
const DAYS_MAX: usize = 400;
/// Folders and files that are looked at in one folder.
const ENTRIES_MAX: usize = 20_000;

/// What it has used; none where Codex has not counted yet, or where its file is not found.
pub(super) fn used(env: &Env, session: &str) -> Option<Usage> {
    let value = |name: &str| env.iter().find(|(given, _)| given == name).map(|(_, value)| PathBuf::from(value));
    let home = value("CODEX_HOME").or_else(|| value("HOME").map(|home| home.join(".codex")))?;
    last_count(&file_of(&home.join("sessions"), session)?)
}

/// The file of a session: `YEAR/MONTH/DAY/rollout-TIME-SESSION.jsonl`.
fn file_of(sessions: &Path, session: &str) -> Option<PathBuf> {
    let ending = format!("-{session}.jsonl");
    let months = newest_first(sessions).into_iter().flat_map(|year| newest_first(&year));
    let days = months.flat_map(|month| newest_first(&month)).take(DAYS_MAX);
    days.flat_map(|day| newest_first(&day)).find(|file| file.to_string_lossy().ends_with(&ending))
}

/// What lies in a folder; nothing where it cannot be read.
fn newest_first(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES_MAX);
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort_unstable_by(|one, other| other.cmp(one));
    paths
}

fn last_count(file: &Path) -> Option<Usage> {
    let mut file = File::open(file).ok()?;
    let bytes = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(bytes.saturating_sub(TAIL_BYTES_MAX))).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES_MAX).read_to_end(&mut tail).ok()?;
    let counts = tail.split(|byte| *byte == b'\n').rev().filter_map(|line| {
        let line: Value = serde_json::from_slice(line).ok()?;
        let total = &line["payload"]["info"]["total_token_usage"];
        (line["payload"]["type"] == "token_count" && total.is_object()).then(|| super::counts(total))
    });
    counts.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_count_of_a_session_is_found() {
        let home = tempfile::tempdir().expect("a folder");
        let day = home.path().join("sessions/2026/11/29");
        std::fs::create_dir_all(&day).expect("a folder");
        let count = |input: u64| {
            format!(
                r#"{{"type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{input},"output_tokens":2}}}}}}}}"#
            )
        };
        // The last is of its limits only, and half a line was written before it was killed.
        let limits = r#"{"payload":{"type":"token_count","info":null}}"#;
        let text = format!("{}\n{}\n{limits}\n{{\"payload\":{{\"ty", count(10), count(30));
        std::fs::write(day.join("rollout-2026-11-29T17-00-00-abc.jsonl"), text).expect("writes");
        std::fs::write(day.join("rollout-2026-11-29T18-00-00-other.jsonl"), count(99)).expect("writes");
        let env = [("CODEX_HOME".into(), home.path().into())];
        let want = Usage { input_tokens: Some(30), output_tokens: Some(2), ..Usage::default() };
        assert_eq!(used(&env, "abc"), Some(want));
        assert_eq!(used(&env, "gone"), None);
        assert_eq!(used(&[("HOME".into(), home.path().into())], "abc"), None);
    }
}
