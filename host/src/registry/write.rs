//! From a definition back to a file: Markdown with YAML frontmatter that reads as the same assistant.
//!
//! What is written is read again before it is given away, so that nothing is lost in silence: what the format cannot
//! hold is an error that names it.

mod yaml;

use std::path::Path;

use serde_json::{Value, json};

use super::definition::{Definition, Source};
use super::diagnostic::Diagnostic;
use super::walk::FILE_BYTES_MAX;
use super::{AssistantId, Dialect, known, read_markdown, sha256_hex};

/// Names that Windows keeps for devices, whatever their ending.
const DEVICES: &[&str] = &["con", "prn", "aux", "nul"];
/// The longest name of a file without its ending, bytes: file systems take 255 with it.
const STEM_BYTES_MAX: usize = 200;

/// A definition as the text of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The file's name: the id, with `.md`.
    pub file: String,
    /// Its text.
    pub text: String,
    /// Fields that read the same but for blanks and ends of lines, which a file does not keep everywhere.
    pub blanks: Vec<&'static str>,
}

/// Why a definition cannot be a file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NotWritten {
    /// These fields would not read the same.
    #[error("`{id}` cannot be written to a file: its {} would read differently", fields.join(", "))]
    Differs {
        /// Whose.
        id: AssistantId,
        /// As in JSON.
        fields: Vec<String>,
    },
    /// No reader would take the file.
    #[error("`{id}` cannot be written to a file: {}", reason.message)]
    Refused {
        /// Whose.
        id: AssistantId,
        /// What the reader says.
        reason: Box<Diagnostic>,
    },
    /// It is larger than files may be.
    #[error("`{id}` cannot be written to a file: it has {bytes} bytes, and {FILE_BYTES_MAX} is the most that is read")]
    TooBig {
        /// Whose.
        id: AssistantId,
        /// The size.
        bytes: usize,
    },
}

/// The file of `definition`.
///
/// Reading it gives the same but for source, path, hash and warnings, and the blanks that are told.
///
/// # Errors
/// [`NotWritten`] where that cannot be.
pub fn write(definition: &Definition) -> Result<Written, NotWritten> {
    let id = || definition.id.clone();
    let file = file_name(&definition.id);
    let text = format!("---\n{}---\n\n{}\n", frontmatter(definition), definition.system_prompt);
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(NotWritten::TooBig { id: id(), bytes: text.len() });
    }
    let read = read_markdown(text.as_bytes(), Path::new(&file), Source::Dir)
        .map_err(|reason| NotWritten::Refused { id: id(), reason: Box::new(reason) })?;
    let mut blanks = Vec::new();
    let mut wanted = content(definition);
    for (field, wanted, read) in [
        ("name", &mut wanted.name, &read.name),
        ("description", &mut wanted.description, &read.description),
        ("system_prompt", &mut wanted.system_prompt, &read.system_prompt),
    ] {
        if wanted != read && wanted.split_whitespace().eq(read.split_whitespace()) {
            blanks.push(field);
            wanted.clone_from(read);
        }
    }
    let read = content(&read);
    if read == wanted {
        return Ok(Written { file, text, blanks });
    }
    let (read, wanted) = (json!(read), json!(wanted));
    let fields =
        wanted.as_object().into_iter().flatten().filter(|(field, value)| read.get(field.as_str()) != Some(value));
    Err(NotWritten::Differs { id: id(), fields: fields.map(|(field, _)| field.clone()).collect() })
}

/// What a definition says, without where it stands, for which system, and what was found on reading it there.
#[must_use]
pub fn content(definition: &Definition) -> Definition {
    let (dialect, hash) = (Dialect::default(), String::new());
    let bare = Definition { dialect, source: Source::Dir, path: None, content_hash: hash, ..definition.clone() };
    Definition { warnings: Vec::new(), ..bare }
}

/// The name of the file of `id` in a folder: safe on every system.
#[must_use]
pub fn file_name(id: &AssistantId) -> String {
    let id = id.as_str();
    let port = (id.starts_with("com") || id.starts_with("lpt")) && id.chars().count() == 4;
    if DEVICES.contains(&id) || port {
        return format!("{id}-assistant.md");
    }
    let end = (0..=id.len().min(STEM_BYTES_MAX)).rev().find(|at| id.is_char_boundary(*at)).unwrap_or(0);
    match end == id.len() {
        true => format!("{id}.md"),
        false => format!("{}-{}.md", &id[..end], &sha256_hex(id.as_bytes())[..8]),
    }
}

fn frontmatter(definition: &Definition) -> String {
    let Definition {
        id,
        name,
        description,
        system_prompt: _,
        tools,
        disallowed_tools,
        ask_tools,
        rules,
        model,
        runner,
        launcher,
        worktree,
        tags,
        allowed_callers,
        may_spawn,
        readonly,
        max_turns,
        timeout_ms,
        session,
        output_schema,
        mcp_servers,
        extra,
        examples,
        dialect: _,
        source: _,
        path: _,
        content_hash: _,
        warnings: _,
    } = definition;
    let mut text = String::new();
    let mut put = |key: &str, forms: Vec<String>, fits: &dyn Fn(&Definition) -> bool| {
        // A value that the field could not be is kept as an unknown one, and stands in its place again.
        if !extra.keys().any(|own| known::fold(own) == known::fold(key)) {
            let fitting = forms.iter().position(|form| alone(form).is_some_and(|read| fits(&read)));
            text.push_str(&forms[fitting.unwrap_or(0)]);
        }
    };
    let one = |key: &str, value: Value| vec![yaml::entry(key, &value)];
    let list = |key: &str, names: &[String]| vec![yaml::entry(key, &json!(names)), yaml::switches(key, names)];
    if AssistantId::from_name(name, id.as_str()) == *id {
        put("name", one("name", json!(name)), &|_| true);
    } else {
        put("name", one("name", json!(id)), &|_| true);
        put("display_name", one("display_name", json!(name)), &|_| true);
    }
    if !description.is_empty() || !examples.is_empty() {
        let whole = with_examples(description, examples);
        // A list of lines is taken as it is; a single line with a `\n` in it would be unfolded.
        let lines: Vec<&str> = whole.split('\n').chain([""]).collect();
        let forms = vec![yaml::entry("description", &json!(whole)), yaml::entry("description", &json!(lines))];
        put("description", forms, &|read| read.description == *description && read.examples == *examples);
    }
    if let Some(tools) = tools {
        // A map is a list of all where it says so.
        let all = format!("{}  '*': false\n", yaml::switches("tools", tools));
        put("tools", [list("tools", tools), vec![all]].concat(), &|read| read.tools.as_ref() == Some(tools));
    }
    if !disallowed_tools.is_empty() {
        put("disallowedTools", list("disallowedTools", disallowed_tools), &|read| {
            read.disallowed_tools == *disallowed_tools && read.tools.is_none()
        });
    }
    if !ask_tools.is_empty() {
        put("askTools", list("askTools", ask_tools), &|read| read.ask_tools == *ask_tools);
    }
    if !rules.is_empty() {
        let lines: Vec<String> = rules.iter().map(ToString::to_string).collect();
        put("permissionRules", one("permissionRules", json!(lines)), &|_| true);
    }
    match model.as_slice() {
        [] => {}
        [only] => {
            put("model", [one("model", json!(only)), one("model", json!(model))].concat(), &|read| read.model == *model)
        }
        _ => put("model", one("model", json!(model)), &|_| true),
    }
    if let Some(runner) = runner {
        put("runner", one("runner", json!(runner)), &|_| true);
    }
    if let Some(launcher) = launcher {
        put("launcher", one("launcher", json!(launcher)), &|_| true);
    }
    if *worktree {
        put("isolation", one("isolation", json!("worktree")), &|_| true);
    }
    if !tags.is_empty() {
        put("tags", list("tags", tags), &|read| read.tags == *tags);
    }
    if let Some(callers) = allowed_callers {
        put("allowed_callers", list("allowed_callers", callers), &|read| {
            read.allowed_callers.as_ref() == Some(callers)
        });
    }
    if let Some(whom) = may_spawn {
        put("agents", list("agents", whom), &|read| read.may_spawn.as_ref() == Some(whom));
    }
    if *readonly {
        put("readonly", one("readonly", json!(true)), &|_| true);
    }
    if let Some(session) = session {
        put("session", one("session", json!(session)), &|_| true);
    }
    if let Some(schema) = output_schema {
        put("outputSchema", one("outputSchema", schema.clone()), &|_| true);
    }
    if let Some(turns) = max_turns {
        put("maxTurns", one("maxTurns", json!(turns)), &|_| true);
    }
    if let Some(ms) = timeout_ms {
        put("timeout_ms", one("timeout_ms", json!(ms)), &|_| true);
    }
    if let Some(servers) = mcp_servers {
        put("mcpServers", one("mcpServers", servers.clone()), &|_| true);
    }
    extra.iter().for_each(|(key, value)| text.push_str(&yaml::entry(key, value)));
    text
}

/// What one entry of frontmatter reads as.
fn alone(entry: &str) -> Option<Definition> {
    let text = format!("---\n{entry}---\n");
    read_markdown(text.as_bytes(), Path::new("x.md"), Source::Dir).ok()
}

/// A description with its examples behind it, as authors write them.
fn with_examples(description: &str, examples: &[String]) -> String {
    let mut whole = description.to_owned();
    for example in examples {
        // What a user says is the example, so that a line of its own before it would be one too many.
        let said = format!("user: {example}");
        let fits = !example.contains('\n') && super::examples::user_says(&said) == *example;
        let example = if fits { &said } else { example };
        whole.push_str(&format!("\n<example>\n{example}\n</example>"));
    }
    whole.trim_start_matches('\n').to_owned()
}

#[cfg(test)]
mod tests;
