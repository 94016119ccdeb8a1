//! `list_process`: the processes of a caller, as trees.

use assistant_protocol::ids::ProcessId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::processes::{Seen, mine};
use super::{Audience, Call, Hints, Output, Tool, ToolError, row};
use crate::caller::Caller;
use crate::process_table::{self, Listed, Status, Whose};
use crate::text::cut;

/// Processes on a page, unless the caller wants fewer or more.
const PAGE_SIZE_DEFAULT: u32 = 20;
/// Processes on a page at most: as many as one answer holds.
const PAGE_SIZE_MAX: u32 = 50;
/// Characters of a result as data in a list.
const STRUCTURED_CHARS_MAX: usize = 500;
/// Characters of a task in a list.
const TASK_CHARS_MAX: usize = 100;

pub(super) fn rows() -> Vec<Tool> {
    let look = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    vec![row::<_, Processes, _, _>("list_process", "List processes", Audience::Everyone, look, list_process)]
}

/// Arguments of `list_process`.
#[derive(Debug, Deserialize, JsonSchema)]
struct List {
    /// Only this process and those below it.
    process_id: Option<ProcessId>,
    /// Only those with this status.
    status: Option<Status>,
    /// Only what you spawned yourself, without what is below. Default false.
    #[serde(default)]
    root_only: bool,
    /// Only trees that live, or whose root ended at or after this time (Unix milliseconds).
    since: Option<i64>,
    /// Which page, from 1. Default 1.
    page: Option<u32>,
    /// Processes on a page, 1 to 50. Default 20.
    page_size: Option<u32>,
}

/// A process in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Item {
    #[serde(flatten)]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    seen: Seen,
    /// Its level in its tree: 0 is what you spawned.
    level: u32,
    /// The task, cut.
    task: String,
}

/// Result of `list_process`.
#[derive(Debug, Serialize, JsonSchema)]
struct Processes {
    /// The newest tree first, in each a parent before its children; each as poll_assistant tells it, and more.
    items: Vec<Item>,
    total_items: u32,
    /// Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page: Option<u32>,
}

async fn list_process(call: Call, params: List) -> Result<Output, ToolError> {
    let page = params.page.unwrap_or(1).max(1);
    let limit = params.page_size.unwrap_or(PAGE_SIZE_DEFAULT).clamp(1, PAGE_SIZE_MAX);
    let offset = (page - 1).saturating_mul(limit);
    let wanted = Listed { status: params.status, root_only: params.root_only, since: params.since, offset, limit };
    let (host, caller) = (call.host.clone(), call.caller);
    let look = call.host.store().read(move |db| {
        let whose = match (params.process_id, caller) {
            (Some(process), _) => Whose::Tree(mine(db, caller, process)?.id),
            (None, Caller::Session(session)) => Whose::Principal(session),
            (None, Caller::Process(process)) => Whose::Below(process),
        };
        let (rows, total_items) = process_table::trees(db, whose, &wanted)?;
        let mut items = Vec::new();
        for (row, level) in rows {
            items.push(Item {
                seen: Seen::new(db, &row, host.models(), STRUCTURED_CHARS_MAX)?,
                level,
                task: cut(&process_table::task(db, &row)?, TASK_CHARS_MAX),
            });
        }
        let next_page = (u64::from(offset) + (items.len() as u64) < u64::from(total_items)).then(|| page + 1);
        Ok::<_, ToolError>(Processes { next_page: next_page.filter(|_| !items.is_empty()), items, total_items })
    });
    Output::new(&look.await?)
}
