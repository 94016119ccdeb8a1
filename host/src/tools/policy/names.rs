//! Names of tools in the spellings of all systems, against a tool.

use std::collections::BTreeMap;

use super::{ToolName, agents, glob, subject};
use crate::registry::{fold, is_all};
use crate::servers::{fitted, is_model_name};
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
    let means =
        |wanted: &str| is_tool(wanted, tool) || is_alike(wanted, tool) || grants::denies(wanted, &whole, aliases);
    let by_alias = || aliases.iter().any(|(alias, wanted)| fold(alias) == fold(name) && means(wanted));
    let by_role = || tool.server.is_some_and(|server| subject::means_too(name, server, tool.tool));
    grants::denies(name, &whole, aliases) || is_tool(name, tool) || is_alike(name, tool) || by_alias() || by_role()
}

/// Whether `name` is `s_t` for a tool of a server with any sign for what is no letter, or a glob over that: what refuses
/// means it too where that is also another system's tool.
fn is_alike(name: &str, tool: ToolName<'_>) -> bool {
    let Some(server) = tool.server.filter(|server| *server != agents::AGENT) else { return false };
    let alike = |name: &str| plain(name).replace('-', "_");
    let of_tools = name.contains(char::is_alphanumeric);
    of_tools && glob::matches(&alike(name.trim()), &alike(&format!("{server}_{}", tool.tool)))
}

/// How a name names a tool: the later, the more it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Naming {
    /// By what it does, as one of all, or not at all.
    Else,
    /// By its name there, which another server's may have too.
    Alone,
    /// With its server, or as the host has it.
    Whole,
}

/// How `name` names `tool`; `refuses` is whether it takes the tool away, which more spellings and the configuration's names
/// do.
pub(super) fn naming(name: &str, tool: ToolName<'_>, refuses: bool, aliases: &BTreeMap<String, String>) -> Naming {
    let group = |name: &str| match refuses {
        true => glob::matches(&plain(name.trim().trim_start_matches("mcp__")), &plain(tool.tool)),
        false => grants::stands_for(name, tool.tool, aliases),
    };
    let of = |name: &str| match tool.server {
        // Those of the host itself are known by the names of other systems.
        None if is_all(name) || !tool.tool.contains("__") => Naming::Else,
        None if name.trim() == tool.tool || (name.contains('*') && group(name)) => Naming::Whole,
        None => Naming::Else,
        Some(_) if is_all(name) => Naming::Else,
        Some(_) if is_alone(name) && fold(name.trim()) == fold(tool.tool) => Naming::Alone,
        Some(_) if is_tool(name, tool) || (refuses && is_alike(name, tool)) => Naming::Whole,
        Some(_) => Naming::Else,
    };
    let by_alias = || aliases.iter().filter(|(alias, _)| fold(alias) == fold(name)).map(|(_, wanted)| of(wanted)).max();
    if refuses { by_alias().map_or(of(name), |by_alias| by_alias.max(of(name))) } else { of(name) }
}

/// Whether `name` is a tool of a server: `mcp__s__t`, `mcp__s__*`, `mcp__s`, `s/t`, `s/*`, `@s/t`, `@s`, `s__t`, `mcp_s_t`,
/// `t` alone, the name by which a model calls it, or as opencode has it, `s_t`, `s_*` or any other glob over that.
pub(super) fn is_tool(name: &str, tool: ToolName<'_>) -> bool {
    let Some(server) = tool.server else { return name.trim() == tool.tool };
    if server == agents::AGENT {
        let name = name.trim();
        let of_server = name.starts_with("mcp__") && tool.tool.starts_with("mcp__");
        return name == tool.tool
            || (of_server && glob::matches(name, tool.tool))
            || (is_alone(name) && fold(name) == fold(tool.tool));
    }
    let same_tool = |part: &str| {
        let (part, tool) = (part.to_lowercase(), tool.tool.to_lowercase());
        if part.contains('*') { glob::matches(&part, &tool) } else { fold(&part) == fold(&tool) }
    };
    let parts = |(of, tool): (&str, Option<&str>)| is_server(of, server) && tool.is_none_or(same_tool);
    let joined = || joined(name).is_some_and(|name| glob::matches(&name, &plain(&format!("{server}_{}", tool.tool))));
    readings(name).into_iter().any(parts)
        || (is_alone(name) && same_tool(name.trim()))
        || joined()
        || is_model_name(name.trim(), server, tool.tool)
}

/// Whether `name`, which [`is_tool`] takes for a tool of a server, is the name of that one tool to the letter; `shown` is
/// the name by which a model calls it.
pub(super) fn is_exactly(name: &str, tool: ToolName<'_>, shown: &str) -> bool {
    let (name, server) = (name.trim(), tool.server.unwrap_or_default());
    let whole = |(of, part): (&str, Option<&str>)| is_server(of, server) && part == Some(tool.tool);
    let joined = || plain_server(name, server).is_some_and(|rest| rest == tool.tool);
    name == shown || name == tool.tool || readings(name).into_iter().any(whole) || joined()
}

/// Whether `name` is one of `all` tools of a server to the letter, each with the name by which a model calls it, and `tool`,
/// which is `shown` so, only in another spelling.
pub(super) fn means_another(
    name: &str,
    tool: ToolName<'_>,
    shown: &str,
    all: &[(&str, &str)],
    aliases: &BTreeMap<String, String>,
) -> bool {
    let name = aliases.get(name).map_or(name, String::as_str);
    let of_role = || tool.server.is_some_and(|server| subject::means(name, server, tool.tool));
    let server = tool.server;
    let exactly = |tool: &str, shown: &str| is_exactly(name, ToolName { server, tool }, shown);
    !all.is_empty()
        && is_tool(name, tool)
        && !of_role()
        && !exactly(tool.tool, shown)
        && all.iter().any(|(tool, shown)| exactly(tool, shown))
}

/// Whether `name` names a server, or tools of it, in one of the ways of [`is_tool`]; the name of a tool alone does not.
pub(crate) fn names_server(name: &str, server: &str) -> bool {
    let joined =
        || joined(name).is_some_and(|name| glob::may_match(&name, &plain(&format!("{server}_{}", glob::HOLE))));
    is_all(name) || readings(name).into_iter().any(|(of, _)| is_server(of, server)) || joined()
}

/// A name in which nothing but a `_` may stand between a server's name and a tool's, plain; none where it is another
/// spelling, or the name of a tool that the host or another system has itself.
fn joined(name: &str) -> Option<String> {
    let name = name.trim();
    let other = name.contains(['/', '@', ':', '.']) || name.contains("__") || of_mcp(name).is_some();
    let is_group = name.contains('*') && name.contains(char::is_alphanumeric);
    let known = || !grants::alias(name).is_empty() || grants::is_foreign(name);
    (!other && (is_group || (name.contains('_') && !known()))).then(|| plain(name))
}

/// What stands behind the name of `server` and a `_` in `name`.
fn plain_server<'a>(name: &'a str, server: &str) -> Option<&'a str> {
    let (head, rest) = (name.get(..server.len())?, name.get(server.len()..)?);
    rest.strip_prefix('_').filter(|_| joined(name).is_some() && plain(head) == plain(server))
}

/// A name in small letters, with `_` for what opencode does not take in one.
fn plain(name: &str) -> String {
    let sign = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '*' | '?' | glob::HOLE) { c } else { '_' };
    name.chars().map(sign).flat_map(char::to_lowercase).collect()
}

fn is_server(part: &str, server: &str) -> bool {
    part == "*" || fold(part) == fold(server) || part == fitted(server)
}

/// Whether it is the name of a tool, without a server's.
fn is_alone(name: &str) -> bool {
    !name.contains(['/', '*']) && !name.contains("__") && of_mcp(name.trim()).is_none()
}

fn of_mcp(name: &str) -> Option<&str> {
    name.get(..4).filter(|start| start.eq_ignore_ascii_case("mcp_")).map(|_| name[4..].trim_start_matches('_'))
}

/// All ways to read a name as that of a server and of a tool of it; none is all of its tools.
fn readings(name: &str) -> Vec<(&str, Option<&str>)> {
    let name = name.trim();
    let mut found = Vec::new();
    let rest = match (of_mcp(name), name.strip_prefix('@')) {
        (Some(rest), _) => {
            found.push((rest, None));
            // With single `_` nobody knows where the server's name ends.
            if name.as_bytes().get(4) != Some(&b'_') {
                found.extend(rest.match_indices('_').map(|(at, _)| (&rest[..at], Some(&rest[at + 1..]))));
            }
            rest
        }
        (None, Some(rest)) => {
            found.push((rest, None));
            rest
        }
        (None, None) => name,
    };
    for sign in ["__", "/"] {
        found.extend(rest.match_indices(sign).map(|(at, _)| (&rest[..at], Some(&rest[at + sign.len()..]))));
    }
    found
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
            "@git-hub",
            "@git-hub/list_issues",
            "git-hub_list_issues",
            "git-hub_*",
            "Git-Hub_List*",
            "git-*",
            "*_issues",
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
            "@git",
            "git-hub.list_issues",
            "mcp__git__hub_list_issues",
            "git-hub_list",
            "git-hub_list_issues_of",
            "git_*",
            "github_*",
            "hub_list_issues",
        ] {
            check(name, false);
        }
    }

    /// What gives a tool starts its server, but for the name of a tool alone: it may be anybody's.
    #[test]
    fn names_of_servers() {
        for (name, server, want) in [
            ("mcp__db__query", "db", true),
            ("mcp__DB__*", "db", true),
            ("mcp__db", "db", true),
            ("mcp__d_b__query", "d-b", true),
            ("db/query", "db", true),
            ("@db/query", "db", true),
            ("@db", "db", true),
            ("db__query", "db", true),
            ("mcp_db_query", "db", true),
            ("mcp__github_enterprise__x", "github", false),
            ("*", "db", true),
            ("*/query", "db", true),
            ("db", "db", false),
            ("db.query", "db", false),
            ("query", "db", false),
            ("dbx__query", "db", false),
            ("Read", "db", false),
            ("db_query", "db", true),
            ("db_*", "db", true),
            ("d*", "db", true),
            ("*_query", "db", true),
            ("dbx_*", "db", false),
            ("read_file", "read", false),
            ("run_tests", "run", false),
        ] {
            assert_eq!(names_server(name, server), want, "{name} {server}");
            let gives = is_tool(name, ToolName { server: Some(server), tool: "query" });
            assert!(!gives || want || name == "query", "{name} gives a tool of {server}, which nothing starts");
        }
    }

    /// However a tool is called, the name by which a model calls it names it.
    #[test]
    fn names_that_were_made_to_fit() {
        let long = "l".repeat(80);
        let cut = format!("x__{}_", "l".repeat(54));
        for (server, tool, shown) in [
            ("x", "bad name!", "x__bad_name_"),
            ("x", "bad.name", "x__bad_name"),
            ("my.db", "q", "my_db__q"),
            ("x", "echo", "x__echo"),
        ] {
            let of = ToolName { server: Some(server), tool };
            assert!(stands_for(shown, of, &BTreeMap::new()) && denies(shown, of, &BTreeMap::new()), "{shown}");
            assert!(names_server(shown, server), "{shown}");
        }
        let hashed = |tool: &str| crate::servers::model_name("x", tool);
        for tool in [long.as_str(), "bad name!"] {
            let of = ToolName { server: Some("x"), tool };
            assert!(stands_for(&hashed(tool), of, &BTreeMap::new()), "{tool}");
            assert!(!stands_for(&hashed("other"), of, &BTreeMap::new()), "{tool}");
        }
        assert!(hashed(&long).starts_with(&cut), "{}", hashed(&long));
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
