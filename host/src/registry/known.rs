//! The keys that are known, in any spelling: what each means here, and whose they are.

use super::dialect::Dialect::{self, *};
use super::meant;

/// What a key means to this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// The name, which gives the id.
    Name,
    /// A name for people.
    Display,
    /// When to use it.
    Description,
    /// The system prompt, or a part of it.
    Prompt,
    /// Tools that it wants.
    Tools,
    /// Services whose tools it has besides.
    Services,
    /// Tools that it must not have.
    Denied,
    /// Tools for whose calls somebody is asked first.
    Asked,
    /// Rules for calls of tools, in an order that counts.
    Rules,
    /// Tools to which it is restricted, or those from which: nobody can tell.
    Unclear,
    /// Tools allowed and denied, or a rule for each.
    Permissions,
    /// A word for what it may do without being asked.
    Mode,
    /// Whom it is for: people, or other assistants too.
    Role,
    /// Whether it must change nothing.
    Readonly,
    /// Who may spawn it.
    Callers,
    /// Whom it may spawn.
    Agents,
    /// Whether other assistants must not spawn it.
    NotByModels,
    /// Whether other assistants may spawn it.
    ByModels,
    /// The models that it wishes for.
    Model,
    /// The runner that it is for.
    Runner,
    /// The launcher that starts that.
    Launcher,
    /// Whether each run works in a git worktree of its own.
    Isolation,
    /// What it can be filtered by.
    Tags,
    /// Most model calls.
    MaxTurns,
    /// The longest run, milliseconds.
    TimeoutMs,
    /// The longest run, minutes.
    TimeoutMins,
    /// Tool servers.
    Servers,
    /// Tool servers as goose writes them, which are kept so.
    Extensions,
    /// Settings of a recipe.
    Settings,
    /// The answer of a recipe.
    Response,
    /// The schema of its result.
    OutputSchema,
    /// Whether its result is text or JSON.
    OutputFormat,
    /// Whether it goes on with its last conversation.
    Session,
    /// Something that is read from what is kept.
    Kept,
    /// Where it runs.
    Kind,
    /// Whether it is switched off.
    Disable,
    /// Whether it is switched on.
    Enable,
    /// Nothing; it is kept.
    Unused,
}

impl Field {
    /// Whether it says what the assistant may do, so that what cannot be read must not open anything.
    pub(super) fn is_access(self) -> bool {
        matches!(
            self,
            Self::Tools
                | Self::Denied
                | Self::Asked
                | Self::Rules
                | Self::Unclear
                | Self::Permissions
                | Self::Mode
                | Self::Role
                | Self::Readonly
                | Self::Callers
                | Self::Agents
                | Self::NotByModels
                | Self::ByModels
        )
    }
}

impl Field {
    /// Whether it says if there is such an assistant at all.
    pub(super) fn is_switch(self) -> bool {
        matches!(self, Self::Disable | Self::Enable)
    }

    /// What to write instead of a value that it cannot have.
    pub(super) fn hint(self) -> &'static str {
        match self {
            Self::MaxTurns | Self::TimeoutMs | Self::TimeoutMins => "write a number above 0",
            Self::Model => "write one name, or a list of names",
            Self::Tags => "write a list of words",
            Self::Runner => "write the name of a configured runner",
            Self::Launcher => "write the name of a configured launcher",
            Self::Isolation => "write `worktree`, or leave it out",
            Self::Session => "write `true` or `false`",
            Self::OutputFormat => "write `text` or `json`",
            Self::OutputSchema => "write a JSON schema, which is a map",
            _ => "write a text",
        }
    }

    /// Whether each of two keys that say it counts: what both allow.
    pub(super) fn limits(self) -> bool {
        self.is_access() || self.is_switch() || self == Self::Services
    }
}

/// Folded key, meaning, and the systems that know it: none where it is only often seen.
const KNOWN: &[(&str, Field, &[Dialect])] = &[
    ("activities", Field::Unused, &[GooseRecipe]),
    ("agent", Field::Unused, &[Copilot]),
    ("agentcardjson", Field::Unused, &[Gemini]),
    ("agentcardurl", Field::Unused, &[Gemini]),
    ("agents", Field::Agents, &[Copilot]),
    ("aliases", Field::Unused, &[Pi]),
    ("allowedbuiltinservicealiases", Field::Services, &[AgentMd]),
    ("allowedcallers", Field::Callers, &[AgentMd]),
    ("allowedtools", Field::Tools, &[]),
    ("applyto", Field::Unused, &[]),
    ("approvalpolicy", Field::Unused, &[Codex]),
    ("argumenthint", Field::Unused, &[Copilot]),
    ("asktools", Field::Asked, &[]),
    ("author", Field::Unused, &[]),
    ("background", Field::Unused, &[Claude]),
    ("builtinservices", Field::Unused, &[]),
    ("category", Field::Unused, &[]),
    ("color", Field::Unused, &[Claude, Opencode]),
    ("coretools", Field::Tools, &[]),
    ("created", Field::Unused, &[]),
    ("defaultcontext", Field::Unused, &[Pi]),
    ("defaultprogress", Field::Unused, &[Pi]),
    ("defaultreads", Field::Unused, &[Pi]),
    ("deniedtools", Field::Denied, &[]),
    ("description", Field::Description, &[]),
    ("developerinstructions", Field::Prompt, &[Codex]),
    ("disable", Field::Disable, &[Opencode]),
    ("disabled", Field::Disable, &[]),
    ("disablemodelinvocation", Field::NotByModels, &[Copilot]),
    ("disallowedtools", Field::Denied, &[Claude]),
    ("displayname", Field::Display, &[Gemini]),
    ("effort", Field::Unused, &[Claude]),
    ("emoji", Field::Unused, &[]),
    ("enabled", Field::Enable, &[]),
    ("excludedtools", Field::Denied, &[]),
    ("excludetools", Field::Denied, &[]),
    ("extensions", Field::Extensions, &[GooseRecipe, Pi]),
    ("handoffs", Field::Unused, &[Copilot]),
    ("hidden", Field::Unused, &[Opencode]),
    ("hooks", Field::Unused, &[Claude]),
    ("icon", Field::Unused, &[]),
    ("id", Field::Unused, &[]),
    ("infer", Field::ByModels, &[Copilot]),
    ("inheritprojectcontext", Field::Unused, &[Pi]),
    ("inheritskills", Field::Unused, &[Pi]),
    ("initialprompt", Field::Unused, &[Claude]),
    ("instructions", Field::Prompt, &[]),
    ("isbackground", Field::Unused, &[Cursor]),
    ("isolation", Field::Isolation, &[Claude]),
    ("keywords", Field::Tags, &[]),
    ("kind", Field::Kind, &[Gemini]),
    ("launcher", Field::Launcher, &[]),
    ("license", Field::Unused, &[]),
    ("maxsteps", Field::MaxTurns, &[Opencode]),
    ("maxsubagentdepth", Field::Unused, &[Pi]),
    ("maxturns", Field::MaxTurns, &[Claude, Gemini, GooseRecipe]),
    ("mayspawn", Field::Agents, &[]),
    ("mcp", Field::Kept, &[Opencode]),
    ("mcpconfig", Field::Servers, &[]),
    ("mcpservers", Field::Servers, &[Claude, Codex, Gemini, Copilot, AgentMd]),
    ("memory", Field::Unused, &[Claude]),
    ("metadata", Field::Unused, &[Copilot, GooseAgent]),
    ("mode", Field::Role, &[Opencode, Copilot]),
    ("model", Field::Model, &[]),
    ("modelprovider", Field::Unused, &[Codex]),
    ("modelreasoningeffort", Field::Unused, &[Codex]),
    ("models", Field::Model, &[]),
    ("name", Field::Name, &[]),
    ("nicknamecandidates", Field::Unused, &[Codex]),
    ("options", Field::Unused, &[Opencode]),
    ("output", Field::Unused, &[Pi]),
    ("outputformat", Field::OutputFormat, &[AgentMd]),
    ("outputschema", Field::OutputSchema, &[AgentMd]),
    ("owner", Field::Unused, &[]),
    ("parameters", Field::Kept, &[GooseRecipe]),
    ("permission", Field::Permissions, &[Opencode]),
    ("permissionmode", Field::Mode, &[Claude]),
    ("permissionrules", Field::Rules, &[]),
    ("permissions", Field::Permissions, &[AgentMd]),
    ("profile", Field::Unused, &[Codex]),
    ("prompt", Field::Prompt, &[]),
    ("readonly", Field::Readonly, &[Cursor]),
    ("reasoningeffort", Field::Unused, &[Opencode]),
    ("response", Field::Response, &[GooseRecipe]),
    ("restrictedtools", Field::Unclear, &[]),
    ("restricttools", Field::Unclear, &[]),
    ("retry", Field::Unused, &[GooseRecipe]),
    ("runner", Field::Runner, &[]),
    ("sandboxmode", Field::Mode, &[Codex]),
    ("session", Field::Session, &[AgentMd]),
    ("settings", Field::Settings, &[GooseRecipe]),
    ("skills", Field::Unused, &[Claude, Codex]),
    ("steps", Field::MaxTurns, &[Opencode]),
    ("subagentonlyextensions", Field::Unused, &[Pi]),
    ("subrecipes", Field::Unused, &[GooseRecipe]),
    ("systemprompt", Field::Prompt, &[]),
    ("systempromptmode", Field::Unused, &[Pi]),
    ("tags", Field::Tags, &[]),
    ("target", Field::Unused, &[Copilot]),
    ("temperature", Field::Unused, &[Gemini, Opencode]),
    ("thinking", Field::Unused, &[Pi]),
    ("timeout", Field::Unused, &[]),
    ("timeoutmins", Field::TimeoutMins, &[Gemini]),
    ("timeoutms", Field::TimeoutMs, &[AgentMd]),
    ("title", Field::Display, &[GooseRecipe]),
    ("tool", Field::Tools, &[]),
    ("toolrestriction", Field::Unclear, &[]),
    ("toolrestrictions", Field::Unclear, &[]),
    ("tools", Field::Tools, &[]),
    ("toolsrestricted", Field::Unclear, &[]),
    ("topp", Field::Unused, &[Opencode]),
    ("triggers", Field::Unused, &[]),
    ("updated", Field::Unused, &[]),
    ("userinvocable", Field::Unused, &[Copilot]),
    ("userinvokable", Field::Unused, &[Copilot]),
    ("variant", Field::Unused, &[Opencode]),
    ("version", Field::Unused, &[]),
    ("vibe", Field::Unused, &[]),
];

/// Ends of keys, folded, that hold a secret wherever they stand.
const SECRETS: &[&str] = &[
    "accesskey",
    "apikey",
    "authorization",
    "credential",
    "credentials",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "secretkey",
    "token",
];
/// Whether a folded key is that of a secret.
pub(crate) fn is_secret(folded: &str) -> bool {
    SECRETS.iter().any(|end| folded.ends_with(end))
}

/// A key without case, `-`, `_` and blanks: `mcp-servers`, `mcp_servers` and `mcpServers` are one. What nobody sees is
/// none of it either.
pub(crate) fn fold(key: &str) -> String {
    let none = |c: &char| matches!(c, '-' | '_') || c.is_whitespace() || is_invisible(*c);
    key.chars().map(narrow).filter(|c| !none(c)).flat_map(char::to_lowercase).collect()
}

/// The sign of ASCII that `c` is in full width, as East Asian keyboards write it.
pub(crate) fn narrow(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        c => c,
    }
}

/// Whether `c` is a byte-order mark, a soft hyphen, a joiner or a mark of direction.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
    )
}

/// What the folded key `key` means, where it is known, and the systems that know it.
pub(super) fn look(key: &str) -> Option<(Field, &'static [Dialect])> {
    KNOWN.iter().find(|(known, ..)| *known == key).map(|(_, field, of)| (*field, *of))
}

/// Keys, folded, below which authors write what limits the assistant.
const HOLDERS: &[&str] = &[
    "access",
    "accesscontrol",
    "agentconfig",
    "capabilities",
    "config",
    "configuration",
    "constraints",
    "guardrails",
    "limits",
    "policies",
    "policy",
    "restrictions",
    "security",
    "securitypolicy",
    "settings",
    "toolpolicy",
];

/// Whether what stands below the folded key `key` may limit the assistant.
pub(super) fn is_holder(key: &str) -> bool {
    HOLDERS.contains(&key)
}

/// The one system that knows the folded key `key`.
pub(super) fn only_of(key: &str) -> Option<Dialect> {
    match look(key) {
        Some((_, [only])) => Some(*only),
        _ => None,
    }
}

/// Whether the key `key`, in any spelling, says what the assistant may do.
#[cfg(feature = "cli")]
pub(crate) fn is_access(key: &str) -> bool {
    let key = fold(key);
    meant(&key).is_some_and(Field::is_access)
}

/// What the folded key `key` means, taken as it is or, where it limits, as what it was meant to be.
pub(super) fn meant(key: &str) -> Option<Field> {
    look(key).map(|(field, _)| field).or_else(|| misspelt(key).map(|(field, _)| field))
}

/// The field that limits which the unknown folded key `key` is but for one typing mistake or in other words, and its
/// right spelling.
pub(super) fn misspelt(key: &str) -> Option<(Field, &'static str)> {
    const CHARS_MIN: usize = 4;
    if let Some(right) = meant::meant(key) {
        return look(right).map(|(field, _)| (field, right));
    }
    let chars = |text: &str| text.chars().collect::<Vec<_>>();
    let key = chars(key);
    let limits = |field: Field| field.is_access() || field.is_switch();
    let mut limits = KNOWN.iter().filter(|(known, field, _)| limits(*field) && known.len() > CHARS_MIN);
    limits
        .find(|(known, ..)| known.len().abs_diff(key.len()) <= 1 && super::nearest::edits(&key, &chars(known)) == 1)
        .map(|(known, field, _)| (*field, *known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stand_once_and_folded() {
        for (key, ..) in KNOWN {
            assert_eq!(fold(key), *key);
        }
        assert!(KNOWN.windows(2).all(|pair| pair[0].0 < pair[1].0), "sorted, each once");
    }

    #[test]
    fn typing_mistakes() {
        let check = |key: &str, expected: Option<&str>| {
            assert_eq!(misspelt(&fold(key)).map(|(_, right)| right), expected, "{key}");
        };
        check("tols", Some("tools"));
        check("dissallowed-tools", Some("disallowedtools"));
        check("allowed_caller", Some("allowedcallers"));
        check("tools-deny", Some("disallowedtools"));
        check("read_only_", None);
        check("disabeld", Some("disabled"));
        check("dissabled", Some("disabled"));
        check("enable", Some("enabled"));
        check("colour", None);
        check("to", None);
    }
}
