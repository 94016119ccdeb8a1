//! Call ids: what a call is known by must be there and must be new, because (process, call id) makes a call idempotent.

use std::collections::HashSet;

use assistant_protocol::types::{Content, Part};

use crate::model::Ask;

/// Gives an id to each call that has none, or one that was already used: in this answer or in the conversation. There
/// are servers that send no ids, and servers that count from nought in each answer.
pub(super) fn mint(parts: &mut [Part], ask: &Ask) {
    let said = ask.messages.iter().flat_map(|message| match &message.content {
        Content::Parts(parts) => parts.as_slice(),
        Content::Text(_) => &[],
    });
    let mut used: HashSet<String> = said.filter_map(id_of).cloned().collect();
    for part in parts {
        if let Part::ToolCall { call_id, .. } = part {
            if call_id.is_empty() || used.contains(call_id.as_str()) {
                *call_id = format!("call_{}", uuid::Uuid::now_v7().simple());
            }
            used.insert(call_id.clone());
        }
    }
}

fn id_of(part: &Part) -> Option<&String> {
    match part {
        Part::ToolCall { call_id, .. } => Some(call_id),
        _ => None,
    }
}
