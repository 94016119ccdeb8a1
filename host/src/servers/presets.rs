//! Well-kept servers that can be had by a name, and what the tools of these and of other known servers do.
//!
//! Other systems have Read, Write, Edit and Bash built in; here servers bring them. Which tool of which server stands
//! for which of these, and which argument holds the path or the command line, is what rules of permission go by.

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

/// What a tool does, and where that is told which file, command or address it does it with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Role {
    /// What it does.
    pub what: What,
    /// Names of arguments that hold the path, the command line or the address. A call may have several of them, and each
    /// counts; a value may be a list of such. Of [`What::Run`], those that a call has make up one command line in this
    /// order.
    pub arguments: &'static [&'static str],
}

/// A server that can be had by its name in `tool_presets`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// The name, of the preset and of the server.
    pub name: &'static str,
    /// The program and its arguments; `${PROJECT}` is the folder of the project, else the one that the host works in.
    pub command: &'static [&'static str],
    /// The folder that it runs in.
    pub cwd: &'static str,
    /// What it brings, for people.
    pub about: &'static str,
    tools: &'static [(&'static str, What, &'static [&'static str])],
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
        cwd: "${PROJECT}",
        about: "reads, writes, edits and searches files below the project's folder",
        tools: &[
            ("read_file", What::Read, &["path"]),
            ("read_text_file", What::Read, &["path"]),
            ("read_media_file", What::Read, &["path"]),
            ("read_multiple_files", What::Read, &["paths"]),
            ("get_file_info", What::Read, &["path"]),
            ("write_file", What::Write, &["path"]),
            ("create_directory", What::Write, &["path"]),
            ("move_file", What::Write, &["source", "destination"]),
            ("edit_file", What::Edit, &["path"]),
            ("list_directory", What::List, &["path"]),
            ("list_directory_with_sizes", What::List, &["path"]),
            ("directory_tree", What::List, &["path"]),
            ("list_allowed_directories", What::List, &[]),
            ("search_files", What::Search, &["path"]),
        ],
    },
    Preset {
        name: "shell",
        command: &["npx", "-y", "mcp-server-commands@0.5.0"],
        cwd: "${PROJECT}",
        about: "runs commands in the project's folder",
        tools: &[("run_command", What::Run, &["command"])],
    },
];

const PATHS: &[&str] = &[
    "path",
    "paths",
    "file",
    "files",
    "file_path",
    "filePath",
    "filepath",
    "filename",
    "absolute_path",
    "relative_path",
    "relative_workspace_path",
    "target_file",
    "target",
    "uri",
    "source",
    "destination",
    "old_path",
    "new_path",
    "from",
    "to",
];
const FOLDERS: &[&str] =
    &["path", "paths", "dir", "dir_path", "directory", "folder", "root", "relative_workspace_path", "target_directory"];
const COMMANDS: &[&str] =
    &["command", "cmd", "command_line", "commandLine", "script", "shell_command", "program", "argv", "args", "input"];
const ADDRESSES: &[&str] = &["url", "urls", "uri", "address", "href"];

/// Tools of other servers by their names, folded: what many servers call so does the same.
const KNOWN: &[(&str, Role)] = &{
    const fn role(what: What, arguments: &'static [&'static str]) -> Role {
        Role { what, arguments }
    }
    [
        ("appendfile", role(What::Edit, PATHS)),
        ("applydiff", role(What::Edit, PATHS)),
        ("applypatch", role(What::Edit, PATHS)),
        ("bash", role(What::Run, COMMANDS)),
        ("copyfile", role(What::Write, PATHS)),
        ("createdirectory", role(What::Write, PATHS)),
        ("createfile", role(What::Write, PATHS)),
        ("createtextfile", role(What::Write, PATHS)),
        ("deletefile", role(What::Write, PATHS)),
        ("deletepath", role(What::Write, PATHS)),
        ("directorytree", role(What::List, FOLDERS)),
        ("edit", role(What::Edit, PATHS)),
        ("editblock", role(What::Edit, PATHS)),
        ("editfile", role(What::Edit, PATHS)),
        ("exec", role(What::Run, COMMANDS)),
        ("execcommand", role(What::Run, COMMANDS)),
        ("execute", role(What::Run, COMMANDS)),
        ("executecommand", role(What::Run, COMMANDS)),
        ("executeshellcommand", role(What::Run, COMMANDS)),
        ("fetch", role(What::Fetch, ADDRESSES)),
        ("fetchurl", role(What::Fetch, ADDRESSES)),
        ("filesearch", role(What::Search, FOLDERS)),
        ("findfile", role(What::Search, FOLDERS)),
        ("findfiles", role(What::Search, FOLDERS)),
        ("getfilecontents", role(What::Read, PATHS)),
        ("getfileinfo", role(What::Read, PATHS)),
        ("glob", role(What::Search, FOLDERS)),
        ("grep", role(What::Search, FOLDERS)),
        ("insert", role(What::Edit, PATHS)),
        ("interactwithprocess", role(What::Run, COMMANDS)),
        ("listdir", role(What::List, FOLDERS)),
        ("listdirectory", role(What::List, FOLDERS)),
        ("listdirectorywithsizes", role(What::List, FOLDERS)),
        ("listfiles", role(What::List, FOLDERS)),
        ("ls", role(What::List, FOLDERS)),
        ("movefile", role(What::Write, PATHS)),
        ("multiedit", role(What::Edit, PATHS)),
        ("readfile", role(What::Read, PATHS)),
        ("readfiles", role(What::Read, PATHS)),
        ("readmediafile", role(What::Read, PATHS)),
        ("readmultiplefiles", role(What::Read, PATHS)),
        ("readtextfile", role(What::Read, PATHS)),
        ("removefile", role(What::Write, PATHS)),
        ("renamefile", role(What::Write, PATHS)),
        ("replaceinfile", role(What::Edit, PATHS)),
        ("run", role(What::Run, COMMANDS)),
        ("runcommand", role(What::Run, COMMANDS)),
        ("runinterminal", role(What::Run, COMMANDS)),
        ("runprocess", role(What::Run, COMMANDS)),
        ("runscript", role(What::Run, COMMANDS)),
        ("runshellcommand", role(What::Run, COMMANDS)),
        ("runterminalcmd", role(What::Run, COMMANDS)),
        ("searchcode", role(What::Search, FOLDERS)),
        ("searchfiles", role(What::Search, FOLDERS)),
        ("searchforpattern", role(What::Search, FOLDERS)),
        ("shell", role(What::Run, COMMANDS)),
        ("shellexec", role(What::Run, COMMANDS)),
        ("shellexecute", role(What::Run, COMMANDS)),
        ("startprocess", role(What::Run, COMMANDS)),
        ("strreplace", role(What::Edit, PATHS)),
        ("strreplacebasededittool", role(What::Edit, PATHS)),
        ("strreplaceeditor", role(What::Edit, PATHS)),
        ("terminal", role(What::Run, COMMANDS)),
        ("viewfile", role(What::Read, PATHS)),
        ("webfetch", role(What::Fetch, ADDRESSES)),
        ("write", role(What::Write, PATHS)),
        ("writefile", role(What::Write, PATHS)),
        ("writetofile", role(What::Write, PATHS)),
    ]
};

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
pub fn roles(server: &str, tool: &str) -> Option<Role> {
    let of_preset = preset(server).and_then(|preset| preset.tools.iter().find(|(name, ..)| *name == tool));
    if let Some((_, what, arguments)) = of_preset {
        // Another server under this name may have the command or the path in another argument.
        let known = known(tool).filter(|known| known.what == *what).map_or(*arguments, |known| known.arguments);
        return Some(Role { what: *what, arguments: if arguments.is_empty() { arguments } else { known } });
    }
    known(tool)
}

fn known(tool: &str) -> Option<Role> {
    let folded: String =
        tool.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect();
    KNOWN.iter().find(|(name, _)| *name == folded).map(|(_, role)| *role)
}

/// What each tool of a preset does, by its name: which presets bring what.
#[must_use]
pub fn brings(preset: &Preset) -> BTreeMap<&'static str, What> {
    preset.tools.iter().map(|(name, what, _)| (*name, *what)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(server: &str, tool: &str, what: Option<What>, argument: &str) {
        let found = roles(server, tool);
        assert_eq!(found.map(|role| role.what), what, "{server} {tool}");
        let has = found.is_none_or(|role| argument.is_empty() || role.arguments.contains(&argument));
        assert!(has, "{server} {tool}: {found:?}");
    }

    #[test]
    fn what_tools_do_is_known_by_their_names() {
        check("filesystem", "read_text_file", Some(What::Read), "path");
        check("filesystem", "read_multiple_files", Some(What::Read), "paths");
        check("filesystem", "move_file", Some(What::Write), "source");
        check("filesystem", "move_file", Some(What::Write), "destination");
        check("filesystem", "edit_file", Some(What::Edit), "path");
        check("filesystem", "list_allowed_directories", Some(What::List), "");
        check("filesystem", "unknown", None, "");
        check("shell", "run_command", Some(What::Run), "command");
        // What a person configures under a preset's name is no less watched.
        check("shell", "run_command", Some(What::Run), "cmd");
        check("db", "query", None, "");
        check("any", "executeCommand", Some(What::Run), "command");
        check("any", "run_shell_command", Some(What::Run), "cmd");
        check("any", "str-replace-editor", Some(What::Edit), "path");
        check("any", "fetch", Some(What::Fetch), "url");
    }

    #[test]
    fn the_table_can_be_looked_up() {
        for pair in KNOWN.windows(2) {
            assert!(pair[0].0 < pair[1].0, "{} stands before {}", pair[0].0, pair[1].0);
        }
        for preset in PRESETS {
            assert!(brings(preset).keys().all(|tool| roles(preset.name, tool).is_some()), "{}", preset.name);
        }
    }
}
