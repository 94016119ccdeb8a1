//! `update_status`: what a run says of itself. It is recorded and shown; it never ends the run.

use assistant_protocol::ids::ProcessId;
use rusqlite::Connection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{meta, which};
use crate::caller::Caller;
use crate::events::{self, Kind};
use crate::process_table;
use crate::store::StoreError;
use crate::tools::processes::mine;
use crate::tools::{self, Audience, Call, Hints, Output, Tool, ToolError};

/// The longest summary, bytes.
const SUMMARY_BYTES_MAX: usize = 64 * 1024;
/// Characters of a summary in the log.
const LOGGED_CHARS_MAX: usize = 500;

pub(super) fn rows() -> Vec<Tool> {
    let write = Hints { read_only: false, destructive: false, idempotent: true, open_world: false };
    vec![tools::row::<_, Updated, _, _>("update_status", "Report on a run", Audience::Everyone, write, update_status)]
}

/// What a run can say of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(super) enum Said {
    /// It is done, and well.
    Success,
    /// It is done.
    Completed,
    /// It failed.
    Error,
    /// It is at work.
    Running,
}

/// What a run has said of itself last.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Reported {
    pub(super) status: Said,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<String>,
    /// Unix milliseconds.
    pub(super) at: i64,
}

/// What a run has said of itself last, if anything.
pub(super) fn of(db: &Connection, run: ProcessId) -> Result<Option<Reported>, StoreError> {
    let read = |json: String| serde_json::from_str(&json).map_err(StoreError::damaged);
    process_table::reported(db, run)?.map(read).transpose()
}

/// Arguments of `update_status`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Update {
    /// The run.
    #[serde(rename = "runId")]
    run_id: Option<String>,
    /// How it is.
    status: Said,
    /// What was done, or why it failed.
    summary: Option<String>,
}

/// Result of `update_status`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Updated {
    success: bool,
    message: String,
    /// As check_status tells it.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    updated_metadata: meta::Meta,
}

async fn update_status(call: Call, params: Update) -> Result<Output, ToolError> {
    let run = which(&call, params.run_id.as_deref())?;
    let bytes = params.summary.as_ref().map_or(0, String::len);
    if bytes > SUMMARY_BYTES_MAX {
        let message = format!("`summary` has {bytes} bytes, the most is {SUMMARY_BYTES_MAX}");
        return Err(ToolError::bad_argument(message, "Write the essential part."));
    }
    let (caller, chars) = (call.caller, call.host.limits().answer_chars as usize);
    let update = move |tx: &mut crate::store::Tx<'_>| {
        if !process_table::may_act(tx.db, caller)? {
            return Err(ToolError::caller_ended());
        }
        let row =
            if caller == Caller::Process(run) { process_table::get(tx.db, run)? } else { mine(tx.db, caller, run)? };
        if row.status.is_end() {
            let message = format!("the run {run} has ended ({}), and what it said of itself stands", row.status);
            return Err(ToolError::new("process_ended", message, "check_status tells how it ended."));
        }
        let reported = Reported { status: params.status, summary: params.summary, at: tx.now };
        let told = serde_json::to_string(&reported).map_err(|error| ToolError::internal(&error))?;
        process_table::report(tx, run, &told)?;
        let word = serde_json::to_value(reported.status).map_err(|error| ToolError::internal(&error))?;
        let words = reported.summary.map(|text| format!(": {}", crate::text::cut(&text, LOGGED_CHARS_MAX)));
        let text = format!("reports {}{}", word.as_str().unwrap_or_default(), words.unwrap_or_default());
        events::record(tx, run, Kind::Progress, &json!({ "text": text, "reported": word }))?;
        Output::new(&Updated {
            success: true,
            message: "Recorded. It goes on until it ends.".to_owned(),
            updated_metadata: meta::of(tx.db, run, tx.now, chars)?,
        })
    };
    call.host.store().write(update).await
}
