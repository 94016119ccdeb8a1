//! Where assistants are read from: the places of each system, and their precedence.

use std::path::{Path, PathBuf};

use super::definition::Source;
use super::dialect;

/// Folders that are never entered.
const FOLDERS_SKIPPED: &[&str] = &[".git", "node_modules"];
/// Where systems keep their agents, below a project and below a home, in order of precedence.
const FOLDERS: &[&str] = &[
    ".agents/agents",
    ".claude/agents",
    ".github/agents",
    ".cursor/agents",
    ".opencode/agents",
    ".gemini/agents",
    ".codex/agents",
    ".goose/agents",
    ".pi/agents",
    ".opencode/agent",
    ".opencode/modes",
    ".opencode/mode",
];
/// The same, below a project only.
const FOLDERS_OF_PROJECTS: &[&str] = &[".github/chatmodes", ".goose/recipes"];
/// The same, below a home only.
const FOLDERS_OF_HOMES: &[&str] = &[
    ".config/opencode/agents",
    ".config/opencode/agent",
    ".config/opencode/modes",
    ".config/opencode/mode",
    ".config/goose/agents",
    ".config/goose/recipes",
    ".pi/agent/agents",
];

/// Which files of a folder are definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Every Markdown, TOML, YAML and JSON file at any depth.
    Files,
    /// `NAME/agent.md` only; `main` is the session's own.
    Folders,
}

impl Layout {
    /// Whether a folder `name` is looked into, `depth` folders below the source.
    pub(crate) fn enters(self, name: &str, depth: usize) -> bool {
        let there = match self {
            Self::Files => true,
            Self::Folders => depth == 0,
        };
        there && !FOLDERS_SKIPPED.contains(&name)
    }

    /// Whether a file `name` is read, `depth` folders below the source.
    pub(crate) fn takes(self, name: &str, depth: usize) -> bool {
        let name = name.to_lowercase();
        match self {
            Self::Files => !name.starts_with('.') && dialect::is_candidate(&name),
            Self::Folders => depth == 1 && name == "agent.md",
        }
    }
}

/// A folder with definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceDir {
    /// What it is to the user.
    pub source: Source,
    /// The folder.
    pub path: PathBuf,
    /// Which of its files count.
    pub layout: Layout,
    /// Whether it must be there.
    pub required: bool,
}

/// The folders to read, first in precedence first.
///
/// `dirs` replace all others. Without them: the project's, then the user's below `home`, then `assistants` below
/// `config_dir`. A folder that is named twice counts once; one that is reached by two names is read once.
#[must_use]
pub fn sources(
    project: Option<&Path>,
    home: Option<&Path>,
    config_dir: Option<&Path>,
    dirs: &[PathBuf],
) -> Vec<SourceDir> {
    let mut found: Vec<SourceDir> = Vec::new();
    let mut add = |source, path: PathBuf, layout| {
        let required = source == Source::Dir;
        if !found.iter().any(|known| known.path == path && known.layout == layout) {
            found.push(SourceDir { source, path, layout, required });
        }
    };
    for dir in dirs {
        add(Source::Dir, dir.clone(), Layout::Files);
    }
    if !dirs.is_empty() {
        return found;
    }
    for (source, root, more) in
        [(Source::Project, project, FOLDERS_OF_PROJECTS), (Source::User, home, FOLDERS_OF_HOMES)]
    {
        let Some(root) = root else { continue };
        FOLDERS.iter().chain(more).for_each(|folder| add(source, root.join(folder), Layout::Files));
        add(source, root.join("agents"), Layout::Folders);
    }
    if let Some(config_dir) = config_dir {
        add(Source::User, config_dir.join("assistants"), Layout::Files);
    }
    found
}

/// The places of agents that there are in `folder`, if it is a project: none where it has no place of a system. A folder
/// `agents` alone makes no project: collections have one too.
#[must_use]
pub fn places_in(folder: &Path) -> Vec<SourceDir> {
    let there: Vec<_> = sources(Some(folder), None, None, &[]).into_iter().filter(|dir| dir.path.is_dir()).collect();
    if there.iter().any(|dir| dir.layout == Layout::Files) { there } else { Vec::new() }
}
