//! Calls of an agent's own tools, by the names that definitions have for such: `Bash`, `Read`, `Edit`, `WebFetch`, …

use std::collections::BTreeSet;
use std::path::Path;

use agent_client_protocol::v1::schema::{Meta, ToolCallContent, ToolCallLocation, ToolKind};
use serde_json::{Map, Value, json};

use super::heard::{bytes, content_bytes};
use crate::adapter::ids::cut;

/// Names that definitions use, and the arguments that belong to them: an agent that calls its tools so is believed.
const KNOWN: &[&str] = &[
    "Bash",
    "Read",
    "Edit",
    "MultiEdit",
    "Write",
    "NotebookEdit",
    "Glob",
    "Grep",
    "LS",
    "WebFetch",
    "WebSearch",
    "Task",
    "TodoWrite",
    "ExitPlanMode",
    "KillShell",
    "BashOutput",
    "Skill",
    "SlashCommand",
    "AskUserQuestion",
];

/// The longest name of a tool that is told, in bytes; many agents tell a sentence.
const NAME_BYTES_MAX: usize = 200;

/// Keys under which agents name a file.
const FILE_KEYS: &[&str] = &["file_path", "filePath", "filepath", "path", "abs_path", "absolute_path", "notebook_path"];

/// What is known of a call so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Call {
    /// Its words for people.
    pub(crate) title: String,
    /// The tool, where the agent tells it.
    pub(crate) name: Option<String>,
    pub(crate) kind: ToolKind,
    pub(crate) input: Option<Value>,
    pub(crate) content: Vec<ToolCallContent>,
    pub(crate) locations: Vec<ToolCallLocation>,
}

/// A call by the names of definitions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Named {
    pub(crate) tool_name: String,
    pub(crate) arguments: Value,
}

impl Named {
    fn new(tool_name: impl Into<String>, arguments: Value) -> Self {
        Self { tool_name: tool_name.into(), arguments }
    }
}

/// The tool that an agent tells beside its call, in the places that agents have for it.
pub(crate) fn told_name(name: Option<&str>, meta: Option<&Meta>) -> Option<String> {
    let meta = meta.and_then(|meta| meta.get("claudeCode")?.get("toolName")?.as_str());
    name.or(meta).filter(|name| !name.is_empty()).map(str::to_owned)
}

impl Call {
    /// The call is one of a tool that came to the agent by our own server, and so is told and judged elsewhere.
    ///
    /// Only a name that an agent gives to a tool of that server counts, and none of a call that runs, reads or changes
    /// something: what the model writes into a command must not pass for one.
    pub(crate) fn is_of(&self, server: &str, tools: &BTreeSet<String>) -> bool {
        let is_ours = |told: &str| {
            let told = told.trim();
            let inner = told
                .strip_prefix("mcp__")
                .and_then(|rest| rest.strip_prefix(server)?.strip_prefix("__"))
                .or_else(|| told.strip_prefix(server)?.strip_prefix(['_', '.', '/', ':']))
                .or_else(|| told.strip_suffix(" MCP Server)")?.strip_suffix(server)?.strip_suffix(" ("));
            inner.is_some_and(|inner| tools.contains(inner.trim_start_matches('_')))
        };
        match &self.name {
            Some(name) => is_ours(name),
            None => self.kind == ToolKind::Other && is_ours(&self.title),
        }
    }

    /// What it takes of memory, about.
    pub(crate) fn bytes(&self) -> usize {
        let input = self.input.as_ref().map_or(0, bytes);
        let content: usize = self.content.iter().map(content_bytes).sum();
        let name = self.name.as_ref().map_or(0, String::len);
        let places: usize = self.locations.iter().map(|at| at.path.as_os_str().len() + 64).sum();
        self.title.len() + name + input + content + places
    }

    /// The call by the names of definitions; several where it is about several files, for each has its own rules. Files
    /// are as the agent names them; `folder` is where it works.
    pub(crate) fn named(&self, folder: &Path) -> Vec<Named> {
        let empty = Map::new();
        let input = self.input.as_ref().and_then(Value::as_object).unwrap_or(&empty);
        if let Some(name) = self.name.as_deref().filter(|name| KNOWN.contains(name)) {
            return vec![Named::new(name, self.arguments())];
        }
        match self.kind {
            ToolKind::Execute => {
                let command = json!(self.command(input));
                // The same once more: a call with two commands fits no rule.
                let rest = input.iter().filter(|(key, _)| !["cmd", "parsed_cmd"].contains(&key.as_str()));
                let rest = rest.map(|(key, value)| (key.clone(), value.clone())).collect();
                vec![Named::new("Bash", with(&rest, "command", command))]
            }
            ToolKind::Read | ToolKind::Edit | ToolKind::Delete | ToolKind::Move => {
                let name = match self.kind {
                    ToolKind::Read => "Read",
                    _ if self.is_new_file() => "Write",
                    _ => "Edit",
                };
                let files = self.files(input, folder);
                if files.is_empty() {
                    return vec![Named::new(name, self.arguments())];
                }
                files.into_iter().map(|file| Named::new(name, with(input, "file_path", json!(file)))).collect()
            }
            ToolKind::Fetch => match input.get("url").or_else(|| input.get("uri")) {
                Some(url) => vec![Named::new("WebFetch", with(input, "url", url.clone()))],
                None if input.contains_key("query") => vec![Named::new("WebSearch", self.arguments())],
                None => vec![Named::new("WebFetch", json!({ "url": self.title }))],
            },
            ToolKind::Search if input.contains_key("pattern") => {
                let is_grep = self.told().to_lowercase().contains("grep") || input.contains_key("include");
                vec![Named::new(if is_grep { "Grep" } else { "Glob" }, self.arguments())]
            }
            _ => vec![self.as_told()],
        }
    }

    /// The call for a log: as the agent calls it where it tells its tool, else by its kind.
    pub(crate) fn shown(&self) -> Named {
        let by_kind = matches!(
            self.kind,
            ToolKind::Execute | ToolKind::Read | ToolKind::Edit | ToolKind::Delete | ToolKind::Move | ToolKind::Fetch
        );
        let named = if by_kind && self.name.is_none() { self.named(Path::new("")).into_iter().next() } else { None };
        named.unwrap_or_else(|| self.as_told())
    }

    /// The call as the agent calls it.
    fn as_told(&self) -> Named {
        Named::new(self.told(), self.arguments())
    }

    fn told(&self) -> String {
        let told = cut(self.name.as_deref().unwrap_or(&self.title).trim(), NAME_BYTES_MAX);
        match told {
            "" => "unknown".to_owned(),
            // A title is what the model wrote, perhaps; the host knows our own tools by such a name.
            told if self.name.is_none() && told.starts_with("mcp__") => format!("other {told}"),
            told => told.to_owned(),
        }
    }

    fn arguments(&self) -> Value {
        self.input.clone().filter(Value::is_object).unwrap_or_else(|| match &self.input {
            Some(Value::Null) | None => json!({}),
            Some(other) => json!({ "input": other }),
        })
    }

    /// The command of a shell. The title is it where the agent tells no arguments.
    fn command(&self, input: &Map<String, Value>) -> String {
        match input.get("command").or_else(|| input.get("cmd")) {
            Some(Value::String(command)) => command.clone(),
            Some(Value::Array(words)) => words.iter().map(in_quotes).collect::<Vec<_>>().join(" "),
            _ => self.title.trim().trim_matches('`').to_owned(),
        }
    }

    /// Every file that the call names, in its arguments, its changes and its places.
    fn files(&self, input: &Map<String, Value>, folder: &Path) -> Vec<String> {
        let mut files: Vec<String> = Vec::new();
        let mut add = |file: &str| {
            if !file.is_empty() && !files.iter().any(|known| folder.join(known) == folder.join(file)) {
                files.push(file.to_owned());
            }
        };
        for key in FILE_KEYS {
            if let Some(file) = input.get(*key).and_then(Value::as_str) {
                add(file);
            }
        }
        for content in &self.content {
            if let ToolCallContent::Diff(diff) = content {
                add(&diff.path.to_string_lossy());
            }
        }
        for location in &self.locations {
            add(&location.path.to_string_lossy());
        }
        files
    }

    fn is_new_file(&self) -> bool {
        let mut diffs = self.content.iter().filter_map(|content| match content {
            ToolCallContent::Diff(diff) => Some(diff.old_text.as_deref().unwrap_or("").is_empty()),
            _ => None,
        });
        self.kind == ToolKind::Edit && diffs.next() == Some(true) && diffs.all(|is_new| is_new)
    }
}

fn with(input: &Map<String, Value>, key: &str, value: Value) -> Value {
    let mut arguments = input.clone();
    arguments.insert(key.to_owned(), value);
    Value::Object(arguments)
}

/// A word of a command, as a shell reads it.
fn in_quotes(word: &Value) -> String {
    let word = word.as_str().map_or_else(|| word.to_string(), str::to_owned);
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,@%+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::ToolCall;

    use super::*;

    fn call(json: Value) -> Call {
        let call: ToolCall = serde_json::from_value(json).expect("a tool call");
        let name = told_name(call.name.as_deref(), call.meta.as_ref());
        let ToolCall { title, kind, raw_input: input, content, locations, .. } = call;
        Call { title, name, kind, input, content, locations }
    }

    /// A call is named so, one after the other.
    fn check(json: Value, named: &[(&str, Value)]) {
        let got = call(json).named(Path::new("/w"));
        let wanted: Vec<_> = named.iter().map(|(name, arguments)| Named::new(*name, arguments.clone())).collect();
        assert_eq!(got, wanted);
    }

    #[test]
    fn calls_get_the_names_of_definitions() {
        let execute = |more: Value| {
            let mut call = json!({ "toolCallId": "1", "title": "`ls -l`", "kind": "execute" });
            call.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            call
        };
        check(execute(json!({})), &[("Bash", json!({ "command": "ls -l" }))]);
        check(execute(json!({ "rawInput": { "command": "ls" } })), &[("Bash", json!({ "command": "ls" }))]);
        let words = json!({ "command": ["sh", "-c", "it's; x"] });
        check(execute(json!({ "rawInput": words })), &[("Bash", json!({ "command": r"sh -c 'it'\''s; x'" }))]);

        let both = json!({ "cmd": "ls", "parsed_cmd": [{}], "cwd": "/w" });
        check(execute(json!({ "rawInput": both })), &[("Bash", json!({ "cwd": "/w", "command": "ls" }))]);
        let passing = json!({ "toolCallId": "1", "title": "mcp__assistants__anything" });
        check(passing, &[("other mcp__assistants__anything", json!({}))]);

        let edit = |more: Value| {
            let mut call = json!({ "toolCallId": "1", "title": "change", "kind": "edit" });
            call.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            call
        };
        check(
            edit(json!({ "rawInput": { "filePath": "a" } })),
            &[("Edit", json!({ "filePath": "a", "file_path": "a" }))],
        );
        check(
            edit(json!({ "content": [{ "type": "diff", "path": "/w/new", "newText": "x" }] })),
            &[("Write", json!({ "file_path": "/w/new" }))],
        );
        // One permission must not stand for a file that the rules were not asked about.
        check(
            edit(json!({ "rawInput": { "path": "a" }, "locations": [{ "path": "/w/a" }, { "path": "/etc/a" }] })),
            &[
                ("Edit", json!({ "path": "a", "file_path": "a" })),
                ("Edit", json!({ "path": "a", "file_path": "/etc/a" })),
            ],
        );
        check(edit(json!({})), &[("Edit", json!({}))]);

        let fetch = json!({ "toolCallId": "1", "title": "t", "kind": "fetch", "rawInput": { "url": "https://a.b" } });
        check(fetch, &[("WebFetch", json!({ "url": "https://a.b" }))]);
        let other = json!({ "toolCallId": "1", "title": "Ask the moon", "rawInput": [1] });
        check(other, &[("Ask the moon", json!({ "input": [1] }))]);
        check(json!({ "toolCallId": "1", "title": " " }), &[("unknown", json!({}))]);
        let named = json!({ "toolCallId": "1", "title": "Look", "kind": "search", "rawInput": { "pattern": "x" },
            "_meta": { "claudeCode": { "toolName": "Grep" } } });
        check(named, &[("Grep", json!({ "pattern": "x" }))]);
    }

    #[test]
    fn a_command_does_not_pass_for_a_tool_of_ours() {
        let tools = BTreeSet::from(["ask_parent".to_owned()]);
        let is_ours = |json: Value| call(json).is_of("assistants", &tools);
        for title in ["mcp__assistants__ask_parent", "assistants_ask_parent", "ask_parent (assistants MCP Server)"] {
            assert!(is_ours(json!({ "toolCallId": "1", "title": title })), "{title}");
            assert!(is_ours(json!({ "toolCallId": "1", "title": title, "kind": "other" })), "{title}");
            assert!(!is_ours(json!({ "toolCallId": "1", "title": title, "kind": "execute" })), "{title}");
            let named = json!({ "toolCallId": "1", "title": title, "name": "Bash" });
            assert!(!is_ours(named), "{title}");
        }
        for title in ["ask_parent", "mcp__others__ask_parent", "mcp__assistants__delete_all", "assistants_"] {
            assert!(!is_ours(json!({ "toolCallId": "1", "title": title })), "{title}");
        }
    }
}
