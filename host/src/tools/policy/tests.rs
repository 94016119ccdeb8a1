use std::path::Path;

use serde_json::json;

use super::*;
use crate::registry::{Source, read};

mod commands;
mod files;
mod given;
mod nested;
mod redirections;
mod rules;
mod taken;

/// The rules of a file with the frontmatter `keys`, in `folder`.
fn policy(keys: &str, folder: Option<&Path>) -> Policy {
    let text = format!("---\nname: n\ndescription: d\n{keys}\n---\nGo.\n");
    let definition = read(text.as_bytes(), "n.md".as_ref(), Source::Dir).expect("a definition");
    let aliases = [("Run", "app__do_it"), ("Bash", "app__sh")];
    let aliases = aliases.map(|(alias, tool)| (alias.to_owned(), tool.to_owned()));
    Policy::of(&definition, &BTreeMap::from(aliases)).within(folder.map(Path::to_owned))
}

/// A tool by its name, with the server before `__` unless that is `host` or the app.
fn named(name: &str) -> ToolName<'_> {
    match name.split_once("__") {
        Some(("app", _)) | None => ToolName { server: None, tool: name },
        Some((server, tool)) => ToolName { server: Some(server), tool },
    }
}

/// What becomes of a call, in a word: `allow`, `ask` or `deny`.
fn word(policy: &Policy, tool: &str, arguments: &Value) -> &'static str {
    match policy.judge(named(tool), arguments.as_object().expect("an object")) {
        Verdict::Allow => "allow",
        Verdict::Ask { .. } => "ask",
        Verdict::Deny { .. } => "deny",
    }
}

/// The rule by which a call is refused.
fn rule(policy: &Policy, tool: &str, arguments: &Value) -> String {
    match policy.judge(named(tool), arguments.as_object().expect("an object")) {
        Verdict::Deny { rule } | Verdict::Ask { why: Why::Rule(rule) } => rule,
        Verdict::Ask { why } => why.to_string(),
        Verdict::Allow => "allowed".to_owned(),
    }
}
