//! What an assistant may call, and with what: the rules of its definition, looked at before each call.
//!
//! A rule names a tool, and perhaps in parentheses which of its calls: `Bash(git log:*)`, `Read(src/**)`,
//! `WebFetch(domain:docs.rs)`, `mcp__github__*`. What refuses comes before what asks, and that before what allows, in
//! whatever order they stand; only rules whose order counts ([`Definition::rules`]) are read the other way: of those that
//! fit, the last. A call that cannot be understood is refused where a rule for some calls may be about it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::talk::TALK;
use crate::registry::{Action, Definition, Subject, several, subject};
use crate::text::{WORD_SHOWN_CHARS_MAX, cut};
use crate::trust;

mod agents;
mod calls;
mod entry;
mod glob;
mod names;
mod patches;
mod paths;
mod redirections;
mod shell;
mod subject;
mod urls;
mod wider;
mod withheld;

pub(crate) use self::agents::{does_more, is_configured, is_of_agents};
use self::calls::Calls;
use self::entry::{Entry, Style};
use self::names::Naming;
pub(crate) use self::names::names_server;
pub(crate) use self::wider::{allows_itself, exceeds};

/// Names of one message.
const NAMED_MAX: usize = 8;

/// A tool, as rules speak of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolName<'a> {
    /// The tool server that it is of; none is the host itself or the app.
    pub server: Option<&'a str>,
    /// Its name there.
    pub tool: &'a str,
}

/// Whether a tool is a word with those around the process: no `*` has anybody asked before it.
fn is_talk(tool: ToolName<'_>) -> bool {
    tool.server.is_none() && (TALK.contains(&tool.tool) || tool.tool == "final_answer")
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is made.
    Allow,
    /// Somebody is asked first.
    Ask {
        /// Why.
        why: Why,
    },
    /// It is not made.
    Deny {
        /// The rule that says so, in words that name it.
        rule: String,
    },
}

/// Why somebody is asked first. Shown, it is a sentence that a refusal begins with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// A rule says so, written as in its file.
    Rule(String),
    /// No rule is about the call.
    NoRule,
    /// The call is about what does not lie in the folder of its run.
    Outside,
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rule(rule) => write!(f, "`{rule}` asks first"),
            Self::NoRule => f.write_str("no rule is about it, so somebody is asked first"),
            Self::Outside => {
                f.write_str("what it is about is not in the folder of the run, so somebody is asked first")
            }
        }
    }
}

/// The rules of one definition.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Tools that it has; none is those that it has without a word about them.
    allow: Option<Vec<Entry>>,
    /// Where there is none: tools of servers that are not its own that it has all the same.
    by_rules: Vec<Entry>,
    /// Its own servers, where `by_rules` names tools.
    own: Vec<String>,
    deny: Vec<Entry>,
    ask: Vec<Entry>,
    /// Rules whose order counts.
    ordered: Vec<(Entry, Action)>,
    readonly: bool,
    aliases: BTreeMap<String, String>,
    /// Where relative paths start.
    folder: Option<PathBuf>,
}

impl Policy {
    /// The rules of `definition`; `aliases` are those of the configuration.
    #[must_use]
    pub fn of(definition: &Definition, aliases: &BTreeMap<String, String>) -> Self {
        let entries = |names: &[String]| names.iter().map(|name| Entry::read(name, Style::List)).collect();
        let each = |names: &[String]| {
            names.iter().flat_map(|name| several(name)).map(|name| Entry::read(name, Style::List)).collect()
        };
        let by_rules: Vec<Entry> = entries(&definition.given_by_rules());
        let own = if by_rules.is_empty() { Vec::new() } else { own_servers(definition) };
        let ordered = definition.rules.iter().map(|rule| (Entry::ordered(rule), rule.action));
        Self {
            allow: definition.tools.as_deref().map(entries),
            by_rules,
            own,
            deny: each(&definition.disallowed_tools),
            ask: entries(&definition.ask_tools),
            ordered: ordered.collect(),
            readonly: definition.readonly,
            aliases: aliases.clone(),
            folder: None,
        }
    }

    /// The same for a process whose folder is `folder`: relative paths start there.
    #[must_use]
    pub fn within(self, folder: Option<PathBuf>) -> Self {
        Self { folder, ..self }
    }

    /// Whether an assistant is offered a tool of a server at all.
    #[must_use]
    pub fn offers(&self, tool: ToolName<'_>) -> bool {
        self.offers_beside(tool, "", &[])
    }

    /// The same for one of several tools of its server, each with the name by which a model calls it: whoever gives a tool
    /// to the letter gives no other of them that is spelled nearly so.
    #[must_use]
    pub(crate) fn offers_beside(&self, tool: ToolName<'_>, shown: &str, all: &[(&str, &str)]) -> bool {
        let gives = |entry: &Entry| {
            self.stands_for(entry, tool) && !names::means_another(&entry.name, tool, shown, all, &self.aliases)
        };
        let of_own = || self.own.iter().any(|own| tool.server == Some(own.as_str()));
        let given = match &self.allow {
            Some(allow) => allow.iter().any(gives),
            None => self.by_rules.is_empty() || of_own() || self.by_rules.iter().any(gives),
        };
        let denied = |entry: &Entry| !self.is_held(entry, tool) && self.names(entry, tool);
        given && !self.deny.iter().any(denied) && !self.takes(tool)
    }

    /// Whether the last of the rules whose order counts that is about a tool refuses all calls of it.
    pub(crate) fn takes(&self, tool: ToolName<'_>) -> bool {
        let about = self.about(tool);
        let refuses = |rules: &[(&Entry, Action)]| rules.last().is_some_and(refuses_all);
        refuses(&about) || self.by_name(&about, tool).iter().any(|rules| refuses(rules))
    }

    /// What becomes of a call of a tool that is offered.
    #[must_use]
    pub fn judge(&self, tool: ToolName<'_>, arguments: &Map<String, Value>) -> Verdict {
        let calls = Calls { tool, arguments, subject: self.subject(tool), folder: self.folder.as_deref() };
        let refuses = |rule: String| Verdict::Deny { rule };
        for entry in self.deny.iter().filter(|entry| self.concerns(entry, tool)) {
            match calls.may_be(entry) {
                Ok(false) => {}
                Ok(true) => return refuses(format!("`{}` is denied", entry.written)),
                Err(why) => return refuses(format!("{why}, and `{}` is denied", entry.written)),
            }
        }
        for entry in self.deny.iter().filter(|entry| calls.redirects(entry)) {
            match calls.may_redirect(entry) {
                Ok(None) => {}
                Ok(Some(does)) => return refuses(format!("{does}, and `{}` is denied", entry.written)),
                Err(why) => return refuses(format!("{why}, and `{}` is denied", entry.written)),
            }
        }
        let verdict = match self.last(&calls) {
            Ok(verdict) => verdict,
            Err(why) => return refuses(why),
        };
        if matches!(verdict, Verdict::Deny { .. }) {
            return verdict;
        }
        let ordered = self.ordered.iter().map(|(entry, action)| (entry, *action));
        let of_redirections = match calls.redirected(ordered.filter(|(entry, _)| calls.redirects(entry))) {
            Ok(verdict) => verdict,
            Err(why) => return refuses(why),
        };
        if matches!(of_redirections, Verdict::Deny { .. }) {
            return of_redirections;
        }
        if let Err(rule) = self.given(&calls) {
            return refuses(rule);
        }
        for entry in self.ask.iter().filter(|entry| self.concerns(entry, tool)) {
            let exempt = entry.is_all() && is_talk(tool);
            if !exempt && calls.may_be(entry).unwrap_or(true) {
                return Verdict::Ask { why: Why::Rule(entry.written.clone()) };
            }
        }
        for entry in self.ask.iter().filter(|entry| calls.redirects(entry)) {
            if calls.may_redirect(entry).map_or(true, |does| does.is_some()) {
                return Verdict::Ask { why: Why::Rule(entry.written.clone()) };
            }
        }
        if verdict == Verdict::Allow { of_redirections } else { verdict }
    }

    /// Whether an assistant may be spawned, by its id: as [`Policy::judge`] says of a spawn that names it.
    pub(crate) fn judge_spawn(&self, assistant: &str) -> Verdict {
        let arguments = Map::from_iter([("assistant_id".to_owned(), Value::from(assistant))]);
        self.judge(ToolName { server: None, tool: "spawn_assistant" }, &arguments)
    }

    /// Whether calls of a tool can be held to a rule for some of them.
    fn is_held(&self, entry: &Entry, tool: ToolName<'_>) -> bool {
        !entry.patterns.is_empty() && self.subject(tool).is_some()
    }

    /// What calls of a tool are about: by its own name, or by a name that the configuration gives it.
    fn subject(&self, tool: ToolName<'_>) -> Option<Subject> {
        let by_name = subject::of_tool(tool);
        let called = |(alias, name): (&String, &String)| names::is_tool(name, tool).then(|| subject(alias)).flatten();
        by_name.or_else(|| self.aliases.iter().find_map(called))
    }

    /// Whether an entry gives a tool.
    fn stands_for(&self, entry: &Entry, tool: ToolName<'_>) -> bool {
        names::stands_for(&entry.name, tool, &self.aliases)
    }

    /// Whether an entry that takes a tool away names it, in whatever spelling.
    fn names(&self, entry: &Entry, tool: ToolName<'_>) -> bool {
        names::denies(&entry.name, tool, &self.aliases)
    }

    /// Whether an entry that refuses or asks may be about calls of a tool.
    fn concerns(&self, entry: &Entry, tool: ToolName<'_>) -> bool {
        let same = !entry.patterns.is_empty() && entry.subject().is_some_and(|about| self.subject(tool) == Some(about));
        // The host's own table has those that are denied for all calls no more.
        let own = entry.patterns.is_empty() && tool.server.is_none() && entry.is_all();
        same || own || self.names(entry, tool)
    }

    /// What the last of the rules whose order counts says.
    fn last(&self, calls: &Calls<'_>) -> Result<Verdict, String> {
        let about = self.about(calls.tool);
        for rules in self.by_name(&about, calls.tool) {
            let verdict = calls.last(&rules)?;
            if matches!(verdict, Verdict::Deny { .. }) {
                return Ok(verdict);
            }
        }
        if about.is_empty() { Ok(Verdict::Allow) } else { calls.last(&about) }
    }

    /// The rules whose order counts that are about a tool.
    fn about(&self, tool: ToolName<'_>) -> Vec<(&Entry, Action)> {
        let about = self.ordered.iter().filter(|(entry, action)| self.rules(entry, *action, tool));
        about.map(|(entry, action)| (entry, *action)).collect()
    }

    /// Of the rules `about` a tool those that are to refuse a call on their own, where there are any: what is refused by
    /// name is taken back by its name or for all tools, and not by a rule for what tools do.
    fn by_name<'a>(&self, about: &[(&'a Entry, Action)], tool: ToolName<'_>) -> Vec<Vec<(&'a Entry, Action)>> {
        let naming = |(entry, action): &(&Entry, Action)| {
            names::naming(&entry.name, tool, *action == Action::Deny, &self.aliases)
        };
        let named = |least: Naming| {
            let counts =
                |rule: &&(&Entry, Action)| naming(rule) >= least || (rule.0.is_all() && rule.1 != Action::Deny);
            about.iter().filter(counts).copied().collect::<Vec<_>>()
        };
        let refused = |rules: &Vec<(&Entry, Action)>| rules.iter().any(|rule| !rule.0.is_all() && refuses_all(rule));
        [Naming::Alone, Naming::Whole].into_iter().map(named).filter(refused).collect()
    }

    /// Whether a rule whose order counts is about calls of a tool; one that refuses, in whatever spelling.
    fn rules(&self, entry: &Entry, action: Action, tool: ToolName<'_>) -> bool {
        let exempt = entry.is_all() && is_talk(tool);
        // Files that are read are told by several tools, each of which is allowed or refused by its own name.
        let by_subject = !entry.patterns.is_empty() || action == Action::Ask;
        let same = || by_subject && entry.subject().is_some_and(|about| self.subject(tool) == Some(about));
        let refused = || action == Action::Deny && entry.patterns.is_empty() && self.names(entry, tool);
        !exempt && (entry.is_all() || same() || self.stands_for(entry, tool) || refused())
    }

    /// Whether what the definition gives is this call.
    fn given(&self, calls: &Calls<'_>) -> Result<(), String> {
        let Some(allow) = &self.allow else { return Ok(()) };
        let named: Vec<&Entry> = allow.iter().filter(|entry| self.stands_for(entry, calls.tool)).collect();
        // Whom it may spawn is looked at when it is known who that is.
        let whole = |entry: &&Entry| entry.patterns.is_empty() || calls.subject == Some(Subject::Assistant);
        if named.is_empty() || named.iter().any(whole) {
            return Ok(());
        }
        let writes = allow.iter().filter(|entry| entry.is_for_writing()).collect::<Vec<_>>();
        calls.are(&named, &writes)
    }
}

/// Whether a rule refuses all calls of the tools that it names.
fn refuses_all(rule: &(&Entry, Action)) -> bool {
    rule.0.patterns.is_empty() && rule.1 == Action::Deny
}

/// The names of the tool servers that a definition brings.
fn own_servers(definition: &Definition) -> Vec<String> {
    let is_there = |one: &trust::Wanted| one.kind == trust::Kind::Server && !one.is_off();
    let servers = trust::wanted(definition).into_iter().filter(is_there);
    servers.map(|one| one.name).collect()
}

/// Whether calls of a tool of the host or the app can be held to patterns.
pub(crate) fn holds(tool: &str) -> bool {
    subject::of_tool(ToolName { server: None, tool }).is_some()
}

/// Several entries, for a message.
fn list(entries: &[&Entry]) -> String {
    let mut named: Vec<String> =
        entries.iter().take(NAMED_MAX).map(|entry| cut(&entry.written, WORD_SHOWN_CHARS_MAX)).collect();
    if entries.len() > NAMED_MAX {
        named.push(format!("{} more", entries.len() - NAMED_MAX));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests;
