//! What a resumption goes on with.

use std::path::Path;
use std::sync::Arc;

use assistant_protocol::ids::ProcessId;
use assistant_protocol::types::{Input, Role};
use rusqlite::Connection;
use serde_json::Value;

use super::Spawn;
use crate::conversation;
use crate::process_table::{self, GO_ON, Status, worktree};
use crate::registry::Definition;
use crate::store::StoreError;
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
    /// The name of the launcher that it had; none is the machine as it is.
    pub(super) launcher: Option<String>,
    /// Where it worked: its folder, and that which its folder in a git worktree was made from.
    pub(super) folders: Vec<String>,
    /// What is told of the git worktree that it had, where that is gone and it gets another one.
    pub(super) worktree_gone: Option<String>,
}

impl Resumed {
    /// What comes behind its conversation: an agent is not asked again without a word.
    pub(super) fn query_for(&self, agent: bool) -> String {
        if agent && self.query.is_empty() { GO_ON.to_owned() } else { self.query.clone() }
    }
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
        let last_word = conversation::last_role(db, old)? == Some(Role::Assistant);
        // What an agent has told of its model calls may be nothing.
        let never_began = match row.agent {
            true => !conversation::has_said(db, old)?,
            false => row.turns == 0,
        };
        let (query, context) = match never_began {
            // It never began: its task is still to be said.
            true if wanted.is_empty() => (row.query, row.context),
            true => (format!("{}\n\n{wanted}", row.query), row.context),
            false if wanted.is_empty() && last_word => (GO_ON.to_owned(), None),
            false => (wanted, None),
        };
        let given = process_table::given(db, old)?;
        let inputs = given.inputs.filter(|_| never_began);
        let (definition, output_schema) = (Arc::new(definition), given.output_schema);
        let folders = folders(db, row.working_dir.as_deref(), row.worktree)?;
        let gone = worktree::gone(db, old)?.filter(|_| definition.worktree);
        let worktree_gone = gone.map(|gone| {
            format!(
                "the git worktree {} is gone: it goes on in a new one, on the branch {} where that is there still, and without \
                 what was not committed",
                gone.path, gone.branch
            )
        });
        let (label, runner, launcher) = (row.label, row.runner, row.launcher);
        Ok(Resumed {
            definition,
            query,
            context,
            inputs,
            output_schema,
            label,
            runner,
            launcher,
            folders,
            worktree_gone,
        })
    });
    looking.await.map(Some)
}

fn folders(db: &Connection, dir: Option<&str>, worktree: Option<ProcessId>) -> Result<Vec<String>, StoreError> {
    let Some(dir) = dir else { return Ok(Vec::new()) };
    let of = worktree.map(|id| worktree::get(db, id)).transpose()?.flatten();
    let beside = of.and_then(|of| {
        let below = Path::new(dir).strip_prefix(&of.path).ok()?;
        Some(Path::new(&of.source).join(below).display().to_string())
    });
    Ok(std::iter::once(dir.to_owned()).chain(beside).collect())
}
