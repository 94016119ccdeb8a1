//! What a process begins with: its row, its limits, and the assistant that it is to be.

use assistant_protocol::ids::ProcessId;
use assistant_protocol::types::{AssistantBrief, Message, RunParams, ToolSpec};

use super::link;
use crate::conversation;
use crate::host::Host;
use crate::limits::Limits;
use crate::process_table::{self, Process, Status};
use crate::registry::Definition;
use crate::store::StoreError;

/// What a process starts with.
pub(super) struct Loaded {
    pub(super) row: Process,
    pub(super) limits: Limits,
    pub(super) definition: Definition,
    /// The conversation that it goes on with.
    pub(super) history: Option<Vec<Message>>,
}

/// What a process starts with; none where it has ended meanwhile.
pub(super) async fn load(host: &Host, process: ProcessId) -> Result<Option<Loaded>, StoreError> {
    let damaged = |error: serde_json::Error| StoreError::Damaged(error.to_string());
    host.store()
        .read(move |db| {
            let row = process_table::get(db, process)?;
            if row.status != Status::Starting {
                return Ok(None);
            }
            let definition: Definition =
                serde_json::from_str(&process_table::snapshot(db, &row.snapshot)?).map_err(damaged)?;
            let mut limits = process_table::limits(db, process)?;
            // The definition's own limits are for itself; what it spawns has those that it was granted.
            limits.turns = definition.max_turns.map_or(limits.turns, |turns| turns.min(limits.turns));
            limits.wall_ms = definition.timeout_ms.map_or(limits.wall_ms, |wall| wall.min(limits.wall_ms));
            let history = row.resumed_from.map(|old| conversation::history(db, old)).transpose()?;
            Ok(Some(Loaded { row, limits, definition, history }))
        })
        .await
}

/// The first `run`: the prompt with what the assistant has to know of its run, the task, and its tools.
pub(super) fn first_run(host: &Host, loaded: Loaded) -> RunParams {
    let Loaded { row, definition, history, .. } = loaded;
    let mut system_prompt = definition.system_prompt.clone();
    system_prompt.push_str(&link::told_of_lacks(&row));
    system_prompt.push_str(&link::told_of_itself(&row));
    let granted = |name: &String| host.tools().iter().find(|tool| tool.name == **name);
    let tools = row.tools.iter().filter_map(granted).map(|tool| ToolSpec {
        name: tool.name.to_string(),
        description: tool.description.clone(),
        input_schema: tool.input_schema.clone(),
    });
    RunParams {
        assistant: AssistantBrief { id: row.assistant_id.clone(), name: definition.name.clone(), system_prompt },
        query: (!row.query.is_empty()).then(|| row.query.clone()),
        context: row.context.clone(),
        inputs: None,
        tools: tools.collect(),
        output_schema: None,
        history,
    }
}
