//! Errors in the words of this profile: what the host's tools say of theirs is said of those here.

use super::spelling::Given;
use crate::tools::profile::errors::renamed;
use crate::tools::{CallError, ToolError};

/// Words of the host's tools, and what is meant here; longer ones first.
const WORDS: &[(&str, &str)] = &[
    ("`process_id`", "`runId`"),
    ("`assistant_id`", "`agent_name`"),
    ("`query`", "`prompt`"),
    ("`working_dir`", "`cwd`"),
    ("`message_id`", "`messageId`"),
    ("spawn_assistant with resume_process_id", "run_subagent"),
    ("the process_id that spawn_assistant gave", "the runId that run_subagent gave"),
    ("as message_id", "as messageId"),
    ("the message_id", "the messageId"),
    ("spawn_assistant", "run_subagent"),
    ("reply_assistant", "reply_subagent"),
    ("wait_assistant", "check_status"),
    ("poll_assistant", "check_status"),
    ("read_log", "get_logs"),
    ("send_message says more to a process that lives", "check_status tells where each question is"),
    ("it is PENDING", "it is PENDING (pending_parent_reply)"),
    ("it is ANSWERED", "it is ANSWERED (parent_replied)"),
    ("it is RETRIEVED", "it is RETRIEVED (acknowledged_by_subagent)"),
    ("no process of yours has the id", "no run of yours has the id"),
    ("process has asked", "subagent has asked"),
];

/// What finds an assistant elsewhere and is not here.
const SEARCH: &str = "search_assistant";

/// The error in the words of this profile; an argument by the name by which it was `given`, where that is another one than
/// the tool's.
pub(super) fn in_words(error: CallError, given: &[Given]) -> CallError {
    match error {
        // These quote what a subagent wrote.
        CallError::Tool(error) if error.code.starts_with("run_") => CallError::Tool(error),
        CallError::Tool(error) => {
            let said = said(error);
            CallError::Tool(given.iter().fold(said, |said, given| renamed(said, &given.known, &given.written)))
        }
        CallError::UnknownTool(name) => CallError::UnknownTool(name),
    }
}

/// The same error in the words of this profile.
fn said(error: ToolError) -> ToolError {
    let mut said = ToolError { message: translated(&error.message), hint: translated(&error.hint), ..error };
    // The sentence about a search, which is none here.
    if let Some(at) = said.hint.find(SEARCH) {
        let before = said.hint[..at].trim_end();
        let there_are = "The description of run_subagent lists those that there are.";
        said.hint = if before.is_empty() { there_are.to_owned() } else { format!("{before} {there_are}") };
    }
    if said.code == "limit_depth" {
        said.hint =
            "Do this part yourself, or say that you leave it. A subagent runs only those whose `allowed_callers` \
                     name it."
                .to_owned();
    }
    said
}

fn translated(text: &str) -> String {
    WORDS.iter().fold(text.to_owned(), |text, (there, here)| text.replace(there, here))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_what_is_here() {
        let check = |message: &str, hint: &str, want: (&str, &str)| {
            let said = said(ToolError::new("x", message, hint));
            assert_eq!((said.message.as_str(), said.hint.as_str()), want);
        };
        check(
            "no assistant has the id `x`",
            "Near to it: `y`. search_assistant finds one by a description.",
            (
                "no assistant has the id `x`",
                "Near to it: `y`. The description of run_subagent lists those that there are.",
            ),
        );
        check(
            "no process of yours has the id 1",
            "Use the process_id that spawn_assistant gave.",
            ("no run of yours has the id 1", "Use the runId that run_subagent gave."),
        );
        check("`query` is empty", "", ("`prompt` is empty", ""));
        check(
            "the question 1 takes no answer: it is RETRIEVED",
            "send_message says more to a process that lives.",
            (
                "the question 1 takes no answer: it is RETRIEVED (acknowledged_by_subagent)",
                "check_status tells where each question is.",
            ),
        );
    }
}
