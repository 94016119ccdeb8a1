//! `reply_subagent` and `get_pending_questions`, for the parent.

use assistant_protocol::ids::{MessageId, ProcessId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{meta, own, run_id};
use crate::message_box::questions::QuestionState;
use crate::text::iso_8601;
use crate::tools::{self, Along, Audience, Call, Hints, Output, Tool, ToolError};

pub(super) fn rows() -> Vec<Tool> {
    let look = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    let write = Hints { read_only: false, destructive: false, idempotent: false, open_world: false };
    vec![
        tools::row::<_, Pending, _, _>(
            "get_pending_questions",
            "List open questions",
            Audience::Everyone,
            look,
            get_pending_questions,
        ),
        tools::row::<_, Replied, _, _>(
            "reply_subagent",
            "Answer a subagent",
            Audience::Everyone,
            write,
            reply_subagent,
        ),
    ]
}

/// Arguments of `reply_subagent`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Reply {
    /// The run that asks.
    #[serde(rename = "runId")]
    run_id: String,
    /// Which question, where it has asked several.
    #[serde(rename = "messageId")]
    message_id: Option<MessageId>,
    /// The answer.
    answer: String,
}

/// Result of `reply_subagent`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Replied {
    success: bool,
    message: String,
    /// As check_status tells it.
    #[schemars(with = "serde_json::Map<String, Value>")]
    updated_metadata: meta::Meta,
}

async fn reply_subagent(call: Call, params: Reply) -> Result<Output, ToolError> {
    let run = run_id(&params.run_id)?;
    let asked = json!({ "process_id": run, "message_id": params.message_id, "answer": params.answer });
    own(&call, "reply_assistant", asked, Along::default()).await?;
    let (now, chars) = (call.host.now(), call.host.limits().answer_chars as usize);
    let updated_metadata = call.host.store().read(move |db| meta::of(db, run, now, chars)).await?;
    Output::new(&Replied { success: true, message: "Reply successfully recorded.".to_owned(), updated_metadata })
}

/// Arguments of `get_pending_questions`.
#[derive(Debug, Deserialize, JsonSchema)]
struct GetPending {
    /// Only those of this run. Default: all that wait for you.
    run_id: Option<String>,
}

/// A question that waits.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Waiting {
    message_id: MessageId,
    question: String,
    timestamp: String,
    status: QuestionState,
    run_id: ProcessId,
    agent_name: String,
}

/// Result of `get_pending_questions`.
#[derive(Debug, Serialize, JsonSchema)]
struct Pending {
    /// Oldest first, at most 100.
    questions: Vec<Waiting>,
}

/// A question as the host's own tool tells it.
#[derive(Debug, Deserialize)]
struct Told {
    message_id: MessageId,
    process_id: ProcessId,
    assistant_id: String,
    question: String,
    asked_at: i64,
}

async fn get_pending_questions(call: Call, params: GetPending) -> Result<Output, ToolError> {
    let run = params.run_id.as_deref().map(run_id).transpose()?;
    if let Some(run) = run {
        let caller = call.caller;
        call.host.store().read(move |db| tools::processes::mine(db, caller, run).map(|_| ())).await?;
    }
    let mut found = own(&call, "get_pending_questions", json!({ "process_id": run }), Along::default()).await?;
    let told: Vec<Told> =
        serde_json::from_value(found.value["questions"].take()).map_err(|error| ToolError::internal(&error))?;
    let one = |told: Told| Waiting {
        message_id: told.message_id,
        question: told.question,
        timestamp: iso_8601(told.asked_at),
        status: QuestionState::Pending,
        run_id: told.process_id,
        agent_name: told.assistant_id,
    };
    Output::new(&Pending { questions: told.into_iter().map(one).collect() })
}
