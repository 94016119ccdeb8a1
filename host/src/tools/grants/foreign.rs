//! Tools that other systems have and this host has not: known, so that a name of one is no misspelling.
//! Those that write, run or fetch stand in `roles`.

use super::roles::roles_of;
use crate::registry::fold;

/// Their names, folded, without the set of tools before one. From the manuals of Claude Code, Codex, Copilot, Cursor, Gemini CLI,
/// goose, opencode, Pi and Cline, and from what public collections of definitions ask for.
const NAMES: &[&str] = &[
    "accessmcpresource",
    "activateskill",
    "activepullrequest",
    "addissuecomment",
    "attemptcompletion",
    "awaitterminal",
    "bashoutput",
    "browser",
    "browseraction",
    "changes",
    "closeagent",
    "computercontroller",
    "configurepythonenvironment",
    "context7",
    "copilotcodingagent",
    "createdirectory",
    "createissue",
    "createjupyternotebook",
    "croncreate",
    "crondelete",
    "cronlist",
    "database",
    "delegate",
    "deletefile",
    "developer",
    "doomloop",
    "enterplanmode",
    "enterworktree",
    "exitplanmode",
    "exitworktree",
    "extensions",
    "externaldirectory",
    "getinternaldocs",
    "getissue",
    "getnotebooksummary",
    "getprojectsetupinfo",
    "getpythonenvironmentinfo",
    "getpythonexecutablecommand",
    "gettaskoutput",
    "getterminaloutput",
    "github",
    "githubrepo",
    "googlesearch",
    "googlewebsearch",
    "installextension",
    "installpythonpackage",
    "killbash",
    "killshell",
    "killterminal",
    "listcodedefinitionnames",
    "listissues",
    "listmcpresourcestool",
    "lsp",
    "memory",
    "monitor",
    "new",
    "newjupyternotebook",
    "newtask",
    "newworkspace",
    "opensimplebrowser",
    "planenter",
    "planexit",
    "problems",
    "readlints",
    "readmcpresourcetool",
    "readnotebookcelloutput",
    "rename",
    "resumeagent",
    "runnotebookcell",
    "runnotebooks",
    "runtask",
    "runtasks",
    "runtests",
    "savememory",
    "searchissues",
    "searchresults",
    "searchweb",
    "sendinput",
    "skill",
    "slashcommand",
    "spawnagent",
    "subagent",
    "switchmode",
    "taskcreate",
    "taskget",
    "tasklist",
    "taskoutput",
    "taskstop",
    "taskupdate",
    "teamcreate",
    "teamdelete",
    "terminalcommand",
    "terminallastcommand",
    "terminalselection",
    "terraform",
    "testfailure",
    "think",
    "todo",
    "todoread",
    "todos",
    "todowrite",
    "toolsearch",
    "updateissue",
    "updateplan",
    "usemcptool",
    "viewimage",
    "vscode",
    "vscodeapi",
    "waitagent",
    "websearch",
    "writestdin",
    "writetodos",
];

/// Whether `name` is that of a tool of another system, alone or behind that of a set or server.
pub(crate) fn is_foreign(name: &str) -> bool {
    let last = name.rsplit(['/', '.']).next().unwrap_or(name);
    let known = |name: &str| NAMES.binary_search(&fold(name).as_str()).is_ok() || !roles_of(name).is_empty();
    known(name) || known(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    #[test]
    fn names_are_folded_sorted_and_of_no_tool_here() {
        assert!(NAMES.windows(2).all(|pair| pair[0] < pair[1]));
        let table = crate::tools::table(&Limits::default());
        for name in NAMES {
            assert!(super::super::alias(name).is_empty() && roles_of(name).is_empty(), "{name} is known elsewhere");
            assert!(fold(name) == *name && !table.iter().any(|tool| fold(&tool.name) == *name), "{name}");
        }
    }

    #[test]
    fn names_of_other_systems() {
        for name in
            ["NotebookEdit", "write_file", "edit/editFiles", "google_web_search", "Todo-Write", "vscode/runCommand"]
        {
            assert!(is_foreign(name), "{name}");
        }
        for name in ["NotebookEdits", "raed_file", "", "/", "read_file"] {
            assert!(!is_foreign(name), "{name}");
        }
    }
}
