//! What an assistant may do, as its file says it. What cannot be read opens nothing, and is told.

mod hints;
mod lists;
mod permissions;
mod rules;
mod tools;

pub(super) use self::lists::names;
pub(crate) use self::lists::{bare, is_all, several};
use self::lists::{both, negated, says_yes};
use super::Dialect;
use super::diagnostic::Code;
use super::fields::{LIST_MAX, Names};
use super::keys::cut;
use super::known::{self, Field};
use super::notes::Notes;
use super::rules::{Action, ToolRule, is_held};
use super::yaml::{Entry, Kind, Node};
use crate::caller::MAIN;

/// What the fields of access say together.
#[derive(Debug, Default)]
pub(super) struct Access {
    /// The tools that it wants; none is no word.
    tools: Option<Vec<String>>,
    /// The last key that named them, folded.
    tools_key: String,
    /// Tools that a map switches on beside those that it has without a word; none is no such map.
    beside: Option<Vec<String>>,
    /// Keys that name other tools than one before them, with their places.
    doubled: Vec<(String, (u32, u32))>,
    /// Tools that it must not have.
    denied: Vec<String>,
    /// It names more of those, or of those that are asked for, than the bound.
    too_many: bool,
    /// Tools for whose calls somebody is asked first.
    asked: Vec<String>,
    /// Rules of permissions, whose order counts.
    rules: Vec<ToolRule>,
    /// The same under a key of their own.
    own_rules: Option<Vec<ToolRule>>,
    /// Tools that permissions take away for some calls only.
    by_default: Vec<String>,
    /// Groups that `tools` refuses but for some, a list for each key.
    groups: Vec<Vec<ToolRule>>,
    /// The same of permissions.
    permitted_groups: Vec<Vec<ToolRule>>,
    /// Where that stands.
    denied_at: (u32, u32),
    /// The tools that rules allow, once a rule refuses all others.
    only: Option<Vec<String>>,
    /// Tools that are allowed, where `tools` says nothing.
    allowed: Option<Vec<String>>,
    /// It gets no tool at all.
    closed: bool,
    /// It gets no tool of a service.
    no_services: bool,
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
    /// Whether it may have what it names besides, by service.
    pub(super) services: bool,
    pub(super) denied: Vec<String>,
    pub(super) asked: Vec<String>,
    pub(super) rules: Vec<ToolRule>,
    pub(super) readonly: bool,
    pub(super) callers: Option<Vec<String>>,
    pub(super) may_spawn: Option<Vec<String>>,
}

/// Tools that hand work to another assistant, in small letters: what stands in parentheses behind one is whom.
const SPAWNERS: &[&str] = &["agent", "task", "runsubagent", "run_subagent", "spawn_assistant"];
/// Words for a mode that this host has no use for: it asks before nothing and gives no more than the tools.
const MODES_UNUSED: &[&str] =
    &["default", "acceptedits", "auto", "dontask", "bypasspermissions", "manual", "workspacewrite", "dangerfullaccess"];
/// Words for a mode in which nothing is changed.
const MODES_READONLY: &[&str] = &["plan", "readonly"];
/// Words of opencode for an assistant that people talk to, and that its `task` does not offer to others.
const ROLES_OF_PEOPLE: &[&str] = &["primary"];
/// Words of Copilot and others for an assistant that answers and plans.
const ROLES_READONLY: &[&str] = &["ask", "plan", "readonly"];

/// What Codex sets up in `[tools]` and `[agents]`, folded.
const CODEX_SETTINGS: &[&str] =
    &["interruptmessage", "jobmaxruntimeseconds", "maxdepth", "maxthreads", "viewimage", "websearch"];

impl Access {
    /// Takes the field `field` with the value of `entry`, in a file of `dialect`. False where it is of no use here.
    pub(super) fn take(&mut self, dialect: Dialect, field: Field, entry: &Entry, notes: &mut Notes<'_>) -> bool {
        let sets_up = dialect == Dialect::Codex && self.sets_up(field, entry);
        !sets_up && self.field(field, entry, notes)
    }

    fn field(&mut self, field: Field, entry: &Entry, notes: &mut Notes<'_>) -> bool {
        match field {
            Field::Tools => self.tools(entry, notes),
            Field::Denied => self.denied(entry, notes),
            Field::Asked => self.asks(entry, notes),
            Field::Rules => self.ordered(entry, notes),
            Field::Permissions => self.permissions(entry, notes),
            Field::Unclear if entry.value.is_null() => return false,
            Field::Unclear => {
                self.closed = true;
                closed(entry, "it may mean tools to have or tools to lack, so it has none", hints::UNCLEAR, notes);
            }
            Field::Mode => return self.mode(entry, notes),
            Field::Role => return self.role(entry),
            Field::Readonly => self.readonly |= flag(entry, true, "it may change nothing", notes),
            Field::Callers => {
                let names = people(entry, "no one that it does not name may spawn it", notes);
                if entry.value.is_null() {
                    closed(entry, "no one may spawn it", hints::CALLERS, notes);
                }
                self.callers = Some(both(self.callers.take(), names));
            }
            Field::Agents => {
                let names = people(entry, "it may spawn no other", notes);
                if entry.value.is_null() {
                    closed(entry, "it may spawn no other", hints::CALLERS, notes);
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
            Field::Denied | Field::Asked | Field::Rules | Field::Unclear | Field::Permissions => self.closed = true,
            Field::Mode | Field::Readonly => self.readonly = true,
            Field::Role => (self.readonly, self.not_by_models) = (true, true),
            Field::Callers => self.callers = Some(Vec::new()),
            Field::Agents => self.may_spawn = Some(Vec::new()),
            Field::NotByModels | Field::ByModels => self.not_by_models = true,
            Field::Services => self.no_services = true,
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
        self.switched_on();
        for (key, at) in &self.doubled {
            let message = format!("`{key}` and another key name tools; it has those that both name");
            notes.say(Code::DuplicateKey, *at, message, "name the tools under one key, `tools`");
        }
        for name in self.denied.iter().filter(|name| !several(name).eq([name.as_str()])) {
            let message = format!("`{}` is taken for each name in it", cut(name));
            notes.say(Code::AccessNarrowed, self.denied_at, message, "write a list of names, such as `[a, b]`");
        }
        let whole = |name: &&String| several(name).any(|one| one.contains('(') && !is_held(one));
        for name in self.denied.iter().filter(whole) {
            let message = format!("`{}` is denied for all calls: this host cannot tell which are meant", cut(name));
            notes.say(Code::AccessNarrowed, self.denied_at, message, "name the tool without parentheses to mean this");
        }
        let wants_none = self.tools.is_none() && self.allowed.is_none() && self.only.is_none();
        let mut rules = self.all_rules(wants_none);
        if self.too_many {
            let message =
                format!("it names more than {LIST_MAX} tools that it must not have, or rules, so it has none");
            notes.say(Code::AccessClosed, self.denied_at, message, "name the tools that it may have in `tools`");
            self.closed = true;
        }
        let services = !self.closed && !self.no_services && self.only.is_none();
        // What may be done when asked for may be done.
        let allowed = self.allowed.map(|allowed| {
            let asked = self.asked.iter().filter(|name| !allowed.contains(name)).cloned().collect();
            [allowed.clone(), asked].concat()
        });
        let mut tools = self.tools.or(allowed);
        if let Some(only) = self.only {
            tools = Some(match tools {
                Some(tools) => {
                    let named = tools.iter().filter(|tool| only.iter().any(|one| rules::is_like(one, tool)));
                    // Of a group of tools that is named, those that are allowed.
                    let group = |tool: &&String| tool.contains('*') && !tool.contains('(');
                    let of_group = |one: &&String| {
                        !tools.contains(one) && tools.iter().filter(group).any(|tool| rules::is_like(tool, one))
                    };
                    named.chain(only.iter().filter(of_group)).cloned().collect()
                }
                None => only,
            });
        }
        if self.closed {
            tools = Some(Vec::new());
        }
        let mut callers = self.callers;
        // A list that names assistants is a word about each; that all may is none about those.
        if self.not_by_models && callers.as_ref().is_none_or(|names| names.iter().any(|name| is_all(name))) {
            callers = Some(vec![MAIN.to_owned()]);
        }
        let mut may_spawn = self.may_spawn;
        may_spawn.iter_mut().for_each(|names| names.truncate(LIST_MAX));
        let (denied, asked, readonly) = (self.denied, self.asked, self.readonly);
        // Where `tools` says nothing, what a rule allows is given.
        let gives = |rule: &ToolRule| tools.is_none() && !is_all(&rule.tool);
        if rules.iter().all(|rule| rule.action == Action::Allow && rule.pattern.is_none() && !gives(rule)) {
            rules.clear();
        }
        Granted { tools, services, denied, asked, rules, readonly, callers, may_spawn }
    }

    /// Whether `entry` is Codex's table of settings for its own tools or threads, which names no tool of ours and no
    /// assistant; what one switches off is denied.
    fn sets_up(&mut self, field: Field, entry: &Entry) -> bool {
        let Kind::Map(settings) = &entry.value.kind else { return false };
        if !settings.iter().all(|setting| CODEX_SETTINGS.contains(&known::fold(&setting.key).as_str())) {
            return false;
        }
        let off = settings.iter().filter(|setting| field == Field::Tools && setting.value.truth() == Some(false));
        off.for_each(|setting| self.deny(&setting.key));
        true
    }

    fn denied(&mut self, entry: &Entry, notes: &mut Notes<'_>) {
        let found = names(entry);
        // Whatever a map says of a name behind `disallowedTools`, it is named there.
        found.taken.iter().chain(&found.refused).chain(&found.asked).for_each(|name| self.deny(name));
        self.denied_at = place(entry);
        if found.unreadable || says_yes(entry) {
            self.closed = true;
            closed(entry, "which tools it must not have is not known, so it has none", hints::denied(entry), notes);
        }
    }

    /// Denies one tool more, once. Past the bound it has no tools at all.
    fn deny(&mut self, name: &str) {
        if self.denied.iter().any(|denied| denied == name) {
            return;
        }
        match self.denied.len() < LIST_MAX {
            true => self.denied.push(name.to_owned()),
            false => self.too_many = true,
        }
    }

    fn mode(&mut self, entry: &Entry, notes: &mut Notes<'_>) -> bool {
        let word = entry.value.scalar().map(known::fold);
        match word.as_deref() {
            None if entry.value.is_null() => return false,
            Some(word) if MODES_UNUSED.contains(&word) => return false,
            Some(word) if MODES_READONLY.contains(&word) => {}
            Some(_) | None => closed(entry, "it may change nothing", hints::MODE, notes),
        }
        self.readonly = true;
        true
    }

    /// Whom it is for: those for people are not spawned by other assistants, and one that is asked or plans changes nothing.
    fn role(&mut self, entry: &Entry) -> bool {
        // In broken YAML the lines below it may be in its value.
        let word = entry.value.scalar().and_then(|text| text.lines().next()).map(known::fold).unwrap_or_default();
        let (people, looks) = (ROLES_OF_PEOPLE.contains(&word.as_str()), ROLES_READONLY.contains(&word.as_str()));
        self.not_by_models |= people;
        self.readonly |= looks;
        people || looks
    }

    /// Narrows whom it may spawn to those that stand in parentheses behind `tools`, where any do.
    fn spawns_in(&mut self, tools: &[String], entry: &Entry, notes: &mut Notes<'_>) {
        let whom: Vec<_> = tools.iter().filter_map(|name| whom(name)).collect();
        if whom.is_empty() {
            return;
        }
        if whom.iter().any(Vec::is_empty) {
            closed(entry, "its parentheses name no one that it may spawn", hints::PARENTHESES, notes);
        }
        self.spawns(whom.concat());
    }

    /// Narrows whom it may spawn to `names`; `*` is everyone.
    fn spawns(&mut self, names: Vec<String>) {
        if !names.iter().any(|name| is_all(name)) {
            self.may_spawn = Some(both(self.may_spawn.take(), names));
        }
    }
}

/// Those who may spawn it, or whom it may spawn; `*` is everyone. What is no name is told to give nothing, as `so` says.
fn people(entry: &Entry, so: &str, notes: &mut Notes<'_>) -> Vec<String> {
    let Names { mut taken, mut refused, asked, unreadable } = names(entry);
    refused.extend(asked);
    let all_but = !refused.is_empty() && taken.iter().any(|name| is_all(name));
    if unreadable || all_but {
        closed(entry, so, hints::names(entry), notes);
    }
    // All but some cannot be said of those who are not known yet.
    taken.retain(|name| !all_but || !is_all(name));
    notes.bounded(taken, &entry.key, (entry.line, entry.column))
}

/// Whether `name` is that of a tool that hands work to another assistant.
pub(crate) fn is_spawner(name: &str) -> bool {
    SPAWNERS.iter().any(|spawner| name.trim().eq_ignore_ascii_case(spawner))
}

/// Whether `text` begins with a word for a role that limits.
pub(super) fn is_limiting_role(text: &str) -> bool {
    let text = known::fold(text);
    ROLES_OF_PEOPLE.iter().chain(ROLES_READONLY).any(|role| text.starts_with(role))
}

/// Whom a tool like `Agent(worker, researcher)` may spawn.
fn whom(tool: &str) -> Option<Vec<String>> {
    let (name, rest) = tool.split_once('(')?;
    let spawns = is_spawner(name);
    let names: Vec<&str> = rest.trim_end().trim_end_matches(')').split(',').map(str::trim).collect();
    // Those that it must not spawn leave those that are named besides.
    let but = names.iter().any(|name| negated(name).is_some());
    let named = names.into_iter().filter(|name| !name.is_empty() && negated(name).is_none() && !(but && *name == "*"));
    spawns.then(|| named.map(str::to_owned).collect())
}

/// A truth value; `closed` where it is none, which is told.
fn flag(entry: &Entry, safe: bool, so: &str, notes: &mut Notes<'_>) -> bool {
    match entry.value.truth() {
        Some(truth) => truth,
        None if entry.value.is_null() => !safe,
        None => {
            closed(entry, so, hints::SWITCH, notes);
            safe
        }
    }
}

fn closed(entry: &Entry, so: &str, hint: &str, notes: &mut Notes<'_>) {
    let message = format!("`{}` cannot be read as it stands: {so}", cut(&entry.key));
    notes.say(Code::AccessClosed, place(entry), message, hint);
}

/// Tells of a list of names outside of these fields in which something is no name.
pub(super) fn cannot_be_read(entry: &Entry, so: &str, notes: &mut Notes<'_>) {
    closed(entry, so, hints::names(entry), notes);
}

fn place(entry: &Entry) -> (u32, u32) {
    let Node { line, column, .. } = entry.value;
    if column > 0 && !entry.value.is_null() { (line, column) } else { (entry.line, entry.column) }
}

#[cfg(test)]
mod tests;
