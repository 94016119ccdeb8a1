//! Permissions: allowed and denied tools, or a rule for each, as three systems write them.

use super::super::diagnostic::Code;
use super::super::fields::{self, Rule};
use super::super::keys::cut;
use super::super::known::{self, Field};
use super::super::notes::Notes;
use super::super::rules::Action;
use super::super::yaml::{Entry, Kind};
use super::lists::{both, either, names, says_yes};
use super::rules::{excepted, groups};
use super::tools::in_parentheses;
use super::{Access, closed, hints, place};

/// What the rule `edit` is for besides the tool of that name.
const EDITORS: &[&str] = &["write", "patch", "multiedit", "write_file"];
/// Those of opencode's tools, folded, whose calls can be held to patterns.
const HELD: &[&str] = &["bash", "edit", "list", "read", "task", "webfetch", "write"];
/// Tools of opencode, folded: what stands below one are patterns of what it is called with.
const RULED: &[&str] = &[
    "bash",
    "codesearch",
    "doomloop",
    "edit",
    "externaldirectory",
    "glob",
    "grep",
    "list",
    "lsp",
    "question",
    "read",
    "skill",
    "task",
    "todoread",
    "todowrite",
    "webfetch",
    "websearch",
    "write",
];

impl Access {
    /// What it allows takes nothing back that another key refuses.
    pub(super) fn permissions(&mut self, entry: &Entry, notes: &mut Notes<'_>) {
        let (only, allowed) = (self.only.take(), self.allowed.take());
        self.permissions_alone(entry, notes);
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
                Rule::Ask => self.add_rule("*", None, Action::Ask),
                Rule::Some | Rule::Unreadable => {
                    self.closed = true;
                    closed(entry, NOTHING, hints::PERMISSIONS, notes);
                }
            },
            Kind::Seq(_) => {
                // What is no name there may be a rule that denies.
                self.closed |= names(entry).unreadable;
                self.allows(entry, notes);
            }
            Kind::Map(entries) => {
                let groups = groups(entries);
                self.permitted_groups.push(excepted(entries, &groups));
                for inner in entries {
                    match groups.contains(&inner) {
                        true => self.add_rule(&inner.key, None, Action::Deny),
                        false => self.inner(inner, notes),
                    }
                }
            }
        }
    }

    /// A part of permissions, in any spelling, or a rule for a tool.
    fn inner(&mut self, entry: &Entry, notes: &mut Notes<'_>) {
        let folded = known::fold(&entry.key);
        let field = known::meant(&folded);
        self.denies_tool(&folded, entry);
        match (folded.as_str(), field) {
            ("ask", _) if asks(entry) => self.asks(entry, notes),
            ("mode" | "defaultmode", _) => _ = self.mode(entry, notes),
            (_, Some(Field::Tools)) if entry.value.is_null() => {}
            (_, Some(Field::Tools)) => self.allows(entry, notes),
            (_, Some(field)) if field.is_access() => _ = self.field(field, entry, notes),
            (folded, _) => self.rule(folded, entry, notes),
        }
    }

    /// A tool may have a name that means a known key in other words, such as `block`: a rule that refuses is one for it too.
    fn denies_tool(&mut self, folded: &str, entry: &Entry) {
        let other = known::look(folded).is_none() && known::meant(folded).is_some();
        let refuses = matches!(fields::rule(&entry.value), Rule::Deny | Rule::Ask | Rule::Some);
        if other && refuses && !matches!(folded, "allow" | "deny") {
            self.denied_at = place(entry);
            self.deny(&entry.key);
        }
    }

    pub(super) fn asks(&mut self, entry: &Entry, notes: &mut Notes<'_>) {
        let found = names(entry);
        if found.unreadable || says_yes(entry) {
            self.closed = true;
            closed(entry, "it has no tools", hints::denied(entry), notes);
        }
        if !found.refused.is_empty() {
            self.denied_at = place(entry);
        }
        found.refused.iter().for_each(|name| self.deny(name));
        self.spawns_in(&found.taken, entry, notes);
        found.taken.iter().chain(&found.asked).for_each(|name| self.ask(name));
    }

    fn allows(&mut self, entry: &Entry, notes: &mut Notes<'_>) {
        let mut found = names(entry);
        if found.unreadable {
            closed(entry, "only what it names is allowed", hints::names(entry), notes);
        }
        if !found.refused.is_empty() {
            self.denied_at = place(entry);
        }
        found.refused.iter().for_each(|name| self.deny(name));
        found.asked.iter().for_each(|name| self.ask(name));
        self.spawns_in(&found.taken, entry, notes);
        in_parentheses(&mut found.taken, entry, notes);
        let named = [found.taken, found.asked].concat();
        let allowed = notes.bounded(named, &entry.key, (entry.line, entry.column));
        self.allowed = Some(both(self.allowed.take(), allowed));
    }

    /// A rule for one tool, or for all with `*`. Of rules for all and for one a later one counts more; of two for the
    /// same tool what refuses.
    fn rule(&mut self, folded: &str, entry: &Entry, notes: &mut Notes<'_>) {
        self.denied_at = place(entry);
        let name = entry.key.as_str();
        let rule = fields::rule(&entry.value);
        let tool = RULED.contains(&folded);
        let all = folded.chars().all(|c| c == '*');
        if let Kind::Map(inner) = &entry.value.kind
            && let Some(rules) = held(folded, inner, rule)
        {
            return self.some(name, &rules);
        }
        match rule {
            Rule::Allow | Rule::Deny => {}
            Rule::Ask if tool || !matches!(entry.value.kind, Kind::Map(_)) => {
                let name = if all { "*" } else { name };
                self.add_rule(name, None, Action::Ask);
                self.only.iter_mut().for_each(|only| only.push(name.to_owned()));
                return;
            }
            Rule::Ask | Rule::Some => {
                let message = format!("`{}` is under rules that cannot be kept for a tool: it is not given", cut(name));
                notes.say(Code::AccessNarrowed, place(entry), message, hints::RULE_OF_ONE);
            }
            Rule::Unreadable => closed(entry, "it does not have that tool", hints::RULE, notes),
        }
        match &entry.value.kind {
            // What stands below a key that is no tool may itself be tools.
            Kind::Map(inner) if !tool && rule != Rule::Allow => {
                self.closed |= rule == Rule::Unreadable && !inner.is_empty();
                let refused = inner.iter().filter(|inner| fields::rule(&inner.value) != Rule::Allow);
                refused.filter(|inner| inner.key != "*").for_each(|inner| self.deny(&inner.key));
            }
            Kind::Seq(_) => self.closed = true,
            Kind::Map(_) | Kind::Scalar { .. } => {}
        }
        match rule {
            Rule::Allow if all => self.add_rule("*", None, Action::Allow),
            Rule::Allow => {
                self.add_rule(name, None, Action::Allow);
                if let Some(only) = &mut self.only {
                    only.push(name.to_owned());
                }
                self.spawns_in(&[name.to_owned()], entry, notes);
            }
            _ if all => self.only = Some(Vec::new()),
            _ => {
                self.only.iter_mut().for_each(|only| only.retain(|allowed| allowed != name));
                self.deny(name);
                if folded == "edit" {
                    EDITORS.iter().for_each(|editor| self.deny(editor));
                }
            }
        }
    }

    /// A tool is given for the calls that rules of its own let pass. Where they only refuse some, what is said of all tools
    /// stands for the others: without a word they are allowed.
    fn some(&mut self, name: &str, rules: &[(String, Action)]) {
        let refuses = rules.iter().all(|(_, action)| *action == Action::Deny);
        match &mut self.only {
            Some(only) if !refuses => only.push(name.to_owned()),
            None if refuses => self.by_default.push(name.to_owned()),
            Some(_) | None => {}
        }
        for (pattern, action) in rules {
            self.add_rule(name, Some(pattern), *action);
        }
    }
}

/// Patterns for calls of one tool, with the rule of each in the order in which they stand; none where they are all one, or
/// where calls of that tool cannot be held to patterns.
fn held(folded: &str, entries: &[Entry], whole: Rule) -> Option<Vec<(String, Action)>> {
    let all_allowed = whole == Rule::Allow;
    let kept = HELD.contains(&folded) && !all_allowed && whole != Rule::Unreadable;
    let rule = |entry: &Entry| {
        let action = match (&entry.value.kind, fields::rule(&entry.value)) {
            (Kind::Scalar { .. }, Rule::Allow) => Action::Allow,
            (Kind::Scalar { .. }, Rule::Ask) => Action::Ask,
            (Kind::Scalar { .. }, Rule::Deny) => Action::Deny,
            _ => return None,
        };
        Some((entry.key.clone(), action))
    };
    // All patterns refused where one of them is for every call: the tool is.
    let denied = whole == Rule::Deny && entries.iter().any(|entry| entry.key == "*");
    if kept && !denied { entries.iter().map(rule).collect() } else { None }
}

/// Whether what stands behind `ask` are tools to ask for, rather than a rule for a tool of that name.
fn asks(entry: &Entry) -> bool {
    match &entry.value.kind {
        Kind::Seq(_) | Kind::Map(_) => true,
        Kind::Scalar { .. } => entry.value.truth().is_some() || fields::rule(&entry.value) == Rule::Unreadable,
    }
}
