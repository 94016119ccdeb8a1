//! `list_files`: the paths that fit a pattern.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ENTRIES_MAX, Root, Stop, below, blocking, only, relative, root, walk};
use crate::tools::{Call, Output, ToolError};

/// Files of one list.
const FILES_MAX: usize = 500;

/// Arguments of `list_files`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListFiles {
    /// Which paths, as `src/**/*.rs`. Default: all.
    pattern: Option<String>,
    /// The folder to look in, relative to your working folder. Default: the whole of it.
    path: Option<String>,
}

/// Result of `list_files`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Listed {
    /// Paths relative to your working folder, sorted.
    files: Vec<String>,
    /// There are more than these: narrow the pattern.
    more: bool,
}

pub(super) async fn list_files(call: Call, params: ListFiles) -> Result<Output, ToolError> {
    let root = root(&call).await?;
    let stop = Stop::default();
    let stopped = stop.flag();
    let listed = blocking(move || {
        let from = below(&root, params.path.as_deref().unwrap_or("."))?;
        list(&root, &from, params.pattern.as_deref(), &stopped)
    });
    Output::new(&listed.await?)
}

fn list(root: &Root, from: &Path, pattern: Option<&str>, stopped: &AtomicBool) -> Result<Listed, ToolError> {
    let matcher = pattern.map(|pattern| only(root, pattern)).transpose()?;
    let mut files = Vec::new();
    for (seen, entry) in walk(root, from).enumerate() {
        if stopped.load(Ordering::Relaxed) {
            return Err(ToolError::cancelled());
        }
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
        let Some(relative) = relative(root, path) else { continue };
        if files.len() == FILES_MAX {
            return Ok(Listed { files, more: true });
        }
        files.push(relative);
    }
    Ok(Listed { files, more: false })
}
