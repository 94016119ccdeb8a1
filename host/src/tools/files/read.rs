//! `read_file`: the lines of one text file.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FILE_BYTES_MAX, below, blocking, root};
use crate::tools::{Call, Output, ToolError};

/// Bytes of one line that are shown; the rest of it is left out.
const LINE_BYTES_MAX: usize = 4_000;

/// Arguments of `read_file`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ReadFile {
    /// The file, relative to your working folder.
    path: String,
    /// The first line to read, from 1. Default 1.
    from_line: Option<u64>,
    /// At most this many lines. Default: as many as fit.
    lines: Option<u64>,
}

/// Result of `read_file`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Read {
    path: String,
    content: String,
    /// The first line of the content; 1 is the first of the file.
    from_line: u64,
    /// Where to go on; absent at the end of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_line: Option<u64>,
}

pub(super) async fn read_file(call: Call, params: ReadFile) -> Result<Output, ToolError> {
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
