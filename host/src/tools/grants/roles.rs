//! Names of other systems' tools that write, run or fetch: no tool of the host does, tool servers do.

use super::aliases::alone;
use crate::registry::fold;

/// Roles of tools of tool servers: it makes files.
pub(crate) const WRITE: &str = "write";
/// It changes files.
pub(crate) const EDIT: &str = "edit";
/// It runs commands.
pub(crate) const RUN: &str = "run";
/// It gets what a URL names.
pub(crate) const FETCH: &str = "fetch";
/// It asks a search engine.
pub(crate) const WEB_SEARCH: &str = "web_search";

const CHANGES: &[&str] = &[WRITE, EDIT];

/// The names, folded, and what a tool must do that stands in for them. A name that asks for less than such a tool can do,
/// as `runTests` does, is none of them: it stands in `foreign`.
const ROLES: &[(&str, &[&str])] = &[
    ("write", &[WRITE]),
    ("writefile", &[WRITE]),
    ("writetofile", &[WRITE]),
    ("fswrite", CHANGES),
    ("filewrite", &[WRITE]),
    ("savefile", &[WRITE]),
    ("createfile", &[WRITE]),
    ("newfile", &[WRITE]),
    ("edit", CHANGES),
    ("editfile", &[EDIT]),
    ("editfiles", CHANGES),
    ("fileedit", &[EDIT]),
    ("multiedit", &[EDIT]),
    ("replace", &[EDIT]),
    ("replaceinfile", &[EDIT]),
    ("replacestringinfile", &[EDIT]),
    ("multireplacestringinfile", &[EDIT]),
    ("replacefilecontent", &[EDIT]),
    ("insertcontent", &[EDIT]),
    ("inserteditintofile", &[EDIT]),
    ("strreplace", &[EDIT]),
    ("strreplaceeditor", CHANGES),
    ("strreplacebasededittool", CHANGES),
    ("searchreplace", &[EDIT]),
    ("searchandreplace", &[EDIT]),
    ("applydiff", &[EDIT]),
    ("applypatch", CHANGES),
    ("patch", &[EDIT]),
    ("notebookedit", &[EDIT]),
    ("editnotebook", &[EDIT]),
    ("editnotebookfile", &[EDIT]),
    ("texteditor", CHANGES),
    ("bash", &[RUN]),
    ("shell", &[RUN]),
    ("localshell", &[RUN]),
    ("shellcommand", &[RUN]),
    ("powershell", &[RUN]),
    ("terminal", &[RUN]),
    ("runterminalcmd", &[RUN]),
    ("runterminalcommand", &[RUN]),
    ("runinterminal", &[RUN]),
    ("runshellcommand", &[RUN]),
    ("runcommand", &[RUN]),
    ("runcommands", &[RUN]),
    ("execute", &[RUN]),
    ("executebash", &[RUN]),
    ("executecmd", &[RUN]),
    ("executecommand", &[RUN]),
    ("executeshell", &[RUN]),
    ("execcommand", &[RUN]),
    ("exec", &[RUN]),
    ("createandruntask", &[RUN]),
    ("fetch", &[FETCH]),
    ("webfetch", &[FETCH]),
    ("fetchcontent", &[FETCH]),
    ("fetchwebpage", &[FETCH]),
    ("readurlcontent", &[FETCH]),
    ("web", &[FETCH, WEB_SEARCH]),
    ("websearch", &[WEB_SEARCH]),
    ("searchweb", &[WEB_SEARCH]),
    ("googlesearch", &[WEB_SEARCH]),
    ("googlewebsearch", &[WEB_SEARCH]),
];

/// What a tool server's tool must do that stands in for `name`; none where it is no name of another system's tool that
/// writes, runs or fetches.
pub(crate) fn roles_of(name: &str) -> &'static [&'static str] {
    let wanted = fold(alone(name));
    ROLES.iter().find(|(known, _)| *known == wanted).map_or(&[], |(_, roles)| roles)
}

/// Why there is no tool behind `name`, and what brings one.
pub(crate) fn why_unavailable(name: &str) -> String {
    let preset = match roles_of(name) {
        [] => {
            return "no tool of this host has that name; [tool_aliases] in the configuration maps it to one".to_owned();
        }
        [WEB_SEARCH] => {
            return "the host itself does not search the web; a tool server in [mcp_servers] that does brings one, \
                    and [tool_aliases] maps this name to its tool"
                .to_owned();
        }
        roles if roles.contains(&RUN) => "shell",
        roles if roles.contains(&FETCH) => "fetch",
        _ => "filesystem",
    };
    format!(
        "the host itself only reads; tool_presets = [\"{preset}\"] in the configuration brings a tool server for it"
    )
}

#[cfg(test)]
mod tests {
    use super::super::aliases::alias;
    use super::*;

    #[test]
    fn names_are_folded_each_once_and_of_no_tool_here() {
        for (at, (name, _)) in ROLES.iter().enumerate() {
            assert!(fold(name) == *name && alias(name).is_empty(), "{name}");
            assert!(ROLES[..at].iter().all(|(other, _)| other != name), "{name} stands here twice");
        }
    }

    #[test]
    fn names_that_write_run_and_fetch_have_a_role() {
        let rows: &[(&str, &[&str])] = &[
            ("Write write_file edit/createFile write_to_file create_file", &[WRITE]),
            ("Edit fs_write edit/editFiles apply_patch text_editor", CHANGES),
            ("MultiEdit edit_file replace replace_in_file apply_diff", &[EDIT]),
            (
                "Bash bash shell run_shell_command run_in_terminal runCommands/runInTerminal execute execute_bash",
                &[RUN],
            ),
            ("execute/runInTerminal runCommands terminal execute_command run_terminal_cmd exec_command", &[RUN]),
            ("WebFetch fetch web/fetch web_fetch", &[FETCH]),
            ("web", &[FETCH, WEB_SEARCH]),
            ("WebSearch google_web_search web_search", &[WEB_SEARCH]),
            ("Read Grep problems github/fetch x__write runTests terminalLastCommand createDirectory", &[]),
        ];
        for (names, roles) in rows {
            for name in names.split(' ') {
                assert_eq!(roles_of(name), *roles, "{name}");
            }
        }
    }

    #[test]
    fn what_brings_a_tool_is_told() {
        for (names, told) in [
            ("Write Edit editFiles", "tool_presets = [\"filesystem\"]"),
            ("Bash execute", "tool_presets = [\"shell\"]"),
            ("WebFetch web", "tool_presets = [\"fetch\"]"),
            ("WebSearch", "[mcp_servers]"),
            ("problems", "[tool_aliases]"),
        ] {
            for name in names.split(' ') {
                assert!(why_unavailable(name).contains(told), "{name}");
            }
        }
    }
}
