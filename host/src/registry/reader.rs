//! From a file's bytes to a definition: strict YAML, else key by key, else raw text; each repair is told.

use std::path::Path;

use serde_json::Map;

use super::definition::{Definition, Source};
use super::diagnostic::{Code, Diagnostic};
use super::hash::sha256_hex;
use super::id::AssistantId;
use super::yaml::Node;
use super::{examples, fields, frontmatter, keys};

/// Bumped when the same bytes are read differently; what is derived from definitions is then made anew.
pub(crate) const READER_VERSION: u32 = 1;
/// Most characters of a display name.
pub const NAME_CHARS_MAX: usize = 128;
/// Characters from which on a description is told to be long.
const DESCRIPTION_CHARS_LONG: usize = 1_024;
/// Characters from which on a system prompt is told to be long.
const BODY_CHARS_LONG: usize = 30_000;

/// Reads the Markdown file at `path` with the content `bytes`.
///
/// The path gives the name where the file has none: `x.md`, `x.agent.md` and `x/agent.md` are all `x`.
///
/// # Errors
/// Why it is no assistant. Whatever can be repaired is, and told in the definition's warnings.
pub fn read_markdown(bytes: &[u8], path: &Path, source: Source) -> Result<Definition, Diagnostic> {
    let file = path.display().to_string();
    let mut warnings = Vec::new();
    let parts = frontmatter::split(bytes, &file, &mut warnings)?;
    let entries = keys::read(&parts.frontmatter, parts.line, &file, &mut warnings);
    let stem = stem(path);
    let mut reader = Reader { file: &file, line: parts.line, warnings, named: false, other: false };
    let mut definition = Definition {
        id: AssistantId::from_name(&stem, "assistant"),
        name: stem.clone(),
        description: String::new(),
        system_prompt: parts.body,
        tools: None,
        disallowed_tools: Vec::new(),
        model: Vec::new(),
        tags: Vec::new(),
        allowed_callers: None,
        max_turns: None,
        timeout_ms: None,
        mcp_servers: None,
        extra: Map::new(),
        examples: Vec::new(),
        source,
        path: Some(path.to_owned()),
        content_hash: sha256_hex(bytes),
        warnings: Vec::new(),
    };
    for (key, node) in entries {
        reader.field(&mut definition, key, &node);
    }
    reader.finish(&mut definition, &stem)?;
    definition.warnings = reader.warnings;
    Ok(definition)
}

/// The name that a path gives.
pub(super) fn stem(path: &Path) -> String {
    let text =
        |part: Option<&std::ffi::OsStr>| part.map(|part| part.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = text(path.file_stem());
    let stem = stem.strip_suffix(".agent").or_else(|| stem.strip_suffix(".chatmode")).unwrap_or(&stem).to_owned();
    match path.parent() {
        Some(folder) if stem.eq_ignore_ascii_case("agent") && folder.file_name().is_some() => text(folder.file_name()),
        _ => stem,
    }
}

/// What is known while the fields are read.
struct Reader<'a> {
    file: &'a str,
    line: u32,
    warnings: Vec<Diagnostic>,
    /// A name was there.
    named: bool,
    /// Something else that makes an assistant was there.
    other: bool,
}

impl Reader<'_> {
    fn warn(&mut self, code: Code, line: u32, message: impl Into<String>) {
        self.warnings.push(Diagnostic::new(code, self.file, message).at(line, None));
    }

    /// Puts one field where it belongs; a value that it cannot be is kept in `extra`.
    fn field(&mut self, definition: &mut Definition, key: String, node: &Node) {
        let folded = keys::fold(&key);
        if node.is_null() && !matches!(folded.as_str(), "tools" | "model") {
            definition.extra.insert(key, node.json());
            return;
        }
        let taken = match folded.as_str() {
            "name" => fields::text(node).map(|name| self.name(definition, &name, node)),
            "description" => fields::text(node).map(|text| {
                (definition.description, definition.examples) = examples::take_out(&examples::unescape(&text));
            }),
            "tools" | "allowedtools" if node.is_null() => Some(()),
            "tools" | "allowedtools" => fields::names(node).map(|names| {
                definition.disallowed_tools.extend(fields::refused(node));
                definition.tools = Some(self.bounded(names, &key, node));
            }),
            "disallowedtools" => {
                fields::names(node).map(|names| definition.disallowed_tools.extend(self.bounded(names, &key, node)))
            }
            "model" | "models" => fields::models(node).map(|models| {
                definition.model = self.bounded(models, &key, node);
                if definition.model.len() > 1 {
                    self.warn(Code::ModelList, node.line, "several models; the first that is known is used");
                }
            }),
            "tags" | "keywords" => fields::tags(node).map(|tags| definition.tags = self.bounded(tags, &key, node)),
            "allowedcallers" => {
                fields::names(node).map(|names| definition.allowed_callers = Some(self.bounded(names, &key, node)))
            }
            "maxturns" | "maxsteps" | "steps" => {
                fields::number(node).map(|turns| definition.max_turns = Some(turns as u32))
            }
            "timeoutms" => fields::number(node).map(|ms| definition.timeout_ms = Some(ms as u64)),
            "timeoutmins" => fields::number(node).map(|mins| definition.timeout_ms = Some((mins * 60_000.0) as u64)),
            "mcpservers" => {
                definition.mcp_servers = Some(node.json());
                Some(())
            }
            _ => {
                definition.extra.insert(key, node.json());
                return;
            }
        };
        self.other |= folded != "name";
        if taken.is_none() {
            self.warn(
                Code::FieldIgnored,
                node.line,
                format!("`{key}` has a value that it cannot have; it was ignored"),
            );
            definition.extra.insert(key, node.json());
        }
    }

    fn name(&mut self, definition: &mut Definition, name: &str, node: &Node) {
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        if name.is_empty() {
            return;
        }
        if node.is_typed() {
            self.warn(
                Code::NameNotString,
                node.line,
                format!("YAML reads the name `{name}` as a number or truth value"),
            );
        }
        if name.starts_with('-') {
            self.warn(Code::NameLeadingDash, node.line, "the name begins with `-`, which other systems refuse");
        }
        if !name.contains(' ') && name.contains([':', '/', '\\']) {
            let message = "the name has `:`, `/` or `\\`, which other systems refuse";
            self.warn(Code::NameReservedCharacter, node.line, message);
        }
        if name.chars().nth(NAME_CHARS_MAX).is_some() {
            self.warn(Code::NameTooLong, node.line, format!("the name has more than {NAME_CHARS_MAX} characters"));
        }
        definition.name = crate::text::cut(&name, NAME_CHARS_MAX);
        self.line = node.line;
        self.named = true;
    }

    fn bounded(&mut self, mut list: Vec<String>, key: &str, node: &Node) -> Vec<String> {
        if list.len() > fields::LIST_MAX {
            self.warn(Code::ListCut, node.line, format!("`{key}` has more than {} entries", fields::LIST_MAX));
            list.truncate(fields::LIST_MAX);
        }
        list
    }

    /// What can only be said when all fields are known.
    fn finish(&mut self, definition: &mut Definition, stem: &str) -> Result<(), Diagnostic> {
        if !self.named && !self.other {
            let message = "the frontmatter has no name and nothing else that makes an assistant";
            return Err(Diagnostic::new(Code::NameMissing, self.file, message)
                .at(self.line, None)
                .hint("give it a `name` and a `description`"));
        }
        if !self.named {
            self.warn(Code::NameFromFile, self.line, format!("no name; `{}` was taken from the path", definition.name));
        }
        definition.id = AssistantId::from_name(&definition.name, stem);
        if self.named && definition.id.as_str() != definition.name {
            let message = format!("`{}` is known by the id `{}`", definition.name, definition.id);
            self.warn(Code::NameNormalised, self.line, message);
        }
        if definition.description.is_empty() {
            self.warn(Code::DescriptionMissing, self.line, "no description; a search finds it by name and prompt only");
        }
        if definition.description.chars().nth(DESCRIPTION_CHARS_LONG).is_some() {
            let message = format!("the description has more than {DESCRIPTION_CHARS_LONG} characters; answers cut it");
            self.warn(Code::DescriptionLong, self.line, message);
        }
        if definition.system_prompt.is_empty() {
            self.warn(Code::EmptyBody, self.line, "nothing follows the frontmatter: the system prompt is empty");
        }
        if definition.system_prompt.chars().nth(BODY_CHARS_LONG).is_some() {
            let message = format!("the system prompt has more than {BODY_CHARS_LONG} characters");
            self.warn(Code::BodyLong, self.line, message);
        }
        Ok(())
    }
}
