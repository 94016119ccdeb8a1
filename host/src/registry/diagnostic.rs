//! What the reader has to say about a file.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The file could not be read as an assistant, or the assistant cannot be started.
    Error,
    /// It was repaired, or loses something; worth mending.
    Warning,
    /// Worth knowing; nothing to mend.
    Info,
}

impl Severity {
    /// The name, as in JSON.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident $code:literal $severity:ident;)*) => {
        /// What was found. The names are a contract: they stay.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Code {
            $($(#[doc = $doc])* #[serde(rename = $code)] $name,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// What it means, in a sentence.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),*).trim_ascii(),)* }
            }

            /// The name, as in JSON.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// How bad it is, always.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)* }
            }
        }
    };
}

codes! {
    /// The frontmatter is no valid YAML; it was read key by key.
    YamlRepaired "yaml_repaired" Warning;
    /// The frontmatter nests too deep or unfolds into too much; it was read key by key.
    YamlTooComplex "yaml_too_complex" Warning;
    /// The file is no valid TOML; what could be read of it was.
    TomlRepaired "toml_repaired" Warning;
    /// A TOML, YAML or JSON file nests too deep or has too many values.
    DataTooComplex "data_too_complex" Error;
    /// A YAML or JSON file cannot be read as keys and values.
    DataBroken "data_broken" Error;
    /// A key stands there twice: the last one counts, and of keys that limit what the assistant may do, what both allow.
    DuplicateKey "duplicate_key" Warning;
    /// A value is of a kind that its field cannot be; it was ignored.
    FieldIgnored "field_ignored" Warning;
    /// What a field says of access cannot be read, so it gives nothing: no tool, or no caller.
    AccessClosed "access_closed" Warning;
    /// A key that switches the assistant on or off cannot be read, so it is off.
    SwitchUnreadable "switch_unreadable" Error;
    /// A rule for a tool cannot be kept as it is meant (ask each time, some arguments only), so the tool is not given.
    AccessNarrowed "access_narrowed" Warning;
    /// A key is one that says what the assistant may do but for one letter, or in other words; it was taken for that.
    KeyMisspelt "key_misspelt" Warning;
    /// Keys that other systems use and this host does not; they are kept.
    KeyUnused "key_unused" Info;
    /// Keys that no system knows whose files are read; they are kept.
    KeyUnknown "key_unknown" Info;
    /// A list is longer than its bound; the rest was dropped.
    ListCut "list_cut" Warning;
    /// The file begins with a byte-order mark.
    BomRemoved "bom_removed" Info;
    /// Blank lines stand before the frontmatter.
    LeadingBlankRemoved "leading_blank_removed" Warning;
    /// A comment or other text stands before the frontmatter, or that begins with more than three dashes.
    TextBeforeFrontmatter "text_before_frontmatter" Warning;
    /// The whole file is indented.
    Dedented "dedented" Warning;
    /// The whole file is wrapped in a code fence.
    FenceRemoved "fence_removed" Warning;
    /// The frontmatter ends with another line than `---`.
    ClosingDelimiterRepaired "closing_delimiter_repaired" Warning;
    /// The frontmatter never ends.
    FrontmatterNotClosed "frontmatter_not_closed" Error;
    /// The frontmatter has no `---` line before it, only one behind it; it was read as if it had.
    OpeningDelimiterRepaired "opening_delimiter_repaired" Warning;
    /// The file begins with keys of an assistant, and no lines of `---` say that they are frontmatter.
    FrontmatterNotOpened "frontmatter_not_opened" Error;
    /// There is no frontmatter: a plain document.
    NoFrontmatter "no_frontmatter" Info;
    /// The frontmatter has neither a name nor anything else that makes an assistant.
    NameMissing "name_missing" Info;
    /// There is no name; the file's or folder's was taken.
    NameFromFile "name_from_file" Info;
    /// The id differs from the name.
    NameNormalised "name_normalised" Info;
    /// YAML reads the name as a number or a truth value; its text was taken.
    NameNotString "name_not_string" Warning;
    /// The name is too long; it was cut.
    NameTooLong "name_too_long" Warning;
    /// The name begins with `-`, which other systems refuse; the id leaves it out.
    NameLeadingDash "name_leading_dash" Warning;
    /// The name has `:`, `/` or `\`, which other systems refuse; the id leaves it out.
    NameReservedCharacter "name_reserved_character" Warning;
    /// The name `main` in the layout `agents/NAME/agent.md` belongs to the session.
    ReservedName "reserved_name" Info;
    /// There is no description: a search finds it by name and prompt only.
    DescriptionMissing "description_missing" Warning;
    /// The description is long; answers cut it.
    DescriptionLong "description_long" Info;
    /// The system prompt is empty.
    EmptyBody "empty_body" Warning;
    /// The system prompt is long, and every model call pays for it.
    BodyLong "body_long" Info;
    /// More than one model is wished for; the first that is known is used.
    ModelList "model_list" Info;
    /// A recipe of goose; its parameters are not filled in.
    KindGooseRecipe "kind_goose_recipe" Info;
    /// An extension that is built into goose, which this host has not.
    ExtensionBuiltin "extension_builtin" Info;
    /// An agent that runs elsewhere (`kind: remote`); it cannot be run here.
    RemoteAgent "remote_agent" Info;
    /// A file with several agents; it takes one file each.
    SeveralAgents "several_agents" Warning;
    /// A file of keys and values that defines no assistant, such as a package's or a workflow's.
    NotAnAgent "not_an_agent" Info;
    /// The file switches its assistant off (`disable: true`).
    Disabled "disabled" Info;
    /// A file whose name begins with `_`, which Gemini CLI leaves out.
    UnderscoreFile "underscore_file" Info;
    /// The file is empty.
    EmptyFile "empty_file" Error;
    /// The file is larger than the bound.
    FileTooBig "file_too_big" Error;
    /// The file is not UTF-8.
    NotUtf8 "not_utf8" Error;
    /// The file has a control character, so it is no text.
    ControlCharacter "control_character" Error;
    /// The file or folder could not be read.
    Unreadable "unreadable" Error;
    /// A pipe, socket or device.
    SpecialFile "special_file" Error;
    /// A link that leads nowhere.
    DanglingLink "dangling_link" Warning;
    /// A link that leads out of its folder; it is not followed.
    LinkOutside "link_outside" Warning;
    /// A link within its folder; what it leads to is read in its own place.
    LinkInside "link_inside" Info;
    /// No format that is read.
    UnknownFormat "unknown_format" Info;
    /// A folder lies deeper than the bound.
    TooDeep "too_deep" Error;
    /// A source has more files than the bound; the rest was not read.
    TooManyFiles "too_many_files" Error;
    /// Another file has the same id and comes first.
    Shadowed "shadowed" Warning;
    /// It names a server or a command that the user has not trusted; it runs without.
    UntrustedCommand "untrusted_command" Warning;
    /// It asks for tools that are not here; it runs without them.
    ToolUnavailable "tool_unavailable" Warning;
    /// A tool that it must not have is none here, and its name is near that of one, which it keeps.
    ToolMisspelt "tool_misspelt" Warning;
    /// Results cannot be checked by the schema that they have to fit, so it cannot be started.
    OutputSchemaUnusable "output_schema_unusable" Error;
    /// It wishes for a model that is not configured; another one is used.
    ModelReplaced "model_replaced" Warning;
    /// It wishes for a model that is not configured, and `strict_models` is set: it cannot be started.
    ModelRefused "model_refused" Error;
    /// It names a runner that is not configured: it cannot be started.
    RunnerUnknown "runner_unknown" Error;
    /// It names a launcher that is not configured, or that would take it out of a fence: it cannot be started.
    LauncherUnknown "launcher_unknown" Error;
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One finding about one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// What was found.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// The file or folder.
    pub file: String,
    /// The line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column, from 1, in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// What happened, in words.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Diagnostic {
    /// A finding about `file` as a whole.
    #[must_use]
    pub fn new(code: Code, file: &str, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.severity(),
            file: file.to_owned(),
            line: None,
            column: None,
            message: message.into(),
            hint: None,
        }
    }

    /// The same, at a line and perhaps a column.
    #[must_use]
    pub fn at(mut self, line: u32, column: Option<u32>) -> Self {
        (self.line, self.column) = (Some(line), column);
        self
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        for place in [self.line, self.column].into_iter().flatten() {
            write!(f, ":{place}")?;
        }
        write!(f, ": {} ({})", self.message, self.code)?;
        self.hint.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}
