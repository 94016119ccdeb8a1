//! `read_file` and `list_files`: read-only, below the folder of the calling process, bounded.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Component, Path, PathBuf};

use ignore::WalkBuilder;
use ignore::overrides::OverrideBuilder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Audience, Call, Hints, Output, Tool, ToolError, row};
use crate::process_table;

/// Files of one list.
const FILES_MAX: usize = 500;
/// Files and folders that are looked at for one list.
const ENTRIES_MAX: usize = 200_000;
/// Bytes of a file that is read at all.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Bytes of one line that are shown; the rest of it is left out.
const LINE_BYTES_MAX: usize = 4_000;

pub(super) fn rows() -> Vec<Tool> {
    let look = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    vec![
        row::<_, Read, _, _>("read_file", "Read a file", Audience::Runners, look, read_file),
        row::<_, Listed, _, _>("list_files", "List files", Audience::Runners, look, list_files),
    ]
}

/// Arguments of `read_file`.
#[derive(Debug, Deserialize, JsonSchema)]
struct ReadFile {
    /// The file, relative to your working folder.
    path: String,
    /// The first line to read, from 1. Default 1.
    from_line: Option<u64>,
    /// At most this many lines. Default: as many as fit.
    lines: Option<u64>,
}

/// Result of `read_file`.
#[derive(Debug, Serialize, JsonSchema)]
struct Read {
    path: String,
    content: String,
    /// The first line of the content; 1 is the first of the file.
    from_line: u64,
    /// Where to go on; absent at the end of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_line: Option<u64>,
}

/// Arguments of `list_files`.
#[derive(Debug, Deserialize, JsonSchema)]
struct ListFiles {
    /// Which paths, as `src/**/*.rs`. Default: all.
    pattern: Option<String>,
    /// The folder to look in, relative to your working folder. Default: the whole of it.
    path: Option<String>,
}

/// Result of `list_files`.
#[derive(Debug, Serialize, JsonSchema)]
struct Listed {
    /// Paths relative to your working folder, sorted.
    files: Vec<String>,
    /// There are more than these: narrow the pattern.
    more: bool,
}

/// The folder of the calling process.
async fn root(call: &Call) -> Result<PathBuf, ToolError> {
    let none = || {
        let hint = "Do without files, or ask your caller for the contents in a message.";
        ToolError::new("not_permitted", "this run has no working folder", hint)
    };
    let process = call.caller.process().ok_or_else(none)?;
    let row = call.host.store().read(move |db| process_table::get(db, process)).await?;
    let dir = row.working_dir.ok_or_else(none)?;
    PathBuf::from(dir).canonicalize().map_err(|_| none())
}

/// A path below the folder, links resolved.
fn below(root: &Path, wanted: &str) -> Result<PathBuf, ToolError> {
    let shown: String = wanted.chars().take(200).collect();
    let outside = || {
        let hint = "Only files below your working folder can be read; links out of it are not followed.";
        ToolError::new("not_permitted", format!("`{shown}` lies outside of the working folder"), hint)
    };
    // Told before anything is looked at: whether a path outside exists is nobody's business.
    let mut depth = 0_i32;
    for part in Path::new(wanted).components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::ParentDir => depth -= 1,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return Err(outside()),
        }
        if depth < 0 {
            return Err(outside());
        }
    }
    let found = root.join(wanted).canonicalize().map_err(|error| {
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => "does not exist",
            _ => "cannot be read",
        };
        ToolError::bad_argument(format!("`{shown}` {why}"), "list_files shows what there is.")
    })?;
    if found.starts_with(root) { Ok(found) } else { Err(outside()) }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| ToolError::internal(&error))?
}

async fn read_file(call: Call, params: ReadFile) -> Result<Output, ToolError> {
    let root = root(&call).await?;
    let chars_max = call.host.limits().answer_chars as usize;
    let read = blocking(move || {
        let path = below(&root, &params.path)?;
        read_lines(&path, &params, chars_max)
    });
    Output::new(&read.await?)
}

fn read_lines(path: &Path, params: &ReadFile, chars_max: usize) -> Result<Read, ToolError> {
    let shown = &params.path;
    let bad = |why: &str| ToolError::bad_argument(format!("`{shown}` {why}"), "list_files shows what there is.");
    let meta = path.metadata().map_err(|_| bad("cannot be read"))?;
    if !meta.is_file() {
        return Err(bad("is no file"));
    }
    if meta.len() > FILE_BYTES_MAX {
        return Err(bad("is larger than 16 MiB"));
    }
    // A file may grow while it is read.
    let mut file = BufReader::new(File::open(path).map_err(|_| bad("cannot be read"))?.take(FILE_BYTES_MAX));
    let from_line = params.from_line.unwrap_or(1).max(1);
    let most = params.lines.unwrap_or(u64::MAX);
    let (mut content, mut chars, mut number) = (String::new(), 0, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        if file.read_until(b'\n', &mut line).map_err(|_| bad("cannot be read"))? == 0 {
            return Ok(Read { path: shown.clone(), content, from_line, next_line: None });
        }
        number += 1;
        if line.contains(&0) {
            return Err(bad("is a binary file"));
        }
        if number < from_line {
            continue;
        }
        let text = shown_line(&line);
        chars += text.chars().count();
        if number - from_line >= most || (chars > chars_max && number > from_line) {
            return Ok(Read { path: shown.clone(), content, from_line, next_line: Some(number) });
        }
        content.push_str(&text);
    }
}

fn shown_line(line: &[u8]) -> String {
    if line.len() <= LINE_BYTES_MAX {
        return String::from_utf8_lossy(line).into_owned();
    }
    let kept = String::from_utf8_lossy(&line[..LINE_BYTES_MAX]);
    format!("{kept} [{} bytes of this line left out]\n", line.len() - LINE_BYTES_MAX)
}

async fn list_files(call: Call, params: ListFiles) -> Result<Output, ToolError> {
    let root = root(&call).await?;
    let listed = blocking(move || {
        let from = below(&root, params.path.as_deref().unwrap_or("."))?;
        list(&root, &from, params.pattern.as_deref())
    });
    Output::new(&listed.await?)
}

fn list(root: &Path, from: &Path, pattern: Option<&str>) -> Result<Listed, ToolError> {
    let mut walk = WalkBuilder::new(from);
    walk.hidden(true).follow_links(false).require_git(false).sort_by_file_path(Path::cmp);
    let matcher = match pattern {
        None => None,
        Some(pattern) => {
            let mut only = OverrideBuilder::new(root);
            let bad = |error| ToolError::bad_argument(error, "Write it as `src/**/*.rs`.");
            only.add(pattern.trim_start_matches('!')).map_err(bad)?;
            Some(only.build().map_err(bad)?)
        }
    };
    let mut files = Vec::new();
    for (seen, entry) in walk.build().enumerate() {
        if seen >= ENTRIES_MAX {
            return Ok(Listed { files, more: true });
        }
        // A folder that cannot be read hides what is in it; the others are listed.
        let Ok(entry) = entry else { continue };
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let path = entry.path();
        if matcher.as_ref().is_some_and(|only| !only.matched(path, false).is_whitelist()) {
            continue;
        }
        let Ok(relative) = path.strip_prefix(root) else { continue };
        if files.len() == FILES_MAX {
            return Ok(Listed { files, more: true });
        }
        files.push(relative.to_string_lossy().replace('\\', "/"));
    }
    Ok(Listed { files, more: false })
}
