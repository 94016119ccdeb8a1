//! Permissions: allowed and denied tools, or a rule for each, as three systems write them.

use super::super::fields::{self, Rule};
use super::super::known::{self, Field};
use super::super::notes::Notes;
use super::super::yaml::{Entry, Kind};
use super::lists::{both, either, names, says_yes};
use super::{Access, closed, hints, narrowed, place};

/// What the rule `edit` is for besides the tool of that name.
const EDITORS: &[&str] = &["write", "patch", "multiedit", "write_file"];
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
                Rule::Ask | Rule::Some | Rule::Unreadable => {
                    self.closed = true;
                    closed(entry, NOTHING, hints::PERMISSIONS, notes);
                }
            },
            Kind::Seq(_) => {
                // What is no name there may be a rule that denies.
                self.closed |= names(entry).unreadable;
                self.allows(entry, notes);
            }
            Kind::Map(entries) => entries.iter().for_each(|inner| self.inner(inner, notes)),
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

    fn asks(&mut self, entry: &Entry, notes: &mut Notes<'_>) {
        self.denied_at = place(entry);
        let found = names(entry);
        if found.unreadable || says_yes(entry) {
            self.closed = true;
            closed(entry, "it has no tools", hints::denied(entry), notes);
        }
        for name in found.taken.iter().chain(&found.refused) {
            narrowed(entry, name, "ask", notes);
            self.deny(name);
        }
    }

    fn allows(&mut self, entry: &Entry, notes: &mut Notes<'_>) {
        let found = names(entry);
        if found.unreadable {
            closed(entry, "only what it names is allowed", hints::names(entry), notes);
        }
        if !found.refused.is_empty() {
            self.denied_at = place(entry);
        }
        found.refused.iter().for_each(|name| self.deny(name));
        self.spawns_in(&found.taken, entry, notes);
        let allowed = notes.bounded(found.taken, &entry.key, (entry.line, entry.column));
        self.allowed = Some(both(self.allowed.take(), allowed));
    }

    /// A rule for one tool, or for all with `*`. Of rules for all and for one a later one counts more; of two for the
    /// same tool what refuses.
    fn rule(&mut self, folded: &str, entry: &Entry, notes: &mut Notes<'_>) {
        self.denied_at = place(entry);
        let name = entry.key.as_str();
        let rule = fields::rule(&entry.value);
        let tool = RULED.contains(&folded);
        match rule {
            Rule::Allow | Rule::Deny => {}
            Rule::Ask => narrowed(entry, name, "ask", notes),
            Rule::Some => narrowed(entry, name, "a rule for some arguments", notes),
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
        let all = folded.chars().all(|c| c == '*');
        match rule {
            Rule::Allow if all => {}
            Rule::Allow => {
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
}

/// Whether what stands behind `ask` are tools to ask for, rather than a rule for a tool of that name.
fn asks(entry: &Entry) -> bool {
    match &entry.value.kind {
        Kind::Seq(_) | Kind::Map(_) => true,
        Kind::Scalar { .. } => entry.value.truth().is_some() || fields::rule(&entry.value) == Rule::Unreadable,
    }
}
