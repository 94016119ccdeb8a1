//! What an assistant may do, as its file says it. What cannot be read opens nothing, and is told.

mod lists;

pub(crate) use self::lists::several;
use self::lists::{bare, both, either, says_yes};
use super::diagnostic::Code;
use super::fields::{self, LIST_MAX, Rule};
use super::keys::cut;
use super::known::Field;
use super::notes::Notes;
use super::yaml::{Entry, Kind, Node};

/// What the fields of access say together.
#[derive(Debug, Default)]
pub(super) struct Access {
    /// The tools that it wants; none is no word.
    tools: Option<Vec<String>>,
    /// The last key that named them, folded.
    tools_key: String,
    /// Keys that name other tools than one before them, with their places.
    doubled: Vec<(String, (u32, u32))>,
    /// Tools that it must not have.
    denied: Vec<String>,
    /// Where that stands.
    denied_at: (u32, u32),
    /// The tools that rules allow, once a rule refuses all others.
    only: Option<Vec<String>>,
    /// Tools that are allowed, where `tools` says nothing.
    allowed: Option<Vec<String>>,
    /// It gets no tool at all.
    closed: bool,
    readonly: bool,
    callers: Option<Vec<String>>,
    may_spawn: Option<Vec<String>>,
    /// Other assistants must not spawn it.
    not_by_models: bool,
}

/// Access as a definition has it.
#[derive(Debug, PartialEq)]
pub(super) struct Granted {
    pub(super) tools: Option<Vec<String>>,
    pub(super) denied: Vec<String>,
    pub(super) readonly: bool,
    pub(super) callers: Option<Vec<String>>,
    pub(super) may_spawn: Option<Vec<String>>,
}

/// The caller that a session is.
const MAIN: &str = "main";
/// Tools that hand work to another assistant, in small letters: what stands in parentheses behind one is whom.
const SPAWNERS: &[&str] = &["agent", "task", "runsubagent", "run_subagent", "spawn_assistant"];
/// What the rule `edit` is for besides the tool of that name.
const EDITORS: &[&str] = &["write", "patch", "multiedit", "write_file"];
/// Words for a mode that this host has no use for: it asks before nothing and gives no more than the tools.
const MODES_UNUSED: &[&str] =
    &["default", "acceptedits", "auto", "dontask", "bypasspermissions", "manual", "workspacewrite", "dangerfullaccess"];
/// Words for a mode in which nothing is changed.
const MODES_READONLY: &[&str] = &["plan", "readonly"];

impl Access {
    /// Takes the field `field` with the value of `entry`. False where it is of no use here.
    pub(super) fn take(&mut self, field: Field, entry: &Entry, notes: &mut Notes<'_>) -> bool {
        match field {
            Field::Tools => self.tools(entry, notes),
            Field::Denied => self.denied(entry, notes),
            Field::Permissions => self.permissions(entry, notes),
            Field::Mode => return self.mode(entry, notes),
            Field::Readonly => self.readonly |= flag(entry, true, "it may change nothing", notes),
            Field::Callers => {
                let names = list(entry, "no one that it does not name may spawn it", notes);
                if entry.value.is_null() {
                    closed(entry, "no one may spawn it", notes);
                }
                self.callers = Some(both(self.callers.take(), names));
            }
            Field::Agents => {
                let names = list(entry, "it may spawn no other", notes);
                if entry.value.is_null() {
                    closed(entry, "it may spawn no other", notes);
                }
                self.spawns(names);
            }
            Field::NotByModels => self.not_by_models |= flag(entry, true, "only a session may spawn it", notes),
            Field::ByModels => self.not_by_models |= !flag(entry, false, "only a session may spawn it", notes),
            _ => return false,
        }
        true
    }

    /// A known field stands there, and its value is lost.
    pub(super) fn lost(&mut self, field: Field, key: &str, line: u32, notes: &mut Notes<'_>) {
        match field {
            Field::Tools => self.tools = Some(Vec::new()),
            Field::Denied | Field::Permissions => self.closed = true,
            Field::Mode | Field::Readonly => self.readonly = true,
            Field::Callers => self.callers = Some(Vec::new()),
            Field::Agents => self.may_spawn = Some(Vec::new()),
            Field::NotByModels | Field::ByModels => self.not_by_models = true,
            _ => return,
        }
        let message = format!("`{}` stands where it cannot be read, so it gives nothing", cut(key));
        notes.say(
            Code::AccessClosed,
            (line, 0),
            message,
            "mend what stands before it, and begin its line with the key",
        );
    }

    /// All fields together.
    pub(super) fn granted(mut self, notes: &mut Notes<'_>) -> Granted {
        for (key, at) in &self.doubled {
            let message = format!("`{key}` and another key name tools; it has those that both name");
            notes.say(Code::DuplicateKey, *at, message, "name the tools under one key, `tools`");
        }
        for name in self.denied.iter().filter(|name| !several(name).eq([name.as_str()])) {
            let message = format!("`{}` is taken for each name in it", cut(name));
            notes.say(Code::AccessNarrowed, self.denied_at, message, "write a list of names, such as `[a, b]`");
        }
        for name in self.denied.iter().filter(|name| name.contains('(')) {
            let message = format!("`{}` is denied for all calls: this host cannot deny some only", cut(name));
            notes.say(Code::AccessNarrowed, self.denied_at, message, "name the tool without parentheses to mean this");
        }
        if self.denied.len() > LIST_MAX {
            let message = format!("it names more than {LIST_MAX} tools that it must not have, so it has none");
            notes.say(Code::AccessClosed, self.denied_at, message, "name the tools that it may have in `tools`");
            self.closed = true;
            self.denied.truncate(LIST_MAX);
        }
        let mut tools = self.tools.or(self.allowed);
        if let Some(only) = self.only {
            let allowed = |tool: &String| only.iter().any(|one| bare(one).eq_ignore_ascii_case(bare(tool)));
            tools = Some(match tools {
                Some(tools) => tools.into_iter().filter(allowed).collect(),
                None => only,
            });
        }
        if self.closed {
            tools = Some(Vec::new());
        }
        let mut callers = self.callers;
        if self.not_by_models && callers.is_none() {
            callers = Some(vec![MAIN.to_owned()]);
        }
        Granted { tools, denied: self.denied, readonly: self.readonly, callers, may_spawn: self.may_spawn }
    }

    fn tools(&mut self, entry: &Entry, notes: &mut Notes<'_>) {
        let node = &entry.value;
        if node.is_null() {
            return;
        }
        let found = fields::names(node);
        if found.unreadable {
            closed(entry, "what is no name of a tool gives none", notes);
        }
        let map = matches!(node.kind, Kind::Map(_));
        if map {
            self.denied_at = place(entry);
            told_of_asking(entry, notes);
        }
        self.spawns_in(&found.taken, entry, notes);
        // A map that only refuses takes away from what there is without it.
        let refuses = map && found.taken.is_empty() && !found.refused.is_empty();
        if found.unreadable || !refuses || found.refused.iter().any(|name| name == "*") {
            let tools = notes.bounded(found.taken, &entry.key, place(entry));
            let narrower = both(self.tools.clone(), tools.clone());
            let key = super::known::fold(&entry.key);
            if self.tools.as_ref().is_some_and(|before| *before != tools) && self.tools_key != key {
                self.doubled.push((cut(&entry.key), place(entry)));
            }
            (self.tools, self.tools_key) = (Some(narrower), key);
        }
        found.refused.iter().filter(|name| *name != "*").for_each(|name| self.deny(name));
    }

    fn denied(&mut self, entry: &Entry, notes: &mut Notes<'_>) {
        let found = fields::names(&entry.value);
        // Whatever a map says of a name behind `disallowedTools`, it is named there.
        found.taken.iter().chain(&found.refused).for_each(|name| self.deny(name));
        self.denied_at = place(entry);
        if found.unreadable || says_yes(entry) {
            self.closed = true;
            closed(entry, "which tools it must not have is not known, so it has none", notes);
        }
    }

    /// Denies one tool more, once. Past the bound it has no tools at all.
    fn deny(&mut self, name: &str) {
        if self.denied.len() <= LIST_MAX && !self.denied.iter().any(|denied| denied == name) {
            self.denied.push(name.to_owned());
        }
    }

    /// What it allows takes nothing back that another key refuses.
    fn permissions(&mut self, entry: &Entry, notes: &mut Notes<'_>) {
        let before = (std::mem::take(&mut self.denied), self.only.take(), self.allowed.take());
        self.permissions_alone(entry, notes);
        let (denied, only, allowed) = before;
        let found = std::mem::replace(&mut self.denied, denied);
        found.iter().for_each(|name| self.deny(name));
        self.only = either(only, self.only.take());
        self.allowed = either(allowed, self.allowed.take());
    }

    fn permissions_alone(&mut self, entry: &Entry, notes: &mut Notes<'_>) {
        const NOTHING: &str = "it has no tools";
        match &entry.value.kind {
            _ if entry.value.is_null() => {}
            Kind::Scalar { .. } => match fields::rule(&entry.value) {
                Rule::Allow => {}
                Rule::Deny => self.closed = true,
                Rule::Ask | Rule::Some | Rule::Unreadable => {
                    self.closed = true;
                    closed(entry, NOTHING, notes);
                }
            },
            Kind::Seq(_) => self.allows(entry, notes),
            Kind::Map(entries) if entries.iter().any(is_part) => {
                entries.iter().for_each(|inner| self.part(inner, notes));
            }
            Kind::Map(entries) => entries.iter().for_each(|inner| self.rule(inner, notes)),
        }
    }

    /// One of `allow`, `deny` and `ask`.
    fn part(&mut self, entry: &Entry, notes: &mut Notes<'_>) {
        self.denied_at = place(entry);
        match entry.key.as_str() {
            "allow" if entry.value.is_null() => {}
            "allow" => self.allows(entry, notes),
            "deny" => self.denied(entry, notes),
            "ask" => {
                for name in list(entry, "it has no tools", notes) {
                    narrowed(entry, &name, "ask", notes);
                    self.deny(&name);
                }
                self.closed |= fields::names(&entry.value).unreadable || says_yes(entry);
            }
            "defaultMode" => _ = self.mode(entry, notes),
            _ => self.rule(entry, notes),
        }
    }

    fn allows(&mut self, entry: &Entry, notes: &mut Notes<'_>) {
        let names = list(entry, "only what it names is allowed", notes);
        self.spawns_in(&names, entry, notes);
        self.allowed = Some(both(self.allowed.take(), names));
    }

    /// A rule for one tool, or for all with `*`; a later one counts more.
    fn rule(&mut self, entry: &Entry, notes: &mut Notes<'_>) {
        self.denied_at = place(entry);
        let name = entry.key.as_str();
        let rule = fields::rule(&entry.value);
        match rule {
            Rule::Allow | Rule::Deny => {}
            Rule::Ask => narrowed(entry, name, "ask", notes),
            Rule::Some => narrowed(entry, name, "a rule for some arguments", notes),
            Rule::Unreadable => closed(entry, "it does not have that tool", notes),
        }
        match (name, rule) {
            ("*", Rule::Allow) => self.only = None,
            ("*", _) => self.only = Some(Vec::new()),
            (name, Rule::Allow) => {
                self.denied.retain(|denied| denied != name);
                self.only.iter_mut().for_each(|only| only.push(name.to_owned()));
            }
            (name, _) => {
                self.only.iter_mut().for_each(|only| only.retain(|allowed| allowed != name));
                self.deny(name);
                if name == "edit" {
                    EDITORS.iter().for_each(|editor| self.deny(editor));
                }
            }
        }
    }

    fn mode(&mut self, entry: &Entry, notes: &mut Notes<'_>) -> bool {
        let word = entry.value.scalar().map(super::known::fold);
        match word.as_deref() {
            None if entry.value.is_null() => return false,
            Some(word) if MODES_UNUSED.contains(&word) => return false,
            Some(word) if MODES_READONLY.contains(&word) => {}
            Some(_) | None => closed(entry, "it may change nothing", notes),
        }
        self.readonly = true;
        true
    }

    /// Narrows whom it may spawn to those that stand in parentheses behind `tools`, where any do.
    fn spawns_in(&mut self, tools: &[String], entry: &Entry, notes: &mut Notes<'_>) {
        let whom: Vec<_> = tools.iter().filter_map(|name| whom(name)).collect();
        if whom.is_empty() {
            return;
        }
        if whom.iter().any(Vec::is_empty) {
            closed(entry, "empty parentheses name no one that it may spawn", notes);
        }
        self.spawns(whom.concat());
    }

    /// Narrows whom it may spawn to `names`; `*` is everyone.
    fn spawns(&mut self, names: Vec<String>) {
        if !names.iter().any(|name| name == "*") {
            self.may_spawn = Some(both(self.may_spawn.take(), names));
        }
    }
}

/// A list of names; what is none is told to give nothing, as `so` says.
fn list(entry: &Entry, so: &str, notes: &mut Notes<'_>) -> Vec<String> {
    let found = fields::names(&entry.value);
    if found.unreadable {
        closed(entry, so, notes);
    }
    notes.bounded(found.taken, &entry.key, (entry.line, entry.column))
}

/// Whether `entry` is a part of permissions, rather than a tool with a rule.
fn is_part(entry: &Entry) -> bool {
    let names = match &entry.value.kind {
        Kind::Seq(_) => true,
        Kind::Scalar { .. } => entry.value.truth().is_some() || fields::rule(&entry.value) == Rule::Unreadable,
        Kind::Map(_) => false,
    };
    matches!((entry.key.as_str(), names), ("allow" | "deny" | "defaultMode", _) | ("ask", true))
}

/// Whether `name` is that of a tool that hands work to another assistant.
pub(crate) fn is_spawner(name: &str) -> bool {
    SPAWNERS.iter().any(|spawner| name.trim().eq_ignore_ascii_case(spawner))
}

/// Whom a tool like `Agent(worker, researcher)` may spawn.
fn whom(tool: &str) -> Option<Vec<String>> {
    let (name, rest) = tool.split_once('(')?;
    let spawns = is_spawner(name);
    let names = rest.trim_end().trim_end_matches(')').split(',').map(|name| name.trim().to_owned());
    spawns.then(|| names.filter(|name| !name.is_empty()).collect())
}

/// A truth value; `closed` where it is none, which is told.
fn flag(entry: &Entry, safe: bool, so: &str, notes: &mut Notes<'_>) -> bool {
    match entry.value.truth() {
        Some(truth) => truth,
        None if entry.value.is_null() => !safe,
        None => {
            closed(entry, so, notes);
            safe
        }
    }
}

fn closed(entry: &Entry, so: &str, notes: &mut Notes<'_>) {
    let message = format!("`{}` cannot be read as it stands: {so}", cut(&entry.key));
    notes.say(
        Code::AccessClosed,
        place(entry),
        message,
        "write a list of names, such as `[a, b]`, or a word that is known",
    );
}

fn narrowed(entry: &Entry, name: &str, rule: &str, notes: &mut Notes<'_>) {
    let message = format!("`{}` is under {rule}, which this host cannot keep for a tool: it is not given", cut(name));
    notes.say(
        Code::AccessNarrowed,
        place(entry),
        message,
        "write `allow` to give it in any case, or `deny` to mean this",
    );
}

/// Tells of each tool of a map that someone is to be asked for.
fn told_of_asking(entry: &Entry, notes: &mut Notes<'_>) {
    let Kind::Map(entries) = &entry.value.kind else { return };
    for inner in entries.iter().filter(|inner| fields::rule(&inner.value) == Rule::Ask) {
        narrowed(inner, &inner.key, "ask", notes);
    }
}

fn place(entry: &Entry) -> (u32, u32) {
    let Node { line, column, .. } = entry.value;
    if column > 0 && !entry.value.is_null() { (line, column) } else { (entry.line, entry.column) }
}

#[cfg(test)]
mod tests;
