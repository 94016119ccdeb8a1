//! Rules for some calls of a tool, and which argument of a tool a pattern behind its name is about.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::access::bare;
use super::known::fold;

/// What becomes of the calls that a rule fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// They are made.
    Allow,
    /// Somebody is asked first.
    Ask,
    /// They are refused.
    Deny,
}

impl Action {
    fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// One rule of several whose order counts: of those that fit a call, the last. `opencode` writes them so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRule {
    /// The tool, as the file names it; `*` is every one.
    pub tool: String,
    /// What its argument must be like, where the rule is for some calls only: `*` is any text, `?` one character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// What becomes of such a call.
    pub action: Action,
}

/// As it is written in a list of rules: `bash(git *): allow`.
impl fmt::Display for ToolRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            Some(pattern) => write!(f, "{}({pattern}): {}", self.tool, self.action.word()),
            None => write!(f, "{}: {}", self.tool, self.action.word()),
        }
    }
}

/// A text that is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a rule is written `tool: allow` or `tool(pattern): allow`, with `allow`, `ask` or `deny`")]
pub struct NoRule;

impl FromStr for ToolRule {
    type Err = NoRule;

    fn from_str(text: &str) -> Result<Self, NoRule> {
        let (what, word) = text.trim().rsplit_once(':').ok_or(NoRule)?;
        let action = match word.trim() {
            "allow" => Action::Allow,
            "ask" => Action::Ask,
            "deny" => Action::Deny,
            _ => return Err(NoRule),
        };
        let (tool, pattern) = match what.split_once('(') {
            Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').ok_or(NoRule)?.to_owned())),
            None => (what, None),
        };
        let tool = tool.trim().to_owned();
        if tool.is_empty() { Err(NoRule) } else { Ok(Self { tool, pattern, action }) }
    }
}

/// What a pattern in parentheses behind a tool's name is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The command that is run.
    Command,
    /// The file or folder that is looked at.
    ReadPath,
    /// The file or folder that is changed.
    WritePath,
    /// The address that is fetched.
    Url,
    /// The assistant that is spawned.
    Assistant,
}

/// Tools of other systems and of this host by what they are called with, folded.
const SUBJECTS: &[(Subject, &[&str])] = &[
    (
        Subject::Command,
        &[
            "bash",
            "createandruntask",
            "exec",
            "execcommand",
            "execute",
            "executebash",
            "executecmd",
            "executecommand",
            "executeshell",
            "localshell",
            "powershell",
            "runcommand",
            "runcommands",
            "runinterminal",
            "runshellcommand",
            "runterminalcmd",
            "runterminalcommand",
            "shell",
            "shellcommand",
            "terminal",
        ],
    ),
    (
        Subject::ReadPath,
        &[
            "cat",
            "codebase",
            "codebasesearch",
            "codesearch",
            "directorytree",
            "fileglob",
            "fileread",
            "filesearch",
            "find",
            "findbyname",
            "findfiles",
            "findpath",
            "findtestfiles",
            "fsread",
            "glob",
            "globfilesearch",
            "globsearch",
            "grep",
            "grepsearch",
            "greptool",
            "list",
            "listcodeusages",
            "listdir",
            "listdirectory",
            "listfiles",
            "ls",
            "notebookread",
            "open",
            "openfile",
            "read",
            "readfile",
            "readfiles",
            "readmanyfiles",
            "readmultiplefiles",
            "readnotebook",
            "readtextfile",
            "rg",
            "ripgrep",
            "search",
            "searchcode",
            "searchcodebase",
            "searchfilecontent",
            "searchfiles",
            "searchsymbol",
            "searchtext",
            "semanticsearch",
            "testsearch",
            "textsearch",
            "tree",
            "usages",
            "view",
            "viewfile",
            "viewfileoutline",
        ],
    ),
    (
        Subject::WritePath,
        &[
            "applydiff",
            "applypatch",
            "createfile",
            "edit",
            "editfile",
            "editfiles",
            "editnotebook",
            "editnotebookfile",
            "fileedit",
            "filewrite",
            "fswrite",
            "insertcontent",
            "inserteditintofile",
            "multiedit",
            "multireplacestringinfile",
            "newfile",
            "notebookedit",
            "patch",
            "replace",
            "replacefilecontent",
            "replaceinfile",
            "replacestringinfile",
            "savefile",
            "searchandreplace",
            "searchreplace",
            "strreplace",
            "strreplacebasededittool",
            "strreplaceeditor",
            "texteditor",
            "write",
            "writefile",
            "writetofile",
        ],
    ),
    (Subject::Url, &["fetch", "fetchcontent", "fetchwebpage", "readurlcontent", "web", "webfetch"]),
    (Subject::Assistant, &["agent", "runsubagent", "spawnassistant", "subagent", "task"]),
];

/// What a pattern behind the name `name` is about; none is nothing that this host knows of.
pub(crate) fn subject(name: &str) -> Option<Subject> {
    // What stands before is the set of tools that it is of: `edit/editFiles`.
    let name = bare(name);
    let folded = fold(name.rsplit_once('/').map_or(name, |(_, last)| last));
    SUBJECTS.iter().find(|(_, names)| names.contains(&folded.as_str())).map(|(subject, _)| *subject)
}

/// The pattern of a name such as `Bash(git log:*)`; none where it is for all calls, or where its parentheses are not those
/// of one pattern.
pub(crate) fn pattern(name: &str) -> Option<&str> {
    let (_, rest) = name.split_once('(')?;
    let pattern = rest.trim_end().strip_suffix(')')?.trim();
    (!matches!(pattern, "" | "*" | ":*" | "**")).then_some(pattern)
}

/// Whether `name` names some calls of a tool, and calls of it can be held to that.
pub(crate) fn is_held(name: &str) -> bool {
    pattern(name).is_some() && subject(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_read_as_they_are_written() {
        let check = |text: &str, written: Option<&str>| {
            let read = text.parse::<ToolRule>().ok().map(|rule| rule.to_string());
            assert_eq!(read.as_deref(), written, "{text}");
        };
        for same in ["bash(git *): allow", "*: ask", "webfetch(https://x.org/*): deny", "bash(a(b): c): ask"] {
            check(same, Some(same));
        }
        check(" edit :deny ", Some("edit: deny"));
        for none in ["bash", "bash: perhaps", ": allow", "bash(x: allow", ""] {
            check(none, None);
        }
    }

    #[test]
    fn what_patterns_are_about() {
        let check = |name: &str, want: Option<Subject>| assert_eq!(subject(name), want, "{name}");
        check("Bash(curl:*)", Some(Subject::Command));
        check("run_shell_command", Some(Subject::Command));
        check("Read(src/**)", Some(Subject::ReadPath));
        check("MultiEdit", Some(Subject::WritePath));
        check("WebFetch(domain:x)", Some(Subject::Url));
        check("Agent(x)", Some(Subject::Assistant));
        check("mcp__x__y(z)", None);
        assert_eq!(
            (is_held("Bash(*)"), is_held("Bash(x"), is_held("Skill(x)"), is_held("Bash(x)")),
            (false, false, false, true)
        );
    }
}
