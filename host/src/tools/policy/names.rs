//! Names of tools in the spellings of all systems, against a tool.

use std::collections::BTreeMap;

use super::{ToolName, glob, subject};
use crate::registry::{fold, is_all};
use crate::tools::grants;

/// Whether `name`, as a list of tools has it, gives `tool`.
pub(super) fn stands_for(name: &str, tool: ToolName<'_>, aliases: &BTreeMap<String, String>) -> bool {
    match tool.server {
        None => grants::stands_for(name, tool.tool, aliases),
        Some(server) => {
            let by = |name: &str| is_tool(name, tool) || subject::means(name, server, tool.tool);
            is_all(name) || by(name) || aliases.get(name).is_some_and(|wanted| by(wanted))
        }
    }
}

/// Whether `name`, as a list of what is denied has it, is `tool` or a group with it.
pub(super) fn denies(name: &str, tool: ToolName<'_>, aliases: &BTreeMap<String, String>) -> bool {
    let whole = match tool.server {
        Some(server) => format!("{server}__{}", tool.tool),
        None => tool.tool.to_owned(),
    };
    let by_alias = || aliases.get(name).is_some_and(|wanted| grants::denies(wanted, &whole, aliases));
    let by_role = || tool.server.is_some_and(|server| subject::means_too(name, server, tool.tool));
    grants::denies(name, &whole, aliases) || by_alias() || by_role()
}

/// Whether `name` is a tool of a server: `mcp__s__t`, `mcp__s__*`, `mcp__s`, `s/t`, `s/*`, `s__t`, `mcp_s_t`, or `t` alone.
pub(super) fn is_tool(name: &str, tool: ToolName<'_>) -> bool {
    let name = name.trim();
    let Some(server) = tool.server else { return name == tool.tool };
    let of_mcp =
        name.get(..4).filter(|start| start.eq_ignore_ascii_case("mcp_")).map(|_| name[4..].trim_start_matches('_'));
    let rest = of_mcp.unwrap_or(name);
    let same_server = |part: &str| part == "*" || fold(part) == fold(server);
    let same_tool = |part: &str| {
        let (part, tool) = (part.to_lowercase(), tool.tool.to_lowercase());
        if part.contains('*') { glob::matches(&part, &tool) } else { fold(&part) == fold(&tool) }
    };
    if let Some(rest) = of_mcp {
        // With single `_` nobody knows where the server's name ends.
        let single = rest.match_indices('_').any(|(at, _)| same_server(&rest[..at]) && same_tool(&rest[at + 1..]));
        if rest == "*" || same_server(rest) || single {
            return true;
        }
    }
    let apart = |sign: &str| {
        rest.match_indices(sign).any(|(at, _)| same_server(&rest[..at]) && same_tool(&rest[at + sign.len()..]))
    };
    let alone = of_mcp.is_none() && !rest.contains(['/', '*']) && !rest.contains("__") && same_tool(rest);
    apart("__") || apart("/") || alone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_servers() {
        let check = |name: &str, want: bool| {
            let tool = ToolName { server: Some("git-hub"), tool: "list_issues" };
            assert_eq!(
                stands_for(name, tool, &BTreeMap::from([("Issues".to_owned(), "git-hub__list_issues".to_owned())])),
                want,
                "{name}"
            );
        };
        for name in [
            "*",
            "all",
            "mcp__git-hub__list_issues",
            "mcp__git-hub__*",
            "mcp__git-hub",
            "mcp__git_hub__list_issues",
            "git-hub/*",
            "git-hub/list_issues",
            "git-hub__list_issues",
            "git-hub__*",
            "mcp_git-hub_list_issues",
            "mcp_*",
            "mcp__*",
            "MCP__GIT-HUB__LIST_ISSUES",
            "git-hub/list*",
            "Git-Hub/listIssues",
            "Issues",
            "list_issues",
            "mcp__git-hub__list_*",
            "*/list_issues",
        ] {
            check(name, true);
        }
        for name in [
            "mcp__git__*",
            "mcp__git",
            "git/*",
            "git-hub",
            "mcp__git-hub__list",
            "git-hub/issues",
            "issues",
            "mcp__other__list_issues",
            "",
            "mcp__git-hub__list_issues_of",
            "Bash",
            "list_*",
            "mcp_git_hub_x",
            "/",
            "__",
            "mcp__",
        ] {
            check(name, false);
        }
    }

    #[test]
    fn tools_of_the_host() {
        let check = |name: &str, tool: &str, want: bool| {
            let aliases =
                BTreeMap::from([("Bash".to_owned(), "app__shell".to_owned()), ("Cat".to_owned(), "view".to_owned())]);
            assert_eq!(stands_for(name, ToolName { server: None, tool }, &aliases), want, "{name} {tool}");
        };
        check("Read", "read_file", true);
        check("Cat", "read_file", true);
        check("LS", "list_files", true);
        check("Bash", "app__shell", true);
        check("app__*", "app__shell", true);
        check("app__shell", "app__shell", true);
        check("Read", "list_files", false);
        check("bash", "app__shell", false);
        check("app__s", "app__shell", false);
    }
}
