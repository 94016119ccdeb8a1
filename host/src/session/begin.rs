//! What a process begins with: its row, its limits, and the assistant that it is to be.

use assistant_protocol::ids::ProcessId;
use assistant_protocol::types::{AssistantBrief, RunParams, ToolSpec};

use super::link;
use crate::host::Host;
use crate::limits::Limits;
use crate::process_table::{self, Process, Status};
use crate::registry::Definition;
use crate::store::StoreError;

/// What a process starts with; none where it has ended meanwhile.
pub(super) async fn load(host: &Host, process: ProcessId) -> Result<Option<(Process, Limits, Definition)>, StoreError> {
    let damaged = |error: serde_json::Error| StoreError::Damaged(error.to_string());
    host.store()
        .read(move |db| {
            let row = process_table::get(db, process)?;
            if row.status != Status::Starting {
                return Ok(None);
            }
            let definition = serde_json::from_str(&process_table::snapshot(db, &row.snapshot)?).map_err(damaged)?;
            let limits = process_table::limits(db, process)?;
            Ok(Some((row, limits, definition)))
        })
        .await
}

/// The first `run`: the prompt with what the assistant has to know of its run, the task, and its tools.
pub(super) fn first_run(host: &Host, row: &Process, definition: &Definition) -> RunParams {
    let mut system_prompt = definition.system_prompt.clone();
    system_prompt.push_str(&link::told_of_lacks(row));
    system_prompt.push_str(&link::told_of_itself(row));
    let granted = |name: &String| host.tools().iter().find(|tool| tool.name == name);
    let tools = row.tools.iter().filter_map(granted).map(|tool| ToolSpec {
        name: tool.name.to_owned(),
        description: tool.description.clone(),
        input_schema: tool.input_schema.clone(),
    });
    RunParams {
        assistant: AssistantBrief { id: row.assistant_id.clone(), name: definition.name.clone(), system_prompt },
        query: Some(row.query.clone()),
        context: row.context.clone(),
        inputs: None,
        tools: tools.collect(),
        output_schema: None,
        history: None,
    }
}
