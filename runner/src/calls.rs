//! The tool calls of one answer of the model: made beside each other, answered in the order in which answers come.

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::ids::ThreadId;
use assistant_protocol::methods::OnToolCall;
use assistant_protocol::peer::{CallError, Peer};
use assistant_protocol::types::{ToolCallParams, ToolCallResult};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::Value;

use crate::conversation::{Conversation, Wanted, error_result};

/// Calls of one answer that are under way at once; a model that wants more waits for some of them.
const AT_ONCE: usize = 64;

/// Makes the calls, and adds each result to the conversation as it comes.
///
/// Gives the result that ends the run, once all calls are answered: the last, where there are several. Dropping the
/// future cancels the calls under way.
///
/// # Errors
/// The first that the model can do nothing about; the other calls are cancelled then.
pub(crate) async fn make(
    peer: &Peer,
    conversation: &mut Conversation,
    wanted: Vec<Wanted>,
) -> Result<Option<Value>, RpcError> {
    let thread_id = conversation.thread_id();
    let mut waiting = wanted.into_iter();
    let mut under_way: FuturesUnordered<_> =
        waiting.by_ref().take(AT_ONCE).map(|call| make_one(peer, thread_id, call)).collect();
    let mut last_answer = None;
    while let Some(answered) = under_way.next().await {
        let (call_id, arguments, result) = answered?;
        if result.end_run == Some(true) {
            // The arguments of `final_answer` are the answer, unless the host says it better.
            last_answer = Some(result.structured_content.clone().unwrap_or(arguments));
        }
        conversation.called(call_id, &result);
        under_way.extend(waiting.next().map(|call| make_one(peer, thread_id, call)));
    }
    Ok(last_answer)
}

async fn make_one(
    peer: &Peer,
    thread_id: ThreadId,
    wanted: Wanted,
) -> Result<(String, Value, ToolCallResult), RpcError> {
    let Wanted { call_id, tool_name, arguments } = wanted;
    let arguments = match arguments.or_else(|text| serde_json::from_str(&text)) {
        Ok(arguments) => arguments,
        Err(complaint) => {
            let text = format!("The arguments of `{tool_name}` are no valid JSON: {complaint}. Call it again.");
            return Ok((call_id, Value::Null, error_result(text)));
        }
    };
    let params = ToolCallParams { thread_id, call_id, tool_name, arguments };
    let result = match peer.call::<OnToolCall>(&params).await {
        Ok(result) => result,
        Err(error) if is_mendable(&error) => error_result(format!("`{}` failed: {error}", params.tool_name)),
        Err(error) => return Err(error.into()),
    };
    Ok((params.call_id, params.arguments, result))
}

/// Whether the agent can do something about an error of a call.
pub(crate) fn is_mendable(error: &CallError) -> bool {
    error.kind().is_some_and(|kind| Kind::MENDABLE.contains(&kind))
}
