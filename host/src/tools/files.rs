//! `read_file`, `list_files` and `search_files`: read-only, below the folder of the calling process, bounded.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{Walk, WalkBuilder};

use super::paths::{NotBelow, Root};
use super::{Audience, Call, Hints, Tool, ToolError, row};
use crate::process_table;

mod list;
mod near;
mod read;
mod search;

/// Files and folders that one call looks at.
const ENTRIES_MAX: usize = 200_000;
/// Bytes of a file that is read at all.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Their names.
pub(super) const FILE_TOOLS: &[&str] = &["read_file", "list_files", "search_files"];

pub(super) fn rows() -> Vec<Tool> {
    let look = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    vec![
        row::<_, read::Read, _, _>("read_file", "Read a file", Audience::Runners, look, read::read_file),
        row::<_, list::Listed, _, _>("list_files", "List files", Audience::Runners, look, list::list_files),
        row::<_, search::Found, _, _>("search_files", "Search files", Audience::Runners, look, search::search_files),
    ]
}

/// Dropped with the call that holds it; what works for the call on another thread then stops.
#[derive(Default)]
struct Stop(Arc<AtomicBool>);

impl Stop {
    /// True when nobody waits for the result any more.
    fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The folder of the calling process.
async fn root(call: &Call) -> Result<Root, ToolError> {
    let none = || {
        let hint = "Do without files, or ask your caller for the contents in a message.";
        ToolError::new("not_permitted", "this run has no working folder", hint)
    };
    let process = call.caller.process().ok_or_else(none)?;
    let row = call.host.store().read(move |db| process_table::get(db, process)).await?;
    let dir = row.working_dir.ok_or_else(none)?;
    Root::new(Path::new(&dir), call.host.hidden()).map_err(|_| none())
}

/// A path below the folder, links resolved.
fn below(root: &Root, wanted: &str) -> Result<PathBuf, ToolError> {
    let shown: String = wanted.chars().take(200).collect();
    root.below(wanted).map_err(|error| match error {
        NotBelow::Outside => {
            let hint = "Only files below your working folder can be read; links out of it are not followed.";
            ToolError::new("not_permitted", format!("`{shown}` lies outside of the working folder"), hint)
        }
        NotBelow::Own => {
            let hint = "The state, the configuration and the keys of the host are not shown; do without them.";
            ToolError::new("not_permitted", format!("`{shown}` {error}"), hint)
        }
        NotBelow::Missing => {
            ToolError::bad_argument(format!("`{shown}` {error}"), &near::hint(&near::names(root, wanted)))
        }
        NotBelow::Unreadable => ToolError::bad_argument(format!("`{shown}` {error}"), &near::hint(&[])),
    })
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| ToolError::internal(&error))?
}

/// All that lies below `from` as git sees it, by path: no ignored and no hidden file, no link followed, nothing of the
/// host's own.
fn walk(root: &Root, from: &Path) -> Walk {
    let mut walk = WalkBuilder::new(from);
    let own = root.own.clone();
    walk.filter_entry(move |entry| !own.is(entry.path()));
    walk.hidden(true).follow_links(false).require_git(false).sort_by_file_path(Path::cmp);
    walk.build()
}

/// The files whose paths below `root` fit `pattern`.
fn only(root: &Root, pattern: &str) -> Result<Override, ToolError> {
    let mut only = OverrideBuilder::new(&root.path);
    let bad = |error| ToolError::bad_argument(error, "Write it as `src/**/*.rs`.");
    only.add(pattern.trim_start_matches('!')).map_err(bad)?;
    only.build().map_err(bad)
}

/// A path as tools write it: from `root`, with `/`.
fn relative(root: &Root, path: &Path) -> Option<String> {
    path.strip_prefix(&root.path).ok().map(|path| path.to_string_lossy().replace('\\', "/"))
}
