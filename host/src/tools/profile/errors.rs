//! Errors of the host's tools as the clients of a profile are told them: arguments by the names that the client knows,
//! and no tool that it does not have.

use crate::tools::{CallError, ToolError};

/// An error about an argument that the host's tool calls `there` and the client `here`.
pub(super) fn renamed(mut error: ToolError, there: &str, here: &str) -> ToolError {
    let (there, here) = (format!("`{there}`"), format!("`{here}`"));
    // Elsewhere in a message it may be what the client wrote.
    if let Some(rest) = error.message.strip_prefix(&there) {
        error.message = format!("{here}{rest}");
    }
    error.hint = error.hint.replace(&there, &here);
    error
}

/// An error whose hint names none of the tools that the client lacks.
pub(super) fn usable(error: CallError, lacks: &[&str]) -> CallError {
    match error {
        CallError::Tool(error) => CallError::Tool(ToolError { hint: without(&error.hint, lacks), ..error }),
        CallError::UnknownTool(name) => CallError::UnknownTool(name),
    }
}

/// `text` without its sentences, and the parts of them between semicolons, that name one of `tools`.
pub(crate) fn without(text: &str, tools: &[&str]) -> String {
    let kept = text.split_inclusive(". ").filter_map(|sentence| {
        let sentence = sentence.trim();
        let (body, end) = sentence.strip_suffix('.').map_or((sentence, ""), |body| (body, "."));
        let parts: Vec<&str> = body.split("; ").filter(|part| !names_one(part, tools)).collect();
        let said = parts.join("; ");
        let mut first = said.chars();
        let capital: String = first.next()?.to_uppercase().collect();
        // Where the beginning went, the next part is the beginning.
        Some(if body.starts_with(&said) { format!("{said}{end}") } else { format!("{capital}{}{end}", first.as_str()) })
    });
    kept.collect::<Vec<_>>().join(" ")
}

fn names_one(text: &str, tools: &[&str]) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| tools.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_a_tool_that_is_not_there_goes() {
        let tools = ["read_log", "send_message"];
        let check = |text: &str, want: &str| assert_eq!(without(text, &tools), want, "{text}");
        check("", "");
        check("Correct it.", "Correct it.");
        check("Call again. Look first with read_log.", "Call again.");
        check("send_message says more to it.", "");
        check("Wait for its end; send_message writes to it.", "Wait for its end.");
        check("send_message writes to it; wait for its end. Or not", "Wait for its end. Or not");
        check("`read_log` tells more. my_read_log is another.", "my_read_log is another.");
        check("Give a.txt or b.", "Give a.txt or b.");
    }

    #[test]
    fn an_argument_is_named_as_the_client_knows_it() {
        let check = |message: &str, hint: &str, want: (&str, &str)| {
            let said = renamed(ToolError::bad_argument(message, hint), "query", "prompt");
            assert_eq!((said.message.as_str(), said.hint.as_str()), want);
        };
        check("`query` is empty", "Write `query`.", ("`prompt` is empty", "Write `prompt`."));
        check(
            "`inputs` cannot be given: `query` does not exist",
            "",
            ("`inputs` cannot be given: `query` does not exist", ""),
        );
    }
}
