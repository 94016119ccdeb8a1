//! Rules for some calls of a tool: those that somebody is asked before, and those whose order counts.

use super::super::fields::LIST_MAX;
use super::super::notes::Notes;
use super::super::rules::{Action, ToolRule};
use super::super::yaml::{Entry, Kind};
use super::{Access, closed, hints};

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
