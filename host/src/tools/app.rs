//! Tools of the embedding app, as rows of the table.

use std::borrow::Cow;
use std::time::Duration;

use futures::FutureExt;
use serde_json::{Value, json};

use super::{Audience, Call, Output, Tool, ToolError, wait};
use crate::app::{AppCall, AppTool, Approval, Decision, TOOL_NAME_CHARS_MAX};
use crate::caller::Caller;
use crate::events::{self, Kind};
use crate::host::OpenError;
use crate::limits::Limits;

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
        output_schema: json!({ "type": "object", "properties": {} }),
        run: Box::new(move |call| run(tool.clone(), limits, call).boxed()),
    }
}

async fn run(tool: AppTool, limits: Limits, call: Call) -> Result<Output, ToolError> {
    if tool.needs_approval {
        approved(&tool, &call).await?;
    }
    let within = Duration::from_millis(limits.tool_call_ms);
    let asked = AppCall { caller: call.caller, arguments: call.arguments };
    let answered = tokio::time::timeout(within, (tool.run)(asked)).await;
    let value = answered.map_err(|_| ToolError::too_slow(within))??;
    if !value.is_object() {
        return Err(ToolError::internal(&format!("{} gave no object", tool.name)));
    }
    let bytes = value.to_string().len() as u64;
    if bytes > limits.result_bytes {
        let message = format!("{} gave {bytes} bytes, the most is {}", tool.name, limits.result_bytes);
        return Err(ToolError::limit("result_bytes", message, "Ask it for less at once."));
    }
    Ok(Output { value, recorded: false })
}

/// Asks the app whether a call may be made.
async fn approved(tool: &AppTool, call: &Call) -> Result<(), ToolError> {
    let denied = |why: &str| {
        let message = format!("the call of {} is not approved: {why}", tool.name);
        ToolError::new("not_permitted", message, "Go on without it, and say so.")
    };
    let Some(approval) = call.host.approval().cloned() else {
        return Err(denied("it needs approval, and this host has nobody who approves"));
    };
    let process = call.caller.process();
    let ask = Approval { process, tool: tool.name.clone(), arguments: call.arguments.clone() };
    let decision = wait::while_waiting(call, approval.approve(ask)).await?;
    if let Caller::Process(process) = call.caller {
        let told = match &decision {
            Decision::Allow => json!({ "text": format!("{} was approved", tool.name) }),
            Decision::Deny { reason } => json!({ "text": format!("{} was denied: {reason}", tool.name) }),
        };
        record(call, process, told).await?;
    }
    match decision {
        Decision::Allow => Ok(()),
        Decision::Deny { reason } => Err(denied(&reason)),
    }
}

async fn record(call: &Call, process: assistant_protocol::ids::ProcessId, told: Value) -> Result<(), ToolError> {
    let recorded = call.host.store().write(move |tx| {
        tx.wake(process);
        events::record(tx, process, Kind::Progress, &told)
    });
    Ok(recorded.await?)
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
