//! The id of an assistant: its slug.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::hash::sha256_hex;

/// Most characters of an id.
pub const ID_CHARS_MAX: usize = 64;

/// What an assistant is known by: lower-case letters and digits of any script, with single `-` between them.
///
/// It is safe as a part of a path, a command line or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AssistantId(String);

/// A string that is no id of an assistant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no assistant id (lower-case letters, digits and single `-`, at most {ID_CHARS_MAX} characters)")]
pub struct BadAssistantId(String);

impl AssistantId {
    /// The id of an assistant named `name` in a file with the stem `stem`.
    ///
    /// Where neither has a letter or a digit, the id is made from a hash of the name.
    #[must_use]
    pub fn from_name(name: &str, stem: &str) -> Self {
        slug(name)
            .or_else(|| slug(stem))
            .map_or_else(|| Self(format!("assistant-{}", &sha256_hex(name.as_bytes())[..8])), Self)
    }

    /// The bare text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for AssistantId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// The slug of `text`: lower-case, all but letters and digits to `-`, at most [`ID_CHARS_MAX`] characters.
///
/// `c++`, `c#` and `f#` become `cpp`, `csharp` and `fsharp`, so that they differ from `c` and `f`. None where nothing
/// is left.
#[must_use]
pub fn slug(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let mut slug = String::new();
    let mut length = 0;
    let mut chars = lower.chars();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        if is_mark(c) {
            continue;
        }
        let mut piece: Cow<'_, str> = Cow::Borrowed("-");
        if c.is_alphanumeric() {
            let alone = !before.is_alphanumeric();
            let rest = chars.as_str();
            piece = match c {
                'c' if alone && rest.starts_with('#') => "csharp".into(),
                'f' if alone && rest.starts_with('#') => "fsharp".into(),
                'c' if alone && rest.starts_with("++") => "cpp".into(),
                _ => c.to_string().into(),
            };
        }
        before = c;
        if piece == "-" && (slug.is_empty() || slug.ends_with('-')) {
            continue;
        }
        length += piece.chars().count();
        if length > ID_CHARS_MAX {
            break;
        }
        slug.push_str(&piece);
    }
    slug.truncate(slug.trim_end_matches('-').len());
    (!slug.is_empty()).then_some(slug)
}

/// A combining accent, which belongs to the letter before it.
fn is_mark(c: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&c)
}

impl fmt::Display for AssistantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for AssistantId {
    type Err = BadAssistantId;

    fn from_str(text: &str) -> Result<Self, BadAssistantId> {
        match slug(text) {
            Some(slug) if slug == text => Ok(Self(slug)),
            _ => Err(BadAssistantId(crate::text::cut(text, 80))),
        }
    }
}

impl TryFrom<String> for AssistantId {
    type Error = BadAssistantId;

    fn try_from(text: String) -> Result<Self, BadAssistantId> {
        text.parse()
    }
}

impl From<AssistantId> for String {
    fn from(id: AssistantId) -> Self {
        id.0
    }
}

impl JsonSchema for AssistantId {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "AssistantId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs() {
        let check = |name: &str, expected: &str| {
            let id = AssistantId::from_name(name, "the file");
            assert_eq!(id.as_str(), expected, "{name:?}");
            assert_eq!(id.as_str().parse(), Ok(id.clone()), "an id is its own slug");
        };
        check("code-reviewer", "code-reviewer");
        check("Code Reviewer", "code-reviewer");
        check("  🧾 Invoice  Checker ", "invoice-checker");
        check("发票核对", "发票核对");
        check("SE: Tech Writer", "se-tech-writer");
        check("../../etc/invoice", "etc-invoice");
        check("-invoice", "invoice");
        check("C++ Expert", "cpp-expert");
        check("C#/.NET Janitor", "csharp-net-janitor");
        check("F# & C", "fsharp-c");
        check("Résumé", "résumé");
        check("Re\u{301}sume", "resume");
        check("“quoted”", "quoted");
        check("404", "404");
        check("snake_case.name", "snake-case-name");
        check("***", "the-file");
        check(&"a".repeat(200), &"a".repeat(64));
        check(&format!("{}-b", "a".repeat(63)), &"a".repeat(63));
        assert_eq!(AssistantId::from_name("***", "!").as_str(), "assistant-596f4162");
    }

    #[test]
    fn strings_that_are_no_ids() {
        for text in ["", "-", "a-", "A", "a b", "a--b", "../a", &"a".repeat(65)] {
            assert!(text.parse::<AssistantId>().is_err(), "{text:?}");
            assert!(serde_json::from_value::<AssistantId>(text.into()).is_err());
        }
    }
}
