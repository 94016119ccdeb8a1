//! Names of tools: which assistant is in one, and which tool is meant by one of an earlier time.

use std::sync::Arc;

use crate::host::Host;
use crate::registry::{AssistantId, Definition, sha256_hex};
use crate::tools::{ToolError, assistants};

/// The row behind all `run_subagent_NAME`.
pub(super) const RUN_ONE: &str = "run_subagent_NAME";
const RUN: &str = "run_subagent_";
/// Characters of a tool's name. Clients put theirs before it, `mcp__assistants__`, and models take 64 in all.
const NAME_CHARS_MAX: usize = 46;
/// Characters of the hash in a name.
const HASH_CHARS: usize = 8;

/// What a name of a tool means.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked<'a> {
    /// The row.
    pub(super) tool: &'static str,
    /// The assistant that is in the name.
    pub(super) agent: Option<&'a str>,
}

impl<'a> Asked<'a> {
    /// What `name` means; none where it means nothing here.
    pub(super) fn of(name: &'a str) -> Option<Self> {
        let tool = match name {
            "ask_parent" => "ask_parent",
            "check_answer" => "check_answer",
            "check_message_status" => "check_message_status",
            "check_status" | "check_subagent_status" => "check_status",
            "get_logs" | "get_subagent_logs" => "get_logs",
            "get_pending_questions" => "get_pending_questions",
            "reply_subagent" => "reply_subagent",
            "run_subagent" => "run_subagent",
            "update_status" | "update_subagent_status" => "update_status",
            _ => return Self::with_agent(name),
        };
        Some(Self { tool, agent: None })
    }

    fn with_agent(name: &'a str) -> Option<Self> {
        let around = [
            (RUN, "", RUN_ONE),
            ("check_subagent_", "_status", "check_status"),
            ("get_subagent_", "_logs", "get_logs"),
            ("update_subagent_", "_status", "update_status"),
        ];
        let within = |(before, behind, tool): (&str, &str, &'static str)| {
            let agent = name.strip_prefix(before)?.strip_suffix(behind)?;
            (!agent.is_empty()).then_some(Self { tool, agent: Some(agent) })
        };
        around.into_iter().find_map(within)
    }
}

/// The name of the tool that runs an assistant: its id, where models take that as part of a name; else what is left of
/// it, and a hash that tells it apart.
pub(super) fn tool(id: &AssistantId) -> String {
    format!("{RUN}{}", part(id.as_str()))
}

fn part(id: &str) -> String {
    let room = NAME_CHARS_MAX - RUN.len();
    let plain: String = id.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    if plain == id && id.len() <= room {
        return plain;
    }
    let stem: String = plain.chars().take(room - HASH_CHARS - 1).collect();
    // No id has `_`: what has one is none.
    format!("{}_{}", stem.trim_matches('-'), &sha256_hex(id.as_bytes())[..HASH_CHARS])
}

/// The assistant that is in the name of a tool, also where `_` stands for its `-`.
///
/// # Errors
/// `unknown_assistant`, with those whose names are near.
pub(super) fn assistant(host: &Host, named: &str) -> Result<Arc<Definition>, ToolError> {
    let registry = host.registry();
    let is = |wanted: &str| registry.assistants().iter().find(|one| part(one.id.as_str()) == wanted).cloned();
    match is(named).or_else(|| is(&named.replace('_', "-"))) {
        Some(found) => Ok(found),
        None => assistants::find(host, named),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_times_are_known() {
        let check = |name: &str, tool: &str, agent: Option<&str>| {
            assert_eq!(Asked::of(name).map(|asked| (asked.tool, asked.agent)), Some((tool, agent)), "{name}");
        };
        check("check_status", "check_status", None);
        check("check_subagent_status", "check_status", None);
        check("check_subagent_web-search_status", "check_status", Some("web-search"));
        check("get_logs", "get_logs", None);
        check("get_subagent_logs", "get_logs", None);
        check("get_subagent_q_logs", "get_logs", Some("q"));
        check("update_status", "update_status", None);
        check("update_subagent_status", "update_status", None);
        check("update_subagent_q_status", "update_status", Some("q"));
        check("run_subagent", "run_subagent", None);
        check("run_subagent_q", RUN_ONE, Some("q"));
        check("run_subagent_NAME", RUN_ONE, Some("NAME"));
        for nothing in ["run_subagent_", "check_subagent__status", "spawn_assistant", "", "run_agent", "CHECK_STATUS"] {
            assert_eq!(Asked::of(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn every_assistant_has_a_name_that_models_take() {
        let check = |id: &str, want: &str| {
            assert_eq!(part(id), want, "{id}");
            let name = tool(&id.parse().expect("an id"));
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            assert!(name.len() <= NAME_CHARS_MAX && name.chars().all(fits), "{name}");
        };
        check("web-search", "web-search");
        check(&"a".repeat(33), &"a".repeat(33));
        // Long ones that begin alike are told apart.
        check(&"a".repeat(34), "aaaaaaaaaaaaaaaaaaaaaaaa_a27c896c");
        check(&"a".repeat(35), "aaaaaaaaaaaaaaaaaaaaaaaa_629362af");
        // Scripts that no model takes in a name.
        check("код", "_87fc5157");
        check("код-review", "review_9a373fc5");
    }
}
