//! Well-kept servers that can be had by a name, and what the tools of these and of other known servers do.
//!
//! Other systems have Read, Write, Edit and Bash built in; here servers bring them. Which tool of which server stands
//! for which of these is what rules of permission go by.

use std::collections::BTreeMap;

/// What a tool does, in the words of rules: `Bash(git:*)` is about [`What::Run`], `Edit(src/**)` about [`What::Edit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Gives what is in a file.
    Read,
    /// Makes a file or a folder, replaces, moves or removes one.
    Write,
    /// Changes a part of a file.
    Edit,
    /// Tells what there is in a folder.
    List,
    /// Looks for text or names in files.
    Search,
    /// Runs a command.
    Run,
    /// Gets what is at an address of the web.
    Fetch,
}

/// A server that can be had by its name in `tool_presets`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// The name, of the preset and of the server.
    pub name: &'static str,
    /// The program and its arguments; `${PROJECT}` is the folder of the project, else the one that the host works in.
    pub command: &'static [&'static str],
    /// Whether one serves all assistants, in the folder of the project. Else each has its own, in the folder of its run, and
    /// what that does ends with the run.
    pub shared: bool,
    tools: &'static [(&'static str, What)],
}

/// All presets.
///
/// * `filesystem` is the reference server of the Model Context Protocol project: it takes the folders that it may touch
///   as arguments, and refuses all paths outside of them, symbolic links followed.
/// * `shell` is `mcp-server-commands`: one tool, `run_command`, that takes a command line as Bash of other systems does,
///   and gives back the exit code and both outputs. Of the others that were tried, `mcp-shell-server` (PyPI) takes no
///   command lines but lists of words without a shell, and `@wonderwhy-er/desktop-commander` brings 26 tools and 271 MB.
///
/// The versions are pinned: what runs on a machine changes with a release of this program, not overnight.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "filesystem",
        command: &["npx", "-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "${PROJECT}"],
        shared: true,
        tools: &[
            ("read_file", What::Read),
            ("read_text_file", What::Read),
            ("read_media_file", What::Read),
            ("read_multiple_files", What::Read),
            ("get_file_info", What::Read),
            ("write_file", What::Write),
            ("create_directory", What::Write),
            ("move_file", What::Write),
            ("edit_file", What::Edit),
            ("list_directory", What::List),
            ("list_directory_with_sizes", What::List),
            ("directory_tree", What::List),
            ("list_allowed_directories", What::List),
            ("search_files", What::Search),
        ],
    },
    Preset {
        name: "shell",
        command: &["npx", "-y", "mcp-server-commands@0.5.0"],
        // It heeds no cancellation: a command ends with the server that it was given to.
        shared: false,
        tools: &[("run_command", What::Run)],
    },
];

/// Tools of other servers by their names, folded: what many servers call so does the same.
const KNOWN: &[(&str, What)] = &[
    ("appendfile", What::Edit),
    ("applydiff", What::Edit),
    ("applypatch", What::Edit),
    ("bash", What::Run),
    ("copyfile", What::Write),
    ("createdirectory", What::Write),
    ("createfile", What::Write),
    ("createtextfile", What::Write),
    ("deletefile", What::Write),
    ("deletepath", What::Write),
    ("directorytree", What::List),
    ("edit", What::Edit),
    ("editblock", What::Edit),
    ("editfile", What::Edit),
    ("exec", What::Run),
    ("execcommand", What::Run),
    ("execute", What::Run),
    ("executecommand", What::Run),
    ("executeshellcommand", What::Run),
    ("fetch", What::Fetch),
    ("fetchurl", What::Fetch),
    ("filesearch", What::Search),
    ("findfile", What::Search),
    ("findfiles", What::Search),
    ("getfilecontents", What::Read),
    ("getfileinfo", What::Read),
    ("glob", What::Search),
    ("grep", What::Search),
    ("insert", What::Edit),
    ("interactwithprocess", What::Run),
    ("listdir", What::List),
    ("listdirectory", What::List),
    ("listdirectorywithsizes", What::List),
    ("listfiles", What::List),
    ("ls", What::List),
    ("movefile", What::Write),
    ("multiedit", What::Edit),
    ("readfile", What::Read),
    ("readfiles", What::Read),
    ("readmediafile", What::Read),
    ("readmultiplefiles", What::Read),
    ("readtextfile", What::Read),
    ("removefile", What::Write),
    ("renamefile", What::Write),
    ("replaceinfile", What::Edit),
    ("run", What::Run),
    ("runcommand", What::Run),
    ("runinterminal", What::Run),
    ("runprocess", What::Run),
    ("runscript", What::Run),
    ("runshellcommand", What::Run),
    ("runterminalcmd", What::Run),
    ("searchcode", What::Search),
    ("searchfiles", What::Search),
    ("searchforpattern", What::Search),
    ("shell", What::Run),
    ("shellexec", What::Run),
    ("shellexecute", What::Run),
    ("startprocess", What::Run),
    ("strreplace", What::Edit),
    ("strreplacebasededittool", What::Edit),
    ("strreplaceeditor", What::Edit),
    ("terminal", What::Run),
    ("viewfile", What::Read),
    ("webfetch", What::Fetch),
    ("write", What::Write),
    ("writefile", What::Write),
    ("writetofile", What::Write),
];

/// The preset of this name.
#[must_use]
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// The names of all presets, for messages.
#[must_use]
pub fn names() -> String {
    PRESETS.iter().map(|preset| format!("`{}`", preset.name)).collect::<Vec<_>>().join(", ")
}

/// What the tool `tool` of the server `server` does, where that is known. A server that has the name of a preset and is
/// another one is known by the names of its tools only.
#[must_use]
pub fn role(server: &str, tool: &str) -> Option<What> {
    let of_preset = preset(server).and_then(|preset| preset.tools.iter().find(|(name, _)| *name == tool));
    of_preset.map(|(_, what)| *what).or_else(|| {
        let signs = tool.chars().filter(char::is_ascii_alphanumeric);
        let folded: String = signs.map(|letter| letter.to_ascii_lowercase()).collect();
        KNOWN.iter().find(|(name, _)| *name == folded).map(|(_, what)| *what)
    })
}

/// What each tool of a preset does, by its name: which presets bring what.
#[must_use]
pub fn brings(preset: &Preset) -> BTreeMap<&'static str, What> {
    preset.tools.iter().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tools_do_is_known_by_their_names() {
        let check = |server: &str, tool: &str, what: Option<What>| {
            assert_eq!(role(server, tool), what, "{server} {tool}");
        };
        check("filesystem", "read_text_file", Some(What::Read));
        check("filesystem", "move_file", Some(What::Write));
        check("filesystem", "edit_file", Some(What::Edit));
        check("filesystem", "list_allowed_directories", Some(What::List));
        check("filesystem", "unknown", None);
        check("shell", "run_command", Some(What::Run));
        // What a person configures under a preset's name is no less watched.
        check("shell", "executeCommand", Some(What::Run));
        check("db", "query", None);
        check("any", "executeCommand", Some(What::Run));
        check("any", "str-replace-editor", Some(What::Edit));
        check("any", "fetch", Some(What::Fetch));
    }

    #[test]
    fn the_table_can_be_looked_up() {
        for pair in KNOWN.windows(2) {
            assert!(pair[0].0 < pair[1].0, "{} stands before {}", pair[0].0, pair[1].0);
        }
        for preset in PRESETS {
            assert!(brings(preset).keys().all(|tool| role(preset.name, tool).is_some()), "{}", preset.name);
        }
    }
}
