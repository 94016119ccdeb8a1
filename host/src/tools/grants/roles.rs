//! Names of other systems' tools that write, run or fetch: no tool of the host does, tool servers do.

use super::aliases::alone;
use crate::registry::fold;
use crate::servers::presets::{self, PRESETS, What};

const WRITE: &[What] = &[What::Write];
const EDIT: &[What] = &[What::Edit];
const RUN: &[What] = &[What::Run];
const FETCH: &[What] = &[What::Fetch];
const CHANGES: &[What] = &[What::Write, What::Edit];

/// The names, folded, and what a tool must do that stands in for them. A name that asks for less than such a tool can do,
/// as `runTests` does, is none of them: it stands in `foreign`.
const ROLES: &[(&str, &[What])] = &[
    ("write", WRITE),
    ("writefile", WRITE),
    ("writetofile", WRITE),
    ("fswrite", CHANGES),
    ("filewrite", WRITE),
    ("savefile", WRITE),
    ("createfile", WRITE),
    ("newfile", WRITE),
    ("edit", CHANGES),
    ("editfile", EDIT),
    ("editfiles", CHANGES),
    ("fileedit", EDIT),
    ("multiedit", EDIT),
    ("replace", EDIT),
    ("replaceinfile", EDIT),
    ("replacestringinfile", EDIT),
    ("multireplacestringinfile", EDIT),
    ("replacefilecontent", EDIT),
    ("insertcontent", EDIT),
    ("inserteditintofile", EDIT),
    ("strreplace", EDIT),
    ("strreplaceeditor", CHANGES),
    ("strreplacebasededittool", CHANGES),
    ("searchreplace", EDIT),
    ("searchandreplace", EDIT),
    ("applydiff", EDIT),
    ("applypatch", CHANGES),
    ("patch", EDIT),
    ("notebookedit", EDIT),
    ("editnotebook", EDIT),
    ("editnotebookfile", EDIT),
    ("texteditor", CHANGES),
    ("bash", RUN),
    ("shell", RUN),
    ("localshell", RUN),
    ("shellcommand", RUN),
    ("powershell", RUN),
    ("terminal", RUN),
    ("runterminalcmd", RUN),
    ("runterminalcommand", RUN),
    ("runinterminal", RUN),
    ("runshellcommand", RUN),
    ("runcommand", RUN),
    ("runcommands", RUN),
    ("execute", RUN),
    ("executebash", RUN),
    ("executecmd", RUN),
    ("executecommand", RUN),
    ("executeshell", RUN),
    ("execcommand", RUN),
    ("exec", RUN),
    ("createandruntask", RUN),
    ("fetch", FETCH),
    ("webfetch", FETCH),
    ("fetchcontent", FETCH),
    ("fetchwebpage", FETCH),
    ("readurlcontent", FETCH),
    ("web", FETCH),
];

/// What a tool of a tool server must do that stands in for `name`; nothing where that is no name of another system's tool
/// that writes, runs or fetches.
pub(crate) fn roles_of(name: &str) -> &'static [What] {
    let wanted = fold(alone(name));
    ROLES.iter().find(|(known, _)| *known == wanted).map_or(&[], |(_, roles)| roles)
}

/// Why there is no tool behind `name`, and what brings one.
pub(crate) fn why_unavailable(name: &str) -> String {
    let roles = roles_of(name);
    let brings = |preset: &presets::Preset| presets::brings(preset).values().any(|what| roles.contains(what));
    match PRESETS.iter().find(|preset| brings(preset)) {
        Some(preset) => format!(
            "the host itself only reads; tool_presets = [\"{}\"] in the configuration brings a tool server for it",
            preset.name
        ),
        None if roles.is_empty() => {
            "no tool of this host has that name; [tool_aliases] in the configuration maps it to one".to_owned()
        }
        None => "the host itself only reads files; a tool server in [mcp_servers] of the configuration brings it, and \
                 [tool_aliases] maps this name to its tool"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::aliases::{ALIASES, alias};
    use super::*;
    use crate::registry::{Subject, subject};

    #[test]
    fn names_are_folded_each_once_and_of_no_tool_here() {
        for (at, (name, _)) in ROLES.iter().enumerate() {
            assert!(fold(name) == *name && alias(name).is_empty(), "{name}");
            assert!(ROLES[..at].iter().all(|(other, _)| other != name), "{name} stands here twice");
        }
    }

    /// Patterns behind a name are about what a tool of that name does.
    #[test]
    fn names_have_the_subject_of_what_they_do() {
        for (name, roles) in ROLES {
            let about = match roles[0] {
                What::Run => Subject::Command,
                What::Fetch => Subject::Url,
                What::Write | What::Edit => Subject::WritePath,
                What::Read | What::List | What::Search => Subject::ReadPath,
            };
            assert_eq!(subject(name), Some(about), "{name}");
        }
        for (name, tools) in ALIASES.iter().filter(|(_, tools)| tools.iter().any(|tool| tool.ends_with("_file"))) {
            assert_eq!(subject(name).is_some(), !matches!(*name, "*" | "all"), "{name} {tools:?}");
        }
        assert_eq!(subject("edit/editFiles"), Some(Subject::WritePath));
        assert_eq!(subject("search/textSearch"), Some(Subject::ReadPath));
    }

    #[test]
    fn names_that_write_run_and_fetch_have_a_role() {
        let rows: &[(&str, &[What])] = &[
            ("Write write_file edit/createFile write_to_file create_file", WRITE),
            ("Edit fs_write edit/editFiles apply_patch text_editor", CHANGES),
            ("MultiEdit edit_file replace replace_in_file apply_diff", EDIT),
            ("Bash bash shell run_shell_command run_in_terminal runCommands/runInTerminal execute execute_bash", RUN),
            ("execute/runInTerminal runCommands terminal execute_command run_terminal_cmd exec_command", RUN),
            ("WebFetch fetch web/fetch web_fetch web", FETCH),
            ("web", FETCH),
            ("Read Grep WebSearch problems github/fetch x__write runTests terminalLastCommand createDirectory", &[]),
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
            ("WebFetch web", "[mcp_servers]"),
            ("WebSearch problems", "[tool_aliases]"),
        ] {
            for name in names.split(' ') {
                assert!(why_unavailable(name).contains(told), "{name}");
            }
        }
    }
}
