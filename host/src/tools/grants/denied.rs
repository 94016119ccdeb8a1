//! Whether a name of something denied is a tool, however it is spelled.

use std::collections::BTreeMap;

use super::aliases::alone;
use super::{ALIASES, SPAWNING, names_of};
use crate::registry::{fold, is_spawner, narrow, several};
use crate::tools::Tool;
use crate::tools::talk::TALK;

/// Words for every tool, folded.
const ALL: &[&str] = &["all", "alltools", "any", "anything", "everything"];
/// This host as a server, folded: its name, and the one that its manual gives it.
const HOST: &[&str] = &["assistanthost", "assistants"];

/// What other systems call tools that do this among other things, folded: whoever denies one of these means ours, and
/// nobody asks for it by them.
const AMONG_OTHERS: &[(&str, &[&str])] =
    &[("read_file", &["strreplacebasededittool", "strreplaceeditor", "texteditor"])];
/// A tool that shows what another one shows: whoever denies the second means the first too.
const SHOWS_TOO: &[(&str, &str)] = &[("search_files", "read_file")];

/// One tool, and the names that it is known by, folded.
pub(super) struct Known(Vec<String>);

impl Known {
    /// The tool `tool` of `table`.
    pub(super) fn new(tool: &str, aliases: &BTreeMap<String, String>, table: &[Tool]) -> Self {
        // Who hands no work on may still have a word with others.
        let spawns = SPAWNING.contains(&tool) && TALK.contains(&tool);
        let shown = SHOWS_TOO.iter().filter(|(ours, _)| *ours == tool).map(|(_, shown)| *shown);
        let does = |names: &[&str]| names.contains(&tool) || shown.clone().any(|shown| names == [shown]);
        let own = ALIASES.iter().filter(|(alias, names)| *alias != "*" && does(names)).map(|(alias, _)| *alias);
        let own = own.filter(|_| !spawns);
        // The name that an alias stands for is no alias itself.
        let gives = |wanted: &str| {
            names_of(wanted, &BTreeMap::new(), table)
                .iter()
                .any(|name| name == tool || shown.clone().any(|of| of == name))
        };
        let configured = aliases.iter().filter(|(_, wanted)| gives(wanted) && !(spawns && is_spawner(wanted)));
        let configured = configured.map(|(alias, _)| alias.as_str());
        let among = AMONG_OTHERS.iter().filter(|(ours, _)| *ours == tool || shown.clone().any(|shown| shown == *ours));
        let own = own.chain(shown.clone()).chain(among.flat_map(|(_, names)| names.iter().copied()));
        let mut names: Vec<String> = [tool].into_iter().chain(own).chain(configured).map(folded).collect();
        // A server's name stands for all of its tools, and one of them is known without it too.
        if let Some((server, bare)) = tool.split_once("__") {
            names.extend([server, bare].map(folded));
            if let Some(service) = tool.strip_prefix("builtin_") {
                names.extend([service, service.split("__").next().unwrap_or(service)].map(folded));
            }
        }
        Self(names)
    }

    /// Whether `denied`, as a definition names it, is this tool or a group of tools with it. What stands in parentheses
    /// behind it would let other calls pass, and is not looked at.
    pub(super) fn is_denied(&self, denied: &str) -> bool {
        several(denied).any(|one| self.is(one))
    }

    fn is(&self, denied: &str) -> bool {
        let denied: String = denied.chars().map(narrow).collect();
        let bare = denied.split('(').next().unwrap_or(&denied);
        let bare = bare.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '*' | '?'));
        let bare = alone(bare);
        if ALL.contains(&fold(bare).as_str()) {
            return true;
        }
        let parts = bare.split(['/', ':', '.', '\\']).chain(without_server(bare)).map(folded);
        // The `*` of `x/*` is not everything.
        let parts = parts.filter(|part| part.contains(char::is_alphanumeric));
        let mut spelled = [folded(bare)].into_iter().filter(|whole| !whole.is_empty()).chain(parts);
        of_host(bare) || spelled.any(|part| self.0.iter().any(|name| fits(&part, name)))
    }
}

/// `name` without what spellings differ in, but for the end of a server's name in it.
fn folded(name: &str) -> String {
    name.split("__").map(fold).collect::<Vec<_>>().join("/")
}

/// What `name` may be without the name of a server before it.
fn without_server(name: &str) -> impl Iterator<Item = &str> {
    let of_mcp = name.get(..4).filter(|start| start.eq_ignore_ascii_case("mcp_")).map(|_| &name[4..]);
    // With single `_` nobody knows where the server's name ends.
    let single = of_mcp.into_iter().flat_map(|rest| rest.match_indices('_').map(move |(at, _)| &rest[at + 1..]));
    let double = name.match_indices("__").map(|(at, _)| &name[at + 2..]);
    single.chain(double).chain(of_mcp)
}

/// Whether `name` is this host as a server, or all of its tools.
fn of_host(name: &str) -> bool {
    let mcp = name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("mcp_"));
    let rest = if mcp { &name[4..] } else { name };
    let server = rest.trim_end_matches(['*', '/', '_', ':', '.']);
    (mcp || server.len() < rest.len()) && HOST.contains(&fold(server).as_str())
}

/// Whether `pattern`, in which `*` is anything and `?` one character, is all of `name`.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // The last `*`, and how much of the name it took.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => (p, n) = (p + 1, n + 1),
            _ => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                (p, n) = (at + 1, taken + 1);
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_systems() {
        let check = |tool: &str, denied: &str, expected: bool| {
            let known = Known::new(tool, &BTreeMap::new(), &[]);
            assert_eq!(known.is_denied(denied), expected, "{denied} {tool}");
        };
        for denied in ["Grep", "search/textSearch", "search_file_content", "codebase", "search"] {
            check("search_files", denied, true);
            check("read_file", denied, denied == "codebase");
            check("send_message", denied, false);
        }
        for denied in ["list_dir", "ListDir", "directory_tree", "search/fileSearch", "file_search"] {
            check("list_files", denied, true);
            check("read_file", denied, false);
            check("search_files", denied, false);
        }
        for denied in
            ["fs_read", "view_file", "open_file", "NotebookRead", "read_many_files(x)", "text_editor", "read_*"]
        {
            check("read_file", denied, true);
            check("search_files", denied, true);
            check("send_message", denied, false);
        }
    }

    #[test]
    fn tools_of_servers() {
        let check = |tool: &str, denied: &str, expected: bool| {
            let known = Known::new(tool, &BTreeMap::new(), &[]);
            assert_eq!(known.is_denied(denied), expected, "{denied} {tool}");
        };
        for denied in [
            "app__paint",
            "APP__Paint",
            "app",
            "app__*",
            "app__p*",
            "mcp__app__paint",
            "mcp__app",
            "paint",
            "app/paint",
        ] {
            check("app__paint", denied, true);
        }
        for denied in
            ["builtin_work__run_it", "work", "builtin_work", "work__runIt", "mcp__work__*", "run-it", "builtin_*"]
        {
            check("builtin_work__run_it", denied, true);
        }
        for denied in ["app＿＿paint", "ＡＰＰ＊", "paint（x）"] {
            check("app__paint", denied, true);
        }
        for denied in ["app__draw", "ap", "mcp__ap__*", "apppaint", "work", "a/*"] {
            check("app__paint", denied, false);
        }
    }
}
