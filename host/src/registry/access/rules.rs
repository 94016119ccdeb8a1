//! Rules for some calls of a tool: those that somebody is asked before, and those whose order counts.

use super::super::fields::{self, LIST_MAX, Rule};
use super::super::notes::Notes;
use super::super::rules::{Action, ToolRule};
use super::super::yaml::{Entry, Kind};
use super::{Access, bare, closed, hints, is_all};

impl Access {
    /// Has somebody asked before calls of a tool.
    pub(super) fn ask(&mut self, name: &str) {
        if self.asked.iter().any(|asked| asked == name) {
            return;
        }
        match self.asked.len() < LIST_MAX {
            true => self.asked.push(name.to_owned()),
            false => self.too_many = true,
        }
    }

    /// Adds a rule behind those that stand before it.
    pub(super) fn add_rule(&mut self, tool: &str, pattern: Option<&str>, action: Action) {
        match self.rules.len() < LIST_MAX {
            true => self.rules.push(ToolRule { tool: tool.to_owned(), pattern: pattern.map(str::to_owned), action }),
            false => self.too_many = true,
        }
    }

    /// Adds the rules of a map of tools by which some are given out of `groups` of it that are refused.
    pub(super) fn excepted(&mut self, entries: &[Entry], groups: &[&Entry]) {
        for entry in entries {
            let of_group = || groups.iter().any(|group| covers(group, entry));
            match fields::rule(&entry.value) {
                Rule::Deny if groups.contains(&entry) => self.add_rule(&entry.key, None, Action::Deny),
                Rule::Allow if of_group() => self.add_rule(&entry.key, None, Action::Allow),
                Rule::Ask if of_group() => self.add_rule(&entry.key, None, Action::Ask),
                _ => {}
            }
        }
    }

    /// Rules under a key of their own.
    pub(super) fn ordered(&mut self, entry: &Entry, notes: &mut Notes<'_>) {
        if entry.value.is_null() {
            return;
        }
        let rules: Option<Vec<ToolRule>> = match &entry.value.kind {
            Kind::Seq(nodes) => nodes.iter().map(|node| node.scalar().and_then(|text| text.parse().ok())).collect(),
            Kind::Scalar { .. } | Kind::Map(_) => None,
        };
        match rules.filter(|rules| rules.len() <= LIST_MAX) {
            Some(rules) => self.own_rules.get_or_insert_default().extend(rules),
            None => {
                self.closed = true;
                closed(entry, "it has no tools", hints::RULES, notes);
            }
        }
    }
}

/// Those of `entries` that refuse a group of tools out of which a later one gives some: of the rules that fit a tool, the
/// last counts.
pub(super) fn groups(entries: &[Entry]) -> Vec<&Entry> {
    let refuses = |entry: &Entry| fields::rule(&entry.value) == Rule::Deny && is_group(&entry.key);
    let gives = |entry: &Entry| matches!(fields::rule(&entry.value), Rule::Allow | Rule::Ask | Rule::Some);
    let excepts = |at: usize, group: &Entry| entries[at + 1..].iter().any(|one| gives(one) && covers(group, one));
    let groups = entries.iter().enumerate().filter(|(at, entry)| refuses(entry) && excepts(*at, entry));
    groups.map(|(_, entry)| entry).collect()
}

/// Whether a key is a pattern for the names of some tools: of all is no group.
fn is_group(key: &str) -> bool {
    key.contains(['*', '?']) && !is_all(key) && key.contains(char::is_alphanumeric)
}

/// Whether the pattern of one key is all of the other, but for the spelling.
fn covers(group: &Entry, entry: &Entry) -> bool {
    is_like(&group.key, &entry.key)
}

/// Whether `name` is of the group `pattern`, in which `*` is any text and `?` one sign, but for the spelling.
pub(super) fn is_like(pattern: &str, name: &str) -> bool {
    let plain = |key: &str| {
        let key = bare(key).to_lowercase().replace(['-', '/'], "_").replace("__", "_");
        key.chars().collect::<Vec<_>>()
    };
    let (pattern, name) = (plain(pattern), plain(name));
    // `reached[n]`: what of the pattern was looked at is the first `n` of the name.
    let mut reached: Vec<bool> = (0..=name.len()).map(|at| at == 0).collect();
    for sign in pattern {
        let mut before = false;
        let next = |at: usize, reached: &[bool]| match sign {
            '*' => reached[at],
            _ => at > 0 && reached[at - 1] && (sign == '?' || sign == name[at - 1]),
        };
        reached = (0..=name.len())
            .map(|at| {
                before = next(at, &reached) || (sign == '*' && before);
                before
            })
            .collect();
    }
    reached[name.len()]
}
