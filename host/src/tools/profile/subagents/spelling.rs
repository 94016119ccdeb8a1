//! Arguments by the words of either document: snake_case and camelCase, and what other systems call the same.

use serde_json::{Map, Value};

use crate::tools::ToolError;

/// What else an argument is called, where a tool has it.
const ALIASES: &[(&str, &[&str])] = &[
    ("agent_name", &["agent", "agent_id", "agent_type", "assistant", "assistant_id", "subagent", "subagent_type"]),
    ("prompt", &["input", "instruction", "query", "request", "task"]),
    ("cwd", &["working_dir", "working_directory"]),
    ("runId", &["agent_id", "handle", "process_id", "session_id", "subagent_id", "task_id"]),
    ("answer", &["message", "reply"]),
    ("messageId", &["question_id"]),
];

/// An argument under another name than the tool's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Given {
    /// What the tool calls it.
    pub(super) known: String,
    /// What the caller called it.
    pub(super) written: String,
}

/// The arguments under the names that `schema` has; by which they were given is added to `given`. What is no argument
/// stays, and is refused where it is read.
///
/// # Errors
/// One that is given twice, by different names.
pub(super) fn normal(
    arguments: Map<String, Value>,
    schema: &Value,
    given: &mut Vec<Given>,
) -> Result<Map<String, Value>, ToolError> {
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let known = |name: &str| {
        let same = properties.keys().find(|known| fold(known) == fold(name));
        let alias = || {
            let mut meant = ALIASES.iter().filter(|(_, aliases)| aliases.iter().any(|one| fold(one) == fold(name)));
            meant.find_map(|(meant, _)| properties.keys().find(|known| fold(known) == fold(meant)))
        };
        same.or_else(alias).cloned()
    };
    let mut normal = Map::new();
    for (name, value) in arguments {
        if value.is_null() {
            continue;
        }
        let Some(known) = known(&name) else {
            normal.insert(name, value);
            continue;
        };
        if let Some(other) = given.iter().find(|one| one.known == known) {
            let message = format!("`{}` and `{name}` are both given, and mean the same", other.written);
            return Err(ToolError::bad_argument(message, "Give one of them."));
        }
        given.push(Given { known: known.clone(), written: name });
        normal.insert(known, value);
    }
    Ok(normal)
}

/// `run_id`, `runId` and `RunID` alike.
fn fold(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_documents_are_understood() {
        let check = |names: &[&str], arguments: Value, want: Value| {
            let properties: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
            let arguments = arguments.as_object().cloned().expect("an object");
            let got = match normal(arguments, &json!({ "properties": properties }), &mut Vec::new()) {
                Ok(normal) => Value::Object(normal),
                Err(error) => error.message.into(),
            };
            assert_eq!(got, want);
        };
        let reply = ["runId", "messageId", "answer"];
        check(
            &reply,
            json!({ "runId": 1, "messageId": 2, "answer": 3 }),
            json!({ "runId": 1, "messageId": 2, "answer": 3 }),
        );
        check(&reply, json!({ "run_id": 1, "message_id": 2 }), json!({ "runId": 1, "messageId": 2 }));
        check(&reply, json!({ "subagent_id": 1, "message": 3 }), json!({ "runId": 1, "answer": 3 }));
        check(&reply, json!({ "subagentId": 1, "x": 3, "answer": null }), json!({ "runId": 1, "x": 3 }));
        check(
            &reply,
            json!({ "run_id": 1, "runId": 1 }),
            json!("`run_id` and `runId` are both given, and mean the same"),
        );
        check(
            &reply,
            json!({ "answer": 1, "message": 1 }),
            json!("`answer` and `message` are both given, and mean the same"),
        );
        check(&["prompt", "cwd"], json!({ "input": 1 }), json!({ "prompt": 1 }));
        check(&["agent_name"], json!({ "agentId": 1 }), json!({ "agent_name": 1 }));
        check(&["runId"], json!({ "agent_id": 1 }), json!({ "runId": 1 }));
        check(&["message_id"], json!({ "questionId": 1 }), json!({ "message_id": 1 }));
        check(&["run_id"], json!({ "subagent_id": 1 }), json!({ "run_id": 1 }));
    }
}
