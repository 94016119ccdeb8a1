//! What a resumption goes on with.

use std::sync::Arc;

use assistant_protocol::types::Input;
use serde_json::Value;

use super::Spawn;
use crate::conversation;
use crate::process_table::{self, GO_ON, Status};
use crate::registry::Definition;
use crate::tools::processes::mine;
use crate::tools::{Call, ToolError};

/// The process that is resumed, as far as the new one needs it.
pub(super) struct Resumed {
    /// The definition that it started with.
    pub(super) definition: Arc<Definition>,
    /// What comes behind its conversation; empty: the model is asked again.
    pub(super) query: String,
    /// The old background, where nothing of it was said yet.
    pub(super) context: Option<String>,
    /// Files of the task, where nothing of it was said yet.
    pub(super) inputs: Option<Vec<Input>>,
    /// The schema that its result had to fit.
    pub(super) output_schema: Option<Value>,
    /// The caller's name for it.
    pub(super) label: Option<String>,
    /// The name of the runner that it had; none is the host's own.
    pub(super) runner: Option<String>,
}

/// The process that a spawn resumes, if it does.
pub(super) async fn look(call: &Call, params: &Spawn) -> Result<Option<Resumed>, ToolError> {
    let Some(old) = params.resume_process_id else { return Ok(None) };
    let another = || {
        let hint = "A resumption has the assistant that it had; leave assistant_id and search out.";
        ToolError::bad_argument("`resume_process_id` is given with another assistant", hint)
    };
    if params.search.is_some() {
        return Err(another());
    }
    let (caller, wanted) = (call.caller, params.query.trim().to_owned());
    let named = params.assistant_id.clone();
    let looking = call.host.store().read(move |db| {
        let row = mine(db, caller, old)?;
        // The one that it had changes nothing.
        if named.is_some_and(|named| named != row.assistant_id) {
            return Err(another());
        }
        let definition = process_table::definition(db, &row)?;
        if row.status == Status::Finished && wanted.is_empty() {
            let hint = "It has its result: say in `query` what it is to do next.";
            return Err(ToolError::bad_argument("`query` is empty", hint));
        }
        let history = conversation::history(db, old)?;
        let last_word = history.last().is_some_and(|last| last.role == assistant_protocol::types::Role::Assistant);
        let (query, context) = match row.turns == 0 {
            // It never began: its task is still to be said.
            true if wanted.is_empty() => (row.query, row.context),
            true => (format!("{}\n\n{wanted}", row.query), row.context),
            false if wanted.is_empty() && last_word => (GO_ON.to_owned(), None),
            false => (wanted, None),
        };
        let given = process_table::given(db, old)?;
        let inputs = given.inputs.filter(|_| row.turns == 0);
        let (definition, output_schema) = (Arc::new(definition), given.output_schema);
        Ok(Resumed { definition, query, context, inputs, output_schema, label: row.label, runner: row.runner })
    });
    looking.await.map(Some)
}
