//! Why a tool that there is is not offered, and which tools are asked for that there are not.

use super::{Policy, ToolName, names};
use crate::registry::{Action, is_all};

impl Policy {
    /// The rule that takes a tool away, in words that name it; none where nothing but the lack of a word about it does.
    pub(crate) fn withholds(&self, tool: ToolName<'_>) -> Option<String> {
        let denied = self.deny.iter().find(|entry| !self.is_held(entry, tool) && self.names(entry, tool));
        let ordered = || {
            let refuses = |entry: &super::Entry, action: Action| {
                action == Action::Deny && entry.patterns.is_empty() && self.rules(entry, action, tool)
            };
            let last = self.ordered.iter().rev().find(|(entry, action)| refuses(entry, *action));
            last.filter(|_| self.takes(tool)).map(|(entry, _)| format!("by the rule `{}`", entry.written))
        };
        denied.map(|entry| format!("`{}` is denied", entry.written)).or_else(ordered)
    }

    /// What the definition asks for of a server by the name of one tool, where that server has `tools` and none of that
    /// name.
    pub(crate) fn without(&self, server: &str, tools: &[&str]) -> Vec<String> {
        let has = |name: &str| tools.iter().any(|tool| names::is_tool(name, ToolName { server: Some(server), tool }));
        let entries = self.allow.iter().flatten().chain(&self.by_rules);
        let asked = entries.map(|entry| entry.name.trim()).filter(|name| !is_all(name) && !name.contains('*'));
        asked.filter(|name| names::names_server(name, server) && !has(name)).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::registry::{Source, read};

    fn policy(keys: &str) -> Policy {
        let text = format!("---\nname: n\ndescription: d\n{keys}\n---\nGo.\n");
        let definition = read(text.as_bytes(), "n.md".as_ref(), Source::Dir).expect("a definition");
        Policy::of(&definition, &BTreeMap::new())
    }

    #[test]
    fn what_takes_a_tool_away_is_named() {
        let check = |keys: &str, tool: &str, want: Option<&str>| {
            let told = policy(keys).withholds(ToolName { server: Some("x"), tool });
            assert_eq!(told.as_deref(), want, "{keys} {tool}");
        };
        check("tools: [mcp__x__*]\ndisallowedTools: [mcp__x__get]", "get", Some("`mcp__x__get` is denied"));
        check("tools: [mcp__x__*]\ndisallowedTools: [mcp__x__get]", "put", None);
        check("disallowedTools: [x/*]", "put", Some("`x/*` is denied"));
        check("permission: {'x_*': deny, x_echo: allow}", "get", Some("by the rule `x_*: deny`"));
        check("permission: {'x_*': deny, x_echo: allow}", "echo", None);
        check("tools: [mcp__y__*]", "get", None);
    }

    #[test]
    fn tools_that_a_server_has_not() {
        let check =
            |keys: &str, want: &[&str]| assert_eq!(policy(keys).without("x", &["echo", "get_sum"]), want, "{keys}");
        check("tools: [x__ecko, mcp__x__echo, x/getSum]", &["x__ecko"]);
        check("tools: ['x__*', 'mcp__x', '*', Bash, y__ecko]", &[]);
        check("tools: ['mcp__x__ecko(a:*)', '@x/none']", &["mcp__x__ecko", "@x/none"]);
        check("description: none", &[]);
    }
}
