//! Names of other systems' tools, and the tools here that do the same.

use crate::registry::fold;
use crate::tools::talk::ASKING;

/// Without a `tools` key an assistant has these.
pub(super) const DEFAULT_GRANTS: &[&str] =
    &["read_file", "list_files", "search_files", "send_message", "recv_message", "ask_parent", "check_answer"];
/// What a name that stands for spawning stands for.
pub(super) const SPAWNING: &[&str] = &[
    "search_assistant",
    "spawn_assistant",
    "poll_assistant",
    "wait_assistant",
    "recv_message",
    "get_pending_questions",
    "reply_assistant",
    "cancel_assistant",
];

const READ: &[&str] = &["read_file"];
const LIST: &[&str] = &["list_files"];
const SEARCH: &[&str] = &["search_files"];

/// The names, folded. From the manuals of Claude Code, Copilot and VS Code, opencode, Gemini CLI, Cursor, Codex, goose, Pi,
/// Amazon Q and Kiro, Windsurf, Zed, Cline and Roo. `[tool_aliases]` of the configuration comes first.
pub(super) const ALIASES: &[(&str, &[&str])] = &[
    // One file.
    ("read", READ),
    ("readfile", READ),
    ("readfiles", READ),
    ("readmanyfiles", READ),
    ("readtextfile", READ),
    ("readmultiplefiles", READ),
    ("readnotebook", READ),
    ("notebookread", READ),
    ("view", READ),
    ("viewfile", READ),
    ("viewfileoutline", READ),
    ("fileread", READ),
    ("fsread", READ),
    ("open", READ),
    ("openfile", READ),
    ("cat", READ),
    // Which files there are.
    ("ls", LIST),
    ("list", LIST),
    ("listdir", LIST),
    ("listdirectory", LIST),
    ("listfiles", LIST),
    ("directorytree", LIST),
    ("tree", LIST),
    ("glob", LIST),
    ("globsearch", LIST),
    ("globfilesearch", LIST),
    ("filesearch", LIST),
    ("fileglob", LIST),
    ("find", LIST),
    ("findfiles", LIST),
    ("findpath", LIST),
    ("findbyname", LIST),
    ("findtestfiles", LIST),
    ("testsearch", LIST),
    // Where something stands in them.
    ("grep", SEARCH),
    ("grepsearch", SEARCH),
    ("greptool", SEARCH),
    ("rg", SEARCH),
    ("ripgrep", SEARCH),
    ("searchfiles", SEARCH),
    ("searchfilecontent", SEARCH),
    ("searchtext", SEARCH),
    ("textsearch", SEARCH),
    ("codesearch", SEARCH),
    ("codebasesearch", SEARCH),
    ("searchcode", SEARCH),
    ("searchcodebase", SEARCH),
    ("searchsymbol", SEARCH),
    ("semanticsearch", SEARCH),
    ("usages", SEARCH),
    ("listcodeusages", SEARCH),
    ("search", &["search_files", "list_files"]),
    ("codebase", &["search_files", "list_files", "read_file"]),
    // Others at work.
    ("task", SPAWNING),
    ("agent", SPAWNING),
    ("runsubagent", SPAWNING),
    ("sendmessage", &["send_message"]),
    // Whoever gave the task is who can be asked.
    ("askuser", ASKING),
    ("askuserquestion", ASKING),
    ("askquestions", ASKING),
    ("askfollowupquestion", ASKING),
    ("requestuserinput", ASKING),
    ("contactsupervisor", ASKING),
    ("question", ASKING),
    ("*", DEFAULT_GRANTS),
    ("all", DEFAULT_GRANTS),
];

/// Sets of tools of one system, folded, that its names stand behind: `search/codebase` is `codebase`.
pub(super) const SETS: &[&str] =
    &["agent", "builtin", "edit", "execute", "read", "runcommands", "runtasks", "search", "todo", "vscode", "web"];

/// The tools that a name of another system stands for, however it is spelled; none where it is none of them.
pub(crate) fn alias(name: &str) -> &'static [&'static str] {
    let wanted = fold(alone(name));
    ALIASES.iter().find(|(alias, _)| *alias == wanted).map_or(&[], |(_, names)| names)
}

/// The name of a tool of another system without the set before it; of `search/*` the set.
pub(super) fn alone(name: &str) -> &str {
    match name.split_once('/') {
        Some((set, "*")) if SETS.contains(&fold(set).as_str()) => set,
        Some((set, rest)) if SETS.contains(&fold(set).as_str()) => rest,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    #[test]
    fn names_are_folded_each_once_and_stand_for_tools_that_there_are() {
        let table = crate::tools::table(&Limits::default());
        for (at, (name, stands_for)) in ALIASES.iter().enumerate() {
            assert_eq!(fold(name), *name);
            assert!(ALIASES[..at].iter().all(|(other, _)| other != name), "{name} stands here twice");
            for tool in *stands_for {
                assert!(table.iter().any(|known| known.name == *tool), "{name} stands for {tool}");
            }
        }
        for set in SETS {
            assert_eq!(fold(set), *set);
        }
    }

    /// Prints how many of the tools that real files ask for are understood; asserts that most are.
    #[test]
    fn the_corpus() {
        use crate::registry::{Layout, Registry, Source, SourceDir, bare};
        let Some(corpus) = crate::testing::corpus() else { return };
        let registry = Registry::read(&[SourceDir {
            source: Source::Dir,
            path: corpus.join("agents"),
            layout: Layout::Files,
            required: true,
        }]);
        let asked = registry.assistants().iter().flat_map(|one| one.tools.iter().flatten());
        let table = crate::tools::table(&Limits::default());
        let (mut here, mut by_role, mut of_servers, mut unknown) = (0, 0, 0, std::collections::BTreeMap::new());
        for name in asked {
            let bare = bare(name);
            if !super::super::names_of(name, &std::collections::BTreeMap::new(), &table).is_empty() {
                here += 1;
            } else if !super::super::roles_of(bare).is_empty() {
                by_role += 1;
            } else if bare.starts_with("mcp_") || bare.contains('*') {
                of_servers += 1;
            } else {
                *unknown.entry(bare.to_owned()).or_insert(0) += 1;
            }
        }
        let all = here + by_role + of_servers + unknown.values().sum::<i32>();
        let told = format!("tools asked for: {all}; here {here}, with a role {by_role}, of servers {of_servers}");
        crate::testing::say(&told);
        let mut unknown: Vec<_> = unknown.into_iter().collect();
        unknown.sort_by_key(|(_, count)| -count);
        crate::testing::say(&format!("others: {:?}", unknown.iter().take(60).collect::<Vec<_>>()));
        assert!((here + by_role) * 3 >= all * 2, "{told}");
    }

    /// The names that one system has for the tools here.
    #[test]
    fn names_of_each_system_are_understood() {
        let systems: &[(&str, &str, &[&str])] = &[
            ("Claude Code", "Read NotebookRead", READ),
            ("Claude Code", "Glob LS", LIST),
            ("Claude Code", "Grep", SEARCH),
            ("VS Code", "read/readFile readFile view", READ),
            ("VS Code", "fileSearch search/fileSearch search/listDirectory listDirectory findTestFiles", LIST),
            ("VS Code", "textSearch search/textSearch usages search/usages semantic_search", SEARCH),
            ("VS Code", "codebase search/codebase", &["search_files", "list_files", "read_file"]),
            ("VS Code", "search search/*", &["search_files", "list_files"]),
            ("VS Code", "agent agent/runSubagent runSubagent", SPAWNING),
            ("opencode", "read", READ),
            ("opencode", "glob list", LIST),
            ("opencode", "grep codesearch", SEARCH),
            ("Gemini CLI", "read_file read_many_files ReadFile ReadManyFiles", READ),
            ("Gemini CLI", "glob list_directory FindFiles", LIST),
            ("Gemini CLI", "search_file_content grep_search SearchText", SEARCH),
            ("Cursor", "read_file", READ),
            ("Cursor", "list_dir file_search glob_file_search", LIST),
            ("Cursor", "grep grep_search codebase_search", SEARCH),
            ("Codex", "read_file", READ),
            ("Codex", "list_dir", LIST),
            ("Codex", "grep_files_no_such", &[]),
            ("Pi", "read", READ),
            ("Pi", "ls find", LIST),
            ("Pi", "grep", SEARCH),
            ("Amazon Q, Kiro", "fs_read read readFile", READ),
            ("Windsurf", "view_file view_file_outline", READ),
            ("Windsurf", "list_dir find_by_name", LIST),
            ("Windsurf", "grep_search codebase_search", SEARCH),
            ("Zed", "open read_file", READ),
            ("Zed", "find_path list_directory", LIST),
            ("Zed", "grep", SEARCH),
            ("Cline, Roo", "list_files", LIST),
            ("Cline, Roo", "search_files codebase_search", SEARCH),
            ("Cline, Roo", "ask_followup_question", ASKING),
            ("Claude Code, Gemini CLI, Codex", "AskUserQuestion ask_user request_user_input", ASKING),
            ("a server of that name", "github/search read_file/x github.search", &[]),
        ];
        for (system, names, tools) in systems {
            for name in names.split(' ') {
                assert_eq!(alias(name), *tools, "{name} of {system}");
            }
        }
    }
}
