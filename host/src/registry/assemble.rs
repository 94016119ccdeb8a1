//! From keys and values to a definition: each field where it belongs, the rest kept and told.

mod result;
mod switch;
mod within;

use serde_json::Value;

use self::result::Form;
use super::access::Access;
use super::definition::Definition;
use super::diagnostic::{Code, Diagnostic};
use super::id::AssistantId;
use super::known::{self, Field, fold};
use super::notes::Notes;
use super::yaml::Entry;
use super::{Dialect, examples, fields, keys, recipe, services};

/// Most characters of a display name.
pub const NAME_CHARS_MAX: usize = 128;
/// Characters from which on a description is told to be long.
const DESCRIPTION_CHARS_LONG: usize = 1_024;
/// Characters from which on a system prompt is told to be long.
const BODY_CHARS_LONG: usize = 30_000;
/// Most keys that one finding names.
const KEYS_TOLD_MAX: usize = 12;

/// A definition while its fields are read.
pub(super) struct Assembly<'a> {
    pub(super) definition: Definition,
    pub(super) notes: Notes<'a>,
    access: Access,
    /// The first line of what is read, or the name's.
    line: u32,
    /// The name, as a key gave it.
    name: Option<String>,
    /// A name for people besides it.
    display: Option<String>,
    /// The form of its result.
    form: Form,
    /// Something else that makes an assistant was there.
    other: bool,
    /// Parts of the prompt that stand in keys: the key, and the text.
    prompts: Vec<(String, String)>,
    /// Keys that are known and of no use here, the first with its place.
    unused: Vec<(String, u32, u32)>,
    /// Keys that are not known.
    unknown: Vec<(String, u32, u32)>,
}

impl<'a> Assembly<'a> {
    /// Nothing read yet; `line` is the first of what will be.
    pub(super) fn new(definition: Definition, notes: Notes<'a>, line: u32) -> Self {
        Self {
            definition,
            notes,
            access: Access::default(),
            line,
            name: None,
            display: None,
            form: Form::default(),
            other: false,
            prompts: Vec::new(),
            unused: Vec::new(),
            unknown: Vec::new(),
        }
    }

    /// All entries, then what can only be said when all are known.
    ///
    /// # Errors
    /// Why it is no assistant.
    pub(super) fn read(
        mut self,
        entries: &[Entry],
        lost: &[(String, u32)],
        stem: &str,
    ) -> Result<Definition, Diagnostic> {
        for entry in entries {
            self.field(entry)?;
        }
        for (key, line) in lost {
            let folded = fold(key.trim_matches(['"', '\'']));
            if let Some(field) = known::meant(&folded) {
                if field.is_switch() {
                    return Err(self.off(key, (*line, 0)));
                }
                self.access.lost(field, key, *line, &mut self.notes);
            }
        }
        self.finish(stem)
    }

    /// Puts one field where it belongs; a value that it cannot be is kept in `extra`.
    fn field(&mut self, entry: &Entry) -> Result<(), Diagnostic> {
        let folded = fold(&entry.key);
        let at = (entry.line, entry.column);
        self.within(entry)?;
        let Some((field, _)) = known::look(&folded) else {
            match known::misspelt(&folded) {
                Some((field, right)) => {
                    let message = format!("`{}` was taken for `{right}`", keys::cut(&entry.key));
                    let hint = format!("write `{right}`, or another key if that was not meant");
                    self.notes.say(Code::KeyMisspelt, at, message, &hint);
                    if field.is_access() {
                        self.access.take(self.definition.dialect, field, entry, &mut self.notes);
                    } else if !entry.value.is_null() {
                        self.switch(field, entry)?;
                    }
                }
                None => self.unknown.push((keys::cut(&entry.key), entry.line, entry.column)),
            }
            self.keep(entry);
            return Ok(());
        };
        if field.is_access() {
            self.other |= !entry.value.is_null() && field != Field::Role;
            let said = self.notes.said;
            if !self.access.take(self.definition.dialect, field, entry, &mut self.notes) {
                self.unused.push((keys::cut(&entry.key), entry.line, entry.column));
                self.keep(entry);
            } else if matches!(field, Field::Permissions | Field::Mode | Field::Role) || self.notes.said > said {
                // More stands there than the definition has.
                self.keep(entry);
            }
            return Ok(());
        }
        if entry.value.is_null() {
            // Under the key of services stands what others of that key name.
            if field != Field::Services {
                self.keep(entry);
            }
            return Ok(());
        }
        self.other |= !matches!(field, Field::Unused | Field::Enable | Field::Name);
        match self.value(field, entry)? {
            Taken::Yes => {}
            Taken::Kept => self.keep(entry),
            Taken::No => {
                let message = format!("`{}` has a value that it cannot have; it was ignored", keys::cut(&entry.key));
                let place = (entry.value.line, entry.value.column);
                self.notes.say(Code::FieldIgnored, place, message, field.hint());
                self.keep(entry);
            }
        }
        Ok(())
    }

    fn value(&mut self, field: Field, entry: &Entry) -> Result<Taken, Diagnostic> {
        let node = &entry.value;
        let at = (entry.line, entry.column);
        let definition = &mut self.definition;
        let taken = match field {
            Field::Name => fields::text(node).map(|name| self.name(&name, entry)).is_some(),
            Field::Display => fields::text(node).map(|name| self.display = Some(self.shown(&name, at))).is_some(),
            Field::Description => fields::text(node)
                .map(|text| {
                    (definition.description, definition.examples) = examples::take_out(&examples::unescape(&text));
                })
                .is_some(),
            Field::Prompt => {
                fields::text(node).map(|text| self.prompts.push((entry.key.clone(), text.trim().to_owned()))).is_some()
            }
            Field::Model => match fields::models(node) {
                Some(models) => {
                    definition.model = self.notes.bounded(models, &entry.key, at);
                    if definition.model.len() > 1 {
                        let message = "several models; the first that is known is used";
                        self.notes.say(Code::ModelList, at, message, "");
                    }
                    true
                }
                None => false,
            },
            Field::Tags => match fields::tags(node) {
                Some(mut tags) => {
                    tags.retain(|tag| !definition.tags.contains(tag));
                    definition.tags.append(&mut tags);
                    definition.tags = self.notes.bounded(std::mem::take(&mut definition.tags), &entry.key, at);
                    true
                }
                None => false,
            },
            Field::Runner => match fields::place(node) {
                Some(name) => {
                    definition.runner = Some(name);
                    true
                }
                None => false,
            },
            Field::Launcher => match fields::place(node) {
                Some(name) => {
                    definition.launcher = Some(name);
                    true
                }
                None => false,
            },
            Field::Isolation => fields::isolation(node).map(|worktree| definition.worktree = worktree).is_some(),
            Field::MaxTurns => self.limit(fields::number(node).map(|turns| turns as u32).filter(|turns| *turns > 0)),
            Field::TimeoutMs | Field::TimeoutMins => {
                let unit_ms = if field == Field::TimeoutMs { 1.0 } else { 60_000.0 };
                let ms = fields::number(node).map(|number| (number * unit_ms) as u64).filter(|ms| *ms > 0);
                definition.timeout_ms = ms.or(definition.timeout_ms);
                ms.is_some()
            }
            Field::Servers => {
                definition.mcp_servers = Some(node.json());
                true
            }
            Field::OutputSchema => {
                self.form.schema_at(at);
                definition.output_schema = Some(node.json()).filter(Value::is_object);
                definition.output_schema.is_some()
            }
            Field::OutputFormat => return Ok(self.form.format(node)),
            Field::Session => {
                definition.session = node.truth().or(definition.session);
                node.truth().is_some()
            }
            Field::Extensions if definition.dialect == Dialect::Pi => return Ok(self.unused(entry)),
            Field::Extensions => recipe::extensions(entry, definition, &mut self.notes),
            Field::Settings => return Ok(recipe::settings(entry, definition)),
            Field::Response => {
                self.form.schema_at(at);
                return Ok(recipe::response(entry, definition));
            }
            Field::Kept => return Ok(Taken::Kept),
            Field::Services => {
                services::both(entry, &mut definition.extra, &mut self.notes);
                true
            }
            Field::Kind if node.scalar() == Some("remote") => return Err(self.remote(at)),
            Field::Kind => return Ok(self.unused(entry)),
            Field::Disable | Field::Enable => {
                self.switch(field, entry)?;
                return Ok(Taken::Kept);
            }
            // Those of access are taken elsewhere.
            _ => return Ok(self.unused(entry)),
        };
        Ok(if taken { Taken::Yes } else { Taken::No })
    }

    fn limit(&mut self, turns: Option<u32>) -> bool {
        self.definition.max_turns = turns.or(self.definition.max_turns);
        turns.is_some()
    }

    fn unused(&mut self, entry: &Entry) -> Taken {
        self.unused.push((keys::cut(&entry.key), entry.line, entry.column));
        Taken::Kept
    }

    fn keep(&mut self, entry: &Entry) {
        self.definition.extra.insert(entry.key.clone(), entry.value.json());
    }

    fn remote(&self, (line, column): (u32, u32)) -> Diagnostic {
        Diagnostic::new(
            Code::RemoteAgent,
            self.notes.file,
            "it runs elsewhere (`kind: remote`), and cannot be run here",
        )
        .at(line, keys::column(column))
    }

    fn name(&mut self, name: &str, entry: &Entry) {
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        if name.is_empty() {
            return;
        }
        let at = (entry.line, entry.column);
        if entry.value.is_typed() {
            let message = format!("YAML reads the name `{}` as a number or truth value", keys::cut(&name));
            self.notes.say(Code::NameNotString, at, message, "put it in quotes");
        }
        if name.starts_with('-') {
            let message = "the name begins with `-`, which other systems refuse";
            self.notes.say(Code::NameLeadingDash, at, message, "begin it with a letter");
        }
        if !name.contains(' ') && name.contains([':', '/', '\\']) {
            let message = "the name has `:`, `/` or `\\`, which other systems refuse";
            self.notes.say(Code::NameReservedCharacter, at, message, "use letters, digits and `-`");
        }
        self.name = Some(self.shown(&name, at));
        self.line = entry.line;
    }

    /// A name for people: one line, cut at its bound, which is told.
    fn shown(&mut self, name: &str, at: (u32, u32)) -> String {
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        if name.chars().nth(NAME_CHARS_MAX).is_some() {
            let message = format!("the name has more than {NAME_CHARS_MAX} characters; it was cut");
            self.notes.say(Code::NameTooLong, at, message, "shorten it");
        }
        crate::text::cut(&name, NAME_CHARS_MAX)
    }

    /// What can only be said when all fields are known.
    fn finish(mut self, stem: &str) -> Result<Definition, Diagnostic> {
        let display = self.display.take().filter(|name| !name.is_empty());
        if self.name.is_none() && !self.other {
            let message = "the frontmatter has no name and nothing else that makes an assistant";
            return Err(Diagnostic::new(Code::NameMissing, self.notes.file, message)
                .at(self.line, None)
                .hint("give it a `name` and a `description`"));
        }
        self.prompt();
        self.told_of_keys();
        let line = (self.line, 0);
        let named = self.name.is_some() || display.is_some();
        if !named {
            let message = format!("no name; `{}` was taken from the path", self.definition.name);
            self.notes.say(Code::NameFromFile, line, message, "");
        }
        let name = self.name.take().or_else(|| display.clone()).unwrap_or_else(|| self.definition.name.clone());
        self.definition.id = AssistantId::from_name(&name, stem);
        self.definition.name = display.unwrap_or(name);
        if recipe::is_recipe(&self.definition) {
            self.notes.say(Code::KindGooseRecipe, line, recipe::told(&self.definition), "");
        }
        self.form.settle(&mut self.definition, line, &mut self.notes);
        let granted = self.access.granted(&mut self.notes);
        let (definition, notes) = (&mut self.definition, &mut self.notes);
        definition.tools = granted.tools;
        if !granted.services {
            services::none(&mut definition.extra);
        }
        (definition.disallowed_tools, definition.ask_tools) = (granted.denied, granted.asked);
        definition.rules = granted.rules;
        definition.readonly = granted.readonly;
        definition.allowed_callers = granted.callers;
        definition.may_spawn = granted.may_spawn;
        if named && definition.id.as_str() != definition.name {
            let message = format!("`{}` is known by the id `{}`", definition.name, definition.id);
            notes.say(Code::NameNormalised, line, message, "");
        }
        if definition.description.is_empty() {
            let message = "no description; a search finds it by name and prompt only";
            notes.say(Code::DescriptionMissing, line, message, "add a `description` that says when to use it");
        }
        if definition.description.chars().nth(DESCRIPTION_CHARS_LONG).is_some() {
            let message = format!("the description has more than {DESCRIPTION_CHARS_LONG} characters; answers cut it");
            notes.say(Code::DescriptionLong, line, message, "");
        }
        if definition.system_prompt.is_empty() {
            let message = "there is no prompt: nothing tells the model what to do";
            notes.say(Code::EmptyBody, line, message, "write what it should do below the frontmatter");
        }
        if definition.system_prompt.chars().nth(BODY_CHARS_LONG).is_some() {
            let message = format!("the system prompt has more than {BODY_CHARS_LONG} characters");
            notes.say(Code::BodyLong, line, message, "");
        }
        definition.warnings = self.notes.found;
        Ok(self.definition)
    }

    /// The prompt is the body, else what the keys have of it.
    fn prompt(&mut self) {
        let prompts = std::mem::take(&mut self.prompts);
        if self.definition.system_prompt.is_empty() {
            let mut parts: Vec<String> = prompts.into_iter().map(|(_, text)| text).collect();
            parts.dedup();
            self.definition.system_prompt = parts.join("\n\n").trim().to_owned();
            return;
        }
        for (key, text) in prompts {
            self.unused.push((keys::cut(&key), self.line, 0));
            self.definition.extra.insert(key, Value::String(text));
        }
    }

    fn told_of_keys(&mut self) {
        for (code, keys, what) in [
            (Code::KeyUnused, &self.unused, "kept, and not used here"),
            (Code::KeyUnknown, &self.unknown, "kept, and no system knows it whose files are read"),
        ] {
            let Some((_, line, column)) = keys.first() else { continue };
            let names: Vec<String> = keys.iter().take(KEYS_TOLD_MAX).map(|(key, ..)| format!("`{key}`")).collect();
            let more = keys.len().saturating_sub(KEYS_TOLD_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            self.notes.say(code, (*line, *column), format!("{}{more}: {what}", names.join(", ")), "");
        }
    }
}

/// What became of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is where it belongs.
    Yes,
    /// It is kept as written, for others.
    Kept,
    /// It is none that the field can have.
    No,
}
