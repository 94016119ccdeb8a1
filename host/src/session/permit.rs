//! Whether a call may be made: the rules of the definition, and whoever is to be asked first. Each refusal is recorded.

use serde_json::{Map, Value, json};

use crate::events::Kind;
use crate::tools::ToolError;
use crate::tools::policy::Verdict;

use super::kit::Item;
use super::link::Link;

/// Returns where the call may be made.
///
/// # Errors
/// `not_permitted`, with the rule.
pub(super) async fn permit(
    link: &Link,
    item: &Item,
    call_id: &str,
    arguments: &Map<String, Value>,
) -> Result<(), ToolError> {
    let rule = match link.kit().policy.judge(item.name(), arguments) {
        Verdict::Allow => return Ok(()),
        Verdict::Ask { rule } | Verdict::Deny { rule } => rule,
    };
    refuse(link, call_id, &item.spec.name, &rule).await;
    let message = format!("the call of {} is not permitted: {rule}", item.spec.name);
    Err(ToolError::new("not_permitted", message, "Go on without it, and say so."))
}

/// Records that a call was refused.
pub(super) async fn refuse(link: &Link, call_id: &str, tool: &str, rule: &str) {
    link.record(Kind::Refused, json!({ "call_id": call_id, "tool": tool, "rule": rule })).await;
}
