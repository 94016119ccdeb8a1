//! Tools of the embedding app, as rows of the table.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use assistant_protocol::types::Part;
use futures::FutureExt;
use serde_json::json;

use super::{Audience, Call, Output, Tool, ToolError, as_text, consent};
use crate::app::{AppCall, AppOutput, AppTool, Decision, TOOL_NAME_CHARS_MAX};
use crate::caller::Caller;
use crate::host::OpenError;
use crate::limits::Limits;
use crate::process_table::{self, Process};
use crate::store::StoreError;

/// The table with the tools of an app.
///
/// # Errors
/// [`OpenError::Tool`] where a name is none, or is there already, or a schema is none of an object.
pub(crate) fn with_those_of(app: &[AppTool], limits: &Limits) -> Result<Vec<Tool>, OpenError> {
    let mut table = super::table(limits);
    for tool in app {
        let refused = |why: &str| OpenError::Tool { name: tool.name.clone(), why: why.to_owned() };
        if !is_name(&tool.name) {
            return Err(refused("a name is `prefix__tool`, in lower case, of at most 64 characters"));
        }
        if table.iter().any(|known| known.name == tool.name) {
            return Err(refused("there is one of that name"));
        }
        if tool.input_schema["type"] != "object" {
            return Err(refused("the schema of its arguments is none of an object"));
        }
        table.push(row(tool.clone(), *limits));
    }
    table.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(table)
}

fn is_name(name: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase())
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    name.len() <= TOOL_NAME_CHARS_MAX && name.split_once("__").is_some_and(|(prefix, tool)| part(prefix) && part(tool))
}

fn row(tool: AppTool, limits: Limits) -> Tool {
    Tool {
        name: Cow::Owned(tool.name.clone()),
        title: Cow::Owned(tool.title.clone()),
        description: tool.description.clone(),
        audience: if tool.for_clients { Audience::Everyone } else { Audience::Runners },
        hints: tool.hints,
        input_schema: tool.input_schema.clone(),
        asks_first: tool.needs_approval,
        output_schema: json!({ "type": "object", "properties": {} }),
        run: Arc::new(move |call| run(tool.clone(), limits, call).boxed()),
    }
}

async fn run(tool: AppTool, limits: Limits, call: Call) -> Result<Output, ToolError> {
    let (principal, process) = who(&call).await?;
    if tool.needs_approval {
        approved(&tool, &call, process.as_ref(), Duration::from_millis(limits.wall_ms)).await?;
    }
    let within = Duration::from_millis(limits.tool_call_ms);
    let asked = AppCall {
        caller: call.caller,
        principal,
        assistant_id: process.as_ref().map(|process| process.assistant_id.clone()),
        thread: process.map(|process| process.thread),
        arguments: call.arguments,
    };
    let answered = tokio::time::timeout(within, (tool.run)(asked)).await;
    let AppOutput { value, content } = answered.map_err(|_| ToolError::too_slow(within))??;
    if !value.is_object() {
        return Err(ToolError::internal(&format!("{} gave no object", tool.name)));
    }
    let text = as_text(&value);
    // What a process is given is kept by handle past its bounds; a client is given it at once, or not at all.
    if call.caller.process().is_none() {
        let bytes = text.len() + content.iter().flatten().map(size).sum::<usize>();
        if bytes as u64 > limits.result_bytes {
            let message = format!("{} gave {bytes} bytes, the most is {}", tool.name, limits.result_bytes);
            return Err(ToolError::limit("result_bytes", message, "Ask it for less at once."));
        }
    }
    let content = content.unwrap_or_else(|| vec![Part::text(text)]);
    Ok(Output { content: Some(content), ..Output::of(value) })
}

/// The bytes of a part.
fn size(part: &Part) -> usize {
    match part {
        Part::Text { text } => text.len(),
        Part::Image { data, .. } => data.as_ref().map_or(0, String::len),
        other => serde_json::to_string(other).map_or(0, |json| json.len()),
    }
}

/// The principal who calls, and the process that does.
async fn who(call: &Call) -> Result<(String, Option<Process>), ToolError> {
    let caller = call.caller;
    let look = call.host.store().read(move |db| {
        let process = caller.process().map(|id| process_table::get(db, id)).transpose()?;
        let session = match (&process, caller) {
            (Some(process), _) => Some(process.session),
            (None, Caller::Session(session)) => Some(session),
            (None, Caller::Process(_)) => None,
        };
        let row = session.map(|session| process_table::session(db, session)).transpose()?.flatten();
        Ok::<_, StoreError>((row.map(|row| row.principal).unwrap_or_default(), process))
    });
    Ok(look.await?)
}

/// Asks the app whether a call may be made; waits for `within` at most.
async fn approved(tool: &AppTool, call: &Call, process: Option<&Process>, within: Duration) -> Result<(), ToolError> {
    let denied = |why: &str| {
        let message = format!("the call of {} is not approved: {why}", tool.name);
        ToolError::new("not_permitted", message, "Go on without it, and say so.")
    };
    match consent::by_app(call, process, &tool.name, within).await? {
        Decision::Allow => Ok(()),
        Decision::Deny { reason } => Err(denied(&reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn names_have_a_prefix() {
        let check = |name: &str, want: bool| assert_eq!(is_name(name), want, "{name}");
        check("app__paint", true);
        check("builtin_workspace__execute_shell", true);
        check("paint", false);
        check("__paint", false);
        check("app__", false);
        check("App__paint", false);
        check("app__pa-int", false);
        check(&format!("app__{}", "x".repeat(60)), false);
    }
}
