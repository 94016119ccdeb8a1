//! Tools and their results in the words of MCP.

use std::sync::Arc;

use assistant_protocol::types::{Part, ToolCallResult, ToolSpec};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject, Tool};
use serde_json::{Value, json};

use super::PERMISSION_TOOL;
use super::turn::Turn;

/// By which Claude Code shows a tool to its model from the beginning; else it only finds it when it searches for tools.
const ALWAYS_LOAD: &str = "anthropic/alwaysLoad";

/// The tools of a run as MCP lists them.
pub(super) fn listed(turn: &Turn) -> Vec<Tool> {
    let permission = turn.asks_permission.then(permission);
    let shown = turn.tools.iter().filter(|tool| !turn.asks_permission || tool.name != PERMISSION_TOOL);
    shown.map(tool).chain(permission).collect()
}

fn tool(spec: &ToolSpec) -> Tool {
    // Clients take no schema but that of an object.
    let schema = spec.input_schema.as_object().filter(|schema| !schema.is_empty()).cloned();
    let schema = schema.unwrap_or_else(|| object(json!({ "type": "object" })));
    let meta = MetaObject(object(json!({ ALWAYS_LOAD: true })));
    Tool::new(spec.name.clone(), spec.description.clone(), Arc::new(schema)).with_meta(meta)
}

fn permission() -> Tool {
    let schema = object(json!({
        "type": "object",
        "properties": {
            "tool_name": { "type": "string" },
            "input": { "type": "object" },
            "tool_use_id": { "type": "string" },
        },
        "required": ["tool_name", "input"],
    }));
    Tool::new(PERMISSION_TOOL, "Asks whether a tool may be called. Not for the model.", Arc::new(schema))
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

/// A result as MCP has it: what a model is shown. Clients show its data in place of its text where both are there, so the
/// data is only told where there is nothing else.
pub(super) fn result(result: ToolCallResult) -> CallToolResult {
    let ToolCallResult { content, structured_content, is_error, end_run: _ } = result;
    let data = content.is_empty().then_some(structured_content).flatten();
    let mut shown: Vec<ContentBlock> = content.into_iter().map(part).collect();
    shown.extend(data.as_ref().map(|data| ContentBlock::text(data.to_string())));
    let mut told = if is_error { CallToolResult::error(shown) } else { CallToolResult::success(shown) };
    told.structured_content = data.filter(Value::is_object);
    told
}

fn part(part: Part) -> ContentBlock {
    match part {
        Part::Text { text } => ContentBlock::text(text),
        Part::Image { mime_type, data: Some(data), blob: _ } => ContentBlock::image(data, mime_type),
        Part::Image { mime_type, data: None, blob } => {
            let blob = blob.unwrap_or_default();
            ContentBlock::text(format!("[a picture ({mime_type}) that the host keeps as {blob}]"))
        }
        part @ (Part::Reasoning { .. }
        | Part::ToolCall { .. }
        | Part::ToolResult { .. }
        | Part::Opaque { .. }
        | Part::Unknown(_)) => ContentBlock::text(json!(part).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(said: Value, want: Value) {
        let said: ToolCallResult = serde_json::from_value(said).expect("a result");
        let mut got = serde_json::to_value(result(said)).expect("JSON");
        got.as_object_mut().expect("an object").remove("resultType");
        assert_eq!(got, want);
    }

    #[test]
    fn a_result_is_told_in_the_words_of_mcp() {
        check(
            json!({ "content": [{ "type": "text", "text": "a" }], "structured_content": { "a": 1 } }),
            json!({ "content": [{ "type": "text", "text": "a" }], "isError": false }),
        );
        check(
            json!({ "structured_content": { "a": 1 } }),
            json!({ "content": [{ "type": "text", "text": "{\"a\":1}" }], "structuredContent": { "a": 1 }, "isError": false }),
        );
        check(
            json!({ "structured_content": [1], "is_error": true }),
            json!({ "content": [{ "type": "text", "text": "[1]" }], "isError": true }),
        );
        check(json!({}), json!({ "content": [], "isError": false }));
        check(
            json!({ "content": [
                { "type": "image", "mime_type": "image/png", "data": "AA==" },
                { "type": "image", "mime_type": "image/png", "blob": "b1" },
                { "type": "odd", "x": 1 },
            ] }),
            json!({ "content": [
                { "type": "image", "data": "AA==", "mimeType": "image/png" },
                { "type": "text", "text": "[a picture (image/png) that the host keeps as b1]" },
                { "type": "text", "text": "{\"type\":\"odd\",\"x\":1}" },
            ], "isError": false }),
        );
    }
}
