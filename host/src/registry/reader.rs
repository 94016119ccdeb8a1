//! From a file's bytes to a definition: whatever can be repaired is, and each repair is told.

use std::path::Path;

use super::assemble::Assembly;
use super::definition::{Definition, Source};
use super::diagnostic::{Code, Diagnostic};
use super::dialect::{self, Dialect, Format};
use super::hash::sha256_hex;
use super::keys::Content;
use super::notes::Notes;
use super::yaml::Entry;
use super::{data, frontmatter, keys};

/// Bumped when the same bytes are read differently; what is derived from definitions is then made anew.
///
/// An assistant that the database keeps is no bytes: it stays what it was read as, until `import --replace` brings it in
/// again.
pub(crate) const READER_VERSION: u32 = 13;

/// Reads the file at `path` with the content `bytes`: Markdown, TOML, YAML or JSON by its ending, of any dialect.
///
/// The path tells the dialect where it can, else the keys do; and it gives the name where the file has none: `x.md`,
/// `x.agent.md` and `x/agent.md` are all `x`.
///
/// # Errors
/// Why it is no assistant. Whatever can be repaired is, and told in the definition's warnings.
pub fn read(bytes: &[u8], path: &Path, source: Source) -> Result<Definition, Diagnostic> {
    read_any(bytes, path, source).map_err(|why| stray(why, path))
}

/// The reason why a file is skipped, as it is for a file of keys and values that lies in no system's place: most of those
/// are no assistants, so what is wrong with one is no mistake of anyone's.
pub(super) fn stray(why: Diagnostic, path: &Path) -> Diagnostic {
    let data = dialect::format(path).is_some_and(|format| format != Format::Markdown);
    let unread = matches!(
        why.code,
        Code::FileTooBig
            | Code::DataTooComplex
            | Code::DataBroken
            | Code::NotUtf8
            | Code::ControlCharacter
            | Code::EmptyFile
    );
    if !data || !unread || Dialect::of_path(path).is_some() {
        return why;
    }
    let message = format!("taken for no assistant: {}", why.message);
    Diagnostic { line: why.line, column: why.column, ..Diagnostic::new(Code::NotAnAgent, &why.file, message) }
}

fn read_any(bytes: &[u8], path: &Path, source: Source) -> Result<Definition, Diagnostic> {
    let file = path.display().to_string();
    let stem = dialect::stem(path);
    if Dialect::of_path(path) == Some(Dialect::Gemini) && stem.starts_with('_') {
        let message = "its name begins with `_`, and Gemini CLI leaves such files out";
        return Err(Diagnostic::new(Code::UnderscoreFile, &file, message));
    }
    let Some(format) = dialect::format(path) else {
        let message = "only Markdown, TOML, YAML and JSON files are read";
        return Err(Diagnostic::new(Code::UnknownFormat, &file, message));
    };
    if format == Format::Markdown {
        return read_markdown(bytes, path, source);
    }
    let mut warnings = Vec::new();
    let text = frontmatter::decode(bytes, &file, &mut warnings)?;
    if text.trim().is_empty() {
        return Err(Diagnostic::new(Code::EmptyFile, &file, "the file is empty"));
    }
    let found = match format {
        Format::Toml => data::toml(&text, &file, &mut warnings)?,
        Format::Data | Format::Markdown => data::yaml_or_json(&text, &file, &mut warnings)?,
    };
    data::is_agent(&found.entries, &file)?;
    let dialect = Dialect::of_path(path).or_else(|| Dialect::of_keys(&found.entries)).unwrap_or(match format {
        Format::Toml => Dialect::Codex,
        Format::Data | Format::Markdown => Dialect::GooseRecipe,
    });
    let definition = blank(bytes, path, source, dialect, String::new());
    Assembly::new(definition, Notes { file: &file, found: warnings, said: 0 }, 1).read(
        &found.entries,
        &found.lost,
        &stem,
    )
}

/// Reads `bytes` as Markdown with frontmatter, whatever the ending of `path` is.
///
/// # Errors
/// Those of [`read`].
pub fn read_markdown(bytes: &[u8], path: &Path, source: Source) -> Result<Definition, Diagnostic> {
    let file = path.display().to_string();
    let mut warnings = Vec::new();
    let parts = frontmatter::split(bytes, &file, &mut warnings)?;
    let (entries, mut lost): (Vec<Entry>, _) = match keys::read(&parts.frontmatter, parts.line, &file, &mut warnings) {
        Content::Entries { entries, lost } => (entries, lost),
        Content::List(agents) => {
            let message = format!("a list of {agents} agents that run elsewhere; they cannot be run here");
            return Err(Diagnostic::new(Code::RemoteAgent, &file, message).at(parts.line, None));
        }
    };
    for (text, line) in &parts.beside {
        lost.extend(keys::lost(text, *line, &[], false));
    }
    let dialect = Dialect::of_path(path).or_else(|| Dialect::of_keys(&entries)).unwrap_or_default();
    let definition = blank(bytes, path, source, dialect, parts.body);
    let notes = Notes { file: &file, found: warnings, said: 0 };
    Assembly::new(definition, notes, parts.line).read(&entries, &lost, &dialect::stem(path))
}

/// A definition of which nothing is known but its file and its prompt.
fn blank(bytes: &[u8], path: &Path, source: Source, dialect: Dialect, system_prompt: String) -> Definition {
    let stem = dialect::stem(path);
    let named = if stem.trim().is_empty() { "assistant".to_owned() } else { stem };
    Definition {
        dialect,
        path: Some(path.to_owned()),
        content_hash: sha256_hex(bytes),
        ..Definition::new(&named, "assistant", system_prompt, source)
    }
}
