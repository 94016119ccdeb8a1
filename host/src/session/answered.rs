//! What a model answered: recorded before the runner has it.

use std::sync::PoisonError;

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::types::{Content, Message, Part, Role};
use serde_json::json;

use super::account::Account;
use super::given::store_with;
use super::link::Link;
use super::recorded::Asked;
use super::watch::cut_bytes;
use crate::blobs::Given;
use crate::model::{Answer, ModelError, ModelErrorKind};
use crate::process_table;
use crate::store::{StoreError, Tx};
use crate::{conversation, events};

/// Records what a model answered: what is put away of it stands in the answer as it is kept.
///
/// # Errors
/// The store's.
pub(super) async fn record_answer(
    link: &Link,
    answer: &mut Answer,
    account: Account,
    inserted: &[Message],
    asked: &Asked,
) -> Result<(), StoreError> {
    let (process, result_bytes, call) = (link.row.id, link.limits.result_bytes, asked.call());
    let given: Vec<String> = inserted.iter().map(conversation::hash).collect();
    let record = move |tx: &mut Tx<'_>, answer: &Answer| {
        conversation::append(tx, process, [(&answer.message, None)])?;
        process_table::add_usage(tx, process, &answer.usage)?;
        account.settle(tx, answer)?;
        let text = answer.message.content.as_text();
        if !text.trim().is_empty() {
            process_table::keep(tx, process, &cut_bytes(text.to_string(), result_bytes))?;
        }
        let told = json!({
            "call": call, "message": conversation::hash(&answer.message), "given": given,
            "model": answer.model, "finish_reason": answer.finish, "usage": answer.usage,
            "cost_usd": account.cost(&answer.usage), "text": crate::text::cut(&text, 200),
            "tools": tools_called(&answer.message),
        });
        events::record(tx, process, events::Kind::ModelAnswer, &told)?;
        tx.wake(process);
        Ok(())
    };
    match Given::of_content(&answer.message.content, &link.limits) {
        None => {
            let answer = answer.clone();
            // Nobody has to wait for it: what the runner does next is recorded behind it, and if the host dies before, so
            // does the runner.
            link.host.store().write_later(move |tx| record(tx, &answer)).await?;
        }
        Some(given) => {
            let said = |parts: &[Part]| Message { role: Role::Assistant, content: Content::Parts(parts.to_vec()) };
            let bare = Answer { message: said(&[]), ..answer.clone() };
            let record =
                move |tx: &mut Tx<'_>, parts: &[Part]| record(tx, &Answer { message: said(parts), ..bare.clone() });
            answer.message = said(&store_with(&link.host, process, &link.limits, given, record).await?);
        }
    }
    link.partial.lock().unwrap_or_else(PoisonError::into_inner).clear();
    link.model_said(&answer.message);
    Ok(())
}

/// The names of the tools that an answer calls.
pub(super) fn tools_called(message: &Message) -> Vec<String> {
    let name = |part: &Part| match part {
        Part::ToolCall { tool_name, .. } => Some(tool_name.clone()),
        _ => None,
    };
    message.content.parts().iter().filter_map(name).collect()
}

/// What a runner is told of a model that failed.
pub(super) fn model_failed(error: &ModelError) -> RpcError {
    let kind = match error.kind {
        ModelErrorKind::ContextExceeded => Kind::ContextExceeded,
        _ => Kind::ModelFailed,
    };
    RpcError::new(kind, error.to_string())
        .with("provider", error.provider.clone())
        .with("status", error.status)
        .with("retryable", error.kind.retryable())
}
