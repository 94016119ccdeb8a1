//! Whose file it is: by its path, else by the keys that only one system knows.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::known;
use super::yaml::Entry;

macro_rules! dialects {
    ($($(#[doc = $doc:literal])* $name:ident $people:literal;)*) => {
        /// The system for which a definition is written.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Dialect {
            /// Markdown with frontmatter that nothing marks as one system's.
            #[default]
            Markdown,
            $($(#[doc = $doc])* $name,)*
        }

        impl Dialect {
            /// Every dialect that keys can tell, in the order in which a tie is broken.
            const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name for people.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { Self::Markdown => "Markdown", $(Self::$name => $people,)* }
            }
        }
    };
}

dialects! {
    /// `agents/NAME/agent.md`.
    AgentMd "agent.md";
    /// `.claude/agents`.
    Claude "Claude Code";
    /// `.github/agents`, `x.agent.md`, `x.chatmode.md`.
    Copilot "Copilot";
    /// `.opencode/agents`, and `agent`, `mode`, `modes` beside it.
    Opencode "opencode";
    /// `.gemini/agents`.
    Gemini "Gemini CLI";
    /// `.cursor/agents`.
    Cursor "Cursor";
    /// `.codex/agents`: TOML.
    Codex "Codex";
    /// A recipe in YAML or JSON.
    GooseRecipe "goose recipe";
    /// `.goose/agents`.
    GooseAgent "goose";
    /// `.pi/agents`.
    Pi "Pi";
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Frontmatter and a body.
    Markdown,
    /// Keys and values.
    Toml,
    /// Keys and values, in YAML or JSON.
    Data,
}

/// Endings of files that may be definitions, in lower case.
const ENDINGS: &[(&str, Format)] = &[
    ("md", Format::Markdown),
    ("toml", Format::Toml),
    ("yaml", Format::Data),
    ("yml", Format::Data),
    ("json", Format::Data),
    ("jsonc", Format::Data),
];

/// Two folders, one in the other, that belong to one system. The innermost pair of a path counts.
const FOLDERS: &[(&str, &[&str], Dialect)] = &[
    (".claude", &["agents"], Dialect::Claude),
    (".github", &["agents", "chatmodes"], Dialect::Copilot),
    (".opencode", &["agents", "agent", "modes", "mode"], Dialect::Opencode),
    ("opencode", &["agents", "agent", "modes", "mode"], Dialect::Opencode),
    (".gemini", &["agents"], Dialect::Gemini),
    (".cursor", &["agents"], Dialect::Cursor),
    (".codex", &["agents"], Dialect::Codex),
    (".goose", &["agents"], Dialect::GooseAgent),
    ("goose", &["agents"], Dialect::GooseAgent),
    (".goose", &["recipes"], Dialect::GooseRecipe),
    ("goose", &["recipes"], Dialect::GooseRecipe),
    (".pi", &["agents", "agent"], Dialect::Pi),
];

/// How the file at `path` is written, by its ending; none where no definition is written so.
pub(super) fn format(path: &Path) -> Option<Format> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, format)| *format)
}

/// Whether a file of the name `name` may be a definition; what it holds decides.
pub(super) fn is_candidate(name: &str) -> bool {
    format(Path::new(name)).is_some()
}

/// The dialect that a path tells, and below which of its folders the file lies: the parts of its path from there on.
fn placed(path: &Path) -> Option<(Dialect, Vec<String>)> {
    let parts: Vec<String> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let mut pairs = parts.windows(2).enumerate().rev().filter(|(at, _)| at + 2 < parts.len());
    pairs.find_map(|(at, pair)| {
        let found = FOLDERS.iter().find(|(outer, inner, _)| pair[0] == *outer && inner.contains(&pair[1].as_str()))?;
        Some((found.2, parts[at + 2..].to_vec()))
    })
}

impl Dialect {
    /// The dialect that the place and the name of a file tell.
    #[must_use]
    pub fn of_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().to_lowercase();
        match placed(path) {
            // A goose recipe may lie anywhere, and no other system of these folders has agents in YAML or JSON.
            Some((dialect, _)) if dialect != Self::GooseRecipe || format(path) == Some(Format::Data) => Some(dialect),
            _ if name.ends_with(".agent.md") || name.ends_with(".chatmode.md") => Some(Self::Copilot),
            _ if name == "agent.md" => Some(Self::AgentMd),
            _ => None,
        }
    }

    /// The dialect that most of the keys that only one system knows belong to.
    pub(super) fn of_keys(entries: &[Entry]) -> Option<Self> {
        let votes: Vec<Self> = entries.iter().filter_map(|entry| known::only_of(&known::fold(&entry.key))).collect();
        let count = |dialect: &Self| votes.iter().filter(|vote| *vote == dialect).count();
        // `max_by_key` takes the last of equals.
        Self::ALL.iter().rev().copied().max_by_key(count).filter(|dialect| count(dialect) > 0)
    }
}

/// The name that a path gives: `x.md`, `x.agent.md` and `x/agent.md` are all `x`; opencode counts the folders too.
pub(super) fn stem(path: &Path) -> String {
    let text =
        |part: Option<&std::ffi::OsStr>| part.map(|part| part.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = text(path.file_stem());
    let stem = stem.strip_suffix(".agent").or_else(|| stem.strip_suffix(".chatmode")).unwrap_or(&stem).to_owned();
    if let Some((Dialect::Opencode, below)) = placed(path)
        && let [folders @ .., _] = below.as_slice()
        && !folders.is_empty()
    {
        return format!("{}/{stem}", folders.join("/"));
    }
    match path.parent() {
        Some(folder) if stem.eq_ignore_ascii_case("agent") && folder.file_name().is_some() => text(folder.file_name()),
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::super::yaml;
    use super::*;

    #[test]
    fn paths_tell_dialect_and_name() {
        let check = |path: &str, dialect: Option<Dialect>, name: &str| {
            assert_eq!((Dialect::of_path(Path::new(path)), stem(Path::new(path)).as_str()), (dialect, name), "{path}");
        };
        check("/p/.claude/agents/deep/x.md", Some(Dialect::Claude), "x");
        check("/p/.github/agents/x.agent.md", Some(Dialect::Copilot), "x");
        check("/p/.github/agents/x.md", Some(Dialect::Copilot), "x");
        check("/p/x.chatmode.md", Some(Dialect::Copilot), "x");
        check("/p/agents/x/agent.md", Some(Dialect::AgentMd), "x");
        check("/p/.opencode/agents/review/security.md", Some(Dialect::Opencode), "review/security");
        check("/p/.opencode/mode/x.md", Some(Dialect::Opencode), "x");
        check("/home/.config/opencode/agent/a/b/c.md", Some(Dialect::Opencode), "a/b/c");
        check("/p/.gemini/agents/x.md", Some(Dialect::Gemini), "x");
        check("/p/.cursor/agents/x.md", Some(Dialect::Cursor), "x");
        check("/p/.codex/agents/deep/x.toml", Some(Dialect::Codex), "x");
        check("/p/.goose/recipes/x.yaml", Some(Dialect::GooseRecipe), "x");
        check("/p/goose/recipes/x.md", None, "x");
        check("/p/.pi/agents/x.md", Some(Dialect::Pi), "x");
        check("/p/.agents/agents/x.md", None, "x");
        check("/p/.claude/agents/.opencode/agents/x.md", Some(Dialect::Opencode), "x");
        check("/p/.claude/x.md", None, "x");
        check("x.md", None, "x");
        check("agent.md", Some(Dialect::AgentMd), "agent");
    }

    #[test]
    fn keys_tell_a_dialect() {
        let check = |text: &str, dialect: Option<Dialect>| {
            assert_eq!(Dialect::of_keys(&yaml::entries(text).expect("YAML")), dialect, "{text}");
        };
        check("name: x\ndescription: y\ntools: Read", None);
        check("permissionMode: plan", Some(Dialect::Claude));
        check("allowed_callers: [main]", Some(Dialect::AgentMd));
        check("argument-hint: x\nuser-invocable: true\nmemory: user", Some(Dialect::Copilot));
        check("permission: {edit: deny}", Some(Dialect::Opencode));
        check("display_name: x", Some(Dialect::Gemini));
        check("readonly: true", Some(Dialect::Cursor));
        check("developer_instructions: x", Some(Dialect::Codex));
        check("systemPromptMode: append", Some(Dialect::Pi));
        check("sub_recipes: []", Some(Dialect::GooseRecipe));
    }

    #[test]
    fn candidates() {
        let names = ["a.md", "A.MD", "a.toml", "a.yaml", "a.yml", "a.json", "a.csv", "a.txt", "a", "md"];
        let found: Vec<&str> = names.into_iter().filter(|name| is_candidate(name)).collect();
        assert_eq!(found, ["a.md", "A.MD", "a.toml", "a.yaml", "a.yml", "a.json"]);
    }
}
