//! An assistant, as its file or its author defines it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::access::is_all;
use super::diagnostic::Diagnostic;
use super::dialect::Dialect;
use super::hash::sha256_hex;
use super::id::AssistantId;
use super::known::fold;
use super::rules::{Action, ToolRule};

/// What opencode has rules for and is no tool, folded.
const NO_TOOLS: &[&str] = &["doomloop", "externaldirectory"];

/// Where a definition comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A file of the project.
    Project,
    /// A file of the user.
    User,
    /// A folder that was named with `--assistants`.
    Dir,
    /// The database: made by the command line or an app.
    Database,
}

impl Source {
    /// Every source, in order of precedence.
    pub const ALL: [Self; 4] = [Self::Project, Self::User, Self::Dir, Self::Database];

    /// The name, as in JSON and in the database.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Dir => "dir",
            Self::Database => "database",
        }
    }
}

/// An assistant. A process keeps the one that it started with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// Its slug.
    pub id: AssistantId,
    /// The name that people see.
    pub name: String,
    /// When to use it, without its examples; empty where the author gave none.
    #[serde(default)]
    pub description: String,
    /// What the model is told first.
    pub system_prompt: String,
    /// The tools that it wants: null is no wish, an empty list is none at all. `*` is every one.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// Tools that it must not have, whatever `tools` says.
    #[serde(default)]
    pub disallowed_tools: Vec<String>,
    /// Tools for whose calls somebody has to be asked first, whatever `tools` says. Patterns as in `tools`.
    #[serde(default)]
    pub ask_tools: Vec<String>,
    /// Rules for calls of tools that it has, whose order counts: of those that fit, the last. What `disallowed_tools` and
    /// `ask_tools` say comes first.
    #[serde(default)]
    pub rules: Vec<ToolRule>,
    /// The models that it wishes for, best first; empty is the spawner's.
    #[serde(default)]
    pub model: Vec<String>,
    /// The name of the runner that it is for; none is that of whoever names none.
    #[serde(default)]
    pub runner: Option<String>,
    /// The name of the launcher that its runner is started by; none is that of whoever spawns it.
    #[serde(default)]
    pub launcher: Option<String>,
    /// Each run of it has a git worktree of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub worktree: bool,
    /// What it can be filtered by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Who may spawn it; null is no restriction.
    #[serde(default)]
    pub allowed_callers: Option<Vec<String>>,
    /// Whom it may spawn; null is no restriction.
    #[serde(default)]
    pub may_spawn: Option<Vec<String>>,
    /// It must change nothing: it has only tools that look.
    #[serde(default)]
    pub readonly: bool,
    /// Most model calls of a run.
    #[serde(default)]
    pub max_turns: Option<u32>,
    /// The longest that a run may take.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Whether it goes on with its last conversation; null where the author does not say.
    #[serde(default)]
    pub session: Option<bool>,
    /// The JSON schema that its result must fit, as written.
    #[serde(default)]
    pub output_schema: Option<Value>,
    /// Tool servers of its own, as written. Variables in it are not expanded.
    #[serde(default)]
    pub mcp_servers: Option<Value>,
    /// Keys that the host does not use, as written.
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// Tasks that the author gave as examples: what a user says.
    #[serde(default)]
    pub examples: Vec<String>,
    /// The system for which it is written.
    #[serde(default)]
    pub dialect: Dialect,
    /// Where it comes from.
    pub source: Source,
    /// Its file; of one that the database keeps, the file that it was brought in from.
    #[serde(default, serialize_with = "shown")]
    pub path: Option<PathBuf>,
    /// SHA-256 of its file's bytes, 64 hex digits.
    pub content_hash: String,
    /// What was found on reading it.
    #[serde(default)]
    pub warnings: Vec<Diagnostic>,
}

impl Definition {
    /// An assistant of this name and prompt, of which nothing else is known. Its id is made of the name, or of `fallback`
    /// where the name has nothing that an id can have; its content is the prompt.
    #[must_use]
    pub fn new(name: &str, fallback: &str, system_prompt: String, source: Source) -> Self {
        Self {
            id: AssistantId::from_name(name, fallback),
            name: name.to_owned(),
            description: String::new(),
            content_hash: sha256_hex(system_prompt.as_bytes()),
            system_prompt,
            tools: None,
            disallowed_tools: Vec::new(),
            ask_tools: Vec::new(),
            rules: Vec::new(),
            model: Vec::new(),
            runner: None,
            launcher: None,
            worktree: false,
            tags: Vec::new(),
            allowed_callers: None,
            may_spawn: None,
            readonly: false,
            max_turns: None,
            timeout_ms: None,
            session: None,
            output_schema: None,
            mcp_servers: None,
            extra: Map::new(),
            examples: Vec::new(),
            dialect: Dialect::default(),
            source,
            path: None,
            warnings: Vec::new(),
        }
    }

    /// The file that defines it; none where the database does.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.path.as_deref().filter(|_| self.source != Source::Database)
    }

    /// The file that the database's own was brought in from, perhaps gone; none where a file defines it.
    #[must_use]
    pub fn brought_from(&self) -> Option<&Path> {
        self.path.as_deref().filter(|_| self.source == Source::Database)
    }

    /// The tools that its rules let it call, all or some calls of them, where `tools` says nothing. A rule that only refuses
    /// gives none, and `*` is no word about any of them.
    pub(crate) fn given_by_rules(&self) -> Vec<String> {
        let refuses_all = |rule: &ToolRule| {
            rule.action == Action::Deny && rule.pattern.as_deref().is_none_or(|pattern| pattern == "*")
        };
        let gives = |rule: &&ToolRule| {
            let last = self.rules.iter().rev().find(|other| other.tool.eq_ignore_ascii_case(&rule.tool));
            let given = self.tools.is_none() && rule.action != Action::Deny && !last.is_some_and(refuses_all);
            given && !is_all(&rule.tool) && !NO_TOOLS.contains(&fold(&rule.tool).as_str())
        };
        let mut names: Vec<String> = Vec::new();
        for rule in self.rules.iter().filter(gives) {
            if !names.contains(&rule.tool) {
                names.push(rule.tool.clone());
            }
        }
        names
    }

    /// Where it is defined, for people: its file, or `the database`.
    #[must_use]
    pub fn place(&self) -> String {
        self.file().map_or_else(|| format!("the {}", self.source.label()), |path| path.display().to_string())
    }
}

impl Definition {
    /// Whether it comes from `source` and has all of `tags`, in any case.
    #[must_use]
    pub fn fits(&self, source: Option<Source>, tags: &[String]) -> bool {
        source.is_none_or(|source| self.source == source)
            && tags.iter().all(|tag| self.tags.iter().any(|own| own.to_lowercase() == tag.to_lowercase()))
    }
}

/// A path as people see it: JSON has no place for bytes that are no text.
pub(super) fn shown<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(serializer)
}
